"""Traces: strictly valid JSON in the trace-event format, whatever the names, with everything the events hold."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest

import fgrad
import fgrad.compat as torch
from fgrad.profiler import EventList, FunctionEvent

PHASES = {
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"},
    "M": {"name", "ph", "pid", "tid", "args"},
    "s": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
    "f": {"name", "cat", "ph", "ts", "pid", "tid", "id", "bp"},
    "C": {"name", "ph", "ts", "pid", "args"},
}
"""The phases that are used, with the fields that the trace-event format asks of each."""


def parse(path):
    """Return a trace read strictly: no NaN or Infinity, no key twice."""

    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    def pairs(items):
        found = dict(items)
        assert len(found) == len(items)
        return found

    with gzip.open(path) if str(path).endswith(".gz") else open(path, "rb") as file:
        return json.loads(file.read().decode("utf-8"), parse_constant=refuse, object_pairs_hook=pairs)


def check_format(trace):
    """Assert what the trace-event format says of a JSON object and its events."""
    assert trace["displayTimeUnit"] in ("ns", "ms")
    events = trace["traceEvents"]
    for event in events:
        assert set(event) == PHASES[event["ph"]], event
        assert isinstance(event["name"], str) and isinstance(event["pid"], int)
        assert isinstance(event.get("tid", 0), int)
        for key in ("ts", "dur"):
            assert isinstance(event.get(key, 0), (int, float)) and event.get(key, 0) >= 0
    ends = {kind: sorted((e["name"], e["id"]) for e in events if e["ph"] == kind) for kind in "sf"}
    assert ends["s"] == ends["f"] and len(set(ends["s"])) == len(ends["s"])
    slices = [e for e in events if e["ph"] == "X"]
    for arrow in (e for e in events if e["ph"] in "sf"):
        assert any(s["tid"] == arrow["tid"] and s["ts"] <= arrow["ts"] <= s["ts"] + s["dur"] for s in slices), arrow
    named = {e["tid"] for e in events if e["name"] == "thread_name"}
    assert {e["tid"] for e in slices} <= named
    return events


def profiled():
    x = torch.randn(3, 4, requires_grad=True)
    with torch.autograd.profiler.profile(
        record_shapes=True, with_flops=True, with_stack=True, profile_memory=True
    ) as prof:
        (x.exp() @ x.t()).sum().backward()
    return prof


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_trace_of_everything(tmp_path, name):
    prof = profiled()
    prof.export_chrome_trace(tmp_path / name)
    events = check_format(parse(tmp_path / name))
    slices = [e for e in events if e["ph"] == "X"]
    assert [e["name"] for e in slices] == [e.name for e in prof.function_events]
    assert [e["dur"] * 1e3 for e in slices] == pytest.approx([e.total_ns for e in prof.function_events], abs=1e-3)
    product = next(e for e in slices if e["name"] == "mm")
    assert product["args"]["Input Dims"] == [[3, 4], [4, 3]] and product["args"]["flops"] == 72
    assert "profiled" in slices[0]["args"]["Call stack"][0]
    assert {e["name"] for e in events if e["ph"] == "s"} == {"fwdbwd"}
    assert {e["name"] for e in events if e["ph"] == "M"} == {"process_name", "thread_name", "thread_sort_index"}
    counters = [e["args"] for e in events if e["ph"] == "C"]
    assert counters and all(set(c) == {"value", "saved", "gradient"} and min(c.values()) >= 0 for c in counters)


def test_arrows_lead_from_forward_to_backward(tmp_path):
    prof = profiled()
    prof.export_chrome_trace(tmp_path / "t.json")
    events = parse(tmp_path / "t.json")["traceEvents"]
    starts = {e["args"]["id"]: e["ts"] for e in events if e["ph"] == "X"}
    arrows = {(e["ph"], e["id"]): e["ts"] for e in events if e["ph"] in "sf"}
    tied = [e for e in prof.function_events if e.forward is not None]
    assert [e.name for e in tied] == ["SumBackward0", "MmBackward0", "TBackward0", "ExpBackward0"]
    for event in tied:
        assert arrows["s", event.id] == starts[event.forward.id] and arrows["f", event.id] == starts[event.id]


NAMES = [
    '"quoted"',
    "back\\slash",
    "new\nline",
    "tab\t",
    "\x00\x1f",
    "λ → 漢字 🙂",
    "\ud800 lone",
    "</script>",
    "",
    "NaN",
]


def test_any_name_is_valid(tmp_path):
    with fgrad.profile() as prof:
        for name in NAMES:
            with fgrad.record_function(name):
                pass
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    found = [e["name"] for e in check_format(parse(tmp_path / "t.json")) if e["ph"] == "X"]
    assert found == [name.replace("\ud800", "?") for name in NAMES]
    assert (tmp_path / "t.json").read_bytes().isascii()


def test_kernels_have_rows_of_their_own(tmp_path):
    launch = FunctionEvent(1, "launch", 5, 0, 100)
    kernel = FunctionEvent(2, "gemm<float>", 0, 120, 400)
    kernel.device, kernel.category = "cuda:0", "kernel"
    launch.kernels.append(kernel)
    EventList([launch]).export_chrome_trace(tmp_path / "t.json")
    events = [
        e for e in parse(tmp_path / "t.json")["traceEvents"] if e["name"] in ("launch", "gemm<float>", "thread_name")
    ]
    rows = {e["name"]: e["tid"] for e in events if e["ph"] == "X"}
    assert rows["launch"] != rows["gemm<float>"]
    assert [e["ph"] for e in events if e["name"] == "launch"] == ["X", "s", "f"]
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} == {"thread 5", "kernels on cuda:0"}


def test_an_empty_profile(tmp_path):
    with fgrad.profile() as prof:
        pass
    prof.export_chrome_trace(tmp_path / "t.json")
    assert [e["ph"] for e in check_format(parse(tmp_path / "t.json"))] == ["M", "M", "M"]


def test_a_folder_that_is_not_there(tmp_path):
    with fgrad.profile() as prof:
        fgrad.numpy.tanh(np.ones(1))
    with pytest.raises(FileNotFoundError):
        prof.export_chrome_trace(tmp_path / "none" / "t.json")


def test_other_readers_take_it(tmp_path):
    profiled().export_chrome_trace(tmp_path / "t.json")
    subprocess.run([sys.executable, "-m", "json.tool", str(tmp_path / "t.json")], check=True, capture_output=True)

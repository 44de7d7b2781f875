"""Traces in the trace-event format, which Perfetto and chrome://tracing open.

Source of the format: "Trace Event Format" of the Chromium project. Times are microseconds from the start of the
profile, exact to the nanosecond. Arrows lead from the forward event to its backward one, and from the launch to its
kernel; counters follow the living bytes.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
from collections.abc import Iterator
from typing import Any

import numpy as np

KERNELS = 1_000_000_000
"""Kernels have rows of their own: that of a device is numbered from here, beyond the threads of any system."""


def export(events: Any, path: Any) -> None:
    """Write a list of events to `path`; compressed if it ends in .gz."""
    text = json.dumps(trace(events), allow_nan=False).encode("ascii")
    path = os.fspath(path)
    with gzip.open(path, "wb") if path.endswith(".gz") else open(path, "wb") as file:
        file.write(text)


def trace(events: Any) -> dict[str, Any]:
    """Return the trace of a list of events, ready for JSON."""
    starts = [start for _, _, start, _ in events.spans] + [e.start_ns for e in events] + [0] * (not len(events))
    base = min(starts)
    made = [*_metadata(events), *_durations(events, base), *_arrows(events, base), *_counters(events, base)]
    return {
        "traceEvents": made,
        "displayTimeUnit": "ns",
        "baseTimeNanoseconds": base,
        "otherData": {"python": platform.python_version(), "numpy": np.__version__, "platform": platform.platform()},
    }


def clean(text: str) -> str:
    """Return a text that every reader of JSON takes: lone surrogates are no characters."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _metadata(events: Any) -> Iterator[dict[str, Any]]:
    pid = os.getpid()
    yield _meta(pid, 0, "process_name", name="fgrad")
    names = {thread: name for thread, name, _, _ in events.spans}
    for event in events:
        names.setdefault(event.thread, f"thread {event.thread}")
    names.update({_row(k): f"kernels on {k.device}" for e in events for k in e.kernels})
    for position, (thread, name) in enumerate(names.items()):
        yield _meta(pid, thread, "thread_name", name=clean(name))
        yield _meta(pid, thread, "thread_sort_index", sort_index=position)


def _meta(pid: int, tid: int, what: str, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": args}


def _durations(events: Any, base: int) -> Iterator[dict[str, Any]]:
    pid = os.getpid()
    kernels = [kernel for event in events for kernel in event.kernels]
    for e in [*events, *kernels]:
        yield {
            "ph": "X",
            "pid": pid,
            "tid": _row(e),
            "name": clean(e.name),
            "cat": e.category,
            "ts": (e.start_ns - base) / 1e3,
            "dur": e.total_ns / 1e3,
            "args": _arguments(e),
        }


def _row(e: Any) -> int:
    return e.thread if e.device == "cpu" else KERNELS + e.thread  # type: ignore[no-any-return]


def _arguments(e: Any) -> dict[str, Any]:
    found = {"id": e.id, "source": e.source}
    optional = {
        "Sequence number": e.sequence_nr if e.sequence_nr >= 0 else None,
        "Input Dims": e.input_shapes,
        "Input type": e.input_dtypes,
        "Output Dims": e.output_shapes,
        "bytes": e.total_bytes,
        "flops": e.total_flops,
        "allocated": e.allocated_bytes,
        "note": clean(e.note or ""),
        "Call stack": [clean(line) for line in e.stack],
    }
    return {**found, **{key: value for key, value in optional.items() if value}}


def _arrows(events: Any, base: int) -> Iterator[dict[str, Any]]:
    """Yield the two ends of every arrow; numbers of arrows are those of the events they end at."""
    for e in events:
        if e.forward is not None:
            yield from _arrow("fwdbwd", e.forward, e, base)
        for kernel in e.kernels:
            yield from _arrow("launch", e, kernel, base)


def _arrow(kind: str, start: Any, end: Any, base: int) -> Iterator[dict[str, Any]]:
    common = {"name": kind, "cat": kind, "id": end.id, "pid": os.getpid()}
    yield {"ph": "s", **common, "tid": _row(start), "ts": (start.start_ns - base) / 1e3}
    yield {"ph": "f", "bp": "e", **common, "tid": _row(end), "ts": (end.start_ns - base) / 1e3}


def _counters(events: Any, base: int) -> Iterator[dict[str, Any]]:
    living = {"value": 0, "saved": 0, "gradient": 0}
    for entry in events.memory:
        living[entry.kind] += entry.bytes
        shown = {kind: max(0, n) for kind, n in living.items()}
        yield {"ph": "C", "pid": os.getpid(), "name": "bytes", "ts": (entry.time_ns - base) / 1e3, "args": shown}

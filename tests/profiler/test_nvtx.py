"""NVTX ranges, against a stand-in for the package, and files of nvprof, against one that is written here."""

import contextlib
import sqlite3
import sys
import types

import numpy as np
import pytest

import fgrad
import fgrad.compat as torch
import fgrad.numpy as fnp
from fgrad.core import TABLE, state
from fgrad.profiler import emit_nvtx, load_nvprof, probes


@pytest.fixture
def ranges(monkeypatch):
    """Put a package `nvtx` in place that writes down what is pushed and popped."""
    seen = []
    package = types.ModuleType("nvtx")
    package.push_range = lambda message: seen.append(message)
    package.pop_range = lambda: seen.append("pop")
    monkeypatch.setitem(sys.modules, "nvtx", package)
    return seen


def test_ranges_of_functions_nest(ranges):
    with emit_nvtx(), fgrad.record_function("block"):
        fnp.tanh(np.ones(1))
        fgrad.jit(fnp.exp)(np.ones(1))
    opened = [text.partition(", ")[0].partition(":")[0] for text in ranges]
    assert opened[:3] == ["block", "tanh", "pop"]
    assert opened[4:] == ["trace", "pop", "compile", "pop", "generated", "pop", "pop", "pop"]


def test_backward_ranges_carry_the_number_of_the_forward_one(ranges):
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.profiler.emit_nvtx():
        (x * 3).sum().backward()
    numbers = dict(text.split(", seq = ") for text in reversed(ranges) if ", seq = " in text)  # the first of a name
    stashed = dict(text.split(", stashed seq = ") for text in ranges if "stashed" in text)
    assert stashed["MulBackward0"] == numbers["mul"] and stashed["SumBackward0"] == numbers["sum"]


def test_shapes_are_in_the_names(ranges):
    with emit_nvtx(record_shapes=True):
        fnp.matmul(np.ones((2, 3)), np.ones((3, 1)))
        torch.ones(2) * torch.ones(2)
    assert any(text.endswith("sizes = [[2, 3], [3, 1]]") for text in ranges)
    assert any(text.startswith("mul, seq = ") and text.endswith("sizes = [[2], [2]]") for text in ranges)


def test_errors_close_ranges(ranges):
    with pytest.raises(ValueError), emit_nvtx(), fgrad.record_function("block"):
        TABLE["reshape"](np.ones(3), shape=(2,))
    assert ranges.count("pop") == len(ranges) / 2 > 0
    assert state.interpreter is None and probes._users == 0


def test_disabled(ranges):
    with emit_nvtx(enabled=False):
        fnp.tanh(np.ones(1))
    assert ranges == []


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with pytest.raises(ImportError, match=r"emit_nvtx needs the package nvtx \(pip install nvtx\)"), emit_nvtx():
        pass
    assert state.interpreter is None and probes._users == 0


# ---------------------------------------------------------------------------------------------------- nvprof's files

SCHEMA = """
    CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER
        (_id_ INTEGER PRIMARY KEY, flags INT, timestamp INT, id INT, objectKind INT, objectId BLOB, name INT,
         domain INT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME
        (_id_ INTEGER PRIMARY KEY, cbid INT, start INT, end INT, processId INT, threadId INT, correlationId INT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
        (_id_ INTEGER PRIMARY KEY, start INT, end INT, deviceId INT, correlationId INT, name INT);
"""


def nvprof_file(path, markers, calls=(), kernels=()):
    """Write a file as nvprof does: `markers` are (name, start, end), the rest rows without their numbers."""
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    texts = [name for name, *_ in markers] + [name for *_, name in kernels]
    numbers = {text: k + 1 for k, text in enumerate(dict.fromkeys(texts))}
    connection.executemany("INSERT INTO StringTable VALUES (?, ?)", [(k, text) for text, k in numbers.items()])
    for id, (name, start, end) in enumerate(markers, 1):
        row = "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (NULL, ?, ?, ?, 0, NULL, ?, 0)"
        connection.execute(row, (2, start, id, numbers[name]))
        connection.execute(row, (4, end, id, 0))
    connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (NULL, 211, ?, ?, 1, 1, ?)", calls)
    connection.executemany(
        "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (NULL, ?, ?, ?, ?, ?)",
        [(*row, numbers[name]) for *row, name in kernels],
    )
    connection.commit()
    connection.close()
    return path


def test_a_file_of_nvprof(tmp_path):
    path = nvprof_file(
        tmp_path / "trace.prof",
        markers=[("linear", 100, 900), ("addmm, seq = 4", 200, 600), ("relu", 1000, 1200)],
        calls=[(300, 350, 7), (1050, 1100, 8), (5000, 5001, 9)],
        kernels=[(400, 2400, 0, 7, "sgemm"), (2500, 2600, 0, 8, "relu_kernel"), (6000, 6001, 0, 9, "outside")],
    )
    events = load_nvprof(path)
    assert [(e.name, e.cpu_time_total) for e in events] == [("linear", 0.8), ("addmm, seq = 4", 0.4), ("relu", 0.2)]
    linear, addmm, relu = events
    assert addmm.parent is linear and linear.self_ns == 400 and relu.parent is None
    assert [(k.name, k.device, k.total_ns) for k in addmm.kernels] == [("sgemm", "cuda:0", 2000)]
    assert (linear.cuda_time_total, linear.self_cuda_time_total, addmm.self_cuda_time_total) == (2.0, 0, 2.0)
    text = events.key_averages().table(sort_by="cuda_time_total")
    assert "CUDA total" in text and "CUDA time total: 2.100us" in text
    events.export_chrome_trace(tmp_path / "t.json")


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_nvprof(tmp_path / "none")
    (tmp_path / "text").write_text("not a database, but long enough to be looked at" * 40)
    with pytest.raises(ValueError, match="is not a file of nvprof"):
        load_nvprof(tmp_path / "text")
    with contextlib.closing(sqlite3.connect(tmp_path / "empty")) as connection:
        connection.executescript("CREATE TABLE other (x INT)")
    with pytest.raises(ValueError, match="no such table: StringTable"):
        load_nvprof(str(tmp_path / "empty"))


def test_loading_is_torchs_name_too(tmp_path):
    path = nvprof_file(tmp_path / "trace.prof", markers=[("mul", 0, 10)])
    assert [e.name for e in torch.autograd.profiler.load_nvprof(path)] == ["mul"]

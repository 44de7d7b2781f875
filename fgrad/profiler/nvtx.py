"""NVTX ranges for NVIDIA's profilers, and the files that `nvprof` writes: `emit_nvtx` and `load_nvprof`."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fgrad.core import Primitive
from fgrad.profiler.build import nest, shape_of, sum_up
from fgrad.profiler.events import EventList, FunctionEvent
from fgrad.profiler.record import Observer
from fgrad.profiler.session import profile


class emit_nvtx(profile):
    """Mark every event inside the block as an NVTX range, which NVIDIA's profilers show beside the kernels.

    Ranges of a forward pass are named `mul, seq = 7`, those of a backward pass `MulBackward0, stashed seq = 7`, with
    the number of the event that recorded them; with `record_shapes` also `sizes = [[2, 3], [2, 3]]`.

    Args:
        enabled: False makes the context do nothing.
        record_shapes: write the shapes of inputs into the names.

    Raises:
        ImportError: (on entry) the package `nvtx` is not installed.

    Example:
        >>> import numpy as np, fgrad
        >>> with fgrad.profiler.emit_nvtx(enabled=False):
        ...     fgrad.numpy.tanh(np.zeros(1))
        array([0.])
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        super().__init__(enabled, record_shapes=False, max_events=1)
        self._sizes = record_shapes
        self._marks: Marks | None = None

    def __enter__(self) -> emit_nvtx:
        if self.enabled and self._marks is None:
            self._marks = Marks(self._name, self._sizes)
        super().__enter__()
        return self

    def _observer(self) -> Observer:
        observer = super()._observer()
        observer.marks = self._marks
        return observer


class Marks:
    """Pushes and pops the ranges; remembers which number belongs to what a backward pass will go back to."""

    def __init__(self, naming: Any, sizes: bool):
        try:
            import nvtx
        except ImportError as error:
            raise ImportError("emit_nvtx needs the package nvtx (pip install nvtx), which is not installed") from error
        self.push, self.pop = nvtx.push_range, nvtx.pop_range
        self.naming = naming
        self.sizes = sizes
        self.numbers: dict[Any, int] = {}

    def begin(self, what: Any, serial: int, back_to: Any, kinds: Sequence[Any]) -> None:
        """Open the range of an event; `back_to` is what it goes back to, if it is one of a backward pass."""
        name = self.naming(what) if isinstance(what, Primitive) else what
        if back_to is None:
            name = f"{name}, seq = {serial}"
        else:
            name = f"{name}, stashed seq = {self.numbers.get(back_to, -1)}"
        if self.sizes and kinds:
            name = f"{name}, sizes = {[shape_of(kind) for kind in kinds]}"
        self.push(name)

    def end(self, serial: int, link: Any) -> None:
        """Close the range; `link` is what will lead back to this event."""
        self.pop()
        if link is not None:
            self.numbers.setdefault(link[:2], serial)


# ---------------------------------------------------------------------------------------------------- nvprof's files

_MARKERS = """
    SELECT start.id, start.name, start.timestamp, stop.timestamp
    FROM CUPTI_ACTIVITY_KIND_MARKER AS start JOIN CUPTI_ACTIVITY_KIND_MARKER AS stop ON start.id = stop.id
    WHERE start.name != 0 AND stop.name = 0 ORDER BY start.timestamp, stop.timestamp DESC"""

_KERNELS = """
    SELECT call.start, call.end, kernel.start, kernel.end, kernel.name, kernel.deviceId
    FROM CUPTI_ACTIVITY_KIND_RUNTIME AS call JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS kernel
    ON call.correlationId = kernel.correlationId ORDER BY kernel.start"""


def load_nvprof(path: Any) -> EventList:
    """Return the events in a file that `nvprof -o file -- python …` wrote of a run under `emit_nvtx`.

    Args:
        path: the SQLite file.

    Returns:
        An event for each range; the kernels launched inside are its `kernels`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not a file of nvprof.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"load_nvprof: there is no file {str(path)!r}")
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        strings = dict(connection.execute("SELECT _id_, value FROM StringTable"))
        markers = connection.execute(_MARKERS).fetchall()
        kernels = connection.execute(_KERNELS).fetchall()
    except sqlite3.DatabaseError as error:
        raise ValueError(f"load_nvprof: {str(path)!r} is not a file of nvprof: {error}") from error
    finally:
        connection.close()
    repeated = [id for id, count in Counter(row[0] for row in markers).items() if count > 1]
    if repeated:
        raise ValueError(f"load_nvprof: {str(path)!r} has several ranges with the id {repeated[0]}")
    events = [FunctionEvent(id, strings[name], 0, start, end) for id, name, start, end in markers]
    nest(events)
    for kernel in kernels:
        _launch(events, kernel, strings)
    sum_up(events)
    return EventList(events)


def _launch(events: Sequence[FunctionEvent], row: Sequence[Any], strings: dict[int, str]) -> None:
    """Give a kernel to the innermost range in which it was launched."""
    called, returned, start, end, name, device = row
    inside = [e for e in events if e.start_ns <= called and returned <= e.end_ns]
    if not inside:
        return
    launcher = inside[-1]
    kernel = FunctionEvent(1 + len(events) + sum(len(e.kernels) for e in events), strings[name], device, start, end)
    kernel.category, kernel.device = "kernel", f"cuda:{device}"
    launcher.kernels.append(kernel)
    launcher.self_device_ns += kernel.total_ns

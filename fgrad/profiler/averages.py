"""Averages: the events of a profile summed up by name, by shapes or by the lines that called them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fgrad.profiler.times import Times

if TYPE_CHECKING:
    from fgrad.profiler.events import FunctionEvent


class FunctionEventAvg(Times):
    """The events of one key: how many, how long, how much.

    `total_ns`, `total_bytes` and `total_flops` count nothing twice: an event inside another of the same key adds to
    `count` and `self_ns` alone.
    """

    def __init__(self, key: str = "") -> None:
        self.key = self.name = key
        self.count = self.total_ns = self.self_ns = 0
        self.bytes = self.flops = self.total_bytes = self.total_flops = 0
        self.allocated_bytes = self.self_allocated_bytes = 0
        self.device_ns = self.self_device_ns = 0
        self.ideal_ns = 0.0
        self.category = ""
        self.sources: set[str] = set()
        self.input_shapes: list[Any] = []
        self.stack: list[str] = []
        self.parent: FunctionEvent | None = None
        self.at_top = False

    source = property(lambda self: ", ".join(sorted(self.sources)))
    cpu_parent = property(lambda self: self.parent)

    def add(self, event: FunctionEvent, whole: bool = True) -> None:
        """Add an event; `whole` says that it lies in no other one that was added."""
        if not self.count:
            self.category, self.input_shapes, self.stack = event.category, event.input_shapes, event.stack
            self.parent = event.parent
        self.at_top = self.at_top or event.parent is None
        self.count += event.count
        self.self_ns += event.self_ns
        self.bytes += event.bytes
        self.flops += event.flops
        self.self_allocated_bytes += event.self_allocated_bytes
        self.self_device_ns += event.self_device_ns
        self.sources.add(event.source)
        if whole:
            self.total_ns += event.total_ns
            self.total_bytes += event.total_bytes
            self.total_flops += event.total_flops
            self.allocated_bytes += event.allocated_bytes
            self.device_ns += event.device_ns

    def __iadd__(self, other: FunctionEventAvg) -> FunctionEventAvg:
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.sources |= other.sources
        self.at_top = self.at_top or other.at_top
        return self

    def __repr__(self) -> str:
        return f"<FunctionEventAvg {self.key!r}: {self.count} calls, {self.cpu_time_total_str}>"


_SUMS = (
    "count", "total_ns", "self_ns", "bytes", "flops", "total_bytes", "total_flops", "allocated_bytes",
    "self_allocated_bytes", "device_ns", "self_device_ns",
)  # fmt: skip


def averaged(events: Iterable[FunctionEvent], by_shape: bool, stack_depth: int) -> list[FunctionEventAvg]:
    """Return an average for each key, in order of first appearance."""
    found: dict[Any, FunctionEventAvg] = {}
    keys: dict[int, Any] = {}
    for event in events:
        shapes = repr(event.input_shapes) if by_shape else None
        key = keys[event.id] = event.name, shapes, tuple(event.stack[:stack_depth])
        if key not in found:
            found[key] = FunctionEventAvg(event.name)
        found[key].add(event, not _inside(event, key, keys))
    for average in found.values():
        if not by_shape:
            average.input_shapes = []
        average.stack = average.stack[:stack_depth]
    return list(found.values())


def _inside(event: FunctionEvent, key: Any, keys: dict[int, Any]) -> bool:
    """Return whether an event lies in another of the same key."""
    outer = event.parent
    while outer is not None:
        if keys.get(outer.id) == key:
            return True
        outer = outer.parent
    return False


def total(events: Sequence[Any]) -> FunctionEventAvg:
    """Return the sum over events or averages: every nanosecond and byte once."""
    result = FunctionEventAvg("Total")
    for event in events:
        if isinstance(event, FunctionEventAvg):
            result += event
        else:
            result.add(event, event.parent is None)
    if events and isinstance(events[0], FunctionEventAvg):
        result.total_ns, result.total_bytes, result.total_flops = result.self_ns, result.bytes, result.flops
    return result

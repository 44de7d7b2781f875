"""From records to events: names, nesting, costs and ties, made once a profile has ended."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fgrad.backend.lowered import flops_of
from fgrad.core import PYTHON_SCALARS, ArrayType, Primitive
from fgrad.profiler.events import EventList, FunctionEvent, MemoryEvent
from fgrad.profiler.memory import Entry, Ledger
from fgrad.profiler.record import Observer, Ran, now

MOST_THREADS = 64
"""How many threads may record at once without a node being taken for one that nothing recorded."""

Naming = Callable[[Primitive], str]


def build(observers: Sequence[Observer], naming: Naming, flops: bool = True, ledger: Ledger | None = None) -> EventList:
    """Return the events in the logs of `observers`; `naming` gives the name of a primitive's event."""
    events: list[FunctionEvent] = []
    links: dict[int, Any] = {}
    places: dict[int, FunctionEvent] = {}
    for observer in observers:
        records = sorted(observer.records.copy())  # by serial: a parent comes before its children
        made = [_event(record, observer.place.thread, naming, flops) for record in records]
        nest(made, [record[3] for record in records])
        links.update((record[0], record[7]) for record in records if record[7] is not None)
        events += _merged(made, places)
    events.sort(key=lambda e: e.id)
    _tie(events, links)
    sum_up(events)
    spans = [(o.place.thread, o.place.name, o.opened, o.closed or now()) for o in observers]
    memory = _memory(events, places, ledger.entries, spans) if ledger is not None else []
    return EventList(events, spans, memory, any(o.truncated for o in observers))


def _event(record: tuple[Any, ...], thread: int, naming: Naming, flops: bool) -> FunctionEvent:
    serial, start, end, _, what, category, facts, _, stack = record
    event = FunctionEvent(serial, what, thread, start, end, category)
    if isinstance(what, Primitive):
        event.prim = what
        event.name = naming(what)
        event.source = what.declared.get("source", "NumPy")
        event.category = what.declared.get("category", category)
    elif what.__class__ is Ran:
        event.source = what.source
    elif category == "region":
        event.source = "generated"
    elif category == "op":
        event.source = "NumPy"
    if facts.__class__ is str:
        event.note = facts
    elif facts is not None:
        _put_facts(event, facts, flops)
    if stack:
        event.stack = [f"{code.co_filename}({line}): {code.co_name}" for code, line in stack]
    return event


def _put_facts(event: FunctionEvent, facts: Any, flops: bool) -> None:
    count, moved, work = facts[:3]
    kinds = [(a, b) if b is not None else a for a, b in zip(facts[3::2], facts[4::2], strict=True)]
    inputs, outputs = kinds[:count], kinds[count:]
    event.input_shapes = [shape_of(kind) for kind in inputs]
    event.input_dtypes = [_dtype_name(kind) for kind in inputs]
    event.output_shapes = [shape_of(kind) for kind in outputs]
    if event.source == "NumPy" and any(len(kind) > 2 for kind in inputs if kind.__class__ is tuple):
        event.source = "CuPy"
    if event.prim is not None and "program" in work:
        event.name = f"{event.name}: {work['program'].label}"
    elif event.prim is not None and "label" in event.prim.declared:
        event.name = event.prim.declared["label"](work)
    types_in, types_out = _types(inputs), _types(outputs)
    if moved.__class__ is int:
        event.bytes = moved
    elif moved:
        event.bytes = sum(t.size * t.dtype.itemsize for t in (*types_in, *types_out))
    if flops and work is not None:
        prim, params = (event.prim, work) if event.prim is not None else (work, {})
        event.flops = work if work.__class__ is int else flops_of(prim, params, types_in, types_out)


def shape_of(kind: Any) -> list[Any]:
    """Return the shape in a record's description of a value; those of a list are nested, others have none."""
    if kind.__class__ is list:
        return [shape_of(item) for item in kind]
    return list(kind[0]) if kind.__class__ is tuple else []


def _dtype_name(kind: Any) -> str:
    if kind.__class__ is list:
        return _dtype_name(kind[0])
    return _name_of_dtype(kind[1]) if kind.__class__ is tuple else kind.__name__


@functools.cache
def _name_of_dtype(dtype: Any) -> str:
    return dtype.name  # type: ignore[no-any-return]  # which NumPy composes anew each time, slower than all else here


def _types(kinds: Sequence[Any]) -> list[ArrayType]:
    found = []
    for kind in kinds:
        if kind.__class__ is list:
            found += _types(kind)
        elif kind.__class__ is tuple:
            found.append(ArrayType(kind[0], kind[1]))
        elif kind in PYTHON_SCALARS:
            found.append(ArrayType((), PYTHON_SCALARS[kind], weak=True))
    return found


def nest(events: Sequence[FunctionEvent], depths: Sequence[int] | None = None) -> None:
    """Put the events of one thread, in order of start, into those that enclose them.

    `depths` tell events apart that begin or end in the same nanosecond.
    """
    open_events: list[tuple[FunctionEvent, int]] = []
    for event, depth in zip(events, depths or range(len(events)), strict=True):
        while open_events and (open_events[-1][1] >= depth or open_events[-1][0].end_ns < event.end_ns):
            open_events.pop()
        if open_events:
            open_events[-1][0].append_child(event)
        open_events.append((event, depth))


def _merged(events: Sequence[FunctionEvent], places: dict[int, FunctionEvent]) -> list[FunctionEvent]:
    """Return the events with those left out that repeat what encloses them: the primitive inside `sum` is the sum.

    What is made of primitives has no bytes of its own: they are those of its parts. `places` is told which event
    stands for a serial.
    """
    gone = set()
    for event in reversed(events):  # what lies inside comes first
        places[event.id] = event
        if event.category not in ("op", "primitive") or not event.children:
            continue
        event.bytes = event.flops = 0
        inner = event.children[0]
        repeats = inner.prim is not None and inner.name == event.name.removesuffix("_")
        if event.category == "op" and len(event.children) == 1 and repeats:
            gone.add(inner.id)
            places[inner.id] = event
            event.bytes, event.flops, event.source, event.prim = inner.bytes, inner.flops, inner.source, inner.prim
            event.self_ns += inner.total_ns
            event.children = inner.children
            for child in event.children:
                child.parent = event
                event.self_ns -= child.total_ns
    return [event for event in events if event.id not in gone]


def sum_up(events: Sequence[FunctionEvent]) -> None:
    """Add what events moved and did to those that enclose them; children come after their parents."""
    for event in reversed(events):
        event.total_bytes += event.bytes
        event.total_flops += event.flops
        event.device_ns += event.self_device_ns
        if event.parent is not None:
            event.parent.device_ns += event.device_ns
            event.parent.total_bytes += event.total_bytes
            event.parent.total_flops += event.total_flops


def _memory(
    events: Sequence[FunctionEvent], places: dict[int, FunctionEvent], entries: Iterable[Entry], spans: Sequence[Any]
) -> list[MemoryEvent]:
    """Return the ledger's entries with the events that made the arrays, and put bytes on the events they fell into."""
    by_thread: dict[int, list[FunctionEvent]] = {}
    for event in events:
        by_thread.setdefault(event.thread, []).append(event)
    made = []
    ended = max((end for _, _, _, end in spans), default=0)
    for entry in sorted(e for e in entries if e.time <= ended):  # arrays go on dying after the profile
        maker = places.get(entry.serial)
        gradient = entry.kind == "value" and maker is not None and _in_backward(maker)
        made.append(MemoryEvent(entry.time, entry.bytes, "gradient" if gradient else entry.kind, maker))
        inside = maker if entry.bytes > 0 else _at(by_thread.get(entry.thread, []), entry.time)
        if inside is not None and not entry.moved:
            inside.self_allocated_bytes += entry.bytes
    for event in reversed(events):
        event.allocated_bytes += event.self_allocated_bytes
        if event.parent is not None:
            event.parent.allocated_bytes += event.allocated_bytes
    return made


def _in_backward(event: FunctionEvent | None) -> bool:
    while event is not None and event.category != "backward":
        event = event.parent
    return event is not None


def _at(events: Sequence[FunctionEvent], time: int) -> FunctionEvent | None:
    """Return the innermost of a thread's events, in order of start, that holds a moment."""
    k = bisect.bisect_right(events, time, key=lambda e: e.start_ns) - 1
    event: FunctionEvent | None = events[k] if k >= 0 else None
    while event is not None and event.end_ns < time:
        event = event.parent
    return event


def _tie(events: Sequence[FunctionEvent], links: dict[int, Any]) -> None:
    """Tie the events of backward passes to the events that recorded what they go back through."""
    makers: dict[Any, FunctionEvent] = {}
    ranges: list[tuple[int, int, FunctionEvent]] = []
    for event in events:
        if event.category == "backward":
            continue
        space, number, *first = links.get(event.id, ("primitive", event.id))
        makers.setdefault((space, number), event)
        if first:
            ranges.append((first[0], number, event))
    ranges.sort(key=lambda r: r[1])
    for event in events:
        link = links.get(event.id)
        if event.category != "backward" or link is None:
            continue
        maker = makers.get(link) or _recorder_of(ranges, link[1])
        if maker is not None:
            event.forward = maker
            maker.sequence_nr = event.sequence_nr = links.get(maker.id, ("", maker.id))[1]
            maker.backward.append(event)


def _recorder_of(ranges: Sequence[tuple[int, int, FunctionEvent]], number: int) -> FunctionEvent | None:
    """Return the innermost event that recorded several nodes, this one among them; `ranges` are in order of their ends.

    Ranges of one thread are nested or apart, so that the first that ends later is it, but for those of other threads.
    """
    k = bisect.bisect_left(ranges, number, key=lambda r: r[1])
    return next((event for start, _, event in ranges[k : k + MOST_THREADS] if start <= number), None)

"""From records to events: names, nesting, costs and ties, made once a profile has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad.backend.lowered import flops_of
from fgrad.core import PYTHON_SCALARS, ArrayType, Primitive
from fgrad.profiler.events import EventList, FunctionEvent
from fgrad.profiler.record import Observer

Naming = Callable[[Primitive], str]


def build(observers: Sequence[Observer], naming: Naming, flops: bool = True) -> EventList:
    """Return the events in the logs of `observers`; `naming` gives the name of a primitive's event."""
    events: list[FunctionEvent] = []
    links: dict[int, Any] = {}
    for observer in observers:
        records = sorted(observer.records)  # by serial: a parent comes before its children
        made = [_event(record, observer.place.thread, naming, flops) for record in records]
        _nest(made, [record[3] for record in records])
        links.update((record[0], record[7]) for record in records if record[7] is not None)
        events += made
    events.sort(key=lambda e: e.id)
    _tie(events, links)
    spans = [(o.place.thread, o.place.name, o.opened, o.closed or o.opened) for o in observers]
    return EventList(events, spans, truncated=any(o.truncated for o in observers))


def _event(record: tuple[Any, ...], thread: int, naming: Naming, flops: bool) -> FunctionEvent:
    serial, start, end, _, what, category, facts, _, stack = record
    event = FunctionEvent(serial, what, thread, start, end, category)
    if isinstance(what, Primitive):
        event.prim = what
        event.name = naming(what)
        event.source = what.declared.get("source", "NumPy")
        event.category = what.declared.get("category", category)
    elif category == "region":
        event.source = "generated"
    if facts is not None:
        _put_facts(event, facts, flops)
    if stack:
        event.stack = [f"{code.co_filename}({line}): {code.co_name}" for code, line in stack]
    return event


def _put_facts(event: FunctionEvent, facts: Any, flops: bool) -> None:
    inputs, outputs, params, moves = facts
    event.input_shapes = [list(kind[0]) if kind.__class__ is tuple else [] for kind in inputs]
    event.input_dtypes = [_dtype_name(kind) for kind in inputs]
    event.output_shapes = [list(kind[0]) if kind.__class__ is tuple else [] for kind in outputs]
    if event.prim is None:
        event.bytes, event.flops = moves, params if flops else 0
        return
    types_in, types_out = _types(inputs), _types(outputs)
    if moves:
        event.bytes = sum(t.size * t.dtype.itemsize for t in (*types_in, *types_out))
    if flops:
        event.flops = flops_of(event.prim, params, types_in, types_out)


def _dtype_name(kind: Any) -> str:
    return kind[1].name if kind.__class__ is tuple else kind.__name__


def _types(kinds: Sequence[Any]) -> list[ArrayType]:
    found = []
    for kind in kinds:
        if kind.__class__ is tuple:
            found.append(ArrayType(kind[0], kind[1]))
        else:
            found.append(ArrayType((), PYTHON_SCALARS.get(kind, np.dtype(object)), weak=True))
    return found


def _nest(events: Sequence[FunctionEvent], depths: Sequence[int]) -> None:
    """Put the events of one thread, in order of start, into those that enclose them."""
    open_events: list[tuple[FunctionEvent, int]] = []
    for event, depth in zip(events, depths, strict=True):
        while open_events and (open_events[-1][1] >= depth or open_events[-1][0].end_ns < event.end_ns):
            open_events.pop()
        if open_events:
            open_events[-1][0].append_child(event)
        open_events.append((event, depth))


def _tie(events: Sequence[FunctionEvent], links: dict[int, Any]) -> None:
    """Tie the events of backward passes to the events that recorded what they go back through."""
    wanted = {links[e.id] for e in events if e.category == "backward" and e.id in links}
    makers: dict[Any, FunctionEvent] = {}
    for event in events:
        if event.category == "backward":
            maker = makers.get(links.get(event.id))
            if maker is not None:
                event.forward = maker
                event.sequence_nr = maker.sequence_nr
                maker.backward.append(event)
            continue
        link = links.get(event.id, ("primitive", event.id))
        if link in wanted and link not in makers:
            makers[link] = event
            event.sequence_nr = link[1]

"""Times of a profile on the steps of a picture."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Hashable, Sequence

from fgrad.drawing.steps import Step
from fgrad.profiler.events import EventList, FunctionEvent

_FRAME = re.compile(r"(.*)\((\d+)\): ")


def with_times(steps: Sequence[Step], events: EventList) -> list[Step]:
    """Return steps with the times of the events that belong to them, and their lines; ValueError if there is none."""
    apart = any(step.derivative for step in steps)
    seconds: Counter[Hashable] = Counter()
    for event in events:
        for key in _keys_of_event(event, apart):
            seconds[key] += event.total_ns / 1e9
    keys = [_key(step) for step in steps]
    sharing = Counter(keys)
    if not any(key in seconds for key in keys):
        raise ValueError(
            "the profile has no event of what is drawn: observe it with fgrad.profile(with_stack=True), and a recorded "
            "graph until its backward has run"
        )
    forward = (e for e in events if e.category != "backward" and e.sequence_nr >= 0)
    lines: dict[Hashable, str] = {("node", e.sequence_nr): _line(e) for e in forward}
    return [
        dataclasses.replace(
            step,
            seconds=seconds[key] / sharing[key] if key in seconds else None,
            source=step.source or lines.get(key, ""),
        )
        for step, key in zip(steps, keys, strict=True)
    ]


def _line(event: FunctionEvent) -> str:
    """Return `file:line` of the call of an event, nothing if stacks were not recorded."""
    frame = _FRAME.match(event.stack[0]) if event.stack else None
    return f"{frame[1]}:{frame[2]}" if frame else ""


def _key(step: Step) -> Hashable:
    if step.sequence_nr >= 0:
        return "node", step.sequence_nr
    return step.name, step.source, step.derivative


def _keys_of_event(event: FunctionEvent, apart: bool) -> list[Hashable]:
    """Return what an event may be known by: the node that it made or goes back through; the primitive and its line.

    A step of backward belongs to the primitive that it goes back through, unless derivatives are drawn `apart`: then
    what happens inside it belongs to that line's derivative.
    """
    keys: list[Hashable] = []
    if event.sequence_nr >= 0:
        keys.append(("node", event.sequence_nr))
    pull = _pull_around(event)
    maker = (pull.forward if pull else None) or event
    line = _line(maker)
    named = maker if pull is event and not apart else event
    if line and named.prim is not None and (pull is None or pull is event or apart):
        keys.append((named.prim.name, line, pull is not None and apart))
    return keys


def _pull_around(event: FunctionEvent | None) -> FunctionEvent | None:
    """Return the step of backward that an event is or lies in."""
    while event is not None and event.category != "backward":
        event = event.parent
    return event

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
    """Return steps with the times of the events that belong to them; ValueError if there is none."""
    seconds: Counter[Hashable] = Counter()
    for event in events:
        for key in _keys_of_event(event):
            seconds[key] += event.total_ns / 1e9  # type: ignore[assignment]
    keys = [_key(step) for step in steps]
    sharing = Counter(keys)
    if not any(key in seconds for key in keys):
        raise ValueError(
            "the profile has no event of what is drawn: observe it with fgrad.profile(with_stack=True), and a recorded "
            "graph until its backward has run"
        )
    return [
        dataclasses.replace(step, seconds=seconds[key] / sharing[key] if key in seconds else None)
        for step, key in zip(steps, keys, strict=True)
    ]


def _key(step: Step) -> Hashable:
    return ("node", step.sequence_nr) if step.sequence_nr >= 0 else (step.name, step.source)


def _keys_of_event(event: FunctionEvent) -> list[Hashable]:
    """Return what an event may be known by: the node that it made or goes back through, the primitive and its line."""
    keys: list[Hashable] = []
    if event.sequence_nr >= 0:
        keys.append(("node", event.sequence_nr))
    maker = event.forward or event
    frame = _FRAME.match(maker.stack[0]) if maker.stack else None
    if maker.prim is not None and frame:
        keys.append((maker.prim.name, f"{frame[1]}:{frame[2]}"))
    return keys

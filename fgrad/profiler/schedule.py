"""Schedules: which steps of a long run are observed, so that memory stays bounded and warm-up stays out."""

from __future__ import annotations

import enum
from collections.abc import Callable


class ProfilerAction(enum.Enum):
    """What a profiler does during a step: nothing, observe and forget, observe, observe and hand over at its end."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


Schedule = Callable[[int], ProfilerAction]


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0) -> Schedule:
    """Return a schedule of steps: `skip_first` once, then cycles of `wait`, `warmup` and `active` steps.

    Args:
        wait: steps of a cycle that are not observed.
        warmup: steps that are observed and forgotten.
        active: steps that are kept; their events are handed over at the end of the last.
        repeat: how many cycles; 0 for no end.
        skip_first: steps before the first cycle.

    Raises:
        ValueError: a number is negative, or `active` is not positive.

    Example:
        >>> from fgrad.profiler import schedule
        >>> [schedule(wait=1, warmup=1, active=2)(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    numbers = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
    wrong = [f"{name}={n}" for name, n in numbers.items() if n < (name == "active")]
    if wrong:
        raise ValueError(
            f"Invalid profiler schedule arguments: {', '.join(wrong)}; active must be positive, others >= 0"
        )
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0 or (repeat and step >= repeat * cycle):
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action

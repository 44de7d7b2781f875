"""The profiler: what was computed, when, inside what, and what it cost.

`profile` observes; `record_function` names; `EventList` and `FunctionEvent` are what comes of it (their fields are
described in `fgrad.profiler.events`). Nothing of it is loaded, and nothing tested for, until a profile is entered.
"""

from fgrad.profiler.events import EventList, FunctionEvent, Interval, MemoryEvent
from fgrad.profiler.functional import Watched, seen_pull
from fgrad.profiler.record import Observer, here, next_serial, not_a_view, now, span, stack_if
from fgrad.profiler.session import profile, record_function

__all__ = [
    "EventList", "FunctionEvent", "Interval", "MemoryEvent", "Observer", "Watched", "here", "next_serial", "not_a_view",
    "now", "profile", "record_function", "seen_pull", "span", "stack_if",
]  # fmt: skip

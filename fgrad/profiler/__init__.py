"""The profiler: what was computed, when, inside what, and what it cost.

`profile` observes; `record_function` names; `EventList` and `FunctionEvent` are what comes of it (their fields are
described in `fgrad.profiler.events`). Nothing of it is loaded, and nothing tested for, until a profile is entered.
"""

from fgrad.profiler.events import EventList, FunctionEvent, Interval, MemoryEvent
from fgrad.profiler.session import profile, record_function

__all__ = ["EventList", "FunctionEvent", "Interval", "MemoryEvent", "profile", "record_function"]

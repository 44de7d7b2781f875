"""The profiler: what was computed, when, inside what, and what it cost.

`profile` observes; `record_function` names; `EventList` and `FunctionEvent` are what comes of it (their fields are
described in `fgrad.profiler.events`). Nothing of it is loaded, and nothing tested for, until a profile is entered.
"""

from fgrad.profiler import functional, record
from fgrad.profiler.averages import FunctionEventAvg
from fgrad.profiler.ceiling import Ceiling, measured_ceiling
from fgrad.profiler.events import EventList, FunctionEvent, MemoryEvent
from fgrad.profiler.nvtx import emit_nvtx, load_nvprof
from fgrad.profiler.schedule import ProfilerAction, schedule
from fgrad.profiler.session import profile, record_function
from fgrad.profiler.times import Interval

__all__ = [
    "Ceiling",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "MemoryEvent",
    "ProfilerAction",
    "emit_nvtx",
    "functional",
    "load_nvprof",
    "measured_ceiling",
    "profile",
    "record",
    "record_function",
    "schedule",
]

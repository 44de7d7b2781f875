"""`torch.profiler`: the profiler under the names it has had since release 1.8, made of `autograd.profiler`."""

from __future__ import annotations

import enum
import os
import time

from .autograd.profiler import (
    EventList,
    FunctionEvent,
    ProfilerAction,
    emit_nvtx,
    record_function,
    schedule,
    supported_activities,
)
from .autograd.profiler import profile as _profile

__all__ = [
    "EventList", "FunctionEvent", "ProfilerAction", "ProfilerActivity", "emit_nvtx", "profile", "record_function",
    "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """What is observed: operations on the CPU, kernels on a GPU."""

    CPU = 0
    CUDA = 1


class profile(_profile):
    """Observe the operations on tensors inside the block; see `autograd.profiler.profile` for most arguments.

    Args:
        activities: an iterable of `ProfilerActivity`; CUDA is refused with a warning where there is no GPU.
        schedule: which steps are observed, as `schedule(wait=, warmup=, active=)` gives it; `step()` ends one.
        on_trace_ready: called with this object when the active steps of a cycle have ended.

    Example:
        >>> import fgrad.compat as torch
        >>> with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=0, active=1)) as prof:
        ...     for _ in range(2):
        ...         _ = torch.ones(2) * 2
        ...         prof.step()
        >>> [event.name for event in prof.events() if event.category == "op"]
        ['ones', 'mul']
    """

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, **options):
        use_cuda = ProfilerActivity.CUDA in (activities or ())
        super().__init__(use_cuda=use_cuda, schedule=schedule, on_trace_ready=on_trace_ready, **options)


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """Return a function for `on_trace_ready` that writes each trace into a folder, made if it is not there."""

    def handle(prof):
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or f'worker_{os.getpid()}'}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle

"""`torch.autograd.profiler`: what tensors compute, forward and backward, with times, shapes and memory."""

from __future__ import annotations

import warnings

from fgrad.extend import profiler as _profiler

from ..profiling import primitive_name as _primitive_name

EventList = _profiler.EventList
FunctionEvent = _profiler.FunctionEvent
FunctionEventAvg = _profiler.FunctionEventAvg
Interval = _profiler.Interval
ProfilerAction = _profiler.ProfilerAction
load_nvprof = _profiler.load_nvprof
record_function = _profiler.record_function
schedule = _profiler.schedule

__all__ = [
    "EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "ProfilerAction", "emit_nvtx", "load_nvprof",
    "profile", "record_function", "schedule", "supported_activities",
]  # fmt: skip


def _profiler_enabled():
    """Return whether this thread is being observed."""
    return bool(_profiler.record.here.place.observers)


class _Named:
    """Events of primitives have torch's names."""

    def _name(self, prim):
        return _primitive_name(prim)


class profile(_Named, _profiler.profile):
    """Observe the operations on tensors inside the block, forward and backward.

    Args:
        enabled: False makes the context do nothing.
        use_cuda: also time kernels on a GPU; tensors live on the CPU, so that a warning says it is without effect.
        record_shapes: keep the shapes of inputs; bytes moved follow from them.
        with_flops: estimate floating-point operations; keeps shapes as well.
        profile_memory: follow what operations allocate until it is freed.
        with_stack: keep the user's call stack of every event.
        with_modules, use_kineto, use_cpu: accepted; they change nothing.
        options: `schedule`, `on_trace_ready` and `max_events` of `fgrad.profile`.

    Raises:
        RuntimeError: results are asked for before the block has ended.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.randn((1, 1), requires_grad=True)
        >>> with torch.autograd.profiler.profile() as prof:
        ...     for _ in range(100):  # any normal python code, really!
        ...         y = x ** 2
        ...         y.backward()
        >>> for event in sorted(prof.key_averages(), key=lambda event: event.key):
        ...     print(event.key, event.count)
        PowBackward0 100
        mul 200
        pow 200
        torch::autograd::AccumulateGrad 100
        torch::autograd::GraphRoot 100
    """

    def __init__(
        self,
        enabled=True,
        use_cuda=False,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        **options,
    ):
        if use_cuda:
            warnings.warn("CUDA is not available, disabling CUDA profiling", UserWarning, stacklevel=2)
        super().__init__(
            enabled,
            record_shapes=record_shapes or with_flops,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            **options,
        )


class emit_nvtx(_Named, _profiler.emit_nvtx):
    """Mark every operation inside the block as an NVTX range; see `fgrad.profiler.emit_nvtx`.

    Example:
        >>> import fgrad.compat as torch
        >>> with torch.autograd.profiler.emit_nvtx(enabled=False):
        ...     torch.ones(1) * 2
        tensor([2.])
    """


def supported_activities():
    """Return what can be observed here: operations on the CPU."""
    from ..profiler import ProfilerActivity

    return {ProfilerActivity.CPU}

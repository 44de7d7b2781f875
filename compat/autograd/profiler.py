"""`torch.autograd.profiler`: what tensors compute, forward and backward, with times, shapes and memory."""

from __future__ import annotations

import warnings

from fgrad.extend import profiler as _profiler

from ..profiling import primitive_name as _primitive_name

EventList = _profiler.EventList
FunctionEvent = _profiler.FunctionEvent
record_function = _profiler.record_function


class profile(_profiler.profile):
    """Observe the operations on tensors inside the block, forward and backward.

    Args:
        enabled: False makes the context do nothing.
        use_cuda: also time kernels on a GPU; a warning says so where there is none.
        record_shapes: keep the shapes of inputs; bytes moved follow from them.
        with_flops: estimate floating-point operations; keeps shapes as well.
        profile_memory: follow what operations allocate until it is freed.
        with_stack: keep the user's call stack of every event.

    Raises:
        RuntimeError: results are asked for before the block has ended.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.randn((1, 1), requires_grad=True)
        >>> with torch.autograd.profiler.profile() as prof:
        ...     for _ in range(100):
        ...         y = x ** 2
        ...         y.backward()
        >>> sorted((event.key, event.count) for event in prof.key_averages())[-2:]
        [('torch::autograd::AccumulateGrad', 100), ('torch::autograd::GraphRoot', 100)]
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

    def _name(self, prim):
        return _primitive_name(prim)

"""`torch.utils.checkpoint`: recompute in backward what forward need not keep."""

from __future__ import annotations

import contextlib
import warnings

from ..backward import backward
from ..function import Function
from ..methods.random import default_generator
from ..modes import enable_grad, no_grad
from ..tensor import Tensor


class CheckpointError(RuntimeError):
    """What was recomputed is not what forward computed. See docs/errors.md#checkpointerror."""


class CheckpointFunction(Function):
    """Runs the function unrecorded, and again, recorded, when its gradient is asked for."""

    @staticmethod
    def forward(ctx, function, state, contexts, kwargs, *args):
        ctx.function, ctx.state, ctx.kwargs = function, state, kwargs
        inside, ctx.again = contexts
        ctx.plain = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*[a if isinstance(a, Tensor) else None for a in args])
        with no_grad(), inside:
            return function(*args, **kwargs)

    @staticmethod
    def backward(ctx, *grads):
        saved = [p if t is None else t for t, p in zip(ctx.saved_tensors, ctx.plain)]
        made = detach_variable(saved)
        now = default_generator.get_state()
        if ctx.state is not None:
            default_generator.set_state(ctx.state)
        with enable_grad(), ctx.again:
            outs = ctx.function(*made, **ctx.kwargs)
        default_generator.set_state(now)
        outs = outs if isinstance(outs, tuple) else (outs,)
        pairs = [(o, g) for o, g in zip(outs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, None, None, *[a.grad if isinstance(a, Tensor) else None for a in made])


def noop_context_fn():
    """Return two contexts that do nothing: what `checkpoint` computes in unless told otherwise."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs):
    """Return a tuple of inputs with its tensors cut from the graph, their flags kept."""
    return tuple([a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in inputs])


def check_backward_validity(inputs):
    """Warn if no tensor among the inputs requires grad: then nothing that is checkpointed will."""
    if not any(isinstance(a, Tensor) and a.requires_grad for a in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Do nothing: what is recomputed is always computed whole."""
    yield


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Do nothing: anomaly mode shows where a checkpointed operation fails."""
    yield


def checkpoint(
    function,
    *args,
    use_reentrant=True,
    preserve_rng_state=True,
    determinism_check="default",
    debug=False,
    context_fn=noop_context_fn,
    **kwargs,
):
    """Return `function(*args)`, keeping only the arguments: its inside is computed again in backward.

    Args:
        function: a function of tensors; its parameters that it closes over get their gradients too.
        *args: its arguments; those that are tensors may require grad.
        use_reentrant: accepted; both settings recompute in the same way.
        preserve_rng_state: draw the same random numbers again.
        determinism_check, debug: accepted.
        context_fn: returns two contexts: one to compute in, one to compute again in.

    Example:
        >>> import fgrad.compat as torch
        >>> from fgrad.compat.utils.checkpoint import checkpoint
        >>> x = torch.ones(2, requires_grad=True)
        >>> checkpoint(lambda x: x.exp().sum(), x).backward()
        >>> x.grad
        tensor([2.7183, 2.7183])
    """
    state = default_generator.get_state() if preserve_rng_state else None
    return CheckpointFunction.apply(function, state, context_fn(), kwargs, *args)


def checkpoint_sequential(functions, segments, input, use_reentrant=True, **kwargs):
    """Return the chain of `functions` applied to `input`, checkpointed in segments, the last one kept."""
    functions = list(functions)
    size = len(functions) // segments

    def chain(part):
        def run(x):
            for f in part:
                x = f(x)
            return x

        return run

    end = size * (segments - 1)
    for start in range(0, end, size):
        input = checkpoint(chain(functions[start : start + size]), input)
    return chain(functions[end:])(input)

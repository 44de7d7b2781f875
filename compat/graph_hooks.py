"""Hooks on what the graph saves and on several tensors at once: the rest of `torch.autograd.graph`."""

from __future__ import annotations

import contextlib

import numpy as np

from fgrad.extend import Tracer, on_gpu

from . import graph
from .engine import passes as running
from .engine import queue_callback
from .hooks import PlaceHooks
from .modes import mode, no_grad
from .tape import Packed, place_of
from .tensor import Tensor, wrap


class saved_tensors_hooks:
    """Let `pack_hook` turn every tensor saved inside into any object, and `unpack_hook` turn it back when it is needed.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().tolist(), lambda v: torch.tensor(v)):
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        self.outer = mode.packing
        mode.packing = self
        return self

    def __exit__(self, *exc):
        mode.packing = self.outer

    def pack(self, node):
        """Pack what a node has saved."""
        node._saved = tuple(
            [self.packed(wrap(v)) if isinstance(v, (np.ndarray, Tracer)) or on_gpu(v) else v for v in node._saved]
        )
        PlaceHooks.at(node)

    def packed(self, t):
        """Return a tensor as the hook packs it."""
        version = t.counter[0]
        with no_grad():
            packed = self.pack_hook(t)
        if t.counter[0] != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
                "not be modified by in-place operations as this can lead to unexpected side-effects."
            )
        return Packed(packed, self.unpack_hook)


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors as copies on the CPU."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda t: (t.device, t.cpu() if t.is_cuda else t.clone()), lambda kept: kept[1].to(kept[0]))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Refuse saved-tensor hooks inside."""
    outer = mode.packing
    original = saved_tensors_hooks.__enter__

    def refuse(self):
        raise RuntimeError(error_message)

    saved_tensors_hooks.__enter__ = refuse
    try:
        yield
    finally:
        saved_tensors_hooks.__enter__ = original
        mode.packing = outer


def increment_version(tensor):
    """Raise the version of one tensor or of several, as an in-place change would."""
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        t.counter[0] += 1


def get_gradient_edge(tensor):
    """Return the place in the graph that a tensor came from, as `grad` and `backward` take it; RuntimeError if none."""
    place = place_of(tensor)
    if place is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return graph.GradientEdge(*graph.edge(place))


class _MultiHandle:
    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        """Remove the hook from all tensors."""
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call `fn(grads)` when all gradients of `tensors` are there in a pass ("all"), or `fn(grad)` at the first ("any").

    Only tensors that the pass reaches count; the others' gradients are None.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    passes = {}

    def hook_of(k):
        def hook(g):
            current = running.current
            state = passes.get(current)
            if state is None:
                missing = sum(current.reaches(place_of(t)) for t in tensors)
                state = passes[current] = {"grads": [None] * len(tensors), "missing": missing, "done": False}
                queue_callback(lambda: passes.pop(current, None))
            state["grads"][k] = g
            state["missing"] -= 1
            if not state["done"] and (mode == "any" or not state["missing"]):
                state["done"] = True
                fn(g if mode == "any" else list(state["grads"]))

        return hook

    return _MultiHandle([t.register_hook(hook_of(k)) for k, t in enumerate(tensors)])

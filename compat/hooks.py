"""Hooks: functions called with gradients on their way, and the handles that remove them.

A place in the graph that has any carries a `PlaceHooks`; the engine asks it before and after it works the place off.
Hooks see tensors; the plain arrays of an unrecorded pass are wrapped for them.
"""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict

from . import devices
from .tensor import Tensor, wrap, wrap_value

_ids = itertools.count().__next__

post_hooked: weakref.WeakSet[Tensor] = weakref.WeakSet()
"""The leaves that ever had a hook for after their gradient is added: only for them a pass counts what arrives."""


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away, also while hooks run."""

    __slots__ = ("id", "_hooks", "__weakref__")

    def __init__(self, hooks):
        self.id = _ids()
        self._hooks = hooks

    def remove(self):
        """Remove the hook; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def add(hooks, hook):
    """Enter a hook at the end of `hooks` and return its handle; TypeError if it is not callable."""
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


class PlaceHooks:
    """What hangs on one place of the graph.

    `tensor`: hooks on the tensor that came from here; `pre` and `post`: hooks on the node; `retains`: a weak reference
    to the tensor that keeps its gradient; `sources`: the places a composed operation started from, where the graph
    shows it as one node; `metadata`: the user's dict.
    """

    __slots__ = ("tensor", "pre", "post", "retains", "sources", "metadata")

    def __init__(self):
        self.tensor = OrderedDict()
        self.pre = OrderedDict()
        self.post = OrderedDict()
        self.retains = None
        self.sources = None
        self.metadata = None

    @classmethod
    def at(cls, place):
        """Return the hooks of a place, made if it has none yet."""
        if place._more is None:
            place._more = cls()
        return place._more

    def before(self, place, g, create):
        """Return the gradient that goes on: run the tensor's hooks, keep it if wanted, run the node's pre-hooks."""
        if self.tensor:
            g = run_hooks(self.tensor.values(), g, create)
        if self.retains is not None:
            keep(self.retains(), g)
        for hook in list(self.pre.values()):
            given = as_tensors(g)
            got = hook(given)
            if got is not None:
                g = _like(g, got if isinstance(got, tuple) else (got,), create)
        return g

    def after(self, g, pulled, create):
        """Return the gradients that leave a node, as its hooks want them; RuntimeError for a wrong number."""
        for hook in list(self.post.values()):
            got = hook(as_tensors(tuple(pulled)), as_tensors(g))
            if got is None:
                continue
            got = got if isinstance(got, tuple) else (got,)
            if len(got) != len(pulled):
                name = getattr(hook, "__name__", type(hook).__name__)
                raise RuntimeError(
                    f"hook '{name}' has returned an incorrect number of values (got {len(got)}, but expected "
                    f"{len(pulled)})"
                )
            pulled = [h if create or h is None else h._data for h in got]
        return pulled


def _like(g, tensors, create):
    values = [t if create or t is None else t._data for t in tensors]
    return values if g.__class__ is list else values[0]


def as_tensor(g):
    """Return a gradient as hooks see it: a tensor, or None."""
    return g if g is None or isinstance(g, Tensor) else wrap_value(g)


def as_tensors(g):
    """Return the gradient or gradients of a node's outputs as a tuple of tensors and Nones."""
    return tuple(map(as_tensor, g)) if g.__class__ in (list, tuple) else (as_tensor(g),)


def keep(t, g):
    """Add gradient `g` to that of a tensor that retains it (None: the tensor is gone)."""
    if t is None or g is None:
        return
    g = as_tensor(g)
    extras = t.extras
    extras.grad = wrap(devices.copied(g._data)) if extras.grad is None and g._node is None else _sum(extras.grad, g)


def _sum(have, g):
    return g.clone() if have is None else have + g


def run_hooks(hooks, g, create):
    """Run tensor hooks in order; what one returns replaces the gradient for those that follow."""
    t = as_tensor(g)
    for hook in list(hooks):
        got = hook(t)
        if got is not None:
            t = _replacement(hook, got, t)
    return t if create or t is None else t._data


def _replacement(hook, got, t):
    """Return what a hook gave in place of gradient `t`; TypeError or RuntimeError if it is no gradient of that kind."""
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(got, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(got).__name__}' (hook '{name}')")
    if t is not None and got.shape != t.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    if t is not None and got._data.dtype != t._data.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was torch.{t._data.dtype} got torch.{got._data.dtype})"
        )
    return got


# ------------------------------------------------------------------------------------------- on tensors


def hooks_of(t, place):
    """Return the ordered hooks of a tensor that came from `place`: kept at the place, or at the leaf itself."""
    if isinstance(place, Tensor):
        extras = place.extras
        if extras.hooks is None:
            extras.hooks = OrderedDict()
        return extras.hooks
    return PlaceHooks.at(place).tensor


def retain(t, place):
    """Let tensor `t`, which came from `place`, keep its gradient, without being kept alive by the graph."""
    if not isinstance(place, Tensor):
        PlaceHooks.at(place).retains = weakref.ref(t)
        t.extras.retains = True

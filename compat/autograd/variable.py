"""`Variable`, deprecated: a function that returns tensors, and a class that every tensor is an instance of."""

from __future__ import annotations

from .. import engine
from ..modes import no_grad
from ..tensor import Tensor


class _Engine:
    """The engine as old programs reach it."""

    @staticmethod
    def queue_callback(fun):
        """Run `fun()` once when the backward pass that is at work ends."""
        engine.queue_callback(fun)


class _VariableMeta(type):
    def __instancecheck__(cls, x):
        return isinstance(x, Tensor)

    def __call__(cls, data=None, requires_grad=None, volatile=None):
        if data is None:
            return Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            with no_grad():
                return data.detach()
        made = data.detach()
        return made.requires_grad_(bool(requires_grad)) if requires_grad is not None else made


class Variable(metaclass=_VariableMeta):
    """Return a tensor on the same memory, with `requires_grad` as given. Deprecated: tensors need no wrapping."""

    _execution_engine = _Engine()

"""Recording of functions to be drawn: what a backward pass does is recorded on behalf of the line that ran forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fgrad.core import Params, Primitive
from fgrad.program import Traced
from fgrad.source import on_behalf_of, user_line
from fgrad.transforms.jit import JittedFunction, trace_call
from fgrad.transforms.linearize import _PICK, Linearize, LinearTracer, tapes

DERIVATIVE = " (derivative)"
"""What follows the line of an equation that a pull or a push recorded."""


def recorded(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Traced:
    """Return the Program of a function for these arguments, with the trees of arguments and outputs."""
    before = tapes.reverse
    tapes.reverse = _Tape
    try:
        if isinstance(fun, JittedFunction):
            return fun.trace(*args, **kwargs)
        return trace_call("draw", fun, args, kwargs)
    finally:
        tapes.reverse = before


class _Tape(Linearize):
    """A tape whose nodes work on behalf of the line that made them."""

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        out = super().process(prim, args, params)
        first = out[0] if isinstance(out, tuple) and out else out
        if first.__class__ is LinearTracer and first.interpreter is self:
            node = first.node.parents[0] if first.node.plan is _PICK else first.node
            if node.plan is not None and not isinstance(node.plan, _OnBehalf):
                node.plan = _OnBehalf(node.plan, user_line() + DERIVATIVE)  # type: ignore[assignment]
        return out


class _OnBehalf:
    """A plan in one node that works on behalf of a line."""

    __slots__ = ("plan", "line")

    def __init__(self, plan: Any, line: str):
        self.plan = plan
        self.line = line

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plan, name)

    def pull(self, saved: Any, types: Any, params: Any, ct: Any) -> Any:
        """Pull a cotangent back."""
        with on_behalf_of(self.line):
            return self.plan.pull(saved, types, params, ct)

    def push(self, saved: Any, types: Any, params: Any, tangents: Any) -> Any:
        """Push tangents forward."""
        with on_behalf_of(self.line):
            return self.plan.push(saved, types, params, tangents)

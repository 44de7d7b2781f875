"""Transposing linear functions: recording the tape from types alone.

A function that is linear in its traced inputs is recorded without values. `linear_transpose` walks that tape
backwards; a tangent rule run by `splice` adds its nodes to the tape of a `Linearize` that is at work. The pull of a
primitive declared by a tangent rule is derived here (the hook of `fgrad.plans`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad.core import ArrayType, Interpreter, Params, Primitive, Tracer, state, type_of
from fgrad.plans import Plan, Rule, hooks, plan_for, zeros
from fgrad.transforms.linearize import (
    Linearize,
    Node,
    in_order,
    kept_types,
    leaf,
    private,
    pull_back,
)


class TangentTracer(Tracer):
    """A tangent of which only the type is known, and its node."""

    __slots__ = ("kind", "node")

    def __init__(self, interpreter: Transpose, kind: ArrayType, node: Node):
        self.interpreter = interpreter
        self.kind = kind
        self.node = node

    @property
    def type(self) -> ArrayType:
        return self.kind


class Transpose(Interpreter):
    """Record the tape of a linear function from types alone; TypeError if it is not linear."""

    def __init__(self, label: str, parent: Interpreter | None, clock: Callable[[], int], forward: bool = False):
        self.parent = parent
        self.label = label
        self.clock = clock
        self.forward = forward

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        mask = 0
        for i, arg in enumerate(args):
            if arg.__class__ is TangentTracer and arg.interpreter is self:
                mask |= 1 << i
        if not mask:
            return self.pass_on(prim, args, params)
        if prim.definition is not None:
            return prim.definition(*args, **params)
        if prim.make_plan is None:
            rule = prim.rules.get(Transpose)
            if rule is None:
                self.missing_rule(prim)
            return rule(self, args, params)
        plan = plan_for(prim, mask, len(args), self.forward)
        self._check_linear(prim, plan, mask, args)
        kinds = [type_of(arg) for arg in args]
        out = prim.type_rule(*kinds, **params)
        types = kept_types(plan, kinds, out if prim.multiple else (out,))
        parents = tuple([args[i].node for i in plan.active])
        node = Node(plan, [private(args[k]) for k in plan.saves], types, params, parents, self.clock())
        return TangentTracer(self, out, node)

    def _check_linear(self, prim: Primitive, plan: Plan, mask: int, args: Sequence[Any]) -> None:
        """Raise TypeError unless `prim` is linear in the traced inputs, the others being as they are."""
        traced = {i for i in range(len(args)) if mask >> i & 1}
        if set(plan.active) != traced or prim.multiple or any(k < 0 or k in traced for k in plan.saves):
            raise not_linear(self, prim)
        for i in _additive_inputs(prim, traced, len(args)):
            if not is_zero(args[i]):
                raise not_linear(self, prim)


def not_linear(interpreter: Interpreter, prim: Primitive) -> TypeError:
    """Return the error for a function that is not linear in its traced inputs."""
    return TypeError(
        f"{interpreter.label}: the function is not linear in its traced inputs (at primitive '{prim.name}')"
    )


def _additive_inputs(prim: Primitive, traced: set[int], count: int) -> list[int]:
    """Return the untraced inputs that are added to the result, so that it is linear only if they are zero."""
    others = [i for i in range(count) if i not in traced]
    if prim.kind == "elementwise":
        plans = [(i, plan_for(prim, 1 << i, count)) for i in others if prim.declared["d"][i] is not None]
        return [i for i, plan in plans if not any(k < 0 or k in traced for k in plan.saves)]
    if prim.kind == "linear":
        return [i for i in others if prim.inputs[0].startswith("*") or i in prim.declared["wrt"]]
    return []


def is_zero(x: Any) -> bool:
    """Return whether a value is known to be zero."""
    return not isinstance(x, Tracer) and (np.asarray(x).dtype.kind == "V" or not np.any(x))


def transpose_many(fun: Callable[..., Any], kinds: Sequence[ArrayType], cts: Sequence[Any]) -> list[Any]:
    """Return the transpose of a linear function of several arguments, applied to cotangents (None for zero).

    Args:
        fun: linear; returns a value or a tuple or list of them (None for zero).
        kinds: the types of its arguments.
        cts: a cotangent per output.
    """
    before = state.interpreter
    linear = Transpose("a transposed function", before, itertools.count(1).__next__)
    roots = [leaf() for _ in kinds]
    state.interpreter = linear
    try:
        out = fun(*[TangentTracer(linear, kind, root) for kind, root in zip(kinds, roots, strict=True)])
    finally:
        state.interpreter = before
    found: dict[Node, Any] = {}
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for x, ct in zip(outs, cts, strict=True):
        if ct is None or x is None:
            continue
        if x.__class__ is TangentTracer and x.interpreter is linear:
            have = found.get(x.node)
            found[x.node] = ct if have is None else have + ct
        elif not is_zero(x):
            raise TypeError(f"{linear.label} has a non-zero output that does not depend on its arguments")
    pull_back(in_order(found), found)
    return [found[root] if root in found else zeros(kind) for root, kind in zip(roots, kinds, strict=True)]


def transpose_rule(rule: Rule, kind: ArrayType, ct: Any) -> Any:
    """Return the transpose of the linear function `rule`, of one argument of type `kind`, applied to `ct`."""
    return transpose_many(rule, [kind], ct if isinstance(ct, (tuple, list)) else (ct,))[0]


hooks.transpose_rule = transpose_rule


def splice(tape: Linearize, fun: Callable[[Transpose], Any]) -> Any:
    """Run `fun(linear)`, where tangents of `linear` are nodes of `tape`, one level below the tape's own values."""
    linear = Transpose(tape.label, tape.parent, tape.clock, tape.forward)
    before = state.interpreter
    state.interpreter = linear
    try:
        return fun(linear)
    finally:
        state.interpreter = before

"""Functions with a tangent rule of the user's own, transposed for reverse mode."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import ArrayType, Params, state, type_of
from fgrad.ops.custom import custom_jvp_call
from fgrad.program import Trace
from fgrad.transforms.custom import (
    CustomCall,
    CustomFunction,
    RuleTrace,
    Skipping,
    Taking,
    check_closed_over,
    mapped,
    missing_rule,
    recorded,
    within_rule,
)
from fgrad.transforms.jvp import Forward
from fgrad.transforms.linearize import (
    Linearize,
    LinearTracer,
    check_callable,
    float0,
    zero_cotangent,
)
from fgrad.transforms.programs import under
from fgrad.transforms.structured import rule
from fgrad.transforms.transpose import TangentTracer, Transpose, splice
from fgrad.transforms.vmap import Batch, to_front


class custom_jvp(CustomFunction):
    """Give a function a tangent rule of its own, used in forward and, transposed, in reverse mode.

    Args:
        fun: a function of arrays or pytrees.
        nondiff_argnums, nondiff_argnames: arguments that are not differentiated (any Python objects); the rule gets
            them first.

    The rule is given by `defjvp(rule)`, with `rule(primals, tangents) -> (out, tangent_out)`, or by `defjvps(*rules)`,
    one per argument, with `rule(t, ans, *primals) -> tangent` or None for zero.

    Raises:
        AttributeError: the function is differentiated but has no rule.
        TypeError: the rule's tangent differs from the output in tree, shape or dtype, or is not linear.

    Example:
        >>> import numpy as np, fgrad
        >>> @fgrad.custom_jvp
        ... def log1pexp(x):
        ...     return np.log1p(np.exp(x))
        >>> log1pexp.defjvps(lambda t, ans, x: t * (1 - np.exp(-ans)))
        >>> fgrad.grad(log1pexp)(np.array(0.))
        array(0.5)
    """

    _rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule `(*nondiff, primals, tangents) -> (out, tangent_out)`; returns it, so it may decorate."""
        check_callable("defjvp", rule)
        self._rule = rule
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Set a rule `(t, ans, *primals) -> tangent` per argument, None where the derivative is zero."""

        def combined(primals: Any, tangents: Any) -> Any:
            out = self(*primals)
            total = None
            for r, t in zip(rules, tangents, strict=True):
                if r is not None:
                    part = r(t, out, *primals)
                    total = part if total is None else tree.map(lambda a, b: a + b, total, part)
            return out, tree.map(lambda x: np.zeros(np.shape(x), type_of(x).dtype), out) if total is None else total

        self._rule = combined

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = self._positional(args, kwargs)
        if state.interpreter is None:
            return self._fun(*args)
        if self._rule is None:
            raise missing_rule(self.__name__, "JVP", "custom_jvp")  # type: ignore[attr-defined]
        one = CustomCall(self, args)
        outs = custom_jvp_call(*one.leaves, fun=one.flat, rule=functools.partial(_flat_rule, self._rule, one), consts=0)
        return tree.unflatten(one.out_tree, outs)


def _flat_rule(user_rule: Callable[..., Any], one: CustomCall, *both: Any) -> list[Any]:
    """Call a tangent rule on flat primals and tangents; check what it gives."""
    n = len(both) // 2
    primals = tuple(tree.unflatten(one.in_tree, list(both[:n])))
    tangents = tuple(tree.unflatten(one.in_tree, list(both[n:])))
    pair = user_rule(*one.nondiff, primals, tangents)
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(f"the custom_jvp rule of {one.name} must return a pair (out, tangent_out), got {pair!r}")
    outs, one.out_tree = tree.flatten(pair[0])
    ts, t_tree = tree.flatten(pair[1])
    if t_tree != one.out_tree:
        raise TypeError(
            f"the custom_jvp rule of {one.name} must give a tangent with the tree of the output, {one.out_tree}, "
            f"got {t_tree}"
        )
    for k, (x, t) in enumerate(zip(outs, ts, strict=True)):
        want, got = type_of(x), type_of(t)
        dtype = want.dtype if want.dtype.kind in "fcV" else float0
        if got.shape != want.shape or (got.dtype != dtype and not got.weak):
            raise TypeError(
                f"the custom_jvp rule of {one.name} must give a tangent of the type of the output: leaf {k} is {want}, "
                f"its tangent {got}"
            )
    return [*outs, *ts]


@rule(custom_jvp_call, Linearize)
def _jvp_linearize(tape: Linearize, args: Sequence[Any], params: Params) -> Any:
    n = params["consts"]
    check_closed_over([x for x in args[:n] if x.__class__ is LinearTracer and x.interpreter is tape])
    mine = [x.__class__ is LinearTracer and x.interpreter is tape for x in args]
    values = [x.value if m else x for x, m in zip(args, mine, strict=True)]

    def run(linear: Transpose) -> Any:
        tangents = [
            TangentTracer(linear, type_of(v).strong(), x.node) if m else zero_cotangent(type_of(v))
            for x, v, m in zip(args[n:], values[n:], mine[n:], strict=True)
        ]
        return params["rule"](*values, *tangents), linear

    both, linear = splice(tape, run)
    k = len(both) // 2
    return tuple(
        LinearTracer(tape, x, t.node) if t.__class__ is TangentTracer and t.interpreter is linear else x
        for x, t in zip(both[:k], both[k:], strict=True)
    )


@rule(custom_jvp_call, Forward)
def _jvp_forward(forward: Forward, args: Sequence[Any], params: Params) -> Any:
    n = params["consts"]
    pairs = [forward.split(x) for x in args]
    check_closed_over([x for x, (_, t) in zip(args[:n], pairs[:n], strict=True) if t is not None])
    tangents = [zero_cotangent(type_of(v)) if t is None else t for v, t in pairs[n:]]
    both = under(forward.parent, lambda: params["rule"](*[v for v, _ in pairs], *tangents))
    k = len(both) // 2
    return tuple(forward.wrap(x, t) for x, t in zip(both[:k], both[k:], strict=True))


@rule(custom_jvp_call, Batch)
def _jvp_batch(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    pairs = [batch.split(x) for x in args]
    axes = tuple(None if a is None else 0 for _, a in pairs)
    n = params["consts"]
    rule_axes = (*axes, *axes[n:])
    values = [x if a is None else to_front(x, a, batch.size) for x, a in pairs]
    new = {"fun": mapped(batch, params["fun"], axes), "rule": mapped(batch, params["rule"], rule_axes), "consts": n}
    outs = under(batch.parent, lambda: custom_jvp_call(*values, **new))
    return batch.wrap(custom_jvp_call, outs, 0)


@rule(custom_jvp_call, Trace)
def _jvp_trace(recorder: Trace, args: Sequence[Any], params: Params) -> Any:
    n = params["consts"]
    kinds = [recorder.atom(x).type for x in args]
    fun, fun_consts = recorded(recorder, params["fun"], kinds)
    if within_rule(recorder):
        i = len(fun_consts)
        new = {"fun": Taking(fun, range(i + len(args))), "rule": Skipping(params["rule"], i), "consts": i + n}
        return recorder.record(custom_jvp_call, [*fun_consts, *args], new)
    tangent_kinds = [ArrayType(t.shape, t.dtype if t.dtype.kind in "fcV" else float0) for t in kinds[n:]]
    derived, rule_consts = recorded(recorder, params["rule"], [*kinds, *tangent_kinds], RuleTrace)
    i, j = len(fun_consts), len(rule_consts)
    new_fun = Taking(fun, [*range(i), *range(i + j, i + j + len(args))])
    count = i + j + len(args)
    new_rule = Taking(derived, [*range(i, i + j), *range(i + j, count), *range(count, count + len(args) - n)])
    full = [*fun_consts, *rule_consts, *args]
    return recorder.record(custom_jvp_call, full, {"fun": new_fun, "rule": new_rule, "consts": i + j + n})

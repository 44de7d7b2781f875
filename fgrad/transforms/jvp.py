"""Forward mode: values and tangents side by side, pushed by the same plans that linearize uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import Interpreter, Params, Primitive, ValueTracer, on_gpu, recover, type_of
from fgrad.plans import plan_for, recover_rule
from fgrad.source import function_label
from fgrad.transforms.linearize import (
    as_operand,
    check_callable,
    is_inexact,
    kept_types,
    result,
    split_aux,
    tapes,
    zero_cotangent,
)
from fgrad.transforms.pushforward import check_tangent


class JVPTracer(ValueTracer):
    """A value and its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, interpreter: Forward, value: Any, tangent: Any):
        self.interpreter = interpreter
        self.value = value
        self.tangent = tangent


class Forward(Interpreter):
    """Compute values and tangents; a tangent that is None is zero."""

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        mask = 0
        values = []
        tangents = []
        for i, arg in enumerate(args):
            if arg.__class__ is JVPTracer and arg.interpreter is self:
                values.append(arg.value)
                tangents.append(arg.tangent)
                mask |= 1 << i
            else:
                values.append(arg)
        if not mask:
            return self.pass_on(prim, args, params)
        if prim.definition is not None:
            return prim.definition(*args, **params)
        if prim.make_plan is None:
            rule = prim.rules.get(Forward)
            if rule is None:
                self.missing_rule(prim)
            return rule(self, args, params)
        plan = plan_for(prim, mask, len(values), forward=True)
        parent = self.parent
        if parent is not None:
            out = parent.process(prim, values, params)
        else:
            try:
                out = prim.impl(*values, **params)
            except Exception:
                out = recover(prim, values, params)
        if not plan.active:
            return out
        outs = out if prim.multiple else (out,)
        if len(plan.active) != len(tangents):
            traced = [i for i in range(len(args)) if mask >> i & 1]
            tangents = [tangents[traced.index(i)] for i in plan.active]
        saved = [values[k] if k >= 0 else outs[~k] for k in plan.saves]
        types = kept_types(plan, values, outs)
        try:
            t = plan.push(saved, types, params, tangents)  # type: ignore[misc]
        except Exception:
            assert plan.push is not None
            t = recover_rule(plan, plan.push, saved, types, params, tangents)
        if prim.multiple:
            return tuple(self.wrap(o, u) for o, u in zip(outs, t, strict=True))
        return self.wrap(out, t)

    def wrap(self, value: Any, tangent: Any) -> Any:
        """Return a tracer of `value` and `tangent`, or `value` itself if it has no tangent."""
        return value if tangent is None or not is_inexact(value) else JVPTracer(self, value, tangent)

    def split(self, x: Any) -> tuple[Any, Any]:
        """Return value and tangent (None if zero) of anything met by this interpreter."""
        if x.__class__ is JVPTracer and x.interpreter is self:
            return x.value, x.tangent
        return x, None


type(tapes).forward = Forward


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Compute `fun(*primals)` and its directional derivative along `tangents`, in one forward pass.

    Args:
        fun: a function of arrays or pytrees.
        primals: tuple or list of its arguments.
        tangents: tuple or list of the same tree, with arrays of the same shape and dtype (dtype float0 for integers
            and bools).
        has_aux: `fun` returns a pair `(out, aux)`; `aux` is not differentiated.

    Returns:
        `(out, tangent_out)` or `(out, tangent_out, aux)`.

    Raises:
        TypeError: primals or tangents are no sequences, or their trees or types differ.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.jvp(np.sin, (np.array(0.),), (np.array(2.),))
        (array(0.), array(2.))
    """
    check_callable("jvp", fun)
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise TypeError(f"{name} given to jvp must be a tuple or list, got {type(given).__name__}")
    leaves, treedef = tree.flatten(tuple(primals))
    t_leaves, t_tree = tree.flatten(tuple(tangents))
    if treedef != t_tree:
        raise TypeError(f"primals and tangents given to jvp must have the same tree: {treedef} and {t_tree}")
    interpreter = tapes.forward(function_label("jvp", fun))
    inputs = []
    for k, (x, t) in enumerate(zip(leaves, t_leaves, strict=True)):
        x = as_operand(x, f"primal {k}")
        t = check_tangent(t, type_of(x), f"tangent {k}")
        inputs.append(interpreter.wrap(x, t))
    with np.errstate(all="ignore"), interpreter:
        out = fun(*tree.unflatten(treedef, inputs))
    out, aux = split_aux(out, "jvp") if has_aux else (out, None)
    out_leaves, out_tree = tree.flatten(out)
    seen = {id(x) for x in (*leaves, *t_leaves)}
    values, ts = [], []
    for x in out_leaves:
        x = as_operand(x, "the output of the function given to jvp")
        value, t = interpreter.split(x)
        values.append(_own(x, value, seen))
        ts.append(zero_cotangent(type_of(value), (value,) if on_gpu(value) else ()) if t is None else result(t, seen))
    pair = tree.unflatten(out_tree, values), tree.unflatten(out_tree, ts)
    if not has_aux:
        return pair
    return (*pair, tree.map(lambda x: _own(x, interpreter.split(x)[0], seen), aux))


def _own(x: Any, value: Any, seen: set[int]) -> Any:
    """Return the value of an output; what was not computed from the inputs may belong to anybody, and is copied."""
    return x.copy() if value is x and x.__class__ is np.ndarray else plain(value, seen)


def plain(x: Any, seen: set[int]) -> Any:
    """Return a value as a transform's result; objects that are no arrays stay what they are."""
    return result(x, seen) if isinstance(x, (np.ndarray, np.generic)) or x.__class__ in (int, float, complex) else x

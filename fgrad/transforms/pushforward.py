"""A function once, its derivative many times: `linearize`, the tape walked forwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import (
    ArrayType,
    Tracer,
    type_of,
)
from fgrad.source import function_label
from fgrad.transforms.linearize import (
    Node,
    Recorded,
    as_operand,
    check_callable,
    float0,
    in_order,
    push_forward,
    result,
    saved_buffers,
    split_aux,
    zero_cotangent,
)


class LinearFunction:
    """The function `linearize` returns: tangents of the inputs to the tangent of the output."""

    __slots__ = ("_recorded", "_order", "_leaves", "_kinds", "_in_tree", "_out_tree")

    def __init__(self, recorded: Recorded, leaves: Sequence[Any], in_tree: Any, out_tree: Any):
        self._recorded = recorded
        self._leaves = [recorded.node(x) for x in leaves]
        self._kinds = [type_of(x) for x in leaves]
        self._in_tree = in_tree
        self._out_tree = out_tree
        self._order = in_order([node for node in self._leaves if node is not None])

    def __call__(self, *tangents: Any) -> Any:
        leaves, treedef = tree.flatten(tangents)
        if treedef != self._in_tree:
            raise ValueError(f"the tangents must have the tree of the primals, {self._in_tree}, got {treedef}")
        ts: dict[Node, Any] = {}
        for k, (t, kind) in enumerate(zip(leaves, self._recorded.kinds, strict=True)):
            ts[self._recorded.leaves[k]] = check_tangent(t, kind, f"tangent {k}")
        with np.errstate(all="ignore"):
            push_forward(self._order, ts)
        seen = {id(t) for t in ts.values()}
        out = []
        for node, kind in zip(self._leaves, self._kinds, strict=True):
            t = None if node is None else ts.get(node)
            out.append(zero_cotangent(kind) if t is None else result(t, seen))
        return tree.unflatten(self._out_tree, out)


def check_tangent(t: Any, kind: ArrayType, name: str) -> Any:
    """Return tangent `t` of a primal of type `kind` as an array, None for float0.

    Raises TypeError if the dtypes differ, ValueError if the shapes do.
    """
    t = as_operand(t, name)
    given = type_of(t)
    want = kind.dtype if kind.dtype.kind in "fcV" else float0
    if given.shape != kind.shape or (not given.weak and given.dtype != want) or (given.weak and want == float0):
        raise (TypeError if given.shape == kind.shape else ValueError)(
            f"primal and tangent types must match: {name} has type {given}, but its primal has type {kind}"
            + (" and wants a tangent of dtype float0" if want == float0 else "")
        )
    if want == float0:
        return None
    return np.asarray(t, want) if given.weak and not kind.weak and not isinstance(t, Tracer) else t


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute `fun(*primals)` and return it with its derivative there, a linear function of tangents.

    Runs `fun` once; each call of the returned function costs one walk over the tape.

    Args:
        fun: a function of arrays or pytrees.
        *primals: where to linearize; pytrees of arrays.
        has_aux: `fun` returns a pair `(out, aux)`; `aux` is not differentiated.

    Returns:
        `(out, lin_fn)` or `(out, lin_fn, aux)`; `lin_fn(*tangents)` takes tangents with the trees, shapes and dtypes
        of the primals (dtype float0 for integers) and returns the tangent of the output.

    Raises:
        TypeError: `fun` is not callable, or (from `lin_fn`) a tangent does not match its primal.
        ValueError: (from `lin_fn`) the tree of the tangents differs from that of the primals.

    Example:
        >>> import numpy as np, fgrad
        >>> out, lin_fn = fgrad.linearize(np.sin, np.array([0., 1.]))
        >>> lin_fn(np.array([1., 0.]))
        array([1., 0.])
    """
    check_callable("linearize", fun)
    label = function_label("linearize", fun)
    recorded = Recorded(label, fun, primals, {}, range(len(primals)), forward=True)
    out, aux = split_aux(recorded.out, "linearize") if has_aux else (recorded.out, None)
    leaves, out_tree = tree.flatten(out)
    leaves = [as_operand(x, "the output of the function given to linearize") for x in leaves]
    linear_fun = LinearFunction(recorded, leaves, tree.structure(primals), out_tree)
    seen = saved_buffers(linear_fun._order)
    out = tree.unflatten(out_tree, [result(recorded.value(x, seen), seen) for x in leaves])
    if not has_aux:
        return out, linear_fun
    return out, linear_fun, tree.map(lambda x: recorded.value(x, seen), aux)

"""Primitives that no generated kernel computes, but one of the library: products, extremes' places, entries by index.

Each entry takes an equation and returns a function of its arrays, or None where the kernel does not do the case; the
array library then does it. Views are here as well, since they are made of any library's arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad.backend.gpu.expressions import is_float
from fgrad.ops.shape import as_slices
from fgrad.program import Equation


def _packed(x: Any) -> Any:
    """Return an array as it is where it lies packed, else a copy, by a kernel that moves whole lines."""
    if x.flags.c_contiguous:
        return x
    if not x.size or x.dtype.itemsize > 8:
        return x.copy()
    from fgrad.triton_kernels import layout

    return layout.copy_forward(x)


VIEWS: dict[str, Callable[..., Any]] = {
    "reshape": lambda x, *, shape: _packed(x).reshape(shape),
    "transpose": lambda x, *, perm: x.transpose(perm),
    "broadcast": lambda x, *, shape: np.broadcast_to(x, shape),
    "slice": lambda x, *, index: x[as_slices(index)],
    "reverse": lambda x, *, axes: x[tuple([slice(None, None, -1 if a in axes else 1) for a in range(x.ndim)])],
}
"""Primitives that give another view of an array; a reshape only of one that is packed, else a copy."""


def kernel_for(eq: Equation) -> Callable[..., Any] | None:
    """Return a function of the arrays of an equation: a view, or a launch of a library kernel; None if none fits."""
    if eq.prim.name in VIEWS:
        return lambda x: VIEWS[eq.prim.name](x, **eq.params)
    make = _LIBRARY.get(eq.prim.name)
    fits = make is not None and all(a.type.size for a in (*eq.inputs, *eq.outputs))
    return make(eq) if make is not None and fits else None


def _dot_general(eq: Equation) -> Callable[..., Any] | None:
    """A product of matrices: batch axes first, then what is left of either side, the contracted axes as one.

    Further operands are those of what follows it: see `fgrad.backend.gpu.epilogue`.
    """
    x, y = (a.type for a in eq.inputs[:2])
    if x.dtype != y.dtype or not is_float(x.dtype):
        return None
    (xc, yc), (xb, yb) = eq.params["contract"], eq.params["batch"]
    x_free, y_free = (
        tuple([a for a in range(kind.ndim) if a not in (*c, *b)]) for kind, c, b in ((x, xc, xb), (y, yc, yb))
    )
    batch, rows, inner, columns = (
        math.prod([kind.shape[a] for a in axes]) for kind, axes in ((x, xb), (x, x_free), (x, xc), (y, y_free))
    )
    shape = eq.outputs[0].type.shape
    has_bias, epilogue = eq.params.get("bias", False), eq.params.get("epilogue")

    def run(left: Any, right: Any, *others: Any) -> Any:
        from fgrad.backend.gpu.epilogue import function_of, is_demanding
        from fgrad.triton_kernels import matmul
        from fgrad.triton_kernels.runtime import empty

        bias = others[0] if has_bias else None
        beside = [_packed(x).reshape((batch, rows, columns)) for x in others[has_bias:]]
        results = [empty(left, shape, v.type.dtype) for v in eq.outputs]
        outs = [out.reshape((batch, rows, columns)) for out in results]
        matmul.product(
            left.transpose((*xb, *x_free, *xc)).reshape((batch, rows, inner)),
            right.transpose((*yb, *yc, *y_free)).reshape((batch, inner, columns)),
            bias,
            epilogue=None if epilogue is None else function_of(epilogue),
            beside=beside,
            demanding=epilogue is not None and is_demanding(epilogue),
            out=outs[0],
            other=outs[1] if len(outs) > 1 else None,
        )
        return results if eq.prim.multiple else results[0]

    return run


def _place(eq: Equation) -> Callable[..., Any] | None:
    def run(u: Any) -> Any:
        from fgrad.triton_kernels.runtime import zeros

        out = zeros(u, eq.params["shape"], u.dtype)
        out[as_slices(eq.params["index"])] = u
        return out

    return run


def _place_of_extreme(eq: Equation) -> Callable[..., Any] | None:
    if not is_float(eq.inputs[0].type.dtype):
        return None

    def run(x: Any) -> Any:
        from fgrad.triton_kernels import reduction

        return getattr(reduction, eq.prim.name)(x, axis=eq.params["axis"])

    return run


def _cumsum(eq: Equation) -> Callable[..., Any] | None:
    if not is_float(eq.inputs[0].type.dtype):
        return None

    def run(x: Any) -> Any:
        from fgrad.triton_kernels import reduction

        return reduction.cumsum_forward(x, axis=eq.params["axis"], reverse=eq.params["reverse"])

    return run


def _gather(eq: Equation) -> Callable[..., Any] | None:
    if not _of_entries(eq):
        return None
    first, _ = _entries_first(eq.inputs[0].type.ndim, eq.params["axes"][0])

    def run(x: Any, i: Any) -> Any:
        from fgrad.triton_kernels import embedding

        x = x.transpose(first)
        return embedding.gather_forward(x, _counted(i[0], len(x)), axis=0)

    return run


def _scatter_add(eq: Equation) -> Callable[..., Any] | None:
    x, _, updates = (a.type for a in eq.inputs)
    if not _of_entries(eq) or x.dtype != updates.dtype:
        return None
    first, back = _entries_first(x.ndim, eq.params["axes"][0])

    def run(x: Any, i: Any, updates: Any) -> Any:
        from fgrad.triton_kernels import embedding

        x = x.transpose(first)
        return embedding.scatter_add_forward(x, _counted(i[0], len(x)), updates, axis=0).transpose(back)

    return run


def _of_entries(eq: Equation) -> bool:
    """Return whether an equation takes, or adds to, entries of floating-point numbers along one axis."""
    x, i = eq.inputs[0].type, eq.inputs[1].type
    return len(eq.params["axes"]) == 1 and is_float(x.dtype) and i.dtype.kind in "iu"


def _entries_first(ndim: int, axis: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the order of axes that has `axis` first, and the order that undoes it."""
    others = [a for a in range(ndim) if a != axis]
    order = (axis, *others)
    return order, tuple([order.index(a) for a in range(ndim)])


def _counted(i: Any, entries: int) -> Any:
    """Return indices that count from the start; negative ones count from the end."""
    return i + entries * (i < 0)


_LIBRARY: dict[str, Callable[[Equation], Callable[..., Any] | None]] = {
    "dot_general": _dot_general,
    "fused_product": _dot_general,
    "place": _place,
    "argmax": _place_of_extreme,
    "argmin": _place_of_extreme,
    "cumsum": _cumsum,
    "gather": _gather,
    "scatter_add": _scatter_add,
}

"""Primitives on stacks of matrices whose values SciPy computes: square roots, Sylvester's equation; and pivots."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from fgrad.core import ArrayType
from fgrad.kinds import constant, differential
from fgrad.ops.linalg import matrices, mm, square_type, stay, swap
from fgrad.scipy.installed import scipys


def _each(function: Any, out: Any, *stacks: Any) -> Any:
    """Return an array like `out` filled with the function's result for each example of some stacks."""
    out = np.empty(out.shape, out.dtype)
    for i in np.ndindex(out.shape[:-2]):
        out[i] = function(*[x[i] for x in stacks])
    return out


# ---------------------------------------------------------------------------------------- Sylvester's equation


def _sylvester_solve(x, left, right):
    solve = scipys("linalg", "solve_sylvester").solve_sylvester
    return _each(lambda q, a, b: solve(a, b, q), x, x, left, right)


def _sylvester_solve_type(x, left, right):
    matrices("solve_sylvester", x, left, right)
    if left.shape[-2:] != x.shape[-2:-1] * 2 or right.shape[-2:] != x.shape[-1:] * 2:
        raise ValueError(f"solve_sylvester: {left} and {right} do not fit {x}")
    return ArrayType(x.shape, x.dtype)


def _transposed(ct, left, right):
    return sylvester_solve(ct, swap(left), swap(right))


sylvester_solve = differential(
    "sylvester_solve",
    _sylvester_solve,
    type=_sylvester_solve_type,
    jvp=(
        lambda t, left, right: sylvester_solve(t, left, right),
        lambda t, left, right, out: -sylvester_solve(mm(t, out), left, right),
        lambda t, left, right, out: -sylvester_solve(mm(out, t), left, right),
    ),
    pull=(
        _transposed,
        lambda ct, left, right, out: -mm(_transposed(ct, left, right), swap(out)),
        lambda ct, left, right, out: -mm(swap(out), _transposed(ct, left, right)),
    ),
    shift=stay,
    doc="The solution z of left z + z right = x.",
)

# ---------------------------------------------------------------------------------------------- square roots


def _sqrtm(x):
    root = scipys("linalg", "sqrtm").sqrtm

    def of_one(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a singular matrix, whose root is right all the same
            out = root(x)
        if np.iscomplexobj(out) and not np.iscomplexobj(x):
            if np.abs(out.imag).max() > 1e-8 * np.abs(out).max():
                raise LinAlgError("sqrtm: a real matrix has no real square root; pass it as complex")
            out = out.real
        return out

    return _each(of_one, x, x)


sqrtm = differential(
    "sqrtm",
    _sqrtm,
    type=square_type("sqrtm"),
    jvp=lambda t, out: sylvester_solve(t, out, out),
    pull=lambda ct, out: sylvester_solve(ct, swap(out), swap(out)),
    shift=stay,
    doc="The principal square roots of matrices.",
)

# --------------------------------------------------------------------------------------------------- pivots


def _rows(exchange: Any, x: Any, count: int) -> Any:
    """Apply a function of vectors of ints to each example."""
    out = np.empty((*x.shape[:-1], count), np.intp)
    for i in np.ndindex(x.shape[:-1]):
        out[i] = exchange(x[i])
    return out


def _pivots(x, *, count):
    def of_one(order):
        present, out = list(range(len(order))), []
        for i in range(count):
            k = present.index(order[i])
            present[i], present[k] = present[k], present[i]
            out.append(k)
        return out

    return _rows(of_one, x, count)


def _order(x, *, count):
    def of_one(pivots):
        order = list(range(count))
        for i, k in enumerate(pivots):
            order[i], order[k] = order[k], order[i]
        return order

    return _rows(of_one, x, count)


def _resized(x, *, count):
    return ArrayType((*x.shape[:-1], count), np.intp)


pivots = constant(
    "pivots",
    _pivots,
    type=_resized,
    shift=stay,
    doc="LAPACK's exchanges of row i with row z[i], from an order of rows.",
)
pivoted_order = constant(
    "pivoted_order", _order, type=_resized, shift=stay, doc="The order of rows that LAPACK's exchanges come to."
)

"""`fgrad.numpy.linalg`: norms and products here, factorisations and solvers from the modules beside this one."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.linalg import LinAlgError

from fgrad.numpy import linear
from fgrad.numpy.arguments import as_array, counterpart, inexact, keep_axes, many_axes, one_axis
from fgrad.numpy.linalg_factors import cholesky, eig, eigh, eigvals, eigvalsh, matrices, qr, svd, svdvals
from fgrad.numpy.linalg_solvers import det, inv, lstsq, matrix_rank, pinv, slogdet, solve, tensorinv, tensorsolve
from fgrad.numpy.linear import multi_dot
from fgrad.numpy.reductions import safe_sqrt
from fgrad.numpy.shaping import diagonal as _diagonal
from fgrad.numpy.shaping import matrix_transpose as _matrix_transpose
from fgrad.ops import complex as cx
from fgrad.ops import elementwise as e
from fgrad.ops import reduce as r
from fgrad.ops import shape as s
from fgrad.ops import spectral as sp

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]

# -------------------------------------------------------------------------------------------------------- norms


def _sizes(x: Any) -> Any:
    """Return the absolute values of an array, in floats."""
    x = inexact(x)
    return cx.complex_abs(x) if x.dtype.kind == "c" else e.abs(x)


def _squares(x: Any) -> Any:
    x = inexact(x)
    return e.square(x.real) + e.square(x.imag) if x.dtype.kind == "c" else e.square(x)


def _vector(x: Any, axes: tuple[int, ...], ord: Any) -> Any:
    """Return the norm of vectors that lie in `axes`."""
    if ord is None or ord == 2:
        return safe_sqrt(r.reduce_sum(_squares(x), axes=axes))
    if ord == np.inf:
        return r.reduce_max(_sizes(x), axes=axes)
    if ord == -np.inf:
        return r.reduce_min(_sizes(x), axes=axes)
    if ord == 0:
        return r.reduce_sum(e.ne(x, 0).astype(inexact(x).real.dtype), axes=axes)
    if ord == 1:
        return r.reduce_sum(_sizes(x), axes=axes)
    if not isinstance(ord, (int, float, np.number)):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    total = r.reduce_sum(e.pow(_sizes(x), float(ord)), axes=axes)
    nothing = e.eq(total, 0)
    return e.select(nothing, 0 if ord > 0 else total, e.pow(e.select(nothing, 1, total), 1 / ord))


def _matrix(x: Any, axes: tuple[int, int], ord: Any) -> Any:
    """Return the norm of matrices whose rows and columns lie in `axes`."""
    rows, columns = axes
    if rows == columns:
        raise ValueError("Duplicate axes given.")
    if ord is None or ord in ("fro", "f"):
        return safe_sqrt(r.reduce_sum(_squares(x), axes=tuple(sorted(axes))))
    if ord in (2, -2, "nuc"):
        values = sp.svdvals(s.transpose(inexact(x), perm=(*[a for a in range(x.ndim) if a not in axes], rows, columns)))
        over = {2: r.reduce_max, -2: r.reduce_min, "nuc": r.reduce_sum}[ord]
        return over(values, axes=(values.ndim - 1,))
    if ord in (1, -1):
        rows, columns = columns, rows
    elif ord not in (np.inf, -np.inf):
        raise ValueError(f"Invalid norm order for matrices: {ord!r}")
    sums = r.reduce_sum(_sizes(x), axes=(columns,))
    extreme = r.reduce_max if ord > 0 else r.reduce_min
    return extreme(sums, axes=(rows - (columns < rows),))


@counterpart(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    """Compute the norm of a vector or matrix. Where the 2-norm is 0 its derivative is 0.

    Args:
        x: array.
        ord: for vectors a number, inf or -inf; for matrices "fro", "nuc" (the sum of singular values), 2, -2 (the
            greatest and least of them), 1, -1, inf, -inf; None for the 2-norm of all elements.
        axis: the axis of vectors or the two axes of matrices; None for the whole array, of one or two axes if an order
            is given.
        keepdims: keep those axes at size 1.

    Raises:
        ValueError: the order does not exist, or the array has the wrong number of axes.

    Example:
        >>> import fgrad.numpy as fnp
        >>> float(fnp.linalg.norm([3.0, 4.0]))
        5.0
    """
    x = as_array(x)
    if axis is None:
        axes = tuple(range(x.ndim))
        if ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1):
            out = safe_sqrt(r.reduce_sum(_squares(x), axes=axes))
            return keep_axes(out, x.shape, axes) if keepdims else out
    else:
        axes = axis if isinstance(axis, (tuple, list)) else (operator.index(axis),)
        axes = normalize_axis_tuple(axes, x.ndim)
    if len(axes) not in (1, 2):
        raise ValueError("Improper number of dimensions to norm.")
    out = _vector(x, axes, ord) if len(axes) == 1 else _matrix(x, axes, ord)
    return keep_axes(out, x.shape, axes) if keepdims else out


@counterpart(np.linalg.vector_norm)
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Compute the norm of vectors along an axis or several, or of all elements."""
    x = as_array(x)
    axes = many_axes(axis, x.ndim)
    out = _vector(x, axes, ord)
    return keep_axes(out, x.shape, axes) if keepdims else out


@counterpart(np.linalg.matrix_norm)
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Compute the norm of matrices in the last two axes; see `norm`."""
    x = as_array(x)
    axes = (x.ndim - 2, x.ndim - 1)
    out = _matrix(x, axes, ord)
    return keep_axes(out, x.shape, axes) if keepdims else out


@counterpart(np.linalg.cond)
def cond(x, p=None):
    """Compute condition numbers: the norm of matrices, of order p, times that of their inverses.

    Args:
        x: array (..., m, n); square but for the orders None, 2 and -2.
        p: an order of `norm`; None, for 2, divides the greatest singular value by the least, and -2 the other way.

    Raises:
        numpy.linalg.LinAlgError: a matrix is empty; or under a transform singular, if its inverse is needed.
    """
    x = matrices(x)
    if not x.shape[-1] * x.shape[-2]:
        raise LinAlgError("cond is not defined on empty arrays")
    axes = (x.ndim - 2, x.ndim - 1)
    if p is None or p in (2, -2):
        greatest, least = _matrix(x, axes, 2), _matrix(x, axes, -2)
        return least / greatest if p == -2 else greatest / least
    return _matrix(x, axes, p) * _matrix(inv(x), axes, p)


# ------------------------------------------------------------------------------------------------------ products


@counterpart(np.linalg.matrix_power)
def matrix_power(a, n):
    """Raise a square matrix, or a stack of them, to an integer power by repeated squaring, of the inverse if n < 0."""
    x = as_array(a)
    n = operator.index(n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        return s.broadcast(np.eye(x.shape[-1], dtype=x.dtype), shape=x.shape)
    out = None
    while n:
        if n & 1:
            out = x if out is None else linear.matmul(out, x)
        n >>= 1
        x = linear.matmul(x, x) if n else x
    return out


@counterpart(np.linalg.diagonal)
def diagonal(x, /, *, offset=0):
    """Return diagonals of the last two axes."""
    return _diagonal(x, offset, -2, -1)


@counterpart(np.linalg.trace)
def trace(x, /, *, offset=0, dtype=None):
    """Sum diagonals of the last two axes."""
    return linear.trace(x, offset, -2, -1, dtype)


@counterpart(np.linalg.outer)
def outer(x1, x2, /):
    """Multiply every element of one vector by every one of another; ValueError if they are no vectors."""
    x, y = as_array(x1), as_array(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={x.ndim} and x2.ndim={y.ndim}.")
    return linear.outer(x, y)


@counterpart(np.linalg.cross)
def cross(x1, x2, /, *, axis=-1):
    """Compute the cross product of vectors of 3 components along an axis; ValueError if they have another number."""
    x, y = as_array(x1), as_array(x2)
    if x.shape[one_axis(axis, x.ndim)] != 3 or y.shape[one_axis(axis, y.ndim)] != 3:
        raise ValueError(
            f"Both input arrays must be (arrays of) 3-dimensional vectors, but they are {x.shape} and {y.shape}"
        )
    return linear.cross(x, y, axis=axis)


@counterpart(np.linalg.matmul)
def matmul(x1, x2, /):
    """Multiply matrices; see `fgrad.numpy.matmul`."""
    return linear.matmul(x1, x2)


@counterpart(np.linalg.tensordot)
def tensordot(x1, x2, /, *, axes=2):
    """Multiply arrays over several axes; see `fgrad.numpy.tensordot`."""
    return linear.tensordot(x1, x2, axes)


@counterpart(np.linalg.vecdot)
def vecdot(x1, x2, /, *, axis=-1):
    """Multiply vectors along an axis and sum, the first conjugated; see `fgrad.numpy.vecdot`."""
    return linear.vecdot(x1, x2, axis=axis)


@counterpart(np.linalg.matrix_transpose)
def matrix_transpose(x, /):
    """Swap the last two axes."""
    return _matrix_transpose(x)

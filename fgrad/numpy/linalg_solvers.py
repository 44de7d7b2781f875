"""Solving, inverses and determinants of `fgrad.numpy.linalg`, and what singular values say of a matrix."""

from __future__ import annotations

import math
import operator

import numpy as np
from numpy.linalg import LinAlgError

from fgrad.numpy import linear
from fgrad.numpy.arguments import as_array, cast, counterpart, inexact, moved, one_axis, promoted
from fgrad.numpy.linalg_factors import matrices
from fgrad.ops import elementwise as e
from fgrad.ops import linalg as m
from fgrad.ops import reduce as r
from fgrad.ops import shape as s
from fgrad.ops import spectral as sp

__all__ = "det inv lstsq matrix_rank pinv slogdet solve tensorinv tensorsolve".split()

SlogdetResult = type(np.linalg.slogdet(np.eye(1)))


@counterpart(np.linalg.solve)
def solve(a, b):
    """Solve a x = b for x. The derivative is found by solving, too.

    Args:
        a: array (..., n, n).
        b: vector (n,), or matrices (..., n, k); leading axes broadcast.

    Returns:
        x, of the shape of `b` with leading axes broadcast.

    Raises:
        numpy.linalg.LinAlgError: a matrix is singular, or not square.
        ValueError: shapes do not fit.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [1.0, 1.0])
        array([0.5 , 0.25])
    """
    x, y = promoted(matrices(a, square=True), inexact(as_array(b)))
    vector = y.ndim == 1
    if vector:
        y = m.column(y)
    if y.ndim < 2 or x.shape[-1] != y.shape[-2]:
        raise ValueError(f"solve: a of shape {x.shape} and b of shape {np.shape(b)} do not fit (n,n),(n,k)->(n,k)")
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (z if z.shape[:-2] == lead else s.broadcast(z, shape=lead + z.shape[-2:]) for z in (x, y))
    out = m.solve(x, y)
    return s.reshape(out, shape=out.shape[:-1]) if vector else out


@counterpart(np.linalg.inv)
def inv(a):
    """Invert square matrices; LinAlgError if one is singular. To solve equations, `solve` is better."""
    return m.inv(matrices(a, square=True))


@counterpart(np.linalg.det)
def det(a):
    """Compute determinants; first and second derivatives are right also where they are 0.

    Args:
        a: array (..., n, n).

    Returns:
        array (...).

    Raises:
        numpy.linalg.LinAlgError: a matrix is not square.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.grad(np.linalg.det)(np.array([[1.0, 2.0], [2.0, 4.0]]))
        array([[ 4., -2.],
               [-2.,  1.]])
    """
    return m.det(matrices(a, square=True))


@counterpart(np.linalg.slogdet)
def slogdet(a):
    """Compute sign and logarithm of the modulus of determinants; LinAlgError for the derivative where they are 0."""
    return SlogdetResult(*m.slogdet(matrices(a, square=True)))


# ----------------------------------------------------------------------------------------- singular matrices, too


def _number(name, value):
    try:
        return operator.index(value) if isinstance(value, int) else float(value)
    except TypeError:
        raise TypeError(f"{name} must be one known number under a transform, got {value!r}") from None


def _precision(x):
    return max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)


_NOT_GIVEN = object()


@counterpart(np.linalg.pinv)
def pinv(a, rcond=None, hermitian=False, *, rtol=_NOT_GIVEN):
    """Compute pseudo-inverses (Moore and Penrose). The derivative supposes that the rank stays what it is.

    Args:
        a: array (..., m, n).
        rcond: singular values up to so much times the greatest count as zero; 1e-15 if None.
        hermitian: take the Hermitian part of `a`.
        rtol: the same as `rcond`, but None for max(m, n) times the dtype's precision.

    Returns:
        array (..., n, m).

    Raises:
        ValueError: both `rcond` and `rtol` are given.
    """
    x = matrices(a, square=hermitian)
    if rcond is not None and rtol is not _NOT_GIVEN:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rtol is None:
        rcond = _precision(x)
    elif rtol is not _NOT_GIVEN:
        rcond = rtol
    if hermitian:
        x = m.hermitian(x)
    return m.pinv(x, rtol=1e-15 if rcond is None else _number("rcond", rcond))


@counterpart(np.linalg.lstsq)
def lstsq(a, b, rcond=None):
    """Find the x of least norm that minimises |a x - b|; its derivative supposes that the rank stays what it is.

    Args:
        a: array (m, n).
        b: array (m,) or (m, k).
        rcond: singular values up to so much times the greatest count as zero; max(m, n) times the dtype's precision
            if None, that precision itself if -1.

    Returns:
        x (n,) or (n, k); the squares of |a x - b|, (1,) or (k,), which here have a value whatever the rank if m > n,
        and are an empty array otherwise; the rank of `a`; its singular values.

    Raises:
        numpy.linalg.LinAlgError: `a` is no matrix, or `b` neither vector nor matrix, or they do not fit.
    """
    x, y = promoted(inexact(as_array(a)), inexact(as_array(b)))
    if x.ndim != 2 or y.ndim not in (1, 2):
        raise LinAlgError(f"lstsq takes a matrix and a vector or matrix, got shapes {x.shape} and {y.shape}")
    if x.shape[0] != y.shape[0]:
        raise LinAlgError("Incompatible dimensions")
    least = _precision(x) if rcond is None else _number("rcond", rcond)
    least = float(np.finfo(x.dtype).eps) if least == -1 else least
    found = linear.matmul(m.pinv(x, rtol=least), y)
    gaps = y - linear.matmul(x, found)
    squares = e.square(gaps.real) + e.square(gaps.imag) if gaps.dtype.kind == "c" else e.square(gaps)
    squares = r.reduce_sum(squares, axes=(0,))
    if y.ndim == 1:
        squares = s.reshape(squares, shape=(1,))
    if x.shape[0] <= x.shape[1]:
        squares = squares[:0]
    values = sp.svdvals(x)
    rank = r.reduce_sum(cast(e.gt(values, least * values[:1]), np.int32), axes=(0,))
    return found, squares, rank, values


@counterpart(np.linalg.matrix_rank)
def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    """Count the singular values greater than `tol`, or than `rtol` times the greatest.

    If neither is given, `rtol` is max(m, n) times the dtype's precision; ValueError if both are. A vector has rank 1
    unless it is 0.
    """
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    x = inexact(as_array(A))
    if x.ndim < 2:
        return cast(r.reduce_any(e.ne(x, 0), axes=tuple(range(x.ndim))), np.int64)
    values = e.abs(sp.eigvalsh(x)) if hermitian else sp.svdvals(x)
    if tol is None:
        top = r.reduce_max(values, axes=(values.ndim - 1,))
        tol = top * (_precision(x) if rtol is None else as_array(rtol))
    else:
        tol = as_array(tol)
    counted = e.gt(values, s.reshape(tol, shape=(*tol.shape, 1)))
    return r.reduce_sum(cast(counted, np.int64), axes=(values.ndim - 1,))


# --------------------------------------------------------------------------------------------------------- tensors


@counterpart(np.linalg.tensorinv)
def tensorinv(a, ind=2):
    """Invert an array seen as a matrix from its last axes to its first `ind`; LinAlgError if that is not square."""
    x = inexact(as_array(a))
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    n = math.prod(x.shape[ind:])
    square = matrices(s.reshape(x, shape=(math.prod(x.shape[:ind]), n)), square=True)
    return s.reshape(m.inv(square), shape=x.shape[ind:] + x.shape[:ind])


@counterpart(np.linalg.tensorsolve)
def tensorsolve(a, b, axes=None):
    """Solve tensordot(a, x, x.ndim) = b for x.

    Args:
        a: array of shape b.shape + x.shape, where both parts have as many elements.
        b: array.
        axes: axes of `a` to move to its end first.

    Raises:
        numpy.linalg.LinAlgError: the equations are not as many as the unknowns, or singular.
    """
    x, y = as_array(a), as_array(b)
    for axis in axes or ():
        x = moved(x, one_axis(axis, x.ndim, "axes"), x.ndim - 1)
    shape = x.shape[y.ndim :]
    n = math.prod(shape)
    if x.size != n * n:
        raise LinAlgError("Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    return s.reshape(solve(s.reshape(x, shape=(n, n)), s.reshape(y, shape=(y.size,))), shape=shape)

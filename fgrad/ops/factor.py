"""Triangular and orthogonal factors of matrices, which lie in the last two axes: cholesky, lu, qr."""

from __future__ import annotations

import math

import numpy as np

from fgrad.core import ArrayType
from fgrad.kinds import differential
from fgrad.ops.along import take_along
from fgrad.ops.complex import imag
from fgrad.ops.elementwise import select
from fgrad.ops.linalg import (
    adjoint,
    column,
    conjugate,
    hermitian,
    lower,
    matrices,
    mm,
    refuse_singular,
    square_type,
    stay,
    swap,
    triangular_solve,
    upper,
)
from fgrad.ops.shape import broadcast, concatenate

# -------------------------------------------------------------------------------------------- cholesky and lu


def _lower_half(x):
    """Return the lower triangle with the diagonal halved: L of L + Lᴴ = x, for a Hermitian x."""
    return (lower(x) + lower(x, -1)) * 0.5


def divided(x, y, *, lower):
    """Return x y⁻¹ for triangular y."""
    return swap(triangular_solve(swap(y), swap(x), lower=not lower, unit=False))


def _cholesky_tangent(t, out):
    """Murray, "Differentiation of the Cholesky decomposition", arXiv:1602.07527, section 4.1."""
    inner = triangular_solve(out, hermitian(t), lower=True, unit=False)
    return mm(out, _lower_half(divided(inner, adjoint(out), lower=False)))


def _cholesky_pull(ct, out):
    inner = triangular_solve(swap(out), _lower_half(mm(swap(out), ct)), lower=False, unit=False)
    return hermitian(divided(inner, conjugate(out), lower=True))


cholesky = differential(
    "cholesky",
    lambda x: np.linalg.cholesky(hermitian(x)),
    type=square_type("cholesky"),
    jvp=_cholesky_tangent,
    pull=_cholesky_pull,
    shift=stay,
    gpu="linalg.cholesky",
    doc="Lower triangular L with L Lᴴ = (x + xᴴ) / 2, which must be positive definite.",
)


def _lu(x):
    """Return L and U in one array, and the order of rows, by elimination column after column in all matrices at once.

    A block of columns is eliminated by halves, so that most of the work is in products of matrices (Toledo, SIAM
    Journal on Matrix Analysis and Applications 18, 1997).
    """
    *lead, m, n = x.shape
    packed = np.array(x).reshape((math.prod(lead), m, n))
    order = np.tile(np.arange(m), (len(packed), 1))
    _eliminate(packed, order, 0, min(m, n), n)
    return packed.reshape(x.shape), order.reshape((*lead, m))


def _eliminate(x, order, start, stop, n):
    """Eliminate columns from `start` to `stop` in place, and bring those up to `n` to the same state."""
    if stop - start > 1:
        middle = (start + stop) // 2
        _eliminate(x, order, start, middle, stop)
        _eliminate(x, order, middle, stop, stop)
    elif stop > start:
        _pivot(x, order, start)
    done, rest = slice(start, stop), slice(stop, n)
    if n > stop > start:
        x[:, done, rest] = triangular_solve.impl(x[:, done, done], x[:, done, rest], lower=True, unit=True)
        x[:, stop:, rest] -= np.matmul(x[:, stop:, done], x[:, done, rest])


def _pivot(x, order, k):
    """Bring the greatest entry of column k to the diagonal, whole rows at a time, and divide those below by it."""
    stack = np.arange(len(x))
    found = k + np.argmax(np.abs(x[:, k:, k]), 1)
    for a in (x, order):
        a[stack, k], a[stack, found] = a[stack, found], a[stack, k].copy()
    pivot = x[:, k, k, None]
    np.divide(x[:, k + 1 :, k], pivot, out=x[:, k + 1 :, k], where=pivot != 0)


def _lu_type(x):
    matrices("lu", x)
    return ArrayType(x.shape, x.dtype), ArrayType(x.shape[:-1], np.intp)


def _lu_tangent(t, packed, order):
    m, n = packed.shape[-2:]
    k = min(m, n)
    t = take_along(t, broadcast(column(order), shape=packed.shape), axis=t.ndim - 2)
    square = packed[..., :k, :k]
    u = upper(square)
    low = lower(square, -1) + np.eye(k, dtype=packed.dtype)
    inner = divided(triangular_solve(low, t[..., :k, :k], lower=True, unit=True), u, lower=False)
    dl, du = mm(low, lower(inner, -1)), mm(upper(inner), u)
    out = dl + du
    if m > k:
        below = divided(t[..., k:, :] - mm(packed[..., k:, :], du), u, lower=False)
        out = concatenate(out, below, axis=packed.ndim - 2)
    if n > k:
        beside = triangular_solve(low, t[..., :, k:] - mm(dl, packed[..., :, k:]), lower=True, unit=True)
        out = concatenate(out, beside, axis=packed.ndim - 1)
    return out, None


lu = differential(
    "lu",
    _lu,
    type=_lu_type,
    outputs=("packed", "order"),
    jvp=_lu_tangent,
    shift=stay,
    gpu="linalg.lu",
    doc="L (below the diagonal, which is 1) and U with L U = x[order], rows in the order of partial pivoting.",
)

# ------------------------------------------------------------------------------------------------------------ qr


def completed(q, t, rest):
    """Return the change t of orthonormal columns q, with that of further columns `rest` beside it.

    Those stay orthogonal to q, and do not turn among themselves.
    """
    if not rest.shape[-1]:
        return t
    return concatenate(t, -mm(q, mm(adjoint(t), rest)), axis=t.ndim - 1)


def _qr_type(x, *, complete):
    matrices("qr", x)
    *lead, m, n = x.shape
    if m < n:
        raise ValueError(f"the primitive qr takes matrices with at least as many rows as columns, got {x}")
    k = m if complete else n
    return ArrayType((*lead, m, k), x.dtype), ArrayType((*lead, k, n), x.dtype)


def _qr_tangent(t, q, r):
    """Walter, Lehmann and Lamour, Optimization Methods and Software 27 (2012), section 3."""
    n, k = r.shape[-1], q.shape[-1]
    columns, r = q[..., :n], r[..., :n, :]
    r = refuse_singular(r, why="qr has no derivative where the columns of a matrix are linearly dependent")
    outer = divided(t, r, lower=False)
    inner = mm(adjoint(columns), outer)
    below = lower(inner, -1)
    turn = below - adjoint(below)
    if q.dtype.kind == "c":  # the diagonal of r stays real
        turn = turn + select(np.eye(n, dtype=bool), imag(inner) * 1j, 0)
    dq, dr = outer + mm(columns, turn - inner), mm(inner - turn, r)
    if k > n:
        dr = concatenate(dr, np.zeros((*r.shape[:-2], k - n, n), r.dtype), axis=q.ndim - 2)
    return completed(columns, dq, q[..., n:]), dr


qr = differential(
    "qr",
    lambda x, *, complete: tuple(np.linalg.qr(x, "complete" if complete else "reduced")),
    type=_qr_type,
    outputs=("q", "r"),
    jvp=_qr_tangent,
    shift=stay,
    gpu="linalg.qr",
    doc="q with orthonormal columns and upper triangular r with q r = x, of full rank and no more columns than rows; "
    "q is square if `complete`.",
)

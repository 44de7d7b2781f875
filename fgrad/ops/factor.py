"""Factorisations of matrices: cholesky, lu, qr, eigh, eig, svd.

Matrices lie in the last two axes. Where eigenvalues or singular values are repeated, the vectors in their space may be
turned at will; such turns count as no change at all. So derivatives are right of what does not depend on the choice:
sums over repeated values, the space they span, vectors of the other values.
"""

from __future__ import annotations

import math

import numpy as np

from fgrad.core import ArrayType
from fgrad.kinds import composite, differential
from fgrad.ops.along import take_along
from fgrad.ops.complex import complex_abs, conj, imag, real
from fgrad.ops.elementwise import abs, le, select
from fgrad.ops.linalg import (
    adjoint,
    column,
    conjugate,
    diagonal,
    hermitian,
    lower,
    matrices,
    mm,
    real_dtype,
    row,
    solve,
    square,
    square_type,
    stay,
    swap,
    triangular_solve,
    upper,
)
from fgrad.ops.reduce import argmax, reduce_max
from fgrad.ops.shape import broadcast, cast, concatenate, stop_gradient

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


def _qr_type(x):
    matrices("qr", x)
    m, n = x.shape[-2:]
    if m < n:
        raise ValueError(f"the primitive qr takes matrices with at least as many rows as columns, got {x}")
    return ArrayType(x.shape, x.dtype), ArrayType((*x.shape[:-2], n, n), x.dtype)


def _qr_tangent(t, q, r):
    """Walter, Lehmann and Lamour, Optimization Methods and Software 27 (2012), section 3."""
    outer = divided(t, r, lower=False)
    inner = mm(adjoint(q), outer)
    below = lower(inner, -1)
    turn = below - adjoint(below)
    if q.dtype.kind == "c":  # the diagonal of r stays real
        turn = turn + select(np.eye(r.shape[-1], dtype=bool), imag(inner) * 1j, 0)
    return outer + mm(q, turn - inner), mm(inner - turn, r)


qr = differential(
    "qr",
    lambda x: tuple(np.linalg.qr(x)),
    type=_qr_type,
    outputs=("q", "r"),
    jvp=_qr_tangent,
    shift=stay,
    gpu="linalg.qr",
    doc="q with orthonormal columns and upper triangular r with q r = x, of full rank and no more columns than rows.",
)

# --------------------------------------------------------------------------------------- eigenvalues and -vectors


def _reciprocal(gaps, scale):
    """Return 1 / gaps, and 0 where a gap is no greater than rounding makes it (`scale`)."""
    size = complex_abs(gaps) if gaps.dtype.kind == "c" else abs(gaps)
    none = le(size, scale)
    return select(none, 0, 1 / select(none, 1, gaps))


def _rounding(w, n):
    """Return, to be compared with differences of each row of numbers, how far rounding moves equal ones apart."""
    size = complex_abs(w) if w.dtype.kind == "c" else abs(w)
    size = stop_gradient(size)
    top = reduce_max(size, axes=(size.ndim - 1,)) if w.shape[-1] else size.sum(axis=-1)
    return (top * (8 * n * float(np.finfo(w.dtype).eps))).reshape((*top.shape, 1, 1))


def _quotients(w):
    """Return 1 / (w[j] - w[i]) for each pair of eigenvalues, 0 if they are equal."""
    return _reciprocal(row(w) - column(w), _rounding(w, w.shape[-1]))


def _eigh_type(x):
    square("eigh", x)
    return ArrayType(x.shape[:-1], real_dtype(x.dtype)), ArrayType(x.shape, x.dtype)


def _eigh_tangent(t, w, v):
    """Giles, "Collected matrix derivative results", 2008, section 3.1."""
    inner = mm(adjoint(v), mm(hermitian(t), v))
    return real(diagonal(inner)), mm(v, _quotients(w) * inner)


def _eigh_pull(ct, w, v):
    inner = _quotients(w) * mm(swap(v), ct[1]) + select(np.eye(w.shape[-1], dtype=bool), row(ct[0]), 0)
    return hermitian(mm(conjugate(v), mm(inner, swap(v))))


eigh = differential(
    "eigh",
    lambda x: tuple(np.linalg.eigh(hermitian(x))),
    type=_eigh_type,
    outputs=("w", "v"),
    jvp=_eigh_tangent,
    pull=_eigh_pull,
    shift=stay,
    gpu="linalg.eigh",
    doc="Eigenvalues, ascending, and eigenvectors, in columns, of (x + xᴴ) / 2.",
)
eigvalsh = composite(
    "eigvalsh",
    lambda x: eigh(x)[0],
    impl=lambda x: np.linalg.eigvalsh(hermitian(x)),
    type=lambda x: _eigh_type(x)[0],
    shift=stay,
    gpu="linalg.eigvalsh",
    doc="The eigenvalues that eigh finds.",
)


def _complex_of(dtype):
    return np.result_type(dtype, np.complex64)


def _eig(x):
    w, v = np.linalg.eig(x)
    dtype = _complex_of(x.dtype)
    return w.astype(dtype), v.astype(dtype)


def _eig_type(x):
    square("eig", x)
    dtype = _complex_of(x.dtype)
    return ArrayType(x.shape[:-1], dtype), ArrayType(x.shape, dtype)


def _eig_tangent(t, w, v):
    inner = solve(v, mm(cast(t, dtype=v.dtype), v))
    return diagonal(inner), _normalised(v, mm(v, _quotients(w) * inner))


def _normalised(v, t):
    """Return the part of a change of eigenvectors that keeps them as LAPACK has them.

    Their norm is 1, and their greatest component is real.
    """
    axis = v.ndim - 2
    if not v.shape[axis]:
        return t
    greatest = argmax(complex_abs(v), axis=axis)
    place = broadcast(row(greatest), shape=v.shape)
    turn = imag(take_along(t, place, axis=axis) / take_along(v, place, axis=axis))
    stretch = row(real((conj(v) * t).sum(axis=-2)))
    return t - v * (stretch + turn * 1j)


eig = differential(
    "eig",
    _eig,
    type=_eig_type,
    outputs=("w", "v"),
    jvp=_eig_tangent,
    shift=stay,
    gpu="linalg.eig",
    doc="Eigenvalues and eigenvectors, in columns, of square matrices; complex always.",
)
eigvals = composite(
    "eigvals",
    lambda x: eig(x)[0],
    impl=lambda x: np.linalg.eigvals(x).astype(_complex_of(x.dtype)),
    type=lambda x: _eig_type(x)[0],
    shift=stay,
    gpu="linalg.eigvals",
    doc="The eigenvalues that eig finds.",
)

# ---------------------------------------------------------------------------------------------- singular values


def _svd_type(x):
    matrices("svd", x)
    *lead, m, n = x.shape
    k = min(m, n)
    return (
        ArrayType((*lead, m, k), x.dtype),
        ArrayType((*lead, k), real_dtype(x.dtype)),
        ArrayType((*lead, k, n), x.dtype),
    )


def _svd_tangent(t, u, s, vh):
    """Townsend, "Differentiating the singular value decomposition", 2016; what a phase adds to u and v goes to u."""
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    v = adjoint(vh)
    noise = _rounding(s, m + n)
    inverse = row(_reciprocal(s, noise.reshape((*s.shape[:-1], 1))))
    gaps = _reciprocal(row(s) - column(s), noise) * _reciprocal(row(s) + column(s), noise)
    inner = mm(mm(adjoint(u), t), v)
    by_column, by_row = inner * row(s), inner * column(s)
    turn = gaps * (by_column + adjoint(by_column))
    if t.dtype.kind == "c":
        turn = turn + select(np.eye(k, dtype=bool), imag(inner) * inverse * 1j, 0)
    du = mm(u, turn)
    dv = mm(v, gaps * (by_row + adjoint(by_row)))
    if m > k:
        du = du + _outside(u, mm(t, v) * inverse)
    if n > k:
        dv = dv + _outside(v, mm(adjoint(t), u) * inverse)
    return du, real(diagonal(inner)), adjoint(dv)


def _outside(q, x):
    """Return the part of x that is orthogonal to the orthonormal columns of q."""
    return x - mm(q, mm(adjoint(q), x))


svd = differential(
    "svd",
    lambda x: tuple(np.linalg.svd(x, full_matrices=False)),
    type=_svd_type,
    outputs=("u", "s", "vh"),
    jvp=_svd_tangent,
    shift=stay,
    gpu="linalg.svd",
    doc="u, s, vh with u diag(s) vh = x, s descending; columns of u and rows of vh are orthonormal.",
)
svdvals = composite(
    "svdvals",
    lambda x: svd(x)[1],
    impl=lambda x: np.linalg.svd(x, compute_uv=False),
    type=lambda x: _svd_type(x)[1],
    shift=stay,
    gpu="linalg.svdvals",
    doc="The singular values, descending.",
)

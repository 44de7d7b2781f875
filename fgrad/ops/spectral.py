"""Eigenvalues and singular values of matrices, which lie in the last two axes, and their vectors.

Where values are repeated, the vectors in their space may be turned at will; such turns count as no change at all. So
derivatives are right, of any order, of what does not depend on the choice: sums over repeated values, the space they
span, vectors of the other values. To that end each factorisation has `blocks` for a further output: the values as a
diagonal matrix, which by its derivative is a full matrix within each set of equal values. Reverse mode sees what is
asked of it and refuses the rest (`refuse_turns`); forward mode does not.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError

from fgrad.core import ArrayType, type_of
from fgrad.kinds import composite, constant, differential
from fgrad.ops.along import take_along
from fgrad.ops.complex import complex_abs, conj, imag, real
from fgrad.ops.elementwise import select
from fgrad.ops.factor import completed
from fgrad.ops.linalg import (
    adjoint,
    column,
    conjugate,
    diagonal,
    hermitian,
    matrices,
    mm,
    real_dtype,
    refuse_singular,
    row,
    solve,
    square,
    stay,
    swap,
)
from fgrad.ops.reduce import argmax
from fgrad.ops.shape import broadcast, cast

# ----------------------------------------------------------------------------------------------- repeated values


def _gaps(rows, columns):
    """Return columns[j] - rows[i] for each pair of numbers, and whether that is no more than rounding makes it."""
    gaps = row(columns) - column(rows)
    largest = [np.max(np.abs(w), -1, initial=0)[..., None, None] for w in (rows, columns)]
    noise = (100 + 10 * max(gaps.shape[-2:])) * np.finfo(gaps.dtype).eps * np.maximum(*largest)
    return gaps, np.abs(gaps) <= noise


repeated = constant(
    "repeated",
    lambda w: _gaps(w, w)[1],
    type=lambda w: ArrayType((*w.shape, w.shape[-1]), bool),
    shift=stay,
    gpu="linalg.repeated",
    doc="Whether numbers i and j along the last axis are equal, up to rounding.",
)


def _sylvester(x, left, right):
    """Divide by differences; what is off the diagonals counts to first order, as derivatives see it."""
    gaps, none = _gaps(*(np.diagonal(m, axis1=-2, axis2=-1) for m in (left, right)))
    quotients = np.where(none, 0, 1 / np.where(none, 1, gaps))
    out = quotients * x
    left, right = (np.where(np.eye(m.shape[-1], dtype=bool), 0, m) for m in (left, right))
    if left.any() or right.any():
        out = quotients * (x + np.matmul(left, out) - np.matmul(out, right))
    return out


def _sylvester_type(x, left, right):
    matrices("sylvester", x, left, right)
    if left.shape[-2:] != x.shape[-2:-1] * 2 or right.shape[-2:] != x.shape[-1:] * 2:
        raise ValueError(f"sylvester: {left} and {right} do not fit {x}")
    return ArrayType(x.shape, x.dtype)


def _transposed(ct, left, right):
    return sylvester(ct, swap(left), swap(right))


sylvester = differential(
    "sylvester",
    _sylvester,
    type=_sylvester_type,
    jvp=(
        lambda t, left, right: sylvester(t, left, right),
        lambda t, left, right, out: sylvester(mm(t, out), left, right),
        lambda t, left, right, out: -sylvester(mm(out, t), left, right),
    ),
    pull=(
        _transposed,
        lambda ct, left, right, out: mm(_transposed(ct, left, right), swap(out)),
        lambda ct, left, right, out: -mm(swap(out), _transposed(ct, left, right)),
    ),
    shift=stay,
    gpu="linalg.sylvester",
    doc="The solution z of z right - left z = x for diagonal left and right; 0 where their entries are equal.",
)


def _refuse_turns(p, rate, w):
    """Return `p`; raise LinAlgError if it asks for a derivative that does not exist or cannot be found.

    `p` pairs with turns of the vectors, `rate` with changes of the values w. Where values are repeated, a turn must
    count for nothing: p is Hermitian there. Then a matrix function such as v f(w) vᴴ has a derivative that p and rate
    do not determine; it shows in values that count differently and vectors that count at all.
    """
    same = repeated.impl(w) & ~np.eye(w.shape[-1], dtype=bool)
    if same.any():
        small = float(np.sqrt(np.finfo(w.dtype).eps))
        weights = np.abs(rate)
        scale = np.maximum(np.max(np.abs(p), (-2, -1)), np.max(weights * np.abs(w), -1))[..., None, None] * small
        turned = np.abs(p - adjoint(p)) > scale
        apart = np.abs(row(rate) - column(rate)) > small * np.max(weights, -1)[..., None, None]
        if (same & (turned | (apart & (np.abs(p) > scale)))).any():
            raise LinAlgError(
                "a derivative depends on the vectors of a repeated eigenvalue or singular value, which are not unique: "
                "it does not exist, or is that of a matrix function and cannot be found by way of them"
            )
    return np.array(p)


refuse_turns = differential(
    "refuse_turns",
    _refuse_turns,
    type=lambda p, rate, w: ArrayType(p.shape, p.dtype),
    jvp=(lambda t: t, None, None),
    pull=(lambda ct: ct, None, None),
    shift=stay,
    gpu="linalg.refuse_turns",
    doc="p, the cotangent of a turn of eigenvectors; LinAlgError if a derivative depends on the choice of vectors of "
    "repeated values w, whose cotangent is `rate`.",
)


def _as_blocks(w, dtype):
    """Return numbers as diagonal matrices."""
    return np.where(np.eye(w.shape[-1], dtype=bool), w[..., None, :], 0).astype(dtype)


def _within(x, w):
    """Return the part of x that lies in the blocks of equal numbers."""
    return select(repeated(w), x, 0)


# --------------------------------------------------------------------------------------- eigenvalues and -vectors


def _eigh(x):
    w, v = np.linalg.eigh(hermitian(x))
    return w, v, _as_blocks(w, v.dtype)


def _eigh_type(x):
    square("eigh", x)
    full = ArrayType(x.shape, x.dtype)
    return ArrayType(x.shape[:-1], real_dtype(x.dtype)), full, full


def _eigh_tangent(t, w, v, blocks):
    """Giles, "Collected matrix derivative results", 2008, section 3.1."""
    inner = mm(adjoint(v), mm(hermitian(t), v))
    return real(diagonal(inner)), mm(v, sylvester(inner, blocks, blocks)), _within(inner, w)


def _eigh_pull(ct, w, v, blocks):
    turn = refuse_turns(mm(swap(v), ct[1]), ct[0], w)
    inner = sylvester(turn, swap(blocks), swap(blocks)) + _within(ct[2], w)
    inner = inner + select(np.eye(w.shape[-1], dtype=bool), row(ct[0]), 0)
    return hermitian(mm(conjugate(v), mm(inner, swap(v))))


eigh = differential(
    "eigh",
    _eigh,
    type=_eigh_type,
    outputs=("w", "v", "blocks"),
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
    return w.astype(dtype), v.astype(dtype), _as_blocks(w, dtype)


def _eig_type(x):
    square("eig", x)
    dtype = _complex_of(x.dtype)
    full = ArrayType(x.shape, dtype)
    return ArrayType(x.shape[:-1], dtype), full, full


def _eig_tangent(t, w, v, blocks):
    whole = refuse_singular(v, why="eig has no derivative where a matrix has too few eigenvectors")
    inner = solve(whole, mm(cast(t, dtype=v.dtype), v))
    return diagonal(inner), _normalised(v, mm(v, sylvester(inner, blocks, blocks))), _within(inner, w)


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
    outputs=("w", "v", "blocks"),
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


def _svd(x, *, full):
    u, s, vh = np.linalg.svd(x, full)
    return u, s, vh, _as_blocks(s, u.dtype)


def _svd_type(x, *, full):
    matrices("svd", x)
    *lead, m, n = x.shape
    k = min(m, n)
    return (
        ArrayType((*lead, m, m if full else k), x.dtype),
        ArrayType((*lead, k), real_dtype(x.dtype)),
        ArrayType((*lead, n if full else k, n), x.dtype),
        ArrayType((*lead, k, k), x.dtype),
    )


def _inverse(blocks):
    """Return the inverse of diagonal matrices, with 0 for 1/0."""
    shape = type_of(blocks).shape
    return sylvester(
        np.broadcast_to(np.eye(shape[-1], dtype=blocks.dtype), shape), np.zeros(shape, blocks.dtype), blocks
    )


def _svd_tangent(t, u, s, vh, blocks):
    """Townsend, "Differentiating the singular value decomposition", 2016, with quotients of s[j]² - s[i]² taken apart.

    What turns u and v together is divided by the difference, what turns them against each other (a phase, too) by the
    sum, so that repeated values do not matter for it.
    """
    k = s.shape[-1]
    v = adjoint(vh)
    u, u_rest, v, v_rest = u[..., :k], u[..., k:], v[..., :k], v[..., k:]
    inner = mm(mm(adjoint(u), t), v)
    symmetric = hermitian(inner)
    together = sylvester(symmetric, blocks, blocks)
    against = sylvester(inner - symmetric, -blocks, blocks)
    du, dv = mm(u, together + against), mm(v, together - against)
    if u.shape[-2] > k:
        du = du + _outside(u, mm(mm(t, v), _inverse(blocks)))
    if v.shape[-2] > k:
        dv = dv + _outside(v, mm(mm(adjoint(t), u), _inverse(blocks)))
    du, dv = completed(u, du, u_rest), completed(v, dv, v_rest)
    return du, real(diagonal(inner)), adjoint(dv), _within(symmetric, s)


def _outside(q, x):
    """Return the part of x that is orthogonal to the orthonormal columns of q."""
    return x - mm(q, mm(adjoint(q), x))


def _svd_pull(ct, u, s, vh, blocks):
    """Return the transpose of the tangent rule, term by term."""
    k = s.shape[-1]
    v = adjoint(vh)
    ct_u, ct_v = _folded(u, ct[0], k), _folded(v, adjoint(ct[2]), k)
    u, v, turned = u[..., :k], v[..., :k], swap(blocks)
    by_u, by_v = mm(swap(u), ct_u), mm(swap(v), ct_v)
    together = sylvester(refuse_turns(by_u + by_v, ct[1], s), turned, turned) + _within(ct[3], s)
    against = sylvester(by_u - by_v, -turned, turned)
    inner = hermitian(together) + against - hermitian(against) + select(np.eye(k, dtype=bool), row(ct[1]), 0)
    left, right = conjugate(u), swap(v)
    beside = mm(inner, right)
    if v.shape[-2] > k:
        beside = beside + mm(conjugate(_inverse(blocks)), adjoint(ct_v - mm(conjugate(v), by_v)))
    out = mm(left, beside)
    if u.shape[-2] > k:
        out = out + mm(mm(ct_u - mm(left, by_u), swap(_inverse(blocks))), right)
    return out


def _folded(q, ct, k):
    """Return the cotangent of the first k columns of q, which the others follow."""
    q, rest = q[..., :k], q[..., k:]
    ct, ct_rest = ct[..., :k], ct[..., k:]
    if not rest.shape[-1]:
        return ct
    return ct - mm(conjugate(rest), adjoint(mm(swap(q), ct_rest)))


svd = differential(
    "svd",
    _svd,
    type=_svd_type,
    outputs=("u", "s", "vh", "blocks"),
    jvp=_svd_tangent,
    pull=_svd_pull,
    shift=stay,
    gpu="linalg.svd",
    doc="u, s, vh with u diag(s) vh = x, s descending; columns of u and rows of vh are orthonormal. If `full`, "
    "u and vh are square, with columns and rows to which no singular value belongs.",
)
svdvals = composite(
    "svdvals",
    lambda x: svd(x, full=False)[1],
    impl=lambda x: np.linalg.svd(x, compute_uv=False),
    type=lambda x: _svd_type(x, full=False)[1],
    shift=stay,
    gpu="linalg.svdvals",
    doc="The singular values, descending.",
)

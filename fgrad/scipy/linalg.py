"""Linear algebra under SciPy's names, where it goes beyond NumPy's or takes other arguments.

Matrices lie in the last two axes; axes before them count examples. SciPy's `overwrite_a`, `check_finite` and their like
are left out. What has NumPy's name and meaning is in `fgrad.numpy.linalg`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fgrad.numpy.arguments import as_array, inexact, promoted
from fgrad.ops import elementwise as e
from fgrad.ops import factor
from fgrad.ops import linalg as m
from fgrad.ops.shape import broadcast, concatenate, pad
from fgrad.scipy import factorizations, matrices
from fgrad.scipy.factorizations import *  # noqa: F403
from fgrad.scipy.factorizations import floating_matrices

__all__ = [
    *factorizations.__all__,
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "det",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "hankel",
    "inv",
    "lu",
    "polar",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "toeplitz",
]


def _solved(function: str, solver: Any, a: Any, b: Any) -> Any:
    """Call a solver of stacks of matrices for a vector b (n,), or matrices (..., n, k) whose leading axes broadcast."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or b.ndim == 0 or b.shape[-2 if b.ndim > 1 else 0] != a.shape[-1]:
        raise ValueError(f"{function}: a must be square and fit b, got shapes {a.shape} and {b.shape}")
    vector = b.ndim == 1
    y = m.column(b) if vector else b
    lead = np.broadcast_shapes(a.shape[:-2], y.shape[:-2])
    out = solver(*[x if x.shape[:-2] == lead else broadcast(x, shape=(*lead, *x.shape[-2:])) for x in (a, y)])
    return out.reshape(out.shape[:-1]) if vector else out


# ------------------------------------------------------------------------------------------------------ solving


def solve_triangular(a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """Solve triangular systems a x = b.

    Args:
        a: (..., n, n), of which the other triangle is not read.
        b: (n,) or (..., n, k).
        trans: 0 or "N" for a, 1 or "T" for its transpose, 2 or "C" for its conjugate transpose.
        lower: a is lower triangular.
        unit_diagonal: the diagonal is 1 and not read.

    Raises:
        LinAlgError: a is singular.
        ValueError: shapes do not fit, or trans is none of these.

    Example:
        >>> from fgrad.scipy.linalg import solve_triangular
        >>> solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True)
        array([1., 2.])
    """
    a, b = floating_matrices(a, b)
    turned = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}.get(trans)
    if turned is None:
        raise ValueError(f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    if turned:
        a, lower = (m.swap(a) if turned == 1 else m.adjoint(a)), not lower
    return _solved(
        "solve_triangular", lambda x, y: m.triangular_solve(x, y, lower=bool(lower), unit=bool(unit_diagonal)), a, b
    )


def solve(a: Any, b: Any, *, assume_a: str = "gen") -> Any:
    """Solve a x = b.

    Args:
        a: (..., n, n).
        b: (n,) or (..., n, k).
        assume_a: "pos" if a is Hermitian and positive definite; everything else is solved as "gen".

    Raises:
        LinAlgError: a is singular, or not positive definite though it should be.
        ValueError: shapes do not fit.

    Example:
        >>> from fgrad.scipy.linalg import solve
        >>> solve([[2.0, 1.0], [1.0, 3.0]], [4.0, 7.0], assume_a="pos").round(4)
        array([1., 2.])
    """
    if assume_a in ("pos", "positive definite"):
        return cho_solve(cho_factor(a, lower=True), b)
    a, b = floating_matrices(a, b)
    return _solved("solve", m.solve, a, b)


def inv(a: Any) -> Any:
    """Return the inverses of square matrices.

    Example:
        >>> from fgrad.scipy.linalg import inv
        >>> inv([[2.0, 0.0], [0.0, 4.0]])
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    return m.inv(*floating_matrices(a))


def det(a: Any) -> Any:
    """Return the determinants of square matrices; the derivative is exact also where they are 0.

    Example:
        >>> from fgrad.scipy.linalg import det
        >>> print(det([[2.0, 1.0], [1.0, 3.0]]).round(4))
        5.0
    """
    return m.det(*floating_matrices(a))


# ------------------------------------------------------------------------------------------------ factorizations


def cholesky(a: Any, lower: bool = False) -> Any:
    """Return the Cholesky factor: U with Uᴴ U = a, or L with L Lᴴ = a.

    Args:
        a: (..., n, n), positive definite; of other than Hermitian matrices the Hermitian part is taken.
        lower: return L.

    Raises:
        LinAlgError: a is not positive definite.

    Example:
        >>> from fgrad.scipy.linalg import cholesky
        >>> cholesky([[4.0, 2.0], [2.0, 5.0]])
        array([[2., 1.],
               [0., 2.]])
    """
    low = factor.cholesky(*floating_matrices(a))
    return low if lower else m.adjoint(low)


def cho_factor(a: Any, lower: bool = False) -> tuple[Any, bool]:
    """Return the Cholesky factor of a and `lower`, for `cho_solve`; the other triangle is zero.

    Takes the arguments of `cholesky` and raises its errors.

    Example:
        >>> from fgrad.scipy.linalg import cho_factor, cho_solve
        >>> cho_solve(cho_factor([[4.0, 2.0], [2.0, 5.0]]), [8.0, 12.0])
        array([1., 2.])
    """
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Any:
    """Solve a x = b, given what `cho_factor` returns for a.

    Args:
        c_and_lower: the factor, and whether it is the lower one.
        b: (n,) or (..., n, k).

    Example:
        >>> from fgrad.scipy.linalg import cho_solve
        >>> cho_solve(([[2.0, 0.0], [1.0, 2.0]], True), [8.0, 12.0])
        array([1., 2.])
    """
    c, lower = c_and_lower
    first, second = (0, 2) if lower else (2, 0)
    return solve_triangular(c, solve_triangular(c, b, first, lower), second, lower)


def lu(a: Any, permute_l: bool = False) -> tuple[Any, ...]:
    """Return P, L and U with a = P L U, by partial pivoting; P L and U if `permute_l`.

    Args:
        a: (..., m, n).
        permute_l: return P L, whose rows are those of L in another order, instead of P and L.

    Example:
        >>> from fgrad.scipy.linalg import lu
        >>> p, l, u = lu([[0.0, 2.0], [4.0, 1.0]])
        >>> p @ l @ u
        array([[0., 2.],
               [4., 1.]])
    """
    packed, order = factor.lu(*floating_matrices(a))
    rows, columns = packed.shape[-2:]
    k = min(rows, columns)
    low = m.lower(packed[..., :, :k], -1) + np.eye(rows, k, dtype=packed.dtype)
    p = e.select(e.eq(m.column(np.arange(rows)), m.row(order)), np.ones((), packed.dtype), 0)
    up = m.upper(packed[..., :k, :])
    return (m.mm(p, low), up) if permute_l else (p, low, up)


def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Solve a x + x b = q, by SciPy.

    Args:
        a, b, q: (..., m, m), (..., n, n) and (..., m, n); leading axes broadcast.

    Raises:
        ValueError: shapes do not fit.

    Example:
        >>> from fgrad.scipy.linalg import solve_sylvester
        >>> solve_sylvester([[1.0, 0.0], [0.0, 2.0]], [[3.0]], [[4.0], [10.0]])
        array([[1.],
               [2.]])
    """
    arrays = floating_matrices(a, b, q)
    shapes = [x.shape[-2:] for x in arrays]
    if shapes[:2] != [shapes[2][:1] * 2, shapes[2][1:] * 2]:
        raise ValueError(f"solve_sylvester: a and b must be square and fit q, got shapes {[x.shape for x in arrays]}")
    lead = np.broadcast_shapes(*[x.shape[:-2] for x in arrays])
    a, b, q = [broadcast(x, shape=(*lead, *x.shape[-2:])) for x in arrays]
    return matrices.sylvester_solve(q, a, b)


# -------------------------------------------------------------------------------------- exponentials and square roots


def sqrtm(A: Any) -> Any:
    """Return the principal square roots of square matrices, by SciPy; those of real matrices must be real.

    Raises:
        LinAlgError: a real matrix has no real square root; pass it as complex.

    Example:
        >>> from fgrad.scipy.linalg import sqrtm
        >>> print(sqrtm([[5.0, 4.0], [4.0, 5.0]]).round(12))
        [[2. 1.]
         [1. 2.]]
    """
    return matrices.sqrtm(*floating_matrices(A))


def expm(A: Any) -> Any:
    """Return the exponentials of square matrices.

    Example:
        >>> from fgrad.scipy.linalg import expm
        >>> expm([[0.0, 1.0], [0.0, 0.0]])
        array([[1., 1.],
               [0., 1.]])
    """
    return m.expm(*floating_matrices(A))


def expm_frechet(A: Any, E: Any, compute_expm: bool = True) -> Any:
    """Return the exponential of A and its derivative along E; the derivative alone if not `compute_expm`.

    Args:
        A, E: (..., n, n).
        compute_expm: return the exponential, too.

    Example:
        >>> from fgrad.scipy.linalg import expm_frechet
        >>> expm_frechet([[0.0]], [[2.0]])
        (array([[1.]]), array([[2.]]))
    """
    a, t = floating_matrices(A, E)
    change = m.expm_change(a, t)
    return (m.expm(a), change) if compute_expm else change


def polar(a: Any, side: str = "right") -> tuple[Any, Any]:
    """Return U and P with a = U P, or a = P U if `side` is "left": U an isometry, P Hermitian, positive semidefinite.

    Args:
        a: (..., m, n), of full rank.
        side: "right" or "left".

    Raises:
        ValueError: the side is unknown.

    Example:
        >>> from fgrad.scipy.linalg import polar
        >>> u, p = polar([[0.0, -2.0], [3.0, 0.0]])
        >>> print(u.round(12), p.round(12))
        [[ 0. -1.]
         [ 1.  0.]] [[3. 0.]
         [0. 2.]]
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: side must be 'right' or 'left', got {side!r}")
    (a,) = floating_matrices(a)
    wide = a.shape[-2] < a.shape[-1]
    tall = m.adjoint(a) if wide else a
    p = matrices.sqrtm(m.mm(m.adjoint(tall), tall))  # of the smaller side, which has an inverse
    u = m.adjoint(m.solve(p, m.adjoint(tall)))
    u = m.adjoint(u) if wide else u
    if (side == "left") == wide:
        return u, p
    return u, m.hermitian(m.mm(m.adjoint(u), a) if side == "right" else m.mm(a, m.adjoint(u)))


def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False) -> Any:
    """Return eigenvalues and eigenvectors of real symmetric tridiagonal matrices, worked out as full ones.

    Args:
        d: their diagonals (..., n).
        e: the numbers beside the diagonals (..., n - 1).
        eigvals_only: return the eigenvalues alone.

    Example:
        >>> from fgrad.scipy.linalg import eigh_tridiagonal
        >>> print(eigh_tridiagonal([2.0, 2.0], [1.0], eigvals_only=True))
        [1. 3.]
    """
    d, e = [inexact(x) for x in promoted(as_array(d), as_array(e))]
    n = d.shape[-1]
    if e.shape[-1] != n - 1:
        raise ValueError(f"eigh_tridiagonal: e must be one shorter than d, got shapes {d.shape} and {e.shape}")
    places = np.arange(n)
    below = np.eye(n, k=-1, dtype=d.dtype) * e[..., np.minimum(places, n - 2)][..., None, :] if n > 1 else 0
    return factorizations.eigh(np.eye(n, dtype=d.dtype) * d[..., None, :] + below, eigvals_only=eigvals_only)


# ----------------------------------------------------------------------------------------------- matrices made up


def block_diag(*arrs: Any) -> Any:
    """Return the matrix that has the given ones along its diagonal; numbers and vectors count as rows.

    Raises:
        ValueError: an array has more than 2 dimensions.

    Example:
        >>> from fgrad.scipy.linalg import block_diag
        >>> block_diag([[1, 2]], 3)
        array([[1, 2, 0],
               [0, 0, 3]])
    """
    blocks = promoted(*[as_array(x) for x in arrs]) if arrs else [np.zeros((1, 0))]
    for k, x in enumerate(blocks):
        if x.ndim > 2:
            raise ValueError(f"block_diag: arguments must have at most 2 dimensions, argument {k} has shape {x.shape}")
    blocks = [x if x.ndim == 2 else x.reshape((1, -1)) for x in blocks]
    width, left, rows = sum([x.shape[1] for x in blocks]), 0, []
    for x in blocks:
        right = width - left - x.shape[1]
        rows.append(pad(x, np.zeros((), x.dtype), widths=((0, 0, 0), (left, right, 0))))
        left += x.shape[1]
    return concatenate(*rows, axis=0)


def toeplitz(c: Any, r: Any = None) -> Any:
    """Return the matrix of constant diagonals with first column c and first row r.

    Args:
        c: (m,).
        r: (n,), of which the first element is not read; None for the conjugate of c.

    Raises:
        ValueError: c or r is not a vector.

    Example:
        >>> from fgrad.scipy.linalg import toeplitz
        >>> toeplitz([1, 2, 3], [1, 4])
        array([[1, 4],
               [2, 1],
               [3, 2]])
    """
    column = as_array(c)
    row = m.conjugate(column) if r is None else as_array(r)
    column, row = promoted(column, row)
    if column.ndim != 1 or row.ndim != 1:
        raise ValueError(f"toeplitz: c and r must be vectors, got shapes {column.shape} and {row.shape}")
    diagonals = concatenate(column[::-1], row[1:], axis=0)
    return diagonals[np.arange(column.size)[::-1, None] + np.arange(row.size)]


def hankel(c: Any, r: Any = None) -> Any:
    """Return the matrix of constant antidiagonals with first column c and last row r.

    Args:
        c: (m,).
        r: (n,), of which the first element is not read; None for zeros.

    Raises:
        ValueError: c or r is not a vector.

    Example:
        >>> from fgrad.scipy.linalg import hankel
        >>> hankel([1, 2, 3], [3, 4])
        array([[1, 2],
               [2, 3],
               [3, 4]])
    """
    column = as_array(c)
    row = np.zeros(column.shape, column.dtype) if r is None else as_array(r)
    column, row = promoted(column, row)
    if column.ndim != 1 or row.ndim != 1:
        raise ValueError(f"hankel: c and r must be vectors, got shapes {column.shape} and {row.shape}")
    antidiagonals = concatenate(column, row[1:], axis=0)
    return antidiagonals[np.arange(column.size)[:, None] + np.arange(row.size)]


def circulant(c: Any) -> Any:
    """Return the matrices whose columns are vectors (..., n) turned on by one place each.

    Example:
        >>> from fgrad.scipy.linalg import circulant
        >>> circulant([1, 2, 3])
        array([[1, 3, 2],
               [2, 1, 3],
               [3, 2, 1]])
    """
    c = as_array(c)
    places = np.arange(c.shape[-1])
    return c[..., (places[:, None] - places) % c.shape[-1]]

"""Factorisations under SciPy's names and with its arguments; they are those of `fgrad.numpy.linalg`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgrad.numpy import linalg
from fgrad.numpy.arguments import as_array, inexact, promoted
from fgrad.ops import factor
from fgrad.ops import linalg as m
from fgrad.ops.along import take_along
from fgrad.ops.shape import broadcast
from fgrad.scipy import matrices

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "lu_factor", "lu_solve", "qr", "svd", "svdvals"]

eig = linalg.eig
eigvals = linalg.eigvals
svdvals = linalg.svdvals


def floating_matrices(*xs: Any) -> list[Any]:
    """Return array-likes as arrays of one dtype that LAPACK has."""
    arrays = promoted(*[inexact(as_array(x)) for x in xs])
    return [x.astype(np.float32) if x.dtype == np.float16 else x for x in arrays]


def qr(a: Any, mode: str = "full", pivoting: bool = False) -> Any:
    """Return Q and R with a = Q R, R upper triangular.

    Args:
        a: (..., m, n).
        mode: "full" for square Q, "economic" for the first min(m, n) columns of Q and rows of R, "r" for R alone.
        pivoting: refused.

    Raises:
        NotImplementedError: pivoting is asked for.
        ValueError: the mode is unknown.

    Example:
        >>> from fgrad.scipy.linalg import qr
        >>> q, r = qr([[3.0, 1.0], [4.0, 2.0]])
        >>> print((q @ r).round(12))
        [[3. 1.]
         [4. 2.]]
    """
    if pivoting:
        raise NotImplementedError("qr: pivoting=True is not supported; factorize without it, or permute columns first")
    numpys = {"full": "complete", "economic": "reduced", "r": "r"}
    if mode not in numpys:
        raise ValueError(f"qr: mode must be 'full', 'economic' or 'r', got {mode!r}")
    out = linalg.qr(a, numpys[mode])
    return (out,) if mode == "r" else tuple(out)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return U, the singular values s in descending order and Vᴴ, with a = U diag(s) Vᴴ; or s alone.

    Args:
        a: (..., m, n).
        full_matrices: make U and Vᴴ square; otherwise they have min(m, n) columns and rows.
        compute_uv: return U and Vᴴ, too.

    Example:
        >>> from fgrad.scipy.linalg import svd
        >>> svd([[0.0, 2.0], [1.0, 0.0]], compute_uv=False)
        array([2., 1.])
    """
    out = linalg.svd(a, full_matrices, compute_uv)
    return tuple(out) if compute_uv else out


def eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False) -> Any:
    """Return eigenvalues w, ascending, and eigenvectors v of Hermitian matrices: a v = b v diag(w), vᴴ b v = 1.

    Args:
        a: (..., n, n), of which the lower triangle is read, or the upper one if not `lower`.
        b: (..., n, n) positive definite; None for the identity.
        eigvals_only: return w alone.

    Raises:
        LinAlgError: b is not positive definite.

    Example:
        >>> from fgrad.scipy.linalg import eigh
        >>> eigh([[2.0, 0.0], [0.0, 6.0]], [[1.0, 0.0], [0.0, 2.0]], eigvals_only=True)
        array([2., 3.])
    """
    side = "L" if lower else "U"
    if b is None:
        return linalg.eigvalsh(a, side) if eigvals_only else tuple(linalg.eigh(a, side))
    a, b = floating_matrices(a, b)
    triangle = m.lower(a) + m.adjoint(m.lower(a, -1)) if lower else m.upper(a) + m.adjoint(m.upper(a, 1))
    root = factor.cholesky(b if lower else m.adjoint(b))
    half = m.triangular_solve(root, triangle, lower=True, unit=False)
    whole = m.adjoint(m.triangular_solve(root, m.adjoint(half), lower=True, unit=False))
    if eigvals_only:
        return linalg.eigvalsh(whole)
    w, v = linalg.eigh(whole)
    return w, m.triangular_solve(m.adjoint(root), v, lower=False, unit=False)


def eigvalsh(a: Any, b: Any = None, *, lower: bool = True) -> Any:
    """Return the eigenvalues that `eigh` returns, of the same arguments.

    Example:
        >>> from fgrad.scipy.linalg import eigvalsh
        >>> eigvalsh([[2.0, 0.0], [0.0, 6.0]])
        array([2., 6.])
    """
    return eigh(a, b, lower=lower, eigvals_only=True)


def lu_factor(a: Any) -> tuple[Any, Any]:
    """Return the packed factors L and U of a, by partial pivoting, and LAPACK's pivots, for `lu_solve`.

    Example:
        >>> from fgrad.scipy.linalg import lu_factor
        >>> lu_factor([[0.0, 2.0], [4.0, 1.0]])
        (array([[4., 1.],
               [0., 2.]]), array([1, 1]))
    """
    packed, order = factor.lu(*floating_matrices(a))
    return packed, matrices.pivots(order, count=min(packed.shape[-2:]))


def lu_solve(lu_and_piv: tuple[Any, Any], b: Any, trans: int = 0) -> Any:
    """Solve a x = b, given what `lu_factor` returns for a square a.

    Args:
        lu_and_piv: the factors (..., n, n) and pivots (..., n).
        b: (n,) or (..., n, k).
        trans: 0 for a x = b, 1 for aᵀ x = b, 2 for aᴴ x = b.

    Raises:
        ValueError: shapes do not fit, or trans is unknown.

    Example:
        >>> from fgrad.scipy.linalg import lu_factor, lu_solve
        >>> lu_solve(lu_factor([[0.0, 2.0], [4.0, 1.0]]), [4.0, 6.0])
        array([1., 2.])
    """
    packed, pivots = lu_and_piv
    packed, b = floating_matrices(packed, b)
    n = packed.shape[-1]
    if packed.shape[-2] != n or not b.ndim or b.shape[-2 if b.ndim > 1 else 0] != n:
        raise ValueError(f"lu_solve: factors must be square and fit b, got shapes {packed.shape} and {b.shape}")
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}")
    columns = m.column(b) if b.ndim == 1 else b
    lead = np.broadcast_shapes(packed.shape[:-2], columns.shape[:-2])
    packed = broadcast(packed, shape=(*lead, n, n))
    columns = broadcast(columns, shape=(*lead, *columns.shape[-2:]))
    order = matrices.pivoted_order(as_array(pivots), count=n)
    out = _substituted(packed, order, columns, trans)
    return out.reshape(out.shape[:-1]) if b.ndim == 1 else out


def _substituted(packed: Any, order: Any, columns: Any, trans: int) -> Any:
    """Solve by the two triangles and the order of rows, in one direction or the other."""
    if trans == 0:
        first = m.triangular_solve(packed, _in_order(columns, order), lower=True, unit=True)
        return m.triangular_solve(packed, first, lower=False, unit=False)
    turned = m.swap(packed) if trans == 1 else m.adjoint(packed)
    first = m.triangular_solve(turned, columns, lower=True, unit=False)
    last = m.triangular_solve(turned, first, lower=False, unit=True)
    return _in_order(last, order.argsort(-1))


def _in_order(columns: Any, order: Any) -> Any:
    """Return matrices with their rows in an order."""
    return take_along(columns, broadcast(m.column(order), shape=columns.shape), axis=columns.ndim - 2)

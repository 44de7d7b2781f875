"""Factorisations, eigenvalues and singular values of `fgrad.numpy.linalg`.

Functions of symmetric matrices take the Hermitian part of what they are given, so that their derivatives are
symmetric; they do so outside transforms, too.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError

from fgrad.numpy.arguments import as_array, counterpart, inexact, stands_for
from fgrad.ops import factor as f
from fgrad.ops import linalg as m
from fgrad.ops import shape as s
from fgrad.ops import spectral as sp

__all__ = "cholesky eig eigh eigvals eigvalsh qr svd svdvals".split()

QRResult, EigResult, EighResult, SVDResult = (
    type(function(np.eye(1))) for function in (np.linalg.qr, np.linalg.eig, np.linalg.eigh, np.linalg.svd)
)


def matrices(a, square=False):
    """Return an array of matrices in a floating dtype; LinAlgError if it has no two axes, or they must be equal."""
    x = inexact(as_array(a))
    if x.ndim < 2:
        raise LinAlgError(f"{x.ndim}-dimensional array given. Array must be at least two-dimensional")
    if square and x.shape[-1] != x.shape[-2]:
        raise LinAlgError(f"Last 2 dimensions of the array must be square, got shape {x.shape}")
    return x


@stands_for(np.linalg.cholesky)
def cholesky(a, /, *, upper=False):
    """Factor positive definite matrices into L Lᴴ; of a matrix that is not Hermitian its Hermitian part.

    Args:
        a: array (..., n, n).
        upper: return Lᴴ.

    Returns:
        Lower triangular L (..., n, n).

    Raises:
        numpy.linalg.LinAlgError: a matrix is not positive definite, or not square.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.linalg.cholesky([[4.0, 2.0], [2.0, 2.0]])
        array([[2., 0.],
               [1., 1.]])
    """
    out = f.cholesky(matrices(a, square=True))
    return m.adjoint(out) if upper else out


@counterpart(np.linalg.qr)
def qr(a, mode="reduced"):
    """Factor matrices of full rank into orthonormal columns q and upper triangular r.

    Args:
        a: array (..., m, n).
        mode: "reduced" for q (..., m, k) and r (..., k, n), with k = min(m, n); "complete" for q (..., m, m) and
            r (..., m, n); "r" for r alone. The columns that "complete" adds are determined up to a turn, and so have
            derivatives only for what does not depend on it.

    Raises:
        numpy.linalg.LinAlgError: the derivative is asked for where the rank is not full.
        ValueError: another mode, such as "raw", which is LAPACK's own format.
    """
    x = matrices(a)
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete' or 'r' under a transform, got {mode!r}")
    rows, columns = x.shape[-2:]
    if rows >= columns:
        q, r = f.qr(x, complete=mode == "complete")
    else:  # the first columns, if they are independent, determine q
        q, r = f.qr(x[..., :rows], complete=False)
        r = s.concatenate(r, m.mm(m.adjoint(q), x[..., rows:]), axis=x.ndim - 1)
    return r if mode == "r" else QRResult(q, r)


# ---------------------------------------------------------------------------------------- eigenvalues and -vectors


def _symmetric(a, UPLO):
    """Return matrices; if a triangle is named, those that it determines."""
    x = matrices(a, square=True)
    if UPLO is None:
        return x
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    half, rest = (m.lower(x), m.lower(x, -1)) if UPLO.upper() == "L" else (m.upper(x), m.upper(x, 1))
    return half + m.adjoint(rest)


@stands_for(np.linalg.eigh)
def eigh(a, UPLO=None):
    """Find eigenvalues, ascending, and orthonormal eigenvectors of symmetric or Hermitian matrices.

    Vectors of a repeated eigenvalue are determined up to a turn in their space; turns count as no change, so that
    derivatives are right for all that does not depend on the choice: sums over repeated eigenvalues, the space of their
    vectors, vectors of other eigenvalues. Reverse mode refuses what does depend on it, and matrix functions such as
    v f(w) vᴴ where eigenvalues are repeated; forward mode cannot tell, and returns what holds without turns.

    Args:
        a: array (..., n, n).
        UPLO: None for the Hermitian part of `a`; "L" or "U" to read one triangle only.

    Returns:
        eigenvalues (..., n), real, and eigenvectors (..., n, n) in columns.

    Raises:
        numpy.linalg.LinAlgError: a matrix is not square, LAPACK does not converge, or reverse mode meets a function
            as above.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.grad(lambda a: np.linalg.eigh(a)[0].sum())(np.eye(2))
        array([[1., 0.],
               [0., 1.]])
    """
    return EighResult(*sp.eigh(_symmetric(a, UPLO))[:2])


@stands_for(np.linalg.eigvalsh)
def eigvalsh(a, UPLO=None):
    """Find the eigenvalues, ascending, of symmetric or Hermitian matrices; see `eigh`."""
    return sp.eigvalsh(_symmetric(a, UPLO))


@stands_for(np.linalg.eig)
def eig(a):
    """Find eigenvalues and eigenvectors of square matrices; both are complex always.

    Args:
        a: array (..., n, n).

    Returns:
        eigenvalues (..., n) and eigenvectors (..., n, n) in columns, of norm 1, with a real greatest component.

    Raises:
        numpy.linalg.LinAlgError: a matrix is not square, or has too few eigenvectors where the derivative is asked for.
    """
    return EigResult(*sp.eig(matrices(a, square=True))[:2])


@stands_for(np.linalg.eigvals)
def eigvals(a):
    """Find the eigenvalues, complex always, of square matrices; see `eig`."""
    return sp.eigvals(matrices(a, square=True))


# ------------------------------------------------------------------------------------------------- singular values


@counterpart(np.linalg.svd)
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """Factor matrices into orthonormal columns u, singular values s, descending, and orthonormal rows vh.

    Vectors of a repeated singular value, and those that `full_matrices` adds, are determined up to a turn in their
    space; turns count as no change, as in `eigh`, so that derivatives are right for all that does not depend on the
    choice.

    Args:
        a: array (..., m, n).
        full_matrices: make u (..., m, m) and vh (..., n, n) square; else they have k = min(m, n) columns or rows.
        compute_uv: return u and vh also, else s alone.
        hermitian: take the Hermitian part of `a`.

    Returns:
        u, s, vh; or s (..., k).

    Raises:
        numpy.linalg.LinAlgError: LAPACK does not converge, or reverse mode meets what depends on the choice of vectors.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.grad(lambda a: np.linalg.svd(a, compute_uv=False).sum())(2 * np.eye(2))
        array([[1., 0.],
               [0., 1.]])
    """
    x = matrices(a, square=hermitian)
    if hermitian:
        x = m.hermitian(x)
    return SVDResult(*sp.svd(x, full=bool(full_matrices))[:3]) if compute_uv else sp.svdvals(x)


@counterpart(np.linalg.svdvals)
def svdvals(x, /):
    """Find the singular values, descending, of matrices."""
    return sp.svdvals(matrices(x))

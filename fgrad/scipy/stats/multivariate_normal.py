"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fgrad.ops import elementwise as e
from fgrad.ops import linalg
from fgrad.ops.factor import cholesky
from fgrad.ops.shape import broadcast
from fgrad.scipy.functions import reals

__all__ = ["entropy", "logpdf", "pdf"]


def _matrix(cov: Any, size: int) -> Any:
    """Return covariances, given as numbers, vectors of variances or stacks of matrices, as matrices."""
    if cov.ndim < 2:
        cov = e.select(np.eye(size, dtype=bool), cov, 0)
    if cov.shape[-2:] != (size, size):
        raise ValueError(f"multivariate_normal: cov must be of shape (..., {size}, {size}), got {cov.shape}")
    return cov


def _logdet(factor: Any) -> Any:
    return 2 * e.log(linalg.diagonal(factor)).sum(axis=-1)


def _size(x: Any, mean: Any, cov: Any) -> int:
    """Return the dimension of the vectors."""
    return max([v.shape[-1] for v in (x, mean, cov) if v.ndim], default=1)


def logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    """Return the logarithm of the density of a normal distribution of vectors.

    Args:
        x: (..., k), or (...) for k = 1.
        mean: (..., k) or a number; None for 0.
        cov: (..., k, k) symmetric, positive definite; (k,) variances, or a number. The upper triangle is not read.
        allow_singular: take covariances that are not positive definite. The density is then that on the space they
            span, -inf off it; derivatives by a singular covariance are along those of its rank.

    Raises:
        LinAlgError: a covariance is not positive definite, and allow_singular is false.
        ValueError: shapes do not fit.

    Example:
        >>> from fgrad.scipy.stats import multivariate_normal
        >>> print(multivariate_normal.logpdf([1.0, 2.0], [0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]).round(4))
        -2.6891
    """
    x, mean, cov = reals(x, 0 if mean is None else mean, cov)
    size = _size(x, mean, cov)
    z = x - mean
    if z.ndim == 0 or size == 1 and z.shape[-1] != 1:
        z = z.reshape((*z.shape, 1))
    if allow_singular:
        return _degenerate(z, _matrix(cov, size))
    factor = cholesky(_matrix(cov, size))
    lead = z.shape[:-1]
    if factor.ndim == 2:  # one covariance: the vectors are right-hand sides of one system
        columns = z.reshape((math.prod(lead), size)).transpose((1, 0))
        white = linalg.triangular_solve(factor, columns, lower=True, unit=False)
        squares = (white * white).sum(axis=0).reshape(lead)
    else:
        lead = np.broadcast_shapes(lead, factor.shape[:-2])
        whole = broadcast(factor, shape=(*lead, size, size)), broadcast(z, shape=(*lead, size))
        white = linalg.triangular_solve(whole[0], linalg.column(whole[1]), lower=True, unit=False)
        squares = (white * white).sum(axis=(-2, -1))
    return -0.5 * (squares + _logdet(factor) + size * math.log(2 * math.pi))


def _degenerate(z: Any, cov: Any) -> Any:
    """Return the density of deviations z from the mean on the space that covariances span; the bounds are SciPy's."""
    from fgrad.numpy.linalg import eigvalsh, pinv  # loaded where it is used

    values = eigvalsh(cov)
    rtol = (1e3 if values.dtype == np.float32 else 1e6) * float(np.finfo(values.dtype).eps)
    least = rtol * e.abs(values).max(axis=-1, keepdims=True)
    kept = e.gt(values, least)
    logdet = e.select(kept, e.log(e.select(kept, values, 1)), 0).sum(axis=-1)
    rank = e.select(kept, 1.0, 0.0).sum(axis=-1)
    inverse = pinv(cov, rtol=rtol, hermitian=True)
    solved = (inverse @ z[..., None])[..., 0]
    off = z - (cov @ solved[..., None])[..., 0]
    outside = e.gt(e.square(off).sum(axis=-1), e.square(1e3 * least[..., 0]))
    density = -0.5 * ((z * solved).sum(axis=-1) + logdet + rank * math.log(2 * math.pi))
    return e.select(outside, -math.inf, density)


def pdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    """Return the density of a normal distribution of vectors, of the arguments of `logpdf`.

    Example:
        >>> from fgrad.scipy.stats import multivariate_normal
        >>> print(multivariate_normal.pdf([1.0, 2.0], [0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]).round(4))
        0.0679
    """
    return e.exp(logpdf(x, mean, cov, allow_singular))


def entropy(mean: Any = None, cov: Any = 1) -> Any:
    """Return the differential entropy of a normal distribution of vectors, in natural units.

    Example:
        >>> from fgrad.scipy.stats import multivariate_normal
        >>> print(multivariate_normal.entropy(cov=[[2.0, 0.5], [0.5, 1.0]]).round(4))
        3.1177
    """
    mean, cov = reals(0 if mean is None else mean, cov)
    size = _size(mean, mean, cov)
    return 0.5 * (_logdet(cholesky(_matrix(cov, size))) + size * (1 + math.log(2 * math.pi)))

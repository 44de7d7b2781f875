"""The Dirichlet distribution, of vectors of probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fgrad.numpy.joining import concatenate
from fgrad.ops import elementwise as e
from fgrad.ops.special import lgamma
from fgrad.scipy.functions import reals

__all__ = ["logpdf", "pdf"]

_SLACK = 1e-6
"""By how much the sum of probabilities may differ from 1."""


def logpdf(x: Any, alpha: Any) -> Any:
    """Return the logarithm of the density of the Dirichlet distribution.

    Args:
        x: probabilities along the first axis, k of them or all but the last; -inf where they are no probabilities.
        alpha: (k,), positive; NaN if not.

    Raises:
        ValueError: the first axis of x does not fit alpha.

    Example:
        >>> from fgrad.scipy.stats import dirichlet
        >>> print(dirichlet.logpdf([0.2, 0.8], [2.0, 3.0]).round(4))
        0.4292
    """
    x, alpha = reals(x, alpha)
    if alpha.ndim != 1 or not x.ndim or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError(
            f"dirichlet: alpha must have shape (k,) and x k or k - 1 entries along its first axis, got {alpha.shape} "
            f"and {x.shape}"
        )
    if x.shape[0] < alpha.shape[0]:
        x = concatenate([x, 1 - x.sum(axis=0, keepdims=True)])
    inside = e.logical_and(e.ge(x, 0).all(axis=0), e.le(e.abs(x.sum(axis=0) - 1), _SLACK))
    powers = alpha.reshape((-1, *(1,) * (x.ndim - 1))) - 1
    with np.errstate(all="ignore"):
        terms = e.xlogy(powers, e.select(inside, x, 1 / alpha.shape[0])).sum(axis=0)
    value = terms - lgamma(alpha).sum() + lgamma(alpha.sum())
    return e.select(e.gt(alpha, 0).all(), e.select(inside, value, -math.inf), math.nan)


def pdf(x: Any, alpha: Any) -> Any:
    """Return the density of the Dirichlet distribution, of the arguments of `logpdf`.

    Example:
        >>> from fgrad.scipy.stats import dirichlet
        >>> print(dirichlet.pdf([0.2, 0.8], [2.0, 3.0]).round(4))
        1.536
    """
    return e.exp(logpdf(x, alpha))

"""The multinomial distribution, of counts of n draws."""

from __future__ import annotations

import math
from typing import Any

from fgrad.ops import elementwise as e
from fgrad.ops.special import lgamma
from fgrad.scipy.functions import real

__all__ = ["logpmf", "pmf"]


def logpmf(x: Any, n: Any, p: Any) -> Any:
    """Return the logarithm of the probability of counts.

    Args:
        x: (..., k), counts; -inf where they are not whole, negative, or do not add up to n.
        n: the number of draws; broadcasts to (...).
        p: (..., k), the probability of each outcome.

    Example:
        >>> from fgrad.scipy.stats import multinomial
        >>> print(multinomial.logpmf([1, 2], 3, [0.5, 0.5]).round(4))
        -0.9808
    """
    x, n, p = real(x), real(n), real(p)
    whole = e.logical_and(e.eq(x, e.floor(x)), e.ge(x, 0)).all(axis=-1)
    fits = e.logical_and(whole, e.eq(x.sum(axis=-1), n))
    counts = e.select(e.ge(x, 0), x, 0)
    value = lgamma(n + 1) + (e.xlogy(counts, p) - lgamma(counts + 1)).sum(axis=-1)
    return e.select(fits, value, -math.inf)


def pmf(x: Any, n: Any, p: Any) -> Any:
    """Return the probability of counts, of the arguments of `logpmf`.

    Example:
        >>> from fgrad.scipy.stats import multinomial
        >>> print(multinomial.pmf([[1, 2], [2, 2]], 3, [0.5, 0.5]).round(4))
        [0.375 0.   ]
    """
    return e.exp(logpmf(x, n, p))

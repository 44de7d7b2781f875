"""The distributions of whole numbers, each by formulas for k on its support."""

from __future__ import annotations

import math

from fgrad.ops.elementwise import exp, expm1, ge, gt, le, log, log1p, lt, select, xlog1py, xlogy
from fgrad.ops.special import lgamma
from fgrad.scipy.stats.families import Discrete
from fgrad.scipy.values import betainc, gammainc, gammaincc

_COUNTS = (0.0, math.inf)


def _probability(p):
    return [ge(p, 0), le(p, 1)]


def _betaln(a, b):
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _choose(n, k):
    """Return the logarithm of the binomial coefficient."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _up_to(formula, last):
    """Return a formula for k < n, where the incomplete beta function is defined, with its value at k = n."""

    def at(k, n, p):
        short = lt(k, n)
        return select(short, formula(select(short, k, n - 1), n, p), last)

    return at


bernoulli = Discrete(
    "bernoulli",
    "p",
    "The distribution of 1 with probability p, else 0.",
    (0.0, 1.0),
    _probability,
    logpmf=lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
    cdf=lambda k, p: select(lt(k, 1), 1 - p, 1.0),
    sf=lambda k, p: select(lt(k, 1), p, 0.0),
)
binom = Discrete(
    "binom",
    "n p",
    "The binomial distribution: successes among n trials, of probability p each.",
    (0.0, lambda n, p: n),
    lambda n, p: [ge(n, 0), *_probability(p)],
    logpmf=lambda k, n, p: _choose(n, k) + xlogy(k, p) + xlog1py(n - k, -p),
    cdf=_up_to(lambda k, n, p: betainc(n - k, k + 1, 1 - p), 1.0),
    sf=_up_to(lambda k, n, p: betainc(k + 1, n - k, p), 0.0),
)
betabinom = Discrete(
    "betabinom",
    "n a b",
    "The binomial distribution whose probability has a beta distribution.",
    (0.0, lambda n, a, b: n),
    lambda n, a, b: [ge(n, 0), gt(a, 0), gt(b, 0)],
    logpmf=lambda k, n, a, b: _choose(n, k) + _betaln(k + a, n - k + b) - _betaln(a, b),
)
nbinom = Discrete(
    "nbinom",
    "n p",
    "The negative binomial distribution: failures before the n-th success, of probability p each.",
    _COUNTS,
    lambda n, p: [gt(n, 0), gt(p, 0), le(p, 1)],
    logpmf=lambda k, n, p: lgamma(k + n) - lgamma(k + 1) - lgamma(n) + n * log(p) + xlog1py(k, -p),
    cdf=lambda k, n, p: betainc(n, k + 1, p),
    sf=lambda k, n, p: betainc(k + 1, n, 1 - p),
)
geom = Discrete(
    "geom",
    "p",
    "The geometric distribution: trials up to the first success, of probability p each.",
    (1.0, math.inf),
    lambda p: [gt(p, 0), le(p, 1)],
    logpmf=lambda k, p: xlog1py(k - 1, -p) + log(p),
    cdf=lambda k, p: -expm1(k * log1p(-p)),
    sf=lambda k, p: exp(k * log1p(-p)),
)
poisson = Discrete(
    "poisson",
    "mu",
    "The Poisson distribution of mean mu.",
    _COUNTS,
    lambda mu: [ge(mu, 0)],
    logpmf=lambda k, mu: xlogy(k, mu) - lgamma(k + 1) - mu,
    cdf=lambda k, mu: gammaincc(k + 1, mu),
    sf=lambda k, mu: gammainc(k + 1, mu),
)

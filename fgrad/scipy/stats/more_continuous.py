"""More continuous distributions: truncated, folded, skewed and extreme ones, each by formulas for its standard form."""

from __future__ import annotations

import math

from fgrad.ops.elementwise import (
    abs,
    atan,
    cos,
    eq,
    exp,
    expm1,
    ge,
    gt,
    le,
    log,
    log1p,
    lt,
    max,
    min,
    select,
    sqrt,
    tan,
    xlogy,
)
from fgrad.ops.special import erf, erfc, lgamma
from fgrad.scipy.stats.families import Continuous
from fgrad.scipy.values import (
    betainc,
    betaincinv,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    log_ndtr,
    ndtr,
    ndtri,
    owens_t,
)

_POSITIVE = (0.0, math.inf)
_LOG_ROOT = 0.5 * math.log(2 * math.pi)


# ------------------------------------------------------------------------------------- cut from the normal one


def _tail_and_ratio(a, b):
    """Return log Φ(high), log Φ(low) - log Φ(high) and whether low is -inf, for a, b mirrored into the lower tail."""
    above = gt(a, 0)
    low, high = select(above, -b, a), select(above, -a, b)
    open_ = eq(low, -math.inf)
    tail = log_ndtr(high)
    return tail, select(open_, 0, log_ndtr(select(open_, 0, low)) - tail), open_


def _log_mass(a, b):
    """Return the logarithm of the normal probability between a and b."""
    tail, ratio, open_ = _tail_and_ratio(a, b)
    return tail + log1p(-select(open_, 0, exp(ratio)))


def _mass(a, z, whole):
    """Return the normal probability between a and z, divided by exp(whole); its derivative at z = a is finite."""
    tail, ratio, open_ = _tail_and_ratio(a, z)
    return exp(tail - whole) * select(open_, 1, -expm1(ratio))


def _log_share(part, rest, whole):
    """Return the logarithm of a probability, by that of the rest where it is near 0."""
    size = part - whole
    most = gt(size, -0.1)
    return select(most, log1p(-exp(select(most, rest, -math.inf) - whole)), size)


def _truncnorm_ppf(q, a, b):
    above = gt(a, 0)
    low, high = select(above, -b, a), select(above, -a, b)
    share = select(above, 1 - q, q)
    z = ndtri(ndtr(low) * (1 - share) + ndtr(high) * share)
    return select(above, -z, z)


truncnorm = Continuous(
    "truncnorm",
    "a b",
    "The standard normal distribution cut to a ≤ z ≤ b; bounds may be infinite.",
    (lambda a, b: a, lambda a, b: b),
    lambda a, b: [lt(a, b)],
    inside=lambda a, b: max(a, min(b, 0)),
    logpdf=lambda z, a, b: -0.5 * (z * z) - _LOG_ROOT - _log_mass(a, b),
    logcdf=lambda z, a, b: _log_share(_log_mass(a, z), _log_mass(z, b), _log_mass(a, b)),
    logsf=lambda z, a, b: _log_share(_log_mass(z, b), _log_mass(a, z), _log_mass(a, b)),
    cdf=lambda z, a, b: _mass(a, z, _log_mass(a, b)),
    sf=lambda z, a, b: _mass(z, b, _log_mass(a, b)),
    ppf=_truncnorm_ppf,
)
halfnorm = Continuous(
    "halfnorm",
    "",
    "The distribution of |z| for a normal z.",
    _POSITIVE,
    logpdf=lambda z: 0.5 * math.log(2 / math.pi) - 0.5 * (z * z),
    cdf=lambda z: erf(z * math.sqrt(0.5)),
    sf=lambda z: erfc(z * math.sqrt(0.5)),
    logsf=lambda z: math.log(2) + log_ndtr(-z),
    ppf=lambda q: ndtri((1 + q) / 2),
    isf=lambda q: -ndtri(q / 2),
)
halfcauchy = Continuous(
    "halfcauchy",
    "",
    "The distribution of |z| for a Cauchy z.",
    _POSITIVE,
    logpdf=lambda z: math.log(2 / math.pi) - log1p(z * z),
    cdf=lambda z: 2 / math.pi * atan(z),
    sf=lambda z: 2 / math.pi * atan(1 / z),
    ppf=lambda q: tan(math.pi / 2 * q),
    isf=lambda q: 1 / tan(math.pi / 2 * q),
)
skewnorm = Continuous(
    "skewnorm",
    "a",
    "The skew normal distribution, of skewness a.",
    valid=lambda a: [],
    logpdf=lambda z, a: math.log(2) - _LOG_ROOT - 0.5 * (z * z) + log_ndtr(a * z),
    cdf=lambda z, a: ndtr(z) - 2 * owens_t(z, a),
    sf=lambda z, a: ndtr(-z) - 2 * owens_t(-z, -a),
)

# ----------------------------------------------------------------------------------- lifetimes and ratios


weibull_min = Continuous(
    "weibull_min",
    "c",
    "The Weibull distribution of minima, of shape c.",
    _POSITIVE,
    logpdf=lambda z, c: log(c) + xlogy(c - 1, z) - z**c,
    cdf=lambda z, c: -expm1(-(z**c)),
    sf=lambda z, c: exp(-(z**c)),
    logsf=lambda z, c: -(z**c),
    ppf=lambda q, c: (-log1p(-q)) ** (1 / c),
    isf=lambda q, c: (-log(q)) ** (1 / c),
)
rayleigh = Continuous(
    "rayleigh",
    "",
    "The distribution of the length of a normal vector of two dimensions.",
    _POSITIVE,
    logpdf=lambda z: log(z) - 0.5 * (z * z),
    cdf=lambda z: -expm1(-0.5 * (z * z)),
    sf=lambda z: exp(-0.5 * (z * z)),
    logsf=lambda z: -0.5 * (z * z),
    ppf=lambda q: sqrt(-2 * log1p(-q)),
    isf=lambda q: sqrt(-2 * log(q)),
)
invgamma = Continuous(
    "invgamma",
    "a",
    "The distribution of 1 / z for a z of the gamma distribution of shape a.",
    _POSITIVE,
    logpdf=lambda z, a: -(a + 1) * log(z) - lgamma(a) - 1 / z,
    cdf=lambda z, a: gammaincc(a, 1 / z),
    sf=lambda z, a: gammainc(a, 1 / z),
    ppf=lambda q, a: 1 / gammainccinv(a, q),
    isf=lambda q, a: 1 / gammaincinv(a, q),
)


def _share(z, dfn, dfd):
    """Return the place in the unit interval at which the beta distribution stands for F at z."""
    return dfn * z / (dfn * z + dfd)


def _f(z, dfn, dfd):
    n, m = dfn / 2, dfd / 2
    size = lgamma(n + m) - lgamma(n) - lgamma(m)
    return size + n * log(dfn) + m * log(dfd) + xlogy(n - 1, z) - (n + m) * log(dfd + dfn * z)


def _f_ppf(q, dfn, dfd):
    share = betaincinv(dfn / 2, dfd / 2, q)
    return dfd * share / (dfn * (1 - share))


f = Continuous(
    "f",
    "dfn dfd",
    "The F distribution of dfn and dfd degrees of freedom.",
    _POSITIVE,
    logpdf=_f,
    cdf=lambda z, dfn, dfd: betainc(dfn / 2, dfd / 2, _share(z, dfn, dfd)),
    sf=lambda z, dfn, dfd: betainc(dfd / 2, dfn / 2, dfd / (dfd + dfn * z)),
    ppf=_f_ppf,
)

# -------------------------------------------------------------------------------- tails, and the circle


def _gennorm_sf(z, beta):
    far = 0.5 * gammaincc(1 / beta, abs(z) ** beta)
    return select(ge(z, 0), far, 1 - far)


def _gennorm_ppf(q, beta):
    low = lt(q, 0.5)
    size = gammainccinv(1 / beta, 2 * select(low, q, 1 - q)) ** (1 / beta)
    return select(low, -size, size)


gennorm = Continuous(
    "gennorm",
    "beta",
    "The generalised normal distribution, of density like exp(-|z|^beta).",
    logpdf=lambda z, beta: log(0.5 * beta) - lgamma(1 / beta) - abs(z) ** beta,
    cdf=lambda z, beta: _gennorm_sf(-z, beta),
    sf=_gennorm_sf,
    ppf=_gennorm_ppf,
)


def _wrapcauchy_cdf(z, c):
    turns = (1 + c) / (1 - c)
    angle = atan(turns * tan(select(eq(z, math.pi), 0, z) / 2)) / math.pi
    return select(eq(z, math.pi), 0.5, select(lt(z, math.pi), angle, 1 + angle))


def _wrapcauchy_ppf(q, c):
    turns = (1 - c) / (1 + c)
    angle = 2 * atan(turns * tan(math.pi * q))
    return select(le(q, 0.5), angle, 2 * math.pi + angle)


wrapcauchy = Continuous(
    "wrapcauchy",
    "c",
    "The Cauchy distribution wrapped around the circle, on 0 ≤ z ≤ 2π.",
    (0.0, 2 * math.pi),
    lambda c: [gt(c, 0), lt(c, 1)],
    logpdf=lambda z, c: log((1 - c) * (1 + c)) - math.log(2 * math.pi) - log(1 + c * c - 2 * c * cos(z)),
    cdf=_wrapcauchy_cdf,
    sf=lambda z, c: 1 - _wrapcauchy_cdf(z, c),
    ppf=_wrapcauchy_ppf,
)

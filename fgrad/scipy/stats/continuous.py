"""The continuous distributions, each by formulas for its standard form."""

from __future__ import annotations

import math

from fgrad.ops.elementwise import (
    abs,
    atan2,
    cos,
    exp,
    expm1,
    le,
    log,
    log1p,
    log_sigmoid,
    lt,
    select,
    sigmoid,
    tan,
    xlog1py,
    xlogy,
)
from fgrad.ops.special import lgamma
from fgrad.scipy.stats.families import Continuous
from fgrad.scipy.values import (
    betainc,
    betaincinv,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    i0e,
    log_ndtr,
    ndtr,
    ndtri,
    stdtr,
    stdtrit,
)

_POSITIVE = (0.0, math.inf)
_UNIT = (0.0, 1.0)


def _logit(q):
    return log(q) - log1p(-q)


norm = Continuous(
    "norm",
    "",
    "The normal distribution, of mean loc and standard deviation scale.",
    logpdf=lambda z: -0.5 * (z * z) - 0.5 * math.log(2 * math.pi),
    cdf=ndtr,
    sf=lambda z: ndtr(-z),
    logcdf=log_ndtr,
    logsf=lambda z: log_ndtr(-z),
    ppf=ndtri,
    isf=lambda q: -ndtri(q),
)
lognorm = Continuous(
    "lognorm",
    "s",
    "The distribution of exp(s z) for a normal z.",
    _POSITIVE,
    logpdf=lambda z, s: _lognorm(log(z), s),
    cdf=lambda z, s: ndtr(log(z) / s),
    sf=lambda z, s: ndtr(-log(z) / s),
    logcdf=lambda z, s: log_ndtr(log(z) / s),
    logsf=lambda z, s: log_ndtr(-log(z) / s),
    ppf=lambda q, s: exp(s * ndtri(q)),
    isf=lambda q, s: exp(-s * ndtri(q)),
)


def _lognorm(size, s):
    """Return the density's logarithm as a product, which at 0 is -inf and not inf - inf."""
    return -size * (size / (2 * s * s) + 1) - log(s * math.sqrt(2 * math.pi))


def _t(z, df):
    size = lgamma((df + 1) / 2) - lgamma(df / 2) - 0.5 * log(df * math.pi)
    return size - (df + 1) / 2 * log1p(z * z / df)


t = Continuous(
    "t",
    "df",
    "Student's t distribution of df degrees of freedom; second derivatives by df are those of the density alone.",
    logpdf=_t,
    cdf=lambda z, df: stdtr(df, z),
    sf=lambda z, df: stdtr(df, -z),
    ppf=lambda q, df: stdtrit(df, q),
    isf=lambda q, df: -stdtrit(df, q),
)
cauchy = Continuous(
    "cauchy",
    "",
    "The Cauchy distribution.",
    logpdf=lambda z: -math.log(math.pi) - log1p(z * z),
    cdf=lambda z: atan2(1, -z) / math.pi,
    sf=lambda z: atan2(1, z) / math.pi,
    ppf=lambda q: tan(math.pi * (q - 0.5)),
    isf=lambda q: tan(math.pi * (0.5 - q)),
)


def _laplace_cdf(z):
    half = 0.5 * exp(-abs(z))
    return select(le(z, 0), half, 1 - half)


def _laplace_logcdf(z):
    return select(le(z, 0), -abs(z) - math.log(2), log1p(-0.5 * exp(-abs(z))))


def _laplace_ppf(q):
    low = lt(q, 0.5)
    side = log(2 * select(low, q, 1 - q))
    return select(low, side, -side)


laplace = Continuous(
    "laplace",
    "",
    "The Laplace distribution.",
    logpdf=lambda z: -abs(z) - math.log(2),
    cdf=_laplace_cdf,
    sf=lambda z: _laplace_cdf(-z),
    logcdf=_laplace_logcdf,
    logsf=lambda z: _laplace_logcdf(-z),
    ppf=_laplace_ppf,
    isf=lambda q: -_laplace_ppf(q),
)
logistic = Continuous(
    "logistic",
    "",
    "The logistic distribution.",
    logpdf=lambda z: log_sigmoid(z) + log_sigmoid(-z),
    cdf=sigmoid,
    sf=lambda z: sigmoid(-z),
    logcdf=log_sigmoid,
    logsf=lambda z: log_sigmoid(-z),
    ppf=_logit,
    isf=lambda q: -_logit(q),
)
gumbel_r = Continuous(
    "gumbel_r",
    "",
    "The Gumbel distribution of maxima.",
    logpdf=lambda z: -z - exp(-z),
    cdf=lambda z: exp(-exp(-z)),
    sf=lambda z: -expm1(-exp(-z)),
    logcdf=lambda z: -exp(-z),
    ppf=lambda q: -log(-log(q)),
    isf=lambda q: -log(-log1p(-q)),
)
gumbel_l = Continuous(
    "gumbel_l",
    "",
    "The Gumbel distribution of minima.",
    logpdf=lambda z: z - exp(z),
    cdf=lambda z: -expm1(-exp(z)),
    sf=lambda z: exp(-exp(z)),
    logsf=lambda z: -exp(z),
    ppf=lambda q: log(-log1p(-q)),
    isf=lambda q: log(-log(q)),
)
vonmises = Continuous(
    "vonmises",
    "kappa",
    "The von Mises distribution on the circle, of angles z in radians.",
    logpdf=lambda z, kappa: kappa * (cos(z) - 1) - log(2 * math.pi * i0e(kappa)),
)

# ---------------------------------------------------------------------------------------- on a half-line or interval

expon = Continuous(
    "expon",
    "",
    "The exponential distribution, of mean scale.",
    _POSITIVE,
    logpdf=lambda z: -z,
    cdf=lambda z: -expm1(-z),
    sf=lambda z: exp(-z),
    logsf=lambda z: -z,
    ppf=lambda q: -log1p(-q),
    isf=lambda q: -log(q),
)
gamma = Continuous(
    "gamma",
    "a",
    "The gamma distribution of shape a; second derivatives by a are those of the density alone.",
    _POSITIVE,
    logpdf=lambda z, a: xlogy(a - 1, z) - z - lgamma(a),
    cdf=lambda z, a: gammainc(a, z),
    sf=lambda z, a: gammaincc(a, z),
    ppf=lambda q, a: gammaincinv(a, q),
    isf=lambda q, a: gammainccinv(a, q),
)
chi2 = Continuous(
    "chi2",
    "df",
    "The chi-squared distribution of df degrees of freedom; second derivatives by df are those of the density alone.",
    _POSITIVE,
    logpdf=lambda z, df: xlogy(df / 2 - 1, z / 2) - z / 2 - lgamma(df / 2) - math.log(2),
    cdf=lambda z, df: gammainc(df / 2, z / 2),
    sf=lambda z, df: gammaincc(df / 2, z / 2),
    ppf=lambda q, df: 2 * gammaincinv(df / 2, q),
    isf=lambda q, df: 2 * gammainccinv(df / 2, q),
)
pareto = Continuous(
    "pareto",
    "b",
    "The Pareto distribution of exponent b, on z ≥ 1.",
    (1.0, math.inf),
    logpdf=lambda z, b: log(b) - (b + 1) * log(z),
    cdf=lambda z, b: -expm1(-b * log(z)),
    sf=lambda z, b: exp(-b * log(z)),
    logsf=lambda z, b: -b * log(z),
    ppf=lambda q, b: exp(-log1p(-q) / b),
    isf=lambda q, b: exp(-log(q) / b),
)
beta = Continuous(
    "beta",
    "a b",
    "The beta distribution on the unit interval; second derivatives by a and b are those of the density alone.",
    _UNIT,
    logpdf=lambda z, a, b: xlogy(a - 1, z) + xlog1py(b - 1, -z) - lgamma(a) - lgamma(b) + lgamma(a + b),
    cdf=lambda z, a, b: betainc(a, b, z),
    sf=lambda z, a, b: betainc(b, a, 1 - z),
    ppf=lambda q, a, b: betaincinv(a, b, q),
    isf=lambda q, a, b: 1 - betaincinv(b, a, q),
)
uniform = Continuous(
    "uniform",
    "",
    "The uniform distribution from loc to loc + scale.",
    _UNIT,
    logpdf=lambda z: 0 * z,
    cdf=lambda z: 1 * z,
    sf=lambda z: 1 - z,
    ppf=lambda q: 1 * q,
)

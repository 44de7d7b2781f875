"""Primitives whose values SciPy computes, in double precision; their derivatives are formulas in each other.

SciPy is imported when a value is first computed. A derivative that has no closed form raises NotImplementedError.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from fgrad.kinds import elementwise
from fgrad.ops.elementwise import exp, log, log1p, select, sign, xlog1py, xlogy
from fgrad.ops.special import digamma, lgamma
from fgrad.scipy.installed import scipys


def _compute(name: str, *xs: Any) -> Any:
    """Return a function of SciPy's in double precision, cast to the dtype that a floating ufunc would give."""
    dtype = np.result_type(np.result_type(*xs), np.float16)
    if dtype.kind != "f":
        raise TypeError(f"{name} is computed for real arguments only, got {dtype}")
    with np.errstate(all="ignore"):
        out = getattr(scipys("special", name), name)(*[np.asarray(x, np.float64) for x in xs])
        return np.asarray(out).astype(dtype)


def _scipys_own(name: str, d: Any, doc: str, function: str | None = None) -> Any:
    """Declare the primitive of a function of SciPy's, of the same name unless `function` says otherwise."""
    return elementwise(name, functools.partial(_compute, function or name), d=d, doc=doc)


def _unknown(function: str, argument: str) -> Any:
    """Return the partial derivative that refuses to be taken."""

    def refuse(t):
        raise NotImplementedError(
            f"{function} has no derivative in closed form by {argument}; hold {argument} constant, or give a rule by "
            "fgrad.custom_jvp"
        )

    return refuse


# -------------------------------------------------------------------------------------------- error functions

_ROOT = math.sqrt(math.pi)

erfcx = _scipys_own("erfcx", lambda x, out: 2 * x * out - 2 / _ROOT, "exp(x²) erfc(x).")
erfcinv = _scipys_own("erfcinv", lambda out: -_ROOT / 2 * exp(out * out), "The inverse of erfc.")
ndtri = _scipys_own(
    "ndtri", lambda out: math.sqrt(2) * _ROOT * exp(out * out / 2), "The inverse of the normal distribution function."
)
log_ndtr = _scipys_own(
    "log_ndtr",
    lambda x: math.sqrt(2 / math.pi) / erfcx(x * -math.sqrt(0.5)),
    "The logarithm of the normal distribution function.",
)
dawsn = _scipys_own("dawsn", lambda x, out: 1 - 2 * x * out, "Dawson's integral exp(-x²) ∫₀ˣ exp(t²) dt.")

# --------------------------------------------------------------------------------------- exponential integrals

exp1 = _scipys_own("exp1", lambda t, x: -t * exp(-x) / x, "∫ₓ exp(-t)/t dt.")
expi = _scipys_own("expi", lambda t, x: t * exp(x) / x, "The principal value of ∫ exp(t)/t dt up to x.")

# ---------------------------------------------------------------------------- zeta, gamma, incomplete gamma, beta

gamma = _scipys_own("gamma", lambda x, out: out * digamma(x), "Γ(x).")
riemann_zeta = _scipys_own("riemann_zeta", _unknown("zeta", "x"), "Σ n⁻ˣ over n ≥ 1, continued.", "zeta")
hurwitz_zeta = _scipys_own(
    "hurwitz_zeta",
    (_unknown("zeta", "x"), lambda x, y: -x * hurwitz_zeta(x + 1, y)),
    "Σ (n + y)⁻ˣ over n ≥ 0.",
    "zeta",
)


def _gamma_density(x, y):
    return exp(xlogy(x - 1, y) - y - lgamma(x))


def _series_slope(x, y):
    """Return the derivative by x of the regularised lower incomplete gamma function of parameter x at y.

    Its series Σ yˢ exp(-y) / Γ(s + 1) over s = x, x + 1, … (DLMF 8.7.1) is differentiated term by term, from the
    largest term in both directions. As many terms count as a Poisson distribution of mean y spreads over. Terms of
    either sign are added: the error is absolute, about 1e-15.
    """
    logy = np.log(y)
    peak = np.maximum(np.floor(y - x), 0)
    start = x + peak
    top = np.exp(start * logy - y - lgamma.impl(start + 1))
    slope = logy - digamma.impl(start + 1)
    out = top * slope
    reach = int(10 * math.sqrt(np.max(y, where=np.isfinite(y), initial=0))) + 50
    s, term, rate = start, top, slope
    for _ in range(reach):
        s = s + 1
        term, rate = term * y / s, rate - 1 / s
        out = out + term * rate
    s, term, rate = start, top, slope
    for k in range(min(reach, int(np.max(peak, where=np.isfinite(peak), initial=0)))):
        term, rate = np.where(k < peak, term * s / y, 0), rate + 1 / s
        s = s - 1
        out = out + np.where(term == 0, 0, term * rate)
    return out


def _gammainc_slope(x, y):
    dtype = np.result_type(np.result_type(x, y), np.float16)
    x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    inside = (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y)
    with np.errstate(all="ignore"):
        out = _series_slope(np.where(inside, x, 1.0), np.where(inside, y, 1.0))
        outside = np.where((x > 0) & (y >= 0), 0, np.nan)
        return np.where(inside, out, outside).astype(dtype)


gammainc_slope = elementwise(
    "gammainc_slope",
    _gammainc_slope,
    d=(
        _unknown("the derivative of gammainc by a", "a"),
        lambda x, y: _gamma_density(x, y) * (log(select(y > 0, y, 1)) - digamma(x)),
    ),
    doc="The derivative of gammainc by its parameter x.",
)
gammainc = _scipys_own(
    "gammainc",
    (lambda x, y: gammainc_slope(x, y), _gamma_density),
    "The regularised lower incomplete gamma function, of parameter x, at y.",
)
gammaincc = _scipys_own(
    "gammaincc",
    (lambda x, y: -gammainc_slope(x, y), lambda x, y: -_gamma_density(x, y)),
    "The regularised upper incomplete gamma function, of parameter x, at y.",
)
betainc = _scipys_own(
    "betainc",
    (
        _unknown("betainc", "a"),
        _unknown("betainc", "b"),
        lambda x, y, z: exp(xlogy(x - 1, z) + xlog1py(y - 1, -z) + lgamma(x + y) - lgamma(x) - lgamma(y)),
    ),
    "The regularised incomplete beta function, of parameters x and y, at z.",
)


def _t_density(x, y):
    """Return the density of Student's t distribution with x degrees of freedom."""
    size = lgamma((x + 1) / 2) - lgamma(x / 2) - 0.5 * log(x * math.pi)
    return exp(size - (x + 1) / 2 * log1p(y * y / x))


stdtr = _scipys_own("stdtr", (_unknown("t.cdf", "df"), _t_density), "The distribution function of Student's t.")
stdtrit = _scipys_own(
    "stdtrit",
    (_unknown("t.ppf", "df"), lambda t, x, out: t / _t_density(x, out)),
    "The quantiles of Student's t distribution.",
)

# --------------------------------------------------------------------------------------------- Bessel functions
# DLMF 10.6.1, 10.6.2, 10.29.1 and 10.29.2; the order comes first.

j0 = _scipys_own("j0", lambda x: -j1(x), "The Bessel function of the first kind and order 0.")
j1 = _scipys_own("j1", lambda x: (j0(x) - jv(2, x)) / 2, "The Bessel function of the first kind and order 1.")
y0 = _scipys_own("y0", lambda x: -y1(x), "The Bessel function of the second kind and order 0.")
y1 = _scipys_own("y1", lambda x: (y0(x) - yv(2, x)) / 2, "The Bessel function of the second kind and order 1.")
i0 = _scipys_own("i0", lambda x: i1(x), "The modified Bessel function of the first kind and order 0.")
i1 = _scipys_own("i1", lambda x: (i0(x) + iv(2, x)) / 2, "The modified Bessel function of the first kind and order 1.")
i0e = _scipys_own("i0e", lambda x, out: i1e(x) - sign(x) * out, "exp(-|x|) i0(x).")
i1e = _scipys_own("i1e", lambda x, out: (i0e(x) + ive(2, x)) / 2 - sign(x) * out, "exp(-|x|) i1(x).")
jv = _scipys_own(
    "jv",
    (_unknown("jv", "v"), lambda x, y: (jv(x - 1, y) - jv(x + 1, y)) / 2),
    "The Bessel function of the first kind, of order x, at y.",
)
yv = _scipys_own(
    "yv",
    (_unknown("yv", "v"), lambda x, y: (yv(x - 1, y) - yv(x + 1, y)) / 2),
    "The Bessel function of the second kind, of order x, at y.",
)
iv = _scipys_own(
    "iv",
    (_unknown("iv", "v"), lambda x, y: (iv(x - 1, y) + iv(x + 1, y)) / 2),
    "The modified Bessel function of the first kind, of order x, at y.",
)
ive = _scipys_own(
    "ive",
    (_unknown("ive", "v"), lambda x, y, out: (ive(x - 1, y) + ive(x + 1, y)) / 2 - sign(y) * out),
    "exp(-|y|) iv(x, y).",
)
kv = _scipys_own(
    "kv",
    (_unknown("kv", "v"), lambda x, y: -(kv(x - 1, y) + kv(x + 1, y)) / 2),
    "The modified Bessel function of the second kind, of order x, at y.",
)

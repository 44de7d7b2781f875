"""Primitives whose values SciPy computes, in double precision; their derivatives are formulas in each other.

SciPy is imported when a value is first computed. A derivative that has no closed form raises NotImplementedError.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from fgrad.kinds import elementwise
from fgrad.ops.elementwise import abs, cos, exp, log, log1p, select, sign, sin, sqrt, xlog1py, xlogy
from fgrad.ops.special import digamma, erf, erfc, lgamma, sinc
from fgrad.scipy import slopes
from fgrad.scipy.installed import scipys


def _compute(name: str, *xs: Any, output: int | None = None) -> Any:
    """Return a function of SciPy's in double precision, cast to the dtype that a floating ufunc would give.

    Of several outputs the one of number `output` is returned.
    """
    dtype = np.result_type(np.result_type(*xs), np.float16)
    if dtype.kind != "f":
        raise TypeError(f"{name} is computed for real arguments only, got {dtype}")
    with np.errstate(all="ignore"):
        out = getattr(scipys("special", name), name)(*[np.asarray(x, np.float64) for x in xs])
        return np.asarray(out if output is None else out[output]).astype(dtype)


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
erfi = _scipys_own("erfi", lambda x: 2 / _ROOT * exp(x * x), "-i erf(ix).")
erfcinv = _scipys_own("erfcinv", lambda out: -_ROOT / 2 * exp(out * out), "The inverse of erfc.")


def ndtr(x):
    """Return the normal distribution function."""
    return 0.5 * erfc(x * -math.sqrt(0.5))


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

expn = _scipys_own(
    "expn",
    (_unknown("expn", "n"), lambda x, y, out: ((x - 1) * out - exp(-y)) / y),
    "∫ exp(-y t) / tˣ dt over t ≥ 1, of whole x.",
)
sine_integral = elementwise(
    "sine_integral",
    lambda x: _compute("sici", x, output=0),
    d=lambda x: sinc(x / math.pi),
    doc="∫ sin(t)/t dt from 0 to x.",
)
cosine_integral = elementwise(
    "cosine_integral",
    lambda x: _compute("sici", x, output=1),
    d=lambda t, x: t * cos(x) / x,
    doc="Euler's constant + log(x) + ∫ (cos(t) - 1)/t dt from 0 to x.",
)
fresnel_sine = elementwise(
    "fresnel_sine",
    lambda x: _compute("fresnel", x, output=0),
    d=lambda x: sin(math.pi / 2 * x * x),
    doc="∫ sin(π t²/2) dt from 0 to x.",
)
fresnel_cosine = elementwise(
    "fresnel_cosine",
    lambda x: _compute("fresnel", x, output=1),
    d=lambda x: cos(math.pi / 2 * x * x),
    doc="∫ cos(π t²/2) dt from 0 to x.",
)


def _logarithm_over(x):
    """Return log(x) / (1 - x), by its series where x is near 1."""
    u = x - 1
    near = abs(u) < 1e-3
    small, large = select(near, u, 0), select(near, 1, u)
    series = 1 - small * (1 / 2 - small * (1 / 3 - small * (1 / 4 - small * (1 / 5 - small / 6))))
    return -select(near, series, log1p(large) / large)


spence = _scipys_own("spence", _logarithm_over, "∫ log(t)/(1 - t) dt from 1 to x.")


def _exprel_slope(x, out):
    """Return the derivative of (exp(x) - 1) / x, by its series where x is near 0."""
    near = abs(x) < 1e-2
    small, large = select(near, x, 0), select(near, 1, x)
    series = 0.5
    power = 1.0
    for k in range(2, 8):
        power = power * small
        series = series + power * (k / math.factorial(k + 1))
    return select(near, series, (exp(large) - out) / large)


exprel = _scipys_own("exprel", _exprel_slope, "(exp(x) - 1) / x, 1 at 0.")
owens_t = _scipys_own(
    "owens_t",
    (
        lambda x, y: -erf(x * y / math.sqrt(2)) * exp(-x * x / 2) / math.sqrt(8 * math.pi),
        lambda x, y: exp(-x * x * (1 + y * y) / 2) / (2 * math.pi * (1 + y * y)),
    ),
    "∫ exp(-x² (1 + t²) / 2) / (1 + t²) dt from 0 to y, over 2π.",
)

# ------------------------------------------------------------------- hypergeometric functions (DLMF 13.3.15, 15.5.1)

hyp0f1 = _scipys_own("hyp0f1", (_unknown("hyp0f1", "v"), lambda x, y: hyp0f1(x + 1, y) / x), "₀F₁(; x; y).")
hyp1f1 = _scipys_own(
    "hyp1f1",
    (_unknown("hyp1f1", "a"), _unknown("hyp1f1", "b"), lambda x, y, z: x / y * hyp1f1(x + 1, y + 1, z)),
    "₁F₁(x; y; z).",
)
hyp2f1 = elementwise(
    "hyp2f1",
    lambda w, x, y, z: _compute("hyp2f1", w, x, y, z),
    d=(
        _unknown("hyp2f1", "a"),
        _unknown("hyp2f1", "b"),
        _unknown("hyp2f1", "c"),
        lambda w, x, y, z: w * x / y * hyp2f1(w + 1, x + 1, y + 1, z),
    ),
    doc="₂F₁(w, x; y; z).",
)

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


gammainc_slope = elementwise(
    "gammainc_slope",
    slopes.gammainc_slope,
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
gammaincinv = _scipys_own(
    "gammaincinv",
    (
        lambda t, x, out: -t * gammainc_slope(x, out) / _gamma_density(x, out),
        lambda t, x, out: t / _gamma_density(x, out),
    ),
    "The y at which gammainc of parameter x is the second argument.",
)
gammainccinv = _scipys_own(
    "gammainccinv",
    (
        lambda t, x, out: -t * gammainc_slope(x, out) / _gamma_density(x, out),
        lambda t, x, out: -t / _gamma_density(x, out),
    ),
    "The y at which gammaincc of parameter x is the second argument.",
)


def _beta_density(x, y, z):
    return exp(xlogy(x - 1, z) + xlog1py(y - 1, -z) + lgamma(x + y) - lgamma(x) - lgamma(y))


betainc_slope = elementwise(
    "betainc_slope",
    slopes.betainc_slope,
    d=(
        _unknown("the derivative of betainc by a", "a"),
        _unknown("the derivative of betainc by a", "b"),
        lambda x, y, z: _beta_density(x, y, z) * (log(select(z > 0, z, 1)) - digamma(x) + digamma(x + y)),
    ),
    doc="The derivative of betainc by its first parameter x.",
)
betainc = _scipys_own(
    "betainc",
    (lambda x, y, z: betainc_slope(x, y, z), lambda x, y, z: -betainc_slope(y, x, 1 - z), _beta_density),
    "The regularised incomplete beta function, of parameters x and y, at z.",
)
betaincinv = _scipys_own(
    "betaincinv",
    (
        lambda t, x, y, out: -t * betainc_slope(x, y, out) / _beta_density(x, y, out),
        lambda t, x, y, out: t * betainc_slope(y, x, 1 - out) / _beta_density(x, y, out),
        lambda t, x, y, out: t / _beta_density(x, y, out),
    ),
    "The z at which betainc of parameters x and y is the third argument.",
)


def _t_density(x, y):
    """Return the density of Student's t distribution with x degrees of freedom."""
    size = lgamma((x + 1) / 2) - lgamma(x / 2) - 0.5 * log(x * math.pi)
    return exp(size - (x + 1) / 2 * log1p(y * y / x))


def _t_slope(x, y):
    """Return the derivative of stdtr by x: of 1 - I(x / 2, 1/2; w) / 2 with w = x / (x + y²) for y > 0, mirrored."""
    whole = x + y * y
    w = x / whole
    by_w = exp(xlogy(x / 2 - 1, w) + lgamma((x + 1) / 2) - lgamma(x / 2)) / _ROOT * abs(y) / (whole * sqrt(whole))
    return -0.5 * sign(y) * (0.5 * betainc_slope(x / 2, 0.5, w) + by_w)


stdtr = _scipys_own("stdtr", (_t_slope, _t_density), "The distribution function of Student's t.")
stdtrit = _scipys_own(
    "stdtrit",
    (lambda t, x, out: -t * _t_slope(x, out) / _t_density(x, out), lambda t, x, out: t / _t_density(x, out)),
    "The quantiles of Student's t distribution.",
)

# --------------------------------------------------------------------------------------------- Bessel functions
# DLMF 10.6.1, 10.6.2, 10.29.1 and 10.29.2; the order comes first.

j0 = _scipys_own("j0", lambda x: -j1(x), "The Bessel function of the first kind and order 0.")
j1 = _scipys_own("j1", lambda x: (j0(x) - jv(2, x)) / 2, "The Bessel function of the first kind and order 1.")
y0 = _scipys_own("y0", lambda x: -y1(x), "The Bessel function of the second kind and order 0.")
y1 = _scipys_own("y1", lambda x: (y0(x) - yv(2, x)) / 2, "The Bessel function of the second kind and order 1.")
k0 = _scipys_own("k0", lambda x: -k1(x), "The modified Bessel function of the second kind and order 0.")
k1 = _scipys_own("k1", lambda x, out: -k0(x) - out / x, "The modified Bessel function of the second kind and order 1.")
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

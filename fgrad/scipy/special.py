"""Special functions under SciPy's names: gamma and error functions, entropies, Bessel functions, softmax and its kin.

All take arrays, numbers or traced values, and compute in real floating point.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from fgrad import nn
from fgrad.numpy.arguments import as_array, known
from fgrad.ops import elementwise as e
from fgrad.ops import special as sp
from fgrad.scipy import values as v
from fgrad.scipy.functions import elementwise_function, real, reals

__all__ = """
    beta betainc betaincinv betaln boxcox boxcox1p comb dawsn digamma entr erf erfc erfcinv erfcx erfi erfinv exp1 expi
    expit expn exprel factorial fresnel gamma gammainc gammaincc gammainccinv gammaincinv gammaln gammasgn huber hyp0f1
    hyp1f1 hyp2f1 i0 i0e i1 i1e iv ive j0 j1 jn jv k0 k1 kl_div kv log_expit log_ndtr log_softmax loggamma logit
    logsumexp multigammaln ndtr ndtri owens_t poch polygamma pseudo_huber psi rel_entr rgamma sici softmax spence
    xlog1py xlogy y0 y1 yn yv zeta
""".split()

_function = functools.partial(elementwise_function, "special")

# ------------------------------------------------------------------------------------------- gamma functions


def _sine(x: Any) -> Any:
    """Return sin(πx), exactly 0 at integers."""
    whole = e.rint(x)
    return (1 - 2 * e.rem(whole, 2)) * e.sin(math.pi * (x - whole))


def _rgamma(x: Any) -> Any:
    """Return 1/Γ(x): by reflection below 1/2 (DLMF 5.5.3), which is smooth where Γ has its poles."""
    low = e.lt(x, 0.5)
    above = e.select(low, 1 - x, x)
    reflected = v.gamma(above) * _sine(e.select(low, x, 0)) / math.pi
    return e.select(low, reflected, e.exp(-sp.lgamma(above)))


def _gammasgn(x: Any) -> Any:
    """Return the sign of Γ(x): that of sin(πx) below 0, 0 at the poles as SciPy has it, but for 0 itself."""
    return e.select(e.le(x, 0), e.select(e.eq(x, 0), 1, e.sign(_sine(x))), e.sign(e.abs(x) + 1))


def _betaln(x: Any, y: Any) -> Any:
    return sp.lgamma(x) + sp.lgamma(y) - sp.lgamma(x + y)


def _beta(x: Any, y: Any) -> Any:
    return _gammasgn(x) * _gammasgn(y) * _gammasgn(x + y) * e.exp(_betaln(x, y))


def _poch(x: Any, m: Any) -> Any:
    return _gammasgn(x + m) * _gammasgn(x) * e.exp(sp.lgamma(x + m) - sp.lgamma(x))


gammaln = _function("gammaln", "x", sp.lgamma, "Return log|Γ(x)|.", "gammaln(5)", "3.1781")
loggamma = _function("loggamma", "x", sp.lgamma, "Return log|Γ(x)|, for real x alone.", "loggamma(5)", "3.1781")
gammasgn = _function("gammasgn", "x", _gammasgn, "Return the sign of Γ(x).", "gammasgn(-0.5)", "-1.0")
gamma = _function("gamma", "x", v.gamma, "Return Γ(x), by SciPy.", "gamma(5)", "24.0")
rgamma = _function("rgamma", "x", _rgamma, "Return 1/Γ(x), which is 0 at the poles of Γ.", "rgamma(3)", "0.5")
digamma = _function("digamma", "x", sp.digamma, "Return ψ(x), the derivative of log Γ(x).", "digamma(1)", "-0.5772")
psi = _function("psi", "x", sp.digamma, "Return ψ(x), the derivative of log Γ(x).", "psi(1)", "-0.5772")
beta = _function("beta", "a b", _beta, "Return Γ(a) Γ(b) / Γ(a + b).", "beta(2, 3)", "0.0833")
betaln = _function("betaln", "a b", _betaln, "Return the logarithm of |beta(a, b)|.", "betaln(2, 3)", "-2.4849")
poch = _function("poch", "z m", _poch, "Return Γ(z + m) / Γ(z), Pochhammer's symbol.", "poch(2, 3)", "24.0")
gammainc = _function(
    "gammainc",
    "a x",
    v.gammainc,
    "Return the regularised lower incomplete gamma function, by SciPy.\n\n    Its second derivative by `a` is refused.",
    "gammainc(2, 1)",
    "0.2642",
)
gammaincc = _function(
    "gammaincc",
    "a x",
    v.gammaincc,
    "Return 1 - gammainc(a, x) without cancellation, by SciPy.\n\n    Its second derivative by `a` is refused.",
    "gammaincc(2, 1)",
    "0.7358",
)
betainc = _function(
    "betainc",
    "a b x",
    v.betainc,
    "Return the regularised incomplete beta function, by SciPy.\n\n    Second derivatives by `a` and `b` are refused.",
    "betainc(2, 3, 0.5)",
    "0.6875",
)
_INVERSE = (
    "Return the inverse of `{}` by its last argument, by SciPy.\n\n    Second derivatives by parameters are refused."
)
gammaincinv = _function(
    "gammaincinv", "a y", v.gammaincinv, _INVERSE.format("gammainc"), "gammaincinv(2, 0.2642)", "0.9999"
)
gammainccinv = _function(
    "gammainccinv", "a y", v.gammainccinv, _INVERSE.format("gammaincc"), "gammainccinv(2, 0.7358)", "0.9999"
)
betaincinv = _function(
    "betaincinv", "a b y", v.betaincinv, _INVERSE.format("betainc"), "betaincinv(2, 3, 0.6875)", "0.5"
)


def comb(N: Any, k: Any) -> Any:
    """Return the number of ways to choose k of N things, 0 where there is none.

    Args:
        N, k: arrays or numbers, which broadcast; what lies between integers is interpolated.

    Example:
        >>> from fgrad.scipy.special import comb
        >>> print(comb(5, [0, 2, 6]).round(4))
        [ 1. 10.  0.]
    """
    N, k = reals(N, k)
    possible = e.logical_and(e.ge(k, 0), e.le(k, N))
    n, m = e.select(possible, N, 1), e.select(possible, k, 1)
    return e.select(possible, e.exp(-e.log1p(n) - _betaln(n - m + 1, m + 1)), 0)


def factorial(n: Any) -> Any:
    """Return Γ(n + 1), by SciPy, and 0 for negative n.

    Args:
        n: array or number; what lies between integers is interpolated.

    Example:
        >>> from fgrad.scipy.special import factorial
        >>> print(factorial([0, 3, 5]))
        [  1.   6. 120.]
    """
    n = real(n)
    negative = e.lt(n, 0)
    return e.select(negative, 0, v.gamma(e.select(negative, 0, n) + 1))


def polygamma(n: Any, x: Any) -> Any:
    """Return the n-th derivative of `digamma`.

    Args:
        n: ints of at least 0, whose values must be known.
        x: array or number.

    Raises:
        TypeError: `n` is traced by jit or vmap, or not whole.
        ValueError: `n` is negative.

    Example:
        >>> from fgrad.scipy.special import polygamma
        >>> print(polygamma([0, 1], 1.0).round(4))
        [-0.5772  1.6449]
    """
    orders, x = known(as_array(n)), real(x)
    if orders is None or (orders != np.floor(orders)).any():
        raise TypeError(f"polygamma: n must be whole numbers that are known, got {n!r}")
    if (orders < 0).any():
        raise ValueError(f"polygamma: n must not be negative, got {n!r}")
    out = None
    for k in np.unique(orders).astype(int).tolist():
        part = sp.polygamma(x, n=k) if k else sp.digamma(x)
        out = part if out is None else e.select(orders == k, part, out)
    return out if orders.ndim == 0 else e.select(np.ones(orders.shape, bool), out, 0)


def multigammaln(a: Any, d: int) -> Any:
    """Return the logarithm of the multivariate gamma function of dimension d.

    Args:
        a: array or number, greater than (d - 1) / 2.
        d: the dimension, an int.

    Example:
        >>> from fgrad.scipy.special import multigammaln
        >>> print(multigammaln(3.0, 2).round(4))
        1.5502
    """
    a, d = real(a), operator.index(d)
    return sum([sp.lgamma(a - j / 2) for j in range(d)], d * (d - 1) / 4 * math.log(math.pi))


def zeta(x: Any, q: Any = None) -> Any:
    """Return Hurwitz's zeta function Σ (n + q)⁻ˣ over n ≥ 0, by SciPy; Riemann's if there is no q.

    Its derivative by `x` is refused.

    Args:
        x: array or number.
        q: array or number; None for 1, where the function is continued to x below 1.

    Example:
        >>> from fgrad.scipy.special import zeta
        >>> print(zeta(2.0).round(4), zeta(2.0, 3.0).round(4))
        1.6449 0.3949
    """
    return _zeta(x, q) if q is not None else v.riemann_zeta(real(x))


_zeta = _function("zeta", "x q", v.hurwitz_zeta, "Return Hurwitz's zeta function.", "zeta(2, 3)", "0.3949")

# -------------------------------------------------------------------------------------------- error functions


erf = _function("erf", "x", sp.erf, "Return 2/√π ∫₀ˣ exp(-t²) dt.", "erf(1)", "0.8427")
erfc = _function("erfc", "x", sp.erfc, "Return 1 - erf(x) without cancellation.", "erfc(1)", "0.1573")
erfcx = _function("erfcx", "x", v.erfcx, "Return exp(x²) erfc(x), by SciPy.", "erfcx(10)", "0.0561")
erfinv = _function("erfinv", "y", sp.erfinv, "Return the inverse of erf.", "erfinv(0.5)", "0.4769")
erfi = _function("erfi", "x", v.erfi, "Return -i erf(ix), by SciPy.", "erfi(0.5)", "0.615")
erfcinv = _function("erfcinv", "y", v.erfcinv, "Return the inverse of erfc, by SciPy.", "erfcinv(0.5)", "0.4769")
dawsn = _function("dawsn", "x", v.dawsn, "Return exp(-x²) ∫₀ˣ exp(t²) dt, by SciPy.", "dawsn(1)", "0.5381")
ndtr = _function(
    "ndtr", "x", v.ndtr, "Return the distribution function of the normal distribution.", "ndtr(1)", "0.8413"
)
ndtri = _function("ndtri", "y", v.ndtri, "Return the inverse of `ndtr`, by SciPy.", "ndtri(0.5)", "0.0")
log_ndtr = _function(
    "log_ndtr",
    "x",
    v.log_ndtr,
    "Return log(ndtr(x)), by SciPy, also where it underflows.",
    "log_ndtr(-40)",
    "-804.6084",
)
exp1 = _function("exp1", "x", v.exp1, "Return ∫ₓ exp(-t)/t dt, by SciPy.", "exp1(1)", "0.2194")
expi = _function("expi", "x", v.expi, "Return ∫ exp(t)/t dt up to x, by SciPy.", "expi(1)", "1.8951")

expn = _function(
    "expn",
    "n x",
    v.expn,
    "Return ∫ exp(-x t) / tⁿ dt over t ≥ 1 for whole n, by SciPy.\n\n    Its derivative by `n` is refused.",
    "expn(2, 1)",
    "0.1485",
)
spence = _function(
    "spence", "z", v.spence, "Return ∫ log(t) / (1 - t) dt from 1 to z, by SciPy.", "spence(0)", "1.6449"
)
owens_t = _function(
    "owens_t",
    "h a",
    v.owens_t,
    "Return the probability of x > h and 0 < y < a x, for independent normal x and y, by SciPy.",
    "owens_t(1, 0.5)",
    "0.0431",
)
exprel = _function("exprel", "x", v.exprel, "Return (exp(x) - 1) / x, 1 at 0, by SciPy.", "exprel(1)", "1.7183")
hyp0f1 = _function(
    "hyp0f1",
    "v z",
    v.hyp0f1,
    "Return the hypergeometric function ₀F₁, by SciPy.\n\n    Its derivative by `v` is refused.",
    "hyp0f1(1, 1)",
    "2.2796",
)
hyp1f1 = _function(
    "hyp1f1",
    "a b x",
    v.hyp1f1,
    "Return the hypergeometric function ₁F₁, by SciPy.\n\n    Its derivatives by `a` and `b` are refused.",
    "hyp1f1(1, 2, 1)",
    "1.7183",
)
hyp2f1 = _function(
    "hyp2f1",
    "a b c z",
    v.hyp2f1,
    "Return the hypergeometric function ₂F₁, by SciPy.\n\n    Its derivatives by `a`, `b` and `c` are refused.",
    "hyp2f1(1, 2, 3, 0.5)",
    "1.5452",
)


def sici(x: Any) -> tuple[Any, Any]:
    """Return the sine integral ∫ sin(t)/t dt from 0 to x, and the cosine integral, by SciPy.

    Example:
        >>> from fgrad.scipy.special import sici
        >>> print(*[y.round(4) for y in sici(1.0)])
        0.9461 0.3374
    """
    x = real(x)
    return v.sine_integral(x), v.cosine_integral(x)


def fresnel(z: Any) -> tuple[Any, Any]:
    """Return the integrals of sin(π t²/2) and of cos(π t²/2) from 0 to z, by SciPy.

    Example:
        >>> from fgrad.scipy.special import fresnel
        >>> print(*[y.round(4) for y in fresnel(1.0)])
        0.4383 0.7799
    """
    z = real(z)
    return v.fresnel_sine(z), v.fresnel_cosine(z)


# ------------------------------------------------------------------------------- powers of data, and robust losses


def _boxcox(x: Any, lmbda: Any) -> Any:
    return e.log(x) * v.exprel(lmbda * e.log(x))


def _boxcox1p(x: Any, lmbda: Any) -> Any:
    return e.log1p(x) * v.exprel(lmbda * e.log1p(x))


def _huber(delta: Any, r: Any) -> Any:
    size = e.abs(r)
    loss = e.select(e.le(size, delta), 0.5 * (r * r), delta * (size - 0.5 * delta))
    return e.select(e.lt(delta, 0), np.inf, loss)


def _pseudo_huber(delta: Any, r: Any) -> Any:
    none = e.le(delta, 0)
    scale = e.select(none, 1, delta)
    loss = scale * scale * (e.sqrt(1 + e.square(r / scale)) - 1)
    return e.select(e.lt(delta, 0), np.inf, e.select(none, 0, loss))


boxcox = _function(
    "boxcox", "x lmbda", _boxcox, "Return (x**lmbda - 1) / lmbda, log(x) where lmbda is 0.", "boxcox(2, 0)", "0.6931"
)
boxcox1p = _function(
    "boxcox1p",
    "x lmbda",
    _boxcox1p,
    "Return ((1 + x)**lmbda - 1) / lmbda, log(1 + x) where lmbda is 0.",
    "boxcox1p(1, 0)",
    "0.6931",
)
huber = _function(
    "huber", "delta r", _huber, "Return r²/2 for |r| ≤ delta, and what goes on linearly beyond.", "huber(1, 3)", "2.5"
)
pseudo_huber = _function(
    "pseudo_huber",
    "delta r",
    _pseudo_huber,
    "Return delta² (√(1 + (r/delta)²) - 1), a smooth `huber`.",
    "pseudo_huber(1, 3)",
    "2.1623",
)

# --------------------------------------------------------------------------- logistic functions and entropies


def _logit(x: Any) -> Any:
    return e.log(x) - e.log1p(-x)


def _entr(x: Any) -> Any:
    negative = e.lt(x, 0)
    safe = e.select(negative, 1, x)
    return e.select(negative, -np.inf, 0 - e.xlogy(safe, safe))


def _rel_entr(x: Any, y: Any) -> Any:
    inside = e.logical_and(e.gt(x, 0), e.gt(y, 0))
    p, q = e.select(inside, x, 1), e.select(inside, y, 1)
    near = e.logical_and(e.lt(p, 2 * q), e.lt(q, 2 * p))  # where the difference of logarithms would cancel
    scaled = e.div(p - q, e.select(near, q, 1))
    ratio = e.select(near, e.log1p(e.select(near, scaled, 0)), e.log(p) - e.log(q))
    out = e.select(inside, p * ratio, np.inf)
    out = e.select(e.logical_and(e.eq(x, 0), e.ge(y, 0)), 0, out)
    return e.select(e.logical_or(e.isnan(x), e.isnan(y)), np.nan, out)


def _kl_div(x: Any, y: Any) -> Any:
    return _rel_entr(x, y) - x + y


expit = _function("expit", "x", e.sigmoid, "Return 1 / (1 + exp(-x)).", "expit(1)", "0.7311")
log_expit = _function(
    "log_expit", "x", e.log_sigmoid, "Return log(expit(x)), also where it underflows.", "log_expit(-1000)", "-1000.0"
)
logit = _function("logit", "x", _logit, "Return log(x / (1 - x)), the inverse of expit.", "logit(0.75)", "1.0986")
xlogy = _function(
    "xlogy", "x y", e.xlogy, "Return x log(y), 0 where x is 0.", "xlogy([0, 2], [0, 3])", "[0.     2.1972]"
)
xlog1py = _function(
    "xlog1py", "x y", e.xlog1py, "Return x log(1 + y), 0 where x is 0.", "xlog1py([0, 2], [-1, 2])", "[0.     2.1972]"
)
entr = _function("entr", "x", _entr, "Return -x log(x), 0 at 0 and -inf below.", "entr([0, 0.5])", "[0.     0.3466]")
rel_entr = _function(
    "rel_entr", "p q", _rel_entr, "Return p log(p / q), 0 where p is 0, inf if negative.", "rel_entr(2, 1)", "1.3863"
)
kl_div = _function("kl_div", "p q", _kl_div, "Return p log(p / q) - p + q.", "kl_div(2, 1)", "0.3863")

# ------------------------------------------------------------------------------------------- Bessel functions

j0 = _function(
    "j0", "x", v.j0, "Return the Bessel function of the first kind and order 0, by SciPy.", "j0(1)", "0.7652"
)
j1 = _function(
    "j1", "x", v.j1, "Return the Bessel function of the first kind and order 1, by SciPy.", "j1(1)", "0.4401"
)
y0 = _function(
    "y0", "x", v.y0, "Return the Bessel function of the second kind and order 0, by SciPy.", "y0(1)", "0.0883"
)
y1 = _function(
    "y1", "x", v.y1, "Return the Bessel function of the second kind and order 1, by SciPy.", "y1(1)", "-0.7812"
)
i0 = _function("i0", "x", v.i0, "Return the modified Bessel function of order 0, by SciPy.", "i0(1)", "1.2661")
i1 = _function("i1", "x", v.i1, "Return the modified Bessel function of order 1, by SciPy.", "i1(1)", "0.5652")
i0e = _function("i0e", "x", v.i0e, "Return exp(-|x|) i0(x), by SciPy.", "i0e(1)", "0.4658")
i1e = _function("i1e", "x", v.i1e, "Return exp(-|x|) i1(x), by SciPy.", "i1e(1)", "0.2079")
k0 = _function(
    "k0", "x", v.k0, "Return the modified Bessel function of the second kind and order 0, by SciPy.", "k0(1)", "0.421"
)
k1 = _function(
    "k1", "x", v.k1, "Return the modified Bessel function of the second kind and order 1, by SciPy.", "k1(1)", "0.6019"
)
_OF_ORDER = "Return the {} of order v, by SciPy.\n\n    Its derivative by `v` is refused."


def _of_order(name: str, prim: Any, what: str, example: str, shows: str) -> Any:
    return _function(name, "v z", prim, _OF_ORDER.format(what), example, shows)


jv = _of_order("jv", v.jv, "Bessel function of the first kind", "jv(2, 1)", "0.1149")
jn = _of_order("jn", v.jv, "Bessel function of the first kind", "jn(2, 1)", "0.1149")
yv = _of_order("yv", v.yv, "Bessel function of the second kind", "yv(2, 1)", "-1.6507")
yn = _of_order("yn", v.yv, "Bessel function of the second kind", "yn(2, 1)", "-1.6507")
iv = _of_order("iv", v.iv, "modified Bessel function of the first kind", "iv(2, 1)", "0.1357")
ive = _of_order("ive", v.ive, "modified Bessel function, times exp(-|z|),", "ive(2, 1)", "0.0499")
kv = _of_order("kv", v.kv, "modified Bessel function of the second kind", "kv(2, 1)", "1.6248")

# --------------------------------------------------------------------------------------------- along an axis

logsumexp = nn.logsumexp


def softmax(x: Any, axis: Any = None) -> Any:
    """Return exp(x) divided by its sum over axes.

    Args:
        x: array.
        axis: an axis or a tuple of axes; None for all.

    Example:
        >>> from fgrad.scipy.special import softmax
        >>> print(softmax([0.0, 0.0]))
        [0.5 0.5]
    """
    return nn.softmax(x, axis)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Return the logarithm of `softmax`, also where that underflows.

    Args:
        x: array.
        axis: an axis or a tuple of axes; None for all.

    Example:
        >>> from fgrad.scipy.special import log_softmax
        >>> print(log_softmax([0.0, -1000.0]))
        [    0. -1000.]
    """
    return nn.log_softmax(x, axis)

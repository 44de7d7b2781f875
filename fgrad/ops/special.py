"""Special functions: sinc, the error functions and the gamma functions.

Values come from NumPy alone, in double precision whatever the dtype. The coefficients are those of polynomials and
rational functions P/Q of least relative error, highest power first, fitted in 60 digits by weighted least squares
(Sanathanan and Koerner's iteration, then Lawson's for the largest error); each error is below 1e-16.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from fgrad.kinds import elementwise
from fgrad.ops.elementwise import exp

_BLOCK = 8192  # elements that fit a core's cache with the intermediate results of these formulas


def _in_double(f):
    """Return `f` for inputs of any shape and dtype: it computes in double precision, on 1-d blocks.

    The result is of the dtype that a ufunc would give.
    """

    @functools.wraps(f)
    def wrapped(x, **params):
        x = np.asarray(x)
        dtype = np.result_type(x, np.float16)
        flat = x.reshape(-1).astype(np.result_type(dtype, np.float64), copy=False)
        out = np.empty_like(flat)
        with np.errstate(all="ignore"):
            for start in range(0, flat.size, _BLOCK):
                block = slice(start, start + _BLOCK)
                out[block] = f(flat[block], **params)
            return out.reshape(x.shape).astype(dtype, copy=False)

    return wrapped


def _in_real_double(f):
    """Return `f` as `_in_double` does, for real inputs; TypeError for complex ones."""
    in_double = _in_double(f)

    @functools.wraps(f)
    def wrapped(x, **params):
        if np.iscomplexobj(x):
            name = f.__name__.lstrip("_")
            raise TypeError(f"{name} is computed for real x only, got x of dtype {np.asarray(x).dtype}")
        return in_double(x, **params)

    return wrapped


def _either(mask, f, g, x):
    """Return f(x) where `mask` holds and g(x) elsewhere; each sees its own elements only."""
    if mask.all():
        return f(x)
    if not mask.any():
        return g(x)
    out = np.empty_like(x)
    out[mask] = f(x[mask])
    rest = ~mask
    out[rest] = g(x[rest])
    return out


def _polynomial(coefficients, x):
    """Return a polynomial by Horner's rule; of several, which share x, if coefficients are columns."""
    out = coefficients[0] * x
    for c in coefficients[1:-1]:
        out += c
        out *= x
    out += coefficients[-1]
    return out


def _fraction(p, q):
    """Return the coefficients of P and Q for `_ratio`."""
    degree = max(len(p), len(q))
    rows = [(0.0,) * (degree - len(c)) + tuple(c) for c in (p, q)]
    return np.array(rows).T[:, :, None]


def _ratio(fraction, x):
    p, q = _polynomial(fraction, x)
    return p / q


# -------------------------------------------------------------------------------------------------------- sinc


@_in_double
def _sinc_derivative(x, *, order):
    """Return the derivative of sin(πx)/(πx) of any order, by a series near 0 and by recurrence elsewhere.

    With t = πx, s(t) = sin(t)/t and s⁽ⁿ⁾(t) = ∫₀¹ uⁿ cos(ut + nπ/2) du. Integration by parts gives the recurrence
    t s⁽ⁿ⁾ = sin(t + nπ/2) - n s⁽ⁿ⁻¹⁾, which loses a factor n!/tⁿ; the series loses cosh(t).
    """
    t = np.pi * x
    series, recurrence = (functools.partial(f, order=order) for f in (_sinc_series, _sinc_recurrence))
    return math.pi**order * _either(np.abs(t) < 1 + order / 2, series, recurrence, t)


def _sinc_series(t, order):
    odd = order % 2  # powers of t have the parity of the order
    powers = range(odd, 24 + 2 * order, 2)
    terms = [(-1) ** ((order + j) // 2) / math.factorial(j) / (order + j + 1) for j in powers]
    return _polynomial(terms[::-1], t * t) * (t if odd else 1)


def _sinc_recurrence(t, order):
    sine, cosine = np.sin(t), np.cos(t)
    out = sine / t
    for n in range(1, order + 1):
        wave = (sine, cosine, -sine, -cosine)[n % 4]  # sin(t + nπ/2)
        out = (wave - n * out) / t
    return out


sinc_derivative = elementwise(
    "sinc_derivative",
    _sinc_derivative,
    d=lambda x, *, order: sinc_derivative(x, order=order + 1),
    gpu="special.sinc_derivative",
    doc="The derivative of sinc of the given order.",
)
sinc = elementwise(
    "sinc",
    functools.partial(_sinc_derivative, order=0),
    d=lambda x: sinc_derivative(x, order=1),
    gpu="tl.where(x == 0, 1, tl.sin(3.141592653589793 * x) / (3.141592653589793 * x))",
    doc="sin(πx) / (πx), 1 at 0; derivatives of any order are exact at 0 and near it.",
)

# --------------------------------------------------------------------------------------------- error functions

_ERF = (
    -7.779952393570107e-10, 1.3711242160154575e-08, -1.620637477415072e-07, 1.6447139587939154e-06,
    -1.4924712953969477e-05, 0.00012055293610826104, -0.0008548325930442513, 0.005223977606141702,
    -0.026866170643114234, 0.11283791670944202, -0.3761263890318352, 1.1283791670955126,
)  # fmt: skip
_ERFCX = _fraction(
    (
        0.0007553373679543688, 0.010745275738954002, 0.07371558886555256, 0.3103987956575857,
        0.8610562182404913, 1.5766892857943806, 1.7848490866204862, 0.9999999998152181,
    ),
    (
        0.001338800670362752, 0.01904550287030037, 0.13132694696716293, 0.5596891442414058,
        1.5908556878263163, 3.0600422680106165, 3.8639153728754922, 2.91322825092654, 1,
    ),
)  # fmt: skip
_ERFCX_FAR = _fraction(
    (
        8.510728170829243, 49.4999169782925, 39.38107553831539, 8.903501654774603, 0.5641895835477563,
    ),
    (
        39.15377707587884, 115.99636503142993, 77.1916618880458, 16.281045794548803, 1,
    ),
)  # fmt: skip
_ERFINV = _fraction(
    (
        0.011907008532484659, 0.5845311592510042, 4.427536019580454, 11.432471220824109, 12.613425317106794,
        6.141934307041684, 1.0845597967968246,
    ),
    (
        0.06763365583952569, 1.3934432861764978, 7.278813457060767, 15.024797376603846, 14.217439184368073,
        6.181814627275274, 1,
    ),
)  # fmt: skip
_ERFINV_FAR = _fraction(
    (
        0.0003408253418166198, 0.011233786031114216, 0.13237178834916508, 0.7628929931032833,
        2.4390739159978456, 4.593907695397811, 5.111816007126835, 3.1219990573765943, 0.8078255536927063,
    ),
    (
        4.0060531663400663e-10, 0.00034078354260466535, 0.010837977634992415, 0.12048573943866306,
        0.6395017060786924, 1.831173219972414, 2.9698716019860605, 2.614036086890537, 1,
    ),
)  # fmt: skip


def _erf_near(x):
    """Return erf(x) for |x| < 1."""
    return x * _polynomial(_ERF, x * x)


def _erfc_above(x):
    """Return erfc(x) for x ≥ 0.5, as exp(-x²) times a slowly varying factor.

    Rounding x² would cost x² relative errors, so x is split: x² = h² + (x - h)(x + h), where h² is exact.
    """
    x = np.minimum(x, 28)  # whose erfc is 0, so that infinity needs no care
    h = np.rint(x * 16) / 16
    decay = np.exp(-h * h) * np.exp(-(x - h) * (x + h))
    near, far = lambda x: _ratio(_ERFCX, x), lambda x: _ratio(_ERFCX_FAR, 1 / (x * x)) / x
    return decay * _either(x < 6, near, far, x)


@_in_real_double
def _erf(x):
    far = lambda x: np.copysign(1 - _erfc_above(np.abs(x)), x)
    return _either(np.abs(x) < 1, _erf_near, far, x)


@_in_real_double
def _erfc(x):
    near, below = lambda x: 1 - _erf_near(x), lambda x: 2 - _erfc_above(-x)
    return _either(x < 0.5, lambda x: _either(x <= -1, below, near, x), _erfc_above, x)


def _erfinv_near(x):
    """Return erfinv(x) for |x| ≤ 0.75."""
    return x * _ratio(_ERFINV, 0.5625 - x * x)


def _erfinv_far(x):
    """Return erfinv(x) for 0.75 < |x| ≤ 1, a smooth function of the root of -log(1 - |x|)."""
    w = np.sqrt(-np.log1p(-np.abs(x)))
    return np.copysign(np.where(w == np.inf, w, _ratio(_ERFINV_FAR, w - 1.171875)), x)


@_in_real_double
def _erfinv(x):
    return _either(np.abs(x) <= 0.75, _erfinv_near, _erfinv_far, x)


_SLOPE = 2 / math.sqrt(math.pi)

erf = elementwise("erf", _erf, d=lambda x: _SLOPE * exp(-x * x), gpu="tl.erf(x)", doc="2/√π ∫₀ˣ exp(-t²) dt.")
erfc = elementwise("erfc", _erfc, d=lambda x: -_SLOPE * exp(-x * x), gpu="libdevice.erfc(x)", doc="1 - erf(x).")
erfinv = elementwise(
    "erfinv", _erfinv, d=lambda out: exp(out * out) / _SLOPE, gpu="libdevice.erfinv(x)", doc="The inverse of erf."
)

# --------------------------------------------------------------------------------------------- gamma functions

_LGAMMA = _fraction(
    (
        0.00020750403316008013, 0.15233623785046121, 6.388981534613261, 71.88626234958545, 290.59314077471294,
        460.1843092065207, 279.06937832264816, 56.674811802160505, 2.4792935251362946,
    ),
    (
        0.03617826849610826, 2.4621190641408717, 42.22877340388981, 262.4395971719612, 668.6397940787359,
        711.3522253072156, 294.872084682511, 39.48662012537994, 1,
    ),
)  # fmt: skip
_LGAMMA_FAR = _fraction(
    (
        0.07831865803144526, 1.0864061373185188, 1.8856607766058688, 0.80132489694588, 0.08333333333333333,
    ),
    (
        1.2373957754401104, 13.716787273778012, 22.940046579646282, 9.649232096683873, 1,
    ),
)  # fmt: skip
_DIGAMMA = _fraction(
    (
        19.61251951459328, 20197.87791935549, 1105070.3700990945, 17278104.290088024, 105156211.77706403,
        272238167.10873085, 283569903.15854126, 86156552.12050037,
    ),
    (
        3791.272473626901, 298818.6312200618, 6252302.282605715, 50185566.03542063, 173933439.08483106,
        255630102.06383225, 125929174.44344391, 1,
    ),
)  # fmt: skip
_DIGAMMA_FAR = _fraction(
    (
        -0.17284783554661398, -1.893775890891231, -2.6332172192814505, -0.932764657959436,
        -0.08333333333333333,
    ),
    (
        3.5422783840885983, 25.50557090185105, 32.68030517343884, 11.293175895512977, 1,
    ),
)  # fmt: skip


def _stirling(x):
    """Return log Γ(x) for x ≥ 4: Stirling's formula and its correction, a function of 1/x²."""
    return (x - 0.5) * (np.log(x) - 1) + (math.log(2 * math.pi) - 1) / 2 + _ratio(_LGAMMA_FAR, 1 / (x * x)) / x


def _lgamma_near(x):
    """Return log Γ(x) for 1 ≤ x < 4, as a multiple of (x - 1)(x - 2), where it is 0."""
    return (x - 1) * (x - 2) * _ratio(_LGAMMA, x)


def _lgamma_above(x):
    """Return log Γ(x) for x ≥ 1."""
    return _either(x < 4, _lgamma_near, _stirling, x)


def _lgamma_unit(x):
    """Return log Γ(x) = log Γ(x + 1) - log(x) for 0 < x < 1; its factor x - 1 must not be made from a rounded x + 1."""
    return x * (x - 1) * _ratio(_LGAMMA, x + 1) - np.log(x)


def _from_pole(x):
    """Return x - n for the nearest integer n: what π-periodic functions of πx are computed of."""
    return x - np.rint(x)


def _lgamma_below(x):
    """Return log|Γ(x)| for x ≤ 0 by reflection (DLMF 5.5.3); inf at the poles and at -inf."""
    out = math.log(math.pi) - np.log(np.abs(np.sin(np.pi * _from_pole(x)))) - _lgamma_above(1 - x)
    return np.where(x == np.floor(x), np.inf, out)


@_in_real_double
def _lgamma(x):
    return _either(x < 1, lambda x: _either(x <= 0, _lgamma_below, _lgamma_unit, x), _lgamma_above, x)


_ROOT, _ROOT_REST = 1.4616321449683622, 9.5499954299656977e-17  # where digamma is 0, in two parts


def _digamma_above(x):
    """Return ψ(x) for x ≥ 1; below 4 as a multiple of the distance from its root, above by its asymptotic series."""
    near = lambda x: (x - _ROOT - _ROOT_REST) * _ratio(_DIGAMMA, x)
    far = lambda x: np.log(x) - 0.5 / x + _ratio(_DIGAMMA_FAR, 1 / (x * x)) / (x * x)
    return _either(x < 4, near, far, x)


def _digamma_below(x):
    """Return ψ(x) for x ≤ 0 by reflection (DLMF 5.5.4); -inf at 0, NaN at the other poles."""
    r = _from_pole(x)
    return np.where((r == 0) & (x < 0), np.nan, _digamma_above(1 - x) - np.pi / np.tan(np.pi * r))


@_in_real_double
def _digamma(x):
    step = lambda x: _digamma_above(x + 1) - 1 / x
    return _either(x < 1, lambda x: _either(x <= 0, _digamma_below, step, x), _digamma_above, x)


def _hurwitz(s, x):
    """Return ζ(s, x) = Σ (k + x)⁻ˢ over k ≥ 0, for an integer s ≥ 2 and x > 0, by Euler's and Maclaurin's formula."""
    terms = 10 + s
    head = sum((x + k) ** -s for k in range(terms))
    y = x + terms
    tail = 1 / (s - 1) + 0.5 / y
    factor = s / (2 * y * y)
    for m, b in enumerate(_BERNOULLI, 1):
        tail = tail + b * factor  # B₂ₘ s(s+1)…(s+2m-2) / ((2m)! y²ᵐ)
        factor = factor * (s + 2 * m - 1) * (s + 2 * m) / ((2 * m + 1) * (2 * m + 2) * y * y)
    return head + tail * y ** (1 - s)


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


@functools.cache
def _cotangent_derivative(n):
    """Return the n-th derivative of cot as a polynomial of cot, highest power first: cot' = -(1 + cot²)."""
    if n == 0:
        return (1.0, 0.0)
    return tuple(np.polymul((-1.0, 0.0, -1.0), np.polyder(_cotangent_derivative(n - 1))))


@_in_real_double
def _polygamma(x, *, n):
    sign, size = (-1.0) ** (n + 1), float(math.factorial(n))
    above = lambda x: sign * size * _hurwitz(n + 1, x)
    cot = lambda x: 1 / np.tan(np.pi * _from_pole(x))
    below = lambda x: -(math.pi ** (n + 1)) * _polynomial(_cotangent_derivative(n), cot(x)) - sign * above(1 - x)
    return _either(x <= 0, below, above, x)


digamma = elementwise(
    "digamma", _digamma, d=lambda x: polygamma(x, n=1), gpu="special.digamma", doc="The derivative of lgamma."
)
lgamma = elementwise("lgamma", _lgamma, d=lambda x: digamma(x), gpu="libdevice.lgamma(x)", doc="log|Γ(x)|.")
polygamma = elementwise(
    "polygamma",
    _polygamma,
    d=lambda x, *, n: polygamma(x, n=n + 1),
    gpu="special.polygamma",
    doc="The n-th derivative of digamma, n ≥ 1.",
)

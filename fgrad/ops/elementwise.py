"""Elementwise primitives: arithmetic, comparison, logic, rounding, choice, exponentials, trigonometry.

These broadcast and promote as NumPy's ufuncs do. Those that stand for Python's operators take Python's own operator
as implementation, so that Python numbers among themselves stay Python numbers; rules therefore divide and raise by
primitives, which give inf and nan where Python would raise. A partial must not be of a wider dtype than the output:
what it computes of a Python number has to stay one (see `_weak`). Complex parts and moduli are in `complex.py`.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from fgrad.core import PYTHON_SCALARS
from fgrad.kinds import constant, elementwise, gate


def _python_safe(python, ufunc):
    """Return an operator that gives on Python numbers what NumPy gives: inf and nan in place of an exception."""

    def safe(x, y):
        try:
            return python(x, y)
        except (ZeroDivisionError, OverflowError):
            return ufunc(x, y).item()

    return safe


def _weak(f, x):
    """Return `f(x)`; of a Python number as a Python number, so that it gives way to the dtype of arrays."""
    y = f(x)
    return y.item() if x.__class__ in PYTHON_SCALARS else y


def _like(x, out):
    """Return x in the dtype of `out`, Python numbers included."""
    if out.__class__ in PYTHON_SCALARS:
        return out.__class__() + x
    if x.__class__ in PYTHON_SCALARS:
        return out.dtype.type(x)
    return x if x.dtype == out.dtype else x.astype(out.dtype)


# ---------------------------------------------------------------------------------- comparison, logic, integers

eq = constant("eq", operator.eq, operator=True, gpu="x == y")
ne = constant("ne", operator.ne, operator=True, gpu="x != y")
lt = constant("lt", operator.lt, operator=True, gpu="x < y")
le = constant("le", operator.le, operator=True, gpu="x <= y")
gt = constant("gt", operator.gt, operator=True, gpu="x > y")
ge = constant("ge", operator.ge, operator=True, gpu="x >= y")
bitwise_and = constant("bitwise_and", operator.and_, operator=True, gpu="x & y")
bitwise_or = constant("bitwise_or", operator.or_, operator=True, gpu="x | y")
bitwise_xor = constant("bitwise_xor", operator.xor, operator=True, gpu="x ^ y")
left_shift = constant("left_shift", operator.lshift, operator=True, gpu="x << y")
right_shift = constant("right_shift", operator.rshift, operator=True, gpu="x >> y")
invert = constant("invert", operator.invert, operator=True, gpu="~x")
bitwise_count = constant(
    "bitwise_count",
    np.bitwise_count,
    gpu="libdevice.popc(tl.abs(x.to(tl.int64)))",
    doc="How many bits of |x| are 1.",
)
logical_and = constant("logical_and", np.logical_and, gpu="(x != 0) & (y != 0)")
logical_or = constant("logical_or", np.logical_or, gpu="(x != 0) | (y != 0)")
logical_xor = constant("logical_xor", np.logical_xor, gpu="(x != 0) != (y != 0)")
logical_not = constant("logical_not", np.logical_not, gpu="x == 0")
gcd = constant("gcd", np.gcd, gpu="integer.gcd", doc="Greatest common divisor.")
lcm = constant("lcm", np.lcm, gpu="integer.lcm", doc="Least common multiple.")

# ------------------------------------------------------------------------------------------ rounding and bits

sign = constant(
    "sign",
    np.sign,
    gpu="tl.where(x > 0, 1, tl.where(x < 0, -1, x))",
    doc="-1, 0 or 1; NaN of NaN. For complex numbers see complex_sign.",
)
floor = constant("floor", np.floor, gpu="tl.floor(x)")
ceil = constant("ceil", np.ceil, gpu="tl.ceil(x)")
trunc = constant("trunc", np.trunc, gpu="libdevice.trunc(x)")
rint = constant("rint", np.rint, gpu="libdevice.rint(x)", doc="Round to the nearest integer, halves to even.")
isnan = constant("isnan", np.isnan, gpu="x != x")
isinf = constant("isinf", np.isinf, gpu="tl.abs(x) == float('inf')")
isfinite = constant("isfinite", np.isfinite, gpu="tl.abs(x) < float('inf')")
signbit = constant("signbit", np.signbit, gpu="libdevice.signbit(x) != 0", doc="Whether x is negative, -0.0 included.")
nextafter = constant("nextafter", np.nextafter, gpu="libdevice.nextafter(x, y)", doc="The number after x towards y.")

# ------------------------------------------------------------------------------------------- choice and extremes

select = elementwise(
    "select",
    np.where,
    d=(None, gate(lambda x: x), gate(lambda x: x, 0, 1)),
    gpu="tl.where(x, y, z)",
    doc="y where x is True, else z.",
)
max = elementwise(
    "max",
    np.maximum,
    d=(
        gate(lambda x, y: x >= y, gate(lambda x, y: x == y, 0.5, 1)),
        gate(lambda x, y: y >= x, gate(lambda x, y: x == y, 0.5, 1)),
    ),
    gpu="tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)",
    doc="The larger of x and y, NaN if one is; ties share the derivative.",
)
min = elementwise(
    "min",
    np.minimum,
    d=(
        gate(lambda x, y: x <= y, gate(lambda x, y: x == y, 0.5, 1)),
        gate(lambda x, y: y <= x, gate(lambda x, y: x == y, 0.5, 1)),
    ),
    gpu="tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)",
    doc="The smaller of x and y, NaN if one is; ties share the derivative.",
)
clamp = elementwise(
    "clamp",
    lambda x, lo, hi: np.clip(x, lo, hi),
    d=(
        gate(lambda x, lo, hi: (lo <= x) & (x <= hi)),
        gate(lambda x, lo, hi: (x < lo) & (lo <= hi)),
        gate(lambda x, lo, hi: (x > hi) | (lo > hi)),
    ),
    gpu="tl.minimum(tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL), z, propagate_nan=tl.PropagateNan.ALL)",
    doc="x between lo and hi; at the bounds the derivative goes to x, outside to the bound.",
)


def _relu(x):
    # On some processors NumPy compares two arrays up to three times as fast as an array and a number.
    return np.maximum(x, np.zeros(x.shape, x.dtype) if 4096 <= np.size(x) <= 65536 else 0)


relu = elementwise(
    "relu",
    _relu,
    d=gate(lambda out: out > 0),
    gpu="tl.maximum(x, 0, propagate_nan=tl.PropagateNan.ALL)",
    doc="max(x, 0), with derivative 0 at 0.",
)
heaviside = elementwise(
    "heaviside",
    np.heaviside,
    d=(None, gate(lambda x: x == 0)),
    gpu="tl.where(x == 0, y, tl.where(x > 0, 1, tl.where(x < 0, 0, x)))",
    doc="0 for negative x, 1 for positive x, y for zero.",
)

# ------------------------------------------------------------------------------------------------- arithmetic

add = elementwise("add", operator.add, d=(1, 1), operator=True, gpu="x + y")
sub = elementwise("sub", operator.sub, d=(1, -1), operator=True, gpu="x - y")
mul = elementwise("mul", operator.mul, d=(lambda y: y, lambda x: x), operator=True, gpu="x * y")
neg = elementwise("neg", operator.neg, d=-1, operator=True, gpu="-x")
div = elementwise(
    "div",
    _python_safe(operator.truediv, np.true_divide),
    d=(lambda t, y: div(t, y), lambda y, out: -div(out, y)),
    operator=True,
    gpu="x / y",
    doc="x / y, inf and nan also of Python numbers.",
)
reciprocal = elementwise("reciprocal", np.reciprocal, d=lambda out: -out * out, gpu="1 / x")
square = elementwise("square", np.square, d=lambda x: 2 * x, gpu="x * x")
abs = elementwise(
    "abs",
    operator.abs,
    d=lambda x: _weak(sign, x),
    operator=True,
    gpu="tl.abs(x)",
    doc="|x| of a real x, with derivative 0 at 0. For complex numbers see complex_abs.",
)
copysign = elementwise(
    "copysign",
    np.copysign,
    d=(lambda x, out: _weak(sign, x) * sign(out), None),
    gpu="libdevice.copysign(x, y)",
    doc="|x| with the sign of y.",
)
floor_divide = constant(
    "floor_divide",
    _python_safe(operator.floordiv, np.floor_divide),
    operator=True,
    gpu="quotient_of_floats(x, y)",
    doc="The greatest integer up to x / y.",
)
rem = elementwise(
    "rem",
    _python_safe(operator.mod, np.remainder),
    d=(1, lambda x, y: -floor_divide(x, y)),
    operator=True,
    gpu="tl.where((x % y != 0) & ((x % y < 0) != (y < 0)), x % y + y, x % y)",
    doc="Remainder with the sign of the divisor y, as Python's %.",
)
fmod = elementwise(
    "fmod",
    np.fmod,
    d=(1, lambda x, y, out: -rint(div(x - out, y))),
    gpu="x % y",
    doc="Remainder with the sign of the dividend x, as C's fmod.",
)
ldexp = elementwise(
    "ldexp",
    np.ldexp,
    d=(lambda t, y: ldexp(t, y), None),
    gpu="libdevice.ldexp(x, y)",
    doc="x * 2**y for integers y.",
)
deg2rad = elementwise("deg2rad", np.deg2rad, d=math.pi / 180, gpu="x * 0.017453292519943295")
rad2deg = elementwise("rad2deg", np.rad2deg, d=180 / math.pi, gpu="x * 57.29577951308232")

# ----------------------------------------------------------------------------------------------------- powers


def _power(x, y):
    """Return x ** y, of Python numbers too as NumPy has it: NaN, not a complex number, for (-8.0) ** 0.5."""
    try:
        out = x**y
    except (ZeroDivisionError, OverflowError):
        return np.power(x, y).item()
    if out.__class__ is complex and x.__class__ is not complex and y.__class__ is not complex:
        return np.power(x, y).item()
    return out


def _promoting_power(x, y):
    """Return x ** y in the dtype of both, for a NumPy whose operator takes that of x alone before a 0-d 0, 1 or 2."""
    if isinstance(x, np.ndarray | np.generic) and isinstance(y, np.ndarray | np.generic) and x.dtype != y.dtype:
        return np.power(x, y)
    return _power(x, y)


_PROMOTES = (np.ones((), np.float16) ** np.ones(())).dtype == np.float64  # not so in NumPy 2.0


def _is_complex(x):
    return x.__class__ is complex or x.__class__ not in PYTHON_SCALARS and x.dtype.kind == "c"


def _is_whole(y):
    """Return whether an exponent is a Python number or of integers, and so not differentiated itself."""
    return y.__class__ in PYTHON_SCALARS or y.dtype.kind in "biu"


def _has_slope(x, y):
    """Return where x**y depends on x: everywhere but for y = 0. A y that varies leaves out the point (0, 0) alone."""
    return y != 0 if _is_whole(y) else (y != 0) | (x != 0)


def _less_one(x, y):
    """Return y - 1, but 1 where the slope is not wanted, so that the unused power is finite to any order."""
    if y.__class__ in PYTHON_SCALARS:
        return y - 1 if y else 1
    if y.dtype == bool:
        return y != y  # 0 in the narrowest of dtypes
    return select(_has_slope(x, y), y - 1, 1)


def _real(x):
    """Return the real part of a number that is often real."""
    return x.real if _is_complex(x) else x


def _is_smooth(x, y):
    """Return where x**y has a logarithmic slope along y: not at x = 0, where the power is constant for positive y."""
    return (x != 0) | (_real(y) < 0)


pow = elementwise(
    "pow",
    _power if _PROMOTES else _promoting_power,
    d=(
        gate(_has_slope, lambda x, y: y * pow(x, _less_one(x, y))),
        gate(_is_smooth, lambda x, y, out: out * log(_like(select(_is_smooth(x, y), x, 1), out))),
    ),
    operator=True,
    gpu="libdevice.pow(x, y)",
    doc="x ** y. x**0 has derivative 0 by x, 0**y has derivative 0 by y ≥ 0, to any order.",
)
sqrt = elementwise("sqrt", np.sqrt, d=lambda t, out: 0.5 * t / out, gpu="tl.sqrt_rn(x)")
rsqrt = elementwise(
    "rsqrt", lambda x: 1 / np.sqrt(x), d=lambda out: -0.5 * out * out * out, gpu="tl.rsqrt(x)", doc="1 / sqrt(x)."
)
cbrt = elementwise("cbrt", np.cbrt, d=lambda out: square(reciprocal(out)) / 3, gpu="cube_root(x)")
hypot = elementwise(
    "hypot",
    np.hypot,
    d=(
        gate(lambda out: out != 0, lambda x, out: x / _nonzero(out)),
        gate(lambda out: out != 0, lambda y, out: y / _nonzero(out)),
    ),
    gpu="libdevice.hypot(x, y)",
    doc="sqrt(x*x + y*y) without overflow, with derivative 0 at (0, 0).",
)


def _nonzero(x):
    """Return x with 1 in place of 0: a divisor where the quotient is not wanted."""
    return select(x == 0, 1, x)


# ------------------------------------------------------------------------------------ exponentials, logarithms

exp = elementwise("exp", np.exp, d=lambda out: out, gpu="tl.exp(x)")
exp2 = elementwise("exp2", np.exp2, d=lambda out: out * math.log(2), gpu="tl.exp2(x)")
expm1 = elementwise("expm1", np.expm1, d=lambda out: out + 1, gpu="libdevice.expm1(x)")
log = elementwise("log", np.log, d=lambda t, x: div(t, x), gpu="tl.log(x)")
log2 = elementwise("log2", np.log2, d=lambda t, x: div(t, x * math.log(2)), gpu="tl.log2(x)")
log10 = elementwise("log10", np.log10, d=lambda t, x: div(t, x * math.log(10)), gpu="libdevice.log10(x)")
log1p = elementwise("log1p", np.log1p, d=lambda t, x: div(t, x + 1), gpu="libdevice.log1p(x)")


@np.errstate(over="ignore")
def _sigmoid(x):
    return 1 / (1 + np.exp(np.multiply(x, -1.0)))  # accurate on both sides; far left it is 1 / inf


def _log_excess(x):
    """Return log(1 + exp(-|x|)): what a softened maximum exceeds the maximum by. NumPy's logaddexp is slower."""
    return np.log1p(np.exp(np.copysign(x, -1)))


sigmoid = elementwise(
    "sigmoid", _sigmoid, d=lambda out: out * (1 - out), gpu="1 / (1 + tl.exp(-x))", doc="1 / (1 + exp(-x))."
)
softplus = elementwise(
    "softplus",
    lambda x: np.maximum(x, 0) + _log_excess(x),
    d=lambda x: sigmoid(x),
    gpu="tl.maximum(x, 0) + libdevice.log1p(tl.exp(-tl.abs(x)))",
    doc="log(1 + exp(x)).",
)
log_sigmoid = elementwise(
    "log_sigmoid",
    lambda x: np.minimum(x, 0) - _log_excess(x),
    d=lambda x: sigmoid(-x),
    gpu="tl.minimum(x, 0) - libdevice.log1p(tl.exp(-tl.abs(x)))",
    doc="log(sigmoid(x)).",
)


def _gap(x, y):
    """Return x - y, 0 where both are the same infinity."""
    return select((x == y) & isinf(x), 0, x - y)


logaddexp = elementwise(
    "logaddexp",
    np.logaddexp,
    d=(
        gate(lambda out: out != -math.inf, lambda x, y: sigmoid(_gap(x, y))),
        gate(lambda out: out != -math.inf, lambda x, y: sigmoid(_gap(y, x))),
    ),
    gpu="tl.where(x == y, x + 0.6931471805599453, tl.maximum(x, y) + libdevice.log1p(tl.exp(-tl.abs(x - y))))",
    doc="log(exp(x) + exp(y)); derivative 0 where both are -inf.",
)
logaddexp2 = elementwise(
    "logaddexp2",
    np.logaddexp2,
    d=(
        gate(lambda out: out != -math.inf, lambda x, y: sigmoid(_gap(x, y) * math.log(2))),
        gate(lambda out: out != -math.inf, lambda x, y: sigmoid(_gap(y, x) * math.log(2))),
    ),
    gpu="tl.where(x == y, x + 1, tl.maximum(x, y) + libdevice.log1p(tl.exp2(-tl.abs(x - y))) * 1.4426950408889634)",
    doc="log2(2**x + 2**y); derivative 0 where both are -inf.",
)


def _exp_sub(x, y):
    with np.errstate(invalid="ignore"):
        out = np.exp(x - y)
    infinite = np.isinf(y)
    return np.where((x == y) & infinite, x > 0, out) if infinite.any() else out


exp_sub = elementwise(
    "exp_sub",
    _exp_sub,
    d=(lambda out: out, lambda out: -out),
    gpu="tl.where((x == y) & (tl.abs(x) == float('inf')), tl.where(x > 0, 1.0, 0.0), tl.exp(x - y))",
    doc="exp(x - y): the share of x in a sum of exponentials with logarithm y. 1 if both are inf, 0 if both are -inf.",
)


def _times_log(log):
    """Return x * log(y) with 0 where x is 0, unless y is NaN."""

    def times(x, y):
        dtype = np.result_type(np.result_type(x, y), np.float16)
        x, y = np.asarray(x, dtype), np.asarray(y, dtype)
        zero = np.equal(x, 0) & ~np.isnan(y)
        return np.where(zero, 0, x * log(np.where(zero, 1, y)))

    return times


def _off_origin(x, y):
    return (x != 0) | (y != 0)


def _off_pole(x, y):
    return (x != 0) | (y != -1)


xlogy = elementwise(
    "xlogy",
    _times_log(np.log),
    d=(
        lambda y, out: log(_like(y, out)),
        gate(_off_origin, lambda x, y: div(x, select(_off_origin(x, y), y, 1))),
    ),
    gpu="tl.where((x == 0) & (y == y), 0, x * tl.log(y))",
    doc="x * log(y), 0 where x is 0.",
)
xlog1py = elementwise(
    "xlog1py",
    _times_log(np.log1p),
    d=(
        lambda y, out: log1p(_like(y, out)),
        gate(_off_pole, lambda x, y: div(x, 1 + select(_off_pole(x, y), y, 0))),
    ),
    gpu="tl.where((x == 0) & (y == y), 0, x * libdevice.log1p(y))",
    doc="x * log(1 + y), 0 where x is 0.",
)

# ------------------------------------------------------------------------- trigonometric and hyperbolic, inverses

sin = elementwise("sin", np.sin, d=lambda x: cos(x), gpu="tl.sin(x)")
cos = elementwise("cos", np.cos, d=lambda x: -sin(x), gpu="tl.cos(x)")
tan = elementwise("tan", np.tan, d=lambda out: 1 + out * out, gpu="libdevice.tan(x)")
asin = elementwise("asin", np.arcsin, d=lambda x: rsqrt((1 - x) * (1 + x)), gpu="libdevice.asin(x)")
acos = elementwise("acos", np.arccos, d=lambda x: -rsqrt((1 - x) * (1 + x)), gpu="libdevice.acos(x)")
atan = elementwise("atan", np.arctan, d=lambda t, x: div(t, 1 + x * x), gpu="libdevice.atan(x)")
sinh = elementwise("sinh", np.sinh, d=lambda x: cosh(x), gpu="libdevice.sinh(x)")
cosh = elementwise("cosh", np.cosh, d=lambda x: sinh(x), gpu="libdevice.cosh(x)")
tanh = elementwise("tanh", np.tanh, d=lambda out: 1 - out * out, gpu="libdevice.tanh(x)")


def _root(x):
    """Return sqrt(1 + x²), of real x without overflow."""
    return sqrt(1 + x * x) if _is_complex(x) else hypot(x, 1)


asinh = elementwise("asinh", np.arcsinh, d=lambda t, x: t / _root(x), gpu="libdevice.asinh(x)")
acosh = elementwise("acosh", np.arccosh, d=lambda x: rsqrt(x - 1) * rsqrt(x + 1), gpu="libdevice.acosh(x)")
atanh = elementwise("atanh", np.arctanh, d=lambda t, x: div(t, (1 - x) * (1 + x)), gpu="libdevice.atanh(x)")


def _over_square(x, r):
    """Return x / r², without overflow; 0 if r is 0."""
    r = _nonzero(r)
    return x / r / r


atan2 = elementwise(
    "atan2",
    np.arctan2,
    d=(
        gate(_off_origin, lambda x, y: _over_square(y, hypot(x, y))),
        gate(_off_origin, lambda x, y: -_over_square(x, hypot(x, y))),
    ),
    gpu="libdevice.atan2(x, y)",
    doc="The angle of the point with ordinate x and abscissa y; derivative 0 at (0, 0).",
)

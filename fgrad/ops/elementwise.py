"""Elementwise primitives: arithmetic, comparison, logic, exponentials, trigonometry, rounding, complex parts.

These broadcast and promote as NumPy's ufuncs do. Those that stand for Python's operators take Python's own operator
as implementation, so that Python numbers among themselves stay Python numbers.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from fgrad.kinds import constant, elementwise, gate

# ------------------------------------------------------------------------------------------------- arithmetic


def _python_safe(python, ufunc):
    """Return an operator that gives inf and nan on Python numbers as NumPy does, in place of an exception."""

    def safe(x, y):
        try:
            return python(x, y)
        except (ZeroDivisionError, OverflowError):
            return ufunc(x, y).item()

    return safe


add = elementwise("add", operator.add, d=(1, 1), operator=True, gpu="x + y")
sub = elementwise("sub", operator.sub, d=(1, -1), operator=True, gpu="x - y")
mul = elementwise("mul", operator.mul, d=(lambda y: y, lambda x: x), operator=True, gpu="x * y")
neg = elementwise("neg", operator.neg, d=-1, operator=True, gpu="-x")
div = elementwise(
    "div",
    _python_safe(operator.truediv, np.true_divide),
    d=(lambda y: 1 / y, lambda y, out: -out / y),
    operator=True,
    gpu="x / y",
)
reciprocal = elementwise("reciprocal", np.reciprocal, d=lambda out: -out * out, gpu="1 / x")
square = elementwise("square", np.square, d=lambda x: 2 * x, gpu="x * x")


def _less_one(y):
    """Return y - 1, with 1 in place of -1, so that the unused power of a zero exponent is finite to any order."""
    if y.__class__ is int or y.__class__ is float:
        return y - 1 if y else 1
    return select(y == 0, 1, y - 1)


def _safe_base(x, y):
    """Return x with 1 in place of 0 where 0**y has derivative 0 by y, so that the unused logarithm is finite."""
    return select((x == 0) & (y >= 0), 1, x)


pow = elementwise(
    "pow",
    _python_safe(operator.pow, np.power),
    d=(
        gate(lambda y: y != 0, lambda x, y: y * pow(x, _less_one(y))),
        gate(lambda x, y: (x != 0) | (y < 0), lambda x, y, out: out * log(_safe_base(x, y))),
    ),
    operator=True,
    gpu="libdevice.pow(x, y)",
)

# ---------------------------------------------------------------------- constant: comparison, logic, rounding

floor_divide = constant("floor_divide", _python_safe(operator.floordiv, np.floor_divide), operator=True, gpu="x // y")
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
logical_not = constant("logical_not", np.logical_not, gpu="x == 0")
sign = constant("sign", np.sign, gpu="tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0))")
floor = constant("floor", np.floor, gpu="tl.floor(x)")
ceil = constant("ceil", np.ceil, gpu="tl.ceil(x)")
trunc = constant("trunc", np.trunc, gpu="libdevice.trunc(x)")
rint = constant("rint", np.rint, gpu="libdevice.rint(x)")
isnan = constant("isnan", np.isnan, gpu="x != x")
isinf = constant("isinf", np.isinf, gpu="libdevice.isinf(x)")
isfinite = constant("isfinite", np.isfinite, gpu="libdevice.isfinited(x)")

rem = elementwise(
    "rem",
    _python_safe(operator.mod, np.remainder),
    d=(1, lambda x, y: -floor_divide(x, y)),
    operator=True,
    gpu="x % y",
    doc="Remainder with the sign of the divisor, as Python's %.",
)

# -------------------------------------------------------------------------------------- choice and extremes

select = elementwise(
    "select",
    np.where,
    d=(None, gate(lambda x: x), gate(lambda x: logical_not(x))),
    gpu="tl.where(x, y, z)",
    doc="y where the bool x is True, else z.",
)


def _half_at_tie(x, y):
    return 1 - (x == y) * 0.5


max = elementwise(
    "max",
    np.maximum,
    d=(gate(lambda x, y: x >= y, _half_at_tie), gate(lambda x, y: y >= x, _half_at_tie)),
    gpu="tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)",
)
min = elementwise(
    "min",
    np.minimum,
    d=(gate(lambda x, y: x <= y, _half_at_tie), gate(lambda x, y: y <= x, _half_at_tie)),
    gpu="tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)",
)


# ------------------------------------------------------------------------------------ exponentials and roots

exp = elementwise("exp", np.exp, d=lambda out: out, gpu="tl.exp(x)")
log = elementwise("log", np.log, d=lambda x: 1 / x, gpu="tl.log(x)")
exp2 = elementwise("exp2", np.exp2, d=lambda out: out * math.log(2), gpu="tl.exp2(x)")
expm1 = elementwise("expm1", np.expm1, d=lambda out: out + 1, gpu="libdevice.expm1(x)")
log2 = elementwise("log2", np.log2, d=lambda x: 1 / (x * math.log(2)), gpu="tl.log2(x)")
log10 = elementwise("log10", np.log10, d=lambda x: 1 / (x * math.log(10)), gpu="libdevice.log10(x)")
log1p = elementwise("log1p", np.log1p, d=lambda x: 1 / (x + 1), gpu="libdevice.log1p(x)")
sqrt = elementwise("sqrt", np.sqrt, d=lambda out: 0.5 / out, gpu="tl.sqrt_rn(x)")
cbrt = elementwise("cbrt", np.cbrt, d=lambda x, out: out / (3 * x), gpu="libdevice.cbrt(x)")

# ------------------------------------------------------------------------- trigonometric and hyperbolic, inverses

sin = elementwise("sin", np.sin, d=lambda x: cos(x), gpu="tl.sin(x)")
cos = elementwise("cos", np.cos, d=lambda x: -sin(x), gpu="tl.cos(x)")
tan = elementwise("tan", np.tan, d=lambda out: 1 + out * out, gpu="libdevice.tan(x)")
tanh = elementwise("tanh", np.tanh, d=lambda out: 1 - out * out, gpu="libdevice.tanh(x)")

"""Elementwise functions: one line each, before a primitive or a short definition in primitives.

Example:
    >>> import fgrad.numpy as fnp
    >>> fnp.tanh([0.0, 1.0])
    array([0.        , 0.76159416])
    >>> fnp.maximum([1, 5], 3)
    array([3, 5])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fgrad.numpy.arguments import as_array, cast, counterpart, inexact, is_weak, promotes_as, strong
from fgrad.numpy.ufuncs import binary, composed, unary
from fgrad.ops import complex as cx
from fgrad.ops import elementwise as e
from fgrad.ops import shape as s

__all__ = """
    abs absolute acos acosh add angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2
    atanh bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
    bitwise_xor cbrt ceil conj conjugate copysign cos cosh deg2rad degrees divide divmod equal exp exp2 expm1
    fabs float_power floor floor_divide fmax fmin fmod frexp gcd greater greater_equal heaviside hypot imag
    invert iscomplex isfinite isinf isnan isreal lcm ldexp left_shift less less_equal log log10 log1p log2
    logaddexp logaddexp2 logical_and logical_not logical_or logical_xor maximum minimum mod modf multiply
    negative nextafter not_equal positive pow power rad2deg radians real real_if_close reciprocal remainder
    right_shift rint sign signbit sin sinh spacing sqrt square subtract tan tanh true_divide trunc
""".split()

# --------------------------------------------------------------------------------------- definitions in primitives


def _strong(prim: Any) -> Any:
    """Return a unary primitive that stands for an operator as a definition that gives NumPy's strong dtype."""
    return lambda x: prim(as_array(x))


def _by_dtype(real: Any, complex_: Any) -> Any:
    """Return a definition that picks a primitive by whether its operand is complex."""

    def definition(x: Any) -> Any:
        x = as_array(x)
        return complex_(x) if x.dtype.kind == "c" else real(x)

    return definition


def _conjugate(x: Any) -> Any:
    x = as_array(x)
    if x.dtype.kind == "c":
        return cx.conj(x)
    return cast(x, np.int8) if x.dtype.kind == "b" else s.copy(x)


def _positive(x: Any) -> Any:
    x = as_array(x)
    if x.dtype.kind == "b":
        raise TypeError("positive: not defined for arrays of bools")
    return s.copy(x)


def _not_nan(extreme: Any) -> Any:
    """Return the definition of fmax or fmin: a NaN gives way to the other operand."""

    def definition(x: Any, y: Any) -> Any:
        x, y = strong(x, y)
        return extreme(e.select(e.isnan(x), y, x), e.select(e.isnan(y), x, y))

    return definition


def _power(x: Any, y: Any) -> Any:
    x, y = strong(x, y)
    if not is_weak(x) and x.dtype.kind == "b":  # the operator, unlike the ufunc, keeps bools narrow
        dtype = np.result_type(x.dtype, promotes_as(y))
        x = cast(x, np.int8 if dtype.kind == "b" else dtype)
    if y.__class__ is int and y < 0 and x.dtype.kind in "biu":
        raise ValueError("Integers to negative integer powers are not allowed.")
    return e.pow(x, y)


def _float_power(x: Any, y: Any) -> Any:
    x, y = as_array(x), as_array(y)
    dtype = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
    return e.pow(cast(x, dtype), cast(y, dtype))


def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    x, y = strong(x, y)
    return e.floor_divide(x, y), e.rem(x, y)


def _floating(x: Any) -> Any:
    """Return an array cast to the float dtype that NumPy's real float ufuncs compute in."""
    x = as_array(x)
    return x if x.dtype.kind == "f" else cast(x, np.result_type(x.dtype, np.float16))


def _modf(x: Any) -> tuple[Any, Any]:
    x = _floating(x)
    whole = e.trunc(x)
    return e.copysign(e.select(e.isinf(x), 0, x - whole), x), whole


def _frexp(x: Any) -> tuple[Any, Any]:
    x = _floating(x)
    plain = e.logical_and(e.isfinite(x), e.ne(x, 0))
    size = e.select(plain, e.abs(x), 1)
    exponent = cast(e.floor(e.log2(size)), np.int32) + np.int32(1)
    fraction = e.ldexp(size, -exponent)  # the logarithm is rounded: correct it by one where that matters
    exponent = exponent + cast(e.ge(fraction, 1), np.int32) - cast(e.lt(fraction, 0.5), np.int32)
    exponent = cast(e.select(plain, exponent, 0), np.int32)
    return e.ldexp(x, -exponent), exponent


def _spacing(x: Any) -> Any:
    x = s.stop_gradient(_floating(x))
    size = e.abs(x)
    return e.copysign(e.nextafter(size, np.inf) - size, x)


# --------------------------------------------------------------------------------------------------- arithmetic

add = binary(np.add, e.add, "Add two arrays.")
subtract = binary(np.subtract, e.sub, "Subtract the second array from the first.")
multiply = binary(np.multiply, e.mul, "Multiply two arrays.")
divide = true_divide = binary(np.true_divide, e.div, "Divide the first array by the second; integers give floats.")
floor_divide = binary(np.floor_divide, e.floor_divide, "Divide and round down; the derivative is zero.")
remainder = mod = binary(np.remainder, e.rem, "Compute the remainder of a division, with the divisor's sign.")
fmod = binary(np.fmod, e.fmod, "Compute the remainder of a division, with the dividend's sign.")
divmod = composed(np.divmod, _divmod, "Compute quotient, rounded down, and remainder of a division.")
power = pow = composed(
    np.power,
    _power,
    "Raise the first array to the power of the second.\n\n    At x = 0 the derivative of x**0 is 0, to any order.",
)
float_power = composed(np.float_power, _float_power, "Raise to a power in float64 or complex128.")
negative = composed(np.negative, _strong(e.neg), "Negate.")
positive = composed(np.positive, _positive, "Return a copy with the sign it has.")
reciprocal = unary(np.reciprocal, e.reciprocal, "Compute 1 / x; for integers, rounded towards zero.")
square = unary(np.square, e.square, "Multiply each element by itself.")
absolute = abs = composed(
    np.absolute, _by_dtype(e.abs, cx.complex_abs), "Compute the absolute value.\n\n    Its derivative at 0 is 0."
)
fabs = composed(np.fabs, lambda x: e.abs(_floating(x)), "Compute the absolute value of reals, in floats.")
sign = composed(np.sign, _by_dtype(e.sign, cx.complex_sign), "Return -1, 0 or 1; for complex x, x / abs(x).")
gcd = binary(np.gcd, e.gcd, "Compute the greatest common divisor of integers.")
lcm = binary(np.lcm, e.lcm, "Compute the least common multiple of integers.")

# ----------------------------------------------------------------------------------- exponentials and logarithms

exp = unary(np.exp, e.exp, "Compute the exponential.")
exp2 = unary(np.exp2, e.exp2, "Compute 2**x.")
expm1 = unary(np.expm1, e.expm1, "Compute exp(x) - 1, precise near 0.")
log = unary(np.log, e.log, "Compute the natural logarithm.")
log2 = unary(np.log2, e.log2, "Compute the logarithm to base 2.")
log10 = unary(np.log10, e.log10, "Compute the logarithm to base 10.")
log1p = unary(np.log1p, e.log1p, "Compute log(1 + x), precise near 0.")
logaddexp = binary(
    np.logaddexp,
    e.logaddexp,
    "Compute log(exp(x1) + exp(x2)) without overflow.\n\n    Where both are -inf the value is -inf, the derivative 0.",
)
logaddexp2 = binary(np.logaddexp2, e.logaddexp2, "Compute log2(2**x1 + 2**x2) without overflow.")
sqrt = unary(np.sqrt, e.sqrt, "Compute the square root. Its derivative at 0 is inf.")
cbrt = unary(np.cbrt, e.cbrt, "Compute the cube root.")

# ----------------------------------------------------------------------------------- trigonometric and hyperbolic

sin = unary(np.sin, e.sin, "Compute the sine of radians.")
cos = unary(np.cos, e.cos, "Compute the cosine of radians.")
tan = unary(np.tan, e.tan, "Compute the tangent of radians.")
arcsin = asin = unary(np.arcsin, e.asin, "Compute the inverse sine, in radians.")
arccos = acos = unary(np.arccos, e.acos, "Compute the inverse cosine, in radians.")
arctan = atan = unary(np.arctan, e.atan, "Compute the inverse tangent, in radians.")
arctan2 = atan2 = binary(
    np.arctan2,
    e.atan2,
    "Compute the angle of the point (x2, x1), in radians.\n\n    At the origin its derivatives are 0.",
)
hypot = binary(np.hypot, e.hypot, "Compute sqrt(x1**2 + x2**2). At the origin its derivatives are 0.")
sinh = unary(np.sinh, e.sinh, "Compute the hyperbolic sine.")
cosh = unary(np.cosh, e.cosh, "Compute the hyperbolic cosine.")
tanh = unary(np.tanh, e.tanh, "Compute the hyperbolic tangent.")
arcsinh = asinh = unary(np.arcsinh, e.asinh, "Compute the inverse hyperbolic sine.")
arccosh = acosh = unary(np.arccosh, e.acosh, "Compute the inverse hyperbolic cosine.")
arctanh = atanh = unary(np.arctanh, e.atanh, "Compute the inverse hyperbolic tangent.")
deg2rad = unary(np.deg2rad, e.deg2rad, "Convert degrees to radians.")
rad2deg = unary(np.rad2deg, e.rad2deg, "Convert radians to degrees.")
radians = unary(np.radians, e.deg2rad, "Convert degrees to radians.")
degrees = unary(np.degrees, e.rad2deg, "Convert radians to degrees.")

# ---------------------------------------------------------------------------------------------- extremes, rounding

maximum = binary(np.maximum, e.max, "Take the larger of two; NaN wins, and ties share the derivative in halves.")
minimum = binary(np.minimum, e.min, "Take the smaller of two; NaN wins, and ties share the derivative in halves.")
fmax = composed(np.fmax, _not_nan(e.max), "Take the larger of two; a NaN gives way.")
fmin = composed(np.fmin, _not_nan(e.min), "Take the smaller of two; a NaN gives way.")
floor = unary(np.floor, e.floor, "Round down.")
ceil = unary(np.ceil, e.ceil, "Round up.")
trunc = unary(np.trunc, e.trunc, "Round towards zero.")
rint = unary(np.rint, e.rint, "Round to the nearest integer, halves to even.")
copysign = binary(np.copysign, e.copysign, "Return x1 with the sign of x2.")
nextafter = binary(np.nextafter, e.nextafter, "Return the float next to x1 in the direction of x2.")
spacing = composed(np.spacing, _spacing, "Return the distance to the next float away from zero.")
heaviside = binary(np.heaviside, e.heaviside, "Return 0 below zero, 1 above, and x2 at zero.")
ldexp = binary(np.ldexp, e.ldexp, "Compute x1 * 2**x2 for integer x2.")
frexp = composed(np.frexp, _frexp, "Split into a fraction in [0.5, 1) and an exponent of 2.")
modf = composed(np.modf, _modf, "Split into fractional and whole part, both with the sign of x.")

# ----------------------------------------------------------------------------------- comparison, logic and bits

equal = binary(np.equal, e.eq, "Say where two arrays are equal.")
not_equal = binary(np.not_equal, e.ne, "Say where two arrays differ.")
less = binary(np.less, e.lt, "Say where the first is less.")
less_equal = binary(np.less_equal, e.le, "Say where the first is less or equal.")
greater = binary(np.greater, e.gt, "Say where the first is greater.")
greater_equal = binary(np.greater_equal, e.ge, "Say where the first is greater or equal.")
logical_and = binary(np.logical_and, e.logical_and, "Say where both differ from zero.")
logical_or = binary(np.logical_or, e.logical_or, "Say where one at least differs from zero.")
logical_xor = binary(np.logical_xor, e.logical_xor, "Say where exactly one differs from zero.")
logical_not = unary(np.logical_not, e.logical_not, "Say where an array is zero.")
bitwise_and = binary(np.bitwise_and, e.bitwise_and, "Compute the and of bits.")
bitwise_or = binary(np.bitwise_or, e.bitwise_or, "Compute the or of bits.")
bitwise_xor = binary(np.bitwise_xor, e.bitwise_xor, "Compute the exclusive or of bits.")
bitwise_not = bitwise_invert = invert = composed(np.invert, _strong(e.invert), "Flip all bits, or bools.")
left_shift = bitwise_left_shift = binary(np.left_shift, e.left_shift, "Shift bits up by x2 places.")
right_shift = bitwise_right_shift = binary(np.right_shift, e.right_shift, "Shift bits down by x2 places.")
bitwise_count = unary(np.bitwise_count, e.bitwise_count, "Count the bits set in abs(x).")
isnan = unary(np.isnan, e.isnan, "Say where elements are NaN.")
isinf = unary(np.isinf, e.isinf, "Say where elements are inf or -inf.")
isfinite = unary(np.isfinite, e.isfinite, "Say where elements are neither infinite nor NaN.")
signbit = unary(np.signbit, e.signbit, "Say where the sign bit is set.")

# ------------------------------------------------------------------------------------------- complex numbers

conjugate = conj = composed(
    np.conjugate,
    _conjugate,
    "Return the complex conjugate.\n\n    Cotangents pair without a conjugate.",
)


@counterpart(np.real)
def real(val):
    """Return the real part of an array, elementwise; that of a real array is the array."""
    val = as_array(val)
    return cx.real(val) if val.dtype.kind == "c" else val


@counterpart(np.imag)
def imag(val):
    """Return the imaginary part of an array, elementwise; that of a real array is zero."""
    val = as_array(val)
    return cx.imag(val) if val.dtype.kind == "c" else np.zeros(val.shape, val.dtype)


@counterpart(np.angle)
def angle(z, deg=False):
    """Return the angle of complex numbers, in radians or degrees; at 0 its derivative is 0."""
    z = inexact(as_array(z))
    out = atan2(imag(z), real(z))
    return e.rad2deg(out) if deg else out


@counterpart(np.iscomplex)
def iscomplex(x):
    """Say where an array has an imaginary part other than zero."""
    return e.ne(imag(x), 0)


@counterpart(np.isreal)
def isreal(x):
    """Say where an array has no imaginary part, or one of zero."""
    return e.eq(imag(x), 0)


@counterpart(np.real_if_close)
def real_if_close(a, tol=100):
    """Return a traced value unchanged if it is real; whether imaginary parts vanish is not known for a complex one."""
    a = as_array(a)
    if a.dtype.kind == "c":
        raise TypeError("real_if_close: the dtype of the result would depend on values; use fgrad.numpy.real")
    return a

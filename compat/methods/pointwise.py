"""Arithmetic, comparison and elementwise functions, with Python's operators."""

from __future__ import annotations

import math

import numpy as np

from fgrad.extend import TABLE as P

from .. import dtypes
from ..tape import NO_PARAMS
from ..tensor import Tensor, wrap
from ..views import imag_view, real_view, view
from .steps import quick, steps
from .table import FUNCTIONS, binary, composed, define, in_place, unary, with_zero_slope, without_derivative

# ---------------------------------------------------------------------------------------------- functions of one value

UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid"
    " reciprocal erf erfc erfinv lgamma digamma deg2rad rad2deg"
).split()
_ALIASES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}
for name in UNARY:
    if name in P:
        define(name, unary(P[name]), inplace=True, aliases=(_ALIASES[name],) if name in _ALIASES else ())
_ROUNDING = {"sign": "sign", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint"}


def _unrounded(prim):
    """Return a rounding function: integers are whole already; gradients are zero."""
    whole = prim.name != "sign"

    def fun(input, *, decimals=0):
        if decimals:
            scale = np.asarray(10.0**decimals, input.dtype)
            return fun(input * scale) / scale
        kept = 0 * input if input.dtype.kind in "fcV" else np.zeros((), input.dtype)
        return input + kept if whole and input.dtype.kind in "biu" else with_zero_slope(prim(input), input)

    return fun


for name, prim in _ROUNDING.items():
    fun = _unrounded(P[prim])
    fun.__name__ = name
    define(name, composed(fun), inplace=True, aliases=("fix",) if name == "trunc" else ())
define("neg", unary(P["neg"], None), inplace=True, aliases=("negative",))
define("relu", unary(P["relu"], None), inplace=True)
define("logical_not", unary(P["logical_not"], None), inplace=True)
define("bitwise_not", unary(P["invert"], None), inplace=True)
for name in "isnan isinf isfinite signbit".split():
    define(name, unary(P[name], None))


def abs(input):
    if input.dtype.kind == "c":
        return P["complex_abs"](input)
    return P["abs"](input)


def frac(input):
    return input - P["trunc"](input)


def square(input):
    return input * input


def sinc(input):
    return np.sinc(input)


def softplus(input):
    return P["softplus"](input)


def logit(input, eps=None):
    x = input if eps is None else np.clip(input, eps, 1 - eps)
    return P["log"](x / (1 - x))


def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    limits = np.finfo(input.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    x = np.where(np.isnan(input), np.asarray(nan, input.dtype), input)
    return np.where(x == np.inf, np.asarray(high, x.dtype), np.where(x == -np.inf, np.asarray(low, x.dtype), x))


def mvlgamma(input, p):
    steps = [P["lgamma"](input - 0.5 * k) for k in range(p)]
    total = steps[0]
    for s in steps[1:]:
        total = total + s
    return total + 0.25 * p * (p - 1) * math.log(math.pi)


for fun in (abs, frac, square, sinc, logit, nan_to_num, mvlgamma):
    define(fun.__name__, composed(fun), inplace=True, aliases=("absolute",) if fun is abs else ())
define("positive", lambda input: input, out=False)

# ---------------------------------------------------------------------------------------------- functions of two values

_add = binary(P["add"])
_sub = binary(P["sub"])
_mul = binary(P["mul"])
_div = binary(P["div"], "float", quiet=True)
_pow_two = binary(P["pow"], quiet=True)


def copysign(input, other):
    return (
        with_zero_slope(P["copysign"](input, other), other) if hasattr(other, "dtype") else P["copysign"](input, other)
    )


def scaled(fun, name):
    """Return add or sub with torch's `alpha`, a factor of the second operand."""

    def call(input, other, *, alpha=1):
        return fun(input, other) if alpha == 1 else fun(input, _mul(other, alpha))

    call.primitive = fun.primitive
    return define(name, call, inplace=True)


_FROM_NUMBER = steps(P["sub"])


def rsub(input, other, *, alpha=1):
    if alpha != 1:
        input = input * alpha
    if other.__class__ in (float, int) and quick(input):
        return _FROM_NUMBER((other, input), NO_PARAMS, "RsubBackward1")
    return _sub(other, input)


def _rounded_division(input, other, rounding_mode):
    out = {"floor": P["floor"], "trunc": P["trunc"]}[rounding_mode](input / other)
    return with_zero_slope(out, input + other)


def div(input, other, *, rounding_mode=None):
    if rounding_mode is None:
        return _div(input, other)
    kind = dtypes.result_dtype([x._data if isinstance(x, Tensor) else x for x in (input, other)])
    if kind.kind in "iu":
        return _integer_division[rounding_mode](input, other)
    return _divided(input, other, rounding_mode)


_divided = composed(_rounded_division, "DivBackward1", promote=None)
_integer_division = {
    "floor": binary(P["floor_divide"], quiet=True),
    "trunc": composed(lambda a, b: (P["sign"](a) * P["sign"](b)) * (np.abs(a) // np.abs(b)), "DivBackward1"),
}


def pow(input, exponent):
    """Return input ** exponent; RuntimeError for integers to negative integer powers."""
    if isinstance(exponent, int) and exponent < 0 and isinstance(input, Tensor) and input._data.dtype.kind in "iu":
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if isinstance(input, (int, float)) and isinstance(exponent, Tensor):
        return _pow_of_number(input, exponent)
    return _pow_two(input, exponent)


def _pow_of_number(base, exponent):
    kind = dtypes.result_dtype([base, exponent._data])
    return _pow_two(wrap(np.asarray(base, kind)), exponent)


div.primitive, pow.primitive = _div.primitive, _pow_two.primitive
add = scaled(_add, "add")
sub = scaled(_sub, "sub")
define("subtract", sub, inplace=True)
define("mul", _mul, inplace=True, aliases=("multiply",))
define("div", div, inplace=True, aliases=("divide", "true_divide"))
define("pow", pow, inplace=True)
define("floor_divide", lambda input, other: div(input, other, rounding_mode="floor"), inplace=True)
define("rsub", rsub)
define("remainder", binary(P["rem"], quiet=True), inplace=True)
define("fmod", binary(P["fmod"], quiet=True), inplace=True)
define("atan2", binary(P["atan2"], "float"), inplace=True, aliases=("arctan2",))
define("maximum", binary(P["max"]))
define("minimum", binary(P["min"]))
define("hypot", binary(P["hypot"], "float"), inplace=True)
define("copysign", composed(copysign, promote="float"), inplace=True)
define("xlogy", binary(P["xlogy"], "float", quiet=True), inplace=True)
define("logaddexp", binary(P["logaddexp"], quiet=True))
define("logaddexp2", binary(P["logaddexp2"], quiet=True))
define("nextafter", without_derivative(binary(P["nextafter"]), "nextafter"), inplace=True)
define("heaviside", binary(P["heaviside"]), inplace=True)
_COMPARISONS = {
    "eq": (),
    "ne": ("not_equal",),
    "lt": ("less",),
    "le": ("less_equal",),
    "gt": ("greater",),
    "ge": ("greater_equal",),
}
for name, aliases in _COMPARISONS.items():
    define(name, binary(P[name]), inplace=True, aliases=aliases)
for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"):
    define(name, binary(P[name]), inplace=True)
define("bitwise_left_shift", binary(P["left_shift"]), inplace=True)
define("bitwise_right_shift", binary(P["right_shift"]), inplace=True)


def fmax(input, other):
    return np.where(np.isnan(input), other, np.where(np.isnan(other), input, P["max"](input, other)))


def fmin(input, other):
    return np.where(np.isnan(input), other, np.where(np.isnan(other), input, P["min"](input, other)))


define("fmax", composed(fmax, promote="arithmetic"))
define("fmin", composed(fmin, promote="arithmetic"))


def clamp(input, min=None, max=None):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if min is not None:
        input = np.where(input < min, _like(min, input), input)
    return input if max is None else np.where(input > max, _like(max, input), input)


def _like(bound, x):
    return bound.astype(x.dtype) if hasattr(bound, "dtype") else np.asarray(bound, x.dtype)


_clamp = composed(
    clamp,
    lambda input, min=None, max=None: (
        "ClampBackward0" if isinstance(min, Tensor) or isinstance(max, Tensor) else "ClampBackward1"
    ),
)
_CLAMPED = steps(P["clamp"])
_BOUNDS = (float, int, type(None))


def clamped(input, min=None, max=None):
    """Limit values to [min, max]; integers with a float bound become floats."""
    if quick(input) and min.__class__ in _BOUNDS and max.__class__ in _BOUNDS and not min is max is None:
        low, high = -math.inf if min is None else min, math.inf if max is None else max
        return _CLAMPED((input, low, high), NO_PARAMS, "ClampBackward1")
    kind = dtypes.result_dtype([x._data if isinstance(x, Tensor) else x for x in (input, min, max) if x is not None])
    return _clamp(input if input._data.dtype == kind else input.to(dtypes.of(kind)), min, max)


define("clamp", clamped, inplace=True, aliases=("clip",))
define("clamp_min", lambda input, min: clamped(input, min), inplace=True)
define("clamp_max", lambda input, max: clamped(input, None, max), inplace=True)


def lerp(input, end, weight):
    return input + weight * (end - input)


def addcmul(input, tensor1, tensor2, *, value=1):
    product = tensor1 * tensor2
    return input + (product if value == 1 else product * value)


def addcdiv(input, tensor1, tensor2, *, value=1):
    quotient = tensor1 / tensor2
    return input + (quotient if value == 1 else quotient * value)


for fun in (lerp, addcmul, addcdiv):
    define(fun.__name__, composed(fun), inplace=True)

# ------------------------------------------------------------------------------------------------------- complex


def conj(input):
    return P["conj"](input)


def sgn(input):
    if input.dtype.kind != "c":
        return with_zero_slope(P["sign"](input), input)
    size = P["complex_abs"](input)
    return np.where(size == 0, 0, input / np.where(size == 0, 1, size))


define("sgn", composed(sgn), inplace=True)


def part(prim, name):
    """Return `real` or `imag`: a view of the part of a complex tensor."""

    def fun(input):
        if input._data.dtype.kind != "c":
            if name == "imag":
                raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
            return input
        return view(prim, input, {}, name.capitalize() + "Backward0")

    return fun


for name, prim in (("real", real_view), ("imag", imag_view)):
    fun = define(name, part(prim, name), method=False, out=False)
    setattr(Tensor, name, property(fun, lambda self, value, fun=fun: fun(self).copy_(value) and None))
_conj = composed(conj)
define("conj", lambda input: _conj(input) if input._data.dtype.kind == "c" else input, out=False)
define("conj_physical", composed(conj), inplace=True)
define("resolve_conj", lambda input: input, out=False)
define("complex", composed(lambda real, imag: P["complex"](real, imag), "ComplexBackward0"), method=False)
define(
    "polar",
    composed(lambda abs, angle: P["complex"](abs * np.cos(angle), abs * np.sin(angle)), "PolarBackward0"),
    method=False,
)
define("angle", composed(lambda input: np.angle(input), "AngleBackward0"))
define("isreal", composed(lambda input: np.isreal(input)))


def view_as_real(input):
    return np.stack([P["real"](input), P["imag"](input)], -1)


def view_as_complex(input):
    return P["complex"](input[..., 0], input[..., 1])


define("view_as_real", composed(view_as_real), method=False)
define("view_as_complex", composed(view_as_complex), method=False)

# ----------------------------------------------------------------------------------------------------- comparison


def _plain(x):
    return x._data if isinstance(x, Tensor) else x


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    return bool(np.allclose(_plain(input), _plain(other), rtol, atol, equal_nan))


def equal(input, other):
    return input._data.shape == other._data.shape and bool(np.array_equal(input._data, other._data))


define("allclose", allclose, out=False)
define("equal", equal, out=False)
define(
    "isclose",
    composed(
        lambda input, other, rtol=1e-05, atol=1e-08, equal_nan=False: np.isclose(input, other, rtol, atol, equal_nan)
    ),
)

# ------------------------------------------------------------------------------------------------------ operators


def reflected(fun):
    """Return the operator method for operands in the opposite order."""

    def method(self, other):
        return fun(other, self)

    return method


_OPERATORS = {
    "add": _add, "sub": _sub, "mul": _mul, "truediv": _div, "pow": pow, "mod": FUNCTIONS["remainder"],
    "floordiv": FUNCTIONS["floor_divide"], "and": FUNCTIONS["bitwise_and"], "or": FUNCTIONS["bitwise_or"],
    "xor": FUNCTIONS["bitwise_xor"], "lshift": FUNCTIONS["bitwise_left_shift"],
    "rshift": FUNCTIONS["bitwise_right_shift"],
}  # fmt: skip
for name, fun in _OPERATORS.items():
    setattr(Tensor, f"__{name}__", fun)
    setattr(Tensor, f"__r{name}__", rsub if name == "sub" else reflected(fun))
    setattr(Tensor, f"__i{name}__", in_place(fun, name))
Tensor.__div__, Tensor.__rdiv__ = Tensor.__truediv__, Tensor.__rtruediv__
for name in _COMPARISONS:
    setattr(Tensor, f"__{name}__", binary(P[name]))
Tensor.__hash__ = object.__hash__
Tensor.__neg__ = FUNCTIONS["neg"]
Tensor.__pos__ = FUNCTIONS["positive"]
Tensor.__abs__ = FUNCTIONS["abs"]
Tensor.__invert__ = FUNCTIONS["bitwise_not"]

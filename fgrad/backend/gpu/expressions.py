"""What an elementwise equation is in Triton: its text, and the types its operands are computed in.

The table of primitives has the text for floating point. Here is what integers and bools need in its place, so that a
kernel gives what NumPy gives there too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from fgrad.program import Equation, Literal

HELPERS = '''
@triton.jit
def larger(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def smaller(x, y):
    return tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def product(x, y):
    return x * y


@triton.jit
def quotient(x, y):
    """x // y of integers: 0 where y is 0, and no division that overflows."""
    odd = (y == 0) | ((y < 0) & (y + 1 == 0))
    divisor = tl.where(odd, 1, y)
    below = (x % divisor != 0) & ((x < 0) != (divisor < 0))
    return tl.where(y == 0, 0, tl.where(odd, 0 - x, x // divisor - below.to(x.dtype)))


@triton.jit
def remainder(x, y):
    """x % y of integers, with the sign of y: 0 where y is 0."""
    left = left_over(x, y)
    return tl.where((left != 0) & ((left < 0) != (y < 0)), left + y, left)


@triton.jit
def left_over(x, y):
    """The remainder of integers with the sign of x: 0 where y is 0."""
    return x % tl.where((y == 0) | ((y < 0) & (y + 1 == 0)), 1, y)


@triton.jit
def quotient_of_floats(x, y):
    """x // y of floating-point numbers as NumPy's divmod has it, from the exact remainder."""
    left = x % y
    below = (left != 0) & ((left < 0) != (y < 0))
    ratio = (x - left) / y - tl.where(below, 1.0, 0.0)
    whole = tl.floor(ratio)
    whole = tl.where(ratio - whole > 0.5, whole + 1, whole)
    return tl.where(y == 0, x / y, tl.where(ratio == 0, libdevice.copysign(ratio, x / y), whole))


@triton.jit
def cube_root(x):
    """The cube root of floating-point numbers: a power, and a step of Newton's; AMD's library has none of its own."""
    size = tl.abs(x)
    inside = (size > 0) & (size < float("inf"))
    power = libdevice.pow(tl.where(inside, size, 1.0), 1.0 / 3.0 + tl.zeros_like(x))
    root = power + (size / (power * power) - power) / 3.0
    return tl.where(inside, libdevice.copysign(root, x), x)
'''
"""Functions that expressions may call, by the names of what they do."""

DTYPES = frozenset("bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64".split())
"""What kernels compute with."""

_HALVES = ("float16", "bfloat16")

_OF_INTEGERS = {
    "floor": "x",
    "ceil": "x",
    "trunc": "x",
    "floor_divide": "quotient(x, y)",
    "rem": "remainder(x, y)",
    "fmod": "left_over(x, y)",
}
_OF_BOOLS = {"add": "x | y", "mul": "x & y", "square": "x", "abs": "x", "floor": "x", "ceil": "x", "trunc": "x"}
_OF_UNSIGNED = {"sign": "tl.where(x > 0, 1, x)", "abs": "x", "bitwise_count": "libdevice.popc(x.to(tl.int64))"}
_LEFT_TO_NUMPY = frozenset(
    {("pow", "i"), ("pow", "u"), ("pow", "b"), ("exp_sub", "i"), ("exp_sub", "u"), ("exp_sub", "b")}
    | {(name, "b") for name in ("floor_divide", "rem", "fmod")}
)
"""By kind of the first operand, what NumPy does in a way of its own: negative powers raise, differences wrap around."""


def expression(eq: Equation) -> str | None:
    """Return the Triton expression of an elementwise equation in x, y and z, None if there is none."""
    name, text = eq.prim.name, eq.prim.gpu
    if name == "broadcast":
        return "x"
    if text is None or name in ("reshape", "transpose", "slice"):
        return None
    head = text.partition(".")[0]
    if head.isidentifier() and head not in ("tl", "libdevice", "x"):
        return None  # the name of a kernel, not an expression
    dtypes = operand_dtypes(eq)
    if dtypes is None:
        return None
    dtype = dtypes[0]
    kind = "f" if is_float(dtype) else dtype.kind
    if (name, eq.inputs[0].type.dtype.kind) in _LEFT_TO_NUMPY or (name == "nextafter" and dtype.name in _HALVES):
        return None
    if kind == "b" and name in _OF_BOOLS:
        return _OF_BOOLS[name]
    if kind == "u" and name in _OF_UNSIGNED:
        return _OF_UNSIGNED[name]
    if kind in "iu" and name in _OF_INTEGERS:
        return _OF_INTEGERS[name]
    return text


COMPARISONS = frozenset("eq ne lt le gt ge".split())
"""What takes half precision as it is stored: a value kept in float32 equals none that was rounded on its way."""


def filled(eq: Equation, names: Sequence[str]) -> str:
    """Return an equation's expression with its operands in place, converted to the type it is computed in.

    Args:
        eq: one that has an expression.
        names: those of its operands in the kernel; what stands for a number of the program is not looked at.
    """
    text = expression(eq)
    assert text is not None
    wanted = [computed(dtype) for dtype in operand_dtypes(eq) or ()]
    parts = []
    for a, name, kind in zip(eq.inputs, names, wanted, strict=True):
        if isinstance(a, Literal):
            parts.append(literal(a.value, kind))
            continue
        has = computed(a.type.dtype)
        if eq.prim.name in COMPARISONS and is_float(a.type.dtype) and stored(a.type.dtype) != has:
            name, has = f"{name}.to({stored(a.type.dtype)})", stored(a.type.dtype)
        parts.append(name if has == kind else f"{name}.to({kind})")
    out = computed(eq.outputs[0].type.dtype)
    if out == "tl.float64":
        text = text.replace("tl.sqrt_rn(", "tl.sqrt(")  # the former takes float32 alone
    named = dict(zip("xyz", parts, strict=False)) | {"dtype": stored(eq.outputs[0].type.dtype)}
    named |= {name: repr(value) for name, value in eq.params.items() if isinstance(value, (int, float))}
    text = re.sub(r"\b[a-z]+\b", lambda m: named.get(m[0], m[0]), text)
    return f"({text}).to({out})" if eq.prim.name in ("cast", "to_integer", "sign") else text


def operand_dtypes(eq: Equation) -> list[Any] | None:
    """Return the dtype that NumPy converts each operand to before it computes; None if kernels have no such type."""
    name, out = eq.prim.name, eq.outputs[0].type.dtype
    kinds = [a.type for a in eq.inputs]
    if name in ("cast", "to_integer", "broadcast", "copy", "stop_gradient"):
        found = [kind.dtype for kind in kinds]
    elif name == "select":
        found = [np.dtype(bool), out, out]
    elif name == "ldexp":
        found = [out, np.dtype(np.int32)]
    elif eq.prim.kind == "elementwise":
        found = [out] * len(kinds)
    else:
        given = [_weak(kind) if kind.weak else kind.dtype for kind in kinds]
        found = _loop(eq.prim.impl, given) or [_common(given)] * len(kinds)
    return found if all(dtype.name in DTYPES for dtype in found) else None


def _loop(function: Any, given: list[Any]) -> list[Any]:
    """Return the types of the operands in a ufunc's loop; nothing if `function` is none, or knows them not."""
    if not isinstance(function, np.ufunc):
        return []
    kinds = [type(x) if isinstance(x, (bool, int, float)) else x for x in given]
    try:
        return list(function.resolve_dtypes((*kinds, *[None] * function.nout))[: function.nin])
    except TypeError:  # a dtype of ml_dtypes, whose ufuncs resolve by value
        return []


def _common(given: list[Any]) -> Any:
    """Return the type that NumPy's ufuncs take operands of several types in."""
    try:
        return np.result_type(*given)
    except TypeError:  # float16 and bfloat16, which have no common type of their own
        return np.dtype(np.float32)


def _weak(kind: Any) -> Any:
    """Return a Python number that promotes as a weak type does."""
    return False if kind.dtype.kind == "b" else 0 if kind.dtype.kind in "iu" else 0.0


def is_float(dtype: Any) -> bool:
    """Return whether a dtype is of floating-point numbers, those of ml_dtypes included."""
    return bool(dtype.kind == "f" or dtype.name == "bfloat16")


def wide(dtype: Any) -> np.dtype[Any]:
    """Return the dtype that a dtype is computed in: half precision in float32."""
    return np.dtype(np.float32) if np.dtype(dtype).name in _HALVES else np.dtype(dtype)


def computed(dtype: Any) -> str:
    """Return the Triton type that a dtype is computed in."""
    return stored(wide(dtype))


def stored(dtype: Any) -> str:
    """Return the Triton type of a dtype in memory."""
    name = np.dtype(dtype).name
    return "tl.int1" if name == "bool" else f"tl.{name}"


def literal(value: Any, kind: str) -> str:
    """Return a number of the program as Triton text of a type; what Triton would take for float32 is written out."""
    if isinstance(value, float) and not math.isfinite(value):
        text = f"float('{value}')"
    elif kind in ("tl.float32", "tl.float64"):
        text = repr(float(value))
    else:
        text = repr(int(value) if kind != "tl.int1" else bool(value))
    if kind in ("tl.float32", "tl.int32", "tl.int1"):
        return text if not text.startswith("-") else f"({text})"
    return f"tl.full((), {text}, {kind})"

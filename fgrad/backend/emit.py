"""Emitters: how primitives are written as lines of NumPy, by primitive name.

An emitter gets the generator and the equation, writes lines, and returns True; False leaves the equation to the
primitive's own implementation.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fgrad.core import ArrayType
from fgrad.program import Atom, Equation, Literal

_UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "neg": np.negative,
    "floor_divide": np.floor_divide,
    "rem": np.remainder,
    "pow": np.power,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
    "invert": np.invert,
}
"""The ufuncs of primitives whose implementation is Python's operator."""

_KEYWORD_OUT = (np.maximum, np.minimum)  # positional out is deprecated for these


def operand(g: Any, a: Atom, eq: Equation) -> str:
    """Return the expression of an operand; a number becomes a 0-d array, which ufuncs take faster."""
    if not isinstance(a, Literal):
        return g.place(a).name  # type: ignore[no-any-return]
    strong = [b.type.dtype for b in eq.inputs if not b.type.weak]
    if not strong:
        return repr(a.value)
    try:
        dtype = np.result_type(*strong, a.value)
        return g.constant(_number(a.value, dtype))  # type: ignore[no-any-return]
    except (OverflowError, TypeError):
        return repr(a.value)


@functools.lru_cache(maxsize=256)
def _typed_number(kind: type, text: str, dtype: Any) -> np.ndarray[Any, Any]:
    return np.asarray(kind(text) if kind is not bool else text == "True", dtype)


def _number(value: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Return a number as a 0-d array, one object for equal numbers."""
    return _typed_number(type(value), repr(value), np.dtype(dtype))


def elementwise(g: Any, eq: Equation) -> bool:
    """Emit a ufunc call into the arena, in place where an operand's block dies here."""
    ufunc = _UFUNCS.get(eq.prim.name) or eq.prim.impl
    if not isinstance(ufunc, np.ufunc) or eq.params or ufunc.nout != 1:
        return False
    v = eq.outputs[0]
    if v.type.weak:
        return False
    ufunc, inputs = _cheaper(ufunc, eq)
    operands = [operand(g, a, eq) for a in inputs]
    name = g.constant(ufunc)
    if g.is_returned(v):
        call = f"{name}({', '.join(operands)})"
        if v.type.shape == ():
            call = f"{g.constant(np.array)}({call})"
        g.local(v, call, fresh=True)
        return True
    out = g.into(v, inputs).name
    out = f"out={out}" if ufunc in _KEYWORD_OUT else out
    g.line(f"{name}({', '.join(operands)}, {out})")
    return True


def _cheaper(ufunc: Any, eq: Equation) -> tuple[Any, list[Atom]]:
    """Return a cheaper ufunc with the same values: a square for a power of 2."""
    if ufunc is np.power and isinstance(eq.inputs[1], Literal) and eq.inputs[1].value == 2:
        return np.square, eq.inputs[:1]
    return ufunc, eq.inputs


def select(g: Any, eq: Equation) -> bool:
    """Emit a gate (one branch all zeros) as an integer product of bits and mask: exact for inf and nan, and fast."""
    mask, y, z = eq.inputs
    kind = eq.outputs[0].type
    as_int = {"f4": np.int32, "f8": np.int64}.get(kind.dtype.str[1:])
    if as_int is None or mask.type.dtype != bool or mask.type.shape != kind.shape or g.is_returned(eq.outputs[0]):
        return False
    if y.type != kind or not _is_positive_zero(g, z):
        return False
    source = g.place(y)
    if source.block is None:
        return False
    bits = g.arena.view(source.block, source.array.view(as_int))
    out = g.into(eq.outputs[0], [y])
    out_bits = g.arena.view(out.block, out.array.view(as_int))
    g.line(f"{g.constant(np.multiply)}({bits}, {g.place(mask).name}, {out_bits})")
    return True


def _is_positive_zero(g: Any, a: Atom) -> bool:
    value = a.value if isinstance(a, Literal) else g.place(a).array
    if value is None or (isinstance(value, np.ndarray) and (g.place(a).block is not None or value.size != 1)):
        return False
    number = np.asarray(value).reshape(-1)[0]
    return bool(number == 0 and not np.signbit(number))


def view(g: Any, eq: Equation) -> bool:
    """Emit nothing where the result is a view of an arena value that is known now."""
    source = g.place(eq.inputs[0])
    v = eq.outputs[0]
    if source.array is None or g.is_returned(v):
        return False
    result = eq.prim.impl(source.array, **eq.params)
    if not isinstance(result, np.ndarray):
        return False
    if source.block is not None and not np.may_share_memory(result, source.block.array):
        return False
    g.alias(v, source, result)
    return True


def reduction(g: Any, eq: Equation) -> bool:
    """Emit a reduction into the arena; sums along the last axis go to BLAS."""
    ufunc = {"reduce_sum": np.add, "reduce_max": np.maximum, "reduce_min": np.minimum, "reduce_prod": np.multiply}[
        eq.prim.name
    ]
    x, v = eq.inputs[0], eq.outputs[0]
    if x.type.dtype.kind != "f" or x.type.dtype.itemsize < 4 or x.type.size == 0:
        return False
    axes: Any = eq.params["axes"]
    if len(axes) == x.type.ndim:
        axes = None
    call = f"{g.constant(ufunc.reduce)}({g.place(x).name}, {axes}"
    if g.is_returned(v):
        expression = f"{call})"
        g.local(v, f"{g.constant(np.array)}({expression})" if v.type.shape == () else expression, fresh=True)
    else:
        g.line(f"{call}, None, {g.into(v).name})")
    return True


def dot_general(g: Any, eq: Equation) -> bool:
    """Emit products of matrices and vectors as `dot` with an output; views of operands are made now if they can be."""
    x, y = eq.inputs
    contract, batch = eq.params["contract"], eq.params["batch"]
    kind = eq.outputs[0].type
    if batch[0] or len(contract[0]) != 1 or not _blas(x.type, y.type, kind):
        return False
    a = _matrix(g, x, contract[0][0] != x.type.ndim - 1)
    b = _matrix(g, y, contract[1][0] != 0)
    name = g.constant(np.dot)
    if g.is_returned(eq.outputs[0]) or kind.shape == ():
        call = f"{name}({a}, {b})"
        scalar = kind.shape == ()
        if scalar and g.is_returned(eq.outputs[0]):
            call = f"{g.constant(np.array)}({call})"
        g.local(eq.outputs[0], call, fresh=True)
        return True
    g.line(f"{name}({a}, {b}, {g.into(eq.outputs[0]).name})")
    return True


def _blas(*kinds: ArrayType) -> bool:
    """Return whether BLAS takes all operands: vectors and matrices of one floating dtype, none empty."""
    dtype = kinds[0].dtype
    return (
        dtype.char in "fdFD"
        and all(k.dtype == dtype and k.ndim <= 2 and k.size > 0 for k in kinds)
        and all(k.ndim >= 1 for k in kinds[:2])
    )


def _matrix(g: Any, a: Atom, transposed: bool) -> str:
    """Return the expression of a vector or matrix, transposed if asked for."""
    place = g.place(a)
    if not transposed:
        return place.name  # type: ignore[no-any-return]
    if place.array is None:
        return f"{place.name}.T"
    if place.block is None:
        return g.constant(place.array.T)  # type: ignore[no-any-return]
    return g.arena.view(place.block, place.array.T)  # type: ignore[no-any-return]


TABLE = {
    "select": select,
    "reshape": view,
    "transpose": view,
    "broadcast": view,
    "slice": view,
    "reverse": view,
    "real": view,
    "imag": view,
    "reduce_sum": reduction,
    "reduce_max": reduction,
    "reduce_min": reduction,
    "reduce_prod": reduction,
    "dot_general": dot_general,
}
"""Emitters by primitive; the others are tried as ufuncs."""

"""Emitters: how primitives are written as lines of NumPy, by primitive name.

An emitter gets the generator and the equation, writes lines, and returns True; False leaves the equation to the
primitive's own implementation.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from fgrad.ops.contract import matrix_plan
from fgrad.ops.shape import as_slices
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
    "abs": np.absolute,
}
"""The ufuncs of primitives whose implementation is Python's operator."""

_MIXED = (np.ldexp,)  # operands of different kinds: numbers keep their own

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


def ufunc_of(eq: Equation) -> Any:
    """Return the ufunc that an equation is one call of, None if it is more than that."""
    if eq.prim.name == "pow" and eq.outputs[0].type.dtype == np.float16:
        return None  # of halves NumPy's operator takes square roots where its ufunc takes powers
    ufunc = _UFUNCS.get(eq.prim.name) or eq.prim.impl
    plain = isinstance(ufunc, np.ufunc) and not eq.params and ufunc.nout == 1 and ufunc not in _MIXED
    return ufunc if plain else None


def elementwise(g: Any, eq: Equation) -> bool:
    """Emit a ufunc call into the arena, in place where an operand's block dies here."""
    ufunc = ufunc_of(eq)
    v = eq.outputs[0]
    if ufunc is None or v.type.weak:
        return False
    if g.placed_operands(eq) is not None:
        return _sum_of_placed(g, eq, *g.placed_operands(eq))
    ufunc, inputs = _cheaper(ufunc, eq)
    operands = [_full_bound(g, a, eq) or operand(g, a, eq) for a in inputs]
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


def _full_bound(g: Any, a: Atom, eq: Equation) -> str | None:
    """Return an array for a number that bounds a maximum or minimum: NumPy compares arrays three times as fast."""
    if eq.prim.name not in ("max", "min") or not isinstance(a, Literal):
        return None
    kind = eq.outputs[0].type
    if not _WORTH_AN_ARRAY[0] <= kind.size <= _WORTH_AN_ARRAY[1]:
        return None
    return g.constant(_full(kind.shape, repr(a.value), kind.dtype))  # type: ignore[no-any-return]


_WORTH_AN_ARRAY = (1024, 32768)


@functools.lru_cache(maxsize=64)
def _full(shape: tuple[int, ...], text: str, dtype: Any) -> np.ndarray[Any, Any]:
    return np.full(shape, float(text), dtype)


def select(g: Any, eq: Equation) -> bool:
    """Emit a gate (one branch all zeros) as an integer product of bits and mask: exact for inf and nan, and fast."""
    mask, y, z = eq.inputs
    kind = eq.outputs[0].type
    as_int = {"f4": np.int32, "f8": np.int64}.get(kind.dtype.str[1:])
    if as_int is None or mask.type.dtype != bool or mask.type.shape != kind.shape:
        return False
    if g.has_target(eq.outputs[0]) or y.type != kind or not _is_positive_zero(g, z):
        return False
    source = g.place(y)
    if source.block is None:
        return False
    bits = g.arena.view(source.block, source.array.view(as_int))
    product = f"{g.constant(np.multiply)}({bits}, {g.place(mask).name}"
    if g.is_returned(eq.outputs[0]):
        g.local(eq.outputs[0], f"{product}).view({g.constant(kind.dtype)})", fresh=True)
        return True
    out = g.into(eq.outputs[0], [y])
    g.line(f"{product}, {g.arena.view(out.block, out.array.view(as_int))})")
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
    if source.array is None or g.is_returned(v) or g.has_target(v):
        return False
    result = eq.prim.impl(source.array, **eq.params)
    if not isinstance(result, np.ndarray):
        return False
    if source.block is not None and not np.may_share_memory(result, source.block.array):
        return False
    g.alias(v, source, result)
    return True


def slice_of(g: Any, eq: Equation) -> bool:
    """Emit a slice: nothing for an arena value, NumPy's indexing for an input or a local."""
    if view(g, eq):
        return True
    source, v = g.place(eq.inputs[0]), eq.outputs[0]
    if source.array is not None or eq.inputs[0].type.weak:
        return False
    g.local(v, f"{source.name}[{g.constant(as_slices(eq.params['index']))}]")
    return True


def place(g: Any, eq: Equation) -> bool:
    """Emit zeros with the operand written into a slice of them; nothing where it was computed there."""
    v = eq.outputs[0]
    if g.is_deferred(eq):
        return True
    if g.is_returned(v) or g.has_target(v) or v.type.size == 0:
        return False
    if g.computed_in(eq) is not None:
        g.alias(v, g.place(eq.inputs[0]), g.computed_in(eq))
        return True
    source = g.place(eq.inputs[0]).name
    out = g.into(v)
    part = out.array[as_slices(eq.params["index"])]
    g.line(f"{out.name}.fill(0)")
    g.line(f"{g.constant(np.copyto)}({g.arena.view(out.block, part)}, {source})")
    return True


def shifted_axis(x: Equation, y: Equation) -> int | None:
    """Return the axis along which two `place` equations differ, without gaps in either; None if there are several."""
    pairs = list(zip(x.params["index"], y.params["index"], strict=True))
    differing = [a for a, (i, j) in enumerate(pairs) if i != j]
    whole = all(i == (0, n, 1) for a, ((i, _), n) in enumerate(zip(pairs, x.params["shape"])) if a not in differing)
    return differing[0] if len(differing) == 1 and whole and all(i[2] == 1 for i in pairs[differing[0]]) else None


def _sum_of_placed(g: Any, eq: Equation, x: Equation, y: Equation) -> bool:
    """Emit the sum of two values in zeros by parts: where both are, where one is, where none is."""
    v, axis = eq.outputs[0], shifted_axis(x, y)
    assert axis is not None
    if g.is_returned(v):
        g.local(v, f"{g.constant(np.empty)}({v.type.shape}, {g.constant(v.type.dtype)})", fresh=True)
    else:
        g.into(v)
    out, add, zero = g.place(v).name, g.constant(np.add), g.constant(_number(0, v.type.dtype))
    ends = [e.params["index"][axis][:2] for e in (x, y)]
    cuts = sorted({0, v.type.shape[axis], *ends[0], *ends[1]})
    for start, stop in itertools.pairwise(cuts):
        terms = [
            f"{g.place(e.inputs[0]).name}[{_part(g, axis, start - low, stop - low)}]"
            for e, (low, high) in zip((x, y), ends, strict=True)
            if low <= start and stop <= high
        ]
        terms += [zero] * (2 - len(terms))
        g.line(f"{add}({', '.join(terms)}, {out}[{_part(g, axis, start, stop)}])")
    return True


def _part(g: Any, axis: int, start: int, stop: int) -> str:
    return ", ".join([":"] * axis + [f"{start}:{stop}"])


def cast(g: Any, eq: Equation) -> bool:
    """Emit a conversion by copying into the arena."""
    v = eq.outputs[0]
    if g.is_returned(v) or eq.inputs[0].type.dtype.kind == "c" and v.type.dtype.kind != "c":
        return False
    source = g.place(eq.inputs[0]).name
    g.line(f"{g.constant(np.copyto)}({g.into(v).name}, {source}, 'unsafe')")
    return True


def concatenate(g: Any, eq: Equation) -> bool:
    """Emit a concatenation into the arena."""
    v = eq.outputs[0]
    if g.is_returned(v):
        return False
    parts = ", ".join(g.place(a).name for a in eq.inputs)
    g.line(f"{g.constant(np.concatenate)}(({parts},), {eq.params['axis']}, {g.into(v).name})")
    return True


def exp_sub(g: Any, eq: Equation) -> bool:
    """Emit exp(x - y) into the arena; infinities are looked for in y alone, which has one element a row."""
    x, y = eq.inputs
    v = eq.outputs[0]
    if g.is_returned(v) or v.type.dtype.kind != "f" or x.type != v.type or y.type.dtype != v.type.dtype:
        return False
    operands = f"{g.place(x).name}, {g.place(y).name}"
    out = g.into(v)
    g.line(f"{g.constant(_exp_sub_into)}({operands}, {out.name}, {g.constant(eq.prim.impl)})")
    return True


def _exp_sub_into(x: Any, y: Any, out: Any, exact: Any) -> None:
    if np.isinf(y).any():
        np.copyto(out, exact(x, y))
    else:
        np.subtract(x, y, out)
        np.exp(out, out)


def reduction(g: Any, eq: Equation) -> bool:
    """Emit a reduction into the arena; short sums along the first or the last axes are products with ones."""
    ufunc = {"reduce_sum": np.add, "reduce_max": np.maximum, "reduce_min": np.minimum, "reduce_prod": np.multiply}[
        eq.prim.name
    ]
    x, v = eq.inputs[0], eq.outputs[0]
    if x.type.dtype.kind != "f" or x.type.dtype.itemsize < 4 or x.type.size == 0:
        return False
    axes: Any = eq.params["axes"]
    if ufunc is np.add and _sum_by_product(g, eq):
        return True
    if len(axes) == x.type.ndim:
        axes = None
    call = f"{g.constant(ufunc.reduce)}({g.place(x).name}, {axes}"
    if g.is_returned(v):
        expression = f"{call})"
        g.local(v, f"{g.constant(np.array)}({expression})" if v.type.shape == () else expression, fresh=True)
    else:
        g.line(f"{call}, None, {g.into(v).name})")
    return True


def _sum_by_product(g: Any, eq: Equation) -> bool:
    """Emit a sum as a product of matrix and vector: BLAS adds several times faster than NumPy does along an axis.

    It adds in fewer parts than NumPy's pairwise sums, so only some thousand numbers are added this way.
    """
    x, v, axes = eq.inputs[0], eq.outputs[0], eq.params["axes"]
    ndim, count = x.type.ndim, math.prod([x.type.shape[a] for a in axes])
    last = axes == tuple(range(ndim - len(axes), ndim))
    first = axes == tuple(range(len(axes)))
    if last == first or count > _FEW or g.has_target(v):  # all axes are both
        return False
    matrix = _arranged(g, x, None, (x.type.size // count, count) if last else (count, x.type.size // count))
    ones = g.constant(_ones(count, x.type.dtype))
    call = f"{g.constant(np.dot)}({f'{matrix}, {ones}' if last else f'{ones}, {matrix}'}"
    if g.is_returned(v):
        g.local(v, f"{call})" if v.type.ndim == 1 else f"{call}).reshape({v.type.shape})", fresh=True)
        return True
    out = g.into(v)
    g.line(f"{call}, {g.arena.view(out.block, out.array.reshape(-1))})")
    return True


_FEW = 4096


@functools.lru_cache(maxsize=64)
def _ones(count: int, dtype: Any) -> np.ndarray[Any, Any]:
    return np.ones(count, dtype)


def dot_general(g: Any, eq: Equation) -> bool:
    """Emit products as `dot` of matrices and vectors or `matmul` of stacks, with an output in the arena."""
    x, y = eq.inputs
    v = eq.outputs[0]
    kind = v.type
    contract, batch = eq.params["contract"], eq.params["batch"]
    if kind.dtype.char not in "fdFD" or not x.type.dtype == y.type.dtype == kind.dtype:
        return False
    if not (x.type.size and y.type.size) or x.type.weak or y.type.weak:
        return False
    if not contract[0]:
        return outer_product(g, eq)
    plan = matrix_plan(x.type.shape, y.type.shape, contract, batch)
    a = _arranged(g, x, plan.x_perm, plan.x_shape)
    b = _arranged(g, y, plan.y_perm, plan.y_shape)
    name = g.constant(np.matmul if batch[0] else np.dot)
    if kind.shape == ():
        call = f"{name}({a}, {b})"
        g.local(v, f"{g.constant(np.array)}({call})" if g.is_returned(v) else call, fresh=True)
    elif g.is_returned(v):
        shape = "" if plan.out_shape == kind.shape else f".reshape({kind.shape})"
        g.local(v, f"{name}({a}, {b}){shape}", fresh=not shape)
    else:
        out = g.into(v)
        target = out.name
        if plan.out_shape != kind.shape and out.array is None:
            target = f"{out.name}.reshape({plan.out_shape})"
        elif plan.out_shape != kind.shape:
            target = g.arena.view(out.block, out.array.reshape(plan.out_shape))
        g.line(f"{name}({a}, {b}, {target})")
    return True


def outer_product(g: Any, eq: Equation) -> bool:
    """Emit a product without sums by einsum, which is faster here than multiplying with broadcasting."""
    x, y = eq.inputs
    v = eq.outputs[0]
    x_batch, y_batch = eq.params["batch"]
    if v.type.ndim > len(_LETTERS) or v.type.shape == ():
        return False
    letters = iter(_LETTERS)
    batch = [next(letters) for _ in x_batch]
    words = []
    for kind, axes in ((x.type, x_batch), (y.type, y_batch)):
        words.append([batch[axes.index(a)] if a in axes else next(letters) for a in range(kind.ndim)])
    rest = [letter for word in words for letter in word if letter not in batch]
    subscripts = f"{''.join(words[0])},{''.join(words[1])}->{''.join(batch + rest)}"
    call = f"{g.constant(np.einsum)}({subscripts!r}, {g.place(x).name}, {g.place(y).name}"
    if g.is_returned(v):
        g.local(v, f"{call})", fresh=True)
    else:
        g.line(f"{call}, out={g.into(v).name})")
    return True


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _arranged(g: Any, a: Atom, perm: tuple[int, ...] | None, shape: tuple[int, ...]) -> str:
    """Return the expression of an operand transposed and reshaped: a view made now, if it can be."""
    place = g.place(a)
    if perm is None and shape == a.type.shape:
        return place.name  # type: ignore[no-any-return]
    if place.array is not None:
        array = place.array if perm is None else place.array.transpose(perm)
        array = array.reshape(shape)
        if place.block is None:
            return g.constant(array)  # type: ignore[no-any-return]
        if np.may_share_memory(array, place.block.array):
            return g.arena.view(place.block, array)  # type: ignore[no-any-return]
    text = place.name if perm is None else f"{place.name}.transpose({perm})"
    return text if shape == _permuted(a.type.shape, perm) else f"{text}.reshape({shape})"


def _permuted(shape: tuple[int, ...], perm: tuple[int, ...] | None) -> tuple[int, ...]:
    return shape if perm is None else tuple([shape[i] for i in perm])


TABLE = {
    "select": select,
    "reshape": view,
    "transpose": view,
    "broadcast": view,
    "slice": slice_of,
    "place": place,
    "cast": cast,
    "concatenate": concatenate,
    "exp_sub": exp_sub,
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

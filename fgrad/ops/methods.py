"""The NumPy methods of traced values that rules and transforms use, and the NumPy functions they call.

They are the least that the floors up to the transforms rely on. `fgrad.numpy` attaches fuller versions over them.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fgrad.core import Tracer, function_table, type_of
from fgrad.ops import complex, reduce, shape


def as_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return an axis, several, or None (all) as a sorted tuple of non-negative ints."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axis, ndim, "axis")))


def _dimensions(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what was given as `f(1, 2)` or `f((1, 2))` as a tuple."""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


def reshape(x: Any, *dimensions: Any) -> Any:
    """Return `x` in another shape, of which one length may be -1."""
    sizes = [operator.index(n) for n in _dimensions(dimensions)]
    if -1 in sizes:
        known = -math.prod(sizes)
        sizes[sizes.index(-1)] = x.size // known if known else 0
    return shape.reshape(x, shape=tuple(sizes))


def transpose(x: Any, *axes: Any) -> Any:
    """Return `x` with its axes permuted, or in opposite order."""
    axes = _dimensions(axes)
    if axes in ((), (None,)):
        return shape.transpose(x, perm=tuple(range(x.ndim))[::-1])
    return shape.transpose(x, perm=np.lib.array_utils.normalize_axis_tuple(axes, x.ndim, "axes"))


def total(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Return the sum of `x` over one axis, several or all."""
    if dtype is not None and dtype != x.dtype:
        x = astype(x, dtype)
    return reduce.reduce_sum(x, axes=as_axes(axis, x.ndim))


def astype(x: Any, dtype: Any) -> Any:
    """Return `x` in another dtype."""
    dtype = np.dtype(dtype)
    return (shape.cast if dtype.kind in "fcV" else shape.to_integer)(x, dtype=dtype)


def getitem(x: Any, key: Any) -> Any:
    """Return `x[key]` for ints, slices, None and Ellipsis."""
    triples: list[tuple[Any, ...]] = []
    kept: list[int] = []
    for entry in _complete(key if isinstance(key, tuple) else (key,), x.ndim):
        if entry is None:
            kept.append(1)
            continue
        size = x.shape[len(triples)]
        if isinstance(entry, slice):
            start, stop, step = entry.indices(size)
            triples.append((start, None if stop < 0 else stop, step))
            kept.append(len(range(start, stop, step)))
        else:
            i = _in_range(entry, size, len(triples))
            triples.append((i, i + 1, 1))
    x = shape.slice(x, index=tuple(triples))
    return x if x.shape == tuple(kept) else shape.reshape(x, shape=tuple(kept))


def _complete(key: tuple[Any, ...], ndim: int) -> list[Any]:
    """Return an index with Ellipsis and what is left out written as slices."""
    missing = ndim - sum(entry is not None and entry is not Ellipsis for entry in key)
    if missing < 0:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {ndim - missing} were indexed")
    at = next((k for k, entry in enumerate(key) if entry is Ellipsis), len(key))
    return [*key[:at], *(slice(None),) * missing, *key[at + 1 :]]


def _in_range(entry: Any, size: int, axis: int) -> int:
    i = operator.index(entry)
    if not -size <= i < size:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {size}")
    return i % size


def install() -> None:
    """Attach the methods, and the functions that rules and transforms call by NumPy's names."""
    methods = {
        "reshape": reshape,
        "transpose": transpose,
        "sum": total,
        "astype": astype,
        "conj": lambda self: complex.conj(self),
        "__getitem__": getitem,
        "real": property(lambda self: complex.real(self)),
        "imag": property(lambda self: complex.imag(self)),
        "T": property(transpose),
    }
    for name, method in methods.items():
        setattr(Tracer, name, method)
    function_table[np.broadcast_to] = lambda x, sizes: shape.broadcast(x, shape=tuple(sizes))
    function_table[np.concatenate] = lambda xs, axis=0: shape.concatenate(*xs, axis=axis % type_of(xs[0]).ndim)
    function_table[np.stack] = shape.stack


install()

"""Sorting, searching and counting. Positions are integers and have no derivative; sorted values have one."""

from __future__ import annotations

import numpy as np

from fgrad.core import state
from fgrad.numpy.arguments import (
    as_array,
    cast,
    counterpart,
    known,
    many_axes,
    moved,
    one_axis,
    promoted,
    refuse,
    stands_for,
    truth,
)
from fgrad.numpy.indexing import stacked, unknown_mask, unknown_values
from fgrad.numpy.shaping import take_axis
from fgrad.numpy.updating import at
from fgrad.ops import along
from fgrad.ops import elementwise as e
from fgrad.ops import index as ix
from fgrad.ops import reduce as r
from fgrad.ops import shape as s
from fgrad.ops import sort as so

__all__ = """
    trim_zeros packbits unpackbits
    argpartition argsort argwhere bincount compress digitize extract flatnonzero isin lexsort nonzero partition
    searchsorted sort sort_complex
""".split()

# ------------------------------------------------------------------------------------------------------ sorting


def _line(a, axis):
    """Return an array and the axis to work along; None flattens."""
    x = as_array(a)
    if axis is None:
        return s.reshape(x, shape=(x.size,)), 0
    return x, one_axis(axis, x.ndim)


def _no_fields(function, order, kind):
    refuse(function, order=order)
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable", "introselect"):
        raise ValueError(f"{function}: sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")


@stands_for(np.sort)
def sort(a, axis=-1, kind=None, order=None, *, stable=None, descending=False):
    """Return values in ascending order along an axis, NaN last; None flattens.

    Args:
        a: array.
        axis: the axis; None for the flattened array.
        kind, stable: sorting is always stable on traced values.
        order: refused on traced values; there are no fields.
        descending: True for descending order, NaN first.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.sort([3, 1, 2], descending=True)
        array([3, 2, 1])
    """
    if state.interpreter is None and not descending:
        return np.sort(a, axis, kind, order, stable=stable)
    _no_fields("sort", order, kind)
    x, axis = _line(a, axis)
    out = so.sort(x, axis=axis)
    return s.reverse(out, axes=(axis,)) if descending else out


@stands_for(np.argsort)
def argsort(a, axis=-1, kind=None, order=None, *, stable=None, descending=False):
    """Return the indices that sort an array along an axis, equals in the order they have; takes what `sort` takes."""
    if state.interpreter is None and not descending:
        return np.argsort(a, axis, kind, order, stable=stable)
    _no_fields("argsort", order, kind)
    x, axis = _line(a, axis)
    if not descending:
        return so.argsort(x, axis=axis)
    backwards = s.reverse(so.argsort(s.reverse(x, axes=(axis,)), axis=axis), axes=(axis,))
    return e.sub(x.shape[axis] - 1, backwards)


@counterpart(np.lexsort)
def lexsort(keys, axis=-1):
    """Return the indices that sort by several keys, of which the last weighs most."""
    keys = [as_array(key) for key in (keys if isinstance(keys, (list, tuple)) else list(as_array(keys)))]
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    return so.argsort(*keys[::-1], axis=one_axis(axis, keys[0].ndim))


@counterpart(np.partition)
def partition(a, kth, axis=-1, kind="introselect", order=None):
    """Return values with the kth in its sorted place, lesser ones before it and others after: here fully sorted."""
    _no_fields("partition", order, kind)
    return sort(a, axis)


@counterpart(np.argpartition)
def argpartition(a, kth, axis=-1, kind="introselect", order=None):
    """Return the indices that partition an array: here those that sort it."""
    _no_fields("argpartition", order, kind)
    return argsort(a, axis)


@counterpart(np.sort_complex)
def sort_complex(a):
    """Return values as complex numbers, sorted by real and then imaginary part."""
    x = as_array(a)
    x = x if x.dtype.kind == "c" else cast(x, np.result_type(x.dtype, np.complex64))
    order = so.argsort(x.real, x.imag, axis=x.ndim - 1)
    return along.take_along(x, order, axis=x.ndim - 1)


# ---------------------------------------------------------------------------------------------------- searching


@counterpart(np.searchsorted)
def searchsorted(a, v, side="left", sorter=None):
    """Return where values would go in to keep an ascending vector sorted, before equals or after (side "right")."""
    if side not in ("left", "right"):
        raise ValueError(f"search side must be one of 'left' or 'right' (got {side!r})")
    x, v = promoted(as_array(a), as_array(v))
    if x.ndim != 1:
        raise ValueError("object too deep for desired array: searchsorted takes a vector")
    if sorter is not None:
        x = ix.gather(x, s.reshape(as_array(sorter), shape=(1, x.size)), axes=(0,))
    v = s.reshape(v, shape=(*v.shape, 1))
    before = _before(x, v) if side == "left" else e.logical_not(_before(v, x))
    return r.reduce_sum(cast(before, np.intp), axes=(v.ndim - 1,))


def _before(x, y):
    """Say where x comes before y in sorted order, in which NaN is last."""
    less = e.lt(x, y)
    return e.logical_or(less, e.logical_and(e.isnan(y), e.logical_not(e.isnan(x)))) if x.dtype.kind in "fc" else less


@counterpart(np.digitize)
def digitize(x, bins, right=False):
    """Return the number of the bin that each value falls into, for ascending or descending edges."""
    x, bins = as_array(x), as_array(bins)
    edges = known(bins)
    if edges is None:
        raise unknown_values("digitize", "bins", bins)
    if edges.ndim != 1 or not ((np.diff(edges) >= 0).all() or (np.diff(edges) <= 0).all()):
        raise ValueError("bins must be monotonically increasing or decreasing")
    if len(edges) > 1 and edges[0] > edges[-1]:
        return len(edges) - searchsorted(edges[::-1], x, "left" if not right else "right")
    return searchsorted(edges, x, "left" if right else "right")


def _places(mask, size):
    """Return the flat positions at which a mask holds, as many as `size`, and -1 for those missing."""
    flat = s.reshape(mask, shape=(mask.size,))
    order = so.argsort(e.logical_not(flat), axis=0)
    count = r.reduce_sum(cast(flat, np.intp), axes=(0,))
    steps = np.arange(size)
    order = ix.gather(order, np.minimum(steps, max(mask.size - 1, 0))[None], axes=(0,)) if mask.size else steps
    return e.select(e.lt(steps, count), order, -1)


@stands_for(np.nonzero)
def nonzero(a, *, size=None, fill_value=None):
    """Return the indices of elements that differ from zero, a tuple with an array for each axis.

    Args:
        a: array.
        size: how many to return, to be given under `jit` or `vmap`: more are cut off, fewer are filled up.
        fill_value: the index that stands for those missing; 0 if None.

    Raises:
        NonConcreteBooleanIndexError: values are not known, and no size is given.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.nonzero([0, 3, 0, 4])
        (array([1, 3]),)
    """
    x = as_array(a)
    if not x.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    if size is None:
        value = known(x)
        if value is None:
            raise unknown_mask("nonzero", x)
        return value.nonzero()
    flat = _places(truth(x), size)
    out = []
    for n in reversed(x.shape):
        out.append(e.rem(flat, max(n, 1)))
        flat = e.floor_divide(flat, max(n, 1))
    return tuple([e.select(e.lt(flat, 0), 0 if fill_value is None else fill_value, row) for row in out[::-1]])


@stands_for(np.flatnonzero)
def flatnonzero(a, *, size=None, fill_value=None):
    """Return the indices of elements of the flattened array that differ from zero; see `nonzero`."""
    x = as_array(a)
    return nonzero(s.reshape(x, shape=(x.size,)), size=size, fill_value=fill_value)[0]


@stands_for(np.argwhere)
def argwhere(a, *, size=None, fill_value=None):
    """Return the indices of elements that differ from zero, one row for each; see `nonzero`."""
    x = as_array(a)
    if not x.ndim:
        if known(x) is None:
            raise unknown_mask("argwhere", x)
        return np.zeros((int(bool(known(x))), 0), np.intp)
    rows = nonzero(x, size=size, fill_value=fill_value)
    return s.transpose(stacked(rows), perm=(1, 0))


@counterpart(np.extract)
def extract(condition, arr):
    """Return the elements where a condition holds, which must be known."""
    return compress(as_array(condition).ravel(), as_array(arr).ravel())


@counterpart(np.compress)
def compress(condition, a, axis=None, out=None):
    """Return slices along an axis (or elements when flattened) where a vector of known conditions holds."""
    refuse("compress", out=out)
    x, axis = _line(a, axis)
    kept = truth(as_array(condition))
    if kept.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return take_axis(x, nonzero(kept)[0], axis)


# ----------------------------------------------------------------------------------------------------- counting


@stands_for(np.bincount)
def bincount(x, /, weights=None, minlength=0, *, length=None):
    """Count how often each number occurs in a vector of ints, or sum weights for each.

    Args:
        x: vector of non-negative ints.
        weights: vector of what each occurrence counts; may be traced.
        minlength: the least length of the result.
        length: its length, to be given if `x` is not known under `jit`; numbers beyond it are left out.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.bincount([0, 2, 2])
        array([1, 0, 2])
    """
    numbers = as_array(x)
    if numbers.ndim != 1 or numbers.dtype.kind not in "biu":
        raise TypeError(f"bincount: x must be a vector of integers, got {numbers.dtype.name}{list(numbers.shape)}")
    if length is None:
        value = known(numbers)
        if value is None:
            raise unknown_values("bincount", "x (or length=)", numbers)
        if value.size and value.min() < 0:
            raise ValueError("'list' argument must have no negative elements")
        length = max(minlength, int(value.max()) + 1 if value.size else 0)
    ones = np.ones(numbers.shape, np.intp) if weights is None else cast(as_array(weights), np.float64)
    if ones.shape != numbers.shape:
        raise ValueError("The weights and list don't have the same length.")
    return at(np.zeros(length, ones.dtype))[numbers].add(ones, mode="drop")


@counterpart(np.isin)
def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    """Say for each element whether it occurs in another array."""
    x, tests = as_array(element), as_array(test_elements)
    found = e.eq(s.reshape(x, shape=(*x.shape, 1)), s.reshape(tests, shape=(tests.size,)))
    found = r.reduce_any(found, axes=(x.ndim,))
    return e.logical_not(found) if invert else found


@counterpart(np.trim_zeros)
def trim_zeros(filt, trim="fb", axis=None):
    """Cut off leading ("f" in `trim`) and trailing ("b") zeros along axes, all if None; values must be known."""
    x = as_array(filt)
    value = known(x)
    if value is None:
        raise unknown_mask("trim_zeros", x)
    found = value.nonzero()
    index = [slice(None)] * x.ndim
    for k in many_axes(axis, x.ndim):
        first, last = (found[k].min(), found[k].max()) if found[k].size else (x.shape[k], -1)
        start = int(first) if "f" in trim.lower() else 0
        index[k] = slice(start, int(last) + 1 if "b" in trim.lower() else x.shape[k])
    return x[tuple(index)]


@counterpart(np.packbits)
def packbits(a, axis=None, bitorder="big"):
    """Pack bools into bytes along an axis, or of the flattened array; zeros fill up the last byte."""
    x, axis = _line(a, axis)
    x = moved(cast(truth(x), np.uint8), axis, x.ndim - 1)
    missing = -x.shape[-1] % 8
    x = s.pad(x, np.zeros((), np.uint8), widths=((0, 0, 0),) * (x.ndim - 1) + ((0, missing, 0),))
    x = s.reshape(x, shape=(*x.shape[:-1], x.shape[-1] // 8, 8))
    packed = r.reduce_sum(e.mul(x, _bit_values(bitorder)), axes=(x.ndim - 1,))
    return moved(cast(packed, np.uint8), packed.ndim - 1, axis)


@counterpart(np.unpackbits)
def unpackbits(a, axis=None, count=None, bitorder="big"):
    """Unpack bytes into their bits along an axis, or of the flattened array; `count` of them (less, if negative)."""
    x, axis = _line(a, axis)
    if x.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    x = moved(x, axis, x.ndim - 1)
    bits = e.ne(e.bitwise_and(s.reshape(x, shape=(*x.shape, 1)), _bit_values(bitorder)), 0)
    bits = cast(s.reshape(bits, shape=(*x.shape[:-1], x.shape[-1] * 8)), np.uint8)
    if count is not None:
        total = bits.shape[-1]
        bits = bits[..., :count] if count < total else bits
        bits = s.pad(
            bits, np.zeros((), np.uint8), widths=((0, 0, 0),) * (x.ndim - 1) + ((0, max(count - total, 0), 0),)
        )
    return moved(bits, bits.ndim - 1, axis)


def _bit_values(bitorder):
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    values = 1 << np.arange(8, dtype=np.uint8)
    return values[::-1] if bitorder == "big" else values

"""Sets of values. How many there are depends on values, so these need known ones, or `size=` and `fill_value=`."""

from __future__ import annotations

import functools
from collections import namedtuple

import numpy as np

from fgrad.core import Tracer
from fgrad.numpy.arguments import as_array, counterpart, known, one_axis, promoted, stands_for
from fgrad.numpy.indexing import unknown_mask
from fgrad.numpy.shaping import take_axis
from fgrad.ops import elementwise as e
from fgrad.ops import shape as s

__all__ = """
    intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values
""".split()


@functools.cache
def _results(name, *fields):
    """Return the type of a named tuple; made when it is first needed, since that takes time."""
    return namedtuple(name, fields)


@stands_for(np.unique)
def unique(
    ar,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    *,
    equal_nan=True,
    sorted=True,
    size=None,
    fill_value=None,
):
    """Return the distinct values of an array in ascending order; each has the derivative of its first occurrence.

    Args:
        ar: array, whose values must be known.
        return_index: return also where each occurs first.
        return_inverse: return also which of them each element is.
        return_counts: return also how often each occurs.
        axis: compare slices along this axis; None for elements.
        equal_nan: count all NaN as one value.
        sorted: nothing depends on it: values are sorted.
        size: how many to return: more are cut off, fewer are filled up.
        fill_value: what to fill up with; the first value if None.

    Raises:
        NonConcreteBooleanIndexError: values are not known.
    """
    x = as_array(ar)
    value = known(x)
    if value is None:
        raise unknown_mask("unique", x)
    values, first, inverse, counts = np.unique(value, True, True, True, axis, equal_nan=equal_nan)
    lined, along = (s.reshape(x, shape=(x.size,)), 0) if axis is None else (x, one_axis(axis, x.ndim))
    if isinstance(x, Tracer):
        values = take_axis(lined, first, along)
    if size is not None:
        values, first, counts = _sized(values, first, counts, along, size, fill_value)
    extra = [v for v, wanted in ((first, return_index), (inverse, return_inverse), (counts, return_counts)) if wanted]
    return (values, *extra) if extra else values


def _sized(values, first, counts, axis, size, fill_value):
    """Return values, first positions and counts cut off or filled up to a size."""
    have = values.shape[axis]
    missing = max(size - have, 0)
    kept = (
        np.minimum(np.arange(size), max(have - 1, 0))
        if missing == 0
        else np.r_[np.arange(have), np.zeros(missing, int)]
    )
    values = take_axis(values, kept, axis)
    if missing and fill_value is not None:
        index = [None] * values.ndim
        index[axis] = slice(None)
        values = e.select((np.arange(size) < have)[tuple(index)], values, as_array(fill_value).astype(values.dtype))
    counts = np.where(np.arange(size) < have, counts[kept], 0)
    return values, first[kept], counts


@counterpart(np.unique_values)
def unique_values(x, /):
    """Return the distinct values of an array; every NaN counts as one. Those of a traced value are in order."""
    x = as_array(x)
    return unique(x, equal_nan=False) if isinstance(x, Tracer) else np.unique_values(x)


@counterpart(np.unique_counts)
def unique_counts(x, /):
    """Return the distinct values of an array, and how often each occurs."""
    return _results("UniqueCounts", "values", "counts")(*unique(x, return_counts=True, equal_nan=False))


@counterpart(np.unique_inverse)
def unique_inverse(x, /):
    """Return the distinct values of an array, and which of them each element is."""
    return _results("UniqueInverse", "values", "inverse_indices")(*unique(x, return_inverse=True, equal_nan=False))


@counterpart(np.unique_all)
def unique_all(x, /):
    """Return the distinct values of an array, their first indices, which each element is, and how often each occurs."""
    made = _results("UniqueAll", "values", "indices", "inverse_indices", "counts")
    return made(*unique(x, True, True, True, equal_nan=False))


def _flat(x):
    x = as_array(x)
    return s.reshape(x, shape=(x.size,))


def _joined(a, b):
    return s.concatenate(*promoted(_flat(a), _flat(b)), axis=0)


@stands_for(np.union1d)
def union1d(ar1, ar2, *, size=None, fill_value=None):
    """Return the distinct values that occur in one of two arrays at least; `size` as in `unique`."""
    return unique(_joined(ar1, ar2), size=size, fill_value=fill_value)


def _by_index(function, a, b, choose):
    """Return the elements of the joined arrays at the positions that a choice on known values makes."""
    joined = _joined(a, b)
    if known(joined) is None:
        raise unknown_mask(function, joined)
    return take_axis(joined, choose(known(_flat(a)), known(_flat(b))), 0)


@counterpart(np.intersect1d)
def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """Return the distinct values that occur in both of two arrays, and with `return_indices` where in each."""
    a, b = as_array(ar1), as_array(ar2)
    for x in (a, b):
        if known(x) is None:
            raise unknown_mask("intersect1d", x)
    _, first, second = np.intersect1d(known(a), known(b), assume_unique, return_indices=True)
    values = take_axis(promoted(_flat(a), _flat(b))[0], first, 0)
    return (values, first, second) if return_indices else values


@counterpart(np.setdiff1d)
def setdiff1d(ar1, ar2, assume_unique=False):
    """Return the distinct values of the first array that do not occur in the second."""

    def choose(a, b):
        values, first = (a, np.arange(a.size)) if assume_unique else np.unique(a, return_index=True)
        return first[~np.isin(values, b)]

    return _by_index("setdiff1d", ar1, ar2, choose).astype(as_array(ar1).dtype)


@counterpart(np.setxor1d)
def setxor1d(ar1, ar2, assume_unique=False):
    """Return the distinct values that occur in exactly one of two arrays."""

    def choose(a, b):
        values, first = np.unique(np.concatenate([a, b]), return_index=True)
        return first[~(np.isin(values, a) & np.isin(values, b))]

    return _by_index("setxor1d", ar1, ar2, choose)

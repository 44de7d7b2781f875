"""Functions that join arrays and take them apart."""

from __future__ import annotations

import itertools
import operator

import numpy as np

from fgrad.core import Tracer
from fgrad.numpy.arguments import arrays, as_array, cast, counterpart, expand_axis, one_axis, refuse
from fgrad.numpy.shaping import atleast_1d, atleast_2d, atleast_3d
from fgrad.ops import shape as s

__all__ = """
    append array_split block c_ column_stack concat concatenate delete dsplit dstack hsplit hstack insert r_ split
    stack unstack vsplit vstack
""".split()

# ----------------------------------------------------------------------------------------------------- joining


def _joinable(name, xs, dtype, out, casting):
    """Return a sequence of arrays of one dtype; ValueError if there are none."""
    refuse(name, out=out)
    xs = arrays(xs)
    if not xs:
        raise ValueError(f"need at least one array to {name}")
    if dtype is None:
        return xs
    for x in xs:
        if not np.can_cast(x.dtype, dtype, casting):
            raise TypeError(
                f"{name}: cannot cast from {x.dtype} to {np.dtype(dtype)} according to the rule '{casting}'"
            )
    return [cast(x, dtype) for x in xs]


@counterpart(np.concatenate, *([np.concat] if np.concat is not np.concatenate else []))
def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Join arrays along an axis they have.

    Args:
        arrays: sequence of arrays that agree off the axis.
        axis: the axis; None to flatten them first.
        out: refused on traced values.
        dtype, casting: dtype of the result, and NumPy's rule for casting to it.

    Raises:
        ValueError: there is nothing to join, or shapes differ.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.concatenate([[1, 2], [3.0]])
        array([1., 2., 3.])
    """
    xs = _joinable("concatenate", arrays, dtype, out, casting)
    if axis is None:
        return s.concatenate(*[s.reshape(x, shape=(x.size,)) for x in xs], axis=0)
    if not all(x.ndim for x in xs):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis = one_axis(axis, xs[0].ndim)
    return s.concatenate(*xs, axis=axis)


concat = concatenate


@counterpart(np.stack)
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Join arrays of one shape along a new axis; takes the arguments of `concatenate`."""
    xs = _joinable("stack", arrays, dtype, out, casting)
    if any(x.shape != xs[0].shape for x in xs):
        raise ValueError("all input arrays must have the same shape")
    axis = one_axis(axis, xs[0].ndim + 1)
    return s.concatenate(*[expand_axis(x, axis) for x in xs], axis=axis)


def _each(function, xs):
    out = function(*(xs if isinstance(xs, (list, tuple)) else list(as_array(xs))))
    return list(out) if isinstance(out, tuple) else [out]


@counterpart(np.hstack)
def hstack(tup, *, dtype=None, casting="same_kind"):
    """Join arrays along axis 1, vectors along axis 0."""
    xs = _each(atleast_1d, tup)
    return concatenate(xs, 0 if xs and xs[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@counterpart(np.vstack)
def vstack(tup, *, dtype=None, casting="same_kind"):
    """Join arrays along axis 0; vectors count as rows."""
    return concatenate(_each(atleast_2d, tup), 0, dtype=dtype, casting=casting)


@counterpart(np.dstack)
def dstack(tup):
    """Join arrays along axis 2; vectors count as rows of one layer."""
    return concatenate(_each(atleast_3d, tup), 2)


@counterpart(np.column_stack)
def column_stack(tup):
    """Join arrays along axis 1; vectors count as columns."""
    xs = [as_array(x) for x in (tup if isinstance(tup, (list, tuple)) else list(as_array(tup)))]
    return concatenate([x if x.ndim >= 2 else s.reshape(x, shape=(x.size, 1)) for x in xs], 1)


@counterpart(np.block)
def block(arrays):
    """Join nested lists of blocks: the innermost along the last axis, the outer ones along those before it."""
    if isinstance(arrays, tuple):
        raise TypeError("block: the argument is a tuple; only lists can be used to arrange blocks")
    depth = _depth(arrays)
    rank = max(depth, *[x.ndim for x in _leaves(arrays)])
    return _block(arrays, depth, rank, rank - depth)


def _depth(x):
    if not isinstance(x, list):
        return 0
    if not x:
        raise ValueError("block: list depths are mismatched or a list is empty")
    depths = {_depth(item) for item in x}
    if len(depths) > 1:
        raise ValueError("block: list depths are mismatched")
    return depths.pop() + 1


def _leaves(x):
    return [leaf for item in x for leaf in _leaves(item)] if isinstance(x, list) else [as_array(x)]


def _block(x, depth, rank, axis):
    if depth:
        return concatenate([_block(item, depth - 1, rank, axis + 1) for item in x], axis)
    x = as_array(x)
    return s.reshape(x, shape=(1,) * (rank - x.ndim) + x.shape)


@counterpart(np.append)
def append(arr, values, axis=None):
    """Join values to the end of an array, both flattened unless an axis is given."""
    return concatenate((as_array(arr), as_array(values)), axis)


class _Joiner:
    """Joins what it is indexed by, as NumPy's `r_` and `c_` do; ranges are written as slices."""

    def __init__(self, original, columns):
        self._original = original
        self._columns = columns

    def __getitem__(self, key):
        items = key if isinstance(key, tuple) else (key,)
        if not any(isinstance(item, Tracer) for item in items):
            return self._original[key]
        if any(isinstance(item, str) for item in items):
            raise TypeError("r_ and c_: directives in text are not supported on traced values; use concatenate")
        parts = [atleast_1d(self._original[item] if isinstance(item, slice) else item) for item in items]
        if self._columns:
            parts = [s.reshape(x, shape=(*x.shape, 1)) if x.ndim == 1 else x for x in parts]
        return concatenate(parts, -1 if self._columns else 0)

    def __repr__(self):
        return f"fgrad.numpy.{'c_' if self._columns else 'r_'}"


r_ = _Joiner(np.r_, columns=False)
c_ = _Joiner(np.c_, columns=True)

# --------------------------------------------------------------------------------------------------- splitting


def _parts(x, cuts, axis):
    """Return the pieces of an array between cut points, which are read as slices read their bounds."""
    bounds = [None, *cuts, None]
    before = (slice(None),) * axis
    return [x[(*before, slice(a, b))] for a, b in itertools.pairwise(bounds)]


@counterpart(np.array_split)
def array_split(ary, indices_or_sections, axis=0):
    """Split an array into parts along an axis: so many, of sizes that differ by 1 at most, or at given indices."""
    x = as_array(ary)
    axis = one_axis(axis, x.ndim)
    if np.ndim(indices_or_sections):
        return _parts(x, [operator.index(i) for i in indices_or_sections], axis)
    count = operator.index(indices_or_sections)
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    least, more = np.divmod(x.shape[axis], count)
    sizes = [least + 1] * more + [least] * (count - more)
    return _parts(x, np.cumsum(sizes)[:-1].tolist(), axis)


@counterpart(np.split)
def split(ary, indices_or_sections, axis=0):
    """Split an array into equal parts along an axis, or at given indices; ValueError if parts would differ in size."""
    x = as_array(ary)
    if not np.ndim(indices_or_sections) and x.shape[one_axis(axis, x.ndim)] % operator.index(indices_or_sections):
        raise ValueError("array split does not result in an equal division")
    return array_split(x, indices_or_sections, axis)


@counterpart(np.hsplit)
def hsplit(ary, indices_or_sections):
    """Split along axis 1, a vector along axis 0."""
    x = as_array(ary)
    if x.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


@counterpart(np.vsplit)
def vsplit(ary, indices_or_sections):
    """Split along axis 0 of at least two."""
    x = as_array(ary)
    if x.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(x, indices_or_sections, 0)


@counterpart(np.dsplit)
def dsplit(ary, indices_or_sections):
    """Split along axis 2."""
    x = as_array(ary)
    if x.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(x, indices_or_sections, 2)


@counterpart(getattr(np, "unstack", None))
def unstack(x, /, *, axis=0):
    """Return the slices of an array along an axis, as a tuple."""
    x = as_array(x)
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    axis = one_axis(axis, x.ndim)
    before = (slice(None),) * axis
    return tuple([x[(*before, i)] for i in range(x.shape[axis])])


@counterpart(np.delete)
def delete(arr, obj, axis=None):
    """Leave out elements along an axis, or when flattened; `obj` is an int, a slice, a list of ints or a mask."""
    x = as_array(arr)
    if axis is None:
        x, axis = s.reshape(x, shape=(x.size,)), 0
    axis = one_axis(axis, x.ndim)
    kept = np.delete(np.arange(x.shape[axis]), operator.index(obj) if isinstance(obj, Tracer) else obj)
    return x[(slice(None),) * axis + (kept,)]


@counterpart(np.insert)
def insert(arr, obj, values, axis=None):
    """Put values in before the positions `obj`, an int, a slice or a list of ints, along an axis or when flattened."""
    x = as_array(arr)
    if axis is None:
        x, axis = s.reshape(x, shape=(x.size,)), 0
    axis = one_axis(axis, x.ndim)
    n = x.shape[axis]
    obj = operator.index(obj) if isinstance(obj, Tracer) else obj
    order = np.insert(
        np.arange(n), obj, np.arange(n, n + np.size(np.arange(n)[obj] if isinstance(obj, slice) else obj))
    )
    values = cast(as_array(values), x.dtype)
    if np.ndim(obj) == 0 and not isinstance(obj, slice):  # one position takes any number of rows
        return _insert_at(x, int(np.flatnonzero(order >= n)[0]), values, axis)
    shape = list(x.shape)
    shape[axis] = len(order) - n
    values = s.broadcast(values, shape=tuple(shape))
    joined = s.concatenate(x, values, axis=axis)
    return joined[(slice(None),) * axis + (order,)]


def _insert_at(x, place, values, axis):
    """Put values in at one place: the rows of `values`, or as many axes as they lack, as `x[place] = values` would."""
    row = tuple([n for i, n in enumerate(x.shape) if i != axis])
    count = values.shape[0] if values.ndim == x.ndim else 1
    order = list(range(1, x.ndim))
    order.insert(axis, 0)
    values = s.transpose(s.broadcast(values, shape=(count, *row)), perm=tuple(order))
    before = (slice(None),) * axis
    return s.concatenate(x[(*before, slice(0, place))], values, x[(*before, slice(place, None))], axis=axis)

"""Indexing primitives: gather and the scatters, along-axis indexing, dynamic slices.

`gather` and the scatters share one convention: `axes` are k axes of x, `i` holds one integer index array per axis,
stacked to shape (k, *B); what is read or written has shape B followed by the remaining axes of x in order. Indices
may be negative and raise IndexError out of range, as in NumPy; `dynamic_slice` clamps.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from fgrad.core import ArrayType
from fgrad.kinds import composite, differential, linear
from fgrad.ops.along import checked, same_type, strides_of
from fgrad.ops.along import put_along_add as put_along_add
from fgrad.ops.along import take_along as take_along
from fgrad.ops.elementwise import max as maximum
from fgrad.ops.elementwise import min as minimum
from fgrad.ops.elementwise import select
from fgrad.ops.shape import (
    broadcast,
    cast,
    concatenate,
    inverse,
    move_axis,
    reshape,
    slice,
    stack,
    to_front,
    to_integer,
)
from fgrad.ops.sort import argsort
from fgrad.plans import zeros


def _rest(shape, axes):
    return tuple([n for a, n in enumerate(shape) if a not in axes])


# ------------------------------------------------------------------------------------------------------ gather


def _at(i, axes, ndim):
    """Return NumPy's index for the rows of `i` at `axes`."""
    index = [_ALL] * ndim
    for axis, row in zip(axes, i, strict=True):
        index[axis] = row
    return tuple(index)


_ALL = np.s_[:]


@functools.lru_cache(maxsize=4096)
def _indices_first(axes, inner, ndim):
    """Return the permutation that brings B, of rank `inner`, to the front of NumPy's x[index]; None if it is there.

    NumPy leaves the axes of B where they are if the indexed axes are side by side.
    """
    first = min(axes)
    if not first or not inner or max(axes) - first >= len(axes):
        return None
    return (*range(first, first + inner), *range(first), *range(first + inner, ndim - len(axes) + inner))


def _gather(x, i, *, axes):
    if len(axes) == 1 and x.flags.c_contiguous:  # of other arrays `take` makes a copy first
        out = x.take(i[0], axis=axes[0])
    else:
        out = x[_at(i, axes, x.ndim)]
    perm = _indices_first(axes, i.ndim - 1, x.ndim)
    return out if perm is None else out.transpose(perm)


def _batch_gather(args, dims, size, *, axes):
    x, i = args
    on_x, on_i = dims
    if on_i is not None:
        if on_x is None:
            return gather(x, move_axis(i, on_i, 1), axes=axes), 0
        shifted = (on_x, *_past(axes, on_x))
        return gather(x, _with_examples(i, on_i, size), axes=shifted), 0
    before = on_x - sum(a < on_x for a in _past(axes, on_x))
    return gather(x, i, axes=_past(axes, on_x)), i.ndim - 1 + before


def _past(axes, new):
    """Return `axes` as they are after an axis is put in at `new`."""
    return tuple([a + (a >= new) for a in axes])


def _with_examples(i, axis, size):
    """Return batched indices (k, *B) as (k + 1, size, *B), the first row being the number of the example."""
    i = _as_index(move_axis(i, axis, 1))
    numbers = np.arange(size).reshape((1, size, *(1,) * (i.ndim - 2)))
    return concatenate(np.broadcast_to(numbers, (1, *i.shape[1:])), i, axis=0)


def _as_index(i):
    """Return indices in the dtype that holds any of them, for arithmetic."""
    return i if i.dtype == np.intp else to_integer(i, dtype=np.intp)


gather = linear(
    "gather",
    _gather,
    type=lambda x, i, *, axes: ArrayType((*i.shape[1:], *_rest(x.shape, axes)), x.dtype),
    transpose=lambda ct, x, i, *, axes: scatter_add(zeros(x), i, ct, axes=axes),
    batch=_batch_gather,
    gpu="index.gather",
    doc="The elements of x at the indices i.",
)

# ---------------------------------------------------------------------------------------------------- scatters


def _flat_index(shape, i, axes):
    """Return the places in the flattened array that the indices mean, of shape B + rest."""
    strides = strides_of(shape)
    places = 0
    for axis, row in zip(axes, i, strict=True):
        places = places + checked(row, shape[axis], axis) * strides[axis]
    rest = [a for a in range(len(shape)) if a not in axes]
    for axis in rest:
        places = np.asarray(places)[..., None] + np.arange(shape[axis]) * strides[axis]
    return places


_FEW = 128  # updates that ufunc.at does faster on the array as it is than on the flattened one


def _scatter(update, x, i, u, axes):
    """Return a copy of `x` with the ufunc `update` applied at every index, repeated ones one after another."""
    out = np.array(x, order="C")
    if i.ndim == 1:
        place = _at(i, axes, x.ndim)
        out[place] = np.asarray(update(out[place], u))  # which an array on a GPU refuses: a number it would not
    elif axes[0] == 0 and (x.ndim == 1 or u.size <= _FEW and axes == tuple(range(len(axes)))):
        update.at(out, tuple(i), u)
    else:
        update.at(out.reshape(-1), _flat_index(x.shape, i, axes).reshape(-1), u.reshape(-1))
    return out


def _scatter_add(x, i, u, *, axes):
    if x.dtype == np.float16:  # sums of many small numbers are made in single precision
        return _scatter(np.add, x.astype(np.float32), i, u.astype(np.float32), axes).astype(np.float16)
    return _scatter(np.add, x, i, u, axes)


def _scatter_set(x, i, u, *, axes):
    """Write in the order of the indices: NumPy goes by memory, so both are laid out in C order first."""
    out = np.array(x)
    u = np.asarray(u, order="C")
    perm = _indices_first(axes, i.ndim - 1, x.ndim)
    out[_at(np.asarray(i, order="C"), axes, x.ndim)] = u if perm is None else u.transpose(inverse(perm))
    return out


def _batch_scatter(scatter, args, dims, size, *, axes):
    x, i, u = args
    x = to_front(x, dims[0], size)
    u = to_front(u, dims[2], size)
    shifted = tuple([a + 1 for a in axes])
    if dims[1] is None:  # the batch axis is one of those not indexed, the first
        return scatter(x, i, move_axis(u, 0, i.ndim - 1), axes=shifted), 0
    return scatter(x, _with_examples(i, dims[1], size), u, axes=(0, *shifted)), 0


scatter_add = linear(
    "scatter_add",
    _scatter_add,
    type=same_type,
    wrt=(0, 2),
    transpose=(lambda ct: ct, lambda ct, i, *, axes: gather(ct, i, axes=axes)),
    batch=lambda *args, axes: _batch_scatter(scatter_add, *args, axes=axes),
    gpu="index.scatter_add",
    doc="x with u added at the indices i; repeated indices add up.",
)


def _won(ct, x, i, *, axes):
    """Return the cotangent of what is written at i: that of the places it was the last to be written to."""
    ct = gather(ct, i, axes=axes)
    shape = i.shape[1:]
    count = math.prod(shape)
    if count == 1:
        return ct
    numbers = np.arange(count).reshape(shape)
    front = tuple(range(len(axes)))
    last = scatter_set(np.zeros([x.shape[a] for a in axes], int), i, numbers, axes=front)
    winners = gather(last, i, axes=front) == numbers
    return select(winners.reshape((*shape, *(1,) * (ct.ndim - len(shape)))), ct, 0)


scatter_set = linear(
    "scatter_set",
    _scatter_set,
    type=same_type,
    wrt=(0, 2),
    transpose=(lambda ct, i, u, *, axes: scatter_set(ct, i, zeros(u), axes=axes), _won),
    batch=lambda *args, axes: _batch_scatter(scatter_set, *args, axes=axes),
    gpu="index.scatter_set",
    doc="x with u in place of its elements at the indices i; of repeated indices the last one wins.",
)


def _shares(x, i, u, out, axes):
    """Return the weight of one among the equals that attain an extreme: one over their number."""
    hits = to_integer(u == gather(out, i, axes=axes), dtype=np.int64)
    count = scatter_add(to_integer(x == out, dtype=np.int64), i, hits, axes=axes)
    return cast(1 / maximum(count, 1), dtype=x.dtype)


def _extreme_tangent_x(t, x, i, u, out, *, axes):
    return select(x == out, t, 0) * _shares(x, i, u, out, axes)


def _extreme_tangent_u(t, x, i, u, out, *, axes):
    t = select(u == gather(out, i, axes=axes), t, 0)
    return scatter_add(np.zeros(x.shape, x.dtype), i, t, axes=axes) * _shares(x, i, u, out, axes)


_extreme = {"type": same_type, "jvp": (_extreme_tangent_x, None, _extreme_tangent_u)}

scatter_max = differential(
    "scatter_max",
    lambda x, i, u, *, axes: _scatter(np.maximum, x, i, u, axes),
    batch=lambda *args, axes: _batch_scatter(scatter_max, *args, axes=axes),
    gpu="index.scatter_max",
    doc="x with the larger of it and u at the indices i; equals share the derivative.",
    **_extreme,
)
scatter_min = differential(
    "scatter_min",
    lambda x, i, u, *, axes: _scatter(np.minimum, x, i, u, axes),
    batch=lambda *args, axes: _batch_scatter(scatter_min, *args, axes=axes),
    gpu="index.scatter_min",
    doc="x with the smaller of it and u at the indices i; equals share the derivative.",
    **_extreme,
)


def _product_by_place(x, i, u, *, axes):
    """Define scatter_mul with derivatives that are exact also at zeros: no division.

    Entries are sorted by place and multiplied up within each place by doubling; the last one of a place has the
    product of all.
    """
    count = math.prod(i.shape[1:])
    rows = reshape(_as_index(i), shape=(len(axes), count))
    factors = reshape(u, shape=(count, *_rest(x.shape, axes)))
    sizes = np.array([[x.shape[a]] for a in axes])
    rows = select(rows < 0, rows + sizes, rows)
    places = (rows * np.array([[n] for n in strides_of(sizes[:, 0].tolist())])).sum(axis=(0,))
    order = reshape(argsort(places, axis=0), shape=(1, count))
    places = gather(places, order, axes=(0,))
    factors = gather(factors, order, axes=(0,))
    step = 1
    while step < count:
        same = _part(places, step, count) == _part(places, 0, count - step)
        same = reshape(same, shape=(count - step, *(1,) * (factors.ndim - 1)))
        partner = select(same, _part(factors, 0, count - step), 1)
        grown = _part(factors, step, count) * partner
        factors = concatenate(_part(factors, 0, step), grown, axis=0)
        step *= 2
    rows = move_axis(gather(rows, order, axes=(1,)), 1, 0)
    return x * scatter_set(np.ones(x.shape, x.dtype), rows, factors, axes=axes)


def _part(x, start, stop):
    return slice(x, index=((start, stop, 1), *[(0, n, 1) for n in x.shape[1:]]))


scatter_mul = composite(
    "scatter_mul",
    _product_by_place,
    impl=lambda x, i, u, *, axes: _scatter(np.multiply, x, i, u, axes),
    type=same_type,
    batch=lambda *args, axes: _batch_scatter(scatter_mul, *args, axes=axes),
    gpu="index.scatter_mul",
    doc="x times u at the indices i; repeated indices multiply up.",
)

# ------------------------------------------------------------------------------------------------ dynamic slices


def _window(i, shape, sizes):
    """Return the slices of a window that starts at i, moved so that it fits."""
    starts = [min(max(s, 0), n - k) for s, n, k in zip(np.asarray(i).tolist(), shape, sizes, strict=True)]
    return tuple([np.s_[s : s + k] for s, k in zip(starts, sizes, strict=True)])


def _dynamic_update_slice(x, u, i):
    out = np.array(x)
    out[_window(i, x.shape, u.shape)] = u
    return out


def _window_indices(i, shape, sizes):
    """Return the axes on which windows are smaller than the array, and their indices (k, size, *widths of those).

    `i` has the starts of each example in its rows.
    """
    axes = tuple([a for a, n in enumerate(shape) if sizes[a] != n])
    count = i.shape[0]
    windows = (count, *[sizes[a] for a in axes])
    rows = []
    for k, a in enumerate(axes):
        start = slice(i, index=((0, count, 1), (a, a + 1, 1)))
        start = minimum(maximum(start, 0), shape[a] - sizes[a]).reshape((count, *(1,) * len(axes)))
        steps = np.arange(sizes[a]).reshape((sizes[a], *(1,) * (len(axes) - k - 1)))
        rows.append(broadcast(start + steps, shape=windows))
    return axes, stack(rows)


def _batch_dynamic_slice(args, dims, size, *, sizes):
    x, i = args
    on_x, on_i = dims
    if on_i is None:
        return dynamic_slice(move_axis(x, on_x, 0), _from_first(i), sizes=(size, *sizes)), 0
    shape = x.shape if on_x is None else (*x.shape[:on_x], *x.shape[on_x + 1 :])
    if shape == sizes:
        return x, on_x
    axes, rows = _window_indices(_as_index(move_axis(i, on_i, 0)), shape, sizes)
    out, _ = _batch_gather((x, rows), (on_x, 1), size, axes=axes)
    return out.transpose(inverse(_windowed_first(len(shape), axes))), 0


def _batch_dynamic_update_slice(args, dims, size):
    x, u, i = args
    x = to_front(x, dims[0], size)
    u = to_front(u, dims[1], size)
    if dims[2] is None:
        return dynamic_update_slice(x, u, _from_first(i)), 0
    if x.shape == u.shape:
        return u, 0
    axes, rows = _window_indices(_as_index(move_axis(i, dims[2], 0)), x.shape[1:], u.shape[1:])
    u = u.transpose(_windowed_first(x.ndim - 1, axes))
    return _batch_scatter(scatter_set, (x, rows, u), (0, 1, 0), size, axes=axes)


def _from_first(i):
    """Return starts with a 0 in front, for the batch axis."""
    return concatenate(np.zeros(1, i.dtype), i, axis=0)


@functools.lru_cache(maxsize=4096)
def _windowed_first(ndim, axes):
    """Return the permutation from (example, axes in order) to (example, windowed axes, others)."""
    return (0, *[a + 1 for a in axes], *[a + 1 for a in range(ndim) if a not in axes])


dynamic_slice = linear(
    "dynamic_slice",
    lambda x, i, *, sizes: x[_window(i, x.shape, sizes)],
    type=lambda x, i, *, sizes: ArrayType(sizes, x.dtype),
    transpose=lambda ct, x, i: dynamic_update_slice(zeros(x), ct, i),
    batch=_batch_dynamic_slice,
    gpu="index.dynamic_slice",
    doc="The window of the given sizes that starts at i, moved inside x where it does not fit.",
)
dynamic_update_slice = linear(
    "dynamic_update_slice",
    _dynamic_update_slice,
    type=same_type,
    wrt=(0, 1),
    transpose=(
        lambda ct, u, i: dynamic_update_slice(ct, zeros(u), i),
        lambda ct, u, i: dynamic_slice(ct, i, sizes=u.shape),
    ),
    batch=_batch_dynamic_update_slice,
    gpu="index.dynamic_update_slice",
    doc="x with u in the window that starts at i, moved inside x where it does not fit.",
)

"""Indexing along one axis: take_along and its transpose, and index arithmetic that the scatters share."""

from __future__ import annotations

import functools
import math

import numpy as np

from fgrad.core import ArrayType
from fgrad.kinds import linear
from fgrad.plans import zeros


def same_type(x, *others, **params):
    """The type rule of a primitive whose result is like its first input."""
    return ArrayType(x.shape, x.dtype)


def checked(row, n, axis):
    """Return an index array as non-negative numbers; IndexError if one is out of range."""
    row = np.asarray(row, np.intp)
    if row.size:
        least, greatest = row.min(), row.max()
        if greatest >= n or least < -n:
            wrong = greatest if greatest >= n else least
            raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {n}")
        if least < 0:
            return np.where(row < 0, row + n, row)
    return row


def strides_of(shape):
    """Return how many elements apart neighbours along each axis are, in C order."""
    return [math.prod(shape[a + 1 :]) for a in range(len(shape))]


@functools.lru_cache(maxsize=256)
def _grid(shape, axis):
    """Return for every axis but one an index array that runs along it."""
    ndim = len(shape)
    return [
        np.arange(n).reshape((1,) * a + (n,) + (1,) * (ndim - a - 1)) if a != axis else None
        for a, n in enumerate(shape)
    ]


def _take_along(x, i, *, axis):
    if x.ndim == 1:
        return x.take(i) if x.flags.c_contiguous else x[i]
    index = list(_grid(i.shape, axis))
    index[axis] = i
    return x[tuple(index)]


def _put_along_add(x, i, u, *, axis):
    wide = np.float32 if x.dtype == np.float16 else x.dtype  # sums of many small numbers
    out = np.array(x, wide, order="C")
    strides = strides_of(x.shape)
    places = checked(i, x.shape[axis], axis) * strides[axis]
    for a, numbers in enumerate(_grid(i.shape, axis)):
        if a != axis:
            places = places + numbers * strides[a]
    np.add.at(out.reshape(-1), places.reshape(-1), u.astype(wide, copy=False).reshape(-1))
    return out.astype(x.dtype, copy=False)


def shift_axis(size, *, axis):
    """The shift of a primitive that works along one axis."""
    return {"axis": axis + 1}


take_along = linear(
    "take_along",
    _take_along,
    type=lambda x, i, *, axis: ArrayType(i.shape, x.dtype),
    transpose=lambda ct, x, i, *, axis: put_along_add(zeros(x), i, ct, axis=axis),
    shift=shift_axis,
    gpu="index.take_along",
    doc="NumPy's take_along_axis: x and i agree off the axis.",
)
put_along_add = linear(
    "put_along_add",
    _put_along_add,
    type=same_type,
    wrt=(0, 2),
    transpose=(lambda ct: ct, lambda ct, i, *, axis: take_along(ct, i, axis=axis)),
    shift=shift_axis,
    gpu="index.put_along_add",
    doc="x with u added where take_along would read; repeated indices add up.",
)

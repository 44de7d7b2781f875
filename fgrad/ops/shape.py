"""Shape primitives: reshape, transpose, broadcast, slice, place, pad, concatenate, reverse, and changes of dtype.

All are linear or constant. Axes are non-negative, shapes and slices are complete: callers normalise. Also here is
what rules of every family need to move axes of values that may be traced.
"""

from __future__ import annotations

import builtins
import functools
import math

import numpy as np

from fgrad.core import ArrayType, broadcast_array, type_of
from fgrad.kinds import constant, linear
from fgrad.ops.elementwise import select
from fgrad.plans import sum_to


def _no_change(size, **params):
    """The `shift` of a primitive whose parameters do not speak of axes."""
    return {}


# ------------------------------------------------------------------------------------------- order of elements

reshape = linear(
    "reshape",
    lambda x, *, shape: np.asarray(x).reshape(shape),
    type=lambda x, *, shape: _reshaped(x, shape),
    transpose=lambda ct, x: ct.reshape(x.shape),
    shift=lambda size, *, shape: {"shape": (size, *shape)},
    gpu="shape.reshape",
    doc="The elements in C order, in another shape.",
)


def _reshaped(x, shape):
    if math.prod(shape) != x.size:
        raise ValueError(f"cannot reshape array of size {x.size} into shape {shape}")
    return ArrayType(shape, x.dtype)


@functools.lru_cache(maxsize=4096)
def inverse(perm):
    """Return the permutation that undoes `perm`."""
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


transpose = linear(
    "transpose",
    lambda x, *, perm: np.asarray(x).transpose(perm),
    type=lambda x, *, perm: ArrayType(tuple([x.shape[a] for a in perm]), x.dtype),
    transpose=lambda ct, *, perm: ct.transpose(inverse(perm)),
    shift=lambda size, *, perm: {"perm": (0, *[a + 1 for a in perm])},
    gpu="shape.transpose",
    doc="Axis k of the result is axis perm[k] of x.",
)


@functools.lru_cache(maxsize=4096)
def _moved(ndim, source, target):
    order = [a for a in range(ndim) if a != source]
    order.insert(target, source)
    return tuple(order)


def move_axis(x, source, target):
    """Return `x` with one axis moved."""
    return x if source == target else x.transpose(_moved(x.ndim, source, target))


@functools.lru_cache(maxsize=4096)
def _backwards(ndim, axes):
    return tuple([np.s_[::-1] if a in axes else np.s_[:] for a in range(ndim)])


reverse = linear(
    "reverse",
    lambda x, *, axes: x[_backwards(x.ndim, axes)],
    type=lambda x, *, axes: ArrayType(x.shape, x.dtype),
    transpose=lambda ct, *, axes: reverse(ct, axes=axes),
    shift=lambda size, *, axes: {"axes": tuple([a + 1 for a in axes])},
    gpu="shape.reverse",
    doc="The elements in opposite order along each of the axes.",
)

# ---------------------------------------------------------------------------------------------------- broadcast


def _broadcast_type(x, *, shape):
    if np.broadcast_shapes(x.shape, shape) != shape:
        raise ValueError(f"cannot broadcast an array of shape {x.shape} to shape {shape}")
    return ArrayType(shape, x.dtype)


def _batch_broadcast(args, dims, size, *, shape):
    x = move_axis(args[0], dims[0], 0)
    missing = len(shape) + 1 - x.ndim
    if missing:
        x = x.reshape((size, *(1,) * missing, *x.shape[1:]))
    return broadcast(x, shape=(size, *shape)), 0


broadcast = linear(
    "broadcast",
    broadcast_array,
    type=_broadcast_type,
    transpose=lambda ct, x: sum_to(ct, x),
    batch=_batch_broadcast,
    gpu="shape.broadcast",
    doc="NumPy's broadcast_to: new axes in front, axes of length 1 stretched.",
)


def to_front(x, axis, size):
    """Return `x` with its batch axis in front, broadcast there if it has none (`axis` None)."""
    return broadcast(x, shape=(size, *type_of(x).shape)) if axis is None else move_axis(x, axis, 0)


# --------------------------------------------------------------------------------------------- slice and place


@functools.lru_cache(maxsize=4096)
def as_slices(index):
    """Return triples (start, stop, step) as the index NumPy takes."""
    return tuple([builtins.slice(*triple) for triple in index])


def _slice_type(x, *, index):
    if len(index) != x.ndim:
        raise ValueError(f"index has {len(index)} entries for {x.ndim} axes")
    shape = tuple([len(range(*s.indices(n))) for s, n in zip(as_slices(index), x.shape, strict=True)])
    return ArrayType(shape, x.dtype)


def _shift_index(size, *, index):
    return {"index": ((0, size, 1), *index)}


slice = linear(
    "slice",
    lambda x, *, index: np.asarray(x)[as_slices(index)],
    type=_slice_type,
    transpose=lambda ct, x, *, index: place(ct, shape=x.shape, index=index),
    shift=_shift_index,
    gpu="shape.slice",
    doc="Basic slicing: `index` has (start, stop, step) for every axis, as Python reads them.",
)


def _place(u, *, shape, index):
    u = np.asarray(u)
    out = np.zeros(shape, u.dtype)
    out[as_slices(index)] = u
    return out


place = linear(
    "place",
    _place,
    type=lambda u, *, shape, index: ArrayType(shape, u.dtype),
    transpose=lambda ct, *, index: slice(ct, index=index),
    shift=lambda size, *, shape, index: {"shape": (size, *shape), **_shift_index(size, index=index)},
    gpu="shape.place",
    doc="Zeros of the given shape with u at the slice `index`: the transpose of slice.",
)

# --------------------------------------------------------------------------------------------------------- pad


@functools.lru_cache(maxsize=4096)
def padding_of(shape, widths):
    """Return the padded shape, the slice of it that holds elements of x, and the slice of x they come from."""
    padded, target, source = [], [], []
    for n, (lo, hi, interior) in zip(shape, widths, strict=True):
        if interior < 0:
            raise ValueError(f"interior padding must not be negative, got {widths}")
        step = interior + 1
        length = lo + hi + (n - 1) * step + 1 if n else lo + hi
        if length < 0:
            raise ValueError(f"padding {widths} leaves a negative length for shape {shape}")
        first = max(0, -(lo // step))  # element k goes to lo + k * step
        end = max(first, min(n, -((lo - length) // step)))
        start, last = lo + first * step, lo + (end - 1) * step
        padded.append(length)
        target.append((start, last + 1, step) if end > first else (0, 0, step))
        source.append((first, end, 1))
    return tuple(padded), tuple(target), tuple(source)


def _pad(x, v, *, widths):
    x = np.asarray(x)
    shape, target, source = padding_of(x.shape, widths)
    out = np.empty(shape, x.dtype)
    out[...] = v
    out[as_slices(target)] = x[as_slices(source)]
    return out


def _unpad(ct, x, *, widths):
    _, target, source = padding_of(x.shape, widths)
    return place(slice(ct, index=target), shape=x.shape, index=source)


def _inside(shape, widths):
    """Return where the padded array holds elements of the original."""
    return _pad(np.ones(shape, bool), False, widths=widths)


def _batch_pad(args, dims, size, *, widths):
    x, v = args
    x = to_front(x, dims[0], size)
    wide = ((0, 0, 0), *widths)
    if dims[1] is None:
        return pad(x, v, widths=wide), 0
    column = v.reshape((size, *(1,) * (x.ndim - 1)))
    return select(_inside(x.shape[1:], widths), pad(x, np.zeros((), x.dtype), widths=wide), column), 0


pad = linear(
    "pad",
    _pad,
    type=lambda x, v, *, widths: ArrayType(padding_of(x.shape, widths)[0], x.dtype),
    wrt=(0, 1),
    transpose=(
        _unpad,
        lambda ct, x, v, *, widths: sum_to(select(_inside(x.shape, widths), 0, ct), v),
    ),
    batch=_batch_pad,
    gpu="shape.pad",
    doc="x with copies of the number v before, after and between its elements; `widths` has (before, after, between) "
    "for every axis; negative widths before and after crop.",
)

# ------------------------------------------------------------------------------------------------- concatenate


def _concatenate_type(*xs, axis):
    shape = list(xs[0].shape)
    for x in xs[1:]:
        if x.ndim != len(shape) or any(x.shape[a] != n for a, n in enumerate(shape) if a != axis):
            raise ValueError(f"cannot concatenate shapes {[x.shape for x in xs]} along axis {axis}")
    shape[axis] = sum(x.shape[axis] for x in xs)
    return ArrayType(tuple(shape), np.result_type(*[x.dtype for x in xs]))


def _split(ct, *xs, axis):
    """Return the parts of `ct` that belong to each of the concatenated arrays."""
    start = 0
    parts = []
    for x in xs:
        stop = start + x.shape[axis]
        index = tuple([(start, stop, 1) if a == axis else (0, n, 1) for a, n in enumerate(x.shape)])
        parts.append(slice(ct, index=index))
        start = stop
    return parts


concatenate = linear(
    "concatenate",
    lambda *xs, axis: np.concatenate(xs, axis),
    type=_concatenate_type,
    transpose=_split,
    shift=lambda size, *, axis: {"axis": axis + 1},
    gpu="shape.concatenate",
    doc="Arrays one after another along an axis.",
)


def stack(xs, axis=0):
    """Return arrays of one shape joined along a new axis."""
    shape = list(type_of(xs[0]).shape)
    axis %= len(shape) + 1
    shape.insert(axis, 1)
    return concatenate(*[reshape(x, shape=tuple(shape)) for x in xs], axis=axis)


# ------------------------------------------------------------------------------------ dtype, and copies


def _cast(x, *, dtype):
    x = np.asarray(x)
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        x = x.real
    return x.astype(dtype)


cast = linear(
    "cast",
    _cast,
    type=lambda x, *, dtype: ArrayType(x.shape, dtype),
    transpose=lambda ct, x: cast(ct, dtype=x.dtype),
    shift=_no_change,
    gpu="x.to(dtype)",
    doc="x in a floating or complex dtype; from complex to real it takes the real part.",
)
to_integer = constant(
    "to_integer",
    _cast,
    type=lambda x, *, dtype: ArrayType(x.shape, dtype),
    shift=_no_change,
    gpu="x.to(dtype)",
    doc="x in an integer dtype or bool, rounded towards zero.",
)


def _bitcast_type(x, *, dtype):
    dtype = np.dtype(dtype)
    old, new = x.dtype.itemsize, dtype.itemsize
    if old == new:
        return ArrayType(x.shape, dtype)
    if old > new:
        return ArrayType((*x.shape, old // new), dtype)
    if not x.shape or x.shape[-1] * old != new:
        raise ValueError(f"bitcast from {x} to {dtype} needs a last axis of length {new // old}")
    return ArrayType(x.shape[:-1], dtype)


def _bitcast(x, *, dtype):
    x = np.asarray(x, order="C")
    shape = _bitcast_type(type_of(x), dtype=dtype).shape
    return x.reshape((*x.shape, 1) if len(shape) >= x.ndim else x.shape).view(dtype).reshape(shape)


bitcast = constant(
    "bitcast",
    _bitcast,
    type=_bitcast_type,
    shift=_no_change,
    gpu="shape.bitcast",
    doc="The bytes of x read as another dtype; a narrower one adds a last axis, a wider one takes it away.",
)
copy = linear(
    "copy",
    lambda x: np.array(x),
    type=lambda x: ArrayType(x.shape, x.dtype),
    transpose=lambda ct: ct,
    shift=_no_change,
    gpu="x",
    doc="x in memory of its own.",
)
stop_gradient = constant(
    "stop_gradient",
    lambda x: np.array(x),
    type=lambda x: ArrayType(x.shape, x.dtype),
    shift=_no_change,
    gpu="x",
    doc="x, with derivative zero.",
)

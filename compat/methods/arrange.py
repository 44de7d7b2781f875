"""Joining, repeating, and moving elements: what makes new memory."""

from __future__ import annotations

import builtins
import functools

import numpy as np

from fgrad.extend import TABLE as P

from .. import dtypes
from ..tensor import Tensor, normal_dim
from .shape import diagonal_view, expand, place_diagonal, reshape, sizes, transpose
from .steps import quick, steps
from .table import FUNCTIONS, composed, define, promoted


def joined(fun, name):
    """Return a function of a sequence of tensors, which are promoted together."""
    made = composed(fun)

    def call(tensors, dim=0):
        tensors = list(tensors)
        if not tensors:
            raise RuntimeError(f"{name}(): expected a non-empty list of Tensors")
        return made(promoted(tensors, "arithmetic"), dim)

    return call


def cat(tensors, dim=0):
    return P["concatenate"](*_present(tensors), axis=_axis_of_cat(_present(tensors), dim))


def _present(tensors):
    """Return the tensors that `cat` joins: torch passes over empty vectors."""
    return [x for x in tensors if x.shape != (0,)] or tensors


def _axis_of_cat(tensors, dim):
    """Return the axis along which arrays are joined; RuntimeError in torch's words if they do not fit."""
    for x in tensors:
        if x.ndim == 0:
            raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
        if x.ndim != tensors[0].ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {tensors[0].ndim} and {x.ndim}")
    dim = normal_dim(dim, tensors[0].ndim)
    for k, x in enumerate(tensors):
        for axis in range(x.ndim):
            if axis != dim and x.shape[axis] != tensors[0].shape[axis]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {tensors[0].shape[axis]} "
                    f"but got size {x.shape[axis]} for tensor number {k} in the list."
                )
    return dim


_JOINED = steps(P["concatenate"], silent=True)


def _quick_cat(slow):
    """Return `cat`, one step for plain tensors of one float."""

    @functools.wraps(slow)
    def call(tensors, dim=0):
        tensors = list(tensors)
        if len(tensors) < 2 or not quick(*tensors) or any(x._data.shape == (0,) for x in tensors):
            return slow(tensors, dim)
        return _JOINED(tensors, {"axis": _axis_of_cat([x._data for x in tensors], dim)})

    return call


def stack(tensors, dim=0):
    for x in tensors:
        if x.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                f"{list(x.shape)} at entry {tensors.index(x)}"
            )
    n = tensors[0].ndim
    dim = normal_dim(dim, n + 1)
    shape = (*tensors[0].shape[:dim], 1, *tensors[0].shape[dim:])
    return P["concatenate"](*[x.reshape(shape) for x in tensors], axis=dim)


define("cat", _quick_cat(joined(cat, "cat")), method=False, aliases=("concat", "concatenate"))
define("stack", joined(stack, "stack"), method=False)


def stacker(raise_to, axis):
    """Return hstack, vstack or dstack: tensors of at least some dimensions, joined along an axis."""

    def call(tensors):
        tensors = [raise_to(x) for x in tensors]
        return FUNCTIONS["cat"](tensors, 0 if axis == 1 and tensors[0]._data.ndim == 1 else axis)

    return call


def atleast(n):
    """Return torch's atleast_nd, of one tensor, several, or a sequence of them."""

    def call(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            x = tensors[0]
            if x._data.ndim >= n:
                return x
            shape = {1: (1,), 2: (1, -1), 3: (1, -1, 1)}[n] if x._data.ndim < 2 else (*x._data.shape, 1)
            return reshape(x, *shape)
        return tuple([call(x) for x in (tensors[0] if len(tensors) == 1 else tensors)])

    return call


for n in (1, 2, 3):
    define(f"atleast_{n}d", atleast(n), method=False, out=False)
for name, n, axis in (("hstack", 1, 1), ("vstack", 2, 0), ("dstack", 3, 2)):
    define(name, stacker(FUNCTIONS[f"atleast_{n}d"], axis), method=False)


def flip(input, dims):
    return P["reverse"](
        input, axes=tuple([normal_dim(d, input.ndim) for d in ((dims,) if isinstance(dims, int) else dims)])
    )


def roll(input, shifts, dims=None):
    if dims is None:
        return np.roll(input, shifts)
    return np.roll(input, shifts, dims if isinstance(dims, int) else tuple(dims))


def rot90(input, k=1, dims=(0, 1)):
    return np.rot90(input, k, tuple(dims))


def repeat(input, *repeats):
    repeats = sizes(repeats)
    if len(repeats) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * (len(repeats) - input.ndim) + tuple(input.shape)
    paired = [k for n in shape for k in (1, n)]
    wide = [k for r, n in zip(repeats, shape) for k in (r, n)]
    return np.broadcast_to(input.reshape(tuple(paired)), tuple(wide)).reshape(
        tuple([r * n for r, n in zip(repeats, shape)])
    )


def repeat_interleave(input, repeats, dim=None):
    x = input.reshape((-1,)) if dim is None else input
    axis = 0 if dim is None else normal_dim(dim, x.ndim)
    counts = np.broadcast_to(np.asarray(repeats), (x.shape[axis],))
    return np.take(x, np.repeat(np.arange(x.shape[axis]), counts), axis)


def tile(input, *dims):
    dims = sizes(dims)
    return repeat(input, *((1,) * (input.ndim - len(dims)) + dims))


def tril(input, diagonal=0):
    return np.where(np.tri(*input.shape[-2:], diagonal, dtype=bool), input, np.zeros((), input.dtype))


def triu(input, diagonal=0):
    return np.where(np.tri(*input.shape[-2:], diagonal - 1, dtype=bool), np.zeros((), input.dtype), input)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    n = input.ndim + 1
    size = input.shape[-1] + builtins.abs(offset)
    a, b = normal_dim(dim1, n), normal_dim(dim2, n)
    shape = list(input.shape[:-1])
    for axis in sorted((a, b)):
        shape.insert(axis, size)
    return place_diagonal(input, shape=tuple(shape), offset=offset, axis1=a, axis2=b)


def diag(input, diagonal=0):
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return diagonal_view(input, offset=diagonal, axis1=0, axis2=1)


def diagflat(input, offset=0):
    return diag_embed(input.reshape((-1,)), offset)


def clone(input, *, memory_format=None):
    return P["copy"](input)


for fun, inplace in (
    (flip, False), (roll, False), (rot90, False), (repeat_interleave, False), (tile, False),
    (tril, True), (triu, True), (diag_embed, False), (diag, False), (diagflat, False), (clone, False),
):  # fmt: skip
    define(fun.__name__, composed(fun), inplace=inplace)
define("repeat", composed(repeat), function=False)
define("fliplr", composed(lambda input: flip(input, 1)))
define("flipud", composed(lambda input: flip(input, 0)))


def contiguous(self, memory_format=None):
    """Return the tensor itself if its elements lie in order, else an ordered copy."""
    return self if self._data.flags.c_contiguous else FUNCTIONS["clone"](self)


define("contiguous", contiguous, function=False)


def broadcast_tensors(*tensors):
    tensors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    shape = broadcast_shapes(*[x._data.shape for x in tensors])
    return tuple([expand(x, *shape) for x in tensors])


def broadcast_shapes(*shapes):
    try:
        return dtypes.Size(np.broadcast_shapes(*shapes))
    except ValueError:
        raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape") from None


def broadcast_to(input, size):
    return expand(input, *size)


def meshgrid(*tensors, indexing="ij"):
    tensors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    n = len(tensors)
    grids = [
        expand(reshape(x, *[-1 if i == k else 1 for i in range(n)]), *[y._data.size for y in tensors])
        for k, x in enumerate(tensors)
    ]
    return tuple([transpose(g, 0, 1) for g in grids] if indexing == "xy" else grids)


def block_diag(*tensors):
    blocks = [FUNCTIONS["atleast_2d"](x) for x in tensors]
    width = builtins.sum(x._data.shape[1] for x in blocks)
    rows, before = [], 0
    for x in blocks:
        h, w = x._data.shape
        rows.append(FUNCTIONS["cat"]([x.new_zeros((h, before)), x, x.new_zeros((h, width - before - w))], 1))
        before += w
    return FUNCTIONS["cat"](rows, 0)


define("broadcast_to", broadcast_to, out=False)
for fun in (broadcast_tensors, broadcast_shapes, meshgrid, block_diag):
    define(fun.__name__, fun, method=False, out=False)

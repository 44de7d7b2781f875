"""NumPy's functions that write into an array. On traced values they return a copy, when asked with `inplace=False`."""

from __future__ import annotations

import numpy as np

from fgrad.core import Tracer
from fgrad.numpy.arguments import as_array, stands_for
from fgrad.numpy.shaping import take_axis
from fgrad.numpy.updating import at, created
from fgrad.ops import elementwise as e
from fgrad.ops import shape as s
from fgrad.source import user_line

__all__ = """
    copyto fill_diagonal place put put_along_axis putmask
""".split()


def _writes(original, *, remedy):
    """Return a decorator: in place NumPy's function writes, else the decorated one returns a copy."""

    def decorate(fun):
        def function(a, *args, inplace=True, **kwargs):
            if not inplace:
                return created(fun(as_array(a), *args, **kwargs))
            if any(isinstance(x, Tracer) for x in (a, *args, *kwargs.values())):
                raise TypeError(
                    f"{original.__name__} writes into an array, which a transform cannot follow, at {user_line()}."
                    f"\nRemedy: {remedy}"
                )
            return original(a, *args, **kwargs)

        function.__name__ = function.__qualname__ = original.__name__
        function.__doc__ = fun.__doc__
        return stands_for(original)(function)

    return decorate


@_writes(np.fill_diagonal, remedy="a = fgrad.numpy.fill_diagonal(a, val, inplace=False)")
def fill_diagonal(a, val, wrap=False):
    """Write values on the main diagonal; with `inplace=False`, of a copy that is returned."""
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    rows = np.arange(a.shape[0] if wrap and a.ndim == 2 else min(a.shape))
    if a.ndim == 2:
        rows = rows[rows % (a.shape[1] + 1) < a.shape[1]] if wrap else rows
        index = (rows, rows % (a.shape[1] + 1) if wrap else rows)
    else:
        index = (rows,) * a.ndim
    values = as_array(val).ravel()
    return at(a)[index].set(take_axis(values, np.arange(len(rows)) % values.size, 0))


@_writes(np.put, remedy="a = fgrad.numpy.put(a, ind, v, inplace=False)")
def put(a, ind, v, mode="raise"):
    """Write values at flat indices, repeated as needed; with `inplace=False`, of a copy that is returned."""
    ind = as_array(ind).ravel()
    values = as_array(v).ravel()
    if not ind.size:
        return a
    values = take_axis(values, np.arange(ind.size) % values.size, 0)
    if mode == "clip":
        ind = e.max(ind, 0)
    flat = at(s.reshape(a, shape=(a.size,)))[ind].set(values, mode=None if mode == "raise" else mode)
    return s.reshape(as_array(flat), shape=a.shape)


@_writes(np.put_along_axis, remedy="arr = fgrad.numpy.put_along_axis(arr, indices, values, axis, inplace=False)")
def put_along_axis(arr, indices, values, axis):
    """Write values where `take_along_axis` would read; with `inplace=False`, of a copy that is returned."""
    if axis is None:
        flat = put_along_axis(s.reshape(arr, shape=(arr.size,)), indices, values, 0, inplace=False)
        return s.reshape(as_array(flat), shape=arr.shape)
    indices = as_array(indices)
    axis %= arr.ndim
    grid = np.ogrid[
        tuple(
            [
                slice(n)
                for n in np.broadcast_shapes(
                    indices.shape, tuple([1 if i == axis else n for i, n in enumerate(arr.shape)])
                )
            ]
        )
    ]
    return at(arr)[tuple([indices if i == axis else grid[i] for i in range(arr.ndim)])].set(values)


@_writes(np.place, remedy="arr = fgrad.numpy.place(arr, mask, vals, inplace=False), or fgrad.numpy.where")
def place(arr, mask, vals):
    """Write values one after another, repeated as needed, where a mask holds; `inplace=False` writes in a copy."""
    mask = as_array(mask).ravel()
    values = as_array(vals).ravel()
    order = e.rem(mask.astype(np.intp).cumsum(axis=0) - 1, values.size)
    order = e.max(order, 0)
    flat = s.reshape(arr, shape=(arr.size,))
    return s.reshape(e.select(mask.astype(bool), take_axis(values, order, 0).astype(arr.dtype), flat), shape=arr.shape)


@_writes(np.copyto, remedy="dst = fgrad.numpy.where(mask, src, dst)")
def copyto(dst, src, casting="same_kind", where=True):
    """Write one array into another where a mask holds; with `inplace=False`, into a copy that is returned."""
    return e.select(as_array(where), as_array(src).astype(dst.dtype), dst)


@_writes(np.putmask, remedy="a = fgrad.numpy.where(mask, values, a)")
def putmask(a, mask, values):
    """Write values, repeated as needed, where a mask holds; with `inplace=False`, into a copy that is returned."""
    values = as_array(values).ravel()
    values = take_axis(values, np.arange(a.size) % values.size, 0).astype(a.dtype)
    return e.select(as_array(mask).astype(bool), s.reshape(values, shape=a.shape), a)

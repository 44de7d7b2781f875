"""Entries by index, entries added up by index, axes in another order."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgrad.kernels.pairs import like, wide, with_kernels
from fgrad.numpy.arguments import along, one_axis
from fgrad.numpy.updating import at
from fgrad.ops import elementwise as e
from fgrad.ops import shape as s


@with_kernels("embedding.gather", on_device=True, axis=0)
def embedding(x: Any, index: Any) -> Any:
    """Return the rows of a table at an index; rows of NaN for what is no row.

    Args:
        x: (entries, …), floating.
        index: any shape, integers in [0, entries).
        impl: "numpy" or "triton".

    Returns:
        index.shape + x.shape[1:]. The gradient adds up what repeated indices bring, in float32 at least.

    Raises:
        TypeError: index is not integers.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.embedding(np.arange(6.0).reshape(3, 2), np.array([2, 0]))
        array([[4., 5.],
               [0., 1.]])
    """
    return _gather(x, index, 0, "embedding")


@with_kernels("embedding.gather", on_device=True)
def gather(x: Any, index: Any, *, axis: int = 0) -> Any:
    """Return the entries of x at an index along an axis, as `numpy.take`; NaN for what is no entry.

    Args:
        x: floating.
        index: any shape, integers in [0, entries).
        axis: of x; the axes of index take its place.
        impl: "numpy" or "triton".

    Raises:
        TypeError: index is not integers.
    """
    return _gather(x, index, axis, "gather")


def _gather(x: Any, index: Any, axis: int, name: str) -> Any:
    axis = one_axis(axis, x.ndim)
    valid, index = _entries(index, x.shape[axis], name)
    if not x.shape[axis]:
        return np.full((*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]), np.nan, x.dtype)
    taken = x[along(index, axis)]
    return e.select(_column(valid, taken.ndim - axis), taken, np.asarray(np.nan, x.dtype))


def _entries(index: Any, size: int, name: str) -> tuple[Any, Any]:
    """Return which indices are entries, and the index with 0 for others."""
    if index.dtype.kind not in "iu":
        raise TypeError(f"{name}: index must be integers, got {index.dtype}")
    valid = e.logical_and(e.ge(index, 0), e.lt(index, size))
    return valid, e.select(valid, index, np.zeros((), index.dtype))


def _column(valid: Any, ndim: int) -> Any:
    """Return a mask with axes put behind it, so that it broadcasts over what stands there."""
    return s.reshape(valid, shape=(*valid.shape, *(1,) * (ndim - valid.ndim)))


@with_kernels("embedding.scatter_add", wrt=("x", "updates"), on_device=True)
def scatter_add(x: Any, index: Any, updates: Any, *, axis: int = 0) -> Any:
    """Return x with updates added to its entries at an index along an axis; repeated indices add up.

    The same every time: no atomics.

    Args:
        x: floating.
        index: any shape, integers in [0, entries); updates at others are left out.
        updates: of x's type; x's shape with the axes of index in the place of `axis`.
        axis: of x.
        impl: "numpy" or "triton".

    Raises:
        TypeError: index is not integers, or x and updates differ in type.
        ValueError: shapes do not fit.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.scatter_add(np.zeros(3), np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]))
        array([2., 0., 4.])
    """
    axis = one_axis(axis, x.ndim)
    expected = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    if updates.shape != expected:
        raise ValueError(f"scatter_add: updates must have shape {expected}, got {updates.shape}")
    if updates.dtype != x.dtype:
        raise TypeError(f"scatter_add: x and updates must have one type, got {x.dtype} and {updates.dtype}")
    valid, index = _entries(index, x.shape[axis], "scatter_add")
    if not x.shape[axis]:
        return x
    updates = e.select(_column(valid, updates.ndim - axis), wide(updates), 0.0)
    return like(at(wide(x))[along(index, axis)].add(updates), x)


@with_kernels("layout.transpose")
def transpose(x: Any, *, axes: Any = None) -> Any:
    """Return a packed copy of an array with its axes in another order, reversed if None.

    Raises:
        ValueError: axes do not name each axis once.
    """
    order = tuple(reversed(range(x.ndim))) if axes is None else tuple([one_axis(a, x.ndim, "axes") for a in axes])
    if sorted(order) != list(range(x.ndim)):
        raise ValueError(f"transpose: axes must name each axis of an array of shape {x.shape} once, got {axes}")
    return s.transpose(x, perm=order)

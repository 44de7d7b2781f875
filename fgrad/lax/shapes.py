"""`jax.lax`'s functions that make, shape, slice and join arrays."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fgrad import numpy as fnp
from fgrad.core import type_of
from fgrad.numpy import expand_dims, full, squeeze, stack, tile  # noqa: F401 (offered here)
from fgrad.numpy.arguments import as_array, cast, one_axis
from fgrad.ops import index as ix
from fgrad.ops import shape as s

__all__ = """
bitcast_convert_type broadcast broadcast_in_dim broadcasted_iota collapse concatenate convert_element_type
dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_update_index_in_dim dynamic_update_slice
dynamic_update_slice_in_dim expand_dims full full_like index_in_dim iota pad reshape rev slice slice_in_dim split
squeeze stack tile transpose unstack
""".split()

# ------------------------------------------------------------------------------------------------- making


def iota(dtype: Any, size: int) -> Any:
    """Return 0, 1, …, size - 1.

    Example:
        >>> from fgrad import lax
        >>> lax.iota(float, 3)
        array([0., 1., 2.])
    """
    return np.arange(size, dtype=dtype)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Any:
    """Return an array of the position along an axis.

    Example:
        >>> from fgrad import lax
        >>> lax.broadcasted_iota(int, (2, 3), 1)
        array([[0, 1, 2],
               [0, 1, 2]])
    """
    column = [-1 if a == dimension % len(shape) else 1 for a in range(len(shape))]
    return np.array(np.broadcast_to(np.arange(shape[dimension], dtype=dtype).reshape(column), shape))


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Return an array like x filled with a value.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.full_like(np.ones(2), 3)
        array([3., 3.])
    """
    kind = type_of(as_array(x))
    return fnp.full(kind.shape if shape is None else shape, fill_value, dtype or kind.dtype)


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """Return the operand in another dtype.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.convert_element_type(np.array([1.5]), int)
        array([1])
    """
    return cast(as_array(operand), new_dtype)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """Return the operand's bytes read as another dtype; a narrower one adds a last axis, a wider one takes it away.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.bitcast_convert_type(np.float32(1), np.int32)
        array(1065353216, dtype=int32)
    """
    return s.bitcast(as_array(operand), dtype=np.dtype(new_dtype))


# ------------------------------------------------------------------------------------------------- shaping


def reshape(operand: Any, new_sizes: Any, dimensions: Sequence[int] | None = None) -> Any:
    """Return the operand in another shape, its axes first put in the order `dimensions`.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.reshape(np.arange(4), (2, 2), (0,))
        array([[0, 1],
               [2, 3]])
    """
    operand = as_array(operand)
    return fnp.reshape(operand if dimensions is None else transpose(operand, dimensions), new_sizes)


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """Return the operand with its axes in another order.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.transpose(np.ones((2, 3)), (1, 0)).shape
        (3, 2)
    """
    return fnp.transpose(operand, tuple(permutation))


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """Return the operand backwards along axes.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.rev(np.arange(3), (0,))
        array([2, 1, 0])
    """
    return fnp.flip(operand, tuple(dimensions))


def broadcast(operand: Any, sizes: Sequence[int]) -> Any:
    """Return the operand with new axes of these sizes in front.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.broadcast(np.arange(2), (3,)).shape
        (3, 2)
    """
    operand = as_array(operand)
    return fnp.broadcast_to(operand, (*sizes, *operand.shape))


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
    """Return the operand broadcast to a shape, its axis k being axis broadcast_dimensions[k] of the result.

    Raises ValueError if `broadcast_dimensions` does not name an axis of the result for each of the operand's.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.broadcast_in_dim(np.array([1, 2]), (2, 3), (0,))
        array([[1, 1, 1],
               [2, 2, 2]])
    """
    operand = as_array(operand)
    if len(broadcast_dimensions) != operand.ndim or list(broadcast_dimensions) != sorted(set(broadcast_dimensions)):
        raise ValueError(
            f"broadcast_in_dim: broadcast_dimensions must be increasing, one for each of the {operand.ndim} axes of "
            f"the operand, got {tuple(broadcast_dimensions)}"
        )
    sizes = dict(zip(broadcast_dimensions, operand.shape, strict=True))
    return fnp.broadcast_to(operand.reshape([sizes.get(a, 1) for a in range(len(shape))]), tuple(shape))


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """Return the operand with the axes from `start_dimension` up to `stop_dimension` made one.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.collapse(np.ones((2, 3, 4)), 0, 2).shape
        (6, 4)
    """
    operand = as_array(operand)
    lo, hi, _ = builtins.slice(start_dimension, stop_dimension).indices(operand.ndim)
    shape = operand.shape
    return fnp.reshape(operand, (*shape[:lo], math.prod(shape[lo:hi]), *shape[hi:]))


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Join arrays along an axis.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.concatenate([np.zeros(1), np.ones(2)], 0)
        array([0., 1., 1.])
    """
    return fnp.concatenate(operands, dimension)


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Split an array into parts of these sizes along an axis.

    Raises ValueError if the sizes do not add up to that of the axis.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.split(np.arange(3), (1, 2))
        [array([0]), array([1, 2])]
    """
    operand = as_array(operand)
    if sum(sizes) != operand.shape[axis]:
        raise ValueError(f"split: sizes {tuple(sizes)} must add up to {operand.shape[axis]}, the size of axis {axis}")
    return list(fnp.split(operand, np.cumsum(sizes)[:-1].tolist(), axis))


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """Return the slices along an axis.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.unstack(np.array([[1, 2], [3, 4]]), 1)
        (array([1, 3]), array([2, 4]))
    """
    return tuple(fnp.unstack(x, axis=axis))


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """Put copies of a number before, after and between the elements along each axis; negative widths crop.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.pad(np.array([1, 2]), 0, [(1, 0, 1)])
        array([0, 1, 0, 2])
    """
    operand = as_array(operand)
    widths = tuple([tuple([operator.index(n) for n in triple]) for triple in padding_config])
    if len(widths) != operand.ndim:
        raise ValueError(f"pad: padding_config must have {operand.ndim} entries, one an axis, got {len(widths)}")
    return s.pad(operand, cast(as_array(padding_value), operand.dtype), widths=widths)


# ------------------------------------------------------------------------------------------------- slicing


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Any:
    """Return the elements from `start_indices` up to `limit_indices`, in steps of `strides`.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.slice(np.arange(6), (1,), (5,), (2,))
        array([1, 3])
    """
    steps = [1] * len(start_indices) if strides is None else strides
    triples = zip(start_indices, limit_indices, steps, strict=True)
    return as_array(operand)[tuple([builtins.slice(*triple) for triple in triples])]


def slice_in_dim(operand: Any, start_index: Any, limit_index: Any, stride: int = 1, axis: int = 0) -> Any:
    """Return a slice along one axis.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.slice_in_dim(np.arange(6), 1, 5, 2)
        array([1, 3])
    """
    operand = as_array(operand)
    return operand[_along(one_axis(axis, operand.ndim), builtins.slice(start_index, limit_index, stride))]


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """Return one slice along an axis, which is kept with size 1 unless `keepdims` is false.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.index_in_dim(np.arange(6), -1)
        array([5])
    """
    operand = as_array(operand)
    axis, index = one_axis(axis, operand.ndim), operator.index(index)
    size = operand.shape[axis]
    if not -size <= index < size:
        raise IndexError(f"index_in_dim: index {index} is out of bounds for axis {axis} with size {size}")
    place = index % size
    out = operand[_along(axis, builtins.slice(place, place + 1))]
    return out if keepdims else fnp.squeeze(out, axis)


def _along(axis: int, index: Any) -> tuple[Any, ...]:
    return (*[builtins.slice(None)] * axis, index)


def _starts(operand: Any, start_indices: Any) -> Any:
    """Return where a window starts as one array of integers; negative ones count from the end, as in NumPy."""
    shape = np.array(operand.shape, np.int64)
    starts = start_indices if hasattr(start_indices, "shape") else list(start_indices)
    starts = fnp.stack(starts) if starts.__class__ is list and starts else as_array(starts)
    if starts.shape != shape.shape:
        raise ValueError(f"start_indices must be {operand.ndim} integers, one an axis, got {type_of(starts)}")
    starts = cast(starts, np.int64)
    return fnp.where(starts < 0, starts + shape, starts)


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """Return the window of these sizes that starts at indices, which may be traced; moved inside if it does not fit.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.dynamic_slice(np.arange(6), (4,), (3,))
        array([3, 4, 5])
    """
    operand = as_array(operand)
    sizes = tuple([operator.index(n) for n in slice_sizes])
    if len(sizes) != operand.ndim or any(n > m or n < 0 for n, m in zip(sizes, operand.shape, strict=False)):
        raise ValueError(f"dynamic_slice: slice_sizes must fit an array of shape {operand.shape}, got {sizes}")
    return ix.dynamic_slice(operand, _starts(operand, start_indices), sizes=sizes)


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Any:
    """Return the window along one axis that starts at an index, which may be traced; moved inside if it does not fit.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.dynamic_slice_in_dim(np.arange(6), 1, 2)
        array([1, 2])
    """
    operand = as_array(operand)
    axis = one_axis(axis, operand.ndim)
    sizes = [slice_size if a == axis else n for a, n in enumerate(operand.shape)]
    return dynamic_slice(operand, _only(start_index, axis, operand.ndim), sizes)


def _only(index: Any, axis: int, ndim: int) -> list[Any]:
    """Return a start of 0 along all axes but one."""
    return [cast(as_array(index), np.int64) if a == axis else np.int64(0) for a in range(ndim)]


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """Return the slice at an index, which may be traced, along an axis, kept with size 1 unless `keepdims` is false.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.dynamic_index_in_dim(np.arange(6), 9, keepdims=False)
        array(5)
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis)
    return out if keepdims else fnp.reshape(out, tuple(np.delete(out.shape, axis).tolist()))


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Any:
    """Return the operand with a window written to at indices, which may be traced; moved inside if it does not fit.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.dynamic_update_slice(np.zeros(3), np.ones(2), (2,))
        array([0., 1., 1.])
    """
    operand, update = as_array(operand), as_array(update)
    if update.ndim != operand.ndim or any(n > m for n, m in zip(update.shape, operand.shape, strict=True)):
        raise ValueError(
            f"dynamic_update_slice: update must fit an array of shape {operand.shape}, got shape {update.shape}"
        )
    return ix.dynamic_update_slice(operand, cast(update, operand.dtype), _starts(operand, start_indices))


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Any:
    """Return the operand with a window along one axis written to, from an index that may be traced.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.dynamic_update_slice_in_dim(np.zeros(3), np.ones(2), 0, 0)
        array([1., 1., 0.])
    """
    operand = as_array(operand)
    return dynamic_update_slice(operand, update, _only(start_index, one_axis(axis, operand.ndim), operand.ndim))


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Any:
    """Return the operand with the slice at an index, which may be traced, written to; `update` may lack the axis.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.dynamic_update_index_in_dim(np.zeros(3), 1., 1, 0)
        array([0., 1., 0.])
    """
    operand, update = as_array(operand), as_array(update)
    axis = one_axis(axis, operand.ndim)
    if update.ndim != operand.ndim:
        update = fnp.expand_dims(update, axis)
    return dynamic_update_slice_in_dim(operand, update, index, axis)

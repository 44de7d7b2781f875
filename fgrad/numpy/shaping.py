"""Functions that change shape or order: reshape, transpose, broadcast, flip, roll, pad, repeat, and diagonals."""

from __future__ import annotations

import inspect
import math
import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from fgrad.core import Tracer, state, type_of
from fgrad.numpy.arguments import as_array, as_shape, cast, counterpart, moved, one_axis, operand, stands_for
from fgrad.ops import elementwise as e
from fgrad.ops import index as ix
from fgrad.ops import shape as s

__all__ = """
    atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to diag diagflat diagonal expand_dims flip
    fliplr flipud matrix_transpose moveaxis ndim permute_dims ravel repeat reshape resize roll rollaxis rot90
    shape size squeeze swapaxes tile transpose tril triu
""".split()

# ------------------------------------------------------------------------------------------------- asking


@counterpart(np.shape)
def shape(a):
    """Return the shape of an array."""
    return type_of(operand(a)).shape


@counterpart(np.ndim)
def ndim(a):
    """Return the number of axes of an array."""
    return len(shape(a))


@counterpart(np.size)
def size(a, axis=None):
    """Return the number of elements of an array, or its length along an axis or axes."""
    lengths = shape(a)
    if axis is None:
        return math.prod(lengths)
    axes = normalize_axis_tuple(axis, len(lengths)) if isinstance(axis, tuple) else (one_axis(axis, len(lengths)),)
    return math.prod([lengths[i] for i in axes])


# ------------------------------------------------------------------------------------------------- reshape


def _completed(new, count, function):
    """Return a shape with its one -1 replaced by the length that makes up `count` elements."""
    new = as_shape(new, function)
    rest = math.prod([n for n in new if n >= 0])
    unknown = [n for n in new if n < 0]
    if not unknown and rest == count:
        return new
    if unknown == [-1] and rest and count % rest == 0:
        return tuple([count // rest if n < 0 else n for n in new])
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    raise ValueError(f"cannot reshape array of size {count} into shape {new}")


def _numpys_reshape():
    """Return NumPy's function, with the standard's keywords where NumPy is too old to have them (2.0)."""
    if "copy" in inspect.signature(np.reshape).parameters:
        return np.reshape

    def reshape(a, /, shape=None, order="C", *, newshape=None, copy=None):
        out = np.reshape(a, shape if newshape is None else newshape, order or "C")
        if copy is False and not np.shares_memory(out, a):
            raise ValueError("Unable to avoid creating a copy while reshaping.")
        return out.copy() if copy else out

    return reshape


@stands_for(np.reshape)
@counterpart(_numpys_reshape())
def reshape(a, /, shape=None, order=None, *, newshape=None, copy=None):
    """Give an array another shape with the same elements.

    Args:
        a: array.
        shape: an int or a tuple of ints; one may be -1, for as many as remain.
        order: "C" (None) to read and write with the last axis changing fastest, "F" with the first.
        copy: True for a copy; False is refused on traced values.

    Raises:
        ValueError: the number of elements differs.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.reshape([1, 2, 3, 4], (2, -1))
        array([[1, 2],
               [3, 4]])
    """
    x = as_array(a)
    new = _completed(shape if newshape is None else newshape, x.size, "reshape")
    if order in (None, "C", "A"):
        return s.reshape(x, shape=new)
    if order != "F":
        raise ValueError(f"reshape: order must be one of 'C', 'F', 'A', or None (got {order!r})")
    return transpose(s.reshape(transpose(x), shape=new[::-1]))


@counterpart(np.ravel)
def ravel(a, order="C"):
    """Flatten an array to one axis."""
    return reshape(a, -1, "C" if order == "K" else order)


@counterpart(np.squeeze)
def squeeze(a, axis=None):
    """Remove axes of size 1: all of them, or those in `axis`; ValueError if one of those is longer."""
    x = as_array(a)
    if axis is None:
        return s.reshape(x, shape=tuple([n for n in x.shape if n != 1]))
    axes = normalize_axis_tuple(axis, x.ndim)
    if any(x.shape[i] != 1 for i in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return s.reshape(x, shape=tuple([n for i, n in enumerate(x.shape) if i not in axes]))


@stands_for(np.expand_dims)
def expand_dims(a, axis=0):
    """Put in axes of size 1 at the positions in `axis`, an int or a tuple."""
    if state.interpreter is None:
        return np.expand_dims(a, axis)
    x = as_array(a)
    axis = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = normalize_axis_tuple(axis, x.ndim + len(axis))
    lengths = iter(x.shape)
    return s.reshape(x, shape=tuple([1 if i in axes else next(lengths) for i in range(x.ndim + len(axes))]))


def _at_least(count, place):
    def at_least(*arys):
        out = [place(as_array(a)) for a in arys]
        return out[0] if len(out) == 1 else tuple(out)

    at_least.__name__ = at_least.__qualname__ = f"atleast_{count}d"
    at_least.__doc__ = f"Return arrays with axes of size 1 added up to {count} of them; several give a tuple."
    return at_least


def _two(x):
    return x if x.ndim >= 2 else s.reshape(x, shape=(1,) * (2 - x.ndim) + x.shape)


def _three(x):
    if x.ndim >= 3:
        return x
    return s.reshape(x, shape={0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}[x.ndim])


atleast_1d = counterpart(np.atleast_1d)(_at_least(1, lambda x: x if x.ndim else s.reshape(x, shape=(1,))))
atleast_2d = counterpart(np.atleast_2d)(_at_least(2, _two))
atleast_3d = counterpart(np.atleast_3d)(_at_least(3, _three))

# ------------------------------------------------------------------------------------------------- transpose


@counterpart(np.transpose, *([np.permute_dims] if np.permute_dims is not np.transpose else []))
def transpose(a, axes=None):
    """Permute axes: axis `axes[k]` becomes axis k; without `axes` their order is reversed."""
    x = as_array(a)
    if axes is None:
        return s.transpose(x, perm=tuple(range(x.ndim))[::-1])
    perm = normalize_axis_tuple(axes, x.ndim)
    if len(perm) != x.ndim:
        raise ValueError(f"axes don't match array: {axes} for an array of {x.ndim} axes")
    return s.transpose(x, perm=perm)


permute_dims = transpose


@counterpart(np.matrix_transpose)
def matrix_transpose(x, /):
    """Swap the last two axes; ValueError if there are fewer."""
    x = as_array(x)
    if x.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return swapaxes(x, -1, -2)


@counterpart(np.swapaxes)
def swapaxes(a, axis1, axis2):
    """Swap two axes."""
    x = as_array(a)
    perm = list(range(x.ndim))
    i, j = one_axis(axis1, x.ndim, "axis1"), one_axis(axis2, x.ndim, "axis2")
    perm[i], perm[j] = perm[j], perm[i]
    return s.transpose(x, perm=tuple(perm))


@counterpart(np.moveaxis)
def moveaxis(a, source, destination):
    """Move axes from the positions in `source` to those in `destination`, ints or sequences of equal length."""
    x = as_array(a)
    sources = normalize_axis_tuple(source, x.ndim, "source")
    targets = normalize_axis_tuple(destination, x.ndim, "destination")
    if len(sources) != len(targets):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    perm = [i for i in range(x.ndim) if i not in sources]
    for target, source in sorted(zip(targets, sources)):
        perm.insert(target, source)
    return s.transpose(x, perm=tuple(perm))


@counterpart(np.rollaxis)
def rollaxis(a, axis, start=0):
    """Move an axis back until it lies before the position `start`."""
    x = as_array(a)
    axis = one_axis(axis, x.ndim)
    start = one_axis(start, x.ndim + 1, "start") if start != x.ndim else start
    return moved(x, axis, start - (axis < start))


# ------------------------------------------------------------------------------------------------- broadcast


@counterpart(np.broadcast_to)
def broadcast_to(array, shape, subok=False):
    """Repeat an array to a larger shape, as NumPy's broadcasting does; ValueError if it does not fit."""
    return s.broadcast(as_array(array), shape=as_shape(shape, "broadcast_to"))


@counterpart(np.broadcast_arrays)
def broadcast_arrays(*args, subok=False):
    """Broadcast arrays against each other; return a tuple."""
    xs = [as_array(x) for x in args]
    target = np.broadcast_shapes(*[x.shape for x in xs])
    return tuple([x if x.shape == target else s.broadcast(x, shape=target) for x in xs])


# ------------------------------------------------------------------------------------------- flip, roll, repeat


@counterpart(np.flip)
def flip(m, axis=None):
    """Reverse the order of elements along axes; all of them if None."""
    x = as_array(m)
    return s.reverse(
        x, axes=tuple(range(x.ndim)) if axis is None else tuple(sorted(normalize_axis_tuple(axis, x.ndim)))
    )


@counterpart(np.fliplr)
def fliplr(m):
    """Reverse the order along axis 1."""
    x = as_array(m)
    if x.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return s.reverse(x, axes=(1,))


@counterpart(np.flipud)
def flipud(m):
    """Reverse the order along axis 0."""
    x = as_array(m)
    if x.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return s.reverse(x, axes=(0,))


@counterpart(np.rot90)
def rot90(m, k=1, axes=(0, 1)):
    """Rotate by k quarter turns in the plane of two axes, from the first towards the second."""
    x = as_array(m)
    first, second = [one_axis(i, x.ndim, "axes") for i in axes]
    if first == second:
        raise ValueError("Axes must be different.")
    k %= 4
    if k == 0:
        return x
    if k == 2:
        return flip(x, (first, second))
    return swapaxes(flip(x, second), first, second) if k == 1 else flip(swapaxes(x, first, second), second)


@counterpart(np.roll)
def roll(a, shift, axis=None):
    """Move elements along axes by a shift, an int or one for each axis; those beyond the end come in at the start."""
    x = as_array(a)
    if axis is None:
        return s.reshape(roll(s.reshape(x, shape=(x.size,)), shift, 0), shape=x.shape)
    shifts, axes = np.broadcast_arrays(shift, np.asarray(axis))
    for k, axis in zip(shifts.ravel().tolist(), axes.ravel().tolist()):
        axis = one_axis(axis, x.ndim)
        n = x.shape[axis]
        if n and k % n:
            cut = n - k % n
            x = s.concatenate(_span(x, axis, cut, n), _span(x, axis, 0, cut), axis=axis)
    return x


def _span(x, axis, start, stop):
    """Return the elements from start to stop along an axis."""
    return s.slice(x, index=tuple([(start, stop, 1) if i == axis else (0, n, 1) for i, n in enumerate(x.shape)]))


@stands_for(np.repeat)
def repeat(a, repeats, axis=None, *, total_repeat_length=None):
    """Repeat elements along an axis, or of the flattened array.

    Args:
        a: array.
        repeats: how often; an int, or an array with one for each element along the axis.
        axis: the axis; None for the flattened array.
        total_repeat_length: length of the result, to be given if `repeats` is not known under `jit`; what is too much
            is cut off, what is missing is filled with the last element.

    Raises:
        TypeError: `repeats` is traced by jit or vmap and no total length is given.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.repeat([1, 2], [2, 1])
        array([1, 1, 2])
    """
    if state.interpreter is None and total_repeat_length is None:
        return np.repeat(a, repeats, axis)
    x = as_array(a)
    if axis is None:
        x, axis = s.reshape(x, shape=(x.size,)), 0
    axis = one_axis(axis, x.ndim)
    if total_repeat_length is None:
        counts = np.asarray(
            [operator.index(k) for k in repeats] if isinstance(repeats, (list, tuple)) else _plain(repeats)
        )
        index = np.repeat(np.arange(x.shape[axis]), counts)
    else:
        counts = s.broadcast(as_array(repeats), shape=(x.shape[axis],))
        ends = counts.cumsum(axis=0)
        reached = e.ge(np.arange(total_repeat_length)[:, None], ends)
        index = e.min(cast(reached, np.int64).sum(axis=1), x.shape[axis] - 1)
    return take_axis(x, index, axis)


def _plain(repeats):
    return operator.index(repeats) if isinstance(repeats, Tracer) and not repeats.shape else repeats


def take_axis(x, index, axis):
    """Return the elements of an array at an integer index array along an axis; B of the index takes the axis' place."""
    index = as_array(index)
    out = ix.gather(x, s.reshape(index, shape=(1, *index.shape)), axes=(axis,))
    if not axis:
        return out
    order = [*range(index.ndim, index.ndim + axis), *range(index.ndim), *range(index.ndim + axis, out.ndim)]
    return s.transpose(out, perm=tuple(order))


@counterpart(np.tile)
def tile(A, reps):
    """Lay copies of an array side by side, `reps` of them along each axis."""
    x = as_array(A)
    reps = as_shape(reps, "tile")
    reps = (1,) * (x.ndim - len(reps)) + reps
    lengths = (1,) * (len(reps) - x.ndim) + x.shape
    spread = s.reshape(x, shape=tuple([m for n in lengths for m in (1, n)]))
    spread = s.broadcast(spread, shape=tuple([m for k, n in zip(reps, lengths) for m in (k, n)]))
    return s.reshape(spread, shape=tuple([k * n for k, n in zip(reps, lengths)]))


@counterpart(np.resize)
def resize(a, new_shape):
    """Return an array of a new shape, filled with repeated copies of the elements."""
    x = as_array(a)
    new = as_shape(new_shape, "resize")
    if any(n < 0 for n in new):
        raise ValueError("all elements of `new_shape` must be non-negative")
    count = math.prod(new)
    if not x.size or not count:
        return np.zeros(new, x.dtype)
    return s.reshape(take_axis(s.reshape(x, shape=(x.size,)), np.arange(count) % x.size, 0), shape=new)


# ------------------------------------------------------------------------------------------- diagonals, triangles


@counterpart(np.diagonal)
def diagonal(a, offset=0, axis1=0, axis2=1):
    """Return diagonals of the plane of two axes, as a last axis; `offset` counts from the main one to the right."""
    x = as_array(a)
    if x.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = one_axis(axis1, x.ndim, "axis1"), one_axis(axis2, x.ndim, "axis2")
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    rest = [i for i in range(x.ndim) if i not in (first, second)]
    x = s.transpose(x, perm=(first, second, *rest))
    rows = np.arange(max(0, min(x.shape[0] + min(offset, 0), x.shape[1] - max(offset, 0)))) - min(offset, 0)
    out = ix.gather(x, np.stack([rows, rows + offset]), axes=(0, 1))
    return moved(out, 0, out.ndim - 1)


@counterpart(np.diag)
def diag(v, k=0):
    """Return a diagonal of a matrix, or the matrix that has a vector on its k-th diagonal."""
    x = as_array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = x.shape[0] + abs(k)
    rows = np.arange(x.shape[0]) + max(-k, 0)
    return ix.scatter_add(np.zeros((n, n), x.dtype), np.stack([rows, rows + k]), x, axes=(0, 1))


@counterpart(np.diagflat)
def diagflat(v, k=0):
    """Return the matrix that has the flattened array on its k-th diagonal."""
    return diag(ravel(v), k)


@counterpart(np.tril)
def tril(m, k=0):
    """Keep elements on and below the k-th diagonal of the last two axes; the others become 0."""
    x = as_array(m)
    return e.select(np.tri(*_square(x), k=k, dtype=bool), x, np.zeros((), x.dtype))


@counterpart(np.triu)
def triu(m, k=0):
    """Keep elements on and above the k-th diagonal of the last two axes; the others become 0."""
    x = as_array(m)
    return e.select(np.tri(*_square(x), k=k - 1, dtype=bool), np.zeros((), x.dtype), x)


def _square(x):
    """Return the lengths of the last two axes; a vector counts as the rows of a square matrix, as NumPy has it."""
    return x.shape[-2:] if x.ndim > 1 else (x.shape[-1], x.shape[-1])


@stands_for(np.lib.stride_tricks.sliding_window_view)
def sliding_windows(x, window_shape, axis=None, *, subok=False, writeable=False):
    """Return the windows that slide along axes, as NumPy's `sliding_window_view` gives them; the result is no view."""
    x = as_array(x)
    widths = window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)
    axes = range(x.ndim) if axis is None else normalize_axis_tuple(axis, x.ndim, allow_duplicate=True)
    if len(widths) != len(axes):
        raise ValueError(f"sliding_window_view: got {len(widths)} window sizes for {len(axes)} axes")
    for width, k in zip(widths, axes):
        n = x.shape[k]
        if not 0 <= width <= n:
            raise ValueError(f"sliding_window_view: a window of {width} does not fit axis {k} of size {n}")
        x = x[(slice(None),) * k + (np.arange(n - width + 1)[:, None] + np.arange(width),)]
        x = moved(x, k + 1, x.ndim - 1)
    return x

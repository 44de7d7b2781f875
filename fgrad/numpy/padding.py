"""Padding in all of NumPy's modes: constants by the primitive, copies by indexing, the rest by concatenation."""

from __future__ import annotations

import operator

import numpy as np

from fgrad.core import Tracer
from fgrad.numpy.arguments import as_array, cast, counterpart, known, one_axis
from fgrad.numpy.indexing import unknown_values
from fgrad.numpy.shaping import take_axis
from fgrad.ops import reduce as r
from fgrad.ops import shape as s

__all__ = ["pad"]

_OPTIONS = {
    "constant": {"constant_values"},
    "empty": set(),
    "edge": set(),
    "wrap": set(),
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "linear_ramp": {"end_values"},
    "maximum": {"stat_length"},
    "minimum": {"stat_length"},
    "mean": {"stat_length"},
}


@counterpart(np.pad)
def pad(array, pad_width, mode="constant", **kwargs):
    """Add elements before and after an array along each axis.

    Args:
        array: array.
        pad_width: an int, a pair (before, after), a pair for each axis, or a dict from axis to pair.
        mode: "constant" (with `constant_values`), "edge", "wrap", "reflect", "symmetric", "linear_ramp" (with
            `end_values`), "maximum", "minimum", "mean" (with `stat_length`), or "empty", here zeros.

    Raises:
        ValueError: the mode is unknown, or an option does not go with it.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.pad([1.0, 2.0], (1, 2), constant_values=9.0)
        array([9., 1., 2., 9., 9.])
    """
    x = as_array(array)
    if mode not in _OPTIONS:
        raise ValueError(f"mode '{mode}' is not supported")
    wrong = sorted(set(kwargs) - _OPTIONS[mode])
    if wrong:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {wrong}")
    if kwargs.get("reflect_type", "even") != "even":
        raise ValueError("pad: reflect_type='odd' is not supported under a transform")
    for axis, (before, after) in enumerate(_widths(pad_width, x.ndim)):
        if before < 0 or after < 0:
            raise ValueError("index can't contain negative values")
        if before or after:
            x = _pad_axis(
                x,
                axis,
                before,
                after,
                mode,
                {k: _sides(v, x.ndim)[axis] for k, v in kwargs.items() if k != "reflect_type"},
            )
    return x


def _widths(pad_width, ndim):
    if isinstance(pad_width, dict):
        widths = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            widths[one_axis(axis, ndim)] = (width, width) if isinstance(width, int) else tuple(width)
        return widths
    pairs = np.broadcast_to(np.asarray(pad_width), (ndim, 2))
    return [(operator.index(a), operator.index(b)) for a, b in pairs.tolist()]


def _sides(value, ndim):
    """Return an option as a pair (before, after) for every axis: NumPy broadcasts it to shape (ndim, 2)."""
    if value is None:
        return [(None, None)] * ndim
    if isinstance(value, (Tracer, tuple, list)):
        value = s.broadcast(as_array(value), shape=(ndim, 2))
        return [(value[i, 0], value[i, 1]) for i in range(ndim)]
    pairs = np.broadcast_to(np.asarray(value), (ndim, 2))
    return [(pairs[i, 0], pairs[i, 1]) for i in range(ndim)]


def _pad_axis(x, axis, before, after, mode, options):
    if mode in ("constant", "empty"):
        values = options.get("constant_values", (0, 0))
        for width, value in zip(((before, 0, 0), (0, after, 0)), values):
            widths = tuple([width if i == axis else (0, 0, 0) for i in range(x.ndim)])
            x = s.pad(x, cast(as_array(value), x.dtype), widths=widths)
        return x
    if not x.shape[axis]:
        raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    if mode in ("edge", "wrap", "reflect", "symmetric"):
        return take_axis(x, np.pad(np.arange(x.shape[axis]), (before, after), mode), axis)
    sides = []
    for side, width, option in zip((0, 1), (before, after), next(iter(options.values()), (None, None))):
        sides.append(
            _ramp(x, axis, side, width, option) if mode == "linear_ramp" else _level(x, axis, side, width, mode, option)
        )
    return s.concatenate(sides[0], x, sides[1], axis=axis)


def _ends(x, axis, side, count):
    """Return the first (side 0) or last elements along an axis."""
    n = x.shape[axis]
    start, stop = (0, count) if side == 0 else (n - count, n)
    return s.slice(x, index=tuple([(start, stop, 1) if i == axis else (0, m, 1) for i, m in enumerate(x.shape)]))


def _ramp(x, axis, side, width, end):
    """Return elements that go in equal steps from the edge, not included, to `end`."""
    edge = _ends(x, axis, side, 1)
    weights = np.arange(width) / max(width, 1)
    weights = weights if side == 0 else weights[::-1]
    weights = weights.reshape([width if i == axis else 1 for i in range(x.ndim)])
    end = as_array(0 if end is None else end)
    return cast(end + (edge - end) * weights, x.dtype)


def _level(x, axis, side, width, mode, length):
    """Return copies of the extreme or mean of the elements next to the edge, all of them if no length is given."""
    n = x.shape[axis]
    if length is not None and known(length) is None:
        raise unknown_values("pad", "stat_length", length)
    part = _ends(x, axis, side, n if length is None else min(n, int(known(length))))
    if mode == "mean":
        level = part.mean(axis=axis, keepdims=True)
        level = level.round() if x.dtype.kind in "biu" else level
    else:
        prim = r.reduce_max if mode == "maximum" else r.reduce_min
        level = prim(part, axes=(axis,))
        level = s.reshape(level, shape=tuple([1 if i == axis else m for i, m in enumerate(x.shape)]))
    return s.broadcast(cast(level, x.dtype), shape=tuple([width if i == axis else m for i, m in enumerate(x.shape)]))

"""Sampling of arrays between their places, under SciPy's names."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fgrad.numpy import at
from fgrad.numpy.arguments import arrays, as_array, cast, inexact
from fgrad.ops import elementwise as e

__all__ = ["map_coordinates"]

_MODES = ("constant", "grid-constant", "nearest", "mirror", "reflect", "grid-mirror", "grid-wrap")


def map_coordinates(input: Any, coordinates: Any, order: int = 1, mode: str = "constant", cval: float = 0.0) -> Any:
    """Return an array's values at coordinates between its places.

    It is differentiated by the array, and by the coordinates where `order` is 1: within the cells, where it is smooth.

    Args:
        input: array of d dimensions.
        coordinates: (d, ...), or a sequence of d arrays.
        order: 0 for the nearest value, 1 to interpolate linearly. (SciPy's default is 3.)
        mode: what lies beyond the edges: "constant" (`cval`), "nearest", "mirror" (about the outermost values),
            "reflect" (about the edges) or "grid-wrap".
        cval: the constant.

    Raises:
        NotImplementedError: the order is above 1, or the mode is another of SciPy's.
        ValueError: there are not as many coordinates as dimensions.

    Example:
        >>> from fgrad.scipy.ndimage import map_coordinates
        >>> map_coordinates([[0.0, 1.0], [2.0, 3.0]], [[0.5, 1.0], [0.5, 0.25]])
        array([1.5 , 2.25])
    """
    x, points = as_array(input), [inexact(c) for c in arrays(coordinates)]
    if len(points) != x.ndim:
        raise ValueError(f"map_coordinates: coordinates must be {x.ndim} arrays, one per dimension, got {len(points)}")
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates: order must be 0 or 1, got {order!r}")
    if mode not in _MODES:
        raise NotImplementedError(f"map_coordinates: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    corners = [_corners(point, order) for point in points]
    x = x if order == 0 else inexact(x)
    out = 0
    for chosen in itertools.product(*corners):
        out = out + _weighed(x, chosen, mode, cval)
    if mode == "constant":  # unlike "grid-constant", nothing is blended across the edge
        for point, n in zip(points, x.shape, strict=True):
            inside = e.logical_and(e.ge(point, 0), e.le(point, n - 1))
            out = e.select(inside, out, np.asarray(cval, x.dtype))
    return cast(as_array(out), x.dtype)


def _corners(point: Any, order: int) -> list[tuple[Any, Any]]:
    """Return the places around a coordinate, as floats, and their weights."""
    if order == 0:
        return [(e.floor(point + 0.5), None)]
    low = e.floor(point)
    share = point - low
    return [(low, 1 - share), (low + 1, share)]


def _weighed(x: Any, chosen: Any, mode: str, cval: float) -> Any:
    """Return the values at one corner of the cells, times their weights."""
    index, outside, weight = [], None, None
    for (place, share), n in zip(chosen, x.shape, strict=True):
        place, beyond = _within(place, n, mode)
        index.append(cast(place, np.intp))
        outside = beyond if outside is None else e.logical_or(outside, beyond) if beyond is not None else outside
        weight = share if weight is None else weight * share
    values = at(x)[tuple(index)].get()
    if outside is not None:
        values = e.select(outside, np.asarray(cval, x.dtype), values)
    return values if weight is None else values * weight


def _within(place: Any, n: int, mode: str) -> tuple[Any, Any]:
    """Return places brought into the axis, and where they were outside if that matters."""
    if mode in ("constant", "grid-constant"):
        beyond = e.logical_or(e.lt(place, 0), e.gt(place, n - 1))
        return e.select(beyond, 0, place), beyond
    if mode == "nearest":
        return e.max(0, e.min(place, n - 1)), None
    if mode == "grid-wrap":
        return e.rem(place, n), None
    period, shift = (2 * n - 2, 0) if mode == "mirror" else (2 * n, 0.5)
    if not period:
        return place * 0, None
    turned = e.rem(place + shift, period)  # of which the second half runs back
    return e.min(turned, period - turned) - shift, None

"""Interpolation of samples on a grid, under SciPy's names. Along one axis `fgrad.numpy.interp` does it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fgrad.numpy import at, broadcast_arrays, moveaxis, searchsorted, stack, take
from fgrad.numpy.arguments import as_array, cast, inexact, known
from fgrad.ops import elementwise as e

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """Interpolates samples on a grid of any number of dimensions.

    It is differentiated by the samples, and where `method` is "linear" by the points at which it is asked.

    Args:
        points: the places along each axis, ascending, (m1,), …, (mk,); known numbers.
        values: samples, (m1, …, mk, ...).
        method: "linear" or "nearest".
        bounds_error: raise ValueError for a point beyond the grid. Under `jit` and `vmap`, where points are not known,
            such a point gives NaN.
        fill_value: what points beyond the grid give if there is no error; None to extrapolate.

    Raises:
        ValueError: the grid is not ascending or does not fit the samples.
        NotImplementedError: the method is another of SciPy's.

    Example:
        >>> from fgrad.scipy.interpolate import RegularGridInterpolator
        >>> plane = RegularGridInterpolator(([0.0, 1.0], [0.0, 2.0]), [[0.0, 2.0], [10.0, 12.0]])
        >>> plane([[0.5, 1.0], [0.1, 0.0]])
        array([6., 1.])
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: float | None = np.nan,
    ):
        self.grid = tuple([np.asarray(p, np.float64) for p in points])
        self.values = inexact(as_array(values))
        self.method = _checked(method)
        self.bounds_error, self.fill_value = bounds_error, fill_value
        for k, places in enumerate(self.grid):
            if places.ndim != 1 or places.size < 2 or not (np.diff(places) > 0).all():
                raise ValueError(f"The points in dimension {k} must be strictly ascending, at least two")
        sizes = tuple([places.size for places in self.grid])
        if self.values.shape[: len(sizes)] != sizes:
            raise ValueError(f"the samples must be of shape {sizes} or more, got {self.values.shape}")

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """Return the interpolated values at points.

        Args:
            xi: points (..., k), or a tuple of k arrays of their coordinates.
            method: another one than that of the grid.

        Raises:
            ValueError: points are not of k coordinates, or lie beyond the grid.
        """
        xi = moveaxis(stack(broadcast_arrays(*xi)), 0, -1) if isinstance(xi, tuple) else inexact(as_array(xi))
        if not xi.ndim or xi.shape[-1] != len(self.grid):
            raise ValueError(f"points must have {len(self.grid)} coordinates along the last axis, got shape {xi.shape}")
        columns = [xi[..., k] for k in range(len(self.grid))]
        outside = self._outside(columns)
        corners = [
            _corners(x, g, self.method if method is None else _checked(method)) for x, g in zip(columns, self.grid)
        ]
        rest = (1,) * (self.values.ndim - len(self.grid))
        out = 0
        for chosen in itertools.product(*corners):
            sample = at(self.values)[tuple([place for place, _ in chosen])].get()
            for _, weight in chosen:
                sample = sample * weight.reshape((*weight.shape, *rest))
            out = out + sample
        if self.fill_value is None and not self.bounds_error:
            return out
        fill = np.nan if self.bounds_error else self.fill_value
        return e.select(outside.reshape((*outside.shape, *rest)), np.asarray(fill, out.dtype), out)

    def _outside(self, columns: list[Any]) -> Any:
        """Return which points lie beyond the grid; ValueError if one is known to, and that is an error."""
        outside: Any = False
        for k, (x, places) in enumerate(zip(columns, self.grid)):
            beyond = e.logical_or(e.lt(x, places[0]), e.gt(x, places[-1]))
            values = known(beyond)
            if self.bounds_error and values is not None and values.any():
                raise ValueError(f"One of the requested xi is out of bounds in dimension {k}")
            outside = e.logical_or(outside, beyond)
        return outside


def _checked(method: str) -> str:
    if method not in ("linear", "nearest"):
        raise NotImplementedError(f"RegularGridInterpolator: method must be 'linear' or 'nearest', got {method!r}")
    return method


def _corners(x: Any, places: Any, method: str) -> list[tuple[Any, Any]]:
    """Return the numbers of the grid's places around coordinates, and their weights."""
    low = searchsorted(places[1:-1], x, side="right")
    left, right = take(places, low), take(places, low + 1)
    share = (x - left) / (right - left)
    if method == "nearest":
        return [(low + cast(e.gt(share, 0.5), np.intp), e.select(e.isnan(share), np.nan, 1.0))]
    return [(low, 1 - share), (low + 1, share)]

"""Integrals of sampled functions under SciPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgrad.numpy import concatenate, cumsum, diff, full
from fgrad.numpy import trapezoid as numpys_trapezoid
from fgrad.numpy.arguments import as_array, inexact, moved, one_axis

__all__ = ["cumulative_trapezoid", "simpson", "trapezoid"]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Return the integral along an axis by the trapezoidal rule.

    Args:
        y: samples.
        x: where they were taken, (n,) or of y's shape; None for steps of dx.
        dx: the step.
        axis: the axis.

    Example:
        >>> from fgrad.scipy.integrate import trapezoid
        >>> print(trapezoid([1.0, 2.0, 4.0], dx=0.5))
        2.25
    """
    return numpys_trapezoid(y, x, dx, axis)


def _samples(function: str, y: Any, x: Any, dx: Any, axis: int) -> tuple[Any, Any]:
    """Return samples with their axis last, and the steps between them."""
    y = inexact(as_array(y))
    axis = one_axis(axis, y.ndim)
    y = moved(y, axis, y.ndim - 1)
    if x is None:
        return y, dx * full(y.shape[-1] - 1, 1.0)
    x = inexact(as_array(x))
    if x.ndim > 1:
        x = moved(x, axis, x.ndim - 1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"{function}: x must have as many points as y along the axis, got {x.shape} and {y.shape}")
    return y, diff(x)


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """Return the integrals up to each sample by the trapezoidal rule, from the second one on.

    Args:
        y, x, dx, axis: as `trapezoid` takes them.
        initial: 0 to begin with the integral up to the first sample; None to leave it out.

    Raises:
        ValueError: x does not fit y, or initial is neither 0 nor None.

    Example:
        >>> from fgrad.scipy.integrate import cumulative_trapezoid
        >>> print(cumulative_trapezoid([1.0, 2.0, 4.0], initial=0))
        [0.  1.5 4.5]
    """
    if initial is not None and initial != 0:
        raise ValueError(f"cumulative_trapezoid: initial must be None or 0, got {initial!r}")
    samples, steps = _samples("cumulative_trapezoid", y, x, dx, axis)
    out = cumsum(steps * (samples[..., 1:] + samples[..., :-1]) / 2, axis=-1)
    if initial is not None:
        out = concatenate([np.zeros((*out.shape[:-1], 1), out.dtype), out], axis=-1)
    return moved(out, out.ndim - 1, one_axis(axis, out.ndim))


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Return the integral along an axis by Simpson's rule for any steps.

    Where the number of intervals is odd, the last one is integrated by the parabola through the last three samples.

    Args:
        y, x, dx, axis: as `trapezoid` takes them.

    Raises:
        ValueError: x does not fit y.

    Example:
        >>> from fgrad.scipy.integrate import simpson
        >>> print(simpson([0.0, 1.0, 4.0, 9.0]))
        9.0
    """
    samples, steps = _samples("simpson", y, x, dx, axis)
    intervals = samples.shape[-1] - 1
    if intervals < 2:
        return numpys_trapezoid(y, x, dx, axis)
    even = intervals - intervals % 2
    out = _pairs(samples[..., : even + 1], steps[..., :even])
    return out + _last(samples[..., -3:], steps[..., -2:]) if intervals % 2 else out


def _pairs(y: Any, steps: Any) -> Any:
    """Return the sum over pairs of intervals of the integrals of their parabolas."""
    first, second = steps[..., ::2], steps[..., 1::2]
    whole, ratio = first + second, first / second
    left, middle, right = y[..., :-1:2], y[..., 1::2], y[..., 2::2]
    product = whole * whole / (first * second)
    return (whole / 6 * (left * (2 - 1 / ratio) + middle * product + right * (2 - ratio))).sum(axis=-1)


def _last(y: Any, steps: Any) -> Any:
    """Return the integral over the last interval (Cartwright, 2017, equation 8)."""
    before, last = steps[..., 0], steps[..., 1]
    alpha = (2 * last * last + 3 * before * last) / (6 * (before + last))
    beta = (last * last + 3 * before * last) / (6 * before)
    eta = last**3 / (6 * before * (before + last))
    return alpha * y[..., 2] + beta * y[..., 1] - eta * y[..., 0]

"""Derivatives of the incomplete gamma and beta functions by their parameters, computed by NumPy.

They have no closed form. What is here knows arrays of floats alone; `fgrad.scipy.values` makes primitives of it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fgrad.ops.special import digamma, lgamma

_STEPS = 20_000  # of the continued fraction, which takes about the square root of its parameters
_SMALLEST = 1e-300


def _in_double(slope: Any, inside: Any, stand_in: tuple[float, ...], xs: tuple[Any, ...]) -> Any:
    """Compute a slope in double precision where `inside` holds, at `stand_in` elsewhere, and cast as ufuncs do."""
    dtype = np.result_type(np.result_type(*xs), np.float16)
    xs = np.broadcast_arrays(*[np.asarray(x, np.float64) for x in xs])
    with np.errstate(all="ignore"):
        within, at_edge = inside(*xs)
        out = slope(*[np.where(within, x, other) for x, other in zip(xs, stand_in)])
        return np.where(within, out, np.where(at_edge, 0, np.nan)).astype(dtype)


# ------------------------------------------------------------------------------------------- incomplete gamma


def gammainc_slope(x: Any, y: Any) -> Any:
    """Return the derivative of the regularised lower incomplete gamma function by its parameter x, at y."""

    def inside(x: Any, y: Any) -> Any:
        return (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y), (x > 0) & (y >= 0)

    return _in_double(_series_slope, inside, (1.0, 1.0), (x, y))


def _series_slope(x, y):
    """Return the derivative by x of the regularised lower incomplete gamma function of parameter x at y.

    Its series Σ yˢ exp(-y) / Γ(s + 1) over s = x, x + 1, … (DLMF 8.7.1) is differentiated term by term, from the
    largest term in both directions. As many terms count as a Poisson distribution of mean y spreads over. Terms of
    either sign are added: the error is absolute, about 1e-15.
    """
    logy = np.log(y)
    peak = np.maximum(np.floor(y - x), 0)
    start = x + peak
    top = np.exp(start * logy - y - lgamma.impl(start + 1))
    slope = logy - digamma.impl(start + 1)
    out = top * slope
    reach = int(10 * math.sqrt(np.max(y, where=np.isfinite(y), initial=0))) + 50
    s, term, rate = start, top, slope
    for _ in range(reach):
        s = s + 1
        term, rate = term * y / s, rate - 1 / s
        out = out + term * rate
    s, term, rate = start, top, slope
    for k in range(min(reach, int(np.max(peak, where=np.isfinite(peak), initial=0)))):
        term, rate = np.where(k < peak, term * s / y, 0), rate + 1 / s
        s = s - 1
        out = out + np.where(term == 0, 0, term * rate)
    return out


# -------------------------------------------------------------------------------------------- incomplete beta


def betainc_slope(x: Any, y: Any, z: Any) -> Any:
    """Return the derivative of the regularised incomplete beta function by its first parameter x, at z."""

    def inside(x: Any, y: Any, z: Any) -> Any:
        proper = (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y)
        return proper & (z > 0) & (z < 1), proper & ((z == 0) | (z == 1))

    return _in_double(_fraction_slope, inside, (1.0, 1.0, 0.5), (x, y, z))


def _fraction_slope(a: Any, b: Any, z: Any) -> Any:
    """Return the slope by a continued fraction, at z or mirrored at 1 - z, whichever converges fast."""
    near = z < (a + 1) / (a + b + 2)
    p, q, w = np.where(near, a, b), np.where(near, b, a), np.where(near, z, 1 - z)
    fraction, by_p, by_q = _beta_fraction(p, q, w)
    size = np.exp(p * np.log(w) + q * np.log1p(-w) - np.log(p) + lgamma.impl(p + q) - lgamma.impl(p) - lgamma.impl(q))
    both = digamma.impl(p + q)
    first = size * (fraction * (np.log(w) - 1 / p + both - digamma.impl(p)) + by_p)
    second = size * (fraction * (np.log1p(-w) + both - digamma.impl(q)) + by_q)
    return np.where(near, first, -second)


def _beta_fraction(p: Any, q: Any, w: Any) -> tuple[Any, Any, Any]:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), and its derivatives by p and q.

    Numerators and denominators follow A_n = A_{n-1} + d_n A_{n-2}, and their derivatives the derived recurrence (as in
    Boik and Robinson-Cox, 1998). They are scaled by the denominator, which keeps them finite.
    """
    zero, one = np.zeros_like(w), np.ones_like(w)
    before, last = np.array([one, zero, zero, zero, zero, zero]), np.array([zero, zero, zero, one, zero, zero])
    value = last[:3]
    for n in range(1, _STEPS):
        d = _coefficient(n, p, q, w)
        step = last.copy()
        for k in (0, 3):
            step[k] += d[0] * before[k]
            step[k + 1] += d[0] * before[k + 1] + d[1] * before[k]
            step[k + 2] += d[0] * before[k + 2] + d[2] * before[k]
        scale = np.where(np.abs(step[3]) > _SMALLEST, step[3], 1)
        before, last = last / scale, step / scale
        now = np.array([last[0], last[1] - last[0] * last[4], last[2] - last[0] * last[5]])
        moving = np.abs(now - value) > 1e-15 * np.maximum(np.abs(now), np.abs(now[0]))
        if n > 4 and not moving.any():
            break
        value = now
    return tuple(np.where(moving.any(axis=0), np.nan, now))


def _coefficient(n: int, p: Any, q: Any, w: Any) -> tuple[Any, Any, Any]:
    """Return the n-th coefficient of the continued fraction, and its derivatives by p and q; the first is 1."""
    if n == 1:
        return np.ones_like(w), 0.0, 0.0
    m, odd = divmod(n - 1, 2)
    if odd:
        d = -w * (p + m) * (p + q + m) / ((p + 2 * m) * (p + 2 * m + 1))
        return d, d * (1 / (p + m) + 1 / (p + q + m) - 1 / (p + 2 * m) - 1 / (p + 2 * m + 1)), d / (p + q + m)
    rate = w * m / ((p + 2 * m - 1) * (p + 2 * m))
    d = rate * (q - m)
    return d, -d * (1 / (p + 2 * m - 1) + 1 / (p + 2 * m)), rate

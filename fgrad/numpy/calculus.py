"""Differences, integrals, interpolation, convolution and polynomials on sampled data."""

from __future__ import annotations

import math
import operator

import numpy as np

from fgrad.numpy.arguments import as_array, cast, counterpart, inexact, known, one_axis, operand, promoted, refuse
from fgrad.numpy.indexing import unknown_mask
from fgrad.numpy.shaping import take_axis
from fgrad.numpy.sorting import searchsorted
from fgrad.ops import contract as c
from fgrad.ops import elementwise as e
from fgrad.ops import shape as s
from fgrad.ops import special as sp

__all__ = """
    convolve correlate diff ediff1d gradient i0 interp poly polyadd polyder polydiv polyfit polyint polymul polysub
    polyval roots sinc trapezoid unwrap
""".split()

# -------------------------------------------------------------------------------------- differences, integrals


@counterpart(np.diff)
def diff(a, n=1, axis=-1, prepend=None, append=None):
    """Compute the n-th differences of neighbours along an axis, after values to put before and behind if given.

    Raises:
        ValueError: n is negative, or the array has no axes.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.diff([1, 4, 9])
        array([3, 5])
    """
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    x = as_array(a)
    if not x.ndim:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = one_axis(axis, x.ndim)
    ends = [None if v is None else _edge(v, x, axis) for v in (prepend, append)]
    parts = [part for part in (ends[0], x, ends[1]) if part is not None]
    x = s.concatenate(*promoted(*parts), axis=axis) if len(parts) > 1 else x
    before = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = e.ne(later, earlier) if x.dtype.kind == "b" else e.sub(later, earlier)
    return x


def _edge(v, x, axis):
    v = as_array(v)
    return v if v.ndim else s.broadcast(v, shape=tuple([1 if i == axis else n for i, n in enumerate(x.shape)]))


@counterpart(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    """Compute differences of neighbours in the flattened array, with values put before and behind if given."""
    x = as_array(ary).ravel()
    parts = [x[1:] - x[:-1]]
    if to_begin is not None:
        parts.insert(0, cast(as_array(to_begin), x.dtype).ravel())
    if to_end is not None:
        parts.append(cast(as_array(to_end), x.dtype).ravel())
    return s.concatenate(*parts, axis=0) if len(parts) > 1 else parts[0]


@counterpart(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    """Compute slopes by central differences, one-sided at the ends, along each axis or those in `axis`.

    Args:
        f: array of samples.
        *varargs: the spacing: one number for all axes, or for each a number or a vector of coordinates.
        axis: an axis or a tuple of axes; None for all, which gives a tuple if there are several.
        edge_order: 1 or 2, the order of accuracy at the ends.

    Raises:
        ValueError: there are too few samples, or coordinates do not fit.
    """
    x = inexact(as_array(f))
    axes = tuple(range(x.ndim)) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    axes = [one_axis(i, x.ndim) for i in axes]
    spacing = list(varargs) or [1.0]
    if len(spacing) == 1 and not np.ndim(spacing[0]):
        spacing = spacing * len(axes)
    if len(spacing) != len(axes):
        raise TypeError("invalid number of arguments")
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    out = tuple([_slope(x, h, i, edge_order) for i, h in zip(axes, spacing)])
    return out[0] if len(out) == 1 else out


def _slope(x, h, axis, edge_order):
    n = x.shape[axis]
    if n < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
            "required."
        )
    h = as_array(h)
    if h.ndim and h.shape != (n,):
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    steps = h[1:] - h[:-1] if h.ndim else s.broadcast(h, shape=(n - 1,))
    steps = s.reshape(steps, shape=tuple([n - 1 if i == axis else 1 for i in range(x.ndim)]))
    before = (slice(None),) * axis

    def at(values, start, stop=None):
        return values[(*before, slice(start, stop))]

    left, right = at(steps, 0, n - 2), at(steps, 1)
    inner = (
        at(x, 0, n - 2) * (-right / (left * (left + right)))
        + at(x, 1, n - 1) * ((right - left) / (left * right))
        + at(x, 2) * (left / (right * (left + right)))
    )
    if edge_order == 1:
        first = (at(x, 1, 2) - at(x, 0, 1)) / at(steps, 0, 1)
        last = (at(x, n - 1) - at(x, n - 2, n - 1)) / at(steps, n - 2)
    else:
        first = _end_slope([at(x, k, k + 1) for k in (0, 1, 2)], at(steps, 0, 1), at(steps, 1, 2))
        last = -_end_slope([at(x, n - k, n - k + 1) for k in (1, 2, 3)], at(steps, n - 2), at(steps, n - 3, n - 2))
    return s.concatenate(*promoted(first, inner, last), axis=axis)


def _end_slope(values, near, far):
    """Return the slope at the first of three samples, by the parabola through them."""
    return (
        values[0] * (-(2.0 * near + far) / (near * (near + far)))
        + values[1] * ((near + far) / (near * far))
        - values[2] * (near / (far * (near + far)))
    )


@counterpart(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Integrate samples along an axis by the trapezoidal rule, over coordinates `x` or steps `dx`."""
    y = as_array(y)
    axis = one_axis(axis, y.ndim)
    if x is None:
        steps = operand(dx)
    else:
        x = as_array(x)
        steps = diff(x, axis=0 if x.ndim == 1 else axis)
        if x.ndim == 1:
            steps = s.reshape(steps, shape=tuple([steps.size if i == axis else 1 for i in range(y.ndim)]))
    before = (slice(None),) * axis
    return (steps * (y[(*before, slice(1, None))] + y[(*before, slice(None, -1))]) / 2.0).sum(axis=axis)


@counterpart(np.unwrap)
def unwrap(p, discont=None, axis=-1, *, period=2 * math.pi):
    """Add multiples of a period so that neighbours along an axis differ by at most half of it (or `discont`)."""
    x = as_array(p)
    axis = one_axis(axis, x.ndim)
    d = diff(x, axis=axis)
    discont = period / 2 if discont is None else discont
    whole = np.result_type(x.dtype, np.asarray(period).dtype).kind in "iu"
    high, odd = divmod(period, 2) if whole else (period / 2, 1)
    x = x if whole or x.dtype.kind == "f" else cast(x, np.float64)
    step = e.rem(d + high, period) - high
    if not whole or not odd:
        step = e.select(e.logical_and(e.eq(step, -high), e.gt(d, 0)), high, step)
    shift = e.select(e.lt(e.abs(d), discont), 0, step - d).cumsum(axis=axis)
    before = (slice(None),) * axis
    return s.concatenate(*promoted(x[(*before, slice(0, 1))], x[(*before, slice(1, None))] + shift), axis=axis)


# ----------------------------------------------------------------------------------- interpolation, convolution


@counterpart(np.interp)
def interp(x, xp, fp, left=None, right=None, period=None):
    """Interpolate linearly between samples.

    Args:
        x: array of coordinates to evaluate at.
        xp: ascending vector of the samples' coordinates.
        fp: vector of samples.
        left, right: values beyond the ends; those of the first and last sample if None.
        period: the period of x, if it is cyclic; samples need not ascend then.

    Raises:
        ValueError: the samples are no vectors of equal length, or there are none.

    Example:
        >>> import fgrad.numpy as fnp
        >>> float(fnp.interp(1.5, [1.0, 2.0], [10.0, 20.0]))
        15.0
    """
    x, xp, fp = inexact(as_array(x)), inexact(as_array(xp)), inexact(as_array(fp))
    if xp.ndim != 1 or fp.shape != xp.shape:
        raise ValueError("fp and xp are not of the same length.")
    if not xp.size:
        raise ValueError("array of sample points is empty")
    if period is not None:
        x, xp, fp, left, right = *_unrolled(x, xp, fp, period), None, None
    right_of = e.clamp(searchsorted(xp, x, "right"), 1, max(xp.size - 1, 1))
    if xp.size == 1:
        inner = s.broadcast(fp[0], shape=x.shape)
    else:
        x0, x1 = take_axis(xp, right_of - 1, 0), take_axis(xp, right_of, 0)
        f0, f1 = take_axis(fp, right_of - 1, 0), take_axis(fp, right_of, 0)
        width = e.sub(x1, x0)
        level = e.eq(width, 0)
        inner = e.add(f0, e.mul(e.sub(f1, f0), e.select(level, 0, e.div(e.sub(x, x0), e.select(level, 1, width)))))
    inner = e.select(e.lt(x, xp[0]), fp[0] if left is None else operand(left), inner)
    return e.select(e.gt(x, xp[-1]), fp[-1] if right is None else operand(right), inner)


def _unrolled(x, xp, fp, period):
    """Return coordinates and samples of a cyclic function within one period, with one more sample at each end."""
    if known(as_array(period)) is not None and not known(as_array(period)):
        raise ValueError("period must be a non-zero value")
    period = e.abs(as_array(period))
    x, xp = e.rem(x, period), e.rem(xp, period)
    order = xp.argsort()
    xp, fp = xp[order], fp[order]
    xp = s.concatenate(xp[-1:] - period, xp, xp[:1] + period, axis=0)
    return x, xp, s.concatenate(fp[-1:], fp, fp[:1], axis=0)


def _sliding(x, w, mode, name):
    """Return sums of products of `w` with the windows of `x`, for vectors."""
    before = {"valid": 0, "same": (w.size - 1) - (w.size - 1) // 2, "full": w.size - 1}
    if mode not in before:
        raise ValueError(f"{name}: mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    behind = {"valid": 0, "same": (w.size - 1) // 2, "full": w.size - 1}[mode]
    out = c.conv_general(
        s.reshape(x, shape=(1, 1, x.size)),
        s.reshape(w, shape=(1, 1, w.size)),
        strides=(1,),
        padding=((before[mode], behind),),
        x_dilation=(1,),
        w_dilation=(1,),
        groups=1,
    )
    return s.reshape(out, shape=(out.size,))


def _signals(a, v, name):
    x, w = promoted(as_array(a), as_array(v))
    x, w = [s.reshape(u, shape=(1,)) if not u.ndim else u for u in (x, w)]
    if x.ndim != 1 or w.ndim != 1:
        raise ValueError("object too deep for desired array: " + name + " takes vectors")
    for u, argument in ((x, "a"), (w, "v")):
        if not u.size:
            raise ValueError(f"{argument} cannot be empty")
    return x, w


@counterpart(np.convolve)
def convolve(a, v, mode="full"):
    """Convolve two vectors: "full" at every overlap, "same" as long as the longer one, "valid" where both overlap."""
    x, w = _signals(a, v, "convolve")
    if w.size > x.size:
        x, w = w, x
    return _sliding(x, w[::-1], mode, "convolve")


@counterpart(np.correlate)
def correlate(a, v, mode="valid"):
    """Correlate two vectors, the second conjugated; modes as in `convolve`."""
    x, w = _signals(a, v, "correlate")
    w = w.conj() if w.dtype.kind == "c" else w
    if w.size > x.size:
        return _sliding(w, x, mode, "correlate")[::-1]
    return _sliding(x, w, mode, "correlate")


# -------------------------------------------------------------------------------------------------- polynomials


@counterpart(np.polyval)
def polyval(p, x):
    """Evaluate a polynomial, whose coefficients are given from the highest power down, by Horner's rule."""
    p, x = as_array(p), as_array(x)
    out = np.zeros(x.shape, x.dtype)
    for k in range(p.shape[0]):
        out = e.add(e.mul(out, x), p[k])
    return out


@counterpart(np.polyadd)
def polyadd(a1, a2):
    """Add two polynomials."""
    x, y = _same_degree(a1, a2)
    return e.add(x, y)


@counterpart(np.polysub)
def polysub(a1, a2):
    """Subtract the second polynomial from the first."""
    x, y = _same_degree(a1, a2)
    return e.sub(x, y)


def _same_degree(a, b):
    x, y = np.atleast_1d(as_array(a)), np.atleast_1d(as_array(b))
    n = max(x.size, y.size)
    return [s.pad(u, np.zeros((), u.dtype), widths=((n - u.size, 0, 0),)) for u in (x, y)]


@counterpart(np.polymul)
def polymul(a1, a2):
    """Multiply two polynomials; leading zeros are kept."""
    return convolve(a1, a2)


@counterpart(np.poly)
def poly(seq_of_zeros):
    """Return the coefficients, highest power first, of the polynomial with the given zeros, a vector."""
    zeros = np.atleast_1d(as_array(seq_of_zeros))
    if zeros.ndim != 1:
        raise NotImplementedError("poly: the characteristic polynomial of a matrix has no rule under a transform")
    zeros = inexact(zeros)
    out = np.ones(1, zeros.dtype)
    for k in range(zeros.size):
        out = convolve(out, s.concatenate(np.ones(1, zeros.dtype), -zeros[k : k + 1], axis=0))
    return out


@counterpart(np.polyfit)
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """Fit a polynomial of degree `deg` to samples by least squares; return coefficients, highest power first.

    Args:
        x: vector of coordinates.
        y: vector of samples, or a matrix with a set of them in each column.
        deg: the degree.
        rcond: singular values smaller than this, relative to the greatest, are left out.
        w: vector of weights of the residuals.
        full, cov: refused on traced values.

    Raises:
        TypeError: x is no vector, or y does not go with it.
    """
    refuse("polyfit", full=full or None, cov=cov or None)
    x, y = inexact(as_array(x)), inexact(as_array(y))
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise TypeError("expected a vector x and as many samples y")
    powers = e.pow(s.reshape(x, shape=(x.size, 1)), np.arange(operator.index(deg), -1, -1))
    if w is not None:
        weights = as_array(w)
        powers = e.mul(powers, s.reshape(weights, shape=(weights.size, 1)))
        y = e.mul(y, s.reshape(weights, shape=(weights.size, *(1,) * (y.ndim - 1))))
    scale = e.sqrt(e.square(powers).sum(axis=0))
    rcond = x.size * np.finfo(x.dtype).eps if rcond is None else rcond
    from fgrad.numpy import linalg  # loaded when it is first needed

    found = linalg.lstsq(e.div(powers, scale), y, rcond)[0]
    return e.div(found.T, scale).T


@counterpart(np.roots)
def roots(p):
    """Return the zeros of a polynomial, complex and in no certain order; which coefficients are 0 must be known."""
    p = as_array(p)
    value = known(p)
    if value is None:
        raise unknown_mask("roots", p)
    nonzero = np.flatnonzero(value)
    if not len(nonzero):
        return np.zeros(0)
    first, last = int(nonzero[0]), int(nonzero[-1])
    p = inexact(p[first : last + 1])
    if p.size < 2:
        return np.zeros(len(value) - 1 - last, p.dtype)
    companion = s.concatenate(s.reshape(-p[1:] / p[0], shape=(1, p.size - 1)), np.eye(p.size - 2, p.size - 1), axis=0)
    from fgrad.numpy import linalg  # loaded when it is first needed

    found = linalg.eigvals(companion)
    return s.concatenate(found, np.zeros(len(value) - 1 - last, found.dtype), axis=0)


@counterpart(np.polydiv)
def polydiv(u, v):
    """Divide polynomials; return quotient and remainder. Leading zeros of the remainder are kept."""
    u, v = promoted(*[inexact(np.atleast_1d(as_array(x))) for x in (u, v)])
    m, n = u.size, v.size
    if m < n:
        return np.zeros(1, u.dtype), u
    quotient = []
    for _ in range(m - n + 1):
        factor = u[:1] / v[:1]
        quotient.append(factor)
        u = s.concatenate(u[1:n] - factor * v[1:], u[n:], axis=0)
    return s.concatenate(*quotient, axis=0), u if u.size else np.zeros(1, u.dtype)


@counterpart(np.polyder)
def polyder(p, m=1):
    """Differentiate a polynomial m times."""
    m = operator.index(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = as_array(p)
    for _ in range(m):
        p = p[:-1] * np.arange(p.size - 1, 0, -1)
    return p


@counterpart(np.polyint)
def polyint(p, m=1, k=None):
    """Integrate a polynomial m times, with constants of integration `k` (0)."""
    m = operator.index(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    p = as_array(p)
    constants = as_array([0.0] * m if k is None else k)
    constants = s.broadcast(constants, shape=(m,)) if constants.ndim == 0 or constants.size == 1 else constants
    for i in range(m):
        p = s.concatenate(*promoted(e.div(p, np.arange(p.size, 0, -1)), constants[i : i + 1]), axis=0)
    return p


# ---------------------------------------------------------------------------------------------- along an axis


@counterpart(np.sinc)
def sinc(x):
    """Compute sin(pi x) / (pi x), which is 1 at 0 and smooth there: derivatives are exact to any order."""
    return sp.sinc(inexact(as_array(x)))


@counterpart(np.i0)
def i0(x):
    """Compute the modified Bessel function of the first kind and order 0; on traced values by SciPy.

    Raises:
        TypeError: x is complex.
        ImportError: x is traced and SciPy is not installed.
    """
    from fgrad.scipy.values import i0 as bessel  # beyond NumPy: loaded with SciPy's functions

    return bessel(inexact(as_array(x)))

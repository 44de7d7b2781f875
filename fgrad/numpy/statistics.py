"""Order statistics, covariance, histograms."""

from __future__ import annotations

import numpy as np

from fgrad.numpy.arguments import (
    as_array,
    cast,
    counterpart,
    inexact,
    is_weak,
    known,
    many_axes,
    operand,
    promoted,
    refuse,
)
from fgrad.numpy.reductions import average, mean
from fgrad.numpy.sorting import searchsorted
from fgrad.numpy.updating import at
from fgrad.ops import along
from fgrad.ops import elementwise as e
from fgrad.ops import reduce as r
from fgrad.ops import shape as s
from fgrad.ops import sort as so

__all__ = """
    corrcoef cov histogram histogram2d histogram_bin_edges histogramdd median nanmedian nanpercentile
    nanquantile percentile quantile
""".split()

# --------------------------------------------------------------------------------------------- order statistics


def _lined_up(a, axis):
    """Return an array with the reduced axes merged into a last one, and the shape of the result with axes kept."""
    x = as_array(a)
    axes = many_axes(axis, x.ndim)
    rest = [i for i in range(x.ndim) if i not in axes]
    kept = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
    x = s.transpose(x, perm=(*rest, *axes))
    length = 1
    for i in axes:
        length *= kept[i] if i not in axes else as_array(a).shape[i]
    return s.reshape(x, shape=(*[kept[i] for i in rest], length)), kept


def _quantile(a, q, axis, method, keepdims, skip_nan, name):
    x, kept = _lined_up(a, axis)
    x = inexact(x)
    weak = is_weak(operand(q))
    q = as_array(q)
    q = cast(q, x.real.dtype) if weak else q if q.dtype.kind == "f" else cast(q, np.float64)
    dtype = np.result_type(x.dtype, q.dtype)
    value = known(q)
    if value is not None and not ((value >= 0) & (value <= 1)).all():
        raise ValueError(
            "Quantiles must be in the range [0, 1]"
            if name == "quantile"
            else "Percentiles must be in the range [0, 100]"
        )
    missing = e.isnan(x)
    n = x.shape[-1]
    count = (
        r.reduce_sum(cast(e.logical_not(missing), np.float64), axes=(x.ndim - 1,)) if skip_nan else np.asarray(float(n))
    )
    ordered = so.sort(x, axis=x.ndim - 1)
    flat_q = s.reshape(q, shape=(q.size, *(1,) * (x.ndim - 1)))
    out = _interpolated(ordered, flat_q, count, method)
    bad = e.eq(count, 0) if skip_nan else r.reduce_any(missing, axes=(x.ndim - 1,))
    out = e.select(bad, np.asarray(np.nan, dtype), cast(out, dtype))
    rest = kept if keepdims else x.shape[:-1]
    return s.reshape(out, shape=(*q.shape, *rest))


_PLACES = {
    "inverted_cdf": lambda n, q: e.mul(n, q) - 1,
    "averaged_inverted_cdf": lambda n, q: e.mul(n, q) - 1,
    "closest_observation": lambda n, q: e.mul(n, q) - 1 - 0.5,
    "interpolated_inverted_cdf": lambda n, q: e.mul(n, q) - 1,
    "hazen": lambda n, q: e.mul(n, q) - 0.5,
    "weibull": lambda n, q: e.mul(n + 1, q) - 1,
    "linear": lambda n, q: e.mul(n - 1, q),
    "median_unbiased": lambda n, q: e.mul(n + 1 / 3, q) + 1 / 3 - 1,
    "normal_unbiased": lambda n, q: e.mul(n + 0.25, q) + 0.375 - 1,
    "lower": lambda n, q: e.floor(e.mul(n - 1, q)),
    "higher": lambda n, q: e.ceil(e.mul(n - 1, q)),
    "midpoint": lambda n, q: 0.5 * (e.floor(e.mul(n - 1, q)) + e.ceil(e.mul(n - 1, q))),
    "nearest": lambda n, q: e.mul(n - 1, q),
}
"""Where in n sorted values the quantile q lies, counted from 0: Hyndman and Fan (1996), and NumPy's older names."""


def _interpolated(ordered, q, count, method):
    """Return quantiles of values sorted along the last axis, an axis for them in front."""
    if method not in _PLACES:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {sorted(_PLACES)}")
    place = _PLACES[method](count, q)
    floor = e.floor(place)
    t = place - floor
    if method == "inverted_cdf":
        t = e.select(e.gt(t, 0), 1.0, 0.0)
    elif method == "averaged_inverted_cdf":
        t = e.select(e.gt(t, 0), 1.0, 0.5)
    elif method == "closest_observation":
        t = e.select(e.logical_and(e.eq(t, 0), e.eq(e.rem(floor, 2), 1)), 0.0, 1.0)
    elif method == "nearest":
        t = e.select(e.logical_or(e.gt(t, 0.5), e.logical_and(e.eq(t, 0.5), e.eq(e.rem(floor, 2), 1))), 1.0, 0.0)
    last = e.max(count - 1, 0)
    t = e.select(e.logical_or(e.lt(floor, 0), e.ge(floor, last)), 0.0, t)
    low = e.clamp(floor, 0.0, last)
    high = e.min(low + 1, last)
    below, above = [_at(ordered, cast(i, np.intp)) for i in (low, high)]
    t = cast(t, q.dtype)
    same = e.eq(below, above)  # infinite neighbours have no difference
    step = e.select(same, 0, e.sub(above, e.select(same, 0, below)))
    return e.select(e.ge(t, 0.5), above - e.mul(step, 1 - t), below + e.mul(step, t))


def _at(ordered, i):
    """Return the elements at indices (Q, ...) along the last axis, as (Q, ...)."""
    count = i.shape[0]
    i = s.broadcast(i, shape=(count, *ordered.shape[:-1]))
    i = s.transpose(i, perm=(*range(1, i.ndim), 0))
    out = along.take_along(ordered, i, axis=ordered.ndim - 1)
    return s.transpose(out, perm=(out.ndim - 1, *range(out.ndim - 1)))


def _refused(name, out, weights, interpolation):
    refuse(name, out=out, weights=weights, interpolation=interpolation)


@counterpart(np.quantile)
def quantile(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    weights=None,
    interpolation=None,
):
    """Return values below which given fractions of the elements lie, over axes.

    Args:
        a: array.
        q: a fraction from 0 to 1, or an array of them, whose axes come first in the result.
        axis: an axis or a tuple of axes; None for all.
        method: how to interpolate: "linear" or another of NumPy's names.
        keepdims: keep reduced axes at size 1.
        out, weights, interpolation: refused on traced values.

    Raises:
        ValueError: a known fraction lies outside 0 to 1, or the method is unknown.

    Example:
        >>> import fgrad.numpy as fnp
        >>> float(fnp.quantile([1.0, 2.0, 4.0], 0.75))
        3.0
    """
    _refused("quantile", out, weights, interpolation)
    return _quantile(a, q, axis, method, keepdims, False, "quantile")


@counterpart(np.percentile)
def percentile(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    weights=None,
    interpolation=None,
):
    """Return values below which given percentages of the elements lie; see `quantile`."""
    _refused("percentile", out, weights, interpolation)
    return _quantile(a, _fractions(q), axis, method, keepdims, False, "percentile")


@counterpart(np.nanquantile)
def nanquantile(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    weights=None,
    interpolation=None,
):
    """Return quantiles of the elements that are not NaN; see `quantile`."""
    _refused("nanquantile", out, weights, interpolation)
    return _quantile(a, q, axis, method, keepdims, True, "quantile")


@counterpart(np.nanpercentile)
def nanpercentile(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    weights=None,
    interpolation=None,
):
    """Return percentiles of the elements that are not NaN; see `quantile`."""
    _refused("nanpercentile", out, weights, interpolation)
    return _quantile(a, _fractions(q), axis, method, keepdims, True, "percentile")


def _fractions(q):
    if is_weak(operand(q)):
        return operand(q) / 100
    q = as_array(q)
    return e.div(q if q.dtype.kind == "f" else cast(q, np.float64), 100)


@counterpart(np.median)
def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """Return the middle value over axes, or the mean of the two middle ones, which share the derivative."""
    refuse("median", out=out)
    return _quantile(a, 0.5, axis, "averaged_inverted_cdf", keepdims, False, "quantile")


@counterpart(np.nanmedian)
def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """Return the median of the elements that are not NaN, over axes."""
    refuse("nanmedian", out=out)
    return _quantile(a, 0.5, axis, "averaged_inverted_cdf", keepdims, True, "quantile")


# --------------------------------------------------------------------------------------------------- covariance


@counterpart(np.cov)
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    """Return the covariance matrix of variables, the rows of `m` (columns, without `rowvar`).

    Args:
        m, y: arrays of variables and observations; `y` holds more variables.
        bias, ddof: what to take off the number of observations: 1, with `bias` 0, or `ddof`.
        fweights, aweights: how often each observation counts, and its weight.
        dtype: dtype to compute in.

    Raises:
        ValueError: arrays have more than two axes.
    """
    x = _variables(m, rowvar)
    if y is not None:
        x = s.concatenate(*promoted(x, _variables(y, rowvar)), axis=0)
    x = inexact(x) if dtype is None else cast(x, dtype)
    weights = None
    for w in (fweights, aweights):
        if w is not None:
            weights = as_array(w) if weights is None else e.mul(weights, as_array(w))
    ddof = (0 if bias else 1) if ddof is None else ddof
    center, total = (mean(x, axis=1), float(x.shape[1])) if weights is None else average(x, 1, weights, True)
    total = total if weights is None else total[0]
    if ddof == 0:
        scale = total
    elif aweights is None:
        scale = total - ddof
    else:
        scale = total - ddof * e.div((e.mul(weights, as_array(aweights))).sum(axis=0), total)
    d = e.sub(x, s.reshape(center, shape=(x.shape[0], 1)))
    weighted = d if weights is None else e.mul(d, weights)
    weighted = weighted.conj() if d.dtype.kind == "c" else weighted
    out = e.div(d @ weighted.T, scale)
    return s.reshape(out, shape=tuple([n for n in out.shape if n != 1]))


def _variables(m, rowvar):
    x = as_array(m)
    if x.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    if x.ndim < 2:
        return s.reshape(x, shape=(1, x.size))
    return x if rowvar or x.shape[0] == 1 and False else s.transpose(x, perm=(1, 0))


@counterpart(np.corrcoef)
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    """Return the matrix of correlation coefficients of variables; see `cov`."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return e.div(c, c)
    d = e.sqrt(c.diagonal().real)
    out = e.div(e.div(c, s.reshape(d, shape=(d.size, 1))), d)
    if out.dtype.kind == "c":
        return out
    return e.clamp(out, -1.0, 1.0)


# --------------------------------------------------------------------------------------------------- histograms


@counterpart(np.histogram_bin_edges)
def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """Return the edges of bins: of equal width over the range of the values, or as they are given."""
    if isinstance(bins, str):
        raise TypeError(
            "histogram_bin_edges: bins must be an int or edges on traced values, since their number must be known"
        )
    if np.ndim(bins):
        return as_array(bins)
    x = as_array(a).ravel()
    low, high = (x.min(), x.max()) if range is None else range
    if range is None:
        flat = e.eq(low, high)
        low, high = e.sub(low, e.select(flat, 0.5, 0.0)), e.add(high, e.select(flat, 0.5, 0.0))
    return np.linspace(low, high, bins + 1)


@counterpart(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):
    """Count values, or sum their weights, by bins; return counts and edges. Counts have no derivative, weights have.

    Args:
        a: array.
        bins: how many bins of equal width, or their edges.
        range: the ends of the first and last bin; those of the values if None.
        density: divide so that the integral over the bins is 1.
        weights: array of the shape of `a`.
    """
    x = as_array(a).ravel()
    edges = as_array(histogram_bin_edges(a, bins, range))
    count = edges.size - 1
    place = searchsorted(edges, x, "right") - 1
    place = e.select(e.eq(x, edges[-1]), count - 1, place)
    inside = e.logical_and(e.ge(place, 0), e.lt(place, count))
    amounts = np.ones(x.shape, np.intp) if weights is None else as_array(weights).ravel()
    amounts = e.select(inside, amounts, 0)
    hits = cast(e.eq(np.arange(count)[:, None], place), amounts.dtype)
    out = r.reduce_sum(e.mul(hits, amounts), axes=(1,))
    if density:
        out = e.div(out, e.mul(out.sum(), np.diff(edges)))
    return out, edges


def _edges_of(x, bins, range):
    return as_array(histogram_bin_edges(x, bins, range))


@counterpart(np.histogramdd)
def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    """Count points, or sum their weights, by bins in several dimensions; return counts and a tuple of edges.

    Args:
        sample: array of points by coordinates, or a list with an array for each coordinate.
        bins: how many bins along all axes, or a list with a number or edges for each.
        range: for each axis the ends of its first and last bin, or None.
        density: divide so that the integral over the bins is 1.
        weights: vector of what each point counts; derivatives are by these.
    """
    if isinstance(sample, (list, tuple)):
        axes = [as_array(x).ravel() for x in sample]
    else:
        points = as_array(sample)
        points = points if points.ndim == 2 else s.reshape(points, shape=(points.size, 1))
        axes = [points[:, k] for k in np.arange(points.shape[1]).tolist()]
    many = list(bins) if np.ndim(bins) or isinstance(bins, (list, tuple)) else [bins] * len(axes)
    if len(many) != len(axes):
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    edges = [_edges_of(x, b, None if range is None else range[k]) for k, (x, b) in enumerate(zip(axes, many))]
    shape = tuple([v.size - 1 for v in edges])
    inside, place = True, np.zeros((), np.intp)
    for x, v, n in zip(axes, edges, shape):
        row = searchsorted(v, x, "right") - 1
        row = e.select(e.eq(x, v[-1]), n - 1, row)
        inside = e.logical_and(inside, e.logical_and(e.ge(row, 0), e.lt(row, n)))
        place = e.add(e.mul(place, n), row)
    amounts = np.ones(axes[0].shape) if weights is None else cast(as_array(weights), np.float64)
    size = int(np.prod(shape))
    out = at(np.zeros(size))[e.select(inside, place, size)].add(amounts, mode="drop")
    out = s.reshape(as_array(out), shape=shape)
    if density:
        out = e.div(out, out.sum())
        for k, v in enumerate(edges):
            out = e.div(out, s.reshape(v[1:] - v[:-1], shape=tuple([n if i == k else 1 for i, n in enumerate(shape)])))
    return out, tuple(edges)


@counterpart(np.histogram2d)
def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    """Count points of the plane by bins; return counts and the edges along x and y. See `histogramdd`."""
    same = np.ndim(bins) == 1 and len(bins) not in (1, 2)
    counts, edges = histogramdd([x, y], [bins, bins] if same else bins, range, density, weights)
    return counts, edges[0], edges[1]

"""Reductions that ignore NaN: the others, of arrays with NaN replaced by what changes nothing."""

from __future__ import annotations

import numpy as np

from fgrad.numpy.arguments import as_array, counterpart, refuse, truth
from fgrad.numpy.reductions import (
    any,
    argmax,
    argmin,
    correction_of,
    count,
    cumprod,
    cumsum,
    max,
    mean,
    min,
    prod,
    sum,
    variance,
)
from fgrad.ops import elementwise as e

__all__ = """
    nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar
""".split()


def _filled(a, fill):
    """Return an array with NaN replaced, and the mask of where there was none (None if there cannot be any)."""
    x = as_array(a)
    if x.dtype.kind not in "fc":
        return x, None
    there = e.logical_not(e.isnan(x))
    return e.select(there, x, np.asarray(fill, x.dtype)), there


def _both(mask, where):
    if mask is None or where is None or where is True:
        return where if mask is None else mask
    return e.logical_and(mask, truth(as_array(where)))


@counterpart(np.nansum)
def nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Sum elements that are not NaN, over axes."""
    return sum(_filled(a, 0)[0], axis, dtype, out, keepdims, initial, where)


@counterpart(np.nanprod)
def nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Multiply elements that are not NaN, over axes."""
    return prod(_filled(a, 1)[0], axis, dtype, out, keepdims, initial, where)


@counterpart(np.nancumsum)
def nancumsum(a, axis=None, dtype=None, out=None):
    """Compute running sums, with NaN counting as 0."""
    return cumsum(_filled(a, 0)[0], axis, dtype, out)


@counterpart(np.nancumprod)
def nancumprod(a, axis=None, dtype=None, out=None):
    """Compute running products, with NaN counting as 1."""
    return cumprod(_filled(a, 1)[0], axis, dtype, out)


@counterpart(np.nanmean)
def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """Compute the mean of elements that are not NaN, over axes; NaN where there are none."""
    x, mask = _filled(a, 0)
    return mean(x, axis, dtype, out, keepdims, where=_both(mask, where))


@counterpart(np.nanvar)
def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None, correction=None):
    """Compute the variance of elements that are not NaN, over axes."""
    refuse("nanvar", out=out)
    return _nan_variance(a, axis, dtype, correction_of("nanvar", ddof, correction), keepdims, where, mean, False)


@counterpart(np.nanstd)
def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None, correction=None):
    """Compute the standard deviation of elements that are not NaN, over axes; at 0 its derivative is 0."""
    refuse("nanstd", out=out)
    return _nan_variance(a, axis, dtype, correction_of("nanstd", ddof, correction), keepdims, where, mean, True)


def _nan_variance(a, axis, dtype, ddof, keepdims, where, mean, root):
    """Compute a variance without NaN; where too few elements are left the value is NaN, as NumPy has it."""
    x, mask = _filled(a, 0)
    where = _both(mask, where)
    out = variance(x, axis, dtype, ddof, keepdims, where, mean, root)
    if where is not None and where is not True:
        out = e.select(count(x, axis, where, keepdims) > ddof, out, np.asarray(np.nan, out.dtype))
    return out


def _nan_extreme(function, sign, a, axis, keepdims, initial, where):
    x, mask = _filled(a, sign * np.inf)
    out = function(x, axis, keepdims=keepdims, initial=initial, where=where)
    if mask is not None:
        out = e.select(any(_both(mask, where), axis, keepdims=keepdims), out, np.asarray(np.nan, out.dtype))
    return out


@counterpart(np.nanmax)
def nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Take the largest element that is not NaN, over axes; NaN where there is none."""
    refuse("nanmax", out=out)
    return _nan_extreme(max, -1, a, axis, keepdims, initial, where)


@counterpart(np.nanmin)
def nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Take the smallest element that is not NaN, over axes; NaN where there is none."""
    refuse("nanmin", out=out)
    return _nan_extreme(min, 1, a, axis, keepdims, initial, where)


@counterpart(np.nanargmax)
def nanargmax(a, axis=None, out=None, *, keepdims=False):
    """Return the index of the largest element that is not NaN."""
    return argmax(_filled(a, -np.inf)[0], axis, out, keepdims=keepdims)


@counterpart(np.nanargmin)
def nanargmin(a, axis=None, out=None, *, keepdims=False):
    """Return the index of the smallest element that is not NaN."""
    return argmin(_filled(a, np.inf)[0], axis, out, keepdims=keepdims)

"""Reductions: sums, extremes, logic, moments, cumulative functions, and those that ignore NaN.

Results have NumPy's shapes and dtypes: sums of narrow integers are int64 or uint64, means of integers are float64.
"""

from __future__ import annotations

import math

import numpy as np

from fgrad.numpy.arguments import (
    as_array,
    cast,
    counterpart,
    expand_axis,
    inexact,
    keep_axes,
    many_axes,
    one_axis,
    operand,
    refuse,
    truth,
)
from fgrad.numpy.ufuncs import accumulate_method, reduce_method, reduction
from fgrad.ops import elementwise as e
from fgrad.ops import reduce as r
from fgrad.ops import shape as s

__all__ = """
    all amax amin any argmax argmin average count_nonzero cumprod cumsum cumulative_prod cumulative_sum max mean
    min prod ptp std sum var
""".split()

# --------------------------------------------------------------------------------------------- what they share


def _reduce(prim, x, axis, keepdims):
    """Apply a primitive that reduces `x` over `axis`; reduced axes stay at size 1 with `keepdims`."""
    axes = many_axes(axis, x.ndim)
    out = prim(x, axes=axes)
    return keep_axes(out, x.shape, axes) if keepdims else out


def _wide(dtype):
    """Return the dtype in which NumPy sums: integers narrower than the platform's are widened."""
    if dtype.kind in "bi" and dtype.itemsize < 8:
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" and dtype.itemsize < 8 else dtype


def _masked(x, where, fill):
    """Return `x` with `fill` where the mask is False."""
    if where is None or where is True:
        return x
    return e.select(truth(as_array(where)), x, np.asarray(fill, x.dtype))


def count(x, axis, where, keepdims):
    """Return how many elements are reduced: a number, or with a mask an array of those it selects."""
    if where is None or where is True:
        return math.prod([x.shape[i] for i in many_axes(axis, x.ndim)])
    mask = s.broadcast(truth(as_array(where)), shape=x.shape)
    return _reduce(r.reduce_sum, cast(mask, np.int64), axis, keepdims)


# ------------------------------------------------------------------------------------- sums, products, extremes


@reduction(np.sum, r.reduce_sum, "fc")
def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Sum elements over axes.

    Args:
        a: array.
        axis: an axis or a tuple of axes; None for all.
        dtype: dtype of the sum.
        out: refused on traced values.
        keepdims: keep reduced axes at size 1.
        initial: a number to start from.
        where: mask of the elements to sum.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.sum([[1, 2], [3, 4]], axis=0)
        array([4, 6])
    """
    refuse("sum", out=out)
    x = as_array(a)
    x = _masked(cast(x, dtype if dtype is not None else _wide(x.dtype)), where, 0)
    total = _reduce(r.reduce_sum, x, axis, keepdims)
    return total if initial is None else total + cast(as_array(initial), x.dtype)


@reduction(np.prod, r.reduce_prod, "fc")
def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Multiply elements over axes; takes the arguments of `sum`. Derivatives are exact where elements are zero."""
    refuse("prod", out=out)
    x = as_array(a)
    x = _masked(cast(x, dtype if dtype is not None else _wide(x.dtype)), where, 1)
    total = _reduce(r.reduce_prod, x, axis, keepdims)
    return total if initial is None else total * cast(as_array(initial), x.dtype)


def _extreme(name, prim, pair, a, axis, keepdims, initial, where):
    x = as_array(a)
    if where is not None and where is not True:
        if initial is None:
            raise ValueError(f"{name}: a masked reduction has no identity, so to use where= one has to give initial=")
        x = e.select(truth(as_array(where)), x, operand(initial))
    if initial is None:
        return _reduce(prim, x, axis, keepdims)
    initial = cast(as_array(initial), x.dtype)
    axes = many_axes(axis, x.ndim)
    if 0 in [x.shape[i] for i in axes]:
        shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
        return s.broadcast(initial, shape=tuple(shape))
    return pair(_reduce(prim, x, axis, keepdims), initial)


@reduction(np.max, r.reduce_max, "biufc", np.amax)
def max(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Take the largest element over axes; NaN wins. Tied elements share the derivative equally.

    Args:
        a: array.
        axis: an axis or a tuple of axes; None for all.
        out: refused on traced values.
        keepdims: keep reduced axes at size 1.
        initial: a lower bound of the result, and the result over no elements.
        where: mask of the elements to compare; needs `initial`.

    Raises:
        ValueError: there are no elements and no `initial`.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.max([[1, 5], [3, 4]], axis=1)
        array([5, 4])
    """
    refuse("max", out=out)
    return _extreme("max", r.reduce_max, e.max, a, axis, keepdims, initial, where)


@reduction(np.min, r.reduce_min, "biufc", np.amin)
def min(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Take the smallest element over axes; takes the arguments of `max`."""
    refuse("min", out=out)
    return _extreme("min", r.reduce_min, e.min, a, axis, keepdims, initial, where)


amax = max
amin = min


@reduction(np.any, r.reduce_any, "b")
def any(a, axis=None, out=None, keepdims=False, *, where=None):
    """Say whether any element over axes differs from zero."""
    refuse("any", out=out)
    return _reduce(r.reduce_any, _masked(truth(as_array(a)), where, False), axis, keepdims)


@reduction(np.all, r.reduce_all, "b")
def all(a, axis=None, out=None, keepdims=False, *, where=None):
    """Say whether all elements over axes differ from zero."""
    refuse("all", out=out)
    return _reduce(r.reduce_all, _masked(truth(as_array(a)), where, True), axis, keepdims)


for _ufunc, _function in {
    np.add: sum,
    np.multiply: prod,
    np.maximum: max,
    np.minimum: min,
    np.logical_and: all,
    np.logical_or: any,
}.items():
    reduce_method(_ufunc, _function)


def _log_sum(a, axis, out=None, keepdims=False, initial=None, where=None):
    """Return the logarithm of the sum of exponentials: what `numpy.logaddexp.reduce` computes."""
    refuse("logaddexp.reduce", out=out)
    x = _masked(inexact(as_array(a)), where, -np.inf)
    total = _reduce(r.logsumexp, x, axis, keepdims)
    return total if initial is None else e.logaddexp(total, operand(initial))


reduce_method(np.logaddexp, _log_sum)


@counterpart(np.count_nonzero)
def count_nonzero(a, axis=None, *, keepdims=False):
    """Count elements that differ from zero, over axes."""
    return sum(truth(as_array(a)), axis, keepdims=keepdims)


@counterpart(np.ptp)
def ptp(a, axis=None, out=None, keepdims=False):
    """Compute the range of values, maximum less minimum, over axes."""
    refuse("ptp", out=out)
    return e.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def _position(prim, a, axis, keepdims):
    x = as_array(a)
    if axis is None:
        index = prim(s.reshape(x, shape=(x.size,)), axis=0)
        return s.reshape(index, shape=(1,) * x.ndim) if keepdims else index
    axis = one_axis(axis, x.ndim)
    index = prim(x, axis=axis)
    return expand_axis(index, axis) if keepdims else index


@counterpart(np.argmax)
def argmax(a, axis=None, out=None, *, keepdims=False):
    """Return the index of the first largest element, along an axis or of the flattened array."""
    refuse("argmax", out=out)
    return _position(r.argmax, a, axis, keepdims)


@counterpart(np.argmin)
def argmin(a, axis=None, out=None, *, keepdims=False):
    """Return the index of the first smallest element, along an axis or of the flattened array."""
    refuse("argmin", out=out)
    return _position(r.argmin, a, axis, keepdims)


# --------------------------------------------------------------------------------------------------- moments


def _half(x, dtype):
    """Return an array as means and variances compute with it, and the dtype of the result: halves in float32."""
    x = inexact(x) if dtype is None else cast(x, dtype)
    return (cast(x, np.float32) if x.dtype == np.float16 else x), x.dtype


@counterpart(np.mean)
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """Compute the arithmetic mean over axes, in float64 for integers.

    Args:
        a: array.
        axis: an axis or a tuple of axes; None for all.
        dtype: dtype to compute in.
        out: refused on traced values.
        keepdims: keep reduced axes at size 1.
        where: mask of the elements to include.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.mean([[1.0, 2.0], [3.0, 5.0]], axis=1)
        array([1.5, 4. ])
    """
    refuse("mean", out=out)
    x, dtype = _half(as_array(a), dtype)
    total = _reduce(r.reduce_sum, _masked(x, where, 0), axis, keepdims)
    return cast(_divided(total, count(x, axis, where, keepdims)), dtype)


def _divided(x, number):
    """Return `x` over a count, a number or an array of them, in x's dtype."""
    return e.div(x, float(number) if isinstance(number, (int, np.number)) else cast(number, x.real.dtype))


@counterpart(np.var)
def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None, correction=None):
    """Compute the variance over axes, the mean square distance from the mean.

    Args:
        a: array.
        axis: an axis or a tuple of axes; None for all.
        dtype: dtype to compute in; float64 for integers.
        out: refused on traced values.
        ddof: what to take off the number of elements before dividing by it; `correction` is another name.
        keepdims: keep reduced axes at size 1.
        where: mask of the elements to include.
        mean: the mean, if known, with reduced axes kept.

    Example:
        >>> import fgrad.numpy as fnp
        >>> float(fnp.var([1.0, 2.0, 4.0, 5.0]))
        2.5
    """
    refuse("var", out=out)
    return variance(a, axis, dtype, correction_of("var", ddof, correction), keepdims, where, mean, False)


@counterpart(np.std)
def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None, correction=None):
    """Compute the standard deviation over axes; takes the arguments of `var`. At 0 its derivative is 0."""
    refuse("std", out=out)
    return variance(a, axis, dtype, correction_of("std", ddof, correction), keepdims, where, mean, True)


def correction_of(name, ddof, correction):
    """Return what to take off the number of elements, given under one of its two names."""
    if correction is not None and ddof != 0:
        raise ValueError(f"{name}: ddof and correction can't be provided simultaneously.")
    return ddof if correction is None else correction


def variance(a, axis, dtype, ddof, keepdims, where, center, root):
    """Return a variance, or with `root` a standard deviation."""
    x, dtype = _half(as_array(a), dtype)
    if center is None:
        center = _divided(_reduce(r.reduce_sum, _masked(x, where, 0), axis, True), count(x, axis, where, True))
    d = e.sub(x, operand(center))
    squares = e.square(d) if d.dtype.kind != "c" else e.square(d.real) + e.square(d.imag)
    total = _reduce(r.reduce_sum, _masked(squares, where, 0), axis, keepdims)
    number = count(x, axis, where, keepdims)
    left = e.max(number - ddof, 0)
    out = _divided(total, left)
    out = safe_sqrt(out) if root else out
    return cast(out, np.zeros((), dtype).real.dtype)


def safe_sqrt(x):
    """Return the square root with derivative 0 at 0, where a norm or deviation has its least value."""
    zero = e.eq(x, 0)
    return e.select(zero, 0, e.sqrt(e.select(zero, 1, x)))


@counterpart(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    """Compute the weighted mean over axes.

    Args:
        a: array.
        axis: an axis or a tuple of axes; None for all.
        weights: array of the shape of `a`, or of its size along `axis`; None for equal weights.
        returned: return also the sum of the weights.
        keepdims: keep reduced axes at size 1.

    Raises:
        TypeError: weights of another shape are given without an axis.
        ValueError: the shape of the weights does not fit.
    """
    x = as_array(a)
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        return (
            (out, np.broadcast_to(np.asarray(count(x, axis, None, False), out.dtype), out.shape)) if returned else out
        )
    w = as_array(weights)
    dtype = np.result_type(x.dtype, w.dtype, *([] if x.dtype.kind in "fc" else [np.float64]))
    if w.shape != x.shape:
        w = _along_axes(x, w, axis)
    scale = sum(w, axis, dtype=dtype, keepdims=keepdims)
    out = e.div(sum(e.mul(cast(x, dtype), cast(w, dtype)), axis, keepdims=keepdims), scale)
    return (out, np.broadcast_to(scale, out.shape)) if returned else out


def _along_axes(x, w, axis):
    """Return weights given for some axes shaped to broadcast against `x`."""
    if axis is None:
        raise TypeError("average: axis must be specified when shapes of a and weights differ.")
    axes = [one_axis(i, x.ndim) for i in (axis if isinstance(axis, tuple) else (axis,))]
    if w.shape != tuple([x.shape[i] for i in axes]):
        raise ValueError("average: shape of weights must be consistent with shape of a along specified axis.")
    order = tuple(np.argsort(axes).tolist())
    return s.reshape(s.transpose(w, perm=order), shape=tuple([n if i in axes else 1 for i, n in enumerate(x.shape)]))


# ----------------------------------------------------------------------------------------------- cumulative


def _cumulative(prim, a, axis, dtype, name, out):
    refuse(name, out=out)
    x = as_array(a)
    x = cast(x, dtype if dtype is not None else _wide(x.dtype))
    if axis is None:
        return prim(s.reshape(x, shape=(x.size,)), axis=0, reverse=False)
    return prim(x, axis=one_axis(axis, x.ndim), reverse=False)


@counterpart(np.cumsum)
def cumsum(a, axis=None, dtype=None, out=None):
    """Compute running sums along an axis, or of the flattened array."""
    return _cumulative(r.cumsum, a, axis, dtype, "cumsum", out)


@counterpart(np.cumprod)
def cumprod(a, axis=None, dtype=None, out=None):
    """Compute running products along an axis, or of the flattened array; derivatives are exact at zeros."""
    return _cumulative(r.cumprod, a, axis, dtype, "cumprod", out)


def _running(prim, name):
    def running(a, axis=0, dtype=None, out=None):
        refuse(f"{name}.accumulate", out=out)
        x = as_array(a)
        return prim(cast(x, x.dtype if dtype is None else dtype), axis=one_axis(axis, x.ndim), reverse=False)

    return running


accumulate_method(np.add, cumsum)
accumulate_method(np.multiply, cumprod)
accumulate_method(np.maximum, _running(r.cummax, "maximum"))
accumulate_method(np.minimum, _running(r.cummin, "minimum"))
accumulate_method(np.logaddexp, _running(r.cumlogsumexp, "logaddexp"))


def _cumulative_standard(function, x, axis, dtype, out, include_initial, start):
    """Return a cumulative function as the array API standard has it: an axis is needed unless there is just one."""
    x = as_array(x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0
    axis = one_axis(axis, x.ndim)
    out = function(x, axis, dtype, out)
    if not include_initial:
        return out
    first = np.full([1 if i == axis else n for i, n in enumerate(x.shape)], start, out.dtype)
    return s.concatenate(first, out, axis=axis)


@counterpart(getattr(np, "cumulative_sum", None))
def cumulative_sum(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    """Compute running sums along an axis, which may be left out for one dimension.

    With `include_initial` the sum of no elements, 0, comes first.
    """
    return _cumulative_standard(cumsum, x, axis, dtype, out, include_initial, 0)


@counterpart(getattr(np, "cumulative_prod", None))
def cumulative_prod(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    """Compute running products along an axis, which may be left out for one dimension.

    With `include_initial` the product of no elements, 1, comes first.
    """
    return _cumulative_standard(cumprod, x, axis, dtype, out, include_initial, 1)

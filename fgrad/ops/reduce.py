"""Reductions and cumulative primitives.

`axes` is a sorted tuple of non-negative ints, and reduced axes are dropped; `axis` is one such int. Dtypes are kept
(callers cast): float16 accumulates in float32.
"""

from __future__ import annotations

import math

import numpy as np

from fgrad.core import ArrayType
from fgrad.kinds import constant, differential, linear
from fgrad.ops.along import take_along
from fgrad.ops.elementwise import exp_sub, select
from fgrad.ops.shape import broadcast, inverse, pad


def _reduced(x, axes):
    return tuple([n for a, n in enumerate(x.shape) if a not in axes])


def _shift_axes(size, *, axes):
    return {"axes": tuple([a + 1 for a in axes])}


def _shift_axis(size, *, axis, **params):
    return {"axis": axis + 1}


def kept(y, x, axes):
    """Return `y`, a reduction of an array like `x` over `axes`, with those axes at length 1."""
    return y.reshape(tuple([1 if a in axes else n for a, n in enumerate(x.shape)]))


def expand_dims_to(y, x, axes):
    """Return `y`, a reduction of an array like `x` over `axes`, broadcast back to the shape of `x`."""
    return broadcast(kept(y, x, axes), shape=x.shape)


def _type_over(x, *, axes):
    return ArrayType(_reduced(x, axes), x.dtype)


def _wide(ufunc_method):
    """Return a reduction or accumulation that keeps the dtype, and accumulates float16 in float32."""

    def wide(x, axis, **kwargs):
        if x.dtype == np.float16:
            return ufunc_method(x, axis, np.float32, **kwargs).astype(np.float16)
        return ufunc_method(x, axis, x.dtype, **kwargs)

    return wide


# ------------------------------------------------------------------------------------------- sums and products

_add = _wide(np.add.reduce)
_multiply = _wide(np.multiply.reduce)

reduce_sum = linear(
    "reduce_sum",
    lambda x, *, axes: _add(x, axes),
    type=_type_over,
    transpose=lambda ct, x, *, axes: expand_dims_to(ct, x, axes),
    shift=_shift_axes,
    gpu="reduce.sum",
    doc="The sum over axes, of float16 in float32.",
)


def _others(x, axes):
    """Return for every element the product of all others that it is multiplied with."""
    rest = tuple([a for a in range(x.ndim) if a not in axes])
    order = rest + axes
    moved = x.transpose(order)
    rows = moved.reshape((*moved.shape[: len(rest)], math.prod(moved.shape[len(rest) :])))
    last = len(rest)
    before = _shifted(cumprod(rows, axis=last, reverse=False), 1, last, False)
    after = _shifted(cumprod(rows, axis=last, reverse=True), 1, last, True)
    return (before * after).reshape(moved.shape).transpose(inverse(order))


reduce_prod = differential(
    "reduce_prod",
    lambda x, *, axes: _multiply(x, axes),
    type=_type_over,
    jvp=lambda t, x, *, axes: reduce_sum(t * _others(x, axes), axes=axes),
    pull=lambda ct, x, *, axes: kept(ct, x, axes) * _others(x, axes),
    shift=_shift_axes,
    gpu="reduce.prod",
    doc="Product; the derivative is made by multiplication alone, so zeros do not matter.",
)

# ------------------------------------------------------------------------------------------------- extremes


def _extreme_type(name):
    """Return a type rule that refuses what has no extreme, in NumPy's words."""

    def rule(x, *, axes):
        if not math.prod([x.shape[a] for a in axes]):
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        return ArrayType(_reduced(x, axes), x.dtype)

    return rule


def _shared(t, x, out, axes):
    """Return the part of `t` at each element: an equal share of it where x equals its extreme, 0 elsewhere.

    The shares are counted in integers: in float16, 70,000 ties would be inf many.
    """
    tied = x == kept(out, x, axes)
    share = (1 / tied.sum(axis=axes, dtype=np.int64)).astype(x.dtype)
    return select(tied, t * kept(share, x, axes), 0)


def _extreme(name, ufunc):
    """Declare the reduction by np.maximum or np.minimum."""
    return differential(
        f"reduce_{name}",
        lambda x, *, axes: ufunc.reduce(x, axes),
        type=_extreme_type(ufunc.__name__),
        jvp=lambda t, x, out, *, axes: reduce_sum(_shared(t, x, out, axes), axes=axes),
        pull=lambda ct, x, out, *, axes: _shared(kept(ct, x, axes), x, out, axes),
        shift=_shift_axes,
        gpu=f"reduce.{name}",
        doc=f"The {ufunc.__name__}, NaN if there is one; ties have equal shares in the derivative.",
    )


reduce_max = _extreme("max", np.maximum)
reduce_min = _extreme("min", np.minimum)


def _arg_type(name):
    def rule(x, *, axis):
        if not x.shape[axis]:
            raise ValueError(f"attempt to get {name} of an empty sequence")
        return ArrayType(_reduced(x, (axis,)), np.intp)

    return rule


argmax = constant(
    "argmax",
    lambda x, *, axis: np.argmax(x, axis),
    type=_arg_type("argmax"),
    shift=_shift_axis,
    gpu="reduce.argmax",
    doc="Index of the first maximum, or of the first NaN.",
)
argmin = constant(
    "argmin",
    lambda x, *, axis: np.argmin(x, axis),
    type=_arg_type("argmin"),
    shift=_shift_axis,
    gpu="reduce.argmin",
    doc="Index of the first minimum, or of the first NaN.",
)


def _truth_type(x, *, axes):
    return ArrayType(_reduced(x, axes), bool)


reduce_any = constant(
    "reduce_any",
    lambda x, *, axes: np.logical_or.reduce(x, axes),
    type=_truth_type,
    shift=_shift_axes,
    gpu="reduce.any",
    doc="Whether any element is true.",
)
reduce_all = constant(
    "reduce_all",
    lambda x, *, axes: np.logical_and.reduce(x, axes),
    type=_truth_type,
    shift=_shift_axes,
    gpu="reduce.all",
    doc="Whether all elements are true.",
)


def _logsumexp(x, *, axes):
    wide = np.asarray(x, np.float32 if x.dtype == np.float16 else None)
    with np.errstate(divide="ignore", over="ignore"):
        top = np.maximum.reduce(wide.real, axes, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0)
        total = np.add.reduce(np.exp(wide - top), axes, keepdims=True)
        out = np.log(total) + top
    return out.reshape(_reduced(x, axes)).astype(x.dtype)


logsumexp = differential(
    "logsumexp",
    _logsumexp,
    type=_type_over,
    jvp=lambda t, x, out, *, axes: reduce_sum(t * exp_sub(x, kept(out, x, axes)), axes=axes),
    pull=lambda ct, x, out, *, axes: kept(ct, x, axes) * exp_sub(x, kept(out, x, axes)),
    shift=_shift_axes,
    gpu="reduce.logsumexp",
    doc="log(sum(exp(x))); -inf, with derivative 0, where all x are -inf.",
)

# ------------------------------------------------------------------------------------------------- cumulative


def _cumulative(ufunc):
    """Return an accumulation along an axis, from its end if `reverse`."""
    accumulate = _wide(ufunc.accumulate)

    def impl(x, *, axis, reverse):
        if not reverse:
            return accumulate(x, axis)
        return np.ascontiguousarray(np.flip(accumulate(np.flip(x, axis), axis), axis))

    return impl


def _same(x, *, axis, reverse):
    return ArrayType(x.shape, x.dtype)


def _shifted(x, fill, axis, reverse):
    """Return what comes just before each element along `axis` (just after, if `reverse`), `fill` at the start."""
    widths = [(0, 0, 0)] * x.ndim
    widths[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad(x, np.full((), fill, x.dtype), widths=tuple(widths))


cumsum = linear(
    "cumsum",
    _cumulative(np.add),
    type=_same,
    transpose=lambda ct, *, axis, reverse: cumsum(ct, axis=axis, reverse=not reverse),
    shift=_shift_axis,
    gpu="scan.cumsum",
    doc="Running sum along `axis`; from the end if `reverse`.",
)

_LANES = 16  # so many rows at most are cheaper one by one in Python numbers than all together in NumPy calls


def _recurrence(x, u, *, axis, reverse):
    wide = np.float32 if u.dtype == np.float16 else u.dtype
    xs, us = (np.moveaxis(np.asarray(a, wide), axis, 0) for a in (x, u))
    if reverse:
        xs, us = xs[::-1], us[::-1]
    out = np.empty(us.shape, wide)
    if us[:1].size <= _LANES:
        for lane in np.ndindex(us.shape[1:]):
            column = (slice(None), *lane)
            out[column] = list(_recur(xs[column].tolist(), us[column].tolist()))
    else:
        for row, s in zip(out, _recur(xs, us), strict=True):
            row[...] = s
    out = np.moveaxis(out[::-1] if reverse else out, 0, axis)
    return np.ascontiguousarray(out, u.dtype)


def _recur(xs, us):
    """Yield s[k] = xs[k] * s[k-1] + us[k], s[0] = us[0], of numbers or of arrays."""
    s = None
    for x, u in zip(xs, us, strict=True):
        s = u if s is None else x * s + u
        yield s


recurrence = differential(
    "recurrence",
    _recurrence,
    type=lambda x, u, *, axis, reverse: ArrayType(u.shape, u.dtype),
    jvp=(
        lambda t, x, out, *, axis, reverse: recurrence(
            x, t * _shifted(out, 0, axis, reverse), axis=axis, reverse=reverse
        ),
        lambda t, x, *, axis, reverse: recurrence(x, t, axis=axis, reverse=reverse),
    ),
    pull=(
        lambda ct, x, out, *, axis, reverse: _recurred(ct, x, axis, reverse) * _shifted(out, 0, axis, reverse),
        lambda ct, x, *, axis, reverse: _recurred(ct, x, axis, reverse),
    ),
    shift=_shift_axis,
    gpu="scan.recurrence",
    doc="s[k] = x[k] * s[k-1] + u[k] along `axis`, s[0] = u[0]; from the end if `reverse`. x and u have one type.",
)


def _recurred(ct, x, axis, reverse):
    """Return the cotangent of u: a recurrence in the other direction."""
    return recurrence(_shifted(x, 0, axis, not reverse), ct, axis=axis, reverse=not reverse)


cumprod = differential(
    "cumprod",
    _cumulative(np.multiply),
    type=_same,
    jvp=lambda t, x, out, *, axis, reverse: recurrence(
        x, t * _shifted(out, 1, axis, reverse), axis=axis, reverse=reverse
    ),
    pull=lambda ct, x, out, *, axis, reverse: _recurred(ct, x, axis, reverse) * _shifted(out, 1, axis, reverse),
    shift=_shift_axis,
    gpu="scan.cumprod",
    doc="Running product along `axis`; from the end if `reverse`. Zeros have exact derivatives.",
)


def _attained(x, out, axis, reverse):
    """Return the position along `axis` where each running extreme was attained last."""
    n = x.shape[axis]
    places = np.arange(n).reshape(tuple([n if a == axis else 1 for a in range(x.ndim)]))
    latest = cummin if reverse else cummax
    return latest(select(x == out, places, n - 1 if reverse else 0), axis=axis, reverse=reverse)


def _cumulative_extreme(name, ufunc):
    """Declare the accumulation by np.maximum or np.minimum."""
    return differential(
        name,
        _cumulative(ufunc),
        type=_same,
        jvp=lambda t, x, out, *, axis, reverse: take_along(t, _attained(x, out, axis, reverse), axis=axis),
        shift=_shift_axis,
        gpu=f"scan.{name}",
        doc=f"Running {ufunc.__name__} along `axis`, from the end if `reverse`; of ties the last met counts.",
    )


cummax = _cumulative_extreme("cummax", np.maximum)
cummin = _cumulative_extreme("cummin", np.minimum)

cumlogsumexp = differential(
    "cumlogsumexp",
    _cumulative(np.logaddexp),
    type=_same,
    jvp=lambda t, x, out, *, axis, reverse: recurrence(
        exp_sub(_shifted(out, -math.inf, axis, reverse), out), t * exp_sub(x, out), axis=axis, reverse=reverse
    ),
    shift=_shift_axis,
    gpu="scan.cumlogsumexp",
    doc="Running log(sum(exp(x))) along `axis`; from the end if `reverse`.",
)

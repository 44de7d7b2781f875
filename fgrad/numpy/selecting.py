"""Choice and comparison: where, clip, take, select, rounding, closeness."""

from __future__ import annotations

import numpy as np

from fgrad.core import state
from fgrad.numpy.arguments import (
    as_array,
    cast,
    counterpart,
    known,
    one_axis,
    operand,
    promoted,
    promotes_as,
    refuse,
    stands_for,
    strong,
    truth,
)
from fgrad.numpy.indexing import in_mode
from fgrad.numpy.shaping import take_axis
from fgrad.numpy.sorting import nonzero
from fgrad.ops import along
from fgrad.ops import complex as cx
from fgrad.ops import elementwise as e
from fgrad.ops import reduce as r
from fgrad.ops import shape as s

__all__ = """
    allclose around array_equal array_equiv choose clip fix isclose isneginf isposinf nan_to_num piecewise
    ravel_multi_index round select take take_along_axis unravel_index where
""".split()

# ------------------------------------------------------------------------------------------------------- where


@stands_for(np.where)
def where(condition, x=None, y=None, /, *, size=None, fill_value=None):
    """Choose elements of `x` where a condition holds, else of `y`; with the condition alone, `nonzero(condition)`.

    Args:
        condition: array of bools, or of numbers that count as True unless they are zero.
        x, y: arrays or numbers that broadcast against it.
        size, fill_value: as in `nonzero`, if that is what is meant.

    Returns:
        An array of the promoted dtype. The branch that is not taken has derivative 0, whatever its cotangent.

    Raises:
        ValueError: only one of x and y is given.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.where([True, False], [1.0, 2.0], 0.0)
        array([1., 0.])
    """
    if (x is None) != (y is None):
        raise ValueError("either both or neither of x and y should be given")
    if x is None:
        return nonzero(np.atleast_1d(operand(condition)), size=size, fill_value=fill_value)
    if state.interpreter is None:
        return np.where(condition, x, y)
    return e.select(truth(as_array(condition)), operand(x), operand(y))


@stands_for(np.clip)
def clip(a, /, a_min=None, a_max=None, out=None, *, min=None, max=None):
    """Limit values to an interval.

    Args:
        a: array.
        a_min, a_max: bounds, arrays or numbers, either may be None; `min` and `max` are other names for them.
        out: as NumPy takes it; refused on traced values.

    Returns:
        minimum(maximum(a, a_min), a_max), in NumPy's dtype. At a bound the derivative by `a` is 1; outside, the bound
        has it.

    Raises:
        TypeError: a bound is given under both of its names.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.clip([-1.0, 0.5, 2.0], 0, 1)
        array([0. , 0.5, 1. ])
    """
    for name, old, new in (("min", a_min, min), ("max", a_max, max)):
        if old is not None and new is not None:
            raise TypeError(f"clip: give either a_{name} or {name}, not both")
    low = a_min if min is None else min
    high = a_max if max is None else max
    if state.interpreter is None:
        return np.clip(a, low, high, out=out)
    refuse("clip", out=out)
    x = strong(operand(a))[0]
    low = None if low is None else operand(low)
    high = None if high is None else operand(high)
    if low is not None and high is not None:
        return e.clamp(x, low, high)
    if low is None and high is None:
        return x
    bound, inside = (low, e.ge(x, low)) if high is None else (high, e.le(x, high))
    return e.select(e.logical_or(inside, e.ne(x, x)), x, bound)


@counterpart(np.select)
def select(condlist, choicelist, default=0):
    """Choose, element by element, from the first array whose condition holds.

    Args:
        condlist: list of arrays of bools.
        choicelist: list of arrays or numbers, one for each condition.
        default: what to take where no condition holds.

    Raises:
        ValueError: the lists differ in length, or are empty.
        TypeError: a condition is no array of bools.
    """
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    conditions = [as_array(c) for c in condlist]
    if any(c.dtype.kind != "b" for c in conditions):
        raise TypeError("select: every condition must be an array of bools")
    out = operand(default)
    dtype = np.result_type(*[promotes_as(operand(c)) for c in (*choicelist, default)])
    for condition, choice in zip(conditions[::-1], list(choicelist)[::-1]):
        out = e.select(condition, operand(choice), out)
    return cast(as_array(out), dtype)


@counterpart(np.piecewise)
def piecewise(x, condlist, funclist, *args, **kw):
    """Apply, element by element, the function of the last condition that holds, or one more function where none does.

    Unlike in NumPy, functions see the whole array.
    """
    x = as_array(x)
    conditions = [truth(as_array(c)) for c in (condlist if isinstance(condlist, (list, tuple)) else [condlist])]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are "
            "expected"
        )
    rest = funclist[-1] if len(funclist) > len(conditions) else 0
    out = cast(as_array(rest(x, *args, **kw) if callable(rest) else rest), x.dtype)
    out = out if out.shape == x.shape else s.broadcast(out, shape=x.shape)
    for condition, f in zip(conditions, funclist):
        out = e.select(condition, cast(as_array(f(x, *args, **kw) if callable(f) else f), x.dtype), out)
    return out


@counterpart(np.choose)
def choose(a, choices, out=None, mode="raise"):
    """Choose, element by element, from the array whose number `a` says; `mode` "raise", "wrap" or "clip"."""
    refuse("choose", out=out)
    a = as_array(a)
    choices = promoted(
        *[as_array(c) for c in (choices if isinstance(choices, (list, tuple)) else list(as_array(choices)))]
    )
    n = len(choices)
    if mode == "wrap":
        a = e.rem(a, n)
    elif mode == "clip":
        a = e.clamp(a, 0, n - 1)
    elif known(a) is not None and ((known(a) < 0) | (known(a) >= n)).any():
        raise ValueError("invalid entry in choice array")
    shape = np.broadcast_shapes(a.shape, *[c.shape for c in choices])
    a, *choices = [s.broadcast(x, shape=shape) for x in (a, *choices)]
    stack = s.concatenate(*[s.reshape(c, shape=(1, *shape)) for c in choices], axis=0)
    return s.reshape(along.take_along(stack, s.reshape(a, shape=(1, *shape)), axis=0), shape=shape)


# -------------------------------------------------------------------------------------------------------- take


@stands_for(np.take)
def take(a, indices, axis=None, out=None, mode="raise", *, fill_value=None, **promises):
    """Return the elements of an array at indices along an axis, or of the flattened array.

    Args:
        a: array.
        indices: array of ints.
        axis: the axis; None for the flattened array.
        out: refused on traced values.
        mode: what to do out of bounds: "raise", "wrap", "clip", or "fill" (with `fill_value`).
        fill_value: what "fill" puts in; NaN, or the least int, if None.

    Raises:
        IndexError: an index is out of bounds (mode "raise").

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.take([10, 20, 30], [2, 0])
        array([30, 10])
    """
    if state.interpreter is None and mode in ("raise", "wrap", "clip"):
        return np.take(a, indices, axis, out, mode)
    refuse("take", out=out)
    x, indices = as_array(a), as_array(indices)
    if indices.dtype.kind not in "iub":
        raise TypeError(f"take: indices must be integers, got {indices.dtype}")
    if axis is None:
        x, axis = s.reshape(x, shape=(x.size,)), 0
    axis = one_axis(axis, x.ndim)
    if mode == "clip":  # NumPy takes negative indices for too small here
        indices, mode = e.max(indices, 0), "clip"
    if mode == "fill":
        from fgrad.numpy.updating import at

        return at(x)[(slice(None),) * axis + (indices,)].get(mode="fill", fill_value=fill_value)
    rows, _ = in_mode(None if mode == "raise" else mode, [cast(indices, np.intp)], [x.shape[axis]])
    return take_axis(x, rows[0], axis)


@counterpart(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    """Return the elements at an index array of as many axes, which pairs with the array off the axis; None flattens."""
    x, i = as_array(arr), as_array(indices)
    if i.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        x, axis = s.reshape(x, shape=(x.size,)), 0
    axis = one_axis(axis, x.ndim)
    if i.ndim != x.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    off = np.broadcast_shapes(*[tuple([1 if k == axis else n for k, n in enumerate(v.shape)]) for v in (x, i)])
    x, i = [
        s.broadcast(v, shape=tuple([v.shape[axis] if k == axis else n for k, n in enumerate(off)]))
        if any(v.shape[k] != n and k != axis for k, n in enumerate(off))
        else v
        for v in (x, i)
    ]
    return along.take_along(x, cast(i, np.intp), axis=axis)


@counterpart(np.ravel_multi_index)
def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """Return flat indices for a tuple of index arrays, one for each axis of an array of shape `dims`."""
    if order != "C":
        raise ValueError("ravel_multi_index: order must be 'C' on traced values")
    rows = [as_array(i) for i in multi_index]
    modes = mode if isinstance(mode, tuple) else (mode,) * len(rows)
    flat = np.zeros((), np.intp)
    for row, n, how in zip(rows, dims, modes):
        row = e.rem(row, n) if how == "wrap" else e.clamp(row, 0, n - 1) if how == "clip" else row
        flat = e.add(e.mul(flat, n), row)
    return flat


@counterpart(np.unravel_index)
def unravel_index(indices, shape, order="C"):
    """Return a tuple of index arrays, one for each axis of an array of the given shape, for flat indices."""
    if order != "C":
        raise ValueError("unravel_index: order must be 'C' on traced values")
    flat = as_array(indices)
    out = []
    for n in reversed((shape,) if isinstance(shape, int) else tuple(shape)):
        out.append(e.rem(flat, n))
        flat = e.floor_divide(flat, n)
    return tuple(out[::-1])


# -------------------------------------------------------------------------------------------- rounding, closeness


@counterpart(np.round, np.around)
def round(a, decimals=0, out=None):
    """Round to a number of decimals, halves to even; the derivative is zero."""
    refuse("round", out=out)
    x = as_array(a)
    if x.dtype.kind == "c":
        return cx.complex(round(x.real, decimals), round(x.imag, decimals))
    if decimals == 0 or (x.dtype.kind in "biu" and decimals > 0):
        return e.rint(x) if x.dtype.kind == "f" else (s.copy(x) if x.dtype.kind != "b" else cast(x, np.float16))
    scale = 10.0 ** abs(decimals)
    if x.dtype.kind in "biu":
        return cast(e.mul(e.rint(e.div(x, scale)), scale), x.dtype)
    return e.div(e.rint(e.mul(x, scale)), scale) if decimals > 0 else e.mul(e.rint(e.div(x, scale)), scale)


around = round


@counterpart(np.fix)
def fix(x, out=None):
    """Round towards zero."""
    refuse("fix", out=out)
    return e.trunc(as_array(x))


@counterpart(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """Replace NaN, inf and -inf by numbers: 0, and the greatest and least finite ones unless others are given."""
    x = as_array(x)
    if x.dtype.kind == "c":
        return cx.complex(nan_to_num(x.real, True, nan, posinf, neginf), nan_to_num(x.imag, True, nan, posinf, neginf))
    if x.dtype.kind != "f":
        return x
    limits = np.finfo(x.dtype)
    out = e.select(e.isnan(x), np.asarray(nan, x.dtype), x)
    out = e.select(e.eq(x, np.inf), np.asarray(limits.max if posinf is None else posinf, x.dtype), out)
    return e.select(e.eq(x, -np.inf), np.asarray(limits.min if neginf is None else neginf, x.dtype), out)


@counterpart(np.isclose)
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Say where abs(a - b) <= atol + rtol * abs(b); infinities are close to themselves."""
    x, y = as_array(a), as_array(b)
    if y.dtype.kind != "c":
        y = cast(y, np.result_type(y.dtype, 1.0))
    near = e.le(_magnitude(e.sub(x, y)), e.add(atol, e.mul(rtol, _magnitude(y))))
    out = e.logical_or(e.logical_and(near, e.isfinite(y)), e.eq(x, y))
    return e.logical_or(out, e.logical_and(e.isnan(x), e.isnan(y))) if equal_nan else out


def _magnitude(x):

    return cx.complex_abs(x) if x.dtype.kind == "c" else e.abs(x)


@counterpart(np.allclose)
def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Say whether all elements are close, as `isclose` has it."""
    close = as_array(isclose(a, b, rtol, atol, equal_nan))
    return r.reduce_all(close, axes=tuple(range(close.ndim)))


@counterpart(np.array_equal)
def array_equal(a1, a2, equal_nan=False):
    """Say whether two arrays have one shape and equal elements."""
    x, y = as_array(a1), as_array(a2)
    if x.shape != y.shape:
        return False
    same = e.eq(x, y)
    same = e.logical_or(same, e.logical_and(e.ne(x, x), e.ne(y, y))) if equal_nan else same
    return r.reduce_all(as_array(same), axes=tuple(range(x.ndim)))


@counterpart(np.array_equiv)
def array_equiv(a1, a2):
    """Say whether two arrays are equal after broadcasting."""
    x, y = as_array(a1), as_array(a2)
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return r.reduce_all(as_array(e.eq(x, y)), axes=tuple(range(len(shape))))


@counterpart(np.isposinf)
def isposinf(x, out=None):
    """Say where elements are inf."""
    refuse("isposinf", out=out)
    return e.eq(as_array(x), np.inf)


@counterpart(np.isneginf)
def isneginf(x, out=None):
    """Say where elements are -inf."""
    refuse("isneginf", out=out)
    return e.eq(as_array(x), -np.inf)

"""How the arguments of NumPy's functions are read: operands, dtypes, axes, shapes; and who runs, NumPy or primitives.

Where no interpreter is at work a function of this package *is* NumPy's. Under one it is composed of primitives, with
arguments made ready here: lists become arrays, Python scalars get the strong dtype a NumPy function gives them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from fgrad.core import OPERANDS, PYTHON_SCALARS, Tracer, function_table, on_gpu, state
from fgrad.errors import TracerIntegerConversionError
from fgrad.ops import elementwise as e
from fgrad.ops import shape as s

# ------------------------------------------------------------------------------------------------ who runs


def counterpart(*originals: Any) -> Callable[[Any], Any]:
    """Make the decorated function stand for NumPy functions on traced values.

    Without an interpreter the first of `originals` runs itself; the others are NumPy's aliases of it (`amax` of `max`).
    A NumPy too old to have the function passes None: then the decorated one runs always.
    """
    original = originals[0]

    def decorate(fun: Any) -> Any:
        if original is None:
            return fun

        @functools.wraps(fun)
        def dispatch(*args: Any, **kwargs: Any) -> Any:
            if state.interpreter is None:
                return original(*args, **kwargs)
            return fun(*args, **kwargs)

        for function in originals:
            function_table[function] = dispatch
        return dispatch

    return decorate


def stands_for(*originals: Any) -> Callable[[Any], Any]:
    """Make the decorated function stand for NumPy functions on traced values, and run itself always."""

    def decorate(fun: Any) -> Any:
        for function in originals:
            function_table[function] = fun
        return fun

    return decorate


def refuse(function: str, **options: Any) -> None:
    """Raise TypeError for the first option that was given: it has no meaning on traced values.

    An option counts as given unless it is None.
    """
    for name, value in options.items():
        if value is not None:
            raise TypeError(f"{function}: {name}={value!r} is not supported under a transform{_REMEDY.get(name, '')}")


_REMEDY = {
    "out": " (arrays are not written in place); use the result: y = f(x)",
    "order": "; arrays are laid out in C order",
    "casting": "; casts follow NumPy's same_kind rule",
}


# ------------------------------------------------------------------------------------------------- operands


def operand(x: Any) -> Any:
    """Return `x` as an operand of elementwise primitives: an array, a traced value or a number, which stays weak.

    Lists and tuples, also of traced values, become arrays. Raises TypeError for what is no array of numbers.
    """
    cls = x.__class__
    if cls in OPERANDS:
        return x
    if isinstance(x, (list, tuple)):
        return stack_nested(x)
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("masked arrays are refused, since their masks would be lost; pass x.data and the mask apart")
    if on_gpu(x):
        return x
    x = np.asarray(x)
    if x.dtype.kind not in "biufcV":
        raise TypeError(f"expected an array or a number, got an object of type {cls.__name__}")
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))


def stack_nested(x: Sequence[Any]) -> Any:
    """Return a list or tuple, nested to any depth, as an array; traced values may stand anywhere in it."""
    if not _holds_tracer(x):
        x = np.asarray(x)
        if x.dtype.kind not in "biufcV":
            raise TypeError(f"expected a list of numbers, got one that NumPy makes an array of {x.dtype} of")
        return x
    parts = promoted(*[as_array(stack_nested(item) if isinstance(item, (list, tuple)) else item) for item in x])
    for k, part in enumerate(parts):
        if part.shape != parts[0].shape:
            raise ValueError(
                f"a list of arrays must hold equal shapes: item 0 has {parts[0].shape}, item {k} {part.shape}"
            )
    rows = [s.reshape(part, shape=(1, *part.shape)) for part in parts]
    return s.concatenate(*rows, axis=0)


def _holds_tracer(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(_holds_tracer(item) for item in x)
    return isinstance(x, Tracer)


def as_array(x: Any) -> Any:
    """Return `x` as a strongly typed array, plain or traced: what primitives that do not promote take."""
    if x.__class__ is np.ndarray:
        return x
    if not isinstance(x, Tracer):
        x = operand(x)
        if not isinstance(x, Tracer):
            return x if on_gpu(x) else np.asarray(x)
    return x if x.shape or not x.weak_type else cast(x, x.dtype, fresh=True)


def is_weak(x: Any) -> bool:
    """Return whether an operand is a Python scalar, plain or traced."""
    return x.__class__ in PYTHON_SCALARS or (isinstance(x, Tracer) and not x.shape and x.weak_type)


def strong(*xs: Any) -> tuple[Any, ...]:
    """Return operands of which one at least is strong, so that a function of Python scalars gives a NumPy dtype."""
    for x in xs:
        if not is_weak(x):
            return xs
    return (as_array(xs[0]), *xs[1:])


def arrays(xs: Any) -> list[Any]:
    """Return a sequence of array-likes (or an array, by rows) as a list of arrays of one promoted dtype."""
    if not isinstance(xs, (list, tuple)):
        xs = list(as_array(xs))
    return promoted(*[as_array(x) for x in xs])


def promotes_as(x: Any) -> Any:
    """Return what `numpy.result_type` takes for an operand: a Python scalar for a weak one, else its dtype."""
    return x.dtype if not is_weak(x) else x.dtype.type(0).item() if isinstance(x, Tracer) else x


def promoted(*xs: Any) -> list[Any]:
    """Return arrays cast to their common dtype."""
    dtypes = {x.dtype for x in xs}
    if len(dtypes) < 2:
        return list(xs)
    dtype = np.result_type(*dtypes)
    return [cast(x, dtype) for x in xs]


def cast(x: Any, dtype: Any, fresh: bool = False) -> Any:
    """Return an array cast to `dtype`; the array itself if it has it, unless `fresh`."""
    dtype = np.dtype(dtype)
    if x.dtype == dtype and not fresh:
        return x
    return s.cast(x, dtype=dtype) if dtype.kind in "fcV" else s.to_integer(x, dtype=dtype)


def inexact(x: Any) -> Any:
    """Return an array cast to the floating dtype that NumPy's float functions (mean, var) compute in."""
    return x if x.dtype.kind in "fcV" else cast(x, np.float64)


def known(x: Any) -> Any:
    """Return the plain array behind an operand, or None if it stands for many values or for none."""
    value = x.concrete() if isinstance(x, Tracer) else x
    if on_gpu(value):
        from fgrad.triton_kernels.runtime import home_of  # loaded when there is an array on a GPU

        return home_of(value).to_numpy(value)
    return None if value is None else np.asarray(value)


def truth(x: Any) -> Any:
    """Return an array as bools: whether elements differ from zero."""
    return x if x.dtype.kind == "b" else e.ne(x, 0)


# --------------------------------------------------------------------------------------------- axes and shapes


def one_axis(axis: Any, ndim: int, name: str = "axis") -> int:
    """Return an axis as a non-negative int; AxisError if there is none, TypeError if it is no int."""
    try:
        return normalize_axis_index(operator.index(axis), ndim)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {axis!r} of type {type(axis).__name__}") from None


def many_axes(axis: Any, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Return axes (None: all, an int or several) as a sorted tuple of non-negative ints, without repeats.

    Raises AxisError if one is out of range, ValueError if one is repeated.
    """
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(normalize_axis_tuple(axis, ndim, name)))


def as_shape(shape: Any, function: str) -> tuple[int, ...]:
    """Return a shape, given as an int or a sequence of ints, as a tuple; TypeError names the function."""
    if isinstance(shape, Tracer) and not shape.shape or not hasattr(shape, "__iter__"):
        shape = (shape,)
    try:
        return tuple([operator.index(n) for n in shape])
    except TracerIntegerConversionError:
        raise
    except TypeError:
        raise TypeError(f"{function}: shape must be an int or a sequence of ints, got {shape!r}") from None


def keep_axes(x: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """Return `x`, an array of `shape` reduced over `axes`, with those axes put back at size 1."""
    return s.reshape(x, shape=tuple([1 if i in axes else n for i, n in enumerate(shape)]))


def expand_axis(x: Any, axis: int) -> Any:
    """Return an array with an axis of size 1 put in at `axis`."""
    return s.reshape(x, shape=(*x.shape[:axis], 1, *x.shape[axis:]))


def moved(x: Any, source: int, target: int) -> Any:
    """Return an array with one axis moved."""
    if source == target:
        return x
    order = [i for i in range(x.ndim) if i != source]
    order.insert(target, source)
    return s.transpose(x, perm=tuple(order))


def along(index: Any, axis: int) -> tuple[Any, ...]:
    """Return the index tuple that applies `index` to `axis` and keeps the axes before it."""
    return (slice(None),) * axis + (index,)

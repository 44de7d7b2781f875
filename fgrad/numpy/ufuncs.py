"""The functions that stand for NumPy's ufuncs, and for the reductions that are their `reduce`: how they are made.

Each is a thin function before a primitive. Without an interpreter NumPy's own runs, with every option it has; under one
the usual call goes straight to the primitive, and options are honoured or refused by name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad.core import OPERANDS, Tracer, function_table, state, ufunc_method_table, ufunc_table
from fgrad.numpy.arguments import as_array, cast, is_weak, operand, refuse
from fgrad.ops import shape as s

Function = Callable[..., Any]

_OPTIONS = [
    inspect.Parameter("out", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None),
    inspect.Parameter("where", inspect.Parameter.KEYWORD_ONLY, default=True),
    inspect.Parameter("dtype", inspect.Parameter.KEYWORD_ONLY, default=None),
]

_ARGUMENTS = """

    Args:
        {operands}.
        out, where: as NumPy's `{name}` takes them; refused on traced values.
        dtype: the dtype to compute in.

    Returns:
        The value for each element; inputs broadcast and promote as NumPy's do."""


def _operand_names(count: int) -> tuple[str, ...]:
    return ("x1", "x2")[:count] if count > 1 else ("x",)


@functools.cache
def _signature(count: int) -> inspect.Signature:
    """Return the signature of functions of so many operands, made once for all of them."""
    operands = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in _operand_names(count)]
    return inspect.Signature([*operands, *_OPTIONS])


def _finish(function: Any, ufunc: np.ufunc, doc: str) -> Function:
    """Give a function its name, signature and documentation, and enter it for NumPy's protocol."""
    names = _operand_names(ufunc.nin)
    function.__name__ = function.__qualname__ = ufunc.__name__
    function.__module__ = "fgrad.numpy"
    function.__signature__ = _signature(ufunc.nin)
    kinds = f"{', '.join(names)}: array{'s' if ufunc.nin > 1 else ''} or numbers, or nested lists of them"
    function.__doc__ = doc + _ARGUMENTS.format(operands=kinds, name=ufunc.__name__)
    ufunc_table[ufunc] = function
    if ufunc.nin == 2 and ufunc.nout == 1 and ufunc.signature is None:
        ufunc_method_table[ufunc, "outer"] = functools.partial(_outer, function)
    return function  # type: ignore[no-any-return]


def unary(ufunc: np.ufunc, prim: Any, doc: str) -> Function:
    """Return the function of one operand that stands for `ufunc` by a primitive."""

    def function(x: Any, /, *args: Any, **options: Any) -> Any:
        interpreter = state.interpreter
        if interpreter is None:
            return ufunc(x, *args, **options)
        if args or options:
            return _with_options(function, ufunc, (x, *args), options)
        if x.__class__ not in OPERANDS:
            x = operand(x)
        return interpreter.process(prim, (x,), {})

    return _finish(function, ufunc, doc)


def binary(ufunc: np.ufunc, prim: Any, doc: str) -> Function:
    """Return the function of two operands that stands for `ufunc` by a primitive.

    A primitive that stands for an operator keeps Python scalars weak; a function gives NumPy's strong dtype.
    """
    operator = prim.declared.get("operator")

    def function(x1: Any, x2: Any, /, *args: Any, **options: Any) -> Any:
        interpreter = state.interpreter
        if interpreter is None:
            return ufunc(x1, x2, *args, **options)
        if args or options:
            return _with_options(function, ufunc, (x1, x2, *args), options)
        if x1.__class__ not in OPERANDS:
            x1 = operand(x1)
        if x2.__class__ not in OPERANDS:
            x2 = operand(x2)
        if operator and is_weak(x1) and is_weak(x2):
            x1 = as_array(x1)
        return interpreter.process(prim, (x1, x2), {})

    return _finish(function, ufunc, doc)


def composed(ufunc: np.ufunc, definition: Function, doc: str) -> Function:
    """Return the function that stands for `ufunc` by a definition in other functions, of operands."""

    def function(*args: Any, **options: Any) -> Any:
        if state.interpreter is None:
            return ufunc(*args, **options)
        if options or len(args) != ufunc.nin:
            return _with_options(function, ufunc, args, options)
        return definition(*[operand(x) for x in args])

    return _finish(function, ufunc, doc)


_HARMLESS = {"casting": "same_kind", "order": "K", "subok": True}
"""Options that change nothing when they have these values, which are NumPy's defaults."""


def _with_options(function: Function, ufunc: np.ufunc, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call the function that stands for a ufunc with NumPy's options: honour them or refuse them by name."""
    name = ufunc.__name__
    if not ufunc.nin <= len(args) <= ufunc.nargs:
        raise TypeError(f"{name}() takes {ufunc.nin} operands, got {len(args)} positional arguments")
    inputs, outs = args[: ufunc.nin], args[ufunc.nin :]
    dtype, out, where = options.pop("dtype", None), options.pop("out", None), options.pop("where", True)
    for given in (*outs, *(out if isinstance(out, tuple) else (out,))):
        refuse(name, out=given)
    if where is not True:
        raise TypeError(
            f"{name}: where= leaves elements undefined, which a transform cannot; write "
            f"fgrad.numpy.where(mask, fgrad.numpy.{name}(x), other)"
        )
    refuse(name, **{key: value for key, value in options.items() if value != _HARMLESS.get(key)})
    if dtype is not None:
        inputs = tuple([cast(as_array(x), dtype) for x in inputs])
    return function(*inputs)


def _outer(function: Function, x1: Any, x2: Any, /, **options: Any) -> Any:
    """Apply a binary function to all pairs of elements, as the method `outer` of NumPy's ufuncs."""
    x1, x2 = as_array(x1), as_array(x2)
    return function(s.reshape(x1, shape=(*x1.shape, *(1,) * x2.ndim)), x2, **options)


# ------------------------------------------------------------------------------------------------ reductions

_EVERY = [tuple(range(ndim)) for ndim in range(65)]


def reduction(numpy_function: Any, prim: Any, kinds: str, *aliases: Any) -> Callable[[Function], Function]:
    """Give a reduction its fast path; the decorated function is the general one.

    The fast path takes an array or traced value of one of the dtype `kinds` and all axes or one, and goes straight to
    the primitive. Without an interpreter `numpy_function` runs.
    """

    def decorate(general: Function) -> Function:
        @functools.wraps(general)
        def function(a: Any, axis: Any = None, *args: Any, **options: Any) -> Any:
            interpreter = state.interpreter
            if interpreter is None:
                return numpy_function(a, axis, *args, **options)
            if not args and not options and (a.__class__ is np.ndarray or isinstance(a, Tracer)):
                ndim = len(a.shape)
                if ndim and a.dtype.kind in kinds:
                    if axis is None:
                        return interpreter.process(prim, (a,), {"axes": _EVERY[ndim]})
                    if axis.__class__ is int and -ndim <= axis < ndim:
                        return interpreter.process(prim, (a,), {"axes": (axis % ndim,)})
            return general(a, axis, *args, **options)

        for original in (numpy_function, *aliases):
            function_table[original] = function
        return function

    return decorate


def reduce_method(ufunc: np.ufunc, function: Function) -> None:
    """Let a reduction stand for the method `reduce` of a ufunc, whose axis is 0 by default."""

    def reduce(
        a: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, **options: Any
    ) -> Any:
        if dtype is not None:
            a = cast(as_array(a), dtype)
        return function(a, axis, out=out, keepdims=keepdims, **options)

    ufunc_method_table[ufunc, "reduce"] = reduce


def accumulate_method(ufunc: np.ufunc, function: Function) -> None:
    """Let a cumulative function stand for the method `accumulate` of a ufunc, whose axis is 0 by default."""

    def accumulate(a: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        return function(a, axis, dtype, out)

    ufunc_method_table[ufunc, "accumulate"] = accumulate


def protocol_of(ufunc: Any) -> Callable[[Function], Function]:
    """Make the decorated function stand for a generalised ufunc (`matmul`), None if NumPy is too old to have it."""

    def decorate(fun: Function) -> Function:
        if ufunc is None:
            return fun

        @functools.wraps(fun)
        def dispatch(*args: Any, **options: Any) -> Any:
            if state.interpreter is None:
                return ufunc(*args, **options)
            return fun(*args, **options)

        ufunc_table[ufunc] = dispatch
        return dispatch

    return decorate

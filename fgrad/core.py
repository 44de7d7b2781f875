"""The dispatcher: primitives, the interpreters that give them meaning, and the values they own.

One rule: a primitive asks the current interpreter what it means. `None` means "just compute". An interpreter
has a parent, to which it hands whatever does not concern it. Nothing here knows of derivatives or of any
particular primitive; operators and NumPy functions on traced values are looked up in registries that the
floors above fill at import. Every eager operation passes through this file, so it stays one.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from fgrad.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from fgrad.source import user_line

Params = dict[str, Any]

PYTHON_SCALARS = {bool: np.dtype(bool), int: np.dtype(int), float: np.dtype(float), complex: np.dtype(complex)}


# ------------------------------------------------------------------------------------------------ array types


class ArrayType:
    """Shape and dtype of an array; `weak` marks a Python scalar, which gives way in promotion."""

    __slots__ = ("shape", "dtype", "weak")

    def __init__(self, shape: tuple[int, ...], dtype: Any, weak: bool = False):
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.weak = weak

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    def with_shape(self, shape: Sequence[int]) -> ArrayType:
        """Return this type with another shape; a weak type stays weak only as a scalar."""
        return ArrayType(tuple(shape), self.dtype, self.weak and not shape)

    def with_dtype(self, dtype: Any) -> ArrayType:
        """Return this type with another, strong dtype."""
        return ArrayType(self.shape, dtype)

    def strong(self) -> ArrayType:
        """Return this type without weakness."""
        return ArrayType(self.shape, self.dtype) if self.weak else self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayType):
            return NotImplemented
        return self.shape == other.shape and self.dtype == other.dtype and self.weak == other.weak

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak))

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]{'*' if self.weak else ''}"


_new = object.__new__


def type_of(x: Any) -> ArrayType:
    """Return the `ArrayType` of an array, a Python scalar or a traced value; TypeError for anything else."""
    cls = x.__class__
    if cls is np.ndarray:
        dtype = x.dtype
        if dtype.kind not in "fiubcV":
            raise TypeError(f"arrays of dtype {dtype} cannot be differentiated or traced, got one of shape {x.shape}")
        kind = _new(ArrayType)  # without its __init__, which has nothing to convert here
        kind.shape, kind.dtype, kind.weak = x.shape, dtype, False
        return kind
    if cls in PYTHON_SCALARS:
        return ArrayType((), PYTHON_SCALARS[cls], weak=True)
    if isinstance(x, Tracer):
        return x.type
    if isinstance(x, ArrayType):
        return x
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return ArrayType(tuple(x.shape), x.dtype)
    raise TypeError(f"not an array or a number: {x!r} of type {cls.__name__}")


def on_gpu(x: Any) -> bool:
    """Return whether a plain value is an array on a GPU."""
    return x.__class__ is not np.ndarray and hasattr(x, "__cuda_array_interface__")


def held(x: Any) -> Any:
    """Return the array behind a traced value, or a batch of them, to ask where it lies; None if it holds none."""
    while isinstance(x, Tracer):
        inner = getattr(x, "value", None)
        x = x.concrete() if inner is None else inner
    return x


class Elsewhere:
    """The upward call of this floor, set by `fgrad.transforms`: a primitive applied to arrays on a GPU."""

    compute: Callable[[Primitive, Sequence[Any], Params], Any]


elsewhere = Elsewhere()


def recover(prim: Primitive, args: Sequence[Any], params: Params) -> Any:
    """Apply a primitive that has just failed, for want of a function of the array library, to arrays on a GPU.

    Called where the error is handled, which is raised again if nothing is on a GPU: nobody else pays for the question.
    """
    if not is_on_gpu(args):
        raise
    return elsewhere.compute(prim, args, params)


def is_on_gpu(args: Sequence[Any]) -> bool:
    """Return whether plain values, without a traced one among them, are on a GPU."""
    return any(map(on_gpu, args)) and not any(isinstance(x, Tracer) for x in args)


_SMALL = 2048  # elements that are copied faster than NumPy makes a broadcast view


def broadcast_array(x: Any, *, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return `np.broadcast_to(x, shape)`; a small result is a copy, which is faster to make."""
    size = 1
    for n in shape:
        size *= n
    if size > _SMALL:
        return np.broadcast_to(x, shape)
    x = np.asarray(x)
    if x.ndim > len(shape):
        raise ValueError(f"cannot broadcast an array of shape {x.shape} to shape {shape}")
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


# ---------------------------------------------------------------------------------- interpreters and their state


class _State(threading.local):
    interpreter: Interpreter | None = None


state = _State()


class Interpreter:
    """Gives primitives a meaning; `process` is all that a transform must define.

    `parent` handles what this interpreter passes on; `label` says what is being done, for messages.
    """

    parent: Interpreter | None
    label: str

    def __init__(self, label: str):
        self.parent = state.interpreter
        self.label = label

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        """Apply `prim` to `args`, some of which may be tracers of this interpreter."""
        raise NotImplementedError(f"{type(self).__name__} defines no process()")

    def pass_on(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        """Apply `prim` one level down: by the parent, or by plain computation."""
        parent = self.parent
        if parent is not None:
            return parent.process(prim, args, params)
        for arg in args:
            if isinstance(arg, Tracer):
                raise_leaked(arg)
        try:
            return prim.impl(*args, **params)
        except Exception:
            return recover(prim, args, params)

    def missing_rule(self, prim: Primitive) -> NoReturn:
        """Raise the error for a primitive that this interpreter has no rule for."""
        raise NotImplementedError(f"primitive '{prim.name}' has no rule for {type(self).__name__}")

    def __enter__(self) -> Interpreter:
        self.parent = state.interpreter
        state.interpreter = self
        return self

    def __exit__(self, *exc: object) -> None:
        state.interpreter = self.parent


# ------------------------------------------------------------------------------------------------- primitives


class Primitive:
    """A named operation on arrays: how to compute it, its type rule and its derivative, by kind.

    Made by the constructors of `fgrad.kinds`, never by subclassing. `impl(*args, **params)` computes on plain
    arrays; `type_rule(*types, **params)` gives the type, or a tuple of types if `multiple`. `plans` and
    `push_plans` cache, per set of differentiated inputs, what is saved and how cotangents and tangents move.
    `rules` holds the meaning of structured primitives (`cond`, `scan`, custom rules …) per interpreter class.
    """

    __slots__ = (
        "name",
        "kind",
        "impl",
        "type_rule",
        "inputs",
        "outputs",
        "multiple",
        "make_plan",
        "plans",
        "push_plans",
        "batch",
        "rules",
        "definition",
        "declared",
        "gpu",
        "doc",
    )

    def __init__(
        self,
        name: str,
        kind: str,
        impl: Callable[..., Any],
        type_rule: Callable[..., Any],
        *,
        inputs: tuple[str, ...] = (),
        outputs: tuple[str, ...] = ("out",),
        make_plan: Callable[[Primitive, int, bool], Any] | None = None,
        batch: Callable[..., Any] | None = None,
        definition: Callable[..., Any] | None = None,
        declared: Params | None = None,
        gpu: str | None = None,
        doc: str = "",
        multiple: bool | None = None,
    ):
        self.name = name
        self.kind = kind
        self.impl = impl
        self.type_rule = type_rule
        self.inputs = inputs
        self.outputs = outputs
        self.multiple = len(outputs) > 1 if multiple is None else multiple
        self.make_plan = make_plan
        self.plans: dict[int, Any] = {}
        self.push_plans: dict[int, Any] = {}
        self.batch = batch
        self.rules: dict[type, Callable[..., Any]] = {}
        self.definition = definition
        self.declared = declared or {}
        self.gpu = gpu
        self.doc = doc

    def __call__(self, *args: Any, **params: Any) -> Any:
        interpreter = state.interpreter
        if interpreter is None:
            try:
                return self.impl(*args, **params)
            except Exception:
                return recover(self, args, params)
        return interpreter.process(self, args, params)

    def __repr__(self) -> str:
        return f"<{self.kind} primitive {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _primitive_named, (self.name,)


class Table(dict[str, Primitive]):
    """Primitives by name, in order of declaration. Families named in `late` are imported when one is looked for."""

    def __init__(self) -> None:
        self.late: list[str] = []

    def __missing__(self, name: str) -> Primitive:
        self.complete()
        if name not in self:
            raise KeyError(name)
        return self[name]

    def complete(self) -> None:
        """Import the families that are not in the table yet."""
        while self.late:
            import_module(self.late.pop())


TABLE = Table()
"""Every primitive by name."""


def register(prim: Primitive) -> Primitive:
    """Enter a primitive into the table; ValueError if the name is taken."""
    if prim.name in TABLE:
        raise ValueError(f"a primitive named '{prim.name}' exists already")
    TABLE[prim.name] = prim
    return prim


def _primitive_named(name: str) -> Primitive:
    return TABLE[name]


# --------------------------------------------------------------------------------------------------- tracers

ufunc_table: dict[Any, Callable[..., Any]] = {}
"""NumPy ufunc -> the function that stands for it on traced values. Filled by `fgrad.numpy`."""

late_functions: dict[str, str] = {}
"""Module of NumPy -> the module that, once imported, enters its functions in `function_table`."""

function_table: dict[Any, Callable[..., Any]] = {}
"""NumPy function -> the function that stands for it on traced values. Filled by `fgrad.numpy`."""

ufunc_method_table: dict[tuple[Any, str], Callable[..., Any]] = {}
"""(NumPy ufunc, method name such as "reduce") -> the function that stands for it. Filled by `fgrad.numpy`."""

probe_providers: list[str] = []
"""Modules whose entry points a profiler exchanges while it is at work, see `fgrad.profiler.probes`. Filled by layers
above."""

OPERANDS: set[type] = {np.ndarray, bool, int, float, complex, *(np.dtype(c).type for c in "?bBhHiIlLqQefdgFD")}
"""Classes that operators of traced values pass on as they are; others are converted or refused."""


class Tracer:
    """A value owned by one interpreter. Behaves like the array it stands for.

    Operators and NumPy's methods are attached to this class by the floors above.
    """

    __slots__ = ("interpreter",)
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 1000.0
    __pandas_priority__ = 5000  # a Series or DataFrame on the left leaves the operation to this class
    interpreter: Any

    def __init_subclass__(cls) -> None:
        OPERANDS.add(cls)

    @property
    def type(self) -> ArrayType:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def weak_type(self) -> bool:
        return self.type.weak

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def aval(self) -> ArrayType:
        return self.type

    def concrete(self) -> Any:
        """Return the plain value this tracer holds, or None if it stands for many or for none."""
        return None

    # Python's conversions: allowed where a value exists and no derivative is cut.

    def __bool__(self) -> bool:
        value = self.concrete()
        if value is None:
            raise TracerBoolConversionError(
                _concretization(self, "the truth of a traced value was asked for (if, while, and, or, not, assert)")
                + "\nRemedy: use fgrad.numpy.where or fgrad.lax.cond / while_loop; under jit, a value that only steers"
                " Python can be made static with static_argnums or static_argnames."
            )
        return bool(value)

    def __index__(self) -> int:
        return self._integer("__index__")

    def __int__(self) -> int:
        return self._integer("__int__")

    def _integer(self, method: str) -> int:
        value = self.concrete()
        if value is None:
            raise TracerIntegerConversionError(
                _concretization(self, "a traced value was used as a Python integer (int, range, a shape, a list index)")
                + "\nRemedy: under jit make the argument static (static_argnums); to index a plain array or a list,"
                " fgrad.numpy.at(x)[i].get(); in place of range, fgrad.lax.fori_loop."
            )
        return int(getattr(value, method)())

    def __float__(self) -> float:
        raise ConcretizationTypeError(_cut(self, "float(x)"))

    def __complex__(self) -> complex:
        raise ConcretizationTypeError(_cut(self, "complex(x)"))

    def item(self, *args: Any) -> NoReturn:
        raise ConcretizationTypeError(_cut(self, "x.item()"))

    def tolist(self) -> NoReturn:
        raise ConcretizationTypeError(_cut(self, "x.tolist()"))

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        if state.interpreter is None:
            raise_leaked(self)
        raise TracerArrayConversionError(
            f"a value traced by {self.interpreter.label} ({self.type}) cannot become a NumPy array at {user_line()}: "
            "that would cut the derivative or freeze one value."
            "\nRemedy: use the fgrad.numpy function of the same name, or fgrad.stop_gradient(x) to cut on purpose."
        )

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            f"a traced value ({self.type}) does not support item assignment at {user_line()}: arrays are not changed "
            "in place under a transform.\nRemedy: x = x.at[index].set(value)."
        )

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of a 0-d traced value")
        return shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d traced value")
        return iter([self[i] for i in range(self.shape[0])])  # type: ignore[index]

    def __reversed__(self) -> Iterator[Any]:
        return iter([self[i] for i in reversed(range(len(self)))])  # type: ignore[index]

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __repr__(self) -> str:
        return f"Traced<{self.type}> in {self.interpreter.label}"

    def __format__(self, spec: str) -> str:
        return repr(self)

    # NumPy's protocols: `np.tanh(x)` and `np.concatenate([x, y])` find their fgrad counterparts here.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if state.interpreter is None:
            raise_leaked(self)
        if method == "__call__":
            fun = ufunc_table.get(ufunc)
        else:
            fun = ufunc_method_table.get((ufunc, method))
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        if kwargs.get("out", (None,))[0] is not None:
            raise TypeError(
                f"numpy.{name} cannot write a traced value ({self.type}) into an existing array (out= or an in-place "
                f"operator such as +=) at {user_line()}.\nRemedy: write y = y + x, or y = y.at[index].add(x)."
            )
        kwargs.pop("out", None)
        if fun is None:
            raise TypeError(_no_counterpart(self, name))
        return fun(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if state.interpreter is None:
            raise_leaked(self)
        module = getattr(func, "__module__", None) or "numpy"
        if func not in function_table and module in late_functions:
            import_module(late_functions.pop(module))
        fun = function_table.get(func)
        if fun is None:
            name = getattr(func, "__name__", repr(func))
            raise TypeError(_no_counterpart(self, f"{module.removeprefix('numpy').lstrip('.')}.{name}".lstrip(".")))
        return fun(*args, **kwargs)


def coerce(x: Any) -> Any:
    """Return `x` as an operand of an operator, or NotImplemented."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("masked arrays are refused, since their masks would be lost; pass x.data and the mask apart")
    if isinstance(x, np.ndarray):
        return np.asarray(x)
    if isinstance(x, (np.generic, Tracer)) or on_gpu(x):
        return x
    if isinstance(x, (list, tuple)):
        if any(isinstance(item, Tracer) for item in x):
            return np.stack([coerce(item) for item in x])
        return np.asarray(x)
    if hasattr(x, "__pandas_priority__"):  # a Series, DataFrame or Index
        return np.asarray(x)
    return NotImplemented


def binary_operator(prim: Primitive) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Return the operator method of a binary primitive and its reflected form."""

    def method(self: Tracer, other: Any) -> Any:
        interpreter = state.interpreter
        if interpreter is None:
            raise_leaked(self)
        if other.__class__ not in OPERANDS:
            other = coerce(other)
            if other is NotImplemented:
                return other
        return interpreter.process(prim, (self, other), {})

    def reflected(self: Tracer, other: Any) -> Any:
        interpreter = state.interpreter
        if interpreter is None:
            raise_leaked(self)
        if other.__class__ not in OPERANDS:
            other = coerce(other)
            if other is NotImplemented:
                return other
        return interpreter.process(prim, (other, self), {})

    return method, reflected


def unary_operator(prim: Primitive) -> Callable[[Any], Any]:
    """Return the operator method of a unary primitive."""

    def method(self: Tracer) -> Any:
        interpreter = state.interpreter
        if interpreter is None:
            raise_leaked(self)
        return interpreter.process(prim, (self,), {})

    return method


def _no_counterpart(tracer: Tracer, name: str) -> str:
    last = name.rpartition(".")[2]
    known = any(f.__name__ == last for f in (*function_table, *ufunc_table))
    alike = f"use fgrad.numpy.{last} if it suits, " if known else ""
    home = "numpy."
    if not ("." in name or hasattr(np, name)):  # a ufunc of another library
        home, alike = "", f"use fgrad.scipy.special.{name} if it is SciPy's, "
    return (
        f"{home}{name} has no derivative-aware counterpart and cannot run on a value traced by "
        f"{tracer.interpreter.label} ({tracer.type}) at {user_line()}."
        f"\nRemedy: {alike}compose it from functions of fgrad.numpy, or give it a rule with fgrad.custom_vjp or "
        "custom_jvp."
    )


def _concretization(tracer: Tracer, what: str) -> str:
    return (
        f"{what}, at {user_line()}. The value {tracer.type} is traced by {tracer.interpreter.label} and has no single "
        "value there."
    )


def _cut(tracer: Tracer, what: str) -> str:
    return (
        f"{what} on a value traced by {tracer.interpreter.label} ({tracer.type}) at {user_line()} would cut the "
        "derivative silently.\nRemedy: keep it an array (in place of a[i] = x, a = fgrad.numpy.at(a)[i].set(x)), or "
        "cut on purpose with fgrad.stop_gradient(x); int(x) and bool(x) are allowed where the value is known."
    )


def leaked_error(tracer: Tracer) -> UnexpectedTracerError:
    """Return the error for a tracer that is used outside the transform that made it."""
    return UnexpectedTracerError(
        f"a value traced by {tracer.interpreter.label} ({tracer.type}) leaked: it was used at {user_line()}, where "
        "that transform does not apply (it has ended, or this is a custom rule or another thread).\nRemedy: return the "
        "value from the function instead of storing it, or pass it as an argument."
    )


def raise_leaked(tracer: Tracer) -> NoReturn:
    """Raise `leaked_error(tracer)`."""
    raise leaked_error(tracer)


class ValueTracer(Tracer):
    """A tracer that holds the value it stands for, plain or a tracer of an enclosing transform."""

    __slots__ = ("value",)
    value: Any

    @property
    def type(self) -> ArrayType:
        return type_of(self.value)

    @property
    def shape(self) -> tuple[int, ...]:
        value = self.value
        return () if value.__class__ in PYTHON_SCALARS else value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        value = self.value
        return PYTHON_SCALARS.get(value.__class__) or value.dtype

    def concrete(self) -> Any:
        value = self.value
        return value.concrete() if isinstance(value, Tracer) else value

    def __bool__(self) -> bool:
        return bool(self.value)

    def _integer(self, method: str) -> int:
        return operator.index(self.value) if method == "__index__" else int(self.value)


class _ArrayMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (np.ndarray, Tracer))


class Array(metaclass=_ArrayMeta):
    """What transforms take and give: `isinstance(x, fgrad.Array)` holds of NumPy arrays and traced values."""

"""jit: record a function once per signature and run the simplified Program from then on.

Also `eval_shape` and `make_ir`, which stop after recording.
"""

from __future__ import annotations

import functools
import inspect
import re
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fgrad import forks, tree
from fgrad.backend.guard import MISS, make_guard
from fgrad.core import PYTHON_SCALARS, ArrayType, Tracer, on_gpu, type_of
from fgrad.ops.control import call
from fgrad.placement import Placed, recording_for
from fgrad.program import Program, Traced, trace
from fgrad.source import function_label
from fgrad.transforms.linearize import as_operand, check_callable, result
from fgrad.transforms.programs import has_tracers

if TYPE_CHECKING:  # what generates code is loaded when the first function is compiled
    from fgrad.backend.cpu import Compiled
    from fgrad.backend.gpu.device import OnDevice
    from fgrad.backend.gpu.lowered import LoweredGpu
    from fgrad.backend.lowered import Lowered

CACHE_SIZE = 1024
"""Signatures kept by one jitted function; the least recently used goes first."""


_caches = forks.lock()
"""Held while a cache of any function is read or written, which is short."""


class _Switch(threading.local):
    """What a call of a jitted function does in this thread.

    `on`: run compiled code. `interpreting`: apply the Program to the current interpreter, one equation at a time.
    Neither: run the function as plain Python.
    """

    on = True
    interpreting = False


_switch = _Switch()


class CacheInfo(NamedTuple):
    """What `f.cache_info()` returns."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


class _Entry:
    """One signature of a jitted function: what runs, and how the results are put together.

    `closed` has its constants inside, for compiling; `program` takes them (`consts`) as operands, for other transforms.
    `donated` are the numbers of the leaves that results may be written over.
    """

    __slots__ = (
        "closed",
        "program",
        "out_tree",
        "consts",
        "compiled",
        "overwriting",
        "fast_math",
        "donated",
        "device",
        "replay",
        "tune",
    )

    def __init__(
        self,
        closed: Program,
        out_tree: Any,
        fast_math: bool,
        donated: Sequence[int] = (),
        device: str | None = None,
        replay: bool = False,
        tune: bool = False,
    ):
        self.device = device
        self.replay = replay
        self.tune = tune
        self.fast_math = fast_math
        self.donated = donated
        self.closed = closed
        program, self.consts = closed.lifted()
        if device is not None:
            program.on(Placed(device, fast_math, tune, {id(x): (x, x) for x in self.consts}))
        self.program = program
        self.out_tree = out_tree
        self.compiled: Compiled | None = None
        self.overwriting: Compiled | None = None

    def compiled_for(self, leaves: Sequence[Any]) -> Compiled | OnDevice:
        """Return the code that computes on plain values, generated when first asked for."""
        if self.device is not None or any(map(on_gpu, leaves)):
            from fgrad.backend.gpu.device import OnDevice

            return OnDevice(self.closed, self.device, self.fast_math, self.replay, self.tune)
        if self.donated:
            from fgrad.backend.donation import may_overwrite

            if may_overwrite(leaves, self.donated):
                if self.overwriting is None:
                    self.overwriting = self._generate(self.donated)
                return self.overwriting
        if self.compiled is None:
            self.compiled = self._generate()
        return self.compiled

    def _generate(self, donated: Sequence[int] = ()) -> Compiled:
        from fgrad.backend.cpu import Compiled

        compiled = Compiled(self.closed, self.fast_math, donated=donated)
        useless = [str(self.closed.in_types[k]) for k in donated if k not in compiled.over.values()]
        if useless:
            warnings.warn(f"Some donated buffers were not usable: {', '.join(useless)}", stacklevel=6)
        return compiled

    def run(self, leaves: Sequence[Any]) -> Any:
        """Compute on plain values."""
        return tree.unflatten(self.out_tree, self.compiled_for(leaves).compute(*leaves))


class JittedFunction:
    """The callable that `jit` returns. See `jit`."""

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: Any,
        static_argnames: Any,
        donate_argnums: Any,
        donate_argnames: Any,
        fast_math: bool,
        device: str | None = None,
        replay: bool = False,
        tune: bool = False,
    ):
        self._fast_math = fast_math
        self._replay = replay
        self._tune = tune
        self._device = _checked_device(device)
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._label = function_label("jit", fun)
        self._static_numbers, self._static_names = _chosen(fun, "static", static_argnums, static_argnames)
        self._donated_numbers, self._donated_names = _chosen(fun, "donate", donate_argnums, donate_argnames)
        both = self._static_names & self._donated_names or {*self._static_numbers} & {*self._donated_numbers}
        if both:
            raise ValueError(f"{self._label}: {sorted(both)} cannot be both static and donated")
        self._cache: OrderedDict[Any, _Entry] = OrderedDict()
        self._hits = self._misses = 0
        self._guard: Callable[[Any], Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        guard = self._guard
        if guard is not None and not kwargs and _switch.on:
            out = guard(args)
            if out is not MISS:
                return out
        return self._call(args, kwargs)

    def _call(self, args: Any, kwargs: Any) -> Any:
        """Call by way of the cache: what the guard does not recognise."""
        if not jit_enabled():
            return self._fun(*args, **kwargs)
        leaves, key, static = self._signature(args, kwargs)
        entry = self._entry(key, static)
        if _switch.interpreting or has_tracers(entry.consts) or has_tracers(leaves):
            outs = call(*entry.consts, *leaves, program=entry.program)
            seen = {id(x) for x in (*entry.consts, *leaves)}
            return tree.unflatten(entry.out_tree, [result(x, seen) for x in outs])
        out = entry.run(leaves)
        if entry.compiled is not None and not (kwargs or self._static_numbers or entry.donated):
            self._guard = make_guard(self, key[0], leaves, entry)
        return out

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _signature(self, args: Any, kwargs: Any) -> tuple[list[Any], Any, Any]:
        """Return the leaves, the cache key, and the call with its static arguments set apart."""
        count = len(args)
        fixed = {n % count if -count <= n < count else n for n in self._static_numbers}
        static = tuple((i, _hashable(args[i], i, self._label)) for i in sorted(fixed) if i < count)
        named = tuple((k, _hashable(kwargs[k], k, self._label)) for k in sorted(kwargs) if k in self._static_names)
        dynamic = [x for i, x in enumerate(args) if i not in fixed]
        options = {k: x for k, x in kwargs.items() if k not in self._static_names}
        leaves, treedef = tree.flatten((dynamic, options))
        try:
            leaves = [as_operand(x) for x in leaves]
        except TypeError:
            self._refuse((dynamic, options), dict(static))
            raise
        kinds = tuple([type_of(x) for x in leaves])
        typed = tuple((type(v), v) for _, v in (*static, *named))
        return leaves, (treedef, kinds, static, named, (*typed, _switch.interpreting)), (count, static, named)

    def _refuse(self, arguments: Any, fixed: dict[int, Any]) -> None:
        """Raise TypeError for the first leaf that is no operand, by the name of its argument."""
        for path, x in tree.leaves_with_path(arguments):
            try:
                as_operand(x, f"argument {_argument_name(path, fixed)}")
            except TypeError as error:
                remedy = "Non-array arguments can be made static with static_argnums."
                raise TypeError(f"{self._label}: {error}. {remedy}") from None

    def _entry(self, key: Any, static: Any) -> _Entry:
        """Return what is known of a signature; record the function if it is new."""
        with _caches:
            known = self._cache.get(key)
            if known is not None:
                self._hits += 1
                self._cache.move_to_end(key)
                return known
            self._misses += 1
            last = next(reversed(self._cache), None)
        if last is not None:
            self._log_retrace(last, key)
        traced = self._trace(key[0], key[1], static)
        donated = self._donated_leaves(key[0], static)
        program = traced.program.simplify()
        entry = _Entry(program, traced.out_tree, self._fast_math, donated, self._device, self._replay, self._tune)
        if not has_tracers(entry.consts):  # a Program that closes over a traced value lives for this call only
            with _caches:
                self._cache[key] = entry
                if len(self._cache) > CACHE_SIZE:
                    self._cache.popitem(last=False)
        return entry

    def _donated_leaves(self, treedef: Any, static: Any) -> list[int]:
        """Return the numbers of the leaves that belong to donated arguments."""
        if not (self._donated_numbers or self._donated_names):
            return []
        count, fixed, _ = static
        marks = tree.unflatten(treedef, range(treedef.num_leaves))
        places = [i for i in range(count) if i not in dict(fixed)]
        chosen = {n % count if n < 0 else n for n in self._donated_numbers}
        given = [x for i, x in zip(places, marks[0], strict=True) if i in chosen]
        named = [x for name, x in marks[1].items() if name in self._donated_names]
        return sorted(tree.leaves((given, named)))

    def _log_retrace(self, old: Any, new: Any) -> None:
        import logging  # takes as long to import as all of fgrad.transforms

        log = logging.getLogger("fgrad.jit")
        if log.isEnabledFor(logging.INFO):
            log.info("%s is recorded again: %s", self._label, explain_retrace(old, new))

    def _trace(self, treedef: Any, kinds: Sequence[ArrayType], static: Any) -> Traced:
        count, fixed, named = static

        def fun(*dynamic: Any, **options: Any) -> Any:
            rest = iter(dynamic)
            positions = dict(fixed)
            full = [positions[i] if i in positions else next(rest) for i in range(count)]
            return self._fun(*full, **options, **dict(named))

        with recording_for(self._device):
            return trace(fun, kinds, treedef, self._label)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Return the recorded Program for these arguments, with the trees of arguments and outputs."""
        _, key, static = self._signature(args, kwargs)
        return self._trace(key[0], key[1], static)

    def lower(self, *args: Any, target: str | None = None, **kwargs: Any) -> Lowered | LoweredGpu:
        """Return what these arguments are compiled to: Programs, source, memory and work. It prints.

        Args:
            *args, **kwargs: the arguments of a call.
            target: a GPU to compile for, as in "sm_90" (needs Triton, no GPU); None for this CPU.

        Example:
            >>> import numpy as np, fgrad
            >>> fgrad.jit(lambda x: np.tanh(x) * 2).lower(np.zeros(3)).flops
            6
        """
        program = self.trace(*args, **kwargs).program.simplify()
        if target is not None:
            from fgrad.backend.gpu.lowered import LoweredGpu

            return LoweredGpu(program, target, self._fast_math)
        from fgrad.backend.lowered import Lowered

        return Lowered(program, self._fast_math)

    def cache_info(self) -> CacheInfo:
        """Return hits, misses, the bound and the number of signatures kept."""
        return CacheInfo(self._hits, self._misses, CACHE_SIZE, len(self._cache))

    def clear_cache(self) -> None:
        """Forget all recorded Programs."""
        with _caches:
            self._cache.clear()
            self._guard = None
            self._hits = self._misses = 0

    def __repr__(self) -> str:
        return f"<{self._label}>"


def explain_retrace(old: Any, new: Any) -> str:
    """Return what differs between two signatures, argument by argument."""
    old_tree, old_kinds, old_static, old_named, old_types = old
    new_tree, new_kinds, new_static, new_named, new_types = new
    if old_tree != new_tree:
        return f"the arguments have tree {new_tree} where they had {old_tree}"
    paths = [path for path, _ in tree.leaves_with_path(tree.unflatten(new_tree, list(new_kinds)))]
    changes = [
        f"argument {_argument_name(path, dict(new_static))} is {b} where it was {a}"
        for path, a, b in zip(paths, old_kinds, new_kinds, strict=True)
        if a != b
    ]
    for a, b in zip((*old_static, *old_named), (*new_static, *new_named), strict=False):
        if a != b:
            changes.append(f"static argument {b[0]!r} is {b[1]!r} where it was {a[1]!r}")
    if not changes and old_types != new_types:
        changes.append("a static argument is of another type")
    return "; ".join(changes) or "it was no longer in the cache"


def _argument_name(path: Any, fixed: dict[int, Any]) -> str:
    """Return how a caller names a leaf of `(positional arguments without the fixed ones, keyword arguments)`."""
    keywords, place = path[0].idx, path[1]
    if keywords:
        return f"{place.key}{tree.keystr(path[2:])}"
    free = [i for i in range(place.idx + len(fixed) + 1) if i not in fixed]
    return f"{free[place.idx]}{tree.keystr(path[2:])}"


def jit_enabled() -> bool:
    """Return whether jit is on in this thread; see `disable_jit`."""
    return _switch.on or _switch.interpreting


class disable_jit:
    """Context manager: inside it, jitted functions run as plain Python in this thread.

    Example:
        >>> import fgrad
        >>> with fgrad.disable_jit():
        ...     _ = fgrad.jit(lambda x: print("runs", x) or x)(1.0)
        runs 1.0
    """

    def __init__(self, disable: bool = True):
        self._state = not disable, False

    def __enter__(self) -> None:
        self._before = _switch.on, _switch.interpreting
        _switch.on, _switch.interpreting = self._state

    def __exit__(self, *exc: object) -> None:
        _switch.on, _switch.interpreting = self._before


class interpret_jit(disable_jit):
    """Context manager: inside it, jitted functions are recorded as ever and interpreted, in this thread."""

    def __init__(self) -> None:
        self._state = False, True


def _checked_device(device: str | None) -> str | None:
    if device is None or (isinstance(device, str) and re.fullmatch(r"twin|cuda(:\d+)?", device)):
        return device
    raise ValueError(f'jit: device: got {device!r}, expected "cuda", "cuda:" and a number, "twin" or None')


def _chosen(fun: Any, what: str, numbers: Any, names: Any) -> tuple[tuple[int, ...], frozenset[str]]:
    """Return the positions and names of chosen arguments, each completed from the other through the signature."""
    if numbers is None and names is None:
        return (), frozenset()
    positions = (numbers,) if isinstance(numbers, int) else tuple(numbers or ())
    words = {names} if isinstance(names, str) else set(names or ())
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return positions, frozenset(words)
    places = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    open_names = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for n in positions:
        if not variadic and not -len(places) <= n < len(places):
            raise ValueError(
                f"jit: {what}_argnums has {n}, but {fun.__name__} takes {len(places)} positional arguments"
            )
    for word in words:
        if not open_names and word not in {p.name for p in parameters}:
            raise ValueError(
                f"jit: {what}_argnames has '{word}', which is no argument of {getattr(fun, '__name__', fun)}"
            )
    filled = [n % len(places) if n < 0 and not variadic else n for n in positions]
    inferred_names = {places[n] for n in filled if 0 <= n < len(places)}
    inferred_positions = {places.index(w) for w in words if w in places}
    return tuple(sorted({*filled, *inferred_positions})), frozenset(words | inferred_names)


def _hashable(x: Any, where: Any, label: str) -> Any:
    try:
        hash(x)
    except TypeError:
        raise ValueError(
            f"{label}: static arguments must be hashable, but argument {where!r} is {x!r} of type {type(x).__name__}"
        ) from None
    return x


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    fast_math: bool = False,
    device: str | None = None,
    replay: bool = False,
    tune: bool = False,
) -> Any:
    """Return a version of `fun` that is recorded once per signature and runs as a Program from then on.

    A signature is the tree of the arguments, their shapes and dtypes (never their values), and the static arguments.
    Python in `fun` runs only while recording. Closed-over arrays are constants, as they were when recorded. The logger
    "fgrad.jit" says at level INFO which argument made a new recording necessary; `f.cache_info()` counts them and
    `f.lower(*args)` shows the code.

    Args:
        fun: a function of arrays or pytrees; without it, `jit(static_argnums=…)` is a decorator.
        static_argnums, static_argnames: arguments that are not traced but part of the signature, by position (may be
            negative) or name; each is inferred from the other. They must be hashable.
        donate_argnums, donate_argnames: arguments, by position or name, that the caller gives away: their arrays may be
            written over with results of the same shape and dtype, which spares fresh memory. What they hold after the
            call is undefined. A warning says which could not be used.
        keep_unused, inline: accepted for JAX's signature; they change nothing.
        fast_math: also use identities that fail for nan, inf or -0.0, such as `x * 0 = 0` and `x + 0 = x`.
        device: "cuda" or "cuda:1" to bring arguments to a GPU, run generated kernels there and leave results there;
            "twin" to run the very kernels on NumPy arrays, interpreted, which is slow and needs no GPU. None runs where
            the arguments are: arrays on a GPU as kernels, NumPy arrays as code for the CPU.
        replay: on a GPU, record the launches of a signature as a CUDA graph at its first call and replay it from then
            on, for chains of small kernels. Arguments and results are copied. Calls of the array library are refused.
        tune: on a GPU, time a few configurations of each kernel that was not tuned before, at its first launch for
            types and sizes up to the next powers of two. What was fastest is kept on disk, and used from then on by
            whoever launches the kernel, with or without `tune`.

    Raises:
        TypeError: `fun` is not callable; an argument or output is no array or number.
        ValueError: a static argument is not hashable or does not exist; an unknown device.
        NotImplementedError: at a call, `replay` is wanted of what cannot be recorded.
        ImportError, RuntimeError: at a call, the device is a GPU and CuPy is not installed, or there is no GPU.

    Example:
        >>> import numpy as np, fgrad
        >>> f = fgrad.jit(lambda x: np.tanh(x) + 1)
        >>> f(np.zeros(2)), f.cache_info().misses
        (array([1., 1.]), 1)
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            inline=inline,
            fast_math=fast_math,
            device=device,
            replay=replay,
            tune=tune,
        )
    check_callable("jit", fun)
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"jit expects a function that returns arrays, got the generator function {fun.__name__}")
    if isinstance(fun, staticmethod):
        raise TypeError("jit expects a function, got a staticmethod object; put @staticmethod outside @jit")
    return JittedFunction(
        fun, static_argnums, static_argnames, donate_argnums, donate_argnames, fast_math, device, replay, tune
    )


# ---------------------------------------------------------------------------------- looking without computing


class ShapeDtypeStruct:
    """Shape and dtype of an array that need not exist. Hashable, equal by value."""

    __slots__ = ("shape", "dtype", "weak_type")

    def __init__(self, shape: Sequence[int], dtype: Any, weak_type: bool = False):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must not be None")
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return (self.shape, self.dtype, self.weak_type) == (other.shape, other.dtype, other.weak_type)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak})"


def trace_call(name: str, fun: Callable[..., Any], args: Any, kwargs: Any) -> Traced:
    """Record `fun` for arrays, numbers, or what has a shape and a dtype; `name` is what asks for it."""
    check_callable(name, fun)
    leaves, treedef = tree.flatten((args, kwargs))
    kinds = [_kind(x, name) for x in leaves]
    return trace(fun, kinds, treedef, function_label(name, fun))


def _kind(x: Any, name: str) -> ArrayType:
    if isinstance(x, Tracer) or x.__class__ in PYTHON_SCALARS:
        return type_of(x)
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return ArrayType(tuple(x.shape), x.dtype, bool(getattr(x, "weak_type", False)))
    return type_of(as_operand(x, f"an argument of the function given to {name}"))


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the shapes and dtypes of `fun(*args, **kwargs)` without computing it.

    Args:
        fun: a function of arrays or pytrees.
        *args, **kwargs: pytrees of arrays, numbers, or anything with `.shape` and `.dtype`.

    Returns:
        The tree of the output with a `ShapeDtypeStruct` for each array.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.eval_shape(lambda x: x @ x.T, fgrad.ShapeDtypeStruct((1000, 9), np.float32))
        ShapeDtypeStruct(shape=(1000, 1000), dtype=float32)
    """
    traced = trace_call("eval_shape", fun, args, kwargs)
    types = traced.program.out_types
    return tree.unflatten(traced.out_tree, [ShapeDtypeStruct(t.shape, t.dtype, t.weak) for t in types])


def make_ir(fun: Callable[..., Any]) -> Callable[..., Program]:
    """Return a function that records `fun` for its arguments and returns the Program, which prints.

    Example:
        >>> import numpy as np, fgrad
        >>> print(fgrad.make_ir(lambda x: np.tanh(x) * 2)(np.zeros(3)))  # doctest: +ELLIPSIS
        program make_ir of <lambda> (...)(a: float64[3])
          b: float64[3] = tanh a
          c: float64[3] = mul b 2
          return c
    """
    check_callable("make_ir", fun)

    @functools.wraps(fun, updated=())
    def record(*args: Any, **kwargs: Any) -> Program:
        return trace_call("make_ir", fun, args, kwargs).program

    return record

"""What ties a definition in primitives to the pair of kernels that computes the same: `with_kernels`.

Imports no Triton: a pair is loaded when its function is first called with `impl="triton"`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad.kernel_arguments import owner_of
from fgrad.kernel_pair import KernelOp, kernel_op
from fgrad.numpy.arguments import as_array, cast
from fgrad.ops.shape import stop_gradient
from fgrad.placement import device
from fgrad.transforms.vmap import is_mapping

Function = Callable[..., Any]
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
_IMPL = inspect.Parameter("impl", _KEYWORD, default=None, annotation="str | None")


def with_kernels(
    kernels: str,
    *,
    wrt: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("out",),
    extras: Function | None = None,
    batch: str = "loop",
    called: str | None = None,
    prepare: Function | None = None,
    on_device: bool = False,
    **fixed: Any,
) -> Callable[[Function], Function]:
    """Return a decorator that lets a definition be computed by kernels as well, by its new option `impl`.

    The decorated function takes arrays by position, optional ones with None as default, and options by keyword, all by
    the names that the functions over the kernels know them by. `f.op(*names)` is its `KernelOp` for the arrays that are
    present, all of them without names.

    Args:
        kernels: "family.name" for `name_forward` and `name_backward` in that module of `fgrad.triton_kernels`.
        wrt: the arrays that `name_backward` returns cotangents of, in its order. Without any, the kernel is `name`
            itself, and the result has no derivative.
        outputs: names of what `name_forward` returns.
        extras: returns the outputs after the first, of the definition's arguments.
        batch: what `vmap` does, see `kernel_op`.
        called: how messages call it, and Programs after "kernels."; the definition's name if None.
        prepare: returns options that follow from the arrays, of all arrays by name and the options.
        on_device: whether the kernels move fewer bytes than those generated from the definition, and are the choice
            where `jit` records for a device and nothing is asked for.
        **fixed: further arguments of the functions over the kernels.
    """

    def decorate(definition: Function) -> Function:
        pair = _Pair(definition, kernels, wrt, outputs, extras, batch, called, prepare, on_device, fixed)

        @takes_tensors
        @functools.wraps(definition)
        def function(*args: Any, impl: str | None = None, **options: Any) -> Any:
            return pair(impl, args, options)

        own = pair.signature
        function.__signature__ = own.replace(parameters=[*own.parameters.values(), _IMPL])  # type: ignore[attr-defined]
        function.op = pair.op  # type: ignore[attr-defined]
        return function

    return decorate


def takes_tensors(function: Function) -> Function:
    """Let a function of arrays take tensors of a layer above, which runs it on what it traces."""

    @functools.wraps(function)
    def dispatch(*args: Any, **options: Any) -> Any:
        owner = owner_of((*args, *options.values()))
        if owner is not None:
            return owner.__array_function__(dispatch, (type(owner),), args, options)
        return function(*args, **options)

    dispatch.runs_on_tracers = True  # type: ignore[attr-defined]
    return dispatch


class _Pair:
    """A definition and its kernels."""

    def __init__(
        self,
        definition: Function,
        kernels: str,
        wrt: Sequence[str],
        outputs: Sequence[str],
        extras: Function | None,
        batch: str,
        called: str | None,
        prepare: Function | None,
        on_device: bool,
        fixed: dict[str, Any],
    ):
        self.on_device = on_device
        self.definition, self.extras, self.prepare = definition, extras, prepare
        self.family, _, self.stem = kernels.partition(".")
        self.wrt, self.outputs, self.batch, self.fixed = wrt, outputs, batch, fixed
        self.name = called or definition.__name__
        self.signature = inspect.signature(definition)
        parameters = self.signature.parameters.values()
        self.arrays = [p.name for p in parameters if p.kind is _POSITIONAL]
        self.defaults = {p.name: p.default for p in parameters if p.kind is _KEYWORD}
        self._op = functools.cache(self._make)

    def __call__(self, impl: str | None, args: Sequence[Any], options: dict[str, Any]) -> Any:
        bound = self.signature.bind(*args, **options)
        bound.apply_defaults()
        arrays = {name: bound.arguments[name] for name in self.arrays}
        options = {name: _hashable(bound.arguments[name]) for name in self.defaults}
        self._check(arrays)
        if self.prepare is not None:
            options |= self.prepare(arrays, options)
        if impl is None:
            impl = self._chosen()
        if impl == "numpy":
            return self.definition(*[x if x is None else as_array(x) for x in arrays.values()], **options)
        if impl != "triton":
            raise ValueError(f'{self.name}: impl must be "numpy" or "triton", got {impl!r}')
        present = {name: x for name, x in arrays.items() if x is not None}
        xs = present.values() if self.wrt else [stop_gradient(as_array(x)) for x in present.values()]
        return self.op(*present)(*xs, **options)

    def _chosen(self) -> str:
        """Return what computes where nothing is asked for; kernels that would run once an example are no choice."""
        alone = self.batch == "leading" or not is_mapping()
        return "triton" if self.on_device and device() is not None and alone else "numpy"

    def _check(self, arrays: dict[str, Any]) -> None:
        for name in self.wrt:
            x = arrays[name]
            dtype = getattr(x, "dtype", None) or np.asarray(x).dtype
            if x is not None and dtype.kind not in "fV":
                raise TypeError(f"{self.name}: {name} must be floating, got {dtype}")

    def op(self, *names: str) -> KernelOp:
        """Return the kernel op for the arrays that are present, all without names; absent ones are None."""
        return self._op(names or tuple(self.arrays))

    def _make(self, present: tuple[str, ...]) -> KernelOp:
        module = importlib.import_module(f"fgrad.triton_kernels.{self.family}")
        run = getattr(module, f"{self.stem}_forward" if self.wrt else self.stem)
        pull = getattr(module, f"{self.stem}_backward") if self.wrt else None
        wanted = inspect.signature(pull).parameters if pull else ()
        kept = [name for name in (*present, *self.outputs) if name in wanted]
        known = {**dict.fromkeys(self.arrays), **self.fixed}

        def reference(*xs: Any, **options: Any) -> Any:
            arguments = {**dict.fromkeys(self.arrays), **dict(zip(present, xs, strict=True)), **options}
            out = self.definition(**arguments)
            return out if self.extras is None else (out, *self.extras(**arguments))

        def forward(*xs: Any, **options: Any) -> Any:
            return _by_name(run, {**known, **dict(zip(present, xs, strict=True)), **options})

        def backward(ct: Any, *xs: Any, **options: Any) -> Any:
            if pull is None:
                return ()
            found = _by_name(pull, {**known, "ct": ct, **dict(zip(kept, xs, strict=True)), **options})
            return tuple([x for x in found if x is not None]) if isinstance(found, tuple) else found

        forward.__signature__ = _signature(present, self.defaults)  # type: ignore[attr-defined]
        backward.__signature__ = _signature(["ct", *kept], self.defaults)  # type: ignore[attr-defined]
        wrt = [present.index(name) for name in self.wrt if name in present]
        return kernel_op(
            forward, backward, reference, name=f"kernels.{self.name}", outputs=self.outputs, wrt=wrt, batch=self.batch
        )


def _hashable(option: Any) -> Any:
    return tuple(option) if isinstance(option, list) else option


def _by_name(function: Function, known: dict[str, Any]) -> Any:
    """Call a function with those of the known values that it has parameters for; NumPy's scalars become arrays."""
    wanted = {name: known[name] for name in inspect.signature(function).parameters if name in known}
    return function(**{name: np.asarray(x) if isinstance(x, np.generic) else x for name, x in wanted.items()})


def _signature(arrays: Sequence[str], options: dict[str, Any]) -> inspect.Signature:
    positional = [inspect.Parameter(name, _POSITIONAL) for name in arrays]
    return inspect.Signature([*positional, *[inspect.Parameter(k, _KEYWORD, default=v) for k, v in options.items()]])


# ------------------------------------------------------------------------------------------ what definitions share


def wide(x: Any) -> Any:
    """Return an array in the type that kernels compute in: float64 as it is, others as float32."""
    return x if x.dtype == np.float64 else cast(x, np.float32)


def like(out: Any, x: Any) -> Any:
    """Return a result in the dtype of x: rounded once, as kernels do when they store."""
    return cast(out, x.dtype)

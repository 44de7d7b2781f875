"""A differentiable operation made of a forward and a backward kernel, with a reference in ordinary functions.

What transforms make of it: reverse mode runs the backward kernel; forward mode and higher derivatives are those of the
reference; `vmap` runs the kernels once per example unless told otherwise; `jit` and eager calls run the forward kernel.
How kernels are launched is theirs to know: here they are functions of arrays.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fgrad.core import ArrayType, Params, Primitive
from fgrad.kernel_arguments import as_kernel_array, beside, hand_over, owner_of
from fgrad.ops.shape import stop_gradient
from fgrad.plans import Plan, sum_to
from fgrad.transforms.linearize import vjp
from fgrad.transforms.programs import type_by_tracing
from fgrad.transforms.vmap import move_axis, one_by_one, to_front, vmap

if TYPE_CHECKING:
    from fgrad.kernel_check import Report


IN_PROFILES = {"category": "kernel", "source": "hand-written"}
"""What the profiler says of the primitives made here."""


class KernelOp:
    """A function of arrays that has kernels for its value and its gradient. Made by `kernel_op`.

    `forward` is its primitive; `backward(ct, *inputs, *kept outputs)` gives a tuple of cotangents, of the inputs in
    `wrt`; `kept` are the positions of the outputs that it gets; `reference` is the definition.
    """

    runs_on_tracers = True

    def __init__(
        self,
        forward: Primitive,
        backward: Callable[..., Any],
        reference: Callable[..., Any],
        wrt: tuple[int, ...],
        kept: tuple[int, ...],
        defaults: Params,
    ):
        self.forward = forward
        self.backward = backward
        self.reference = reference
        self.wrt = wrt
        self.kept = kept
        self.defaults = defaults
        self.__name__ = forward.name

    def __call__(self, *args: Any, **options: Any) -> Any:
        owner = owner_of(args)
        if owner is not None:
            return hand_over(owner, self, args, options)
        names = self.forward.inputs
        if len(args) != len(names):
            raise TypeError(f"{self.__name__}: expected the arrays {', '.join(names)}, got {len(args)} of them")
        unknown = options.keys() - self.defaults.keys()
        if unknown:
            raise TypeError(f"{self.__name__}: no option is called {', '.join(sorted(unknown))}")
        out = self.forward(*[as_kernel_array(x) for x in args], **{**self.defaults, **options})
        return out[0] if self.forward.multiple else out

    def check(self, *args: Any, targets: Sequence[str] | None = None, tolerance: float = 8.0, **options: Any) -> Report:
        """Check the pair at these arguments without a GPU; print a table and return it.

        Values are compared with the reference, gradients with finite differences of the reference in float64; every
        launch is checked for accesses out of bounds, races, overflow, undefined and unwritten values; every kernel is
        compiled for every target; `vmap` is compared with a loop.

        Args:
            *args: NumPy arrays, small: a kernel is interpreted.
            targets: names such as "sm_90"; all that `compile_kernel` knows if None, none if empty.
            tolerance: how far values may lie off, in units of the last place at the largest value.
            **options: options of the operation.

        Returns:
            A `Report`: `ok`, `rows`, and a table as its text.

        Raises:
            KernelCheckError: a row failed. The message is the table, the error's `report` the `Report`.
            TypeError: an argument is no NumPy array.

        Example:
            >>> import numpy as np, fgrad
            >>> double = fgrad.kernel_op(lambda x: 2 * x, lambda ct: 2 * ct, lambda x: x + x, name="double")
            >>> double.check(np.ones(3)).ok
            double: ok
            ...
            True
        """
        from fgrad.kernel_check import check_op

        return check_op(self, args, {**self.defaults, **options}, targets, tolerance)

    def __repr__(self) -> str:
        return f"<kernel op {self.__name__}({', '.join(self.forward.inputs)})>"


def kernel_op(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    reference: Callable[..., Any],
    *,
    name: str | None = None,
    outputs: Sequence[str] = ("out",),
    wrt: Sequence[int] = (0,),
    batch: str = "loop",
) -> KernelOp:
    """Return a differentiable function made of a pair of kernels.

    Args:
        forward: `forward(*arrays, **options)` launches the forward kernel on plain arrays and returns new arrays, one
            for each name in `outputs`. Its positional parameters name the inputs; its keyword-only parameters are the
            options, hashable and with defaults.
        backward: `backward(ct, …, **options)` launches the backward kernel: `ct` is the cotangent of the first output,
            the further parameters ask by name for inputs and outputs. Returns the cotangents of the inputs in
            `wrt`: an array, or a tuple if there are several. It may be a kernel op itself, with kernels for the second
            derivative; its first input, by whatever name, is the cotangent.
        reference: computes what `forward` does, in functions that can be differentiated.
        name: how messages and Programs call it; the name of `forward` if None.
        outputs: the names of what `forward` returns. The first is the result; the others are kept for `backward` alone.
        wrt: which inputs have derivatives.
        batch: what `vmap` does. "loop" runs the kernels once an example. "leading" runs them once, each array with the
            batch as first axis: for forward and backward that take any number of leading axes in every argument. "grid"
            hands the batch on to the `triton_call`s that forward and backward must be made of.

    Returns:
        A function with the parameters of `forward` that returns the first output, on arrays, traced values and tensors
        of `fgrad.compat`; its method `check` checks the pair. Inputs are kept until the gradient is computed, for
        second derivatives: those of `backward` if that is a kernel op, else those of the reference.

    Raises:
        ValueError: `batch` is none of the three.
        TypeError: `backward` asks for what is neither input nor output; or, when it is differentiated, an input is that
            is not in `wrt`.

    Example:
        >>> import numpy as np, fgrad
        >>> double = fgrad.kernel_op(lambda x: 2 * x, lambda ct: 2 * ct, lambda x: x + x, name="double")
        >>> fgrad.grad(lambda x: double(x).sum())(np.arange(3.0))
        array([2., 2., 2.])
    """
    if batch not in _LIFTED:
        raise ValueError(f"kernel_op: batch must be one of {', '.join(_LIFTED)}, got {batch!r}")
    name = name or forward.__name__
    inputs, defaults = _parameters(forward, name)
    wanted, _ = _parameters(backward, name)
    if isinstance(backward, KernelOp):
        wanted = ("ct", *wanted[1:])  # where it is differentiated itself, `ct` is another's
    unknown = set(wanted[1:]) - {*inputs, *outputs}
    if wanted[:1] != ("ct",) or unknown:
        raise TypeError(
            f"{name}: the parameters of backward must be ct and then names of inputs ({', '.join(inputs)}) or outputs "
            f"({', '.join(outputs)}), got {', '.join(wanted)}"
        )
    kept = tuple(k for k, output in enumerate(outputs) if output in wanted)
    pair = _Pair(
        name,
        forward,
        _by_name(backward, ("ct", *inputs, *[outputs[k] for k in kept]), wanted),
        reference,
        inputs,
        tuple(outputs),
        kept,
        tuple(wrt),
        batch,
        isinstance(backward, KernelOp),
    )
    return KernelOp(pair.value, pair.gradient, reference, tuple(wrt), kept, defaults)


def _parameters(function: Callable[..., Any], name: str) -> tuple[tuple[str, ...], Params]:
    """Return the names of a kernel function's arrays, and its options with their defaults."""
    if isinstance(function, KernelOp):
        return function.forward.inputs, function.defaults
    arrays, options = [], {}
    for p in inspect.signature(function).parameters.values():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty:
            arrays.append(p.name)
        elif p.kind is p.KEYWORD_ONLY and p.default is not p.empty:
            options[p.name] = p.default
        else:
            raise TypeError(
                f"{name}: parameters of kernel functions must be arrays by position, without defaults, or options by "
                f"keyword alone, with defaults; got {p}"
            )
    return tuple(arrays), options


def _by_name(backward: Callable[..., Any], names: Sequence[str], wanted: Sequence[str]) -> Callable[..., Any]:
    """Return a function of all that is known by name that gives `backward` what it asks for, and returns a tuple."""

    def run(*args: Any, **params: Any) -> Any:
        ct, *others = args
        given = dict(zip(names, (beside(ct, others), *others), strict=True))
        cts = backward(*[given[n] for n in wanted], **params)
        return cts if isinstance(cts, tuple) else (cts,)

    return run


# ------------------------------------------------------------------------------------------------- the primitives


@dataclass(frozen=True, eq=False)
class _Pair:
    """A forward and a backward function with their reference, and the primitives made of them.

    `backward(ct, *inputs, *kept outputs)` returns a tuple; with `traceable` it needs no definition beside it, for it is
    made of an operation that has derivatives itself.
    """

    name: str
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kept: tuple[int, ...]
    wrt: tuple[int, ...]
    batch: str
    traceable: bool

    @functools.cached_property
    def value(self) -> Primitive:
        """The primitive inputs -> outputs."""
        prim = Primitive(
            self.name,
            "composite",
            self.forward,
            lambda *types, **params: type_by_tracing(self.reference, types, params),
            inputs=self.inputs,
            outputs=self.outputs,
            make_plan=self._plan,
            definition=self._definition,
            declared=IN_PROFILES,
        )
        prim.batch = functools.partial(_batched, self.batch, prim, lambda moving: self.over(moving).value)
        return prim

    @functools.cached_property
    def gradient(self) -> Callable[..., Any]:
        """The primitive (ct, *inputs, *kept outputs) -> cotangents; its own derivative is found in the reference."""
        if self.traceable:
            return self.backward
        prim = Primitive(
            f"{self.name}_backward",
            "composite",
            self.backward,
            lambda ct, *types, **params: tuple([types[i].strong() for i in self.wrt]),
            inputs=("ct", *self.inputs, *[f"out{k}" for k in self.kept]),
            outputs=tuple(f"d{self.inputs[i]}" for i in self.wrt),
            definition=self._gradient_definition,
            declared=IN_PROFILES,
            multiple=True,
        )
        return _with_batches(prim, self.batch)

    @functools.cache  # noqa: B019 a pair lives as long as its primitives do
    def over(self, moving: tuple[bool, ...]) -> _Pair:
        """Return the pair on a batch of the inputs in `moving`, their first axis; every output has that axis."""
        backward = _LIFTED[self.batch](self.backward, (True, *moving, *[True] * len(self.kept)))

        def summed(*args: Any, **params: Any) -> Any:
            cts = backward(*args, **params)
            return tuple([ct if moving[i] else _total(ct) for i, ct in zip(self.wrt, cts, strict=True)])

        return replace(
            self,
            name=f"{self.name}_batched",
            forward=_LIFTED[self.batch](self.forward, moving),
            backward=summed,
            reference=_mapped(self.reference, moving),
        )

    def _definition(self, *args: Any, **params: Any) -> Any:
        """Return what the reference does; only the result has a derivative, what is kept for `backward` has none."""
        out = self.reference(*args, **params)
        return (out[0], *[stop_gradient(x) for x in out[1:]]) if isinstance(out, tuple) else out

    def _gradient_definition(self, ct: Any, *args: Any, **params: Any) -> Any:
        def result(*active: Any) -> Any:
            xs = list(args[: len(self.inputs)])
            for i, x in zip(self.wrt, active, strict=True):
                xs[i] = x
            out = self.reference(*xs, **params)
            return out[0] if isinstance(out, tuple) else out

        return vjp(result, *[args[i] for i in self.wrt])[1](ct)

    def _plan(self, prim: Primitive, mask: int, forward: bool) -> Plan:
        """Return what an application keeps, and how its cotangent is pulled back: by one run of the backward kernel."""
        active = tuple(i for i in range(len(self.inputs)) if mask >> i & 1)
        missing = [self.inputs[i] for i in active if i not in self.wrt]
        if missing:
            raise TypeError(
                f"{self.name} has no derivative by its input {missing[0]}: its backward kernel gives those by "
                f"{', '.join(self.inputs[i] for i in self.wrt)}. Where it gives more, say so by kernel_op(..., wrt=...)"
            )
        places = [self.wrt.index(i) for i in active]

        def pull_back(saved: Any, types: Any, params: Params, ct: Any) -> Any:
            cts = self.gradient(ct[0] if prim.multiple else ct, *saved, **params)
            return [cts[k] for k in places]

        saves = (*range(len(self.inputs)), *[~k for k in self.kept])
        return Plan(prim, active, saves, (), pull_back, None)


# ------------------------------------------------------------------------------------------------------- batching

Moving = tuple[bool, ...]


def _batched(
    batch: str,
    prim: Primitive,
    over: Callable[[Moving], Primitive],
    args: Sequence[Any],
    axes: Sequence[int | None],
    size: int,
    /,
    **params: Any,
) -> Any:
    """Apply a primitive to a batch: example by example, or by the primitive `over` the batch."""
    if batch == "loop":
        return one_by_one(prim, args, axes, size, params), 0
    if batch == "leading":
        values, axes = [to_front(x, a, size) for x, a in zip(args, axes, strict=True)], [0] * len(args)
    else:
        values = [x if a is None else move_axis(x, a, 0) for x, a in zip(args, axes, strict=True)]
    return over(tuple([a is not None for a in axes]))(*values, **params), 0


def _with_batches(prim: Primitive, batch: str) -> Primitive:
    """Give a primitive that a definition stands beside its batching rule; return it."""

    @functools.cache
    def over(moving: Moving) -> Primitive:
        definition = _mapped(prim.definition, moving)
        batched = Primitive(
            f"{prim.name}_batched",
            "composite",
            _LIFTED[batch](prim.impl, moving),
            lambda *types, **params: type_by_tracing(definition, types, params),
            inputs=prim.inputs,
            outputs=prim.outputs,
            definition=definition,
            declared=prim.declared,
            multiple=True,
        )
        return _with_batches(batched, batch)

    prim.batch = functools.partial(_batched, batch, prim, over)
    return prim


def _total(ct: Any) -> Any:
    """Return the sum over a batch of cotangents of one input."""
    return sum_to(ct, ArrayType(ct.shape[1:], ct.dtype))


def _mapped(function: Any, moving: Moving) -> Callable[..., Any]:
    """Return a function of one example as one of a batch of the arguments in `moving`, by `vmap`."""
    axes = tuple([0 if m else None for m in moving])
    return lambda *xs, **params: vmap(functools.partial(function, **params), axes)(*xs)


def _itself(function: Any, moving: Moving) -> Any:
    """Return a function that takes leading axes; every argument has the batch's."""
    return function


_LIFTED = {"loop": _mapped, "leading": _itself, "grid": _mapped}

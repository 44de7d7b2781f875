"""A Program as kernels and steps that run one after another, wherever its arrays are.

On arrays of a GPU the kernels are launched there; on NumPy arrays the twin interprets them.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fgrad.backend.gpu.epilogue import with_epilogues
from fgrad.backend.gpu.expressions import wide
from fgrad.backend.gpu.fusion import Kernel, Step, plan, reduced_along
from fgrad.backend.gpu.library import kernel_for
from fgrad.backend.gpu.rewrite import in_kernel_terms
from fgrad.backend.gpu.source import Source, kernel_source
from fgrad.backend.gpu.tuning import launch_source
from fgrad.backend.simplify import prepare
from fgrad.core import TABLE, ArrayType, on_gpu
from fgrad.program import Atom, Equation, Literal, Program, Var

if TYPE_CHECKING:
    from fgrad.backend.gpu.replay import Replayed


class GpuProgram:
    """A compiled Program: `compute(*args)` runs it on arrays that live in one place.

    `plan` says what runs in which order; `sources` has the text of each kernel of the plan, and `finishing` of those
    that add partial results up, by id of the value they give. `on_host` names the primitives that ran on copies in
    host memory, for want of a kernel and of a function of the array library.
    """

    def __init__(self, program: Program, fast_math: bool = False):
        self.program = with_epilogues(in_kernel_terms(prepare(program, fast_math)))
        self.label = program.label
        self.out_types = program.out_types
        self.plan = plan(self.program)
        self.sources = [kernel_source(kernel, f"kernel_{k}") for k, kernel in enumerate(self.plan.kernels)]
        self.finishing: dict[int, Source] = {}
        for source in self.sources:
            if source.programs > 1:
                for eq, parts in zip(source.partials, source.parts, strict=True):
                    self.finishing[id(eq.outputs[0])] = _finishing(eq, parts)
        self.on_host: set[str] = set()
        self._runs = self._in_order()
        self._constants: dict[Any, list[Any]] = {}
        self._replayed: dict[Any, Replayed] = {}

    def compute(self, *args: Any) -> list[Any]:
        """Return the outputs, each an array of its own, on the GPU that an argument is on; on the host if none is."""
        arrays = _Arrays(_first_on_gpu(args))
        for v, x in zip(self.program.inputs, args, strict=True):
            arrays.give(v, arrays.here(x, v.type))
        for (v, _), x in zip(self.program.consts, self._constants_beside(arrays), strict=True):
            arrays.give(v, x)
        with arrays.on_device():
            for part, run, dead in self._runs:
                run_part(part, run, arrays)
                arrays.drop(dead)
            return [arrays.own(a) for a in self.program.outputs]

    def leaves_the_gpu(self) -> bool:
        """Return whether something runs that is neither a kernel nor a view; additions at an index sort it first."""
        steps = [part.equation for part in self.plan.parts if isinstance(part, Step)]
        return any(kernel_for(eq) is None or eq.prim.name == "scatter_add" for eq in steps)

    def replayed(self, args: Sequence[Any]) -> Replayed:
        """Return this Program for the device of `args`, its launches recorded as a CUDA graph.

        Raises:
            NotImplementedError: something in it is neither a kernel nor a view, and cannot be recorded.
        """
        from fgrad.backend.gpu.replay import Replayed

        if self.leaves_the_gpu():
            raise NotImplementedError(f"{self.label}: replay=True takes kernels and views alone; see f.lower(*args)")
        arrays = _Arrays(_first_on_gpu(args))
        place = arrays.home.device(arrays.like)
        if place not in self._replayed:
            with arrays.on_device():
                mine = [arrays.here(x, v.type).copy() for v, x in zip(self.program.inputs, args, strict=True)]
                self._replayed[place] = Replayed(self, mine, arrays.home)
        return self._replayed[place]

    def _constants_beside(self, arrays: _Arrays) -> list[Any]:
        """Return the arrays of the Program where its arguments live, brought there once."""
        place = type(arrays.like), arrays.home.device(arrays.like)
        if place not in self._constants:
            self._constants[place] = [arrays.here(x, v.type) for v, x in self.program.consts]
        return self._constants[place]

    def _in_order(self) -> list[tuple[Kernel | Step, Callable[[_Arrays], None], list[int]]]:
        """Return the parts in order, each with what runs it and the values that nothing needs from then on."""
        sources = iter(self.sources)
        runs: list[Callable[[_Arrays], None]] = []
        reads: list[list[Any]] = []
        for part in self.plan.parts:
            if isinstance(part, Step):
                runs.append(functools.partial(self._run_step, part, kernel_for(part.equation)))
                reads.append([*part.equation.inputs, *part.equation.outputs])
            else:
                source = next(sources)
                runs.append(functools.partial(self._run_kernel, source))
                reads.append([*source.arrays, *[eq.outputs[0] for eq in source.partials]])
        last = {id(a): k for k, values in enumerate(reads) for a in values if isinstance(a, Var)}
        kept = {id(a) for a in self.program.outputs}
        dead: list[list[int]] = [[] for _ in runs]
        for value, k in last.items():
            if value not in kept:
                dead[k].append(value)
        return list(zip(self.plan.parts, runs, dead, strict=True))

    def _run_kernel(self, source: Source, arrays: _Arrays) -> None:
        for v in source.arrays[source.loads :]:
            arrays.make(v)
        totals = [eq.outputs[0] for eq in source.partials]
        outs = [arrays.make(v) for v in totals]
        given = [arrays.of(v) for v in source.arrays]
        if source.programs == 1:
            _launch(source, [*given, *outs])
            return
        counts = zip(source.parts, totals, strict=True)
        parts = [arrays.empty((count, *v.type.shape), wide(v.type.dtype)) for count, v in counts]
        _launch(source, [*given, *parts])
        for v, part, out in zip(totals, parts, outs, strict=True):
            _launch(self.finishing[id(v)], [part, out])

    def _run_step(self, step: Step, kernel: Callable[..., Any] | None, arrays: _Arrays) -> None:
        """Run a kernel of the library, else a function of the array library, else NumPy on copies in host memory."""
        eq = step.equation
        whole = kernel is not None and all(isinstance(a, Var) for a in eq.inputs)
        results: Any = kernel(*[arrays.of(a) for a in eq.inputs]) if kernel and whole else self._called(eq, arrays)
        for v, x in zip(eq.outputs, results if eq.prim.multiple else (results,), strict=True):
            arrays.give(v, x if step.kind == "view" else arrays.here(x, v.type), fresh=True)

    def _called(self, eq: Equation, arrays: _Arrays) -> Any:
        operands = [arrays.operand(a) for a in eq.inputs]
        if eq.prim.name not in self.on_host:
            try:
                return eq.prim.impl(*operands, **eq.params)
            except (TypeError, AttributeError, NotImplementedError):
                if arrays.is_host:
                    raise
                self.on_host.add(eq.prim.name)
        copies = [x if isinstance(a, Literal) else arrays.home.to_numpy(x) for a, x in zip(eq.inputs, operands)]
        return eq.prim.impl(*copies, **eq.params)


def run_part(part: Kernel | Step, run: Callable[[_Arrays], None], arrays: _Arrays) -> None:
    """Run one part of a plan: what a profiler sees (see `fgrad.profiler.probes`)."""
    run(arrays)


def has_kernel(part: Kernel | Step) -> bool:
    """Return whether a part is a Triton kernel, generated, of the library or of a pair, or a view."""
    if isinstance(part, Kernel):
        return True
    return part.equation.prim.declared.get("category") == "kernel" or kernel_for(part.equation) is not None


_HOST = np.empty(0)


def _first_on_gpu(args: Sequence[Any]) -> Any:
    return next(filter(on_gpu, args), _HOST)


class _Arrays:
    """What values are, while a Program runs: arrays beside `like`."""

    def __init__(self, like: Any):
        from fgrad.triton_kernels.runtime import home_of

        self.like = like
        self.home = home_of(like)
        self.is_host = isinstance(like, np.ndarray)
        self.known: dict[int, Any] = {}
        self.given: set[int] = set()

    def on_device(self) -> Any:
        """Return a context in which the device of the arrays is current."""
        return contextlib.nullcontext() if self.is_host else self.home.on_device(self.home.device(self.like))

    def here(self, x: Any, kind: ArrayType) -> Any:
        """Return an array, or a number, as an array beside the others, packed."""
        if type(x) is not type(self.like):
            x = self.home.from_numpy(np.ascontiguousarray(x, kind.dtype).reshape(kind.shape))
        return x if x.flags.c_contiguous else x.copy()

    def of(self, v: Any) -> Any:
        return self.known[id(v)]

    def operand(self, a: Atom) -> Any:
        return a.value if isinstance(a, Literal) else self.known[id(a)]

    def give(self, v: Var, x: Any, fresh: bool = False) -> None:
        """Say what a value is; what is not fresh belongs to somebody else."""
        self.known[id(v)] = x
        if not fresh:
            self.given.add(id(x))

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        from fgrad.triton_kernels.runtime import empty

        return empty(self.like, shape, dtype)

    def make(self, v: Var) -> Any:
        self.known[id(v)] = out = self.empty(v.type.shape, v.type.dtype)
        return out

    def drop(self, dead: Sequence[int]) -> None:
        """Forget values, so that their memory serves others."""
        for value in dead:
            if id(self.known[value]) not in self.given:
                del self.known[value]

    def own(self, a: Any) -> Any:
        """Return an output: given away once, and never an argument or a view."""
        if isinstance(a, Literal):
            return self.here(np.asarray(a.value), a.type)
        x = self.known[id(a)]
        if id(x) in self.given or not x.flags.c_contiguous or x.base is not None:
            return x.copy()
        self.given.add(id(x))
        return x


def _launch(source: Source, arrays: Sequence[Any]) -> None:
    launch_source(source, kernel_of(source.name, source.text), arrays)


@functools.lru_cache(maxsize=1024)
def kernel_of(name: str, text: str) -> Any:
    """Return the `@triton.jit` function of a text."""
    from fgrad.triton_kernels.store import module_of

    return getattr(module_of(text), name)


def _finishing(eq: Equation, parts: int) -> Source:
    """Return the kernel that joins the partial results of programs, which lie one behind another."""
    v = eq.outputs[0]
    count = v.type.size
    shape, kept = ((1, parts, count), (1, count)) if count > 1 else ((1, parts), (1,))
    given = Var(ArrayType(shape, wide(v.type.dtype)))
    total = Var(ArrayType(kept, wide(v.type.dtype)))
    out = Var(ArrayType(kept, v.type.dtype))
    joins = Equation(TABLE[eq.prim.name], [given], {"axes": (1,)}, [total], eq.source)
    narrow = Equation(TABLE["cast"], [total], {"dtype": v.type.dtype}, [out], eq.source)
    program = Program(f"end of {eq.prim.name}", [given], (), [joins, narrow], [out])
    (kernel,) = plan(program, {given.type.size: reduced_along(shape, (1,))}).parts
    assert isinstance(kernel, Kernel)
    return kernel_source(kernel, "joined")


def gpu_program(program: Program, fast_math: bool = False) -> GpuProgram:
    """Return the compiled form of a Program, made once per Program."""
    key = "gpu", fast_math
    compiled = program.cache.get(key)
    if compiled is None:
        compiled = program.cache[key] = GpuProgram(program, fast_math)
    return compiled  # type: ignore[no-any-return]

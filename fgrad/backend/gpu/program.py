"""A Program as kernels and steps that run one after another, wherever its arrays are.

On arrays of a GPU the kernels are launched there; on NumPy arrays the twin interprets them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fgrad.backend.gpu.fusion import Kernel, Plan, Step, plan
from fgrad.backend.gpu.rewrite import in_kernel_terms
from fgrad.backend.gpu.source import Source, kernel_source
from fgrad.backend.simplify import prepare
from fgrad.core import TABLE, ArrayType
from fgrad.program import Equation, Literal, Program, Var


class GpuProgram:
    """A compiled Program: `compute(*args)` runs it on arrays that live in one place.

    `plan` says what runs in which order; `sources` has the text of each kernel of the plan, and `finishing` of those
    that add partial results up, by id of the value they give.
    """

    def __init__(self, program: Program, fast_math: bool = False):
        self.program = in_kernel_terms(prepare(program, fast_math))
        self.label = program.label
        self.out_types = program.out_types
        self.plan = plan(self.program)
        self.sources = [kernel_source(kernel, f"kernel_{k}") for k, kernel in enumerate(self.plan.kernels)]
        self.finishing: dict[int, Source] = {}
        for source in self.sources:
            if source.programs > 1:
                self.finishing.update((id(eq.outputs[0]), _finishing(eq, source.programs)) for eq in source.partials)

    def compute(self, *args: Any) -> list[Any]:
        """Return the outputs, each an array of its own."""
        arrays = _Arrays(args, self.program)
        sources = iter(self.sources)
        for part in self.plan.parts:
            if isinstance(part, Step):
                _run_step(part, arrays)
            else:
                self._run_kernel(next(sources), arrays)
        return [arrays.own(a) for a in self.program.outputs]

    def _run_kernel(self, source: Source, arrays: _Arrays) -> None:
        for v in source.arrays[source.loads :]:
            arrays.new(v, v.type.shape, v.type.dtype)
        totals = [eq.outputs[0] for eq in source.partials]
        outs = [arrays.new(v, v.type.shape, v.type.dtype) for v in totals]
        if source.programs == 1:
            _launch(source, [*[arrays.of(v) for v in source.arrays], *outs])
            return
        parts = [arrays.empty((source.programs, *v.type.shape), _wide(v.type)) for v in totals]
        _launch(source, [*[arrays.of(v) for v in source.arrays], *parts])
        for v, part, out in zip(totals, parts, outs, strict=True):
            _launch(self.finishing[id(v)], [part, out])


class _Arrays:
    """What values are, while a Program runs."""

    def __init__(self, args: Sequence[Any], program: Program):
        self.known: dict[int, Any] = {}
        self.like = next((x for x in args if not np.isscalar(x) and hasattr(x, "dtype")), np.empty(0))
        for v, x in [*zip(program.inputs, args, strict=True), *program.consts]:
            self.known[id(v)] = self._here(x, v.type)
        self.given = {id(x) for x in self.known.values()}

    def _here(self, x: Any, kind: ArrayType) -> Any:
        """Return a number or a constant as an array beside the others, packed."""
        if type(x) is not type(self.like):
            from fgrad.triton_kernels.runtime import home_of

            x = home_of(self.like).from_numpy(np.ascontiguousarray(x, kind.dtype).reshape(kind.shape))
        return x if x.flags.c_contiguous else x.copy()

    def of(self, v: Var) -> Any:
        return self.known[id(v)]

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        from fgrad.triton_kernels.runtime import empty

        return empty(self.like, shape, dtype)

    def new(self, v: Var, shape: tuple[int, ...], dtype: Any) -> Any:
        self.known[id(v)] = out = self.empty(shape, dtype)
        return out

    def own(self, a: Any) -> Any:
        """Return an output: given away once, and never an argument or a view."""
        if isinstance(a, Literal):
            return self._here(np.asarray(a.value), a.type)
        x = self.known[id(a)]
        if id(x) in self.given or not x.flags.c_contiguous or x.base is not None:
            return x.copy()
        self.given.add(id(x))
        return x


def _run_step(step: Step, arrays: _Arrays) -> None:
    eq = step.equation
    operands = [a.value if isinstance(a, Literal) else arrays.of(a) for a in eq.inputs]
    out = eq.prim.impl(*operands, **eq.params)
    for v, x in zip(eq.outputs, out if eq.prim.multiple else (out,), strict=True):
        arrays.known[id(v)] = x if step.kind == "view" else arrays._here(np.asarray(x) if np.isscalar(x) else x, v.type)


def _launch(source: Source, arrays: Sequence[Any]) -> None:
    from fgrad.triton_kernels.runtime import launch

    kernel = kernel_of(source.name, source.text)
    launch(kernel, (source.programs,), *arrays, *source.numbers, **source.constexprs, num_warps=source.warps)


@functools.lru_cache(maxsize=1024)
def kernel_of(name: str, text: str) -> Any:
    """Return the `@triton.jit` function of a text."""
    from fgrad.triton_kernels.store import module_of

    return getattr(module_of(text), name)


def _wide(kind: ArrayType) -> Any:
    """Return the dtype that partial results are kept in."""
    return np.dtype(np.float32) if kind.dtype.name in ("float16", "bfloat16") else kind.dtype


def _finishing(eq: Equation, parts: int) -> Source:
    """Return the kernel that joins the partial results of programs: a reduction of (results, parts) along its rows."""
    v = eq.outputs[0]
    count = max(v.type.size, 1)
    given = Var(ArrayType((count, parts), _wide(v.type)))
    total = Var(ArrayType((count,), _wide(v.type)))
    out = Var(ArrayType((count,), v.type.dtype))
    joins = Equation(TABLE[eq.prim.name], [given], {"axes": (1,)}, [total], eq.source)
    narrow = Equation(TABLE["cast"], [total], {"dtype": v.type.dtype}, [out], eq.source)
    made: Plan = plan(Program(f"end of {eq.prim.name}", [given], (), [joins, narrow], [out]), {id(given): (1, count)})
    (kernel,) = made.parts
    assert isinstance(kernel, Kernel)
    return kernel_source(kernel, "joined")

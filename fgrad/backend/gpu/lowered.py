"""What a jitted function becomes on a GPU, for people and with no GPU at hand: kernels, machine code, projections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fgrad.backend.gpu.epilogue import fused_product
from fgrad.backend.gpu.expressions import wide
from fgrad.backend.gpu.fusion import Kernel, Step
from fgrad.backend.gpu.program import GpuProgram, kernel_of
from fgrad.backend.gpu.source import Source
from fgrad.backend.lowered import flops_of
from fgrad.core import TABLE
from fgrad.program import Equation, Literal, Program
from fgrad.triton_kernels.cards import CARDS, projected


class Part(NamedTuple):
    """One kernel, or one call of the array library.

    Attributes:
        name: of the kernel, or the primitive of the call.
        kind: "generated", "view" or "library".
        operations: the primitives that it computes.
        text: the Triton text of a kernel.
        moved, flops: bytes read and written, floating-point operations.
        report: what a kernel compiled for the target needs (see `fgrad.triton_kernels.compile_kernel`).
        projections: seconds by name of card: no measurement, see `fgrad.triton_kernels.cards`.
    """

    name: str
    kind: str
    operations: tuple[str, ...]
    text: str
    moved: int
    flops: int
    report: Any
    projections: dict[str, float]


class LoweredGpu:
    """A signature of a jitted function on its way to a GPU; `print` it to read it all.

    Attributes:
        target: what machine code is made for, as in "sm_90".
        program, simplified: the Program as recorded, and what kernels are made from.
        parts: kernels and calls in the order they run in.
        moved, least: bytes that all parts read and write, and the size of inputs and outputs alone.
        flops: an estimate of floating-point operations.
        projections: seconds by card, at the ceilings of its data sheet.

    Example:
        >>> import numpy as np, fgrad
        >>> x = np.ones((64, 1000), np.float32)
        >>> low = fgrad.jit(lambda x: fgrad.nn.softmax(np.tanh(x))).lower(x, target="sm_90")
        >>> [part.kind for part in low.parts], low.moved == low.least, low.parts[0].report.spill_bytes
        (['generated'], True, 0)
    """

    def __init__(self, program: Program, target: str, fast_math: bool = False):
        cards = {name: card for name, card in CARDS.items() if card.target == target}
        if not cards:
            raise ValueError(f"target: got {target!r}, expected one of {sorted({c.target for c in CARDS.values()})}")
        self.compiled = GpuProgram(program, fast_math)
        self.target = target
        self.program = program
        self.simplified = self.compiled.program
        sources = iter(self.compiled.sources)
        self.parts: list[Part] = []
        for part in self.compiled.plan.parts:
            if isinstance(part, Kernel):
                self.parts += self._kernel(part, next(sources), cards)
            else:
                self.parts.append(_step(part, cards))
        self.flops = sum(part.flops for part in self.parts)
        self.moved = sum(part.moved for part in self.parts)
        self.least = _bytes(
            [*self.simplified.inputs, *(v for v, _ in self.simplified.consts), *self.simplified.outputs]
        )
        self.projections = {name: sum(part.projections.get(name, 0.0) for part in self.parts) for name in cards}

    def run(self, *leaves: Any) -> list[Any]:
        """Run the kernels on plain arrays, interpreted if they are NumPy's; return the leaves of the result."""
        return self.compiled.compute(*leaves)

    def _kernel(self, kernel: Kernel, source: Source, cards: Any) -> list[Part]:
        arrays = [np.empty(v.type.shape, v.type.dtype) for v in source.arrays]
        joined = {id(eq.outputs[0]): self.compiled.finishing.get(id(eq.outputs[0])) for eq in kernel.partials}
        totals = [eq.outputs[0].type for eq in kernel.partials]
        parts = [np.empty((n, *kind.shape), wide(kind.dtype)) for n, kind in zip(source.parts, totals, strict=True)]
        found = [self._part(source, kernel.equations, [*arrays, *parts], cards)]
        for eq, part in zip(kernel.partials, parts, strict=True):
            finish = joined[id(eq.outputs[0])]
            if finish is not None:
                out = np.empty(eq.outputs[0].type.shape, eq.outputs[0].type.dtype)
                found.append(self._part(finish, [eq], [part, out], cards))
        return found

    def _part(self, source: Source, equations: Sequence[Equation], arrays: Sequence[Any], cards: Any) -> Part:
        from fgrad.triton_kernels.compile import compile_launch
        from fgrad.triton_kernels.runtime import Launch

        meta = {**source.constexprs, "num_warps": source.warps}
        launch = Launch(kernel_of(source.name, source.text), (source.programs,), (*arrays, *source.numbers), meta)
        report = compile_launch(launch, [self.target])[self.target]
        moved = sum(x.nbytes for x in arrays)
        work = sum(_flops(eq) for eq in equations)
        dtype = max((x.dtype for x in arrays if x.dtype.kind == "f"), default=np.dtype(np.float32)).name
        seconds = {name: projected(card, moved, work, dtype) for name, card in cards.items()}
        names = tuple(dict.fromkeys(eq.prim.name for eq in equations))
        return Part(source.name, "generated", names, source.text, moved, work, report, seconds)

    def __str__(self) -> str:
        sections = [f"-- {p.name}: {', '.join(p.operations)}\n{_body(p.text)}" for p in self.parts if p.text]
        totals = f"{self.moved:,} bytes moved, {self.least:,} in and out at least; {self.flops:,} flops"
        projections = ", ".join(f"{name} {seconds * 1e6:.1f} µs" for name, seconds in self.projections.items())
        return "\n\n".join(
            [
                f"-- simplified\n{self.simplified}",
                *sections,
                f"-- {self.target}\n{self._table()}",
                f"-- in all\n{totals}\nprojection, not measured: {projections}",
            ]
        )

    def _table(self) -> str:
        rows = [("", "kind", "bytes", "flops", "registers", "spills", "load bits", "occupancy", *self.projections)]
        for part in self.parts:
            r = part.report
            measured = (
                ("", "", "", "") if r is None else (r.registers, r.spill_bytes, r.load_bits, f"{r.occupancy:.0%}")
            )
            times = [f"{part.projections[name] * 1e6:.1f} µs" if part.projections else "" for name in self.projections]
            rows.append((part.name, part.kind, f"{part.moved:,}", f"{part.flops:,}", *map(str, measured), *times))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = [
            "  ".join(c.ljust(w) if k < 2 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths))) for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)

    def __repr__(self) -> str:
        return f"<lowered {self.simplified.label} for {self.target}: {len(self.parts)} parts>"


def _body(text: str) -> str:
    """Return the kernel alone of a generated file."""
    return text.rpartition("@triton.jit\n")[2].rstrip()


def _step(step: Step, cards: Any) -> Part:
    eq = step.equation
    if step.kind == "view":
        return Part(eq.prim.name, "view", (eq.prim.name,), "", 0, 0, None, {})
    moved = _bytes([*eq.inputs, *eq.outputs])
    work = _flops(eq)
    dtype = eq.outputs[0].type.dtype.name
    seconds = {name: projected(card, moved, work, dtype, _is_product(eq)) for name, card in cards.items()}
    return Part(eq.prim.name, "library", (eq.prim.name,), "", moved, work, None, seconds)


def _is_product(eq: Equation) -> bool:
    return eq.prim.name == "dot_general" or eq.prim is fused_product


def _flops(eq: Equation) -> int:
    if eq.prim is fused_product:
        added = eq.params["epilogue"].equations
        inputs = [a.type for a in eq.inputs[:2]]
        out = eq.params["epilogue"].inputs[0].type
        own = flops_of(TABLE["dot_general"], eq.params, inputs, [out]) + eq.params["bias"] * out.size
        return own + sum(map(_flops, added))
    return flops_of(eq.prim, eq.params, [a.type for a in eq.inputs], [v.type for v in eq.outputs])


def _bytes(values: Sequence[Any]) -> int:
    """Return the size of values, each counted once."""
    found = {id(v): v.type.size * v.type.dtype.itemsize for v in values if not isinstance(v, Literal)}
    return sum(found.values())

"""What a jitted function is compiled to, for people: Programs before and after, source, memory and work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fgrad.backend.cpu import Compiled
from fgrad.core import ArrayType, Params, Primitive
from fgrad.program import Program


def flops(program: Program) -> int:
    """Return an estimate of the floating-point operations of a Program: one per element and elementwise primitive."""
    return sum(
        flops_of(eq.prim, eq.params, [a.type for a in eq.inputs], [v.type for v in eq.outputs])
        for eq in program.equations
    )


def flops_of(prim: Primitive, params: Params, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType]) -> int:
    """Return an estimate of the floating-point operations of one application of a primitive."""
    if prim.name == "dot_general":
        return 2 * outputs[0].size * math.prod([inputs[0].shape[a] for a in params["contract"][0]])
    if prim.name == "scan":
        return params["length"] * flops(params["body"])  # type: ignore[no-any-return]
    if prim.kind == "elementwise":
        return outputs[0].size
    return inputs[0].size if prim.name.startswith(("reduce_", "cum", "logsumexp")) else 0


class Lowered:
    """A signature of a jitted function on its way to code; `print` it to read it all.

    Attributes:
        program: the recorded Program.
        simplified: what code is generated from.
        source: the generated Python.
        arena_bytes: the memory one running call holds for intermediate results.
        flops: an estimate of floating-point operations.
        bytes_in, bytes_out: the size of inputs, constants included, and of outputs.
    """

    def __init__(self, program: Program, fast_math: bool = False):
        compiled = Compiled(program, fast_math)
        self.program = program
        self.simplified = compiled.program
        self.source: str = compiled.source
        self.arena_bytes = sum(compiled.layout.sizes)
        self.flops = flops(compiled.program)
        self.bytes_in = _bytes([*program.in_types, *(v.type for v, _ in program.consts)])
        self.bytes_out = _bytes(program.out_types)

    def __str__(self) -> str:
        numbers = f"{self.flops:,} flops, {self.bytes_in:,} bytes in, {self.bytes_out:,} out, {self.arena_bytes:,} held"
        parts = [
            ("recorded", str(self.program)),
            ("simplified", str(self.simplified)),
            ("source", self.source.rstrip()),
            ("estimate", numbers),
        ]
        return "\n\n".join(f"-- {title}\n{text}" for title, text in parts)

    def __repr__(self) -> str:
        return f"<lowered {self.program.label}: {len(self.simplified.equations)} equations>"


def _bytes(kinds: Any) -> int:
    return sum(kind.size * kind.dtype.itemsize for kind in kinds)

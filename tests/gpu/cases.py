"""Programs that people run, and what generated kernels make of them; writes docs/generated-kernels.md.

Bytes are counted from the loads and stores that the twin sees, and held against what the Program itself demands: its
stages are what lies between two calls of a library; each stage reads every array it needs once, and writes what
another stage, a call or the caller needs.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np

import fgrad
from benchmarks.libraries import Fgrad
from benchmarks.workloads import block_loss, transformer
from fgrad import tree
from fgrad.backend.gpu.fusion import Step
from fgrad.backend.gpu.program import GpuProgram
from fgrad.program import Var
from fgrad.triton_kernels.traffic import traffic

PAGE = Path(__file__).parents[2] / "docs/generated-kernels.md"

HEAD = """\
# What becomes of programs on a GPU

Generated kernels of programs that people run: how many there are, what is left to library kernels, and how many bytes
the generated ones move, counted from the loads and stores that the twin sees. The least is what stages between two
library calls must read and write, each array once; what a program adds to its own partial results again and again, row
by row, counts once, since it stays in the cache (ADR 0010 has the numbers). Made without a GPU by
`python -m tests.gpu.cases > docs/generated-kernels.md`; a test fails where the counts differ.

| program | equations | generated kernels | launches | library calls | bytes moved | the least | ratio |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def _normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def norm_gelu(x, scale, shift):
    return fgrad.nn.gelu(fgrad.nn.standardize(x) * scale + shift)


def norm_gelu_backward(ct, x, scale, shift):
    return fgrad.vjp(norm_gelu, x, scale, shift)[1](ct)


def norm_gelu_half(x, scale, shift):
    return norm_gelu(x, scale, shift).astype(x.dtype)


def norm_gelu_half_backward(ct, x, scale, shift):
    return fgrad.vjp(norm_gelu_half, x, scale, shift)[1](ct)


def _norm_gelu_arguments(rows, columns, dtype=np.float32):
    arrays = (*[_normal(rows, columns, seed=k) for k in (0, 1)], np.ones(columns), np.zeros(columns))
    return [x.astype(dtype) for x in arrays]


def perceptron_loss(p, x, y):
    h = fgrad.nn.relu(x @ p["w1"] + p["b1"])
    h = fgrad.nn.relu(h @ p["w2"] + p["b2"])
    logits = h @ p["w3"] + p["b3"]
    return fgrad.nn.logsumexp(logits, -1).mean() - (logits * y).sum(-1).mean()


def perceptron_step(p, x, y):
    loss, gradient = fgrad.value_and_grad(perceptron_loss)(p, x, y)
    return loss, tree.map(lambda a, b: a - 0.1 * b, p, gradient)


def _perceptron():
    sizes = (64, 128, 128, 10)
    p = {f"w{k + 1}": _normal(m, n, seed=k) * m**-0.5 for k, (m, n) in enumerate(itertools.pairwise(sizes))}
    p |= {f"b{k + 1}": np.zeros(n, np.float32) for k, n in enumerate(sizes[1:])}
    return p, _normal(256, 64), np.eye(10, dtype=np.float32)[np.arange(256) % 10]


def _block(p, x):
    return block_loss(Fgrad().names, p, x)


CASES = {
    "softmax": lambda: (fgrad.nn.softmax, _normal(512, 256)),
    "layer norm and GELU, backward": lambda: (
        norm_gelu_backward,
        *_norm_gelu_arguments(512, 256),
    ),
    "layer norm and GELU, backward, rows of 16,384": lambda: (norm_gelu_backward, *_norm_gelu_arguments(32, 16384)),
    "layer norm and GELU, backward, rows of 16,384, bfloat16": lambda: (
        norm_gelu_half_backward,
        *_norm_gelu_arguments(32, 16384, ml_dtypes.bfloat16),
    ),
    "softmax, 4 rows of 100,000": lambda: (fgrad.nn.softmax, _normal(4, 100_000)),
    "mean, 4 rows of 100,000": lambda: (lambda x: x.mean(1), _normal(4, 100_000)),
    "step of a perceptron": lambda: (perceptron_step, *_perceptron()),
    "transformer block (W10), value and gradient": lambda: (fgrad.value_and_grad(_block), *transformer().arguments()),
}


MOST_MOVED = {"softmax, 4 rows of 100,000": 2.01}
"""Ratios that are not to be reached: what does not fit into registers is read once for each depth of reduction."""


class Counts(NamedTuple):
    """What a Program became: numbers of equations, kernels, launches, calls by name, and bytes."""

    equations: int
    kernels: int
    launches: int
    calls: dict[str, int]
    moved: int
    least: int

    @property
    def ratio(self):
        return self.moved / self.least


def counts(function, *args):
    """Return the `Counts` of a function of arrays."""
    compiled = GpuProgram(fgrad.make_ir(function)(*args).simplify())
    seen = traffic(compiled.compute, *tree.leaves(args))
    mine = [launch for launch in seen if launch.kernel.startswith(("kernel_", "joined"))]
    steps = [part for part in compiled.plan.parts if isinstance(part, Step) and part.kind == "call"]
    calls = Counter(part.equation.prim.name for part in steps)
    moved = sum(launch.moved for launch in mine)
    equations = len(compiled.program.equations)
    return Counts(equations, len(compiled.plan.kernels), len(mine), dict(calls), moved, least_bytes(compiled))


def least_bytes(compiled):
    """Return the bytes that the stages of a Program must move, by its equations alone."""
    program = compiled.program
    called = {id(p.equation): p.kind for p in compiled.plan.parts if isinstance(p, Step)}
    stage = {id(v): 0 for v in [*program.inputs, *[v for v, _ in program.consts]]}
    source, maker, reads, writes = {}, {}, {}, {}

    def moved(a, where, table):
        a = source.get(id(a), a)
        if isinstance(a, Var):
            table[id(a), where] = a

    def written(a):
        a = source.get(id(a), a)
        if id(a) in maker:
            writes[id(a)] = a

    for eq in program.equations:
        at = max([stage.get(id(a), 0) for a in eq.inputs], default=0)
        kind = called.get(id(eq))
        for v in eq.outputs:
            stage[id(v)] = at + (kind == "call")
        if kind == "view":
            source[id(eq.outputs[0])] = source.get(id(eq.inputs[0]), eq.inputs[0])
        elif kind == "call":
            for a in eq.inputs:
                written(a)
        else:
            for a in eq.inputs:
                if maker.get(id(a)) != at:
                    moved(a, at, reads)
                    written(a)
            maker[id(eq.outputs[0])] = at
    for a in program.outputs:
        written(a)
    return sum(v.type.size * v.type.dtype.itemsize for v in [*reads.values(), *writes.values()])


def row(name, found):
    """Return a line of the page."""
    calls = ", ".join(f"{count} {kind}" for kind, count in sorted(found.calls.items())) or "none"
    figures = f"{found.equations} | {found.kernels} | {found.launches} | {calls} | {found.moved:,} | {found.least:,}"
    return f"| {name} | {figures} | {found.ratio:.2f} |"


if __name__ == "__main__":
    print(HEAD + "\n".join(row(name, counts(*case())) for name, case in CASES.items()))

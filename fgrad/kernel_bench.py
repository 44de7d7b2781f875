"""Programs for `python -m fgrad.triton_kernels.bench` whose kernels are generated: forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np

import fgrad.nn as nn
from fgrad.program import Program
from fgrad.transforms.jit import jit
from fgrad.transforms.linearize import vjp
from fgrad.triton_kernels.bench.cases import Case, Work, drawn


class _Generated:
    """A function whose Program, recorded at its first call for types of arguments, runs as generated kernels."""

    def __init__(self, function: Any):
        self._jitted = jit(function)
        self._known: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> Any:
        from fgrad.backend.gpu.program import gpu_program

        key = tuple([(x.shape, np.dtype(x.dtype)) for x in args])
        if key not in self._known:
            program: Program = self._jitted.trace(*args).program.simplify()
            self._known[key] = gpu_program(program)
        out = self._known[key].compute(*args)
        return out if len(out) > 1 else out[0]


def _gelu_norm(x, scale, shift):  # type: ignore[no-untyped-def]
    return nn.gelu(nn.standardize(x) * scale + shift).astype(x.dtype)


def _gelu_norm_gradient(ct, x, scale, shift):  # type: ignore[no-untyped-def]
    return vjp(_gelu_norm, x, scale, shift)[1](ct)


def _case(name: str, function: Any, rows_of: int, columns_of: int, results: int, flops: int) -> Case:
    """Return a case of so many arrays of (rows, columns), then of (columns,), with `results` like the former."""

    def make(rng: Any, dtype: Any, rows: int, columns: int) -> Work:
        args = [drawn(rng, dtype, rows, columns) for _ in range(rows_of)]
        args += [drawn(rng, dtype, columns) for _ in range(columns_of)]
        moved = sum(x.nbytes for x in args) + results * args[0].nbytes
        return Work(_Generated(function), tuple(args), moved, flops * args[0].size, function)

    return Case(f"generated {name}", make)


CASES = [
    _case("softmax", nn.softmax, 1, 0, 1, 5),
    _case("tanh-GELU", nn.gelu, 1, 0, 1, 10),
    _case("layer norm, GELU", _gelu_norm, 1, 2, 1, 20),
    _case("layer norm, GELU, gradient", _gelu_norm_gradient, 2, 2, 1, 40),
]

"""What can be measured: each case draws arrays of a size and type, and says what must be moved and done.

The kernels of this library are measured by their workloads, each forward and backward.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..runtime import launching
from .workload import Workload
from .workloads import WORKLOADS

GENERATED = "fgrad.kernel_bench:CASES"
"""Where the programs are whose kernels are generated; a name, for the kernels know nothing of programs."""


@dataclass
class Work:
    """One call: `function(*args)` on NumPy arrays or arrays on a GPU, and what it comes to.

    `moved` are bytes, each argument read once and each result written once; `flops` floating-point operations.
    `reference(*args)` computes the same of arrays in float64, None where there is nothing to compare with; or
    `error(results, *args)` says how far results are off, relative to what they are. `prepare(*args)` is run first and
    not measured: it returns what the function takes.
    """

    function: Callable[..., Any]
    args: tuple
    moved: int
    flops: int
    reference: Callable[..., Any] | None
    prepare: Callable[..., tuple] = lambda *args: args
    error: Callable[..., float] | None = None


@dataclass(frozen=True)
class Case:
    """A kernel, or a program, that can be measured at any size.

    `make(rng, dtype, rows, columns)` returns a `Work`. `products` says that matrix units bound it, not memory. `peers`
    are the same for torch tensors, by the name of the library: text of a function, so that nothing is imported.
    `dtypes` are those that it takes, None for all.
    """

    name: str
    make: Callable[..., Work]
    products: bool = False
    peers: dict[str, str] = field(default_factory=dict)
    dtypes: tuple | None = None

    def takes(self, dtype):
        """Say whether the case is measured in a dtype."""
        return self.dtypes is None or any(np.dtype(dtype) == np.dtype(known) for known in self.dtypes)


def drawn(rng, dtype, *shape):
    """Return normally distributed numbers."""
    return rng.standard_normal(shape, np.float32).astype(dtype)


def rowwise(function, reference, flops=5, arrays=1):
    """Return what makes a `Work` of a function of (rows, columns) arrays whose result is like the first."""

    def make(rng, dtype, rows, columns):
        args = tuple([drawn(rng, dtype, rows, columns) for _ in range(arrays)])
        size = args[0].size
        return Work(function, args, (arrays + 1) * args[0].nbytes, flops * size, reference)

    return make


def of_workload(workload: Workload) -> list[Case]:
    """Return the cases of a workload: its forward pass and, where it has one, its backward pass."""

    def forward(rng, dtype, rows, columns):
        arrays = workload.drawn(rng, dtype, rows, columns)
        moved = sum(x.nbytes for x in arrays) + sum(map(_bytes, _written(*outline(workload.run, *arrays))))
        return Work(workload.forward, arrays, moved, workload.operations(*arrays), workload.reference)

    def gradient(rng, dtype, rows, columns):
        arrays = workload.drawn(rng, dtype, rows, columns)
        result = outline(workload.forward, *arrays)
        ct = drawn(rng, result.dtype, *result.shape)
        moved = sum(x.nbytes for x in (ct, *arrays, *[arrays[at] for at in workload.differentiable]))
        return Work(
            workload.pull,
            (ct, *arrays),
            moved,
            int(workload.more * workload.operations(*arrays)),
            None,
            lambda ct, *arrays: (ct, workload.run(*arrays)[1], *arrays),
            lambda gradients, ct, *arrays: _slope_error(workload, gradients, ct, *arrays),
        )

    passes = [Case(workload.name, forward, workload.products, workload.peers, workload.dtypes)]
    if workload.differentiable:
        passes.append(Case(f"{workload.name}, gradient", gradient, workload.products, {}, workload.dtypes))
    return passes


def outline(function, *arrays):
    """Return what a function of NumPy arrays returns, its values undefined: no kernel runs."""
    with launching(lambda launch: None), np.errstate(all="ignore"):
        return function(*arrays)


def _written(result, saved):
    """Return the arrays that a forward pass writes: what it keeps may be its result."""
    return [result, *[x for x in saved if not np.may_share_memory(x, result)]]


def _bytes(x):
    """Return the bytes of an array's elements, those that are repeated counted once."""
    size = x.itemsize
    for length, stride in zip(x.shape, x.strides, strict=True):
        size *= length if stride else 1
    return size


def _slope_error(workload, gradients, ct, *arrays):
    """Return how far gradients are from the slope of the reference along a direction, by central differences."""
    rng, step, slope, scale = np.random.default_rng(2), 1e-5, 0.0, 1e-30
    moved = [list(arrays), list(arrays)]
    for at, gradient in zip(workload.differentiable, gradients, strict=True):
        direction = rng.standard_normal(arrays[at].shape)
        for side, sign in zip(moved, (1, -1), strict=True):
            side[at] = arrays[at] + sign * step * direction
        slope += (gradient * direction).sum()
        scale += np.abs(gradient * direction).sum()
    up, down = ((workload.reference(*side) * ct).sum() for side in moved)
    return abs((up - down) / (2 * step) - slope) / scale


CASES = [case for workload in WORKLOADS for case in of_workload(workload)]


def found(path: str) -> list[Case]:
    """Return the cases at an import path "module:name": a case, a workload, a list of them, or a function of one array.

    Raises:
        ValueError: it is no such path.
        TypeError: what is there is none of these.
    """
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise ValueError(f'--kernel: got {path!r}, expected "module:name"')
    value = getattr(importlib.import_module(module), name)
    listed = value if isinstance(value, (list, tuple)) else [value]
    if listed and all(isinstance(one, (Case, Workload)) for one in listed):
        return [case for one in listed for case in ([one] if isinstance(one, Case) else of_workload(one))]
    if callable(value):
        return [Case(name, rowwise(value, None))]
    raise TypeError(
        f"--kernel {path}: got {type(value).__name__}, expected a Case, a Workload, a list of them, or a function"
    )

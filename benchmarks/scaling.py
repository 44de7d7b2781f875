"""How time and memory grow with size, and the exponent: of growth from one size to the next, over the larger half."""

import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import interleaved
from benchmarks.workloads import Workload, chain, digits_step, recurrent, rosenbrock


class Scale(NamedTuple):
    """A workload for every size, and who computes it."""

    title: str
    axis: str
    make: Callable[[int], Workload]
    sizes: Sequence[int]
    names: Sequence[str]


class Curve(NamedTuple):
    """Median seconds by library and size, and the peak of bytes by our libraries and size."""

    scale: Scale
    seconds: dict[str, list[float]]
    nbytes: dict[str, list[int]]


FUNCTIONAL = ("fgrad jit", "jax jit", "torch")
TAPES = ("fgrad.compat", "fgrad eager", "torch")

SCALES = [
    Scale("W2: Rosenbrock", "n", rosenbrock, (10, 100, 1_000, 10_000, 100_000, 1_000_000), FUNCTIONAL),
    Scale("W4: MLP step", "batch", digits_step, (8, 32, 128, 512, 2048, 8192), FUNCTIONAL),
    Scale("W9: RNN scan", "length", recurrent, (8, 32, 128, 512, 2048), FUNCTIONAL),
    Scale("W11, W12: tape", "operations", chain, (100, 1_000, 10_000, 100_000), TAPES),
]


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope of log(values) over log(sizes) in the larger half of the sizes."""
    half = (len(sizes) - 1) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(values[half:]), 1)[0])


def peak(library: Any, workload: Workload) -> int:
    """Return the most bytes that Python and NumPy hold in a second call, plans and arguments included."""
    tracemalloc.start()
    run = library.prepare(workload)
    run()
    tracemalloc.reset_peak()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def measure(scale, libraries, effort) -> Curve:
    """Return the curve of one scale for the libraries that are there."""
    names = [name for name in scale.names if name in libraries]
    curve = Curve(scale, {name: [] for name in names}, {name: [] for name in names if name.startswith("fgrad")})
    for size in scale.sizes:
        workload = scale.make(size)
        seconds = interleaved({name: libraries[name].prepare(workload) for name in names}, effort)
        for name in names:
            curve.seconds[name].append(float(np.median(seconds[name])))
        for name in curve.nbytes:
            curve.nbytes[name].append(peak(libraries[name], workload))
    return curve

"""What a kernel family is to whoever runs it: arrays of any size, the two passes, the reference, the work it comes to.

The benchmark's cases and the tests' battery are made of these. What several families draw and compute alike is here.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .. import dropout

HALF = (np.float16,)
if importlib.util.find_spec("ml_dtypes"):
    from ml_dtypes import bfloat16

    HALF += (bfloat16,)


@dataclass(frozen=True)
class Workload:
    """A forward function with its backward, what both must compute, and on what.

    run(*arrays) gives the result and a tuple of what backward needs beside the arrays; pull(ct, saved, *arrays) the
    gradients of the arrays at `differentiable`, in order; reference(*arrays) the result, of arrays in float64.
    inputs(rng, dtype, rows, columns) draws the arrays of a test; `sized` does for the benchmark, where rows and columns
    mean something else there. `flops` are operations for each element of the first array, or a function of the arrays;
    backward does `more` times as many. `products` says that matrix units bound it, not memory. `peers` are the same for
    torch tensors, by the name of the library: text of a function, so that nothing is imported.
    """

    name: str
    run: Callable
    pull: Callable
    reference: Callable
    inputs: Callable
    differentiable: tuple = (0,)
    dtypes: tuple = (np.float64, np.float32, *HALF)
    flops: float | Callable = 5
    more: float = 2
    products: bool = False
    sized: Callable | None = None
    peers: dict = field(default_factory=dict)

    def forward(self, *arrays):
        """Return the result."""
        return self.run(*arrays)[0]

    def backward(self, ct, *arrays):
        """Return the gradients of the arrays at `differentiable`."""
        return self.pull(ct, self.run(*arrays)[1], *arrays) if self.differentiable else ()

    def drawn(self, rng, dtype, rows, columns):
        """Return the arrays of the benchmark."""
        return (self.sized or self.inputs)(rng, dtype, rows, columns)

    def operations(self, *arrays):
        """Return how many floating-point operations the forward pass does."""
        return int(self.flops(*arrays) if callable(self.flops) else self.flops * arrays[0].size)


# Of families that optimise: their state is float32, and float64 has no use.
NARROW = (np.float32, *HALF)


def of_one(forward, backward=None):
    """Return `run` and `pull` of functions that keep nothing: forward(*arrays), backward(ct, *arrays)."""
    return {
        "run": lambda *arrays: (forward(*arrays), ()),
        "pull": lambda ct, saved, *arrays: backward(ct, *arrays),
    }


def rows_of(rng, dtype, rows, columns):
    """Draw one array of rows."""
    return (normal(rng, (rows, columns), dtype, 3),)


def normal(rng, shape, dtype, scale=1, mean=0):
    """Draw normally distributed numbers."""
    drawn = rng.standard_normal(shape, np.float64 if dtype == np.float64 else np.float32)
    drawn *= scale
    drawn += mean
    return drawn.astype(dtype)


def logits_and_labels(rng, dtype, rows, columns):
    """Draw logits, and labels one of which is ignored."""
    labels = rng.integers(0, max(1, columns), rows)
    if rows > 2:
        labels[1] = -100
    return normal(rng, (rows, columns), dtype, 3), labels


def softmax_loss(logits, labels, smoothing=0.0):
    """Return the cross-entropy of each row."""
    labels = labels.astype(np.int64)
    shift = logits.max(1)
    lse = np.log(np.exp(logits - shift[:, None]).sum(1)) + shift
    target = np.take_along_axis(logits, np.maximum(labels, 0)[:, None], 1)[:, 0]
    return np.where(labels == -100, 0.0, lse - (1 - smoothing) * target - smoothing * logits.mean(1))


def silu(x):
    """Return x times its sigmoid."""
    return 0.5 * x * (1 + np.tanh(0.5 * x))


erf = np.vectorize(math.erf, otypes=[float])


@functools.cache
def mask(shape, seed, rate):
    """Return what dropout multiplies by."""
    return dropout.dropout_forward(np.ones(shape), seed, rate=rate)

"""The kernel families under test, each described once: `test_battery.py` runs every rule on every family.

A new kernel gets one `Family` here, and tests of its own only for what no other kernel has.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fgrad.triton_kernels import cross_entropy


@dataclass(frozen=True)
class Family:
    """A forward function with its backward, and what both must compute.

    forward(*arrays) gives the result; backward(ct, *arrays) the gradients of the arrays at `differentiable`, in order;
    reference(*arrays) the result, of arrays in float64. inputs(rng, dtype, rows, columns) draws the arrays; huge(dtype)
    gives arrays of zeros with more than 2**31 elements. `reduces_rows` says that a NaN must reach all of its row.
    """

    name: str
    forward: Callable
    backward: Callable
    reference: Callable
    inputs: Callable
    huge: Callable
    differentiable: tuple = (0,)
    sizes: tuple = ((1, 1), (3, 5), (4, 17), (2, 127), (3, 1000))
    reduces_rows: bool = True
    tolerance: float = 4.0


def _softmax_loss(logits, labels, smoothing=0.0):
    shift = logits.max(1)
    lse = np.log(np.exp(logits - shift[:, None]).sum(1)) + shift
    target = np.take_along_axis(logits, np.maximum(labels, 0)[:, None], 1)[:, 0]
    return np.where(labels == -100, 0.0, lse - (1 - smoothing) * target - smoothing * logits.mean(1))


def _logits_and_labels(rng, dtype, rows, columns):
    labels = rng.integers(0, columns, rows)
    if rows > 2:
        labels[1] = -100
    return (3 * rng.normal(size=(rows, columns))).astype(dtype), labels


def _cross_entropy(name, smoothing):
    options = {"label_smoothing": smoothing}

    def reference(logits, labels):
        return _softmax_loss(logits, labels, smoothing)

    def forward(logits, labels):
        return cross_entropy.cross_entropy_forward(logits, labels, **options)[0]

    def backward(ct, logits, labels):
        _, lse = cross_entropy.cross_entropy_forward(logits, labels, **options)
        return (cross_entropy.cross_entropy_backward(ct, logits, labels, lse, **options),)

    def huge(dtype):
        return np.zeros((70_000, 40_000), dtype), np.zeros(70_000, np.int64)

    return Family(name, forward, backward, reference, _logits_and_labels, huge)


FAMILIES = [
    _cross_entropy("cross_entropy", 0.0),
    _cross_entropy("cross_entropy smoothed", 0.1),
]

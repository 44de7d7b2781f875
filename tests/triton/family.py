"""What describes a kernel family to the battery, and what several families draw and compute alike."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from scipy import special

from fgrad.triton_kernels import dropout


@dataclass(frozen=True)
class Family:
    """A forward function with its backward, and what both must compute.

    forward(*arrays) gives the result; backward(ct, *arrays) the gradients of the arrays at `differentiable`, in order;
    reference(*arrays) the result, of arrays in float64. inputs(rng, dtype, rows, columns) draws the arrays; huge(dtype)
    gives arrays of zeros with more than 2**31 elements. `reduces_rows` says that a NaN must reach all of its row,
    `keeps_rows_apart` that it must reach no other (an index holds no NaN, and a norm of all holds every one), `linear`
    that the first array's gradient does not depend on it, `multiplies` that matrices are multiplied in it. A family
    without gradients has `differentiable` ().
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
    keeps_rows_apart: bool = True
    linear: bool = False
    multiplies: bool = False
    tolerance: float = 4.0
    wide: tuple = (4097, 65_537)
    dtypes: tuple = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)


def rows_of(rng, dtype, rows, columns):
    return ((3 * rng.normal(size=(rows, columns))).astype(dtype),)


def huge_rows(dtype):
    return (np.zeros((70_000, 40_000), dtype),)


def logits_and_labels(rng, dtype, rows, columns):
    labels = rng.integers(0, max(1, columns), rows)
    if rows > 2:
        labels[1] = -100
    return (3 * rng.normal(size=(rows, columns))).astype(dtype), labels


def softmax_loss(logits, labels, smoothing=0.0):
    shift = logits.max(1)
    lse = np.log(np.exp(logits - shift[:, None]).sum(1)) + shift
    target = np.take_along_axis(logits, np.maximum(labels, 0)[:, None], 1)[:, 0]
    return np.where(labels == -100, 0.0, lse - (1 - smoothing) * target - smoothing * logits.mean(1))


def silu(x):
    return x * special.expit(x)


@functools.cache
def mask(shape, seed, rate):
    return dropout.dropout_forward(np.ones(shape), seed, rate=rate)

"""The kernel families under test, each described once: `test_battery.py` runs every rule on every family.

A new kernel gets one `Family` here, and tests of its own only for what no other kernel has.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from fgrad.triton_kernels import activation, cross_entropy, dropout, embedding, matmul, norm, reduction, rope, softmax


@dataclass(frozen=True)
class Family:
    """A forward function with its backward, and what both must compute.

    forward(*arrays) gives the result; backward(ct, *arrays) the gradients of the arrays at `differentiable`, in order;
    reference(*arrays) the result, of arrays in float64. inputs(rng, dtype, rows, columns) draws the arrays; huge(dtype)
    gives arrays of zeros with more than 2**31 elements. `reduces_rows` says that a NaN must reach all of its row,
    `linear` that the first array's gradient does not depend on it.
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
    linear: bool = False
    tolerance: float = 4.0
    wide: tuple = (4097, 65_537)


def _softmax_loss(logits, labels, smoothing=0.0):
    shift = logits.max(1)
    lse = np.log(np.exp(logits - shift[:, None]).sum(1)) + shift
    target = np.take_along_axis(logits, np.maximum(labels, 0)[:, None], 1)[:, 0]
    return np.where(labels == -100, 0.0, lse - (1 - smoothing) * target - smoothing * logits.mean(1))


def _logits_and_labels(rng, dtype, rows, columns):
    labels = rng.integers(0, max(1, columns), rows)
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


def _rows(rng, dtype, rows, columns):
    return ((3 * rng.normal(size=(rows, columns))).astype(dtype),)


def _huge_rows(dtype):
    return (np.zeros((70_000, 40_000), dtype),)


def _softmax(log):
    forward = softmax.log_softmax_forward if log else softmax.softmax_forward
    pull = softmax.log_softmax_backward if log else softmax.softmax_backward

    def reference(x):
        shifted = x - x.max(1, keepdims=True)
        result = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        return result if log else np.exp(result)

    def backward(ct, x):
        return (pull(ct, forward(x)),)

    return Family("log_softmax" if log else "softmax", forward, backward, reference, _rows, _huge_rows)


def _scaled_rows(rng, dtype, rows, columns, parameters):
    x = 100 + 5 * rng.normal(size=(rows, columns))
    return tuple(array.astype(dtype) for array in (x, *rng.normal(1.0, 1.0, (parameters, columns))))


# The rows have mean 100 and deviation 5: the difference from the mean alone costs a factor of 20.
_NORM_TOLERANCE = 64.0


def _layer_norm():
    def reference(x, weight, bias):
        centered = x - x.mean(1, keepdims=True)
        return centered / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5) * weight + bias

    def backward(ct, x, weight, bias):
        _, mean, rstd = norm.layer_norm_forward(x, weight, bias)
        return norm.layer_norm_backward(ct, x, weight, bias, mean, rstd)

    return Family(
        "layer_norm",
        lambda x, weight, bias: norm.layer_norm_forward(x, weight, bias)[0],
        backward,
        reference,
        lambda rng, dtype, rows, columns: _scaled_rows(rng, dtype, rows, columns, 2),
        lambda dtype: (*_huge_rows(dtype), np.zeros(40_000, dtype), np.zeros(40_000, dtype)),
        differentiable=(0, 1, 2),
        tolerance=_NORM_TOLERANCE,
    )


def _rms_norm():
    def reference(x, weight):
        return x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * weight

    def backward(ct, x, weight):
        _, rstd = norm.rms_norm_forward(x, weight)
        return norm.rms_norm_backward(ct, x, weight, rstd)

    return Family(
        "rms_norm",
        lambda x, weight: norm.rms_norm_forward(x, weight)[0],
        backward,
        reference,
        lambda rng, dtype, rows, columns: _scaled_rows(rng, dtype, rows, columns, 1),
        lambda dtype: (*_huge_rows(dtype), np.zeros(40_000, dtype)),
        differentiable=(0, 1),
        tolerance=_NORM_TOLERANCE,
    )


def _activation(name, value, gated):
    def inputs(rng, dtype, rows, columns):
        return tuple((2 * rng.normal(size=(rows, columns))).astype(dtype) for _ in range(1 + gated))

    def backward(ct, x, up=None):
        gradients = activation.activation_backward(ct, x, name, up)
        return gradients if gated else gradients[:1]

    return Family(
        f"{name} gated" if gated else name,
        lambda x, up=None: activation.activation_forward(x, name, up),
        backward,
        lambda x, up=1.0: value(x) * up,
        inputs,
        lambda dtype: tuple(np.zeros((70_000, 40_000), dtype) for _ in range(1 + gated)),
        differentiable=(0, 1) if gated else (0,),
        reduces_rows=False,
        tolerance=16.0,  # 1 - tanh² and 1 - sigmoid lose digits
        wide=(4097,),
    )


def _silu(x):
    return x * special.expit(x)


def _gelu(x):
    return x * 0.5 * (1 + special.erf(x / np.sqrt(2)))


def _gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _dropout():
    return Family(
        "dropout",
        lambda x: dropout.dropout_forward(x, 7, rate=0.3),
        lambda ct, x: (dropout.dropout_backward(ct, 7, rate=0.3),),
        lambda x: x * dropout.dropout_forward(np.ones_like(x), 7, rate=0.3),
        _rows,
        _huge_rows,
        reduces_rows=False,
        linear=True,
    )


def _rope():
    def reference(x, cos, sin):
        first, second = np.split(x, 2, axis=1)
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=1)

    def inputs(rng, dtype, rows, columns):
        angles = rng.normal(size=(rows, columns))
        x = rng.normal(size=(rows, 2 * columns))
        return x.astype(dtype), np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)

    def huge(dtype):
        return np.zeros((70_000, 32_768), dtype), *(np.zeros((70_000, 16_384), dtype) for _ in range(2))

    return Family(
        "rope",
        lambda x, cos, sin: rope.rope_forward(x[None, :, None], cos, sin)[0, :, 0],
        lambda ct, x, cos, sin: (rope.rope_backward(ct[None, :, None], cos, sin)[0, :, 0],),
        reference,
        inputs,
        huge,
        reduces_rows=False,
        linear=True,
    )


def _embedding():
    return Family(
        "embedding",
        embedding.embedding_forward,
        lambda ct, table, index: (embedding.embedding_backward(ct, index, len(table)),),
        lambda table, index: table[index],
        lambda rng, dtype, rows, columns: (rng.normal(size=(rows, columns)).astype(dtype), np.arange(rows)),
        lambda dtype: (*_huge_rows(dtype), np.arange(70_000)),
        reduces_rows=False,
        linear=True,
    )


def _reduction(kind, value):
    def backward(ct, x):
        return (reduction.reduce_backward(ct, x, reduction.reduce_forward(x, kind), kind),)

    return Family(
        kind,
        lambda x: reduction.reduce_forward(x, kind),
        backward,
        value,
        _rows,
        _huge_rows,
        linear=kind in ("sum", "mean"),
    )


def _logsumexp(x):
    shift = x.max(1)
    return np.log(np.exp(x - shift[:, None]).sum(1)) + shift


def _cumsum():
    return Family(
        "cumsum",
        reduction.cumsum_forward,
        lambda ct, x: (reduction.cumsum_backward(ct),),
        lambda x: x.cumsum(1),
        _rows,
        _huge_rows,
        reduces_rows=False,
        linear=True,
        tolerance=16.0,
    )


def _matmul():
    return Family(
        "matmul",
        matmul.matmul_forward,
        matmul.matmul_backward,
        lambda x, y: x @ y,
        lambda rng, dtype, rows, columns: tuple(
            rng.normal(size=shape).astype(dtype) for shape in ((rows, columns), (columns, 5))
        ),
        lambda dtype: (*_huge_rows(dtype), np.zeros((40_000, 16), dtype)),
        differentiable=(0, 1),
        linear=True,
        tolerance=8.0,
        wide=(4097,),
    )


FAMILIES = [
    _cross_entropy("cross_entropy", 0.0),
    _cross_entropy("cross_entropy smoothed", 0.1),
    _softmax(log=False),
    _softmax(log=True),
    _layer_norm(),
    _rms_norm(),
    _activation("gelu", _gelu, gated=False),
    _activation("gelu_tanh", _gelu_tanh, gated=True),
    _activation("silu", _silu, gated=True),
    _dropout(),
    _rope(),
    _embedding(),
    _matmul(),
    _reduction("sum", lambda x: x.sum(1)),
    _reduction("mean", lambda x: x.mean(1)),
    _reduction("max", lambda x: x.max(1)),
    _reduction("logsumexp", _logsumexp),
    _cumsum(),
]

"""The kernel families under test, each described once: `test_battery.py` runs every rule on every family.

A new kernel gets one `Family` here, and tests of its own only for what no other kernel has.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from scipy import special

from fgrad.triton_kernels import (
    activation,
    attention,
    cross_entropy,
    dropout,
    embedding,
    layout,
    linear_cross_entropy,
    matmul,
    norm,
    optimizer,
    reduction,
    rope,
    softmax,
)


@dataclass(frozen=True)
class Family:
    """A forward function with its backward, and what both must compute.

    forward(*arrays) gives the result; backward(ct, *arrays) the gradients of the arrays at `differentiable`, in order;
    reference(*arrays) the result, of arrays in float64. inputs(rng, dtype, rows, columns) draws the arrays; huge(dtype)
    gives arrays of zeros with more than 2**31 elements. `reduces_rows` says that a NaN must reach all of its row,
    `linear` that the first array's gradient does not depend on it. A family without gradients has `differentiable` ().
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
    dtypes: tuple = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)


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


def _weighted_cross_entropy():
    def reference(logits, labels, weight):
        shifted = logits - logits.max(1, keepdims=True)
        loss = weight * (np.log(np.exp(shifted).sum(1, keepdims=True)) - shifted)
        target = np.take_along_axis(loss, np.maximum(labels, 0)[:, None], 1)[:, 0]
        return np.where(labels == -100, 0.0, 0.9 * target + 0.1 * loss.mean(1))

    def forward(logits, labels, weight):
        return cross_entropy.cross_entropy_forward(logits, labels, weight, label_smoothing=0.1)[0]

    def backward(ct, logits, labels, weight):
        _, lse = cross_entropy.cross_entropy_forward(logits, labels, weight, label_smoothing=0.1)
        return (cross_entropy.cross_entropy_backward(ct, logits, labels, lse, weight, label_smoothing=0.1),)

    def inputs(rng, dtype, rows, columns):
        return *_logits_and_labels(rng, dtype, rows, columns), rng.uniform(0, 2, columns).astype(dtype)

    def huge(dtype):
        return np.zeros((70_000, 40_000), dtype), np.zeros(70_000, np.int64), np.zeros(40_000, dtype)

    return Family("cross_entropy weighted", forward, backward, reference, inputs, huge, tolerance=16.0)


def _linear_cross_entropy():
    options = {"chunk": 2}

    def forward(hidden, weight, labels):
        return linear_cross_entropy.linear_cross_entropy_forward(hidden, weight, labels, **options)[0]

    def backward(ct, hidden, weight, labels):
        _, lse = linear_cross_entropy.linear_cross_entropy_forward(hidden, weight, labels, **options)
        return linear_cross_entropy.linear_cross_entropy_backward(ct, hidden, weight, labels, lse, **options)

    def inputs(rng, dtype, rows, columns):
        hidden, labels = _logits_and_labels(rng, dtype, rows, columns)
        weight = rng.normal(size=(7, columns)) / np.sqrt(max(1, columns))
        return hidden, weight.astype(dtype), np.where(labels < 0, labels, labels % 7)

    def huge(dtype):
        return np.zeros((2, 40_000), dtype), np.zeros((60_000, 40_000), dtype), np.zeros(2, np.int64)

    return Family(
        "linear_cross_entropy",
        forward,
        backward,
        lambda hidden, weight, labels: _softmax_loss(hidden @ weight.T, labels),
        inputs,
        huge,
        differentiable=(0, 1),
        tolerance=16.0,  # gradients of logits are rounded before they are multiplied
        wide=(4097,),
    )


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


def _group_norm():
    def reference(x, weight, bias):
        rows = x.reshape(len(x), 2, -1)
        centered = rows - rows.mean(2, keepdims=True)
        normal = centered / np.sqrt((centered**2).mean(2, keepdims=True) + 1e-5)
        return normal.reshape(x.shape) * weight[:, None] + bias[:, None]

    def backward(ct, x, weight, bias):
        _, mean, rstd = norm.group_norm_forward(x, weight, bias, groups=2)
        return norm.group_norm_backward(ct, x, weight, bias, mean, rstd, groups=2)

    def inputs(rng, dtype, rows, columns):
        x = 100 + 5 * rng.normal(size=(rows, 2 * columns, 3))
        return tuple(array.astype(dtype) for array in (x, *rng.normal(1.0, 1.0, (2, 2 * columns))))

    return Family(
        "group_norm",
        lambda x, weight, bias: norm.group_norm_forward(x, weight, bias, groups=2)[0],
        backward,
        reference,
        inputs,
        lambda dtype: (np.zeros((70_000, 20_000, 2), dtype), np.zeros(20_000, dtype), np.zeros(20_000, dtype)),
        differentiable=(0, 1, 2),
        reduces_rows=False,
        tolerance=_NORM_TOLERANCE,
        wide=(4097,),
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


@functools.cache
def _mask(shape, seed, rate):
    return dropout.dropout_forward(np.ones(shape), seed, rate=rate)


def _dropout():
    return Family(
        "dropout",
        lambda x: dropout.dropout_forward(x, 7, rate=0.3),
        lambda ct, x: (dropout.dropout_backward(ct, 7, rate=0.3),),
        lambda x: x * _mask(x.shape, 7, 0.3),
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


def _scatter_add():
    def reference(x, index, updates):
        out = x.copy()
        np.add.at(out, index, updates)
        return out

    def inputs(rng, dtype, rows, columns):
        x, updates = rng.normal(size=(2, rows, columns))
        return x.astype(dtype), rng.integers(0, max(1, rows), rows), updates.astype(dtype)

    return Family(
        "scatter_add",
        embedding.scatter_add_forward,
        lambda ct, x, index, updates: embedding.scatter_add_backward(ct, index),
        reference,
        inputs,
        lambda dtype: (*_huge_rows(dtype), np.arange(70_000), *_huge_rows(dtype)),
        differentiable=(0, 2),
        reduces_rows=False,
        linear=True,
    )


def _gather():
    return Family(
        "gather",
        lambda x, index: embedding.gather_forward(x, index, axis=1),
        lambda ct, x, index: (embedding.gather_backward(ct, x, index, axis=1),),
        lambda x, index: x[:, index],
        lambda rng, dtype, rows, columns: (*_rows(rng, dtype, rows, columns), rng.integers(0, columns or 1, columns)),
        lambda dtype: (*_huge_rows(dtype), np.arange(40_000)),
        reduces_rows=False,
        linear=True,
        wide=(1025,),
    )


def _transpose():
    return Family(
        "transpose",
        lambda x: layout.transpose_forward(x, axes=(0, 2, 1)),
        lambda ct, x: (layout.transpose_backward(ct, axes=(0, 2, 1)),),
        lambda x: x.transpose(0, 2, 1),
        lambda rng, dtype, rows, columns: (rng.normal(size=(rows, columns, 3)).astype(dtype),),
        lambda dtype: (np.zeros((70_000, 20_000, 2), dtype),),
        reduces_rows=False,
        linear=True,
        wide=(4097,),
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


def _huge_operands(dtype):
    return np.zeros((70_000, 64, 512), dtype), np.zeros((70_000, 512, 16), dtype)


def _matmul():
    return Family(
        "matmul",
        matmul.matmul_forward,
        matmul.matmul_backward,
        lambda x, y: x @ y,
        lambda rng, dtype, rows, columns: tuple(
            rng.normal(size=shape).astype(dtype) for shape in ((rows, columns), (columns, 5))
        ),
        _huge_operands,
        differentiable=(0, 1),
        linear=True,
        tolerance=8.0,
        wide=(4097,),
    )


def _linear():
    options = {"activation": "silu"}

    def backward(ct, x, y, bias):
        _, before = matmul.linear_forward(x, y, bias, **options)
        return matmul.linear_backward(ct, x, y, bias, before, **options)

    def inputs(rng, dtype, rows, columns):
        shapes = ((rows, columns), (columns, 5), (5,))
        return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)

    return Family(
        "linear",
        lambda x, y, bias: matmul.linear_forward(x, y, bias, **options)[0],
        backward,
        lambda x, y, bias: _silu(x @ y + bias),
        inputs,
        lambda dtype: (*_huge_operands(dtype), np.zeros(16, dtype)),
        differentiable=(0, 1, 2),
        tolerance=16.0,
        wide=(4097,),
    )


def _attention(name, biased=False, **options):
    """Rows are queries of 16 columns, columns are keys."""

    def whole(*arrays):
        return [x if x.ndim == 4 else x[None, None] for x in arrays]

    def forward(*arrays):
        out, _ = attention.attention_forward(*whole(*arrays), seed=3, **options)
        return out if arrays[0].ndim == 4 else out[0, 0]

    def backward(ct, *arrays):
        q, k, v, *bias = whole(*arrays)
        out, lse = attention.attention_forward(q, k, v, *bias, seed=3, **options)
        gradients = attention.attention_backward(*whole(ct), q, k, v, out, lse, *(bias or [None]), seed=3, **options)
        return gradients if arrays[0].ndim == 4 else tuple(x[0, 0] for x in gradients)

    def reference(q, k, v, bias=0.0):
        score = q @ k.T / 4
        if cap := options.get("softcap"):
            score = cap * np.tanh(score / cap)
        distance = np.arange(len(q))[:, None] + len(k) - len(q) - np.arange(len(k))
        seen = (distance >= 0) if options.get("causal") else np.ones_like(distance, bool)
        seen &= np.abs(distance) < options.get("window", np.inf)
        score = np.where(seen, score + bias, -np.inf)
        top = score.max(1, keepdims=True, initial=-np.inf)
        weight = np.exp(score - np.where(np.isneginf(top), 0, top))
        total = weight.sum(1, keepdims=True)
        weight = np.divide(weight, total, out=np.zeros_like(weight), where=total != 0)
        if rate := options.get("rate"):
            weight = weight * _mask(weight.shape, 3, rate)
        return weight @ v

    def inputs(rng, dtype, rows, columns):
        shapes = [(rows, 16), (columns, 16), (columns, 16), *[(rows, columns)] * biased]
        return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)

    def huge(dtype):
        shapes = [*[(70_000, 1, 64, 512)] * 3, *[(70_000, 1, 64, 64)] * biased]
        return tuple(np.zeros(shape, dtype) for shape in shapes)

    return Family(
        name,
        forward,
        backward,
        reference,
        inputs,
        huge,
        differentiable=tuple(range(3 + biased)),
        tolerance=16.0,  # probabilities and their gradients are rounded before they are multiplied
        wide=(1025,),
    )


def _adamw():
    numbers = {"lr": 0.1, "weight_decay": 0.1}

    def reference(param, grad, first, second):
        m, v = 0.9 * first + 0.1 * grad, 0.999 * second + 0.001 * grad**2
        change = (m / (1 - 0.9**2)) / (np.sqrt(v / (1 - 0.999**2)) + 1e-8)
        return param - 0.1 * (0.1 * param + change)

    return _step("adamw", lambda *arrays: optimizer.adamw_step(*arrays, 2, **numbers)[0], reference, states=2)


def _sgd():
    numbers = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}

    def reference(param, grad, velocity):
        grad = grad + 0.1 * param
        return param - 0.1 * (grad + 0.9 * (0.9 * velocity + grad))

    return _step("sgd", lambda *arrays: optimizer.sgd_step(*arrays, **numbers)[0], reference, states=1)


def _step(name, forward, reference, states):
    """An optimizer's step: it has no gradient, and its state is float32 and here not negative."""

    def inputs(rng, dtype, rows, columns):
        param, grad, *state = rng.normal(size=(2 + states, rows, columns))
        return param.astype(dtype), grad.astype(dtype), *[np.abs(x).astype(np.float32) for x in state]

    def huge(dtype):
        return tuple(np.zeros((70_000, 40_000), kind) for kind in (dtype, dtype, *[np.float32] * states))

    return Family(
        name,
        forward,
        lambda ct, *arrays: (),
        reference,
        inputs,
        huge,
        differentiable=(),
        reduces_rows=False,
        linear=True,
        dtypes=(np.float32, np.float16, ml_dtypes.bfloat16),
    )


FAMILIES = [
    _cross_entropy("cross_entropy", 0.0),
    _cross_entropy("cross_entropy smoothed", 0.1),
    _weighted_cross_entropy(),
    _linear_cross_entropy(),
    _softmax(log=False),
    _softmax(log=True),
    _layer_norm(),
    _rms_norm(),
    _group_norm(),
    _activation("gelu", _gelu, gated=False),
    _activation("gelu_tanh", _gelu_tanh, gated=True),
    _activation("silu", _silu, gated=True),
    _dropout(),
    _rope(),
    _embedding(),
    _gather(),
    _scatter_add(),
    _transpose(),
    _matmul(),
    _linear(),
    _attention("attention"),
    _attention("attention causal", causal=True, window=5, softcap=2.0),
    _attention("attention with bias and dropout", biased=True, rate=0.2),
    _reduction("sum", lambda x: x.sum(1)),
    _reduction("mean", lambda x: x.mean(1)),
    _reduction("max", lambda x: x.max(1)),
    _reduction("logsumexp", _logsumexp),
    _cumsum(),
    _adamw(),
    _sgd(),
]

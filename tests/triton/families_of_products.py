"""The families that multiply matrices: products, layers, attention, and the loss of a product."""

import functools

import numpy as np

from fgrad.triton_kernels import attention, linear_cross_entropy, matmul
from tests.triton.family import Family, logits_and_labels, mask, silu, softmax_loss


def _linear_cross_entropy():
    options = {"chunk": 2}

    def forward(hidden, weight, labels):
        return linear_cross_entropy.linear_cross_entropy_forward(hidden, weight, labels, **options)[0]

    def backward(ct, hidden, weight, labels):
        _, lse = linear_cross_entropy.linear_cross_entropy_forward(hidden, weight, labels, **options)
        return linear_cross_entropy.linear_cross_entropy_backward(ct, hidden, weight, labels, lse, **options)

    def inputs(rng, dtype, rows, columns):
        hidden, labels = logits_and_labels(rng, dtype, rows, columns)
        weight = rng.normal(size=(7, columns)) / np.sqrt(max(1, columns))
        return hidden, weight.astype(dtype), np.where(labels < 0, labels, labels % 7)

    def huge(dtype):
        return np.zeros((2, 40_000), dtype), np.zeros((60_000, 40_000), dtype), np.zeros(2, np.int64)

    return Family(
        "linear_cross_entropy",
        forward,
        backward,
        lambda hidden, weight, labels: softmax_loss(hidden @ weight.T, labels),
        inputs,
        huge,
        differentiable=(0, 1),
        multiplies=True,
        tolerance=16.0,  # gradients of logits are rounded before they are multiplied
        wide=(4097,),
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
        multiplies=True,
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
        lambda x, y, bias: silu(x @ y + bias),
        inputs,
        lambda dtype: (*_huge_operands(dtype), np.zeros(16, dtype)),
        differentiable=(0, 1, 2),
        multiplies=True,
        tolerance=16.0,
        wide=(4097,),
    )


def _attention_reference(options, q, k, v, bias=0.0):
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
        weight = weight * mask(weight.shape, 3, rate)
    return weight @ v


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
        functools.partial(_attention_reference, options),
        inputs,
        huge,
        differentiable=tuple(range(3 + biased)),
        multiplies=True,
        tolerance=16.0,  # probabilities and their gradients are rounded before they are multiplied
        wide=(1025,),
    )


def _ragged_attention():
    """Two sequences, of half the queries and half the keys each."""
    options = {"causal": True, "window": 40}

    def run(function, *arrays):
        *arrays, q_starts, k_starts = arrays
        return function(*arrays, q_starts=q_starts, k_starts=k_starts, **options)

    def forward(q, k, v, *starts):
        return run(attention.attention_forward, *(x[:, None] for x in (q, k, v)), *starts)[0][:, 0]

    def backward(ct, q, k, v, *starts):
        arrays = [x[:, None] for x in (q, k, v)]
        out, lse = run(attention.attention_forward, *arrays, *starts)
        return tuple(x[:, 0] for x in run(attention.attention_backward, ct[:, None], *arrays, out, lse, *starts))

    def reference(q, k, v, q_starts, k_starts):
        parts = [np.split(x, starts[1:-1]) for x, starts in ((q, q_starts), (k, k_starts), (v, k_starts))]
        return np.concatenate([_attention_reference(options, *part) for part in zip(*parts)])

    def inputs(rng, dtype, rows, columns):
        starts = [np.array([0, size // 2, size]) for size in (rows, columns)]
        return *[rng.normal(size=(size, 16)).astype(dtype) for size in (rows, columns, columns)], *starts

    def huge(dtype):
        size = 2**27 + 64  # the second sequence ends beyond 2**31 elements
        starts = np.array([0, 48, size])
        return *[np.zeros((size, 16), dtype) for _ in range(3)], starts, starts

    return Family(
        "attention ragged",
        forward,
        backward,
        reference,
        inputs,
        huge,
        differentiable=(0, 1, 2),
        multiplies=True,
        tolerance=16.0,
        wide=(1025,),
    )


PRODUCTS = [
    _linear_cross_entropy(),
    _matmul(),
    _linear(),
    _attention("attention"),
    _attention("attention causal", causal=True, window=5, softcap=2.0),
    _attention("attention with bias and dropout", biased=True, rate=0.2),
    _ragged_attention(),
]

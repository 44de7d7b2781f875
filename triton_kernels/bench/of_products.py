"""The families that multiply matrices: products, layers, attention, and the loss of a product."""

import functools

import numpy as np

from .. import attention, linear_cross_entropy, matmul
from .workload import Workload, logits_and_labels, mask, normal, of_one, silu, softmax_loss

HEAD = 128
"""Columns of a head of attention, where the benchmark says how large it is."""


def linear_cross_entropies(**options):
    """Return the family of losses of a product, with options of its functions."""

    def run(hidden, weight, labels):
        loss, lse = linear_cross_entropy.linear_cross_entropy_forward(hidden, weight, labels, **options)
        return loss, (lse,)

    def pull(ct, saved, *arrays):
        return linear_cross_entropy.linear_cross_entropy_backward(ct, *arrays, *saved, **options)

    def inputs(rng, dtype, rows, columns, classes=7):
        hidden, labels = logits_and_labels(rng, dtype, rows, columns)
        weight = normal(rng, (classes, columns), dtype, 1 / np.sqrt(max(1, columns)))
        return hidden, weight, np.where(labels < 0, labels, labels % classes)

    return Workload(
        "linear_cross_entropy",
        run,
        pull,
        lambda hidden, weight, labels: softmax_loss(hidden @ weight.T, labels),
        inputs,
        differentiable=(0, 1),
        flops=lambda hidden, weight, labels: 2 * hidden.size * len(weight),
        more=3,  # the logits are computed again
        products=True,
        sized=lambda rng, dtype, rows, columns: inputs(rng, dtype, rows, columns, columns),
    )


def _operands(rng, dtype, rows, columns, *others, width=5):
    return tuple(normal(rng, shape, dtype) for shape in ((rows, columns), (columns, width), *[(width,)] * len(others)))


def _square_operands(rng, dtype, rows, columns, *others):
    return _operands(rng, dtype, rows, columns, *others, width=columns)


def _matmul():
    return Workload(
        "matmul",
        **of_one(matmul.matmul_forward, matmul.matmul_backward),
        reference=lambda x, y: x @ y,
        inputs=_operands,
        differentiable=(0, 1),
        flops=lambda x, y: 2 * x.size * y.shape[1],
        products=True,
        sized=_square_operands,
        peers={"torch": "lambda x, y: x @ y"},
    )


def _linear():
    options = {"activation": "silu"}

    def run(x, y, bias):
        out, before = matmul.linear_forward(x, y, bias, **options)
        return out, (before,)

    def drawing(draw):
        return lambda rng, dtype, rows, columns: draw(rng, dtype, rows, columns, "bias")

    return Workload(
        "linear",
        run,
        lambda ct, saved, *arrays: matmul.linear_backward(ct, *arrays, *saved, **options),
        lambda x, y, bias: silu(x @ y + bias),
        drawing(_operands),
        differentiable=(0, 1, 2),
        flops=lambda x, y, bias: 2 * x.size * y.shape[1],
        products=True,
        sized=drawing(_square_operands),
        peers={"torch": "lambda x, y, bias: torch.nn.functional.silu(x @ y + bias)"},
    )


def _seen(options, queries, keys):
    """Return which keys each query sees."""
    distance = np.arange(queries)[:, None] + keys - queries - np.arange(keys)
    seen = (distance >= 0) if options.get("causal") else np.ones_like(distance, bool)
    return seen & (np.abs(distance) < options.get("window", np.inf))


def _reference(options, q, k, v, bias=0.0):
    if q.ndim == 4:
        bias = np.broadcast_to(bias, (*q.shape[:3], k.shape[2]))
        return np.stack([[_reference(options, *x) for x in zip(*heads)] for heads in zip(q, k, v, bias)])
    score = q @ k.T / np.sqrt(q.shape[1])
    if cap := options.get("softcap"):
        score = cap * np.tanh(score / cap)
    score = np.where(_seen(options, len(q), len(k)), score + bias, -np.inf)
    top = score.max(1, keepdims=True, initial=-np.inf)
    weight = np.exp(score - np.where(np.isneginf(top), 0, top))
    total = weight.sum(1, keepdims=True)
    weight = np.divide(weight, total, out=np.zeros_like(weight), where=total != 0)
    if rate := options.get("rate"):
        weight = weight * mask(weight.shape, 3, rate)
    return weight @ v


def _operations(options, q, k, *others):
    return 4 * q.size // q.shape[-2] * int(_seen(options, q.shape[-2], k.shape[-2]).sum())


def _attention(name, biased=False, **options):
    """Rows are queries of 16 columns, columns are keys; to the benchmark, rows are queries, and columns are heads."""

    def whole(*arrays):
        return [x if x.ndim == 4 else x[None, None] for x in arrays]

    def run(*arrays):
        out, lse = attention.attention_forward(*whole(*arrays), seed=3, **options)
        return (out if arrays[0].ndim == 4 else out[0, 0]), (out, lse)

    def pull(ct, saved, *arrays):
        q, k, v, *bias = whole(*arrays)
        gradients = attention.attention_backward(*whole(ct), q, k, v, *saved, *(bias or [None]), seed=3, **options)
        return gradients if arrays[0].ndim == 4 else tuple(x[0, 0] for x in gradients)

    def inputs(rng, dtype, rows, columns):
        shapes = [(rows, 16), (columns, 16), (columns, 16), *[(rows, columns)] * biased]
        return tuple(normal(rng, shape, dtype) for shape in shapes)

    def sized(rng, dtype, rows, columns):
        heads = max(1, columns // HEAD)
        shapes = [*[(1, min(heads, 8) if biased else heads, rows, HEAD)] * 3, *[(1, 1, rows, rows)] * biased]
        return tuple(normal(rng, shape, dtype) for shape in shapes)

    plain = not (biased or options)
    return Workload(
        name,
        run,
        pull,
        functools.partial(_reference, options),
        inputs,
        differentiable=tuple(range(3 + biased)),
        flops=functools.partial(_operations, options),
        more=2.5,
        products=True,
        sized=sized,
        peers={"torch": "torch.nn.functional.scaled_dot_product_attention"} if plain else {},
    )


def _ragged_attention():
    """Two sequences, of half the queries and half the keys each."""
    options = {"causal": True, "window": 40}

    def call(function, *arrays):
        *arrays, q_starts, k_starts = arrays
        return function(*arrays, q_starts=q_starts, k_starts=k_starts, **options)

    def run(q, k, v, *starts):
        out, lse = call(attention.attention_forward, *(x[:, None] for x in (q, k, v)), *starts)
        return out[:, 0], (out, lse)

    def pull(ct, saved, q, k, v, *starts):
        arrays = [x[:, None] for x in (q, k, v)]
        return tuple(x[:, 0] for x in call(attention.attention_backward, ct[:, None], *arrays, *saved, *starts))

    def split(q, k, v, q_starts, k_starts):
        starts = (q_starts, k_starts, k_starts)
        return zip(*[np.split(x, edges[1:-1].astype(int)) for x, edges in zip((q, k, v), starts)])

    def inputs(rng, dtype, rows, columns, width=16):
        starts = [np.array([0, size // 2, size]) for size in (rows, columns)]
        return *[normal(rng, (size, width), dtype) for size in (rows, columns, columns)], *starts

    return Workload(
        "attention ragged",
        run,
        pull,
        lambda *arrays: np.concatenate([_reference(options, *part) for part in split(*arrays)]),
        inputs,
        differentiable=(0, 1, 2),
        flops=lambda *arrays: sum(_operations(options, *part) for part in split(*arrays)),
        more=2.5,
        products=True,
        sized=lambda rng, dtype, rows, columns: inputs(rng, dtype, rows, rows, HEAD),
    )


PRODUCTS = [
    linear_cross_entropies(),
    _matmul(),
    _linear(),
    _attention("attention"),
    _attention("attention causal", causal=True, window=5, softcap=2.0),
    _attention("attention with bias and dropout", biased=True, rate=0.2),
    _ragged_attention(),
]

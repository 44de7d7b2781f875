"""What can be measured: each case draws arrays of a size and type, and says what must be moved and done."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import activation, attention, cross_entropy, matmul, norm, softmax

GENERATED = "fgrad.kernel_bench:CASES"
"""Where the programs are whose kernels are generated; a name, for the kernels know nothing of programs."""


@dataclass
class Work:
    """One call: `function(*args)` on NumPy arrays or arrays on a GPU, and what it comes to.

    `moved` are bytes, each argument read once and each result written once; `flops` floating-point operations.
    `reference(*args)` computes the same of arrays in float64, None where there is nothing to compare with.
    """

    function: Callable[..., Any]
    args: tuple
    moved: int
    flops: int
    reference: Callable[..., Any] | None


@dataclass(frozen=True)
class Case:
    """A kernel, or a program, that can be measured at any size.

    `make(rng, dtype, rows, columns)` returns a `Work`. `products` says that matrix units bound it, not memory. `peers`
    are the same for torch tensors, by the name of the library: text of a function, so that nothing is imported.
    """

    name: str
    make: Callable[..., Work]
    products: bool = False
    peers: dict[str, str] = field(default_factory=dict)


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


def _softmax(x):
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _normalized(x):
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5)


def _softmax_backward(ct, out):
    return out * (ct - (ct * out).sum(1, keepdims=True))


def _layer_norm(rng, dtype, rows, columns):
    x, weight, bias = (drawn(rng, dtype, *shape) for shape in ((rows, columns), (columns,), (columns,)))
    moved = 2 * x.nbytes + weight.nbytes + bias.nbytes
    reference = lambda x, weight, bias: _normalized(x) * weight + bias  # noqa: E731
    return Work(lambda *args: norm.layer_norm_forward(*args)[0], (x, weight, bias), moved, 8 * x.size, reference)


def _rms_norm(rng, dtype, rows, columns):
    x, weight = drawn(rng, dtype, rows, columns), drawn(rng, dtype, columns)
    reference = lambda x, weight: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * weight  # noqa: E731
    moved = 2 * x.nbytes + weight.nbytes
    return Work(lambda *args: norm.rms_norm_forward(*args)[0], (x, weight), moved, 5 * x.size, reference)


def _layer_norm_backward(rng, dtype, rows, columns):
    ct, x, weight = drawn(rng, dtype, rows, columns), drawn(rng, dtype, rows, columns), drawn(rng, dtype, columns)
    mean = x.astype(np.float32).mean(1)
    rstd = 1 / np.sqrt(x.astype(np.float32).var(1) + np.float32(1e-5))

    def backward(ct, x, weight, mean, rstd):
        return norm.layer_norm_backward(ct, x, weight, None, mean, rstd)[:2]

    def reference(ct, x, weight, mean, rstd):
        hat = (x - mean[:, None]) * rstd[:, None]
        g = ct * weight
        dx = (g - g.mean(1, keepdims=True) - hat * (g * hat).mean(1, keepdims=True)) * rstd[:, None]
        return dx, (ct * hat).sum(0)

    return Work(backward, (ct, x, weight, mean, rstd), 3 * x.nbytes, 12 * x.size, reference)


def _cross_entropy(rng, dtype, rows, columns):
    logits, labels = drawn(rng, dtype, rows, columns), rng.integers(0, columns, rows)

    def reference(logits, labels):
        top = logits.max(1)
        total = np.log(np.exp(logits - top[:, None]).sum(1)) + top
        return total - logits[np.arange(len(logits)), labels.astype(int)]

    function = lambda *args: cross_entropy.cross_entropy_forward(*args)[0]  # noqa: E731
    return Work(function, (logits, labels), logits.nbytes + labels.nbytes, 5 * logits.size, reference)


def _matmul(rng, dtype, rows, columns):
    x, y = drawn(rng, dtype, rows, columns), drawn(rng, dtype, columns, columns)
    flops = 2 * rows * columns * columns
    return Work(matmul.matmul_forward, (x, y), 2 * x.nbytes + y.nbytes, flops, lambda x, y: x @ y)


def _attention(rng, dtype, rows, columns):
    """`rows` is the length; heads of 128 make up the columns."""
    heads = max(1, columns // 128)
    q, k, v = (drawn(rng, dtype, 1, heads, rows, 128) for _ in range(3))

    def reference(q, k, v):
        scores = q @ k.swapaxes(2, 3) / np.sqrt(128)
        return _softmax(scores.reshape(-1, rows)).reshape(scores.shape) @ v

    function = lambda *args: attention.attention_forward(*args)[0]  # noqa: E731
    return Work(function, (q, k, v), 4 * q.nbytes, 4 * heads * rows * rows * 128, reference)


def _silu(x, up):
    return x / (1 + np.exp(-x)) * up


_F = "torch.nn.functional"
CASES = [
    Case(
        "softmax",
        rowwise(softmax.softmax_forward, _softmax),
        peers={
            "torch": f"lambda x: {_F}.softmax(x, -1)",
            "liger": "liger_kernel.transformers.functional.liger_softmax",
        },
    ),
    Case("softmax, gradient", rowwise(softmax.softmax_backward, _softmax_backward, 4, arrays=2)),
    Case(
        "layer_norm",
        _layer_norm,
        peers={"torch": f"lambda x, w, b: {_F}.layer_norm(x, x.shape[-1:], w, b)"},
    ),
    Case("layer_norm, gradient", _layer_norm_backward),
    Case(
        "rms_norm",
        _rms_norm,
        peers={
            "torch": f"lambda x, w: {_F}.rms_norm(x, x.shape[-1:], w, 1e-6)",
            "liger": "lambda x, w: liger_kernel.transformers.functional.liger_rms_norm(x, w, 1e-6)",
        },
    ),
    Case(
        "swiglu",
        rowwise(lambda x, up: activation.activation_forward(x, "silu", up), _silu, 6, arrays=2),
        peers={"torch": f"lambda x, up: {_F}.silu(x) * up"},
    ),
    Case(
        "cross_entropy",
        _cross_entropy,
        peers={"torch": f"lambda x, labels: {_F}.cross_entropy(x, labels, reduction='none')"},
    ),
    Case("matmul", _matmul, products=True, peers={"torch": "lambda x, y: x @ y"}),
    Case(
        "attention",
        _attention,
        products=True,
        peers={"torch": f"lambda q, k, v: {_F}.scaled_dot_product_attention(q, k, v)"},
    ),
]


def found(path: str) -> list[Case]:
    """Return the cases at an import path "module:name": a case, a list of them, or a function of one array.

    Raises:
        ValueError: it is no such path.
        TypeError: what is there is none of these.
    """
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise ValueError(f'--kernel: got {path!r}, expected "module:name"')
    value = getattr(importlib.import_module(module), name)
    if isinstance(value, Case):
        return [value]
    if isinstance(value, (list, tuple)) and all(isinstance(case, Case) for case in value):
        return list(value)
    if callable(value):
        return [Case(name, rowwise(value, None))]
    raise TypeError(f"--kernel {path}: got {type(value).__name__}, expected a Case, a list of them, or a function")

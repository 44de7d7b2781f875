"""All kernel families, each described once: the benchmark's cases and the tests' battery are made of these.

A new kernel gets one `Workload` here or in the two modules beside this one.
"""

import numpy as np

from .. import activation, dropout, embedding, layout, optimizer, rope
from .of_products import PRODUCTS
from .of_rows import ROWS
from .workload import NARROW, Workload, erf, mask, normal, of_one, rows_of, silu

_F = "torch.nn.functional"


def _activation(name, value, gated, flops, peer):
    def inputs(rng, dtype, rows, columns):
        return tuple(normal(rng, (rows, columns), dtype, 2) for _ in range(1 + gated))

    def backward(ct, x, up=None):
        gradients = activation.activation_backward(ct, x, name, up)
        return gradients if gated else gradients[:1]

    return Workload(
        f"{name} gated" if gated else name,
        **of_one(lambda x, up=None: activation.activation_forward(x, name, up), backward),
        reference=lambda x, up=1.0: value(x) * up,
        inputs=inputs,
        differentiable=(0, 1) if gated else (0,),
        flops=flops,
        peers={"torch": f"lambda x, up: {_F}.{peer} * up" if gated else f"lambda x: {_F}.{peer}"},
    )


def _gelu(x):
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


def _gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _dropout():
    return Workload(
        "dropout",
        **of_one(
            lambda x: dropout.dropout_forward(x, 7, rate=0.3),
            lambda ct, x: (dropout.dropout_backward(ct, 7, rate=0.3),),
        ),
        reference=lambda x: x * mask(x.shape, 7, 0.3),
        inputs=rows_of,
        flops=2,
        more=1,
    )


def _rope():
    def reference(x, cos, sin):
        first, second = np.split(x, 2, axis=1)
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=1)

    def inputs(rng, dtype, rows, columns):
        angles = normal(rng, (rows, columns), np.float32)
        return normal(rng, (rows, 2 * columns), dtype), np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)

    return Workload(
        "rope",
        **of_one(
            lambda x, cos, sin: rope.rope_forward(x[None, :, None], cos, sin)[0, :, 0],
            lambda ct, x, cos, sin: (rope.rope_backward(ct[None, :, None], cos, sin)[0, :, 0],),
        ),
        reference=reference,
        inputs=inputs,
        flops=3,
        more=1,
    )


def _embedding():
    return Workload(
        "embedding",
        **of_one(
            embedding.embedding_forward,
            lambda ct, table, index: (embedding.embedding_backward(ct, index, len(table)),),
        ),
        reference=lambda table, index: table[index],
        inputs=lambda rng, dtype, rows, columns: (normal(rng, (rows, columns), dtype), np.arange(rows)),
        flops=0,
        peers={"torch": f"lambda table, index: {_F}.embedding(index, table)"},
    )


def _scatter_add():
    def reference(x, index, updates):
        out = x.copy()
        np.add.at(out, index, updates)
        return out

    def inputs(rng, dtype, rows, columns):
        x, updates = (normal(rng, (rows, columns), dtype) for _ in range(2))
        return x, rng.integers(0, max(1, rows), rows), updates

    return Workload(
        "scatter_add",
        **of_one(
            embedding.scatter_add_forward, lambda ct, x, index, updates: embedding.scatter_add_backward(ct, index)
        ),
        reference=reference,
        inputs=inputs,
        differentiable=(0, 2),
        flops=1,
        more=0,
        peers={"torch": "lambda x, index, updates: x.index_add(0, index, updates)"},
    )


def _gather():
    return Workload(
        "gather",
        **of_one(
            lambda x, index: embedding.gather_forward(x, index, axis=1),
            lambda ct, x, index: (embedding.gather_backward(ct, x, index, axis=1),),
        ),
        reference=lambda x, index: x[:, index],
        inputs=lambda rng, dtype, rows, columns: (
            *rows_of(rng, dtype, rows, columns),
            rng.integers(0, columns or 1, columns),
        ),
        flops=0,
        peers={"torch": "lambda x, index: x[:, index]"},
    )


def _transpose():
    return Workload(
        "transpose",
        **of_one(
            lambda x: layout.transpose_forward(x, axes=(0, 2, 1)),
            lambda ct, x: (layout.transpose_backward(ct, axes=(0, 2, 1)),),
        ),
        reference=lambda x: x.transpose(0, 2, 1),
        inputs=lambda rng, dtype, rows, columns: (normal(rng, (rows, columns, 3), dtype),),
        flops=0,
        peers={"torch": "lambda x: x.transpose(1, 2).contiguous()"},
    )


def _adamw():
    numbers = {"lr": 0.1, "weight_decay": 0.1}

    def reference(param, grad, first, second):
        m, v = 0.9 * first + 0.1 * grad, 0.999 * second + 0.001 * grad**2
        change = (m / (1 - 0.9**2)) / (np.sqrt(v / (1 - 0.999**2)) + 1e-8)
        return param - 0.1 * (0.1 * param + change)

    return _step("adamw", lambda *arrays: optimizer.adamw_step(*arrays, 2, **numbers), reference, states=2, flops=15)


def _sgd():
    numbers = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}

    def reference(param, grad, velocity):
        grad = grad + 0.1 * param
        return param - 0.1 * (grad + 0.9 * (0.9 * velocity + grad))

    return _step("sgd", lambda *arrays: optimizer.sgd_step(*arrays, **numbers), reference, states=1, flops=8)


def _step(name, step, reference, states, flops):
    """An optimizer's step: it has no gradient, and its state is float32 and here not negative."""

    def inputs(rng, dtype, rows, columns):
        param, grad = (normal(rng, (rows, columns), dtype) for _ in range(2))
        return param, grad, *(np.abs(normal(rng, (rows, columns), np.float32)) for _ in range(states))

    def run(*arrays):
        param, *state = step(*arrays)
        return param, tuple(state)

    return Workload(name, run, None, reference, inputs, differentiable=(), dtypes=NARROW, flops=flops)


def _clip():
    """The factor that clipping by the norm of all gives every element: a NaN reaches everything."""

    def reference(x):
        return np.broadcast_to(min(1.0, 0.5 / max(1e-30, np.sqrt((x**2).sum()))), x.shape)

    def forward(x):
        _, scale = optimizer.clip_by_norm([x], 0.5)
        return np.broadcast_to(scale, x.shape)

    return Workload(
        "clip_by_norm",
        **of_one(forward),
        reference=reference,
        inputs=rows_of,
        differentiable=(),
        dtypes=NARROW,
        flops=3,
    )


WORKLOADS = [
    *ROWS,
    _activation("gelu", _gelu, gated=False, flops=12, peer="gelu(x)"),
    _activation("gelu_tanh", _gelu_tanh, gated=True, flops=14, peer="gelu(x, approximate='tanh')"),
    _activation("silu", silu, gated=True, flops=6, peer="silu(x)"),
    _dropout(),
    _rope(),
    _embedding(),
    _gather(),
    _scatter_add(),
    _transpose(),
    *PRODUCTS,
    _adamw(),
    _sgd(),
    _clip(),
]

"""The kernel families under test, each described once: `test_battery.py` runs every rule on every family.

A new kernel gets one `Family` here or in the two modules beside this one, and tests of its own only for what no other
kernel has.
"""

import ml_dtypes
import numpy as np
from scipy import special

from fgrad.triton_kernels import activation, dropout, embedding, layout, optimizer, rope
from tests.triton.families_of_products import PRODUCTS
from tests.triton.families_of_rows import ROWS
from tests.triton.family import Family, huge_rows, mask, rows_of, silu


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


def _gelu(x):
    return x * 0.5 * (1 + special.erf(x / np.sqrt(2)))


def _gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _dropout():
    return Family(
        "dropout",
        lambda x: dropout.dropout_forward(x, 7, rate=0.3),
        lambda ct, x: (dropout.dropout_backward(ct, 7, rate=0.3),),
        lambda x: x * mask(x.shape, 7, 0.3),
        rows_of,
        huge_rows,
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
        lambda dtype: (*huge_rows(dtype), np.arange(70_000)),
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
        lambda dtype: (*huge_rows(dtype), np.arange(70_000), *huge_rows(dtype)),
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
        lambda rng, dtype, rows, columns: (*rows_of(rng, dtype, rows, columns), rng.integers(0, columns or 1, columns)),
        lambda dtype: (*huge_rows(dtype), np.arange(40_000)),
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


def _clip():
    """The factor that clipping by the norm of all gives every element: a NaN reaches everything."""

    def reference(x):
        return np.broadcast_to(min(1.0, 0.5 / max(1e-30, np.sqrt((x**2).sum()))), x.shape)

    def forward(x):
        _, scale = optimizer.clip_by_norm([x], 0.5)
        return np.broadcast_to(scale, x.shape)

    return Family(
        "clip_by_norm",
        forward,
        lambda ct, x: (),
        reference,
        rows_of,
        huge_rows,
        differentiable=(),
        reduces_rows=False,
        keeps_rows_apart=False,
        linear=True,
        dtypes=(np.float32, np.float16, ml_dtypes.bfloat16),
    )


FAMILIES = [
    *ROWS,
    _activation("gelu", _gelu, gated=False),
    _activation("gelu_tanh", _gelu_tanh, gated=True),
    _activation("silu", silu, gated=True),
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

"""Steps of optimizers and the norm of all gradients, for arrays as they are: nothing here is differentiated or traced.

State is float32 whatever the parameters are; steps return new arrays and change none.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

_F32 = np.float32


def adamw_step(
    param: Any,
    grad: Any,
    first: Any,
    second: Any,
    step: int,
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    scale: Any = None,
    impl: str | None = None,
) -> tuple[Any, Any, Any]:
    """Return (param, first, second) after a step of AdamW. Source: Loshchilov and Hutter, arXiv 1711.05101.

    Args:
        param, grad: one shape, float16, bfloat16 or float32.
        first, second: float32 of that shape, the running moments; zeros before the first step.
        step: number of the step, from 1.
        lr, betas, eps, weight_decay: rate, decay of the moments, what is added to the root, and decay of the weights.
        scale: float32 of shape (1,) that gradients are multiplied by, as `clip_by_norm` returns it, or None.
        impl: "numpy" or "triton".

    Raises:
        ValueError: shapes differ, or step is below 1.
        TypeError: an unsupported type.

    Example:
        >>> import numpy as np, fgrad
        >>> ones, zeros = np.ones(2, np.float32), np.zeros(2, np.float32)
        >>> fgrad.kernels.adamw_step(ones, ones, zeros, zeros, 1, lr=0.1, weight_decay=0.0)[0]
        array([0.9, 0.9], dtype=float32)
    """
    if step < 1:
        raise ValueError(f"adamw_step: step must be 1 or more, got {step}")
    options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "scale": scale}
    if _by_kernels("adamw_step", impl):
        return _optimizer().adamw_step(param, grad, first, second, step, **options)
    _check("adamw_step", param, grad=grad, first=first, second=second)
    p, g = _F32(param), _scaled(grad, scale)
    (one, two), rate = betas, _F32(lr)
    first = _F32(one) * first + _F32(1 - one) * g
    second = _F32(two) * second + _F32(1 - two) * g * g
    root = np.sqrt(second / _F32(1 - two**step)) + _F32(eps)
    change = _F32(weight_decay) * p + (first / _F32(1 - one**step)) / root
    return (p - rate * change).astype(param.dtype), first, second


def sgd_step(
    param: Any,
    grad: Any,
    velocity: Any,
    *,
    lr: float,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    scale: Any = None,
    impl: str | None = None,
) -> tuple[Any, Any]:
    """Return (param, velocity) after a step of gradient descent with momentum.

    Args:
        param, grad: one shape, float16, bfloat16 or float32.
        velocity: float32 of that shape; zeros before the first step.
        lr, momentum, weight_decay, nesterov: as in torch's SGD.
        scale: float32 of shape (1,) that gradients are multiplied by, as `clip_by_norm` returns it, or None.
        impl: "numpy" or "triton".

    Raises:
        ValueError: shapes differ.
        TypeError: an unsupported type.
    """
    options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov, "scale": scale}
    if _by_kernels("sgd_step", impl):
        return _optimizer().sgd_step(param, grad, velocity, **options)
    _check("sgd_step", param, grad=grad, velocity=velocity)
    p = _F32(param)
    g = _scaled(grad, scale) + _F32(weight_decay) * p
    velocity = _F32(momentum) * velocity + g
    change = g + _F32(momentum) * velocity if nesterov else velocity
    return (p - _F32(lr) * change).astype(param.dtype), velocity


def clip_by_norm(grads: Sequence[Any], limit: float, *, impl: str | None = None) -> tuple[Any, Any]:
    """Return (norm, scale) of all gradients together: scale brings a norm above the limit down to it.

    Args:
        grads: arrays, floating.
        limit: the largest norm.
        impl: "numpy" or "triton".

    Returns:
        Two float32 arrays of shape (1,); by "triton" on the gradients' device, without waiting for it.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.clip_by_norm([np.full(4, 3.0, np.float32), np.full(4, 4.0, np.float32)], 1.0)
        (array([10.], dtype=float32), array([0.1], dtype=float32))
    """
    if _by_kernels("clip_by_norm", impl):
        return _optimizer().clip_by_norm(grads, limit)
    norm = np.sqrt(sum((np.square(_F32(grad)).sum() for grad in grads), np.zeros(1, _F32)))
    return norm, np.where(norm > limit, _F32(limit) / np.where(norm > 0, norm, 1), _F32(1))


def _by_kernels(name: str, impl: str | None) -> bool:
    if impl not in (None, "numpy", "triton"):
        raise ValueError(f'{name}: impl must be "numpy" or "triton", got {impl!r}')
    return impl == "triton"


def _optimizer() -> Any:
    return importlib.import_module("fgrad.triton_kernels.optimizer")


def _scaled(grad: Any, scale: Any) -> Any:
    return _F32(grad) if scale is None else _F32(grad) * scale


def _check(name: str, param: Any, **others: Any) -> None:
    if param.dtype == np.float64 or param.dtype.kind not in "fV":
        raise TypeError(f"{name}: param must be float16, bfloat16 or float32, got {param.dtype}")
    for key, array in others.items():
        if array.shape != param.shape:
            raise ValueError(f"{name}: {key} must have shape {param.shape}, got {array.shape}")
        if key != "grad" and array.dtype != np.float32:
            raise TypeError(f"{name}: {key} must be float32, got {array.dtype}")

"""Softmax and norms of rows, and of groups of channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fgrad.kernels.pairs import like, wide, with_kernels
from fgrad.numpy.arguments import expand_axis
from fgrad.ops import elementwise as e
from fgrad.ops import reduce as r
from fgrad.ops import shape as s


@with_kernels("softmax.softmax", batch="leading")
def softmax(x: Any) -> Any:
    """Return exp(x) divided by its sum over the last axis; zeros in a row of nothing but -inf.

    Args:
        x: (…, columns), floating.
        impl: "numpy" or "triton".

    Raises:
        ValueError: x has no axes.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.softmax(np.zeros((1, 2)))
        array([[0.5, 0.5]])
    """
    return like(e.exp(_log_probabilities(x, "softmax")), x)


@with_kernels("softmax.log_softmax", batch="leading")
def log_softmax(x: Any) -> Any:
    """Return the logarithm of the softmax over the last axis; -inf in a row of nothing but -inf.

    Args:
        x: (…, columns), floating.
        impl: "numpy" or "triton".

    Raises:
        ValueError: x has no axes.
    """
    return like(_log_probabilities(x, "log_softmax"), x)


def _log_probabilities(x: Any, name: str) -> Any:
    if not x.ndim:
        raise ValueError(f"{name}: x must have at least one axis, got shape ()")
    x, last = wide(x), x.ndim - 1
    total = expand_axis(r.logsumexp(x, axes=(last,)), last)
    return e.sub(x, e.select(e.eq(total, -np.inf), 0.0, total))


# ------------------------------------------------------------------------------------------------------------ norms


def _mean(x: Any) -> Any:
    last = x.ndim - 1
    return expand_axis(e.div(r.reduce_sum(x, axes=(last,)), max(1, x.shape[last])), last)


def _statistics(x: Any, eps: float, centered: bool) -> tuple[Any, Any]:
    """Return mean (0 unless centered) and reciprocal deviation of rows, as columns."""
    mean = _mean(x) if centered else 0.0
    return mean, e.div(1.0, e.sqrt(e.add(_mean(e.square(e.sub(x, mean))), eps)))


def _normalized(x: Any, eps: float, centered: bool) -> Any:
    mean, rstd = _statistics(x, eps, centered)
    return e.mul(e.sub(x, mean), rstd)


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        x = e.mul(x, wide(weight))
    return x if bias is None else e.add(x, wide(bias))


def _check(name: str, x: Any, size: int, **parameters: Any) -> None:
    for key, array in parameters.items():
        if array is not None and array.shape != (size,):
            raise ValueError(f"{name}: {key} must have shape {(size,)} for x of shape {x.shape}, got {array.shape}")


def _flat(*columns: Any) -> tuple[Any, ...]:
    return tuple([s.reshape(x, shape=(math.prod(x.shape),)) for x in columns])


def _layer_statistics(x: Any, weight: Any, bias: Any, *, eps: float) -> tuple[Any, ...]:
    return _flat(*_statistics(wide(x), eps, centered=True))


@with_kernels("norm.layer_norm", wrt=("x", "weight", "bias"), outputs=("out", "mean", "rstd"), extras=_layer_statistics)
def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
    """Normalize the last axis to mean 0 and variance 1, then scale and shift it. Source: Ba et al., arXiv 1607.06450.

    Args:
        x: (…, columns), floating.
        weight, bias: (columns,), or None for 1 and 0.
        eps: added to the variance.
        impl: "numpy" or "triton".

    Raises:
        ValueError: x has no axes, or weight or bias is not (columns,).

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.layer_norm(np.array([[1.0, 3.0]]), eps=0.0)
        array([[-1.,  1.]])
    """
    if not x.ndim:
        raise ValueError("layer_norm: x must have at least one axis, got shape ()")
    _check("layer_norm", x, x.shape[-1], weight=weight, bias=bias)
    return like(_affine(_normalized(wide(x), eps, centered=True), weight, bias), x)


def _rms_statistics(x: Any, weight: Any, *, eps: float) -> tuple[Any, ...]:
    return _flat(_statistics(wide(x), eps, centered=False)[1])


@with_kernels("norm.rms_norm", wrt=("x", "weight"), outputs=("out", "rstd"), extras=_rms_statistics)
def rms_norm(x: Any, weight: Any = None, *, eps: float = 1e-6) -> Any:
    """Divide the last axis by its root mean square, then scale it. Source: Zhang and Sennrich, arXiv 1910.07467.

    Args:
        x: (…, columns), floating.
        weight: (columns,), or None for 1.
        eps: added to the mean square.
        impl: "numpy" or "triton".

    Raises:
        ValueError: x has no axes, or weight is not (columns,).
    """
    if not x.ndim:
        raise ValueError("rms_norm: x must have at least one axis, got shape ()")
    _check("rms_norm", x, x.shape[-1], weight=weight)
    return like(_affine(_normalized(wide(x), eps, centered=False), weight, None), x)


def _group_rows(x: Any, groups: int) -> Any:
    return s.reshape(wide(x), shape=(x.shape[0], groups, x.shape[1] // groups * math.prod(x.shape[2:])))


def _group_statistics(x: Any, weight: Any, bias: Any, *, groups: int, eps: float) -> tuple[Any, ...]:
    return _flat(*_statistics(_group_rows(x, groups), eps, centered=True))


@with_kernels("norm.group_norm", wrt=("x", "weight", "bias"), outputs=("out", "mean", "rstd"), extras=_group_statistics)
def group_norm(x: Any, weight: Any = None, bias: Any = None, *, groups: int = 1, eps: float = 1e-5) -> Any:
    """Normalize groups of channels to mean 0 and variance 1, then scale and shift each channel.

    Args:
        x: (examples, channels, …), floating.
        weight, bias: (channels,), or None for 1 and 0.
        groups: a divisor of the number of channels.
        eps: added to the variance.
        impl: "numpy" or "triton".

    Raises:
        ValueError: groups do not divide the channels, or weight or bias is not (channels,).

    Source: Wu and He, arXiv 1803.08494.
    """
    if x.ndim < 2 or groups < 1 or x.shape[1] % groups:
        raise ValueError(
            f"group_norm: x must be (examples, channels, …) with a multiple of {groups} channels, got {x.shape}"
        )
    channels = x.shape[1]
    _check("group_norm", x, channels, weight=weight, bias=bias)
    column = (channels, *(1,) * (x.ndim - 2))
    weight, bias = [p if p is None else s.reshape(p, shape=column) for p in (weight, bias)]
    normal = s.reshape(_normalized(_group_rows(x, groups), eps, centered=True), shape=x.shape)
    return like(_affine(normal, weight, bias), x)

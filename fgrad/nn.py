"""Activations and their kin, as pure functions in `jax.nn`'s names. There are no layers here.

All take arrays, numbers, or traced values, and compute in floating point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fgrad.numpy.arguments import as_array, cast, keep_axes, many_axes, operand, truth
from fgrad.ops import elementwise as e
from fgrad.ops import kernels as k
from fgrad.ops import reduce as r
from fgrad.ops import shape as s
from fgrad.ops import special as sp

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]


def _floats(x: Any) -> Any:
    x = as_array(x)
    return x if x.dtype.kind in "fcV" else cast(x, np.float64)


# -------------------------------------------------------------------------------------------------- activations


def identity(x: Any) -> Any:
    """Return the argument."""
    return as_array(x)


def relu(x: Any) -> Any:
    """Return max(x, 0); its derivative at 0 is 0.

    Example:
        >>> import fgrad
        >>> fgrad.nn.relu([-1.0, 2.0])
        array([0., 2.])
    """
    return e.relu(as_array(x))


def relu6(x: Any) -> Any:
    """Return min(max(x, 0), 6), with derivative 0 at both ends."""
    x = _floats(x)
    return e.select(e.lt(x, 6), e.relu(x), np.asarray(6, x.dtype))


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x))."""
    return e.sigmoid(_floats(x))


def log_sigmoid(x: Any) -> Any:
    """Return log(sigmoid(x)), also where sigmoid(x) underflows."""
    return e.log_sigmoid(_floats(x))


def softplus(x: Any) -> Any:
    """Return log(1 + exp(x)), also where exp(x) overflows."""
    return e.softplus(_floats(x))


def sparse_plus(x: Any) -> Any:
    """Return 0 below -1, x above 1, and (x + 1)**2 / 4 between."""
    x = _floats(x)
    middle = e.mul(e.square(e.add(x, 1)), 0.25)
    return e.select(e.le(x, -1), np.zeros((), x.dtype), e.select(e.ge(x, 1), x, middle))


def sparse_sigmoid(x: Any) -> Any:
    """Return the derivative of `sparse_plus`: 0 below -1, 1 above 1, and (x + 1) / 2 between."""
    return e.clamp(e.mul(e.add(_floats(x), 1), 0.5), 0.0, 1.0)


def soft_sign(x: Any) -> Any:
    """Return x / (1 + abs(x))."""
    x = _floats(x)
    return e.div(x, e.add(e.abs(x), 1))


def silu(x: Any) -> Any:
    """Return x * sigmoid(x), which is also called swish."""
    x = _floats(x)
    return e.mul(x, e.sigmoid(x))


swish = silu


def mish(x: Any) -> Any:
    """Return x * tanh(softplus(x)). Source: Misra, arXiv 1908.08681."""
    x = _floats(x)
    return e.mul(x, e.tanh(e.softplus(x)))


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """Return x above 0 and alpha * (exp(x) - 1) below."""
    x = _floats(x)
    positive = e.gt(x, 0)
    return e.select(positive, x, e.mul(operand(alpha), e.expm1(e.select(positive, 0, x))))


def celu(x: Any, alpha: Any = 1.0) -> Any:
    """Return x above 0 and alpha * (exp(x / alpha) - 1) below. Source: Barron, arXiv 1704.07483."""
    x, alpha = _floats(x), operand(alpha)
    positive = e.gt(x, 0)
    return e.select(positive, x, e.mul(alpha, e.expm1(e.div(e.select(positive, 0, x), alpha))))


def selu(x: Any) -> Any:
    """Return the scaled `elu` that keeps mean 0 and variance 1. Source: Klambauer et al., arXiv 1706.02515."""
    return e.mul(1.0507009873554805, elu(x, 1.6732632423543772))


def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    """Return x above 0 and `negative_slope` times x below."""
    x = _floats(x)
    return e.select(e.ge(x, 0), x, e.mul(operand(negative_slope), x))


def gelu(x: Any, approximate: bool = True) -> Any:
    """Return x times the normal distribution function of x. Source: Hendrycks and Gimpel, arXiv 1606.08415.

    Args:
        x: array.
        approximate: by the hyperbolic tangent (True, as in JAX), or exactly by the error function.

    Example:
        >>> import fgrad
        >>> fgrad.nn.gelu([1.0], approximate=False)
        array([0.84134475])
    """
    x = _floats(x)
    if approximate:
        return k.gelu_tanh(x)
    return e.mul(e.mul(0.5, x), sp.erfc(e.mul(-(0.5**0.5), x)))


def squareplus(x: Any, b: Any = 4) -> Any:
    """Return (x + sqrt(x**2 + b)) / 2."""
    x = _floats(x)
    return e.mul(0.5, e.add(x, e.sqrt(e.add(e.square(x), operand(b)))))


def hard_tanh(x: Any) -> Any:
    """Return x limited to the interval from -1 to 1."""
    return e.clamp(as_array(x), -1, 1)


def hard_sigmoid(x: Any) -> Any:
    """Return relu6(x + 3) / 6."""
    return e.div(relu6(e.add(_floats(x), 3)), 6)


def hard_silu(x: Any) -> Any:
    """Return x * hard_sigmoid(x), which is also called hard swish."""
    x = _floats(x)
    return e.mul(x, hard_sigmoid(x))


hard_swish = hard_silu


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    return e.tanh(as_array(x))


def glu(x: Any, axis: int = -1) -> Any:
    """Return the first half along an axis times the sigmoid of the second; ValueError if its length is odd."""
    x = _floats(x)
    axis %= x.ndim
    if x.shape[axis] % 2:
        raise ValueError(f"glu: axis {axis} must have an even length, got {x.shape[axis]}")
    half = x.shape[axis] // 2
    before = (slice(None),) * axis
    return e.mul(x[(*before, slice(0, half))], e.sigmoid(x[(*before, slice(half, None))]))


# ------------------------------------------------------------------------------------------------ along an axis


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """Return log(sum(b * exp(a))) over axes, without overflow.

    Args:
        a: array.
        axis: an axis or a tuple of axes; None for all.
        b: factors, which broadcast to the shape of `a`.
        keepdims: keep reduced axes at size 1.
        return_sign: return the logarithm of the absolute sum, and its sign.
        where: mask of the elements to include.

    Returns:
        The logarithm; where all elements are -inf it is -inf, with derivative 0. With factors of negative sum it is
        NaN, unless the sign is asked for.

    Example:
        >>> import fgrad
        >>> round(float(fgrad.nn.logsumexp([1000.0, 1000.0])), 6)
        1000.693147
    """
    x = _floats(a)
    if where is not None:
        x = e.select(truth(as_array(where)), x, np.asarray(-np.inf, x.dtype))
    if b is None:
        axes = many_axes(axis, x.ndim)
        out, sign = r.logsumexp(x, axes=axes), None
    else:
        out, sign, axes, x = (*_weighted(x, as_array(b), axis),)
    kept = keep_axes(out, x.shape, axes) if keepdims else out
    if not return_sign:
        return kept if sign is None else e.select(e.lt(_shaped(sign, kept), 0), np.asarray(np.nan, x.dtype), kept)
    sign = e.select(e.eq(out, -np.inf), 0.0, np.ones((), x.dtype)) if sign is None else sign
    return kept, _shaped(sign, kept)


def _shaped(x: Any, like: Any) -> Any:
    return s.reshape(as_array(x), shape=like.shape)


def _weighted(x: Any, b: Any, axis: Any) -> tuple[Any, Any, tuple[int, ...], Any]:
    """Return the logarithm of the absolute weighted sum of exponentials, its sign, the axes, and x broadcast."""
    shape = np.broadcast_shapes(x.shape, b.shape)
    x, b = [v if v.shape == shape else s.broadcast(v, shape=shape) for v in (x, b)]
    absent = e.eq(b, 0)
    axes = many_axes(axis, x.ndim)
    top = s.stop_gradient(r.reduce_max(e.select(absent, -np.inf, x), axes=axes))
    top = e.select(e.isfinite(top), top, 0)
    shifted = e.sub(x, keep_axes(top, x.shape, axes))
    too_large = np.log(np.finfo(x.dtype).max) / 2  # what has no weight must not overflow
    shifted = e.select(e.logical_and(absent, e.gt(shifted, too_large)), -np.inf, shifted)
    total = r.reduce_sum(e.mul(b, e.exp(shifted)), axes=axes)
    nothing = e.eq(total, 0)
    size = e.log(e.select(nothing, 1, e.abs(total)))
    return e.select(nothing, -np.inf, e.add(size, top)), e.sign(total), axes, x


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """Return log(mean(exp(x))) over axes, without overflow."""
    x = _floats(x)
    axes = many_axes(axis, x.ndim)
    mask = np.ones(x.shape, bool) if where is None else s.broadcast(truth(as_array(where)), shape=x.shape)
    count = r.reduce_sum(cast(mask, x.dtype), axes=axes)
    count = keep_axes(count, x.shape, axes) if keepdims else count
    return e.sub(logsumexp(x, axis, keepdims=keepdims, where=where), e.log(count))


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """Return exp(x) divided by its sum over axes.

    Args:
        x: array.
        axis: an axis or a tuple of axes; None for all.
        where: mask of the elements to include; others, and rows without any, give 0.

    Example:
        >>> import fgrad
        >>> fgrad.nn.softmax([0.0, 0.0])
        array([0.5, 0.5])
    """
    x = _floats(x)
    axes = many_axes(axis, x.ndim)
    if where is None:
        return k.softmax(x, axes=axes)
    mask = truth(as_array(where))
    return e.select(mask, e.exp(_log_share(x, axes, mask)), 0)


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """Return the logarithm of `softmax`, also where that underflows."""
    x = _floats(x)
    axes = many_axes(axis, x.ndim)
    if where is None:
        return k.log_softmax(x, axes=axes)
    mask = truth(as_array(where))
    return e.select(mask, _log_share(x, axes, mask), np.asarray(-np.inf, x.dtype))


def _log_share(x: Any, axes: tuple[int, ...], mask: Any) -> Any:
    """Return the logarithm of each element's share of those that `mask` includes; finite where there are none."""
    x = e.select(mask, x, np.asarray(-np.inf, x.dtype))
    if 0 not in x.shape:  # shares are the same of x less its maximum, and exact for large x
        top = s.stop_gradient(keep_axes(r.reduce_max(x, axes=axes), x.shape, axes))
        x = e.sub(x, e.select(e.isfinite(top), top, 0))
    total = keep_axes(r.logsumexp(x, axes=axes), x.shape, axes)
    return e.sub(x, e.select(e.eq(total, -np.inf), 0, total))


def standardize(x: Any, axis: Any = -1, epsilon: Any = 1e-5) -> Any:
    """Return x with mean 0 and variance 1 over axes, without parameters: the core of a layer norm.

    Args:
        x: array.
        axis: an axis or a tuple of axes; None for all.
        epsilon: added to the variance.

    Example:
        >>> import fgrad
        >>> fgrad.nn.standardize([1.0, 3.0], epsilon=0.0)
        array([-1.,  1.])
    """
    x = _floats(x)
    return k.standardize(x, axes=many_axes(axis, x.ndim), epsilon=float(epsilon))


def one_hot(x: Any, num_classes: int, *, dtype: Any = float, axis: int = -1) -> Any:
    """Return arrays that are 1 at the positions that ints say and 0 elsewhere, along a new axis.

    Args:
        x: array of ints; one outside 0 to num_classes - 1 gives zeros.
        num_classes: the length of the new axis.
        dtype: dtype of the result.
        axis: where the new axis goes.

    Example:
        >>> import fgrad
        >>> fgrad.nn.one_hot([0, 2], 3)
        array([[1., 0., 0.],
               [0., 0., 1.]])
    """
    x = as_array(x)
    axis = many_axes(axis, x.ndim + 1)[0]
    column = s.reshape(x, shape=(*x.shape[:axis], 1, *x.shape[axis:]))
    classes = np.arange(num_classes).reshape([num_classes if i == axis else 1 for i in range(x.ndim + 1)])
    return cast(as_array(e.eq(column, classes)), dtype)

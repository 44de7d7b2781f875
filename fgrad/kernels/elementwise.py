"""Activations, gated ones, dropout and rotary embedding."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgrad import nn
from fgrad.kernels.pairs import like, wide, with_kernels
from fgrad.ops import elementwise as e
from fgrad.ops import shape as s
from fgrad.ops.kernels import philox_kept


@with_kernels("activation.activation", batch="leading", name="gelu")
def gelu(x: Any) -> Any:
    """Return x times the normal distribution function of x. Source: Hendrycks and Gimpel, arXiv 1606.08415.

    Args:
        x: floating.
        impl: "numpy" or "triton".

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.gelu(np.array([1.0])).round(4)
        array([0.8413])
    """
    return like(nn.gelu(wide(x), approximate=False), x)


@with_kernels("activation.activation", batch="leading", name="gelu_tanh")
def gelu_tanh(x: Any) -> Any:
    """Return `gelu` approximated by a hyperbolic tangent; arguments are those of `gelu`."""
    return like(nn.gelu(wide(x), approximate=True), x)


@with_kernels("activation.activation", batch="leading", name="silu")
def silu(x: Any) -> Any:
    """Return x * sigmoid(x); arguments are those of `gelu`. Source: Elfwing et al., arXiv 1702.03118."""
    return like(nn.silu(wide(x)), x)


@with_kernels("activation.activation", wrt=("x", "up"), batch="leading", name="gelu")
def geglu(x: Any, up: Any) -> Any:
    """Return gelu(x) * up; see `swiglu`."""
    return _gated(nn.gelu(wide(x), approximate=False), x, up, "geglu")


@with_kernels("activation.activation", wrt=("x", "up"), batch="leading", name="gelu_tanh")
def geglu_tanh(x: Any, up: Any) -> Any:
    """Return gelu_tanh(x) * up; see `swiglu`."""
    return _gated(nn.gelu(wide(x), approximate=True), x, up, "geglu_tanh")


@with_kernels("activation.activation", wrt=("x", "up"), batch="leading", name="silu")
def swiglu(x: Any, up: Any) -> Any:
    """Return silu(x) * up. Source: Shazeer, arXiv 2002.05202.

    Args:
        x, up: floating, of one shape.
        impl: "numpy" or "triton".

    Raises:
        ValueError: the shapes differ.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.swiglu(np.array([1.0]), np.array([2.0])).round(4)
        array([1.4621])
    """
    return _gated(nn.silu(wide(x)), x, up, "swiglu")


def _gated(value: Any, x: Any, up: Any, name: str) -> Any:
    if up.shape != x.shape:
        raise ValueError(f"{name}: x and up must have one shape, got {x.shape} and {up.shape}")
    return like(e.mul(value, wide(up)), x)


@with_kernels("dropout.dropout")
def dropout(x: Any, seed: Any, *, rate: float = 0.5, offset: int = 0) -> Any:
    """Set elements to 0 with probability `rate`, and divide the others by 1 - rate, so that the mean stays.

    An element's fate depends on the seed and its number alone: no mask is kept, and a new seed costs no new trace.
    Examples that `vmap` maps over share a mask unless the seed is mapped as well.

    Args:
        x: floating, at least one axis.
        seed: an integer, or an integer array of one element.
        rate: in [0, 1).
        offset: the first element's number, for arrays that continue one another.
        impl: "numpy" or "triton".

    Raises:
        ValueError: rate is out of range, or the seed is not one integer.

    Source: Srivastava et al. (2014); bits of Philox 4x32-10, Salmon et al. (2011).

    Example:
        >>> import numpy as np, fgrad
        >>> sorted(set(fgrad.kernels.dropout(np.ones(100), 1).tolist()))
        [0.0, 2.0]
    """
    if not 0 <= rate < 1:
        raise ValueError(f"dropout: rate must be in [0, 1), got {rate}")
    numbers = np.arange(offset, offset + x.size, dtype=np.int64).reshape(x.shape)
    kept = philox_kept(one_seed(seed, "dropout"), numbers, rate=float(rate))
    return like(e.select(kept, e.mul(wide(x), 1 / (1 - rate)), 0.0), x)


def one_seed(seed: Any, name: str) -> Any:
    """Return a seed as an array without axes."""
    if seed.dtype.kind not in "iu" or seed.size != 1:
        raise ValueError(f"{name}: seed must be an integer, or an array of one, got {seed.dtype} of shape {seed.shape}")
    return s.reshape(seed, shape=())


@with_kernels("rope.rope")
def rope(x: Any, cos: Any, sin: Any) -> Any:
    """Turn the pairs of every head by the angles of its position. Source: Su et al., arXiv 2104.09864.

    Args:
        x: (batch, length, heads, 2 * half), floating; element i of a head and element half + i are a pair.
        cos, sin: (length, half), cosine and sine of the angles.
        impl: "numpy" or "triton".

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.rope(np.array([[[[1.0, 0.0]]]]), np.zeros((1, 1)), np.ones((1, 1)))
        array([[[[0., 1.]]]])
    """
    if x.ndim != 4 or x.shape[-1] % 2:
        raise ValueError(f"rope: x must be (batch, length, heads, an even number), got {x.shape}")
    half = x.shape[-1] // 2
    for name, table in (("cos", cos), ("sin", sin)):
        if table.shape != (x.shape[1], half):
            raise ValueError(f"rope: {name} must have shape {(x.shape[1], half)}, got {table.shape}")
    cos, sin = [s.reshape(wide(table), shape=(x.shape[1], 1, half)) for table in (cos, sin)]
    first, second = wide(x[..., :half]), wide(x[..., half:])
    turned = e.sub(e.mul(first, cos), e.mul(second, sin)), e.add(e.mul(second, cos), e.mul(first, sin))
    return like(s.concatenate(*turned, axis=3), x)

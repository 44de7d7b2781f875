"""Matrix products, and the layer made of one."""

from __future__ import annotations

from typing import Any

from fgrad import nn
from fgrad.kernels.pairs import like, wide, with_kernels
from fgrad.ops import elementwise as e

_ACTIVATIONS = {
    "gelu": lambda x: nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: nn.gelu(x, approximate=True),
    "silu": nn.silu,
}


@with_kernels("matmul.matmul", wrt=("x", "y"), batch="leading")
def matmul(x: Any, y: Any, *, precision: str = "ieee") -> Any:
    """Return x @ y, added up in float32 at least.

    Args:
        x: (…, rows, inner), floating. y: (…, inner, columns), of x's type and leading axes.
        precision: of float32 products on a GPU: "ieee", "tf32" or "tf32x3". NumPy's are always exact to float32.
        impl: "numpy" or "triton".

    Returns:
        (…, rows, columns) of x's dtype.

    Raises:
        ValueError: the shapes do not fit.
        TypeError: x and y differ in type.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.matmul(np.ones((1, 3)), np.ones((3, 1)))
        array([[3.]])
    """
    return like(_product("matmul", x, y), x)


def _product(name: str, x: Any, y: Any) -> Any:
    if x.ndim < 2 or y.ndim != x.ndim or x.shape[:-2] != y.shape[:-2] or x.shape[-1] != y.shape[-2]:
        raise ValueError(
            f"{name}: x and y must be (…, rows, inner) and (…, inner, columns), got {x.shape} and {y.shape}"
        )
    if x.dtype != y.dtype:
        raise TypeError(f"{name}: x and y must have one type, got {x.dtype} and {y.dtype}")
    return wide(x) @ wide(y)


def _before(x: Any, y: Any, bias: Any, **options: Any) -> tuple[Any]:
    return (like(_affine(x, y, bias), x),)


def _affine(x: Any, y: Any, bias: Any) -> Any:
    out = _product("linear", x, y)
    if bias is None:
        return out
    if bias.shape != y.shape[-1:]:
        raise ValueError(f"linear: bias must have shape {y.shape[-1:]}, got {bias.shape}")
    return e.add(out, wide(bias))


@with_kernels("matmul.linear", wrt=("x", "y", "bias"), outputs=("out", "before"), extras=_before)
def linear(x: Any, y: Any, bias: Any = None, *, activation: str | None = None, precision: str = "ieee") -> Any:
    """Return x @ y, plus a bias, through an activation, in one kernel.

    Args:
        x, y, precision: as in `matmul`.
        bias: (columns,), or None.
        activation: "gelu", "gelu_tanh", "silu", or None.
        impl: "numpy" or "triton".

    Raises:
        ValueError: shapes do not fit, or there is no such activation.
        TypeError: x and y differ in type.
    """
    if activation is not None and activation not in _ACTIVATIONS:
        raise ValueError(f"linear: activation must be None or one of {sorted(_ACTIVATIONS)}, got {activation!r}")
    out = _affine(x, y, bias)
    return like(out if activation is None else _ACTIVATIONS[activation](out), x)

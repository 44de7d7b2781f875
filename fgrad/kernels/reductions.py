"""Reductions over any axes, and running sums. Sums are made and given in float32 at least."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgrad.kernels.pairs import like, wide, with_kernels
from fgrad.numpy.arguments import many_axes, one_axis
from fgrad.ops import elementwise as e
from fgrad.ops import reduce as r
from fgrad.ops import shape as s


@with_kernels("reduction.reduce", kind="sum")
def sum(x: Any, *, axis: Any = -1) -> Any:
    """Return the sum over axes.

    Args:
        x: floating, at least one axis.
        axis: an axis, a tuple of axes, or None for all.
        impl: "numpy" or "triton".

    Returns:
        float64 for float64, float32 otherwise.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.sum(np.array([[1.0, 3.0]]))
        array([4.])
    """
    return r.reduce_sum(wide(x), axes=many_axes(axis, x.ndim))


@with_kernels("reduction.reduce", kind="mean")
def mean(x: Any, *, axis: Any = -1) -> Any:
    """Return the mean over axes; arguments and types are those of `sum`."""
    axes = many_axes(axis, x.ndim)
    total = r.reduce_sum(wide(x), axes=axes)
    return e.div(total, np.prod([x.shape[a] for a in axes], dtype=total.dtype))


@with_kernels("reduction.reduce", kind="max")
def max(x: Any, *, axis: Any = -1) -> Any:
    """Return the largest entry over axes, in x's dtype; NaN if there is one, -inf of nothing.

    Arguments are those of `sum`. Entries that tie share the cotangent.
    """
    axes = many_axes(axis, x.ndim)
    if not np.prod([x.shape[a] for a in axes]):
        return np.full([n for a, n in enumerate(x.shape) if a not in axes], -np.inf, x.dtype)
    return like(r.reduce_max(wide(x), axes=axes), x)


@with_kernels("reduction.reduce", kind="logsumexp")
def logsumexp(x: Any, *, axis: Any = -1) -> Any:
    """Return log(sum(exp(x))) over axes without overflow; arguments and types are those of `sum`."""
    return r.logsumexp(wide(x), axes=many_axes(axis, x.ndim))


@with_kernels("reduction.argmax", wrt=())
def argmax(x: Any, *, axis: Any = -1) -> Any:
    """Return the position of the largest entry along an axis: the first NaN, else the first of equals.

    Args:
        x: floating, at least one axis.
        axis: an axis, or None for the position among all elements.
        impl: "numpy" or "triton".

    Raises:
        ValueError: there are no entries to choose from.
    """
    if axis is None:
        x, axis = s.reshape(x, shape=(x.size,)), 0
    return r.argmax(x, axis=one_axis(axis, x.ndim))


@with_kernels("reduction.cumsum")
def cumsum(x: Any, *, axis: int = -1, reverse: bool = False) -> Any:
    """Return running sums along an axis, in x's dtype and made in float32 at least.

    Args:
        x: floating, at least one axis.
        axis: an axis.
        reverse: from the end.
        impl: "numpy" or "triton".

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.cumsum(np.ones(3), reverse=True)
        array([3., 2., 1.])
    """
    return like(r.cumsum(wide(x), axis=one_axis(axis, x.ndim), reverse=reverse), x)

"""Reductions and cumulative primitives. Axes are a sorted tuple of non-negative ints; reduced axes are dropped."""

from __future__ import annotations

import numpy as np

from fgrad.kinds import linear


def _reduced(x, axes):
    return tuple(n for i, n in enumerate(x.shape) if i not in axes)


def _shift_axes(size, *, axes):
    return {"axes": tuple(a + 1 for a in axes)}


def expand_dims_to(y, x, axes):
    """Return `y`, a reduction of an array like `x` over `axes`, broadcast back to the shape of `x`."""
    shape = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
    return np.broadcast_to(y.reshape(shape), x.shape)


reduce_sum = linear(
    "reduce_sum",
    lambda x, *, axes: np.add.reduce(x, axis=axes),
    type=lambda x, *, axes: x.with_shape(_reduced(x, axes)),
    transpose=lambda ct, x, *, axes: expand_dims_to(ct, x, axes),
    shift=_shift_axes,
    gpu="reduce.sum",
)

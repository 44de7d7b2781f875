"""Trees as one vector, in the name of `jax.flatten_util`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import type_of
from fgrad.ops import shape as s
from fgrad.transforms.linearize import as_operand

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the elements of all leaves as one vector, and the function that puts such a vector back.

    Args:
        pytree: a tree of arrays and numbers.

    Returns:
        `(flat, unravel)`: a vector of the leaves' common dtype, leaf after leaf in C order; `unravel(vector)` is a tree
        like `pytree`, each leaf in its own dtype. Both are differentiable.

    Raises:
        TypeError: a leaf is no array or number; (from `unravel`) the vector has another dtype.
        ValueError: (from `unravel`) the vector has another shape.

    Example:
        >>> import numpy as np
        >>> from fgrad.flatten_util import ravel_pytree
        >>> flat, unravel = ravel_pytree({"a": np.ones((2, 1)), "b": 3.0})
        >>> flat
        array([1., 1., 3.])
        >>> unravel(2 * flat)
        {'a': array([[2.],
               [2.]]), 'b': array(6.)}
    """
    leaves, treedef = tree.flatten(pytree)
    leaves = [as_operand(x, "a leaf given to ravel_pytree") for x in leaves]
    kinds = [type_of(x).strong() for x in leaves]
    dtype = np.result_type(*[t.dtype for t in kinds]) if kinds else np.dtype(float)
    flat = [_cast(s.reshape(x, shape=(t.size,)), dtype) for x, t in zip(leaves, kinds, strict=True)]

    def unravel(vector: Any) -> Any:
        given = type_of(vector)
        if given.shape != (sum(t.size for t in kinds),):
            raise ValueError(f"unravel: the vector must have shape ({sum(t.size for t in kinds)},), got {given.shape}")
        if given.dtype != dtype:
            raise TypeError(f"unravel: the vector must have dtype {dtype}, got {given.dtype}")
        parts, start = [], 0
        for t in kinds:
            stop = start + math.prod(t.shape)
            part = s.slice(vector, index=((start, stop, 1),))
            parts.append(_cast(s.reshape(part, shape=t.shape), t.dtype))
            start = stop
        return tree.unflatten(treedef, parts)

    return s.concatenate(*flat, axis=0) if flat else np.zeros(0), unravel


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return an array in memory of its own, in another dtype."""
    if dtype.kind in "fcV":
        return s.cast(x, dtype=dtype)
    return s.to_integer(x, dtype=dtype)

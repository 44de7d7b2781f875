"""Cutting derivatives on purpose, and telling how types go: small functions beside the transforms."""

from __future__ import annotations

from typing import Any

from fgrad import tree
from fgrad.core import type_of
from fgrad.ops import shape
from fgrad.transforms.linearize import as_operand


def stop_gradient(x: Any) -> Any:
    """Return `x` as a constant: the identity, with derivative zero.

    Args:
        x: pytree of arrays; integers and objects without a floating dtype pass through.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.grad(lambda x: x * fgrad.stop_gradient(x))(np.array(3.))
        array(3.)
    """

    def stop(leaf: Any) -> Any:
        leaf = as_operand(leaf, "an argument of stop_gradient")
        return shape.stop_gradient(leaf) if type_of(leaf).dtype.kind in "fc" else leaf

    return tree.map(stop, x)

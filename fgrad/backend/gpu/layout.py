"""How kernels address arrays: strides in elements, seen from the rows and columns of a domain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

if TYPE_CHECKING:
    from fgrad.backend.gpu.fusion import Domain
    from fgrad.program import Equation

Strides = tuple[int, ...]


class Access(NamedTuple):
    """Where elements lie for a row and a column: (size, stride) of nested axes each, outermost first.

    Neighbouring axes that are walked through in one stride are one. No axes: the same element for all. `pick` is the
    (size, stride) of an axis along which an index says where; see `fgrad.backend.gpu.entries`.
    """

    rows: tuple[tuple[int, int], ...]
    columns: tuple[tuple[int, int], ...]
    pick: tuple[int, ...] = ()


def packed(shape: tuple[int, ...]) -> Strides:
    """Return the strides of an array in C order."""
    return tuple([math.prod(shape[a + 1 :]) for a in range(len(shape))])


def viewed(eq: Equation, strides: Strides) -> Strides:
    """Return the strides of the view that an equation makes of an array with these."""
    x = eq.inputs[0].type
    array = as_strided(np.empty((), np.int8), x.shape, strides)
    return tuple(eq.prim.impl(array, **eq.params).strides)


def access(shape: tuple[int, ...], strides: Strides, over: tuple[int, ...], domain: Domain, kind: str) -> Access | None:
    """Return how an array broadcast to the shape `over` is addressed in a domain; None if rows and columns mix.

    Args:
        shape, strides: the array.
        over: a shape of as many elements as the domain has (`kind` "full") or as it has rows ("row").
        domain: rows and columns.
        kind: see `over`.
    """
    if math.prod(shape) == 1:
        return Access((), ())
    missing = len(over) - len(shape)
    axes = [(n, 0) if a < missing or shape[a - missing] == 1 else (n, strides[a - missing]) for a, n in enumerate(over)]
    columns = domain.columns if kind == "full" else 1
    if kind == "full" and domain.order:
        if over != domain.shape:
            return None
        axes, over = [axes[a] for a in domain.order], tuple([over[a] for a in domain.order])
    split = len(over)
    count = 1
    while count < columns and split:
        split -= 1
        count *= over[split]
    if count != columns:
        if shape == over and strides == packed(shape) and not domain.order:
            return Access(((domain.rows, domain.columns),), ((domain.columns, 1),))
        return None
    return Access(_merged(axes[:split]), _merged(axes[split:]))


def _merged(axes: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return axes with size 1 dropped and neighbours joined where one stride walks through both."""
    out: list[tuple[int, int]] = []
    for size, stride in axes:
        if size == 1:
            continue
        if out and out[-1][1] == size * stride:
            out[-1] = (out[-1][0] * size, stride)
        else:
            out.append((size, stride))
    return () if all(stride == 0 for _, stride in out) else tuple(out)

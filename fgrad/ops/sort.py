"""Sorting primitives: argsort (the one that sorts), sort and top_k by the permutation it finds."""

from __future__ import annotations

import numpy as np

from fgrad.core import ArrayType
from fgrad.kinds import composite, constant, differential
from fgrad.ops.along import put_along_add, shift_axis, take_along
from fgrad.plans import zeros


def _argsort(*keys, axis):
    if len(keys) == 1:
        return np.argsort(keys[0], axis=axis, kind="stable")
    return np.lexsort(keys[::-1], axis=axis)


argsort = constant(
    "argsort",
    _argsort,
    type=lambda *keys, axis: ArrayType(keys[0].shape, np.intp),
    shift=shift_axis,
    gpu="sort.argsort",
    doc="The stable order of the keys, the first one weighing most; nan comes last.",
)


def _sorted(x, *, axis):
    return take_along(x, argsort(x, axis=axis), axis=axis)


sort = composite(
    "sort",
    _sorted,
    impl=lambda x, *, axis: np.sort(x, axis=axis),
    type=lambda x, *, axis: ArrayType(x.shape, x.dtype),
    shift=shift_axis,
    gpu="sort.sort",
    doc="x in ascending order along an axis; nan comes last.",
)


def _top_k(x, *, k):
    """Sort backwards from the end, so that of equals the first comes first."""
    n = x.shape[-1]
    order = n - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., : n - k - 1 if k < n else None : -1]
    return take_along.impl(x, order, axis=x.ndim - 1), order


def _top_k_type(x, *, k):
    shape = (*x.shape[:-1], k)
    return ArrayType(shape, x.dtype), ArrayType(shape, np.intp)


top_k = differential(
    "top_k",
    _top_k,
    type=_top_k_type,
    outputs=("values", "order"),
    jvp=lambda t, order, *, k: (take_along(t, order, axis=t.ndim - 1), None),
    pull=lambda ct, x_type, order, *, k: put_along_add(zeros(x_type), order, ct[0], axis=x_type.ndim - 1),
    shift=lambda size, *, k: {},
    gpu="sort.top_k",
    doc="The k largest along the last axis, in descending order, and where they are; of equals the first come first, "
    "nan is the largest.",
)

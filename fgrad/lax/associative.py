"""Prefix sums of an associative operation, in log2(n) vectorised steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import type_of
from fgrad.ops.shape import concatenate, place, reverse, slice
from fgrad.transforms.linearize import as_operand, check_callable


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Return all prefixes of an associative operation along an axis: `a0`, `fn(a0, a1)`, `fn(fn(a0, a1), a2)`, …

    Pairs are combined, the prefixes of half the length found in the same way, and the others filled in: 2n
    applications in 2 log2(n) calls of `fn`, each on whole slices (R. E. Ladner, M. J. Fischer, "Parallel prefix
    computation", J. ACM 27, 1980).

    Args:
        fn: an associative function of two pytrees like `elems`, vectorised over `axis`.
        elems: pytree of arrays of equal size along `axis`.
        reverse: start from the last element: `fn(a2, a1)`, `fn(fn(a2, a1), a0)`.
        axis: the axis to scan along; negative counts from the end.

    Raises:
        TypeError: `fn` is not callable.
        ValueError: there is no array, sizes along `axis` differ, or an array has no such axis.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.lax.associative_scan(np.multiply, np.array([1., 2., 3., 4.]))
        array([ 1.,  2.,  6., 24.])
    """
    check_callable("associative_scan", fn)
    leaves, treedef = tree.flatten(elems)
    leaves = [as_operand(x, "an element of associative_scan") for x in leaves]
    axes = [_axis(type_of(x).ndim, axis) for x in leaves]
    sizes = {type_of(x).shape[a] for x, a in zip(leaves, axes, strict=True)}
    if len(sizes) != 1:
        raise ValueError(f"associative_scan needs arrays of one size along axis {axis}, got sizes {sorted(sizes)}")

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        return tree.leaves(fn(tree.unflatten(treedef, a), tree.unflatten(treedef, b)))

    if reverse:
        return tree.unflatten(treedef, _reversed(_prefixes(combine, _reversed(leaves, axes), axes), axes))
    return tree.unflatten(treedef, _prefixes(combine, leaves, axes))


def _axis(ndim: int, axis: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"associative_scan: axis {axis} is out of range for an array of {ndim} dimensions")
    return axis % ndim


def _reversed(leaves: list[Any], axes: list[int]) -> list[Any]:
    return [reverse(x, axes=(a,)) for x, a in zip(leaves, axes, strict=True)]


def _part(leaves: list[Any], axes: list[int], start: int, stop: int, step: int = 1) -> list[Any]:
    """Return a slice along the scanned axis of every array."""
    out = []
    for x, axis in zip(leaves, axes, strict=True):
        index = [(0, n, 1) for n in x.shape]
        index[axis] = (start, stop, step)
        out.append(slice(x, index=tuple(index)))
    return out


def _prefixes(combine: Callable[..., list[Any]], leaves: list[Any], axes: list[int]) -> list[Any]:
    n = leaves[0].shape[axes[0]]
    if n < 2:
        return [np.array(x) if isinstance(x, np.ndarray) else x for x in leaves]
    even = n - n % 2
    pairs = combine(_part(leaves, axes, 0, even, 2), _part(leaves, axes, 1, even, 2))
    odd = _prefixes(combine, pairs, axes)  # the prefixes that end at 1, 3, 5, …
    first = _part(leaves, axes, 0, 1)
    if n > 2:
        rest = combine(_part(odd, axes, 0, (n - 1) // 2), _part(leaves, axes, 2, n, 2))
        first = [concatenate(a, b, axis=axis) for a, b, axis in zip(first, rest, axes, strict=True)]
    return [_interleaved(a, b, axis, n) for a, b, axis in zip(first, odd, axes, strict=True)]


def _interleaved(even: Any, odd: Any, axis: int, n: int) -> Any:
    """Return the array whose slices along `axis` come from `even` and `odd` in turn."""
    shape = (*even.shape[:axis], n, *even.shape[axis + 1 :])
    index = [(0, m, 1) for m in shape]
    places = []
    for start in (0, 1):
        index[axis] = (start, n, 2)
        places.append(tuple(index))
    return place(even, shape=shape, index=places[0]) + place(odd, shape=shape, index=places[1])

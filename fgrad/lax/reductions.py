"""`jax.lax`'s reductions, running reductions, sorts and products. Reductions keep their dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import numpy as fnp
from fgrad import tree
from fgrad.numpy.arguments import as_array, cast, many_axes, one_axis, promoted
from fgrad.ops import contract
from fgrad.ops import reduce as r
from fgrad.ops import sort as so

__all__ = """
argmax argmin batch_matmul cumlogsumexp cummax cummin cumprod cumsum dot dot_general reduce reduce_and reduce_max
reduce_min reduce_or reduce_prod reduce_sum reduce_xor sort sort_key_val top_k
""".split()

# --------------------------------------------------------------------------------------------- reductions


def _reduction(name: str, prim: Any, summary: str) -> Callable[[Any, Sequence[int]], Any]:
    def reduction(operand: Any, axes: Sequence[int]) -> Any:
        operand = as_array(operand)
        return cast(as_array(prim(operand, axes=many_axes(tuple(axes), operand.ndim, "axes"))), operand.dtype)

    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = f"{summary} over `axes`, a sequence of ints; the dtype is the operand's."
    return reduction


def _xor(x: Any, *, axes: tuple[int, ...]) -> Any:
    return r.reduce_sum(cast(x, np.int64), axes=axes) % 2


reduce_sum = _reduction("reduce_sum", r.reduce_sum, "Sum")
reduce_prod = _reduction("reduce_prod", r.reduce_prod, "Multiply")
reduce_max = _reduction("reduce_max", r.reduce_max, "Return the largest elements")
reduce_min = _reduction("reduce_min", r.reduce_min, "Return the smallest elements")
reduce_and = _reduction("reduce_and", r.reduce_all, "Say whether all bools are true")
reduce_or = _reduction("reduce_or", r.reduce_any, "Say whether any bool is true")
reduce_xor = _reduction("reduce_xor", _xor, "Say whether an odd number of bools is true")


def reduce(operands: Any, init_values: Any, computation: Callable[[Any, Any], Any], dimensions: Sequence[int]) -> Any:
    """Reduce over axes by any associative function of two arrays (or trees of them) that works element by element.

    Args:
        operands: an array, or a tree of arrays of one shape.
        init_values: what `computation` leaves other values unchanged with: a scalar, or a tree like `operands`.
        computation: a function of two values of the tree of `operands`.
        dimensions: the axes.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.reduce(np.arange(6.).reshape(2, 3), 0., lax.add, (1,))
        array([ 3., 12.])
    """
    leaves, treedef = tree.flatten(operands)
    leaves = [as_array(x) for x in leaves]
    axes = many_axes(tuple(dimensions), leaves[0].ndim, "dimensions")
    rest = [n for a, n in enumerate(leaves[0].shape) if a not in axes]
    order = [*axes, *[a for a in range(leaves[0].ndim) if a not in axes]]
    rows = [fnp.transpose(x, order).reshape((-1, *rest) if x.size else (0, *rest)) for x in leaves]
    first = [cast(as_array(v), x.dtype) for v, x in zip(tree.leaves(init_values), leaves, strict=True)]
    total = tree.unflatten(treedef, [fnp.broadcast_to(v, tuple(rest)) for v in first])
    while rows[0].shape[0]:
        if rows[0].shape[0] % 2:
            total = computation(total, tree.unflatten(treedef, [x[0] for x in rows]))
            rows = [x[1:] for x in rows]
        if rows[0].shape[0]:
            half = rows[0].shape[0] // 2
            pairs = [tree.unflatten(treedef, [x[part] for x in rows]) for part in (np.s_[:half], np.s_[half:])]
            rows = tree.leaves(computation(*pairs))
    return total


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Return where along an axis the first maximum, or NaN, is.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.argmax(np.array([1., 3., 2.]), 0, np.int32)
        array(1, dtype=int32)
    """
    return cast(as_array(fnp.argmax(operand, axis)), index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Return where along an axis the first minimum, or NaN, is.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.argmin(np.array([1., 3., 0.]), 0, np.int32)
        array(2, dtype=int32)
    """
    return cast(as_array(fnp.argmin(operand, axis)), index_dtype)


def _running(name: str, prim: Any, summary: str) -> Callable[..., Any]:
    def running(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
        operand = as_array(operand)
        out = prim(operand, axis=one_axis(axis, operand.ndim), reverse=bool(reverse))
        return cast(as_array(out), operand.dtype)

    running.__name__ = running.__qualname__ = name
    running.__doc__ = f"{summary} along an axis, from the end if `reverse`; the dtype is the operand's."
    return running


cumsum = _running("cumsum", r.cumsum, "Compute running sums")
cumprod = _running("cumprod", r.cumprod, "Compute running products")
cummax = _running("cummax", r.cummax, "Compute running maxima")
cummin = _running("cummin", r.cummin, "Compute running minima")
cumlogsumexp = _running("cumlogsumexp", r.cumlogsumexp, "Compute running log(sum(exp(x)))")

# --------------------------------------------------------------------------------------------------- sorts


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort an array along an axis, or several arrays alike by the first `num_keys` of them.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.sort((np.array([2, 1, 2]), np.array([1., 2., 0.])), num_keys=2)
        (array([1, 2, 2]), array([2., 0., 1.]))
    """
    several = isinstance(operand, (tuple, list))
    operands = [as_array(x) for x in operand] if several else [as_array(operand)]
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"sort: num_keys must be between 1 and the number of arrays, {len(operands)}, got {num_keys}")
    axis = one_axis(dimension, operands[0].ndim, "dimension")
    if not several:
        return so.sort(operands[0], axis=axis)
    order = so.argsort(*operands[:num_keys], axis=axis)
    return tuple([fnp.take_along_axis(x, order, axis) for x in operands])


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """Sort keys along an axis, and values alike.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.sort_key_val(np.array([2, 1]), np.array([0.2, 0.1]))
        (array([1, 2]), array([0.1, 0.2]))
    """
    keys, values = sort((keys, values), dimension)
    return keys, values


def top_k(operand: Any, k: int) -> tuple[Any, Any]:
    """Return the k largest elements along the last axis, in descending order, and where they are.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.top_k(np.array([1., 3., 2.]), 2)
        (array([3., 2.]), array([1, 2]))
    """
    operand = as_array(operand)
    if not operand.ndim or not 0 <= k <= operand.shape[-1]:
        raise ValueError(
            f"top_k: k must be between 0 and the last size of the operand, of shape {operand.shape}, got {k}"
        )
    values, order = so.top_k(operand, k=operator.index(k))
    return values, order


# ------------------------------------------------------------------------------------------------ products


def dot(lhs: Any, rhs: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Multiply vectors and matrices; `precision` has no effect.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.dot(np.ones((2, 3)), np.arange(3.))
        array([3., 3.])
    """
    return in_type(fnp.dot(*operands_of(lhs, rhs, preferred_element_type)), preferred_element_type)


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """Sum products over axes, for each index of others: `((contracted of lhs, of rhs), (batch axes of lhs, of rhs))`.

    The result has the batch axes, then what is left of `lhs`, then of `rhs`. `precision` has no effect.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.dot_general(np.ones((5, 2, 3)), np.ones((5, 3)), (((2,), (1,)), ((0,), (0,)))).shape
        (5, 2)
    """
    pair = operands_of(lhs, rhs, preferred_element_type)
    contracted, batch = [
        tuple([tuple([one_axis(a, x.ndim) for a in axes]) for x, axes in zip(pair, both, strict=True)])
        for both in dimension_numbers
    ]
    return in_type(contract.dot_general(*pair, contract=contracted, batch=batch), preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """Multiply stacks of matrices; `precision` has no effect.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
        (5, 2, 4)
    """
    return fnp.matmul(lhs, rhs)


def operands_of(lhs: Any, rhs: Any, dtype: Any) -> list[Any]:
    """Return operands in their common dtype, or in that of the result if it is wider: sums are made in it."""
    pair = promoted(as_array(lhs), as_array(rhs))
    return pair if dtype is None else [cast(x, np.result_type(x.dtype, dtype)) for x in pair]


def in_type(x: Any, dtype: Any) -> Any:
    return x if dtype is None else cast(as_array(x), dtype)

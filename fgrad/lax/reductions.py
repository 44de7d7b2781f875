"""`jax.lax`'s reductions, running reductions, sorts, products and convolutions. Reductions keep their dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import numpy as fnp
from fgrad.numpy.arguments import as_array, cast, many_axes, one_axis, promoted
from fgrad.ops import contract
from fgrad.ops import reduce as r
from fgrad.ops import sort as so

__all__ = """
argmax argmin batch_matmul conv conv_general_dilated conv_with_general_padding cumlogsumexp cummax cummin cumprod
cumsum dot dot_general reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor sort sort_key_val
top_k
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
    return _in_type(fnp.dot(*_operands(lhs, rhs, preferred_element_type)), preferred_element_type)


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
    pair = _operands(lhs, rhs, preferred_element_type)
    contracted, batch = [
        tuple([tuple([one_axis(a, x.ndim) for a in axes]) for x, axes in zip(pair, both, strict=True)])
        for both in dimension_numbers
    ]
    return _in_type(contract.dot_general(*pair, contract=contracted, batch=batch), preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """Multiply stacks of matrices; `precision` has no effect.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
        (5, 2, 4)
    """
    return fnp.matmul(lhs, rhs)


def _operands(lhs: Any, rhs: Any, dtype: Any) -> list[Any]:
    """Return operands in their common dtype, or in that of the result if it is wider: sums are made in it."""
    pair = promoted(as_array(lhs), as_array(rhs))
    return pair if dtype is None else [cast(x, np.result_type(x.dtype, dtype)) for x in pair]


def _in_type(x: Any, dtype: Any) -> Any:
    return x if dtype is None else cast(as_array(x), dtype)


# -------------------------------------------------------------------------------------------- convolutions


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Correlate images `lhs` (N, C, spatial…) with kernels `rhs` (O, C, spatial…); see `conv_general_dilated`.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.conv(np.ones((1, 1, 4, 4)), np.ones((2, 1, 3, 3)), (1, 1), "SAME").shape
        (1, 2, 4, 4)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, preferred_element_type=preferred_element_type)


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Correlate images (N, C, spatial…) with kernels (O, C, spatial…), dilated; see `conv_general_dilated`.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.conv_with_general_padding(np.ones((1, 1, 5)), np.ones((1, 1, 2)), (1,), [(0, 0)], None, (2,)).shape
        (1, 1, 3)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, preferred_element_type=preferred_element_type
    )


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Correlate images with kernels.

    Args:
        lhs: images, with one axis of examples (N), one of channels (C) and spatial ones.
        rhs: kernels, with one axis of outputs (O), one of inputs (I) and spatial ones.
        window_strides: a step for every spatial axis.
        padding: "SAME", "SAME_LOWER", "VALID", or a pair (before, after) for every spatial axis; negative ones crop.
        lhs_dilation, rhs_dilation: distances between neighbouring elements, 1 by default.
        dimension_numbers: three strings, as ("NHWC", "HWIO", "NHWC"), that say what the axes of images, kernels and
            the result are; ("NC…", "OI…", "NC…") by default.
        feature_group_count: channels are convolved in so many groups.
        batch_group_count: 1; others are not implemented.
        precision: has no effect.
        preferred_element_type: the dtype of the result.

    Raises:
        NotImplementedError: `batch_group_count` is not 1.
        ValueError: shapes or sequences do not fit.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> images, kernels = np.ones((1, 8, 8, 3)), np.ones((3, 3, 3, 16))
        >>> lax.conv_general_dilated(images, kernels, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")).shape
        (1, 4, 4, 16)
    """
    if batch_group_count != 1:
        raise NotImplementedError(f"conv_general_dilated: batch_group_count must be 1, got {batch_group_count}")
    x, w = _operands(lhs, rhs, preferred_element_type)
    spatial = x.ndim - 2
    images, kernels, result = _orders(dimension_numbers, spatial)
    x, w = fnp.transpose(x, images), fnp.transpose(w, kernels)
    strides, x_dilation, w_dilation = (
        (1,) * spatial if given is None else tuple([operator.index(n) for n in given])
        for given in (window_strides, lhs_dilation, rhs_dilation)
    )
    out = contract.conv_general(
        x,
        w,
        strides=strides,
        padding=_paddings(padding, x.shape[2:], w.shape[2:], strides, x_dilation, w_dilation),
        x_dilation=x_dilation,
        w_dilation=w_dilation,
        groups=feature_group_count,
    )
    return _in_type(fnp.transpose(out, tuple(np.argsort(result).tolist())), preferred_element_type)


def _orders(numbers: Any, spatial: int) -> list[tuple[int, ...]]:
    """Return, for images, kernels and result, the places of their axes in the order (N, C, …) or (O, I, …)."""
    if numbers is None:
        return [tuple(range(spatial + 2))] * 3
    space = [c for c in numbers[1] if c not in "OI"]
    orders = []
    for text, ends in zip(numbers, ("NC", "OI", "NC"), strict=True):
        if sorted(text) != sorted([*ends, *space]) or len(text) != spatial + 2:
            raise ValueError(
                f"conv_general_dilated: dimension_numbers must name {spatial + 2} axes each, as ('NHWC', 'HWIO', "
                f"'NHWC'), got {tuple(numbers)}"
            )
        orders.append(tuple([text.index(c) for c in (*ends, *space)]))
    return orders


def _paddings(
    padding: Any,
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    x_dilation: Sequence[int],
    w_dilation: Sequence[int],
) -> tuple[tuple[int, int], ...]:
    """Return what is put before and after each spatial axis. "SAME" gives ceil(size / stride) elements."""
    if not isinstance(padding, str):
        pairs = tuple([(operator.index(lo), operator.index(hi)) for lo, hi in padding])
        if len(pairs) != len(sizes):
            raise ValueError(f"conv_general_dilated: padding must have {len(sizes)} pairs, got {len(pairs)}")
        return pairs
    if padding not in ("SAME", "SAME_LOWER", "VALID"):
        raise ValueError(
            f'conv_general_dilated: padding must be "SAME", "SAME_LOWER", "VALID" or pairs, got {padding!r}'
        )
    if any(n != 1 for n in x_dilation):
        raise ValueError("conv_general_dilated: String padding is not implemented with lhs_dilation: give pairs")
    if padding == "VALID":
        return ((0, 0),) * len(sizes)
    pairs = []
    for n, k, step, w_step in zip(sizes, kernel, strides, w_dilation, strict=True):
        k = (k - 1) * w_step + 1
        total = max(0, (-(-n // step) - 1) * step + k - n)
        less, more = total // 2, total - total // 2
        pairs.append((less, more) if padding == "SAME" else (more, less))
    return tuple(pairs)

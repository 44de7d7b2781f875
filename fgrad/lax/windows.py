"""`jax.lax`'s convolutions and reductions over windows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import numpy as fnp
from fgrad.lax.reductions import in_type, operands_of
from fgrad.lax.shapes import pad
from fgrad.numpy.arguments import as_array
from fgrad.ops import contract

__all__ = """
conv conv_general_dilated conv_transpose conv_with_general_padding reduce_window
""".split()


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce over windows by an associative function of two arrays that works element by element: pooling.

    Args:
        operand: an array.
        init_value: what surrounds the operand, and `computation` leaves other values unchanged with.
        computation: `lax.max`, `lax.add`, ….
        window_dimensions: the sizes of the window, one for each axis.
        window_strides, base_dilation, window_dilation: one for each axis, 1 by default.
        padding: "SAME", "SAME_LOWER", "VALID", or a pair (before, after) for every axis.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.reduce_window(np.array([1., 5., 2., 3.]), -np.inf, lax.max, (2,), (2,), "VALID")
        array([5., 3.])
    """
    operand = as_array(operand)
    window, strides, dilation, steps = (
        (1,) * operand.ndim if given is None else tuple([operator.index(n) for n in given])
        for given in (window_dimensions, window_strides, base_dilation, window_dilation)
    )
    if {len(window), len(strides), len(dilation), len(steps)} != {operand.ndim}:
        raise ValueError(f"reduce_window: windows, strides and dilations must have {operand.ndim} entries, one an axis")
    pairs = _paddings(padding, operand.shape, window, strides, steps)
    padded = pad(operand, init_value, [(lo, hi, n - 1) for (lo, hi), n in zip(pairs, dilation, strict=True)])
    counts = [
        max(0, (n - (k - 1) * step - 1) // stride + 1)
        for n, k, stride, step in zip(padded.shape, window, strides, steps, strict=True)
    ]
    total = fnp.full(tuple(counts), init_value, operand.dtype)
    for place in np.ndindex(*window):
        starts = [k * step for k, step in zip(place, steps, strict=True)]
        index = [
            slice(lo, lo + (n - 1) * stride + 1 if n else lo, stride)
            for lo, n, stride in zip(starts, counts, strides, strict=True)
        ]
        total = computation(total, padded[tuple(index)])
    return total


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Correlate with steps of less than one: the images are dilated by `strides`. See `conv_general_dilated`.

    Args:
        strides: how many elements of the result there are for one of the images, for every spatial axis.
        padding: "SAME" gives size * stride elements, "VALID" size * stride + max(kernel - stride, 0); or pairs.
        dimension_numbers: ("NHWC", "HWIO", "NHWC") and alike by default.
        transpose_kernel: flip the kernel's spatial axes and swap its input and output channels.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.conv_transpose(np.ones((1, 3, 1)), np.ones((2, 1, 1)), (2,), "SAME").ravel()
        array([1., 1., 1., 1., 1., 1.])
    """
    lhs, rhs = as_array(lhs), as_array(rhs)
    spatial = "HWDXYZ"[: lhs.ndim - 2]
    numbers = dimension_numbers or (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    space = _orders(numbers, lhs.ndim - 2)[1][2:]
    if isinstance(padding, str):
        steps = [1] * len(space) if rhs_dilation is None else rhs_dilation
        sizes = [(rhs.shape[a] - 1) * n + 1 for a, n in zip(space, steps, strict=True)]
        padding = [_transposed_padding(k, s, padding) for k, s in zip(sizes, strides, strict=True)]
    if transpose_kernel:
        rhs = fnp.flip(rhs, space)
        swapped = numbers[1].translate(str.maketrans("OI", "IO"))
        numbers = (numbers[0], swapped, numbers[2])
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * len(space),
        padding,
        strides,
        rhs_dilation,
        numbers,
        preferred_element_type=preferred_element_type,
    )


def _transposed_padding(kernel: int, stride: int, padding: str) -> tuple[int, int]:
    """Return what is put before and after a dilated axis, so that the size is what `conv_transpose` says."""
    if padding == "SAME":
        total = kernel + stride - 2
        before = kernel - 1 if stride > kernel - 1 else -(-total // 2)
    elif padding == "VALID":
        total = kernel + stride - 2 + max(kernel - stride, 0)
        before = kernel - 1
    else:
        raise ValueError(f'conv_transpose: padding must be "SAME", "VALID" or pairs, got {padding!r}')
    return before, total - before


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
    x, w = operands_of(lhs, rhs, preferred_element_type)
    spatial = x.ndim - 2
    images, kernels, result = _orders(dimension_numbers, spatial)
    x, w = fnp.transpose(x, images), fnp.transpose(w, kernels)
    strides, x_dilation, w_dilation = (
        (1,) * spatial if given is None else tuple([operator.index(n) for n in given])
        for given in (window_strides, lhs_dilation, rhs_dilation)
    )
    if isinstance(padding, str) and any(n != 1 for n in x_dilation):
        raise ValueError("conv_general_dilated: String padding is not implemented with lhs_dilation: give pairs")
    out = contract.conv_general(
        x,
        w,
        strides=strides,
        padding=_paddings(padding, x.shape[2:], w.shape[2:], strides, w_dilation),
        x_dilation=x_dilation,
        w_dilation=w_dilation,
        groups=feature_group_count,
    )
    return in_type(fnp.transpose(out, tuple(np.argsort(result).tolist())), preferred_element_type)


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
    dilation: Sequence[int],
) -> tuple[tuple[int, int], ...]:
    """Return what is put before and after each spatial axis. "SAME" gives ceil(size / stride) elements."""
    if not isinstance(padding, str):
        pairs = tuple([(operator.index(lo), operator.index(hi)) for lo, hi in padding])
        if len(pairs) != len(sizes):
            raise ValueError(f"padding must have {len(sizes)} pairs, got {len(pairs)}")
        return pairs
    if padding not in ("SAME", "SAME_LOWER", "VALID"):
        raise ValueError(f'padding must be "SAME", "SAME_LOWER", "VALID" or pairs, got {padding!r}')
    if padding == "VALID":
        return ((0, 0),) * len(sizes)
    pairs = []
    for n, k, stride, step in zip(sizes, kernel, strides, dilation, strict=True):
        k = (k - 1) * step + 1
        total = max(0, (-(-n // stride) - 1) * stride + k - n)
        less, more = total // 2, total - total // 2
        pairs.append((less, more) if padding == "SAME" else (more, less))
    return tuple(pairs)

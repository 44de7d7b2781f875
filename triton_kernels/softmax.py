"""Softmax and log-softmax over the last axis, and their gradients from the result alone.

With y = softmax(x): dx = (ct - sum(ct y)) y. With y = log_softmax(x): dx = ct - exp(y) sum(ct).

What is decided here: a row of nothing but -inf gives zeros and gradient zero (log-softmax: -inf, and the cotangent as
gradient, since its sum of exponentials counts for nothing). NaN in a row gives NaN in all of it.
"""

from functools import partial

import triton
import triton.language as tl

from .runtime import as_rows, empty, strides
from .tiling import MINUS_INFINITY, accumulator, finite_shift, load_row, row_configurations, row_of_program
from .tune import launch_fastest


@triton.jit
def _normalized(x, shift, total, LOG: tl.constexpr):
    if LOG:
        return tl.where(total == 0, MINUS_INFINITY, x - shift - tl.log(total))
    else:
        return tl.where(total == 0, 0.0, tl.exp(x - shift) / total)


@triton.jit
def forward_kernel(
    x,
    out,
    columns,
    x_row,
    x_column,
    LOG: tl.constexpr,
    WHOLE: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a row: whole in registers, or one pass for largest and sum and one for the result."""
    row = row_of_program()
    x += row * x_row
    out += row * columns
    at = tl.arange(0, BLOCK).to(tl.int64)
    if WHOLE:
        value = load_row(x, at, columns, x_column, MINUS_INFINITY, ACCUMULATOR)
        shift = finite_shift(tl.max(value, 0))
        total = tl.sum(tl.exp(value - shift), 0)
        tl.store(out + at, _normalized(value, shift, total, LOG), mask=at < columns)
    else:
        largest = tl.full((), MINUS_INFINITY, ACCUMULATOR)
        total = tl.zeros((), ACCUMULATOR)
        for start in range(0, columns, BLOCK):
            value = load_row(x, start + at, columns, x_column, MINUS_INFINITY, ACCUMULATOR)
            new_largest = tl.maximum(largest, tl.max(value, 0))
            shift = finite_shift(new_largest)
            total = total * tl.exp(largest - shift) + tl.sum(tl.exp(value - shift), 0)
            largest = new_largest
        for start in range(0, columns, BLOCK):
            value = load_row(x, start + at, columns, x_column, MINUS_INFINITY, ACCUMULATOR)
            result = _normalized(value, finite_shift(largest), total, LOG)
            tl.store(out + start + at, result, mask=start + at < columns)


@triton.jit
def _weight(ct, out, LOG: tl.constexpr):
    """Return what the row's sum adds up."""
    if LOG:
        return ct
    else:
        return ct * out


@triton.jit
def _gradient(ct, out, total, LOG: tl.constexpr):
    if LOG:
        return ct - tl.exp(out) * total
    else:
        return (ct - total) * out


@triton.jit
def backward_kernel(
    ct,
    out,
    dx,
    columns,
    ct_row,
    ct_column,
    out_row,
    out_column,
    LOG: tl.constexpr,
    WHOLE: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a row: the row's sum, then the gradient."""
    row = row_of_program()
    ct += row * ct_row
    out += row * out_row
    dx += row * columns
    at = tl.arange(0, BLOCK).to(tl.int64)
    if WHOLE:
        mine = load_row(ct, at, columns, ct_column, 0.0, ACCUMULATOR)
        result = load_row(out, at, columns, out_column, 0.0, ACCUMULATOR)
        total = tl.sum(_weight(mine, result, LOG), 0)
        tl.store(dx + at, _gradient(mine, result, total, LOG), mask=at < columns)
    else:
        total = tl.zeros((), ACCUMULATOR)
        for start in range(0, columns, BLOCK):
            mine = load_row(ct, start + at, columns, ct_column, 0.0, ACCUMULATOR)
            result = load_row(out, start + at, columns, out_column, 0.0, ACCUMULATOR)
            total += tl.sum(_weight(mine, result, LOG), 0)
        for start in range(0, columns, BLOCK):
            mine = load_row(ct, start + at, columns, ct_column, 0.0, ACCUMULATOR)
            result = load_row(out, start + at, columns, out_column, 0.0, ACCUMULATOR)
            tl.store(dx + start + at, _gradient(mine, result, total, LOG), mask=start + at < columns)


def softmax_forward(x):
    """Return exp(x) divided by its sum over the last axis.

    Args:
        x: (…, columns), floating, any strides.

    Raises:
        ValueError: x has no axes.

    >>> import numpy as np
    >>> softmax_forward(np.zeros((1, 4), np.float32))
    array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)
    """
    return _forward(x, log=False)


def softmax_backward(ct, out):
    """Return the gradient of x for a cotangent of out = softmax_forward(x); both (…, columns)."""
    return _backward(ct, out, log=False)


def log_softmax_forward(x):
    """Return the logarithm of the softmax over the last axis, also where that underflows.

    Args:
        x: (…, columns), floating, any strides.

    Raises:
        ValueError: x has no axes.

    >>> import numpy as np
    >>> log_softmax_forward(np.array([[0.0, -2000.0]]))
    array([[    0., -2000.]])
    """
    return _forward(x, log=True)


def log_softmax_backward(ct, out):
    """Return the gradient of x for a cotangent of out = log_softmax_forward(x); both (…, columns)."""
    return _backward(ct, out, log=True)


def _forward(x, log):
    flat = as_rows(x)
    rows, columns = flat.shape
    out = empty(x, (rows, columns), x.dtype)
    if columns:
        launch_fastest(
            forward_kernel,
            (rows,),
            *(flat, out, columns, *strides(flat)),
            configs=partial(row_configurations, columns),
            sizes=(rows, columns),
            LOG=log,
            ACCUMULATOR=accumulator(x.dtype),
        )
    return out.reshape(x.shape)


def _backward(ct, out, log):
    if ct.shape != out.shape:
        raise ValueError(f"ct: got shape {ct.shape}, expected {out.shape}")
    flat_ct, flat = as_rows(ct), as_rows(out)
    rows, columns = flat.shape
    dx = empty(out, (rows, columns), out.dtype)
    if columns:
        launch_fastest(
            backward_kernel,
            (rows,),
            *(flat_ct, flat, dx, columns, *strides(flat_ct), *strides(flat)),
            configs=partial(row_configurations, columns),
            sizes=(rows, columns),
            LOG=log,
            ACCUMULATOR=accumulator(out.dtype),
        )
    return dx.reshape(out.shape)

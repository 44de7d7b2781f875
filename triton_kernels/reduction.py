"""Sum, mean, max, logsumexp, argmax and running sum over the last axis, and their gradients.

Gradients: sum: ct; mean: ct / columns; max: ct shared equally by the entries that attain it; logsumexp:
ct exp(x - out), 0 in rows of nothing but -inf; running sum: the running sum of ct from the end.

What is decided here: NaN in a row makes its result NaN, and argmax gives the first NaN, else the first of equals. The
max of no elements is -inf.
"""

import numpy as np
import triton
import triton.language as tl

from .runtime import as_rows, empty, launch, strides
from .tiling import (
    MINUS_INFINITY,
    ROW_STEP,
    accumulator,
    accumulator_dtype,
    along,
    block_for,
    block_of_row,
    finite_shift,
    load_row,
    row_of_program,
    warps_for,
)

KINDS = ("sum", "mean", "max", "logsumexp")

_FAR = tl.constexpr(2**62)


@triton.jit
def reduce_kernel(
    x,
    out,
    columns,
    x_row,
    x_column,
    KIND: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a row, read once, block by block."""
    row = row_of_program()
    x += row * x_row
    at = tl.arange(0, BLOCK).to(tl.int64)
    total = tl.zeros((), ACCUMULATOR)
    largest = tl.full((), MINUS_INFINITY, ACCUMULATOR)
    if KIND == "sum" or KIND == "mean":
        for start in range(0, columns, BLOCK):
            total += tl.sum(load_row(x, start + at, columns, x_column, 0.0, ACCUMULATOR), 0)
        if KIND == "mean":
            total /= columns.to(ACCUMULATOR)
    elif KIND == "max":
        # tl.max passes over NaN: count it.
        for start in range(0, columns, BLOCK):
            value = load_row(x, start + at, columns, x_column, MINUS_INFINITY, ACCUMULATOR)
            largest = tl.maximum(largest, tl.max(value, 0))
            total += tl.sum((value != value).to(ACCUMULATOR), 0)
        total = tl.where(total > 0, float("nan"), largest)
    else:
        for start in range(0, columns, BLOCK):
            value = load_row(x, start + at, columns, x_column, MINUS_INFINITY, ACCUMULATOR)
            new_largest = tl.maximum(largest, tl.max(value, 0))
            # An infinite entry decides the result: exponentials then need no shift.
            shift = tl.where(new_largest == -MINUS_INFINITY, 0.0, finite_shift(new_largest))
            total = total * tl.exp(largest - shift) + tl.sum(tl.exp(value - shift), 0)
            largest = new_largest
        total = finite_shift(largest) + tl.log(total)
    tl.store(out + row, total)


@triton.jit
def argmax_kernel(x, out, columns, x_row, x_column, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr):
    """One program a row: the largest entry so far and where it stands, and the first NaN."""
    row = row_of_program()
    x += row * x_row
    at = tl.arange(0, BLOCK).to(tl.int64)
    largest = tl.full((), MINUS_INFINITY, ACCUMULATOR)
    place = tl.full((), 0, tl.int64)
    first_nan = tl.full((), _FAR, tl.int64)
    for start in range(0, columns, BLOCK):
        here = start + at
        value = load_row(x, here, columns, x_column, MINUS_INFINITY, ACCUMULATOR)
        best = tl.max(value, 0)
        found = tl.min(tl.where(value == best, here, _FAR), 0)
        place = tl.where(best > largest, found, place)
        largest = tl.maximum(largest, best)
        first_nan = tl.minimum(first_nan, tl.min(tl.where(value != value, here, _FAR), 0))
    tl.store(out + row, tl.where(first_nan < _FAR, first_nan, place))


@triton.jit
def tie_kernel(x, out, count, columns, x_row, x_column, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr):
    """One program a row: how many entries attain the row's maximum."""
    row = row_of_program()
    x += row * x_row
    at = tl.arange(0, BLOCK).to(tl.int64)
    largest = tl.load(out + row).to(ACCUMULATOR)
    total = tl.zeros((), ACCUMULATOR)
    for start in range(0, columns, BLOCK):
        value = load_row(x, start + at, columns, x_column, 0.0, ACCUMULATOR)
        total += tl.sum(((value == largest) & (start + at < columns)).to(ACCUMULATOR), 0)
    tl.store(count + row, total)


@triton.jit
def spread_kernel(
    ct,
    x,
    out,
    count,
    dx,
    columns,
    ct_row,
    x_row,
    x_column,
    KIND: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a block of a row: the row's cotangent times each entry's share."""
    row, at, mask = block_of_row(columns, BLOCK)
    mine = tl.load(ct + along(row, ct_row)).to(ACCUMULATOR)
    gradient = mine + tl.zeros((BLOCK,), ACCUMULATOR)
    if KIND == "mean":
        gradient /= columns.to(ACCUMULATOR)
    if KIND == "max" or KIND == "logsumexp":
        value = tl.load(x + row * x_row + along(at, x_column), mask=mask, other=0.0).to(ACCUMULATOR)
        result = tl.load(out + row).to(ACCUMULATOR)
        if KIND == "max":
            share = tl.where(value == result, 1 / tl.load(count + row), 0.0)
            gradient *= tl.where(result != result, result, share)
        else:
            gradient *= tl.exp(value - finite_shift(result))
    tl.store(dx + row * columns + at, gradient, mask=mask)


@triton.jit
def cumsum_kernel(
    x, out, columns, x_row, x_column, REVERSE: tl.constexpr, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr
):
    """One program a row: block after block, the sum so far carried along; from the end if reversed."""
    row = row_of_program()
    x += row * x_row
    out += row * columns
    at = tl.arange(0, BLOCK).to(tl.int64)
    carried = tl.zeros((), ACCUMULATOR)
    for start in range(0, columns, BLOCK):
        here = start + at
        if REVERSE:
            here = columns - 1 - here
        mask = start + at < columns
        value = tl.load(x + along(here, x_column), mask=mask, other=0.0).to(ACCUMULATOR)
        tl.store(out + here, tl.cumsum(value, 0) + carried, mask=mask)
        carried += tl.sum(value, 0)


def reduce_forward(x, kind):
    """Reduce the last axis.

    Args:
        x: (…, columns), floating, any strides.
        kind: "sum", "mean", "max" or "logsumexp".

    Returns:
        An array of shape x.shape[:-1]: float64 for float64 and else float32, except "max", which has x's dtype.

    Raises:
        ValueError: an unknown kind, or x has no axes.

    >>> import numpy as np
    >>> reduce_forward(np.array([[1.0, 3.0]]), "mean")
    array([2.])
    """
    _check(kind)
    flat = as_rows(x)
    rows, columns = flat.shape
    out = empty(x, (rows,), x.dtype if kind == "max" else accumulator_dtype(x.dtype))
    launch(reduce_kernel, (rows,), *(flat, out, columns, *strides(flat)), KIND=kind, **_options(flat))
    return out.reshape(x.shape[:-1])


def reduce_backward(ct, x, out, kind):
    """Return the gradient of x for a cotangent of out = reduce_forward(x, kind).

    Args:
        ct: x.shape[:-1], any strides.
        x, kind: as given to the forward pass. out: what it returned.

    Raises:
        ValueError: an unknown kind, or ct of another shape.
    """
    _check(kind)
    if ct.shape != x.shape[:-1]:
        raise ValueError(f"ct: got shape {ct.shape}, expected {x.shape[:-1]}")
    flat, flat_ct = as_rows(x), ct.reshape(-1)
    rows, columns = flat.shape
    count = None
    if kind == "max":
        count = empty(x, (rows,), accumulator_dtype(x.dtype))
        launch(tie_kernel, (rows,), *(flat, out.reshape(-1), count, columns, *strides(flat)), **_options(flat))
    dx = empty(x, (rows, columns), x.dtype)
    options = _options(flat)
    launch(
        spread_kernel,
        (rows * triton.cdiv(columns, options["BLOCK"]),),
        *(flat_ct, flat, out.reshape(-1), count, dx, columns, *strides(flat_ct), *strides(flat)),
        KIND=kind,
        **options,
    )
    return dx.reshape(x.shape)


def argmax(x):
    """Return the position of the largest entry of the last axis, as int64: the first NaN, else the first of equals.

    >>> import numpy as np
    >>> argmax(np.array([[1.0, 3.0, 3.0]]))
    array([1])
    """
    flat = as_rows(x)
    rows, columns = flat.shape
    out = empty(x, (rows,), np.dtype(np.int64))
    launch(argmax_kernel, (rows,), *(flat, out, columns, *strides(flat)), **_options(flat))
    return out.reshape(x.shape[:-1])


def cumsum_forward(x, *, reverse=False):
    """Return the running sum along the last axis, from its end if reversed; x of any strides.

    >>> import numpy as np
    >>> cumsum_forward(np.array([1.0, 2.0, 3.0]))
    array([1., 3., 6.])
    """
    flat = as_rows(x)
    rows, columns = flat.shape
    out = empty(x, (rows, columns), x.dtype)
    launch(cumsum_kernel, (rows,), *(flat, out, columns, *strides(flat)), REVERSE=reverse, **_options(flat))
    return out.reshape(x.shape)


def cumsum_backward(ct, *, reverse=False):
    """Return the gradient of x for a cotangent of `cumsum_forward(x, reverse=reverse)`."""
    return cumsum_forward(ct, reverse=not reverse)


def _options(flat):
    block = block_for(flat.shape[1], ROW_STEP)
    return {"ACCUMULATOR": accumulator(flat.dtype), "BLOCK": block, "num_warps": warps_for(block)}


def _check(kind):
    if kind not in KINDS:
        raise ValueError(f"kind: got {kind!r}, expected one of {KINDS}")

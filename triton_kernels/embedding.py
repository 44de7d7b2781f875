"""Rows of a table by index, and the gradient of the table.

The gradient adds up all rows with one index. Instead of atomics, whose order changes from run to run and which lose
small addends in 16 bits, indices are sorted and one program adds the occurrences of an index in float32.
"""

import numpy as np
import triton
import triton.language as tl

from .runtime import as_rows, empty, home_of, launch, strides
from .tiling import accumulator, along, block_for, block_of_row, warps_for

_LARGEST_BLOCK = 1024


@triton.jit
def gather_kernel(table, index, out, entries, columns, table_row, table_column, index_stride, BLOCK: tl.constexpr):
    """One program a block of a result row."""
    row, at, mask = block_of_row(columns, BLOCK)
    entry = tl.load(index + along(row, index_stride)).to(tl.int64)
    exists = mask & (entry >= 0) & (entry < entries)
    value = tl.load(table + entry * table_row + along(at, table_column), mask=exists, other=float("nan"))
    tl.store(out + row * columns + at, value, mask=mask)


@triton.jit
def add_rows_kernel(
    ct,
    order,
    ends,
    out,
    columns,
    ct_row,
    ct_column,
    ACCUMULATOR: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a block of a table row: the sum of the cotangent's rows that were taken from it, 0 without any."""
    entry, at, mask = block_of_row(columns, BLOCK)
    first = tl.load(ends + entry)
    last = tl.load(ends + entry + 1)
    total = tl.zeros((STEP, BLOCK), ACCUMULATOR)
    for start in range(first, last, STEP):
        position = start + tl.arange(0, STEP)
        row = tl.load(order + position, mask=position < last, other=0).to(tl.int64)
        taken = (position < last)[:, None] & mask[None, :]
        value = tl.load(ct + row[:, None] * ct_row + along(at, ct_column)[None, :], mask=taken, other=0.0)
        total += value.to(ACCUMULATOR)
    tl.store(out + entry * columns + at, tl.sum(total, 0), mask=mask)


def embedding_forward(table, index):
    """Return the rows of a table at an index.

    Args:
        table: (entries, columns), floating, any strides.
        index: any shape with at least one axis, integers in [0, entries); others give rows of NaN.

    Returns:
        An array of shape index.shape + (columns,).

    Raises:
        TypeError: index is not integers.
        ValueError: table is not (entries, columns).

    >>> import numpy as np
    >>> embedding_forward(np.arange(6.0).reshape(3, 2), np.array([2, 0]))
    array([[4., 5.],
           [0., 1.]])
    """
    _check(table.shape, index)
    entries, columns = table.shape
    flat = index.reshape(-1)
    out = empty(table, (flat.size, columns), table.dtype)
    block = block_for(columns, _LARGEST_BLOCK)
    launch(
        gather_kernel,
        (flat.size * triton.cdiv(columns, block),),
        *(table, flat, out, entries, columns, *strides(table), *strides(flat)),
        BLOCK=block,
        num_warps=warps_for(block),
    )
    return out.reshape(*index.shape, columns)


def embedding_backward(ct, index, entries):
    """Return the gradient of the table for a cotangent of `embedding_forward(table, index)`.

    Args:
        ct: index.shape + (columns,), any strides.
        index: as given to the forward pass; what lies outside [0, entries) adds to no row.
        entries: rows of the table.

    >>> import numpy as np
    >>> embedding_backward(np.ones((3, 1)), np.array([1, 1, 0]), 2)
    array([[1.],
           [2.]])
    """
    _check((entries, ct.shape[-1]), index)
    if ct.shape[:-1] != index.shape:
        raise ValueError(f"ct: got shape {ct.shape}, expected {index.shape} and the columns of the table")
    rows = as_rows(ct)
    columns = rows.shape[1]
    flat = index.reshape(-1)
    order, ends = home_of(index).group(flat, entries)
    out = empty(ct, (entries, columns), ct.dtype)
    block = block_for(columns, _LARGEST_BLOCK // 4)
    launch(
        add_rows_kernel,
        (entries * triton.cdiv(columns, block),),
        *(rows, order, ends, out, columns, *strides(rows)),
        ACCUMULATOR=accumulator(ct.dtype),
        STEP=4,
        BLOCK=block,
        num_warps=warps_for(block),
    )
    return out


def _check(shape, index):
    if len(shape) != 2:
        raise ValueError(f"table: got shape {shape}, expected (entries, columns)")
    if not np.issubdtype(index.dtype, np.integer):
        raise TypeError(f"index: got {index.dtype}, expected integers")

"""Rows of a table by index, rows added to a table by index, along any axis: each is the other's gradient.

Adding up all rows with one index: instead of atomics, whose order changes from run to run and which lose small addends
in 16 bits, indices are sorted and one program adds the occurrences of an index in float32.
"""

import math

import numpy as np
import triton
import triton.language as tl

from .layout import copy_forward
from .runtime import as_rows, empty, home_of, launch, strides
from .tiling import accumulator, along, block_for, block_of_row

# Elements that one program moves: rows of a table, several of them where they are short.
_TILE = 1024
# Rows with one index that are added up at a time.
_STEP = 4


@triton.jit
def gather_kernel(
    table,
    index,
    out,
    entries,
    rows,
    columns,
    table_row,
    table_column,
    index_stride,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a block of columns of some result rows."""
    row_block, at, exists = block_of_row(columns, BLOCK)
    row = row_block * ROWS + tl.arange(0, ROWS)
    entry = tl.load(index + along(row, index_stride), mask=row < rows, other=0).to(tl.int64)[:, None]
    mask = (row < rows)[:, None] & exists[None, :]
    inside = mask & (entry >= 0) & (entry < entries)
    value = tl.load(table + entry * table_row + along(at, table_column)[None, :], mask=inside, other=float("nan"))
    tl.store(out + row[:, None] * columns + at[None, :], value, mask=mask)


@triton.jit
def add_rows_kernel(
    ct,
    order,
    ends,
    base,
    out,
    entries,
    columns,
    ct_row,
    ct_column,
    base_row,
    base_column,
    ACCUMULATOR: tl.constexpr,
    ENTRIES: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a block of columns of some table rows: their rows of `base`, or 0, plus the rows with their index."""
    entry_block, at, exists = block_of_row(columns, BLOCK)
    entry = entry_block * ENTRIES + tl.arange(0, ENTRIES)
    first = tl.load(ends + entry, mask=entry < entries, other=0)
    last = tl.load(ends + entry + 1, mask=entry < entries, other=0)
    total = tl.zeros((ENTRIES, STEP, BLOCK), ACCUMULATOR)
    for start in range(0, tl.max(last - first, 0), STEP):
        position = (first + start)[:, None] + tl.arange(0, STEP)[None, :]
        taken = position < last[:, None]
        row = tl.load(order + position, mask=taken, other=0).to(tl.int64)
        here = ct + row[:, :, None] * ct_row + along(at, ct_column)[None, None, :]
        value = tl.load(here, mask=taken[:, :, None] & exists[None, None, :], other=0.0)
        total += value.to(ACCUMULATOR)
    result = tl.sum(total, 1)
    mask = (entry < entries)[:, None] & exists[None, :]
    if base is not None:
        here = base + entry[:, None] * base_row + along(at, base_column)[None, :]
        result += tl.load(here, mask=mask, other=0.0).to(ACCUMULATOR)
    tl.store(out + entry[:, None] * columns + at[None, :], result, mask=mask)


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
    tile = _tile(flat.size, columns, _TILE)
    launch(
        gather_kernel,
        (triton.cdiv(flat.size, tile[0]) * triton.cdiv(columns, tile[1]),),
        *(table, flat, out, entries, flat.size, columns, *strides(table), *strides(flat)),
        ROWS=tile[0],
        BLOCK=tile[1],
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
    if ct.shape[:-1] != index.shape:
        raise ValueError(f"ct: got shape {ct.shape}, expected {index.shape} and the columns of the table")
    _check((entries, ct.shape[-1]), index)
    return _add_rows(as_rows(ct), index, None, entries)


def _add_rows(rows, index, base, entries):
    """Return a table with the rows of each index added up, and added to a base (entries, columns) if there is one."""
    columns = rows.shape[1]
    order, ends = home_of(index).group(index.reshape(-1), entries)
    out = empty(rows, (entries, columns), rows.dtype)
    tile = _tile(entries, columns, _TILE // _STEP)
    launch(
        add_rows_kernel,
        (triton.cdiv(entries, tile[0]) * triton.cdiv(columns, tile[1]),),
        *(rows, order, ends, base, out, entries, columns, *strides(rows)),
        *((None, None) if base is None else strides(base)),
        ACCUMULATOR=accumulator(rows.dtype),
        ENTRIES=tile[0],
        STEP=_STEP,
        BLOCK=tile[1],
    )
    return out


def _tile(rows, columns, elements):
    """Return how many rows and columns a program takes."""
    block = block_for(columns, elements)
    return block_for(rows, elements // block), block


def gather_forward(x, index, *, axis=0):
    """Return the entries of x at an index along an axis: x.take(index, axis), with NaN for what is no entry.

    Args:
        x: floating, at least one axis, any strides.
        index: any shape, integers in [0, entries).
        axis: of x; the axes of index take its place.

    Raises:
        TypeError: index is not integers.
        ValueError: there is no such axis.

    >>> import numpy as np
    >>> gather_forward(np.arange(6.0).reshape(2, 3), np.array([2, 0]), axis=1)
    array([[2., 0.],
           [5., 3.]])
    """
    axis = _axis(x, axis)
    entries, others = _entries_first(x, axis, 1)
    taken = embedding_forward(entries, index.reshape(-1))
    return _entries_back(taken, index.shape, others, axis)


def gather_backward(ct, x, index, *, axis=0):
    """Return the gradient of x for a cotangent of `gather_forward(x, index, axis=axis)`.

    Args:
        ct: of the result's shape, any strides.
        x, index, axis: as given to the forward pass; x for its shape alone. What is no entry adds to none.
    """
    axis = _axis(x, axis)
    _check_updates(ct, x, index, axis, "ct")
    rows, others = _entries_first(ct, axis, index.ndim)
    size = x.shape[axis]
    return _entries_back(_add_rows(rows, index, None, size), (size,), others, axis)


def scatter_add_forward(x, index, updates, *, axis=0):
    """Return x with updates added to its entries at an index along an axis; repeated indices add up.

    Args:
        x: floating, at least one axis, any strides.
        index: any shape, integers in [0, entries); updates at others are left out.
        updates: x's shape with index's axes in the place of `axis`, of x's type, any strides.
        axis: of x.

    Raises:
        TypeError: index is not integers, or x and updates differ in type.
        ValueError: shapes do not fit, or there is no such axis.

    >>> import numpy as np
    >>> scatter_add_forward(np.zeros(3), np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]))
    array([2., 0., 4.])
    """
    axis = _axis(x, axis)
    _check_updates(updates, x, index, axis, "updates")
    if updates.dtype != x.dtype:
        raise TypeError(f"x, updates: got {x.dtype} and {updates.dtype}, expected one type")
    base, others = _entries_first(x, axis, 1)
    rows, _ = _entries_first(updates, axis, index.ndim)
    size = x.shape[axis]
    return _entries_back(_add_rows(rows, index, base, size), (size,), others, axis)


def scatter_add_backward(ct, index, *, axis=0):
    """Return (dx, dupdates) for a cotangent of `scatter_add_forward(x, index, updates, axis=axis)`.

    dupdates has NaN for what is no entry.
    """
    return copy_forward(ct), gather_forward(ct, index, axis=axis)


def _axis(x, axis):
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis: got {axis}, expected one of an array of shape {x.shape}")
    return axis % x.ndim


def _entries_first(x, axis, count):
    """Return x as (entries, others) for `count` axes of entries from `axis` on, and the shape of the other axes."""
    entries = list(range(axis, axis + count))
    others = [i for i in range(x.ndim) if i not in entries]
    shape = tuple(x.shape[i] for i in others)
    return x.transpose(entries + others).reshape(math.prod(x.shape[axis : axis + count]), math.prod(shape)), shape


def _entries_back(rows, shape, others, axis):
    """Return (entries, others) with its axes unfolded, the entries' from `axis` on."""
    count = len(shape)
    order = [*range(count, count + axis), *range(count), *range(count + axis, count + len(others))]
    return rows.reshape(*shape, *others).transpose(order)


def _check_updates(updates, x, index, axis, name):
    expected = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    if updates.shape != expected:
        raise ValueError(f"{name}: got shape {updates.shape}, expected {expected}")


def _check(shape, index):
    if len(shape) != 2:
        raise ValueError(f"table: got shape {shape}, expected (entries, columns)")
    if not np.issubdtype(index.dtype, np.integer):
        raise TypeError(f"index: got {index.dtype}, expected integers")

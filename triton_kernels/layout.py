"""Copies of arrays: packed from any strides, and with axes in another order.

A tile of a copy is square in the axis along which the source lies packed and the axis along which the result does, so
that both are moved in whole lines; the compiler turns the tile around in between.
"""

import numpy as np
import triton
import triton.language as tl

from .runtime import empty, launch
from .tiling import along, row_of_program

_TILE = 64
_LONGEST_TILE = 1024


@triton.jit
def copy_kernel(
    x,
    out,
    rows,
    columns,
    outer_sizes,
    x_outer,
    out_outer,
    x_row,
    x_column,
    out_row,
    OUTER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """One program a tile of rows and columns, at one place along the outer axes."""
    row_blocks = tl.cdiv(rows, ROWS)
    column_blocks = tl.cdiv(columns, COLUMNS)
    program = row_of_program()
    column = program % column_blocks * COLUMNS + tl.arange(0, COLUMNS)
    program //= column_blocks
    row = program % row_blocks * ROWS + tl.arange(0, ROWS)
    place = program // row_blocks
    for axis in tl.static_range(OUTER):
        at = place % outer_sizes[axis]
        place //= outer_sizes[axis]
        x += at * x_outer[axis]
        out += at * out_outer[axis]
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    value = tl.load(x + along(row, x_row)[:, None] + along(column, x_column)[None, :], mask=mask, other=0)
    tl.store(out + row[:, None] * out_row + column[None, :], value, mask=mask)


def copy_forward(x):
    """Return a packed copy of an array of any strides and type; bits are copied.

    >>> import numpy as np
    >>> copy_forward(np.arange(4)[::-2])
    array([3, 1])
    """
    if x.ndim == 0:
        return copy_forward(x.reshape(1)).reshape(())
    out = empty(x, x.shape, x.dtype)
    inner = x.ndim - 1
    steps, out_steps = (tuple(step // x.dtype.itemsize for step in array.strides) for array in (x, out))
    # Of the source: its packed axis, or else the axis before the last.
    others = sorted(range(inner), key=lambda axis: (x.shape[axis] == 1, abs(steps[axis]), -axis))
    line = others[0] if others else None
    rows, x_row, out_row = (1, 0, 0) if line is None else (x.shape[line], steps[line], out_steps[line])
    outer = [axis for axis in reversed(range(inner)) if axis != line and x.shape[axis] != 1]
    sizes, x_outer, out_outer = (tuple(values[axis] for axis in outer) for values in (x.shape, steps, out_steps))
    tile = _tile(rows, x.shape[inner], turned=line is not None and abs(steps[line]) < abs(steps[inner]))
    bits = np.dtype(f"i{x.dtype.itemsize}")
    programs = triton.cdiv(rows, tile["ROWS"]) * triton.cdiv(x.shape[inner], tile["COLUMNS"])
    for size in sizes:
        programs *= size
    launch(
        copy_kernel,
        (programs,),
        *(x.view(bits), out.view(bits), rows, x.shape[inner], sizes, x_outer, out_outer),
        *(_unless_packed(x_row), _unless_packed(steps[inner]), out_row),
        OUTER=len(outer),
        **tile,
    )
    return out


def packed(x):
    """Return an array as it is where it lies packed, else a packed copy; None stays None."""
    return x if x is None or x.flags.c_contiguous else copy_forward(x)


def copy_backward(ct):
    """Return the gradient of x for a cotangent of `copy_forward(x)`: a copy."""
    return copy_forward(ct)


def transpose_forward(x, *, axes=None):
    """Return a packed copy of an array with its axes in another order, reversed if None.

    Raises:
        ValueError: axes do not name each axis once.

    >>> import numpy as np
    >>> transpose_forward(np.arange(6).reshape(2, 3))
    array([[0, 3],
           [1, 4],
           [2, 5]])
    """
    return copy_forward(x.transpose(_order(x, axes)))


def transpose_backward(ct, *, axes=None):
    """Return the gradient of x for a cotangent of `transpose_forward(x, axes=axes)`."""
    order = _order(ct, axes)
    return copy_forward(ct.transpose(sorted(range(ct.ndim), key=order.__getitem__)))


def _order(x, axes):
    order = list(reversed(range(x.ndim))) if axes is None else [axis + x.ndim if axis < 0 else axis for axis in axes]
    if sorted(order) != list(range(x.ndim)):
        raise ValueError(f"axes: got {axes}, expected each axis of an array of shape {x.shape} once")
    return order


def _unless_packed(step):
    return None if step == 1 else step


def _tile(rows, columns, turned):
    """Return the tile of a copy: a long one, or a square one where lines of source and result cross."""
    if turned:
        return {"ROWS": _TILE, "COLUMNS": _TILE, "num_warps": 8}
    columns = min(_LONGEST_TILE, triton.next_power_of_2(max(1, columns)))
    return {"ROWS": min(_LONGEST_TILE // columns, triton.next_power_of_2(max(1, rows))), "COLUMNS": columns}

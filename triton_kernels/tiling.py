"""How kernels cut their work: block sizes, warps, accumulator types, and the pieces kernels share on the device."""

import math

import numpy as np
import triton
import triton.language as tl

MINUS_INFINITY = tl.constexpr(-float("inf"))


def block_for(size, largest):
    """Return the power of two that covers size elements, at most `largest`."""
    return min(triton.next_power_of_2(max(1, size)), largest)


def warps_for(block):
    """Return the warps of a program that works on rows of `block` elements: 256 to 512 elements a warp, 16 at most."""
    return max(1, min(16, block // 256))


def accumulator(dtype):
    """Return Triton's type for arithmetic on a dtype: float64 stays, everything else is done in float32."""
    return tl.float64 if dtype == np.float64 else tl.float32


def accumulator_dtype(dtype):
    """Return the NumPy dtype of `accumulator(dtype)`."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


@triton.jit
def row_of_program():
    """Return the program's row as int64, so that offsets into large arrays do not wrap."""
    return tl.program_id(0).to(tl.int64)


@triton.jit
def block_of_row(columns, BLOCK: tl.constexpr):
    """Return a program's row, its block of that row's columns, and which of them exist; rows times blocks programs."""
    blocks = tl.cdiv(columns, BLOCK)
    program = row_of_program()
    at = program % blocks * BLOCK + tl.arange(0, BLOCK)
    return program // blocks, at, at < columns


@triton.jit
def along(index, stride):
    """Return the offset of an index along an array's last axis; a stride of None means 1."""
    if stride is None:
        return index
    else:
        return index * stride


@triton.jit
def finite_shift(largest):
    """Return what to subtract before exponentials: the largest entry, or 0 where every entry is -inf."""
    return tl.where(largest == MINUS_INFINITY, 0.0, largest)


@triton.jit
def fill_kernel(out, size, value, BLOCK: tl.constexpr):
    """Write one value to all elements of a packed array; one program a block."""
    at = row_of_program() * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, value, mask=at < size)


# Longest row a program keeps whole in registers; beyond it (65536 elements spill) rows are read block by block.
LONGEST_ROW = 16384
# Block of rows that are read in several steps.
ROW_STEP = 4096


def row_block(columns):
    """Return the block that rows of `columns` elements are cut into: whole rows up to `LONGEST_ROW`, else steps."""
    return block_for(columns, LONGEST_ROW) if columns <= LONGEST_ROW else ROW_STEP


@triton.jit
def load_row(pointer, at, columns, stride, other, ACCUMULATOR: tl.constexpr):
    """Return elements of a row in the accumulator's type, `other` beyond its end."""
    return tl.load(pointer + along(at, stride), mask=at < columns, other=other).to(ACCUMULATOR)


def block_options(block, dtype):
    """Return what kernels that work on blocks of `block` elements of a dtype are compiled for."""
    return {"ACCUMULATOR": accumulator(dtype), "BLOCK": block, "num_warps": warps_for(block)}


def row_configurations(columns):
    """Return the ways to work on rows, the rule first: whole rows if WHOLE, else BLOCK by BLOCK, by so many warps."""
    rule = row_block(columns)
    blocks = [rule] if columns <= rule else [rule, rule // 2, rule * 2]
    return [
        {"WHOLE": columns <= rule, "BLOCK": block, "num_warps": warps}
        for block in blocks
        for warps in warps_around(warps_for(block))
    ]


def warps_around(warps):
    """Return numbers of warps to try, the given one first."""
    return [count for count in (warps, warps // 2, warps * 2) if 1 <= count <= 16]


def axes_last(x, axes):
    """Return a view or copy of x with the given axes made one, the last, and the shape of the other axes.

    Args:
        x: an array.
        axes: an axis, a tuple of axes, or None for all; negative ones count from the end.

    Raises:
        ValueError: an axis is out of range or repeated.
    """
    others, last = _split_axes(x.shape, axes)
    shape = tuple(x.shape[axis] for axis in others)
    return x.transpose(others + last).reshape(*shape, math.prod(x.shape[axis] for axis in last)), shape


def axes_back(x, shape, axes):
    """Return packed x with the axes that `axes_last` made one where they were in an array of `shape`; a view."""
    others, last = _split_axes(shape, axes)
    order = others + last
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return x.reshape([shape[axis] for axis in order]).transpose(inverse)


def _split_axes(shape, axes):
    axes = range(len(shape)) if axes is None else (axes,) if isinstance(axes, int) else axes
    last = [axis + len(shape) if axis < 0 else axis for axis in axes]
    if len(set(last)) != len(last) or any(not 0 <= axis < len(shape) for axis in last):
        raise ValueError(f"axis: got {tuple(axes)}, expected different axes of an array of shape {shape}")
    return [axis for axis in range(len(shape)) if axis not in last], last

"""How kernels cut their work: block sizes, warps, accumulator types, and the pieces kernels share on the device."""

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


@triton.jit
def column_sum_kernel(partial, out, rows, columns, STEP: tl.constexpr, BLOCK: tl.constexpr):
    """Sum a packed (rows, columns) array over its rows; one program a block of columns."""
    at = row_of_program() * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((STEP, BLOCK), partial.dtype.element_ty)
    for start in range(0, rows, STEP):
        row = start + tl.arange(0, STEP).to(tl.int64)
        mask = (row[:, None] < rows) & (at[None, :] < columns)
        total += tl.load(partial + row[:, None] * columns + at[None, :], mask=mask, other=0.0)
    tl.store(out + at, tl.sum(total, 0), mask=at < columns)

"""Dropout from counter-based random bits: the mask of an element depends on the seed and the element's number alone.

So no mask is stored, the gradient is the same kernel applied to the cotangent, and the block size changes nothing.
The bits are Philox 4x32-10 (Salmon et al., 2011) as `tl.rand` gives them.
"""

import numpy as np
import triton
import triton.language as tl

from .runtime import as_rows, empty, home_of, launch, strides
from .tiling import along, block_for, block_of_row, block_options

_LARGEST_BLOCK = 2048


@triton.jit
def kept(seed, number, RATE: tl.constexpr):
    """Return which of the numbered elements stay; `seed` points to an integer."""
    return tl.rand(tl.load(seed), number) >= RATE


@triton.jit
def dropout_kernel(
    x,
    out,
    columns,
    x_row,
    x_column,
    seed,
    offset,
    RATE: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a block of a row: 0, or the element scaled by 1 / (1 - rate)."""
    row, at, mask = block_of_row(columns, BLOCK)
    value = tl.load(x + row * x_row + along(at, x_column), mask=mask, other=0.0).to(ACCUMULATOR)
    stays = kept(seed, offset + row * columns + at, RATE)
    tl.store(out + row * columns + at, tl.where(stays, value * (1 / (1 - RATE)), 0.0), mask=mask)


def seed_array(seed, like):
    """Return a seed as an array of one integer beside `like`, which kernels read where it lies.

    Raises:
        TypeError: the seed is neither an integer nor one integer in an array.
    """
    if isinstance(seed, (int, np.integer)):
        return home_of(like).from_numpy(np.array([seed], np.int64))
    if getattr(seed, "size", 0) != 1 or seed.dtype.kind not in "iu":
        raise TypeError(f"seed: got {seed!r}, expected an integer, or an array of one")
    home = home_of(like)
    return seed if home_of(seed) is home else home.from_numpy(home_of(seed).to_numpy(seed))


def dropout_forward(x, seed, *, rate=0.5, offset=0):
    """Set elements to 0 with probability `rate`, and scale the others so that the mean stays.

    Args:
        x: any shape with at least one axis, floating, any strides.
        seed: an integer of up to 63 bits, or an array of one.
        rate: in [0, 1).
        offset: number of the first element, for arrays that continue one another.

    Raises:
        ValueError: rate is out of range, or x has no axes.
        TypeError: the seed is no integer.

    >>> import numpy as np
    >>> sorted(set(dropout_forward(np.ones(100), 1).tolist()))
    [0.0, 2.0]
    """
    if not 0 <= rate < 1:
        raise ValueError(f"rate: got {rate}, expected a number in [0, 1)")
    flat = as_rows(x)
    rows, columns = flat.shape
    out = empty(x, (rows, columns), x.dtype)
    block = block_for(columns, _LARGEST_BLOCK)
    launch(
        dropout_kernel,
        (rows * triton.cdiv(columns, block),),
        *(flat, out, columns, *strides(flat), seed_array(seed, x), offset),
        RATE=float(rate),
        **block_options(block, x.dtype),
    )
    return out.reshape(x.shape)


def dropout_backward(ct, seed, *, rate=0.5, offset=0):
    """Return the gradient of x for a cotangent of `dropout_forward(x, seed, rate=rate, offset=offset)`."""
    return dropout_forward(ct, seed, rate=rate, offset=offset)

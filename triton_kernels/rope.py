"""Rotary position embedding (Su et al., 2021): pairs of a head's elements turn by an angle that grows with position.

The first half of a head holds the first elements of the pairs, the second half the second ones. The gradient is the
rotation by the opposite angle.
"""

import triton
import triton.language as tl

from .runtime import empty, launch, strides
from .tiling import accumulator, along, block_for, block_of_row

_LARGEST_BLOCK = 256


@triton.jit
def rotate_kernel(
    x,
    cos,
    sin,
    out,
    length,
    heads,
    half,
    x_batch,
    x_position,
    x_head,
    x_element,
    cos_row,
    cos_column,
    sin_row,
    sin_column,
    BACK: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a position of a batch and a block of pairs: all heads turn by the same angles."""
    place, pair, exists = block_of_row(half, BLOCK)
    batch = place // length
    position = place % length
    c = tl.load(cos + position * cos_row + along(pair, cos_column), mask=exists, other=0.0).to(ACCUMULATOR)
    s = tl.load(sin + position * sin_row + along(pair, sin_column), mask=exists, other=0.0).to(ACCUMULATOR)
    if BACK:
        s = -s
    x += batch * x_batch + position * x_position
    out += place * heads * half * 2
    for start in range(0, heads, HEADS):
        head = (start + tl.arange(0, HEADS)).to(tl.int64)[:, None]
        mask = (head < heads) & exists[None, :]
        first = tl.load(x + head * x_head + along(pair, x_element)[None, :], mask=mask, other=0.0).to(ACCUMULATOR)
        second = tl.load(x + head * x_head + along(pair + half, x_element)[None, :], mask=mask, other=0.0)
        second = second.to(ACCUMULATOR)
        here = out + head * half * 2 + pair[None, :]
        tl.store(here, first * c[None, :] - second * s[None, :], mask=mask)
        tl.store(here + half, second * c[None, :] + first * s[None, :], mask=mask)


def rope_forward(x, cos, sin):
    """Turn the pairs of every head by the angles of its position.

    Args:
        x: (batch, length, heads, 2 * half), floating, any strides.
        cos, sin: (length, half), cosine and sine of the angles.

    Raises:
        ValueError: the shapes do not fit.

    >>> import numpy as np
    >>> rope_forward(np.array([[[[1.0, 0.0]]]]), np.zeros((1, 1)), np.ones((1, 1)))
    array([[[[0., 1.]]]])
    """
    return _rotate(x, cos, sin, back=False)


def rope_backward(ct, cos, sin):
    """Return the gradient of x for a cotangent of `rope_forward(x, cos, sin)`."""
    return _rotate(ct, cos, sin, back=True)


def _rotate(x, cos, sin, back):
    if x.ndim != 4 or x.shape[-1] % 2:
        raise ValueError(f"x: got shape {x.shape}, expected (batch, length, heads, an even number)")
    batch, length, heads, size = x.shape
    for name, table in (("cos", cos), ("sin", sin)):
        if table.shape != (length, size // 2):
            raise ValueError(f"{name}: got shape {table.shape}, expected {(length, size // 2)}")
    out = empty(x, x.shape, x.dtype)
    half = size // 2
    block = block_for(half, _LARGEST_BLOCK)
    launch(
        rotate_kernel,
        (batch * length * triton.cdiv(half, block),),
        *(x, cos, sin, out, length, heads, half, *strides(x), *strides(cos), *strides(sin)),
        BACK=back,
        ACCUMULATOR=accumulator(x.dtype),
        HEADS=block_for(heads, 4),
        BLOCK=block,
    )
    return out

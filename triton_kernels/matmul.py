"""Matrix products of any strides, batched, with bias and activation, and their gradients.

Products are added up in float32 (float64 for float64). float32 operands are multiplied as float32 unless
`precision="tf32"` is asked for. The gradients are products with transposed operands, which are views.

What follows a product is done before it is stored: a bias and another array are added, and an *epilogue* is applied,
an elementwise function of the sum and of up to two arrays beside it. The epilogue of `linear_forward` is an activation;
what it was applied to is stored as well, for the gradient.
"""

import numpy as np
import triton
import triton.language as tl

from .activation import ACTIVATIONS, activation_backward
from .reduction import column_sums
from .runtime import as_rows, empty, strides
from .tiling import accumulator, along, row_of_program
from .tune import launch_fastest

PRECISIONS = ("ieee", "tf32", "tf32x3")

# How many blocks of rows are worked on together, so that blocks of y stay in the cache.
_GROUP = 8


@triton.jit
def _block_of(program, rows, columns, M: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr):
    """Return (batch, row block, column block) of a program; programs go down GROUP row blocks, then right."""
    row_blocks = tl.cdiv(rows, M)
    column_blocks = tl.cdiv(columns, N)
    batch = program // (row_blocks * column_blocks)
    inside = program % (row_blocks * column_blocks)
    group = inside // (GROUP * column_blocks)
    height = tl.minimum(row_blocks - group * GROUP, GROUP)
    place = inside % (GROUP * column_blocks)
    return batch, group * GROUP + place % height, place // height


@triton.jit
def _one_width(a, b):
    """Return two blocks, the narrower in the type of the wider: products take one type, or two of eight bits."""
    if a.dtype.primitive_bitwidth < b.dtype.primitive_bitwidth:
        a = a.to(b.dtype)
    if b.dtype.primitive_bitwidth < a.dtype.primitive_bitwidth:
        b = b.to(a.dtype)
    return a, b


@triton.jit
def matmul_kernel(
    x,
    y,
    bias,
    add,
    first,
    second,
    before,
    out,
    other,
    rows,
    columns,
    inner,
    x_batch,
    x_row,
    x_column,
    y_batch,
    y_row,
    y_column,
    bias_stride,
    EPILOGUE: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One program a block of the result.

    `add`, `first`, `second` and the outputs are packed, as the result. The epilogue takes the sum and what there is of
    `first` and `second`, and returns two blocks: for `out`, and for `other` where there is one.
    """
    batch, row_block, column_block = _block_of(row_of_program(), rows, columns, M, N, GROUP)
    row = row_block * M + tl.arange(0, M)
    column = column_block * N + tl.arange(0, N)
    row_mask = (row < rows)[:, None]
    column_mask = (column < columns)[None, :]
    x += batch * x_batch
    y += batch * y_batch
    total = tl.zeros((M, N), ACCUMULATOR)
    for start in range(0, inner, K):
        k = (start + tl.arange(0, K)).to(tl.int64)
        a = tl.load(
            x + row[:, None] * x_row + along(k, x_column)[None, :], mask=row_mask & (k < inner)[None, :], other=0.0
        )
        b = tl.load(
            y + k[:, None] * y_row + along(column, y_column)[None, :],
            mask=(k < inner)[:, None] & column_mask,
            other=0.0,
        )
        a, b = _one_width(a, b)
        total = tl.dot(a, b, total, input_precision=PRECISION, out_dtype=ACCUMULATOR)
    if bias is not None:
        total += tl.load(bias + along(column, bias_stride), mask=column < columns, other=0.0).to(ACCUMULATOR)[None, :]
    here = batch * rows * columns + row[:, None] * columns + column[None, :]
    mask = row_mask & column_mask
    if add is not None:
        total += tl.load(add + here, mask=mask, other=0.0).to(ACCUMULATOR)
    if before is not None:
        tl.store(before + here, total, mask=mask)
    if EPILOGUE is not None:
        if first is None:
            total, rest = EPILOGUE(total)
        elif second is None:
            total, rest = EPILOGUE(total, tl.load(first + here, mask=mask, other=0))
        else:
            a = tl.load(first + here, mask=mask, other=0)
            total, rest = EPILOGUE(total, a, tl.load(second + here, mask=mask, other=0))
        if other is not None:
            tl.store(other + here, rest, mask=mask)
    tl.store(out + here, total, mask=mask)


def matmul_forward(x, y, *, precision="ieee", dtype=None):
    """Return x @ y.

    Args:
        x: (…, rows, inner), floating, any strides. y: (…, inner, columns), of x's type and leading axes.
        precision: "ieee", "tf32" or "tf32x3", for float32 operands.
        dtype: that of the result; x's if None. Products of 8-bit floats want a wider one.

    Returns:
        (…, rows, columns).

    Raises:
        ValueError: shapes or names do not fit.
        TypeError: x and y differ in type; two types of eight bits may.

    >>> import numpy as np
    >>> matmul_forward(np.ones((2, 3), np.float32), np.ones((3, 1), np.float32))
    array([[3.],
           [3.]], dtype=float32)
    """
    _check_types(x, y)
    if dtype is None:
        return product(x, y, precision=precision)
    out = empty(x, (*x.shape[:-1], y.shape[-1]), np.dtype(dtype))
    return product(x, y, out=out, precision=precision)


def matmul_backward(ct, x, y, *, precision="ieee"):
    """Return (dx, dy) for a cotangent of `matmul_forward(x, y)`.

    Args:
        ct: (…, rows, columns), of x's type or a wider one, any strides.
        x, y, precision: as given to the forward pass.

    They have the types of x and y, rounded once.
    """
    _check_cotangent(ct, x, y)
    dx, dy = empty(x, x.shape, x.dtype), empty(y, y.shape, y.dtype)
    product(ct, y.swapaxes(-1, -2), out=dx, precision=precision)
    product(x.swapaxes(-1, -2), ct, out=dy, precision=precision)
    return dx, dy


def linear_forward(x, y, bias=None, *, activation=None, precision="ieee"):
    """Return x @ y, plus a bias, through an activation.

    Args:
        x: (…, rows, inner), floating, any strides. y: (…, inner, columns), of x's type and leading axes.
        bias: (columns,), or None.
        activation: "gelu", "gelu_tanh", "silu", or None.
        precision: "ieee", "tf32" or "tf32x3", for float32 operands.

    Returns:
        (out, before): both (…, rows, columns) of x's dtype, the result and what the activation was applied to, for the
        gradient; they are one array without an activation.

    Raises:
        ValueError: shapes or names do not fit.
        TypeError: x and y differ in type.

    >>> import numpy as np
    >>> linear_forward(np.ones((1, 3)), np.ones((3, 1)), np.ones(1))[0]
    array([[4.]])
    """
    _check_types(x, y)
    if activation is not None and activation not in ACTIVATIONS:
        raise ValueError(f"activation: got {activation!r}, expected None or one of {sorted(ACTIVATIONS)}")
    if activation is None:
        out = product(x, y, bias, precision=precision)
        return out, out
    before = empty(x, (*x.shape[:-1], y.shape[-1]), x.dtype)
    return product(x, y, bias, before=before, epilogue=ACTIVATIONS[activation], precision=precision), before


def linear_backward(ct, x, y, bias, before, *, activation=None, precision="ieee"):
    """Return (dx, dy, dbias) for a cotangent of the result of `linear_forward`; dbias is None where bias is.

    Args:
        ct: (…, rows, columns), of x's type, any strides.
        x, y, bias, activation, precision: as given to the forward pass.
        before: as it returned it.
    """
    _check_cotangent(ct, x, y)
    if activation is not None:
        ct = activation_backward(ct, before, activation)[0]
    dbias = None if bias is None else column_sums(as_rows(ct), bias.dtype)
    return *matmul_backward(ct, x, y, precision=precision), dbias


def product(
    x,
    y,
    bias=None,
    *,
    add=None,
    before=None,
    epilogue=None,
    beside=(),
    demanding=False,
    precision="ieee",
    out=None,
    other=None,
):
    """Return x @ y + bias + add through an epilogue: what all functions of this family launch.

    Args:
        add: packed, of the result's shape, or None.
        before: like add; it takes what the epilogue is applied to.
        epilogue: a `@triton.jit` function of the sum, in the accumulator's type, and of the blocks of `beside`, in
            their own types, that returns two blocks: the result, and what goes to `other`. None for the sum itself.
        beside: up to two arrays like add, of any type.
        demanding: whether the epilogue needs many registers: programs then work on fewer columns, on as many warps.
        out, other: like add, of any type; they take what the epilogue returns. A new array of x's type, and none, if
            None.
    """
    _check(x, y, bias, precision)
    left, right = _as_batch(x), _as_batch(y)
    batch, rows, inner = left.shape
    columns = right.shape[2]
    if out is None:
        out = empty(x, (*x.shape[:-1], columns), x.dtype)
    first, second = (*beside, None, None)[:2]
    launch_fastest(
        matmul_kernel,
        lambda named: batch * triton.cdiv(rows, named["M"]) * triton.cdiv(columns, named["N"]),
        *(left, right, bias, add, first, second, before, out, other),
        *(rows, columns, inner, *strides(left), *strides(right)),
        *((None,) if bias is None else strides(bias)),
        configs=lambda: _configurations(x.dtype.itemsize, y.dtype.itemsize, rows, columns, inner, demanding),
        sizes=(batch, rows, columns, inner),
        EPILOGUE=epilogue,
        PRECISION=precision,
        ACCUMULATOR=accumulator(max(x.dtype, y.dtype, key=lambda dtype: dtype.itemsize)),
        GROUP=_GROUP,
    )
    return out


def _blocks(x_bytes, y_bytes, rows, columns, inner, demanding):
    """Return block sizes and compile options: large blocks for large products, 16 at least for the tensor cores."""
    m = max(16, min(128, triton.next_power_of_2(max(1, rows))))
    n = max(16, min(128, triton.next_power_of_2(max(1, columns))))
    widest = max(x_bytes, y_bytes)
    if widest >= 4:
        m, n = min(m, 64), min(n, 64)
    k = 64 if widest <= 2 else 32
    k = max(16 if min(x_bytes, y_bytes) > 1 else 32, min(k, triton.next_power_of_2(max(1, inner))))
    warps = 8 if m * n >= 128 * 128 else 4
    return {"M": m, "N": min(n, 64) if demanding else n, "K": k, "num_warps": warps, "num_stages": 3}


def _configurations(x_bytes, y_bytes, rows, columns, inner, demanding):
    """Return the rule's blocks, then some half and twice as high and wide, read further ahead or not."""
    rule = _blocks(x_bytes, y_bytes, rows, columns, inner, demanding)
    found = [rule]
    for height, width in ((1, 1), (2, 1), (1, 2), (0.5, 1), (1, 0.5), (2, 0.5), (0.5, 2)):
        m, n = int(rule["M"] * height), int(rule["N"] * width)
        covered = m <= triton.next_power_of_2(rows) and n <= triton.next_power_of_2(columns)
        if min(m, n) < 16 or not (covered or m * n <= rule["M"] * rule["N"]):
            continue
        warps = 8 if m * n >= 128 * 128 else 4
        configs = [{**rule, "M": m, "N": n, "num_warps": warps, "num_stages": stages} for stages in (3, 4)]
        found += [config for config in configs if config not in found]
    return found


def _as_batch(x):
    """Return x as (batch, rows, columns)."""
    if x.ndim == 2:
        return x[None]
    batch = 1
    for size in x.shape[:-2]:
        batch *= size
    return x if x.ndim == 3 else x.reshape(batch, *x.shape[-2:])


def _check_cotangent(ct, x, y):
    expected = (*x.shape[:-1], y.shape[-1])
    if ct.shape != expected:
        raise ValueError(f"ct: got shape {ct.shape}, expected {expected}")


def _check_types(x, y):
    if x.dtype != y.dtype and (x.dtype.itemsize, y.dtype.itemsize) != (1, 1):
        raise TypeError(f"x, y: got {x.dtype} and {y.dtype}, expected one type")


def _check(x, y, bias, precision):
    if x.ndim < 2 or y.ndim != x.ndim or x.shape[:-2] != y.shape[:-2] or x.shape[-1] != y.shape[-2]:
        raise ValueError(f"x, y: got shapes {x.shape} and {y.shape}, expected (…, rows, inner) and (…, inner, columns)")
    if bias is not None and bias.shape != y.shape[-1:]:
        raise ValueError(f"bias: got shape {bias.shape}, expected {y.shape[-1:]}")
    if precision not in PRECISIONS:
        raise ValueError(f"precision: got {precision!r}, expected one of {PRECISIONS}")

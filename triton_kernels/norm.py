"""Layer norm and RMS norm over the last axis, and the gradients of input, weight and bias.

Layer norm (Ba et al., 2016): y = (x - mean) rstd w + b with rstd = 1 / sqrt(var + eps). RMS norm (Zhang and Sennrich,
2019): y = x rstd w with rstd = 1 / sqrt(mean(x²) + eps). With g = ct w and n = (x - mean) rstd, of c columns:
dx = rstd (g - n mean(g n) - mean(g)), without the last term for RMS norm; dw = Σ ct n and db = Σ ct over rows.

The variance is that of differences from the mean, so that a large mean costs no digits. Weight and bias gradients are
partial sums of row chunks, added up by a second kernel: the same every time.
"""

import triton
import triton.language as tl

from .runtime import as_rows, empty, launch, strides
from .tiling import (
    accumulator,
    accumulator_dtype,
    along,
    block_for,
    block_of_row,
    column_sum_kernel,
    load_row,
    row_block,
    row_of_program,
    warps_for,
)

# Rows that one program adds up, and how many at a time, for the gradients of weight and bias.
_ROWS_A_PROGRAM = 256
_ROWS_A_STEP = 8


@triton.jit
def _statistics(x, at, columns, stride, eps, CENTERED: tl.constexpr, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr):
    """Return mean (0 for RMS norm) and reciprocal deviation of a row read block by block."""
    mean = tl.zeros((), ACCUMULATOR)
    size = columns.to(ACCUMULATOR)
    if CENTERED:
        for start in range(0, columns, BLOCK):
            mean += tl.sum(load_row(x, start + at, columns, stride, 0.0, ACCUMULATOR), 0)
        mean /= size
    squares = tl.zeros((), ACCUMULATOR)
    for start in range(0, columns, BLOCK):
        value = load_row(x, start + at, columns, stride, 0.0, ACCUMULATOR)
        value = tl.where(start + at < columns, value - mean, 0.0)
        squares += tl.sum(value * value, 0)
    return mean, 1 / tl.sqrt(squares / size + eps)


@triton.jit
def _affine(value, weight, bias, at, columns, weight_stride, bias_stride, ACCUMULATOR: tl.constexpr):
    if weight is not None:
        value *= load_row(weight, at, columns, weight_stride, 0.0, ACCUMULATOR)
    if bias is not None:
        value += load_row(bias, at, columns, bias_stride, 0.0, ACCUMULATOR)
    return value


@triton.jit
def forward_kernel(
    x,
    weight,
    bias,
    out,
    means,
    rstds,
    columns,
    x_row,
    x_column,
    weight_stride,
    bias_stride,
    EPS: tl.constexpr,
    CENTERED: tl.constexpr,
    WHOLE: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a row: whole in registers, or read once for the mean, once for the variance, once for the result."""
    row = row_of_program()
    x += row * x_row
    out += row * columns
    at = tl.arange(0, BLOCK).to(tl.int64)
    eps = tl.full((), EPS, ACCUMULATOR)
    if WHOLE:
        value = load_row(x, at, columns, x_column, 0.0, ACCUMULATOR)
        mean = tl.zeros((), ACCUMULATOR)
        size = columns.to(ACCUMULATOR)
        if CENTERED:
            mean = tl.sum(value, 0) / size
            value = tl.where(at < columns, value - mean, 0.0)
        rstd = 1 / tl.sqrt(tl.sum(value * value, 0) / size + eps)
        result = _affine(value * rstd, weight, bias, at, columns, weight_stride, bias_stride, ACCUMULATOR)
        tl.store(out + at, result, mask=at < columns)
    else:
        mean, rstd = _statistics(x, at, columns, x_column, eps, CENTERED, ACCUMULATOR, BLOCK)
        for start in range(0, columns, BLOCK):
            here = start + at
            value = (load_row(x, here, columns, x_column, 0.0, ACCUMULATOR) - mean) * rstd
            result = _affine(value, weight, bias, here, columns, weight_stride, bias_stride, ACCUMULATOR)
            tl.store(out + here, result, mask=here < columns)
    if CENTERED:
        tl.store(means + row, mean)
    tl.store(rstds + row, rstd)


@triton.jit
def _scaled_and_normal(
    ct, x, weight, at, columns, ct_column, x_column, weight_stride, mean, rstd, ACCUMULATOR: tl.constexpr
):
    """Return ct w and the normalized input; both 0 beyond the row."""
    scaled = load_row(ct, at, columns, ct_column, 0.0, ACCUMULATOR)
    if weight is not None:
        scaled *= load_row(weight, at, columns, weight_stride, 0.0, ACCUMULATOR)
    normal = (load_row(x, at, columns, x_column, 0.0, ACCUMULATOR) - mean) * rstd
    return scaled, tl.where(at < columns, normal, 0.0)


@triton.jit
def backward_kernel(
    ct,
    x,
    weight,
    means,
    rstds,
    dx,
    columns,
    ct_row,
    ct_column,
    x_row,
    x_column,
    weight_stride,
    CENTERED: tl.constexpr,
    WHOLE: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a row: the means of ct w n and of ct w, then the gradient of the input."""
    row = row_of_program()
    ct += row * ct_row
    x += row * x_row
    dx += row * columns
    at = tl.arange(0, BLOCK).to(tl.int64)
    size = columns.to(ACCUMULATOR)
    mean = tl.zeros((), ACCUMULATOR)
    if CENTERED:
        mean = tl.load(means + row)
    rstd = tl.load(rstds + row)
    across = tl.zeros((), ACCUMULATOR)
    level = tl.zeros((), ACCUMULATOR)
    if WHOLE:
        g, n = _scaled_and_normal(
            ct, x, weight, at, columns, ct_column, x_column, weight_stride, mean, rstd, ACCUMULATOR
        )
        across = tl.sum(g * n, 0) / size
        if CENTERED:
            level = tl.sum(g, 0) / size
        tl.store(dx + at, rstd * (g - n * across - level), mask=at < columns)
    else:
        for start in range(0, columns, BLOCK):
            g, n = _scaled_and_normal(
                ct, x, weight, start + at, columns, ct_column, x_column, weight_stride, mean, rstd, ACCUMULATOR
            )
            across += tl.sum(g * n, 0) / size
            if CENTERED:
                level += tl.sum(g, 0) / size
        for start in range(0, columns, BLOCK):
            g, n = _scaled_and_normal(
                ct, x, weight, start + at, columns, ct_column, x_column, weight_stride, mean, rstd, ACCUMULATOR
            )
            tl.store(dx + start + at, rstd * (g - n * across - level), mask=start + at < columns)


@triton.jit
def parameters_kernel(
    ct,
    x,
    means,
    rstds,
    dweight,
    dbias,
    rows,
    columns,
    ct_row,
    ct_column,
    x_row,
    x_column,
    CENTERED: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a chunk of rows and a block of columns: partial sums of ct n and of ct, one row of each a chunk."""
    chunk, at, exists = block_of_row(columns, BLOCK)
    weight_total = tl.zeros((STEP, BLOCK), ACCUMULATOR)
    bias_total = tl.zeros((STEP, BLOCK), ACCUMULATOR)
    for start in range(chunk * ROWS, tl.minimum(chunk * ROWS + ROWS, rows), STEP):
        row = start + tl.arange(0, STEP)
        mask = (row[:, None] < rows) & exists[None, :]
        mine = tl.load(ct + row[:, None] * ct_row + along(at, ct_column)[None, :], mask=mask, other=0.0)
        value = tl.load(x + row[:, None] * x_row + along(at, x_column)[None, :], mask=mask, other=0.0).to(ACCUMULATOR)
        if CENTERED:
            value -= tl.load(means + row, mask=row < rows, other=0.0)[:, None]
        rstd = tl.load(rstds + row, mask=row < rows, other=0.0)
        weight_total += mine.to(ACCUMULATOR) * value * rstd[:, None]
        bias_total += mine.to(ACCUMULATOR)
    if dweight is not None:
        tl.store(dweight + chunk * columns + at, tl.sum(weight_total, 0), mask=exists)
    if dbias is not None:
        tl.store(dbias + chunk * columns + at, tl.sum(bias_total, 0), mask=exists)


def layer_norm_forward(x, weight=None, bias=None, *, eps=1e-5):
    """Normalize the last axis to mean 0 and variance 1, then scale and shift it.

    Args:
        x: (…, columns), floating, any strides.
        weight, bias: (columns,), or None for 1 and 0.
        eps: added to the variance.

    Returns:
        (out, mean, rstd): out like x; mean and rstd (rows,), float64 for float64 and else float32, for the gradient.

    Raises:
        ValueError: x has no axes, or weight or bias is not (columns,).

    >>> import numpy as np
    >>> layer_norm_forward(np.array([[1.0, 3.0]]), eps=0.0)[0]
    array([[-1.,  1.]])
    """
    return _forward(x, weight, bias, eps, centered=True)


def layer_norm_backward(ct, x, weight, mean, rstd, *, bias=True):
    """Return (dx, dweight, dbias) for a cotangent of the result of `layer_norm_forward`.

    Args:
        ct: like x, any strides.
        x, weight: as given to the forward pass.
        mean, rstd: as it returned them.
        bias: whether dbias is wanted.

    dweight is None where weight is, dbias where it is not wanted.
    """
    return _backward(ct, x, weight, mean, rstd, bias)


def rms_norm_forward(x, weight=None, *, eps=1e-6):
    """Divide the last axis by its root mean square, then scale it.

    Args:
        x: (…, columns), floating, any strides.
        weight: (columns,), or None for 1.
        eps: added to the mean square.

    Returns:
        (out, rstd): out like x; rstd (rows,), float64 for float64 and else float32, for the gradient.

    Raises:
        ValueError: x has no axes, or weight is not (columns,).

    >>> import numpy as np
    >>> rms_norm_forward(np.array([[3.0, 4.0]]), eps=0.0)[0].round(4)
    array([[0.8485, 1.1314]])
    """
    out, _, rstd = _forward(x, weight, None, eps, centered=False)
    return out, rstd


def rms_norm_backward(ct, x, weight, rstd):
    """Return (dx, dweight) for a cotangent of the result of `rms_norm_forward`; dweight is None where weight is."""
    dx, dweight, _ = _backward(ct, x, weight, None, rstd, bias=False)
    return dx, dweight


def _forward(x, weight, bias, eps, centered):
    flat = as_rows(x)
    rows, columns = flat.shape
    _check(columns, weight=weight, bias=bias)
    dtype = accumulator_dtype(x.dtype)
    out = empty(x, (rows, columns), x.dtype)
    mean = empty(x, (rows,), dtype) if centered else None
    rstd = empty(x, (rows,), dtype)
    block = row_block(columns)
    launch(
        forward_kernel,
        (rows,),
        *(flat, weight, bias, out, mean, rstd, columns, *strides(flat), *_stride(weight), *_stride(bias)),
        EPS=float(eps),
        CENTERED=centered,
        WHOLE=columns <= block,
        ACCUMULATOR=accumulator(x.dtype),
        BLOCK=block,
        num_warps=warps_for(block),
    )
    return out.reshape(x.shape), mean, rstd


def _backward(ct, x, weight, mean, rstd, bias):
    if ct.shape != x.shape:
        raise ValueError(f"ct: got shape {ct.shape}, expected {x.shape}")
    flat_ct, flat = as_rows(ct), as_rows(x)
    rows, columns = flat.shape
    dx = empty(x, (rows, columns), x.dtype)
    block = row_block(columns)
    if columns:
        launch(
            backward_kernel,
            (rows,),
            *(flat_ct, flat, weight, mean, rstd, dx, columns, *strides(flat_ct), *strides(flat), *_stride(weight)),
            CENTERED=mean is not None,
            WHOLE=columns <= block,
            ACCUMULATOR=accumulator(x.dtype),
            BLOCK=block,
            num_warps=warps_for(block),
        )
    dweight = dbias = None
    if weight is not None or bias:
        dweight, dbias = _parameter_gradients(flat_ct, flat, weight, mean, rstd, bias)
    return dx.reshape(x.shape), dweight, dbias


def _parameter_gradients(ct, x, weight, mean, rstd, bias):
    rows, columns = x.shape
    dtype = accumulator_dtype(x.dtype)
    chunks = max(1, triton.cdiv(rows, _ROWS_A_PROGRAM))
    partial_weight = empty(x, (chunks, columns), dtype) if weight is not None else None
    partial_bias = empty(x, (chunks, columns), dtype) if bias else None
    block = block_for(columns, 128)
    launch(
        parameters_kernel,
        (chunks * triton.cdiv(columns, block),),
        *(ct, x, mean, rstd, partial_weight, partial_bias, rows, columns, *strides(ct), *strides(x)),
        CENTERED=mean is not None,
        ACCUMULATOR=accumulator(x.dtype),
        ROWS=_ROWS_A_PROGRAM,
        STEP=_ROWS_A_STEP,
        BLOCK=block,
    )
    kind = (x if weight is None else weight).dtype
    return tuple(
        _column_sum(partial, kind) if partial is not None else None for partial in (partial_weight, partial_bias)
    )


def _column_sum(partial, dtype):
    chunks, columns = partial.shape
    out = empty(partial, (columns,), dtype)
    block = block_for(columns, 128)
    launch(column_sum_kernel, (triton.cdiv(columns, block),), *(partial, out, chunks, columns), STEP=8, BLOCK=block)
    return out


def _check(columns, **arrays):
    for name, array in arrays.items():
        if array is not None and array.shape != (columns,):
            raise ValueError(f"{name}: got shape {array.shape}, expected {(columns,)}")


def _stride(vector):
    return (None,) if vector is None else strides(vector)

"""The kernels of layer norm, RMS norm and group norm, and of their gradients. `norm.py` says what they compute.

`weight` and `bias` belong to the columns of a row, or with `spread` to channels of that many columns: then rows are
those of `groups` groups in turn. RMS norm is the norm that is not CENTERED.
"""

import triton
import triton.language as tl

from .tiling import along, block_of_row, load_row, row_of_program


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
def _of_group(pointer, row, groups, columns, stride, spread):
    """Return the pointer to the parameters of a row: those of its group's channels; all without groups."""
    if spread is None:
        return pointer
    else:
        return pointer + along(row % groups * (columns // spread), stride)


@triton.jit
def _parameter(pointer, at, columns, stride, spread, ACCUMULATOR: tl.constexpr):
    """Return the parameters of a row's entries: each its own, or one for `spread` entries of a channel."""
    channel = at
    if spread is not None:
        channel = at // spread
    return tl.load(pointer + along(channel, stride), mask=at < columns, other=0.0).to(ACCUMULATOR)


@triton.jit
def _affine(value, weight, bias, at, columns, weight_stride, bias_stride, spread, ACCUMULATOR: tl.constexpr):
    if weight is not None:
        value *= _parameter(weight, at, columns, weight_stride, spread, ACCUMULATOR)
    if bias is not None:
        value += _parameter(bias, at, columns, bias_stride, spread, ACCUMULATOR)
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
    groups,
    spread,
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
    if weight is not None:
        weight = _of_group(weight, row, groups, columns, weight_stride, spread)
    if bias is not None:
        bias = _of_group(bias, row, groups, columns, bias_stride, spread)
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
        result = _affine(value * rstd, weight, bias, at, columns, weight_stride, bias_stride, spread, ACCUMULATOR)
        tl.store(out + at, result, mask=at < columns)
    else:
        mean, rstd = _statistics(x, at, columns, x_column, eps, CENTERED, ACCUMULATOR, BLOCK)
        for start in range(0, columns, BLOCK):
            here = start + at
            value = (load_row(x, here, columns, x_column, 0.0, ACCUMULATOR) - mean) * rstd
            result = _affine(value, weight, bias, here, columns, weight_stride, bias_stride, spread, ACCUMULATOR)
            tl.store(out + here, result, mask=here < columns)
    if CENTERED:
        tl.store(means + row, mean)
    tl.store(rstds + row, rstd)


@triton.jit
def _normal(x, at, columns, stride, means, rstd, row, CENTERED: tl.constexpr, ACCUMULATOR: tl.constexpr):
    """Return a row's normalized entries, 0 beyond its end."""
    value = load_row(x, at, columns, stride, 0.0, ACCUMULATOR)
    if CENTERED:
        value -= tl.load(means + row)
    return tl.where(at < columns, value * rstd, 0.0)


@triton.jit
def backward_kernel(
    ct,
    x,
    weight,
    means,
    rstds,
    dx,
    columns,
    groups,
    spread,
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
    if weight is not None:
        weight = _of_group(weight, row, groups, columns, weight_stride, spread)
    at = tl.arange(0, BLOCK).to(tl.int64)
    size = columns.to(ACCUMULATOR)
    rstd = tl.load(rstds + row)
    across = tl.zeros((), ACCUMULATOR)
    level = tl.zeros((), ACCUMULATOR)
    if WHOLE:
        g = load_row(ct, at, columns, ct_column, 0.0, ACCUMULATOR)
        g = _affine(g, weight, None, at, columns, weight_stride, None, spread, ACCUMULATOR)
        n = _normal(x, at, columns, x_column, means, rstd, row, CENTERED, ACCUMULATOR)
        across = tl.sum(g * n, 0) / size
        if CENTERED:
            level = tl.sum(g, 0) / size
        tl.store(dx + at, rstd * (g - n * across - level), mask=at < columns)
    else:
        for start in range(0, columns, BLOCK):
            g = load_row(ct, start + at, columns, ct_column, 0.0, ACCUMULATOR)
            g = _affine(g, weight, None, start + at, columns, weight_stride, None, spread, ACCUMULATOR)
            n = _normal(x, start + at, columns, x_column, means, rstd, row, CENTERED, ACCUMULATOR)
            across += tl.sum(g * n, 0) / size
            if CENTERED:
                level += tl.sum(g, 0) / size
        for start in range(0, columns, BLOCK):
            g = load_row(ct, start + at, columns, ct_column, 0.0, ACCUMULATOR)
            g = _affine(g, weight, None, start + at, columns, weight_stride, None, spread, ACCUMULATOR)
            n = _normal(x, start + at, columns, x_column, means, rstd, row, CENTERED, ACCUMULATOR)
            tl.store(dx + start + at, rstd * (g - n * across - level), mask=start + at < columns)


@triton.jit
def one_pass_kernel(
    ct,
    x,
    weight,
    means,
    rstds,
    dx,
    dweight,
    dbias,
    rows,
    columns,
    span,
    ct_row,
    ct_column,
    x_row,
    x_column,
    weight_stride,
    CENTERED: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program `span` rows, each whole in registers: the gradient of the input, and partial sums of the others."""
    program = row_of_program()
    at = tl.arange(0, BLOCK).to(tl.int64)
    size = columns.to(ACCUMULATOR)
    scale = tl.full((BLOCK,), 1.0, ACCUMULATOR)
    if weight is not None:
        scale = load_row(weight, at, columns, weight_stride, 0.0, ACCUMULATOR)
    weight_total = tl.zeros((BLOCK,), ACCUMULATOR)
    bias_total = tl.zeros((BLOCK,), ACCUMULATOR)
    for row in range(program * span, tl.minimum(program * span + span, rows)):
        mine = load_row(ct + row * ct_row, at, columns, ct_column, 0.0, ACCUMULATOR)
        rstd = tl.load(rstds + row)
        n = _normal(x + row * x_row, at, columns, x_column, means, rstd, row, CENTERED, ACCUMULATOR)
        g = mine * scale
        change = g - n * (tl.sum(g * n, 0) / size)
        if CENTERED:
            change -= tl.sum(g, 0) / size
        tl.store(dx + row * columns + at, rstd * change, mask=at < columns)
        weight_total += mine * n
        bias_total += mine
    if dweight is not None:
        tl.store(dweight + program * columns + at, weight_total, mask=at < columns)
    if dbias is not None:
        tl.store(dbias + program * columns + at, bias_total, mask=at < columns)


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


@triton.jit
def channel_kernel(
    ct,
    x,
    means,
    rstds,
    dweight,
    dbias,
    channels,
    columns,
    groups,
    ct_example,
    ct_channel,
    ct_column,
    x_example,
    x_channel,
    x_column,
    ACCUMULATOR: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a block of channels of an example: the sums of ct n and of ct over each channel's columns."""
    example, channel, exists = block_of_row(channels, CHANNELS)
    ct += example * ct_example + channel[:, None] * ct_channel
    x += example * x_example + channel[:, None] * x_channel
    group = example * groups + channel // (channels // groups)
    mean = tl.load(means + group, mask=exists, other=0.0)[:, None]
    rstd = tl.load(rstds + group, mask=exists, other=0.0)[:, None]
    weight_total = tl.zeros((CHANNELS, BLOCK), ACCUMULATOR)
    bias_total = tl.zeros((CHANNELS, BLOCK), ACCUMULATOR)
    for start in range(0, columns, BLOCK):
        at = (start + tl.arange(0, BLOCK)).to(tl.int64)
        mask = exists[:, None] & (at < columns)[None, :]
        mine = tl.load(ct + along(at, ct_column)[None, :], mask=mask, other=0.0).to(ACCUMULATOR)
        value = tl.load(x + along(at, x_column)[None, :], mask=mask, other=0.0).to(ACCUMULATOR)
        weight_total += mine * (value - mean) * rstd
        bias_total += mine
    place = example * channels + channel
    if dweight is not None:
        tl.store(dweight + place, tl.sum(weight_total, 1), mask=exists)
    if dbias is not None:
        tl.store(dbias + place, tl.sum(bias_total, 1), mask=exists)

"""Sum, mean, max, logsumexp, argmax, argmin and running sum over any axis, and their gradients.

Gradients: sum: ct; mean: ct / columns; max: ct shared equally by the entries that attain it; logsumexp:
ct exp(x - out), 0 in rows of nothing but -inf; running sum: the running sum of ct from the end.

What is decided here: NaN in a row makes its result NaN, and argmax and argmin give the first NaN, else the first
of equals. The max of no elements is -inf.

Few long rows would leave most of a device idle: they are cut into parts, whose results a second launch combines.
"""

import numpy as np
import triton
import triton.language as tl

from .layout import packed
from .runtime import as_rows, empty, launch, strides
from .tiling import (
    MINUS_INFINITY,
    ROW_STEP,
    accumulator,
    accumulator_dtype,
    along,
    axes_back,
    axes_last,
    block_for,
    block_of_row,
    block_options,
    finite_shift,
    load_row,
    row_of_program,
)

KINDS = ("sum", "mean", "max", "logsumexp")

# Rows are cut into parts where there are fewer than this many, two for each multiprocessor of a large GPU, and longer.
_FEW_ROWS = 256
_PART = 8192
# Rows that one program adds up in sums of columns, and how many at a time.
_ROWS_A_PROGRAM = 256
_ROWS_A_STEP = 8

_FAR = tl.constexpr(2**62)


@triton.jit
def _part_of_row(parts, columns, PART: tl.constexpr):
    """Return a program's row, its number among all parts, and the range of columns of its part; all if PART is None."""
    program = row_of_program()
    if PART is None:
        return program, program, tl.zeros((), tl.int64), columns.to(tl.int64)
    else:
        first = program % parts * PART
        return program // parts, program, first, tl.minimum(first + PART, columns)


@triton.jit
def _sum(x, at, first, last, stride, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros((), ACCUMULATOR)
    for start in range(first, last, BLOCK):
        total += tl.sum(load_row(x, start + at, last, stride, 0.0, ACCUMULATOR), 0)
    return total


@triton.jit
def _max(x, at, first, last, stride, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr):
    largest = tl.full((), MINUS_INFINITY, ACCUMULATOR)
    missing = tl.zeros((), tl.int32)  # tl.max passes over NaN: count it
    for start in range(first, last, BLOCK):
        value = load_row(x, start + at, last, stride, MINUS_INFINITY, ACCUMULATOR)
        largest = tl.maximum(largest, tl.max(value, 0))
        missing += tl.sum((value != value).to(tl.int32), 0)
    return tl.where(missing > 0, float("nan"), largest)


@triton.jit
def _logsumexp(x, at, first, last, stride, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr):
    largest = tl.full((), MINUS_INFINITY, ACCUMULATOR)
    total = tl.zeros((), ACCUMULATOR)
    for start in range(first, last, BLOCK):
        value = load_row(x, start + at, last, stride, MINUS_INFINITY, ACCUMULATOR)
        new_largest = tl.maximum(largest, tl.max(value, 0))
        # An infinite entry decides the result: exponentials then need no shift.
        shift = tl.where(new_largest == -MINUS_INFINITY, 0.0, finite_shift(new_largest))
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(value - shift), 0)
        largest = new_largest
    return finite_shift(largest) + tl.log(total)


@triton.jit
def reduce_kernel(
    x,
    out,
    columns,
    parts,
    x_row,
    x_column,
    divisor,
    KIND: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    PART: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a part of a row, read once, block by block; `divisor` is None, or what the result is divided by."""
    row, place, first, last = _part_of_row(parts, columns, PART)
    x += row * x_row
    at = tl.arange(0, BLOCK).to(tl.int64)
    if KIND == "sum":
        result = _sum(x, at, first, last, x_column, ACCUMULATOR, BLOCK)
    elif KIND == "max":
        result = _max(x, at, first, last, x_column, ACCUMULATOR, BLOCK)
    else:
        result = _logsumexp(x, at, first, last, x_column, ACCUMULATOR, BLOCK)
    if divisor is not None:
        result /= divisor
    tl.store(out + place, result)


@triton.jit
def argmax_kernel(
    x,
    candidates,
    out,
    columns,
    parts,
    x_row,
    x_column,
    ACCUMULATOR: tl.constexpr,
    SMALLEST: tl.constexpr,
    PART: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a part of a row: the largest entry so far and where it stands, and the first NaN.

    With `candidates` the entries are those at the places that it lists for each row, in ascending order. SMALLEST asks
    for the smallest entry, the largest of the negatives.
    """
    row, number, first, last = _part_of_row(parts, columns, PART)
    x += row * x_row
    at = tl.arange(0, BLOCK).to(tl.int64)
    largest = tl.full((), MINUS_INFINITY, ACCUMULATOR)
    place = tl.full((), _FAR, tl.int64)
    first_nan = tl.full((), _FAR, tl.int64)
    for start in range(first, last, BLOCK):
        here = start + at
        exists = here < last
        if candidates is not None:
            here = tl.load(candidates + row * columns + here, mask=exists, other=0)
        value = tl.load(x + along(here, x_column), mask=exists, other=0).to(ACCUMULATOR)
        if SMALLEST:
            value = -value
        value = tl.where(exists, value, MINUS_INFINITY)
        best = tl.max(value, 0)
        found = tl.min(tl.where((value == best) & exists, here, _FAR), 0)
        place = tl.where((best > largest) | (place == _FAR), found, place)
        largest = tl.maximum(largest, best)
        first_nan = tl.minimum(first_nan, tl.min(tl.where(value != value, here, _FAR), 0))
    tl.store(out + number, tl.where(first_nan < _FAR, first_nan, place))


@triton.jit
def column_sum_kernel(
    x,
    out,
    rows,
    columns,
    x_row,
    x_column,
    ACCUMULATOR: tl.constexpr,
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a chunk of rows and a block of columns: the sums of its columns, one row of them a chunk."""
    chunk, at, exists = block_of_row(columns, BLOCK)
    total = tl.zeros((STEP, BLOCK), ACCUMULATOR)
    for start in range(chunk * ROWS, tl.minimum(chunk * ROWS + ROWS, rows), STEP):
        row = start + tl.arange(0, STEP)
        mask = (row[:, None] < rows) & exists[None, :]
        value = tl.load(x + row[:, None] * x_row + along(at, x_column)[None, :], mask=mask, other=0.0)
        total += value.to(ACCUMULATOR)
    tl.store(out + chunk * columns + at, tl.sum(total, 0), mask=exists)


@triton.jit
def tie_kernel(x, out, count, columns, x_row, x_column, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr):
    """One program a row: how many entries attain the row's maximum."""
    row = row_of_program()
    x += row * x_row
    at = tl.arange(0, BLOCK).to(tl.int64)
    largest = tl.load(out + row).to(ACCUMULATOR)
    total = tl.zeros((), ACCUMULATOR)
    for start in range(0, columns, BLOCK):
        value = load_row(x, start + at, columns, x_column, 0.0, ACCUMULATOR)
        total += tl.sum(((value == largest) & (start + at < columns)).to(ACCUMULATOR), 0)
    tl.store(count + row, total)


@triton.jit
def spread_kernel(
    ct,
    x,
    out,
    count,
    dx,
    columns,
    ct_row,
    x_row,
    x_column,
    KIND: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a block of a row: the row's cotangent times each entry's share."""
    row, at, mask = block_of_row(columns, BLOCK)
    mine = tl.load(ct + along(row, ct_row)).to(ACCUMULATOR)
    gradient = mine + tl.zeros((BLOCK,), ACCUMULATOR)
    if KIND == "mean":
        gradient /= columns.to(ACCUMULATOR)
    if KIND == "max" or KIND == "logsumexp":
        value = tl.load(x + row * x_row + along(at, x_column), mask=mask, other=0.0).to(ACCUMULATOR)
        result = tl.load(out + row).to(ACCUMULATOR)
        if KIND == "max":
            share = tl.where(value == result, 1 / tl.load(count + row), 0.0)
            gradient *= tl.where(result != result, result, share)
        else:
            gradient *= tl.exp(value - finite_shift(result))
    tl.store(dx + row * columns + at, gradient, mask=mask)


@triton.jit
def cumsum_kernel(
    x,
    sums,
    out,
    totals,
    columns,
    parts,
    x_row,
    x_column,
    REVERSE: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    PART: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a part of a row: block after block, the sum so far carried along; from the end if reversed.

    `sums` are those up to the end of each part, None for one; `totals` takes the sum of a part, `out` the running sums.
    """
    row, number, first, last = _part_of_row(parts, columns, PART)
    x += row * x_row
    at = tl.arange(0, BLOCK).to(tl.int64)
    carried = tl.zeros((), ACCUMULATOR)
    if sums is not None:
        carried = tl.load(sums + number - 1, mask=number % parts > 0, other=0.0)
    for start in range(first, last, BLOCK):
        here = start + at
        mask = here < last
        if REVERSE:
            here = columns - 1 - here
        value = tl.load(x + along(here, x_column), mask=mask, other=0.0).to(ACCUMULATOR)
        if out is not None:
            tl.store(out + row * columns + here, tl.cumsum(value, 0) + carried, mask=mask)
        carried += tl.sum(value, 0)
    if totals is not None:
        tl.store(totals + number, carried)


def reduce_forward(x, kind, *, axis=-1):
    """Reduce axes.

    Args:
        x: any shape with at least one axis, floating, any strides.
        kind: "sum", "mean", "max" or "logsumexp".
        axis: an axis, a tuple of axes, or None for all.

    Returns:
        An array without those axes: float64 for float64 and else float32, except "max", which has x's dtype.

    Raises:
        ValueError: an unknown kind, or a wrong axis.

    >>> import numpy as np
    >>> reduce_forward(np.array([[1.0, 3.0]]), "mean")
    array([2.])
    """
    _check(kind)
    moved, shape = axes_last(x, axis)
    flat = as_rows(moved)
    rows, columns = flat.shape
    dtype = accumulator_dtype(x.dtype)
    parts = _parts(rows, columns)
    step = "sum" if kind == "mean" else kind
    if parts > 1:
        partial = empty(x, (rows, parts), dtype)
        _reduce(flat, partial, parts, None, step)
        flat = partial
    out = empty(x, (rows,), x.dtype if kind == "max" else dtype)
    _reduce(flat, out, 1, float(columns) if kind == "mean" else None, step)
    return out.reshape(shape)


def _reduce(x, out, parts, divisor, kind):
    rows, columns = x.shape
    options = {**_options(x), "PART": _PART if parts > 1 else None}
    launch(reduce_kernel, (rows * parts,), *(x, out, columns, parts, *strides(x), divisor), KIND=kind, **options)


def _parts(rows, columns):
    return triton.cdiv(columns, _PART) if rows < _FEW_ROWS else 1


def reduce_backward(ct, x, out, kind, *, axis=-1):
    """Return the gradient of x for a cotangent of out = reduce_forward(x, kind, axis=axis).

    Args:
        ct: of the result's shape, any strides.
        x, kind, axis: as given to the forward pass. out: what it returned.

    Raises:
        ValueError: an unknown kind, a wrong axis, or ct of another shape.
    """
    _check(kind)
    moved, shape = axes_last(x, axis)
    if ct.shape != shape:
        raise ValueError(f"ct: got shape {ct.shape}, expected {shape}")
    flat, flat_ct, flat_out = as_rows(moved), ct.reshape(-1), packed(out).reshape(-1)
    rows, columns = flat.shape
    count = None
    if kind == "max":
        count = empty(x, (rows,), accumulator_dtype(x.dtype))
        launch(tie_kernel, (rows,), *(flat, flat_out, count, columns, *strides(flat)), **_options(flat))
    dx = empty(x, (rows, columns), x.dtype)
    options = _options(flat)
    launch(
        spread_kernel,
        (rows * triton.cdiv(columns, options["BLOCK"]),),
        *(flat_ct, flat, flat_out, count, dx, columns, *strides(flat_ct), *strides(flat)),
        KIND=kind,
        **options,
    )
    return axes_back(dx, x.shape, axis)


def argmax(x, *, axis=-1):
    """Return the position of the largest entry along an axis, as int64: the first NaN, else the first of equals.

    Args:
        x: any shape with at least one axis, floating, any strides.
        axis: an axis, or None for the position among all elements.

    Raises:
        ValueError: a wrong axis, or no entries to choose from.

    >>> import numpy as np
    >>> argmax(np.array([[1.0, 3.0, 3.0]]))
    array([1])
    """
    return _place_of_extreme(x, axis, False)


def argmin(x, *, axis=-1):
    """Return the position of the smallest entry along an axis, as int64: the first NaN, else the first of equals.

    Arguments and errors are those of `argmax`.

    >>> import numpy as np
    >>> argmin(np.array([[3.0, 1.0, 1.0]]))
    array([1])
    """
    return _place_of_extreme(x, axis, True)


def _place_of_extreme(x, axis, smallest):
    moved, shape = axes_last(x, axis)
    flat = as_rows(moved)
    rows, columns = flat.shape
    if rows and not columns:
        raise ValueError(f"x: got shape {x.shape}, expected entries along axis {axis}")
    parts = _parts(rows, columns)
    places = None
    if parts > 1:
        places = empty(x, (rows, parts), np.dtype(np.int64))
        _argmax(flat, None, places, columns, parts, smallest)
        columns = parts
    out = empty(x, (rows,), np.dtype(np.int64))
    _argmax(flat, places, out, columns, 1, smallest)
    return out.reshape(shape)


def _argmax(x, candidates, out, columns, parts, smallest):
    options = {**_options(x), "SMALLEST": smallest, "PART": _PART if parts > 1 else None}
    launch(argmax_kernel, (x.shape[0] * parts,), *(x, candidates, out, columns, parts, *strides(x)), **options)


def cumsum_forward(x, *, axis=-1, reverse=False):
    """Return the running sum along an axis, from its end if reversed; x of any strides.

    >>> import numpy as np
    >>> cumsum_forward(np.array([1.0, 2.0, 3.0]))
    array([1., 3., 6.])
    """
    flat = as_rows(axes_last(x, axis)[0])
    rows, columns = flat.shape
    out = empty(x, (rows, columns), x.dtype)
    parts, sums = _parts(rows, columns), None
    if parts > 1:
        totals, sums = (empty(x, (rows, parts), accumulator_dtype(x.dtype)) for _ in range(2))
        _cumsum(flat, None, None, totals, parts, reverse)
        _cumsum(totals, None, sums, None, 1, False)
    _cumsum(flat, sums, out, None, parts, reverse)
    return axes_back(out, x.shape, axis)


def _cumsum(x, sums, out, totals, parts, reverse):
    rows, columns = x.shape
    options = {**_options(x), "PART": _PART if parts > 1 else None}
    launch(
        cumsum_kernel,
        (rows * parts,),
        *(x, sums, out, totals, columns, parts, *strides(x)),
        REVERSE=reverse,
        **options,
    )


def cumsum_backward(ct, *, axis=-1, reverse=False):
    """Return the gradient of x for a cotangent of `cumsum_forward(x, axis=axis, reverse=reverse)`."""
    return cumsum_forward(ct, axis=axis, reverse=not reverse)


def column_sums(x, dtype):
    """Return the sums of the columns of x (rows, columns), of any strides, in a dtype: partial sums, then their sum."""
    rows, columns = x.shape
    chunks = triton.cdiv(rows, _ROWS_A_PROGRAM)
    while chunks > 1:
        partial = empty(x, (chunks, columns), accumulator_dtype(x.dtype))
        _column_sums(x, partial, chunks)
        x, chunks = partial, triton.cdiv(chunks, _ROWS_A_PROGRAM)
    out = empty(x, (columns,), dtype)
    _column_sums(x, out, 1)
    return out


def _column_sums(x, out, chunks):
    rows, columns = x.shape
    block = block_for(columns, 128)
    launch(
        column_sum_kernel,
        (chunks * triton.cdiv(columns, block),),
        *(x, out, rows, columns, *strides(x)),
        ACCUMULATOR=accumulator(x.dtype),
        ROWS=_ROWS_A_PROGRAM,
        STEP=_ROWS_A_STEP,
        BLOCK=block,
    )


def _options(flat):
    return block_options(block_for(flat.shape[1], ROW_STEP), flat.dtype)


def _check(kind):
    if kind not in KINDS:
        raise ValueError(f"kind: got {kind!r}, expected one of {KINDS}")

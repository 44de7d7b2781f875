"""Softmax cross-entropy of rows of logits: the loss of each row, and the gradient of the logits.

For a row x with label y the loss is w[y] (lse(x) - x[y]), where lse is the logarithm of the sum of exponentials and w
the weights of classes, 1 unless given; with label smoothing e it is (1 - e) times that plus e times the mean over
classes c of w[c] (lse(x) - x[c]) (Szegedy et al., 2016, section 7).

What is decided here: rows labelled `ignore_index` have loss and gradient 0, whatever they hold. A label that is no
column gives NaN. A label whose logit is -inf has loss +inf, also in a row of nothing but -inf, and a finite gradient.
NaN in a row gives NaN.
"""

import numpy as np
import triton
import triton.language as tl

from .reduction import reduce_forward
from .runtime import empty, launch, strides
from .tiling import (
    MINUS_INFINITY,
    accumulator_dtype,
    along,
    block_for,
    block_of_row,
    block_options,
    finite_shift,
    row_of_program,
)

_LARGEST_BLOCK = 4096


@triton.jit
def forward_kernel(
    logits,
    labels,
    weight,
    losses,
    lse,
    columns,
    logits_row,
    logits_column,
    labels_row,
    weight_stride,
    ignore_index,
    SMOOTHING: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a row: the logarithm of the sum of exponentials in one pass over blocks, then the loss."""
    row = row_of_program()
    logits += row * logits_row
    largest = tl.full((), MINUS_INFINITY, ACCUMULATOR)
    total = tl.zeros((), ACCUMULATOR)
    class_sum = tl.zeros((), ACCUMULATOR)
    class_total = columns.to(ACCUMULATOR)
    if weight is not None:
        class_total = tl.zeros((), ACCUMULATOR)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = at < columns
        x = tl.load(logits + along(at, logits_column), mask=mask, other=MINUS_INFINITY).to(ACCUMULATOR)
        new_largest = tl.maximum(largest, tl.max(x, 0))
        shift = finite_shift(new_largest)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), 0)
        largest = new_largest
        if SMOOTHING > 0:
            share = tl.where(mask, x, 0.0)
            if weight is not None:
                classes = tl.load(weight + along(at, weight_stride), mask=mask, other=0.0).to(ACCUMULATOR)
                class_total += tl.sum(classes, 0)
                # A class without weight counts for nothing, also where its logit is infinite.
                share = tl.where(classes == 0, 0.0, share * classes)
            class_sum += tl.sum(share, 0)
    log_total = finite_shift(largest) + tl.log(total)
    label = tl.load(labels + along(row, labels_row)).to(tl.int64)
    is_column = (label >= 0) & (label < columns)
    target = tl.load(logits + along(label, logits_column), mask=is_column, other=0.0).to(ACCUMULATOR)
    loss = tl.where(target == MINUS_INFINITY, -MINUS_INFINITY, log_total - target)
    if weight is not None:
        mine = tl.load(weight + along(label, weight_stride), mask=is_column, other=0.0).to(ACCUMULATOR)
        loss = tl.where(mine == 0, 0.0, loss * mine)
    if SMOOTHING > 0:
        smooth = (class_total * log_total - class_sum) / columns.to(ACCUMULATOR)
        loss = (1 - SMOOTHING) * loss + SMOOTHING * smooth
    loss = tl.where(is_column, loss, float("nan"))
    tl.store(losses + row, tl.where(label == ignore_index, 0.0, loss))
    tl.store(lse + row, log_total)


@triton.jit
def backward_kernel(
    ct,
    logits,
    labels,
    weight,
    class_total,
    lse,
    dlogits,
    columns,
    ct_row,
    logits_row,
    logits_column,
    labels_row,
    weight_stride,
    lse_row,
    ignore_index,
    SMOOTHING: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a block of a row: the cotangent times (softmax - target distribution)."""
    row, at, mask = block_of_row(columns, BLOCK)
    x = tl.load(logits + row * logits_row + along(at, logits_column), mask=mask, other=MINUS_INFINITY).to(ACCUMULATOR)
    probability = tl.exp(x - finite_shift(tl.load(lse + along(row, lse_row)).to(ACCUMULATOR)))
    label = tl.load(labels + along(row, labels_row)).to(tl.int64)
    is_column = (label >= 0) & (label < columns)
    scale = tl.full((), 1.0 - SMOOTHING, ACCUMULATOR)
    if weight is not None:
        scale *= tl.load(weight + along(label, weight_stride), mask=is_column, other=0.0).to(ACCUMULATOR)
    change = scale * (probability - tl.where(at == label, 1.0, 0.0))
    if SMOOTHING > 0:
        share = tl.full((), SMOOTHING, ACCUMULATOR) / columns.to(ACCUMULATOR)
        if weight is not None:
            classes = tl.load(weight + along(at, weight_stride), mask=mask, other=0.0).to(ACCUMULATOR)
            change += share * (tl.load(class_total) * probability - classes)
        else:
            change += SMOOTHING * probability - share
    gradient = tl.load(ct + along(row, ct_row)).to(ACCUMULATOR) * change
    gradient = tl.where(is_column, gradient, float("nan"))
    gradient = tl.where(label == ignore_index, 0.0, gradient)
    tl.store(dlogits + row * columns + at, gradient, mask=mask)


def cross_entropy_forward(logits, labels, weight=None, *, ignore_index=-100, label_smoothing=0.0):
    """Return the loss of each row, and the logarithm of each row's sum of exponentials.

    Args:
        logits: (rows, columns), floating, any strides.
        labels: (rows,), integers in [0, columns), or `ignore_index` for rows that do not count.
        weight: (columns,), floating, what losses of each class are multiplied by; None for 1.
        ignore_index: the label of rows whose loss is 0.
        label_smoothing: weight of the uniform distribution in the target, in [0, 1).

    Returns:
        (losses, lse), each (rows,), float64 for float64 logits and float32 otherwise.

    Raises:
        ValueError: shapes do not match, or label_smoothing is out of range.
        TypeError: logits are not floating or labels are not integers.

    >>> import numpy as np
    >>> losses, lse = cross_entropy_forward(np.zeros((2, 4), np.float32), np.array([1, 3]))
    >>> losses.round(4)
    array([1.3863, 1.3863], dtype=float32)
    """
    _check(logits, labels, weight, label_smoothing)
    dtype = accumulator_dtype(logits.dtype)
    losses, lse = empty(logits, labels.shape, dtype), empty(logits, labels.shape, dtype)
    launch_forward(logits, labels, weight, losses, lse, ignore_index, label_smoothing)
    return losses, lse


def cross_entropy_backward(ct, logits, labels, lse, weight=None, *, ignore_index=-100, label_smoothing=0.0):
    """Return the gradient of the logits for a cotangent of the losses.

    Args:
        ct: (rows,), the cotangent of each row's loss; any strides, 0 included.
        logits, labels, weight, ignore_index, label_smoothing: as given to `cross_entropy_forward`.
        lse: what `cross_entropy_forward` returned.

    Returns:
        A new array of the logits' shape and dtype.

    Raises:
        ValueError: shapes do not match, or label_smoothing is out of range.
        TypeError: logits are not floating or labels are not integers.

    >>> import numpy as np
    >>> logits, labels = np.zeros((1, 4), np.float32), np.array([1])
    >>> losses, lse = cross_entropy_forward(logits, labels)
    >>> cross_entropy_backward(np.ones(1, np.float32), logits, labels, lse)
    array([[ 0.25, -0.75,  0.25,  0.25]], dtype=float32)
    """
    _check(logits, labels, weight, label_smoothing)
    for name, array in (("ct", ct), ("lse", lse)):
        if array.shape != labels.shape:
            raise ValueError(f"{name}: got shape {array.shape}, expected {labels.shape}")
    dlogits = empty(logits, logits.shape, logits.dtype)
    launch_backward(ct, logits, labels, weight, lse, dlogits, ignore_index, label_smoothing)
    return dlogits


def launch_forward(logits, labels, weight, losses, lse, ignore_index, label_smoothing):
    """Write losses and lse of checked arguments into packed arrays or parts of them."""
    rows, columns = logits.shape
    block = block_for(columns, _LARGEST_BLOCK)
    launch(
        forward_kernel,
        (rows,),
        *(logits, labels, weight, losses, lse),
        *(columns, *strides(logits), *strides(labels), *_stride(weight), ignore_index),
        SMOOTHING=float(label_smoothing),
        **block_options(block, logits.dtype),
    )


def launch_backward(ct, logits, labels, weight, lse, dlogits, ignore_index, label_smoothing):
    """Write the gradient of checked arguments into a packed array of any type."""
    rows, columns = logits.shape
    class_total = reduce_forward(weight, "sum") if weight is not None and label_smoothing else None
    block = block_for(columns, _LARGEST_BLOCK)
    launch(
        backward_kernel,
        (rows * triton.cdiv(columns, block),),
        *(ct, logits, labels, weight, class_total, lse, dlogits),
        *(columns, *strides(ct), *strides(logits), *strides(labels), *_stride(weight), *strides(lse), ignore_index),
        SMOOTHING=float(label_smoothing),
        **block_options(block, logits.dtype),
    )


def _stride(weight):
    return (None,) if weight is None else strides(weight)


def check(shape, dtype, labels, weight, label_smoothing, name="logits"):
    """Refuse what does not fit logits of (rows, columns); `name` is what has their dtype."""
    if labels.shape != shape[:1]:
        raise ValueError(f"labels: got shape {labels.shape}, expected {shape[:1]}")
    if not np.issubdtype(labels.dtype, np.integer):
        raise TypeError(f"labels: got {labels.dtype}, expected integers")
    if dtype.kind not in "fV":
        raise TypeError(f"{name}: got {dtype}, expected a floating type")
    if weight is not None and weight.shape != shape[1:]:
        raise ValueError(f"weight: got shape {weight.shape}, expected {shape[1:]}")
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing: got {label_smoothing}, expected a number in [0, 1)")


def _check(logits, labels, weight, label_smoothing):
    if logits.ndim != 2:
        raise ValueError(f"logits: got shape {logits.shape}, expected (rows, columns)")
    check(logits.shape, logits.dtype, labels, weight, label_smoothing)

"""Cross-entropy of hidden @ weightᵀ without the matrix of logits or its gradient: a chunk of rows at a time.

Forward: the logits of a chunk are made, reduced to losses, and dropped. Backward: they are made again, their gradient
takes their place, and adds to the gradients of hidden and weight (Hsu et al., 2024, with recomputation as in Wijmans et
al., 2024). What is in memory at a time are the logits of one chunk. The weight's gradient is added up in float32.

What is decided at the edges is said in `cross_entropy.py`.
"""

from .cross_entropy import check, launch_backward, launch_forward
from .matmul import product
from .runtime import empty, zeros
from .tiling import accumulator_dtype

# Elements of a chunk's logits, at most: 128 MB of float32.
_LARGEST_CHUNK = 1 << 25
# Chunks begin at multiples of this many rows, so that their parts of arrays are aligned.
_ROWS = 16


def linear_cross_entropy_forward(
    hidden,
    weight,
    labels,
    class_weight=None,
    *,
    ignore_index=-100,
    label_smoothing=0.0,
    chunk=None,
    precision="ieee",
):
    """Return the cross-entropy of each row of hidden @ weightᵀ, and the logarithm of its sum of exponentials.

    Args:
        hidden: (rows, size), floating, any strides.
        weight: (columns, size), of hidden's type, any strides.
        labels: (rows,), integers in [0, columns), or `ignore_index` for rows that do not count.
        class_weight: (columns,), floating, what losses of each class are multiplied by; None for 1.
        ignore_index, label_smoothing: as in `cross_entropy_forward`.
        chunk: rows whose logits are in memory at a time; by the number of columns if None.
        precision: "ieee", "tf32" or "tf32x3", for float32 operands.

    Returns:
        (losses, lse), each (rows,), float64 for float64 and else float32.

    Raises:
        ValueError: shapes do not match, or an option is out of range.
        TypeError: hidden and weight differ in type, or labels are not integers.

    >>> import numpy as np
    >>> hidden, weight = np.zeros((2, 3), np.float32), np.zeros((4, 3), np.float32)
    >>> linear_cross_entropy_forward(hidden, weight, np.array([1, 3]))[0].round(4)
    array([1.3863, 1.3863], dtype=float32)
    """
    _check(hidden, weight, labels, class_weight, label_smoothing, chunk)
    dtype = accumulator_dtype(hidden.dtype)
    losses, lse = empty(hidden, labels.shape, dtype), empty(hidden, labels.shape, dtype)
    for part in _chunks(hidden, weight, chunk):
        logits = _logits(hidden[part], weight, precision)
        launch_forward(logits, labels[part], class_weight, losses[part], lse[part], ignore_index, label_smoothing)
    return losses, lse


def linear_cross_entropy_backward(
    ct,
    hidden,
    weight,
    labels,
    lse,
    class_weight=None,
    *,
    ignore_index=-100,
    label_smoothing=0.0,
    chunk=None,
    precision="ieee",
):
    """Return (dhidden, dweight) for a cotangent of the losses of `linear_cross_entropy_forward`.

    Args:
        ct: (rows,), any strides.
        hidden, weight, labels, class_weight and the options: as given to the forward pass.
        lse: as it returned it.
    """
    _check(hidden, weight, labels, class_weight, label_smoothing, chunk)
    if ct.shape != labels.shape:
        raise ValueError(f"ct: got shape {ct.shape}, expected {labels.shape}")
    parts = _chunks(hidden, weight, chunk)
    dhidden = empty(hidden, hidden.shape, hidden.dtype)
    dweight = None if parts else zeros(weight, weight.shape, weight.dtype)
    for part in parts:
        logits = _logits(hidden[part], weight, precision)
        change = empty(hidden, logits.shape, hidden.dtype)
        launch_backward(ct[part], logits, labels[part], class_weight, lse[part], change, ignore_index, label_smoothing)
        product(change, weight, out=dhidden[part], precision=precision)
        # Added up in the accumulator's type, and cast when the last chunk has been added.
        dtype = weight.dtype if part is parts[-1] else accumulator_dtype(weight.dtype)
        total = empty(weight, weight.shape, dtype)
        dweight = product(change.T, hidden[part], add=dweight, out=total, precision=precision)
    return dhidden, dweight


def _logits(hidden, weight, precision):
    logits = empty(hidden, (hidden.shape[0], weight.shape[0]), accumulator_dtype(hidden.dtype))
    return product(hidden, weight.T, out=logits, precision=precision)


def _chunks(hidden, weight, chunk):
    """Return the slices of rows that are worked on at a time."""
    rows = hidden.shape[0]
    if chunk is None:
        chunk = max(_ROWS, _LARGEST_CHUNK // max(1, weight.shape[0]) // _ROWS * _ROWS)
    return [slice(first, min(first + chunk, rows)) for first in range(0, rows, chunk)]


def _check(hidden, weight, labels, class_weight, label_smoothing, chunk):
    if hidden.ndim != 2 or weight.ndim != 2 or hidden.shape[1] != weight.shape[1]:
        raise ValueError(
            f"hidden, weight: got shapes {hidden.shape} and {weight.shape}, expected (rows, size) and (columns, size)"
        )
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk: got {chunk}, expected 1 or more rows")
    check((hidden.shape[0], weight.shape[0]), hidden.dtype, labels, class_weight, label_smoothing, name="hidden")

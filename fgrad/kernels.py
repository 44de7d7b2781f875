"""Operations that a hand-written kernel pair computes as well: `impl` chooses who does.

"numpy" is the definition, run by NumPy. "triton" launches the kernels of `fgrad.triton_kernels`: interpreted on NumPy
arrays, which is slow and for checking alone, or compiled on a GPU.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fgrad.kernel_op import KernelOp, kernel_op
from fgrad.numpy.arguments import as_array, cast
from fgrad.ops import kernels as k
from fgrad.ops import reduce, shape

__all__ = ["cross_entropy"]


def cross_entropy(
    logits: Any, labels: Any, *, ignore_index: int = -100, label_smoothing: float = 0.0, impl: str = "numpy"
) -> Any:
    """Return the softmax cross-entropy of rows of logits and their labels.

    Args:
        logits: (..., columns), floating.
        labels: (...), integers in [0, columns), or `ignore_index` for rows that do not count.
        ignore_index: the label of rows whose loss and gradient are 0.
        label_smoothing: weight of the uniform distribution in the target, in [0, 1). Source: Szegedy et al. (2016),
            section 7.
        impl: "numpy" or "triton".

    Returns:
        The losses, (...): float64 for float64 logits, float32 otherwise. A label that is no column gives NaN.

    Raises:
        TypeError: logits are not floating or labels are not integers.
        ValueError: shapes do not fit, label_smoothing is out of range, or there is no such `impl`.
        ImportError: `impl` is "triton", which is not installed.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.cross_entropy(np.zeros((2, 4)), np.array([1, 3])).round(4)
        array([1.3863, 1.3863])
    """
    logits, labels = as_array(logits), as_array(labels)
    if logits.dtype.kind not in "fV":
        raise TypeError(f"cross_entropy: logits must be floating, got {logits.dtype}")
    if labels.dtype.kind not in "iu":
        raise TypeError(f"cross_entropy: labels must be integers, got {labels.dtype}")
    if not logits.ndim or labels.shape != logits.shape[:-1] or not logits.shape[-1]:
        raise ValueError(
            "cross_entropy: logits must have shape (..., columns) with at least one column, and labels (...); got "
            f"{logits.shape} and {labels.shape}"
        )
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"cross_entropy: label_smoothing must be in [0, 1), got {label_smoothing}")
    op = _chosen("cross_entropy", impl, k.cross_entropy, _triton_cross_entropy)
    rows = shape.reshape(logits, shape=(labels.size, logits.shape[-1]))
    flat = cast(shape.reshape(labels, shape=(labels.size,)), np.int64)
    losses = op(rows, flat, ignore_index=int(ignore_index), label_smoothing=float(label_smoothing))
    return shape.reshape(losses, shape=labels.shape)


def _chosen(name: str, impl: str, numpy: Any, triton: Any) -> Any:
    if impl == "numpy":
        return numpy
    if impl == "triton":
        return triton()
    raise ValueError(f'{name}: impl must be "numpy" or "triton", got {impl!r}')


@functools.cache
def _triton_cross_entropy() -> KernelOp:
    from fgrad.triton_kernels import cross_entropy as pair  # here, for Triton is loaded when it is first used

    def forward(logits: Any, labels: Any, *, ignore_index: int = -100, label_smoothing: float = 0.0) -> Any:
        return pair.cross_entropy_forward(logits, labels, ignore_index=ignore_index, label_smoothing=label_smoothing)

    def backward(
        ct: Any, logits: Any, labels: Any, lse: Any, *, ignore_index: int = -100, label_smoothing: float = 0.0
    ) -> Any:
        return pair.cross_entropy_backward(
            ct, logits, labels, lse, ignore_index=ignore_index, label_smoothing=label_smoothing
        )

    return kernel_op(
        forward,
        backward,
        _cross_entropy_reference,
        name="cross_entropy",
        outputs=("losses", "lse"),
    )


def _cross_entropy_reference(logits: Any, labels: Any, *, ignore_index: int, label_smoothing: float) -> Any:
    losses = k.cross_entropy(logits, labels, ignore_index=ignore_index, label_smoothing=label_smoothing)
    return losses, reduce.logsumexp(cast(logits, losses.dtype), axes=(1,))

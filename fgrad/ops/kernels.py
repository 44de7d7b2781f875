"""Primitives that a hand-written kernel pair stands beside; here is what they mean, in other primitives.

`gpu` names the module of `fgrad.triton_kernels` that has the pair. Kernel and definition agree on values and gradients,
by test; how a kernel runs in place of the definition on a CPU is in `fgrad.kernel_op`.
"""

from __future__ import annotations

import numpy as np

from fgrad.kinds import composite
from fgrad.ops.along import take_along
from fgrad.ops.elementwise import exp_sub, logical_and, select
from fgrad.ops.reduce import logsumexp, reduce_sum
from fgrad.ops.shape import cast


def _wide(logits):
    """Return logits in the dtype that losses are computed and given in."""
    return logits if logits.dtype == np.float64 else cast(logits, dtype=np.dtype(np.float32))


def _column(labels, logits):
    """Return the labels as a column of valid indices, and which of them are columns of the logits."""
    valid = logical_and(labels >= 0, labels < logits.shape[1])
    return select(valid, labels, 0).reshape((logits.shape[0], 1)), valid


def _cross_entropy(logits, labels, *, ignore_index, label_smoothing):
    x = _wide(logits)
    at, valid = _column(labels, logits)
    target = take_along(x, at, axis=1).reshape(labels.shape)
    log_total = logsumexp(x, axes=(1,))
    hopeless = target == -np.inf
    loss = select(hopeless, np.inf, log_total - select(hopeless, 0.0, target))
    if label_smoothing:
        mean = reduce_sum(x, axes=(1,)) / logits.shape[1]
        loss = (1 - label_smoothing) * loss + label_smoothing * (log_total - mean)
    return select(labels == ignore_index, 0.0, select(valid, loss, np.nan))


def _cross_entropy_pull(ct, logits, labels, *, ignore_index, label_smoothing):
    x = _wide(logits)
    rows, columns = logits.shape
    at, valid = _column(labels, logits)
    probability = exp_sub(x, logsumexp(x, axes=(1,)).reshape((rows, 1)))
    target = cast(at == np.arange(columns), dtype=x.dtype)
    if label_smoothing:
        target = (1 - label_smoothing) * target + label_smoothing / columns
    gradient = select(valid.reshape((rows, 1)), ct.reshape((rows, 1)) * (probability - target), np.nan)
    return cast(select((labels == ignore_index).reshape((rows, 1)), 0.0, gradient), dtype=logits.dtype)


cross_entropy = composite(
    "cross_entropy",
    _cross_entropy,
    pull=_cross_entropy_pull,
    gpu="cross_entropy",
    doc="Softmax cross-entropy of each row of logits (rows, columns) and its label (rows,); its kernels' module says "
    "what is decided at the edges. Losses are float64 for float64 logits, float32 otherwise.",
)

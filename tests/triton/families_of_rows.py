"""The families that reduce rows: losses, softmax, norms, reductions."""

import numpy as np

from fgrad.triton_kernels import cross_entropy, norm, reduction, softmax
from tests.triton.family import Family, huge_rows, logits_and_labels, rows_of, softmax_loss


def _cross_entropy(name, smoothing):
    options = {"label_smoothing": smoothing}

    def reference(logits, labels):
        return softmax_loss(logits, labels, smoothing)

    def forward(logits, labels):
        return cross_entropy.cross_entropy_forward(logits, labels, **options)[0]

    def backward(ct, logits, labels):
        _, lse = cross_entropy.cross_entropy_forward(logits, labels, **options)
        return (cross_entropy.cross_entropy_backward(ct, logits, labels, lse, **options),)

    def huge(dtype):
        return np.zeros((70_000, 40_000), dtype), np.zeros(70_000, np.int64)

    return Family(name, forward, backward, reference, logits_and_labels, huge)


def _weighted_cross_entropy():
    def reference(logits, labels, weight):
        shifted = logits - logits.max(1, keepdims=True)
        loss = weight * (np.log(np.exp(shifted).sum(1, keepdims=True)) - shifted)
        target = np.take_along_axis(loss, np.maximum(labels, 0)[:, None], 1)[:, 0]
        return np.where(labels == -100, 0.0, 0.9 * target + 0.1 * loss.mean(1))

    def forward(logits, labels, weight):
        return cross_entropy.cross_entropy_forward(logits, labels, weight, label_smoothing=0.1)[0]

    def backward(ct, logits, labels, weight):
        _, lse = cross_entropy.cross_entropy_forward(logits, labels, weight, label_smoothing=0.1)
        return (cross_entropy.cross_entropy_backward(ct, logits, labels, lse, weight, label_smoothing=0.1),)

    def inputs(rng, dtype, rows, columns):
        return *logits_and_labels(rng, dtype, rows, columns), rng.uniform(0, 2, columns).astype(dtype)

    def huge(dtype):
        return np.zeros((70_000, 40_000), dtype), np.zeros(70_000, np.int64), np.zeros(40_000, dtype)

    return Family("cross_entropy weighted", forward, backward, reference, inputs, huge, tolerance=16.0)


def _softmax(log):
    forward = softmax.log_softmax_forward if log else softmax.softmax_forward
    pull = softmax.log_softmax_backward if log else softmax.softmax_backward

    def reference(x):
        shifted = x - x.max(1, keepdims=True)
        result = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        return result if log else np.exp(result)

    def backward(ct, x):
        return (pull(ct, forward(x)),)

    return Family("log_softmax" if log else "softmax", forward, backward, reference, rows_of, huge_rows)


def _scaled_rows(rng, dtype, rows, columns, parameters):
    x = 100 + 5 * rng.normal(size=(rows, columns))
    return tuple(array.astype(dtype) for array in (x, *rng.normal(1.0, 1.0, (parameters, columns))))


# The rows have mean 100 and deviation 5: the difference from the mean alone costs a factor of 20.
_NORM_TOLERANCE = 64.0


def _layer_norm():
    def reference(x, weight, bias):
        centered = x - x.mean(1, keepdims=True)
        return centered / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5) * weight + bias

    def backward(ct, x, weight, bias):
        _, mean, rstd = norm.layer_norm_forward(x, weight, bias)
        return norm.layer_norm_backward(ct, x, weight, bias, mean, rstd)

    return Family(
        "layer_norm",
        lambda x, weight, bias: norm.layer_norm_forward(x, weight, bias)[0],
        backward,
        reference,
        lambda rng, dtype, rows, columns: _scaled_rows(rng, dtype, rows, columns, 2),
        lambda dtype: (*huge_rows(dtype), np.zeros(40_000, dtype), np.zeros(40_000, dtype)),
        differentiable=(0, 1, 2),
        tolerance=_NORM_TOLERANCE,
    )


def _rms_norm():
    def reference(x, weight):
        return x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * weight

    def backward(ct, x, weight):
        _, rstd = norm.rms_norm_forward(x, weight)
        return norm.rms_norm_backward(ct, x, weight, rstd)

    return Family(
        "rms_norm",
        lambda x, weight: norm.rms_norm_forward(x, weight)[0],
        backward,
        reference,
        lambda rng, dtype, rows, columns: _scaled_rows(rng, dtype, rows, columns, 1),
        lambda dtype: (*huge_rows(dtype), np.zeros(40_000, dtype)),
        differentiable=(0, 1),
        tolerance=_NORM_TOLERANCE,
    )


def _group_norm():
    def reference(x, weight, bias):
        rows = x.reshape(len(x), 2, -1)
        centered = rows - rows.mean(2, keepdims=True)
        normal = centered / np.sqrt((centered**2).mean(2, keepdims=True) + 1e-5)
        return normal.reshape(x.shape) * weight[:, None] + bias[:, None]

    def backward(ct, x, weight, bias):
        _, mean, rstd = norm.group_norm_forward(x, weight, bias, groups=2)
        return norm.group_norm_backward(ct, x, weight, bias, mean, rstd, groups=2)

    def inputs(rng, dtype, rows, columns):
        x = 100 + 5 * rng.normal(size=(rows, 2 * columns, 3))
        return tuple(array.astype(dtype) for array in (x, *rng.normal(1.0, 1.0, (2, 2 * columns))))

    return Family(
        "group_norm",
        lambda x, weight, bias: norm.group_norm_forward(x, weight, bias, groups=2)[0],
        backward,
        reference,
        inputs,
        lambda dtype: (np.zeros((70_000, 20_000, 2), dtype), np.zeros(20_000, dtype), np.zeros(20_000, dtype)),
        differentiable=(0, 1, 2),
        reduces_rows=False,
        tolerance=_NORM_TOLERANCE,
        wide=(4097,),
    )


def _reduction(kind, value):
    def backward(ct, x):
        return (reduction.reduce_backward(ct, x, reduction.reduce_forward(x, kind), kind),)

    return Family(
        kind,
        lambda x: reduction.reduce_forward(x, kind),
        backward,
        value,
        rows_of,
        huge_rows,
        linear=kind in ("sum", "mean"),
    )


def _argmax():
    return Family(
        "argmax",
        reduction.argmax,
        lambda ct, x: (),
        lambda x: x.argmax(1),
        rows_of,
        huge_rows,
        differentiable=(),
        keeps_rows_apart=False,
        linear=True,
    )


def _logsumexp(x):
    shift = x.max(1)
    return np.log(np.exp(x - shift[:, None]).sum(1)) + shift


def _cumsum():
    return Family(
        "cumsum",
        reduction.cumsum_forward,
        lambda ct, x: (reduction.cumsum_backward(ct),),
        lambda x: x.cumsum(1),
        rows_of,
        huge_rows,
        reduces_rows=False,
        linear=True,
        tolerance=16.0,
    )


ROWS = [
    _cross_entropy("cross_entropy", 0.0),
    _cross_entropy("cross_entropy smoothed", 0.1),
    _weighted_cross_entropy(),
    _softmax(log=False),
    _softmax(log=True),
    _layer_norm(),
    _rms_norm(),
    _group_norm(),
    _reduction("sum", lambda x: x.sum(1)),
    _reduction("mean", lambda x: x.mean(1)),
    _reduction("max", lambda x: x.max(1)),
    _reduction("logsumexp", _logsumexp),
    _argmax(),
    _cumsum(),
]

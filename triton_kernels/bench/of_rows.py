"""The families that reduce rows: losses, softmax, norms, reductions."""

import numpy as np

from .. import cross_entropy, norm, reduction, softmax
from .workload import Workload, logits_and_labels, normal, of_one, rows_of, softmax_loss

_F = "torch.nn.functional"


def _cross_entropy(name, peers, **options):
    def reference(logits, labels):
        return softmax_loss(logits, labels, options.get("label_smoothing", 0.0))

    def run(logits, labels):
        loss, lse = cross_entropy.cross_entropy_forward(logits, labels, **options)
        return loss, (lse,)

    def pull(ct, saved, logits, labels):
        return (cross_entropy.cross_entropy_backward(ct, logits, labels, *saved, **options),)

    return Workload(name, run, pull, reference, logits_and_labels, peers=peers)


def _weighted_cross_entropy():
    options = {"label_smoothing": 0.1}

    def reference(logits, labels, weight):
        labels = labels.astype(np.int64)
        shifted = logits - logits.max(1, keepdims=True)
        loss = weight * (np.log(np.exp(shifted).sum(1, keepdims=True)) - shifted)
        target = np.take_along_axis(loss, np.maximum(labels, 0)[:, None], 1)[:, 0]
        return np.where(labels == -100, 0.0, 0.9 * target + 0.1 * loss.mean(1))

    def run(logits, labels, weight):
        loss, lse = cross_entropy.cross_entropy_forward(logits, labels, weight, **options)
        return loss, (lse,)

    def pull(ct, saved, logits, labels, weight):
        return (cross_entropy.cross_entropy_backward(ct, logits, labels, *saved, weight, **options),)

    def inputs(rng, dtype, rows, columns):
        return *logits_and_labels(rng, dtype, rows, columns), rng.uniform(0, 2, columns).astype(dtype)

    return Workload("cross_entropy weighted", run, pull, reference, inputs, flops=6)


def _softmax(log):
    forward = softmax.log_softmax_forward if log else softmax.softmax_forward
    pull = softmax.log_softmax_backward if log else softmax.softmax_backward

    def reference(x):
        shifted = x - x.max(1, keepdims=True)
        result = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        return result if log else np.exp(result)

    def run(x):
        out = forward(x)
        return out, (out,)

    name = "log_softmax" if log else "softmax"
    peers = {"torch": f"lambda x: {_F}.{name}(x, -1)"}
    if not log:
        peers["liger"] = "liger_kernel.transformers.functional.liger_softmax"
    return Workload(name, run, lambda ct, saved, x: (pull(ct, *saved),), reference, rows_of, peers=peers)


def _scaled_rows(rng, dtype, rows, columns, parameters):
    """Draw rows of mean 100 and deviation 5, and parameters."""
    x = normal(rng, (rows, columns), dtype, 5, 100)
    return x, *(normal(rng, (columns,), dtype, 1, 1) for _ in range(parameters))


def _layer_norm():
    def reference(x, weight, bias):
        centered = x - x.mean(1, keepdims=True)
        return centered / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5) * weight + bias

    def run(x, weight, bias):
        out, *saved = norm.layer_norm_forward(x, weight, bias)
        return out, tuple(saved)

    return Workload(
        "layer_norm",
        run,
        lambda ct, saved, *arrays: norm.layer_norm_backward(ct, *arrays, *saved),
        reference,
        lambda rng, dtype, rows, columns: _scaled_rows(rng, dtype, rows, columns, 2),
        differentiable=(0, 1, 2),
        flops=8,
        peers={"torch": f"lambda x, w, b: {_F}.layer_norm(x, x.shape[-1:], w, b)"},
    )


def _rms_norm():
    def reference(x, weight):
        return x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * weight

    def run(x, weight):
        out, rstd = norm.rms_norm_forward(x, weight)
        return out, (rstd,)

    return Workload(
        "rms_norm",
        run,
        lambda ct, saved, *arrays: norm.rms_norm_backward(ct, *arrays, *saved),
        reference,
        lambda rng, dtype, rows, columns: _scaled_rows(rng, dtype, rows, columns, 1),
        differentiable=(0, 1),
        peers={
            "torch": f"lambda x, w: {_F}.rms_norm(x, x.shape[-1:], w, 1e-6)",
            "liger": "lambda x, w: liger_kernel.transformers.functional.liger_rms_norm(x, w, 1e-6)",
        },
    )


def _group_norm():
    def reference(x, weight, bias):
        rows = x.reshape(len(x), 2, -1)
        centered = rows - rows.mean(2, keepdims=True)
        normalized = centered / np.sqrt((centered**2).mean(2, keepdims=True) + 1e-5)
        return normalized.reshape(x.shape) * weight[:, None] + bias[:, None]

    def run(x, weight, bias):
        out, *saved = norm.group_norm_forward(x, weight, bias, groups=2)
        return out, tuple(saved)

    def inputs(rng, dtype, rows, columns):
        x = normal(rng, (rows, 2 * columns, 3), dtype, 5, 100)
        return x, *(normal(rng, (2 * columns,), dtype, 1, 1) for _ in range(2))

    return Workload(
        "group_norm",
        run,
        lambda ct, saved, *arrays: norm.group_norm_backward(ct, *arrays, *saved, groups=2),
        reference,
        inputs,
        differentiable=(0, 1, 2),
        flops=8,
        peers={"torch": f"lambda x, w, b: {_F}.group_norm(x, 2, w, b)"},
    )


def _reduction(kind, value, torch):
    def run(x):
        out = reduction.reduce_forward(x, kind)
        return out, (out,)

    def pull(ct, saved, x):
        return (reduction.reduce_backward(ct, x, *saved, kind),)

    peers = {"torch": f"lambda x: x.{torch}"}
    return Workload(kind, run, pull, value, rows_of, flops=4 if kind == "logsumexp" else 1, more=1, peers=peers)


def _logsumexp(x):
    shift = x.max(1)
    return np.log(np.exp(x - shift[:, None]).sum(1)) + shift


def _argmax():
    return Workload(
        "argmax",
        **of_one(reduction.argmax),
        reference=lambda x: x.argmax(1),
        inputs=rows_of,
        differentiable=(),
        flops=1,
        peers={"torch": "lambda x: x.argmax(-1)"},
    )


def _cumsum():
    return Workload(
        "cumsum",
        **of_one(reduction.cumsum_forward, lambda ct, x: (reduction.cumsum_backward(ct),)),
        reference=lambda x: x.cumsum(1),
        inputs=rows_of,
        flops=1,
        more=1,
        peers={"torch": "lambda x: x.cumsum(-1)"},
    )


_LOSS = "reduction='none'"
ROWS = [
    _cross_entropy("cross_entropy", {"torch": f"lambda x, labels: {_F}.cross_entropy(x, labels, {_LOSS})"}),
    _cross_entropy(
        "cross_entropy smoothed",
        {"torch": f"lambda x, labels: {_F}.cross_entropy(x, labels, {_LOSS}, label_smoothing=0.1)"},
        label_smoothing=0.1,
    ),
    _weighted_cross_entropy(),
    _softmax(log=False),
    _softmax(log=True),
    _layer_norm(),
    _rms_norm(),
    _group_norm(),
    _reduction("sum", lambda x: x.sum(1), "sum(-1)"),
    _reduction("mean", lambda x: x.mean(1), "mean(-1)"),
    _reduction("max", lambda x: x.max(1), "amax(-1)"),
    _reduction("logsumexp", _logsumexp, "logsumexp(-1)"),
    _argmax(),
    _cumsum(),
]

"""Primitives that a hand-written kernel pair stands beside; here is what they mean, in other primitives.

`gpu` names the module of `fgrad.triton_kernels` that has the pair. Kernel and definition agree on values and gradients,
by test; how a kernel runs in place of the definition on a CPU is in `fgrad.kernel_pair`.
"""

from __future__ import annotations

import math

import numpy as np

from fgrad.core import ArrayType
from fgrad.kinds import composite, constant
from fgrad.ops.along import take_along
from fgrad.ops.elementwise import exp, exp_sub, log, logical_and, rsqrt, select, square, tanh
from fgrad.ops.reduce import kept, logsumexp, reduce_max, reduce_sum
from fgrad.ops.shape import cast, stop_gradient


def _shift_axes(size, *, axes, **params):
    return {"axes": tuple([a + 1 for a in axes]), **params}


# ------------------------------------------------------------------------------------------------ over axes


def _below_largest(x, axes):
    """Return x less its maximum, which no difference of two x sees, in a dtype wide enough for sums of exponentials."""
    wide = cast(x, dtype=np.dtype(np.float32)) if x.dtype.itemsize < 4 else x
    return wide - stop_gradient(kept(reduce_max(wide, axes=axes), wide, axes))


def _narrowed(wide, x):
    return wide if wide.dtype == x.dtype else cast(wide, dtype=x.dtype)


def _softmax(x, *, axes):
    if 0 in x.shape:
        return exp(x)
    powers = exp(_below_largest(x, axes))
    return _narrowed(powers / kept(reduce_sum(powers, axes=axes), powers, axes), x)


def _softmax_pull(ct, out, *, axes):
    weighted = ct * out
    return weighted - out * kept(reduce_sum(weighted, axes=axes), out, axes)


softmax = composite(
    "softmax",
    _softmax,
    pull=_softmax_pull,
    shift=_shift_axes,
    gpu="softmax",
    doc="exp(x) divided by its sum over axes; NaN where the largest x is infinite.",
)


def _log_softmax(x, *, axes):
    if 0 in x.shape:
        return exp(x)
    below = _below_largest(x, axes)
    return _narrowed(below - log(kept(reduce_sum(exp(below), axes=axes), below, axes)), x)


log_softmax = composite(
    "log_softmax",
    _log_softmax,
    pull=lambda ct, out, *, axes: ct - exp(out) * kept(reduce_sum(ct, axes=axes), out, axes),
    shift=_shift_axes,
    gpu="softmax",
    doc="The logarithm of softmax, also where that underflows; NaN where the largest x is infinite.",
)


def _mean(x, axes):
    count = math.prod([x.shape[a] for a in axes])
    return kept(reduce_sum(x, axes=axes), x, axes) / max(count, 1)


def _centred_and_scale(x, axes, epsilon):
    """Return x without its mean, and one over its standard deviation."""
    centred = x - _mean(x, axes)
    return centred, rsqrt(_mean(square(centred), axes) + epsilon)


def _standardize(x, *, axes, epsilon):
    centred, scale = _centred_and_scale(x, axes, epsilon)
    return centred * scale


def _standardize_pull(ct, x, out, *, axes, epsilon):
    _, scale = _centred_and_scale(x, axes, epsilon)
    return (ct - _mean(ct, axes) - out * _mean(ct * out, axes)) * scale


standardize = composite(
    "standardize",
    _standardize,
    pull=_standardize_pull,
    shift=_shift_axes,
    doc="x with mean 0 and variance 1 over axes: (x - mean) / sqrt(variance + epsilon).",
)

# ------------------------------------------------------------------------------------------------ activations

_SCALE = math.sqrt(2 / math.pi)
_CUBIC = 0.044715


def _bend(x):
    """Return tanh of the odd cubic, and that cubic over x."""
    slope = _SCALE + _SCALE * _CUBIC * square(x)
    return tanh(x * slope), slope


def _gelu_tanh_pull(ct, x):
    bent, slope = _bend(x)
    steep = (1 - square(bent)) * (3 * slope - 2 * _SCALE)
    return ct * (0.5 * (1 + bent + x * steep))


gelu_tanh = composite(
    "gelu_tanh",
    lambda x: 0.5 * x * (1 + _bend(x)[0]),
    pull=_gelu_tanh_pull,
    gpu="activation",
    doc="x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), an approximation of x times the normal distribution function.",
)

# ------------------------------------------------------------------------------------------------ losses


def _wide(logits):
    """Return logits in the dtype that losses are computed and given in."""
    return logits if logits.dtype == np.float64 else cast(logits, dtype=np.dtype(np.float32))


def _column(labels, logits):
    """Return the labels as a column of valid indices, and which of them are columns of the logits."""
    valid = logical_and(labels >= 0, labels < logits.shape[1])
    return select(valid, labels, 0).reshape((logits.shape[0], 1)), valid


def _plain_log_totals(logits, labels, ignore_index, label_smoothing):
    """Return logsumexp of rows as a column, where losses are the formula alone: None where there is more to decide.

    That is on plain arrays, every label a column that counts, with a finite maximum in each row.
    """
    if logits.__class__ is not np.ndarray or labels.__class__ is not np.ndarray or label_smoothing:
        return None
    columns = logits.shape[1]
    if logits.dtype.kind != "f" or logits.dtype.itemsize < 4 or not labels.size or 0 <= ignore_index < columns:
        return None
    if labels.shape != logits.shape[:1]:
        return None
    if labels.min() < 0 or labels.max() >= columns:
        return None
    top = np.maximum.reduce(logits, 1, keepdims=True)
    if not np.isfinite(top).all():
        return None
    below = logits - top
    total = np.add.reduce(np.exp(below, below), 1, keepdims=True)
    return np.log(total, total) + top


def _cross_entropy(logits, labels, *, ignore_index, label_smoothing):
    log_total = _plain_log_totals(logits, labels, ignore_index, label_smoothing)
    if log_total is not None:
        return log_total[:, 0] - logits[np.arange(labels.size), labels]
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
    log_total = _plain_log_totals(logits, labels, ignore_index, label_smoothing)
    if log_total is not None and ct.__class__ is np.ndarray:
        gradient = logits - log_total
        np.exp(gradient, gradient)[np.arange(labels.size), labels] -= 1
        return np.multiply(gradient, ct[:, None], gradient)
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


# ------------------------------------------------------------------------------------------------- counter-based bits


_PHILOX = ((0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85))  # multipliers and what raises the keys (Random123)
_WORD = np.uint64(0xFFFFFFFF)


def _philox(seed, number):
    """Return the first of the four words that ten rounds of Philox 4x32 make of a counter."""
    (a, b), raised = [tuple(map(np.uint64, pair)) for pair in _PHILOX]
    counter, key = number.astype(np.uint64), seed.astype(np.uint64)
    half = np.uint64(32)
    c0, c1, c2, c3 = counter & _WORD, counter >> half, np.uint64(0), np.uint64(0)
    keys = [key & _WORD, key >> half]
    for _ in range(10):
        low, high = a * c0, b * c2
        c0, c1, c2, c3 = (high >> half) ^ c1 ^ keys[0], high & _WORD, (low >> half) ^ c3 ^ keys[1], low & _WORD
        keys = [(k + more) & _WORD for k, more in zip(keys, raised, strict=True)]
    return c0


def _philox_kept(seed, number, *, rate):
    word = _philox(np.asarray(seed), np.asarray(number)).astype(np.uint32).view(np.int32)
    uniform = np.where(word < 0, ~word, word) * np.float32(4.6566127342e-10)
    return uniform >= np.float32(rate)


philox_kept = constant(
    "philox_kept",
    _philox_kept,
    type=lambda seed, number, **params: ArrayType(number.shape, np.dtype(bool)),
    gpu="tl.rand(x, y) >= rate",
    doc="Which of the numbered elements dropout keeps: those whose bits, of a seed and the number, are at least the "
    "rate, as Triton's `tl.rand` makes them (Philox 4x32-10, Salmon et al., 2011).",
)

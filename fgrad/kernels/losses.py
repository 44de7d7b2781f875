"""Cross-entropy of logits, and of the product that makes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fgrad.kernels.pairs import takes_tensors, wide, with_kernels
from fgrad.numpy.arguments import as_array, cast
from fgrad.ops import elementwise as e
from fgrad.ops import kernels as k
from fgrad.ops import reduce as r
from fgrad.ops import shape as s


def _log_totals(logits: Any, labels: Any, weight: Any, **options: Any) -> tuple[Any]:
    return (r.logsumexp(wide(logits), axes=(1,)),)


@with_kernels(
    "cross_entropy.cross_entropy",
    called="cross_entropy",
    wrt=("logits",),
    outputs=("losses", "lse"),
    extras=_log_totals,
)
def cross_entropy_of_rows(
    logits: Any, labels: Any, weight: Any = None, *, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Any:
    """Return the losses of `cross_entropy` for logits (rows, columns) and labels (rows,)."""
    options = {"ignore_index": ignore_index}
    if weight is None:
        return k.cross_entropy(logits, labels, label_smoothing=label_smoothing, **options)
    return _weighted(logits, labels, wide(weight), label_smoothing, options)


def _weighted(logits: Any, labels: Any, weight: Any, smoothing: float, options: dict[str, Any]) -> Any:
    """Return losses whose terms are multiplied by the weights of their classes; a class without weight gives none."""
    losses = k.cross_entropy(logits, labels, label_smoothing=0.0, **options)
    mine = _of_labels(weight, labels)
    losses = e.select(e.eq(mine, 0), 0.0, e.mul(mine, losses))
    if not smoothing:
        return losses
    x, columns = wide(logits), logits.shape[1]
    share = e.select(e.eq(weight, 0), 0.0, e.mul(weight, x))
    whole = e.mul(r.reduce_sum(weight, axes=(0,)), r.logsumexp(x, axes=(1,)))
    uniform = e.div(e.sub(whole, r.reduce_sum(share, axes=(1,))), columns)
    mixed = e.add(e.mul(1 - smoothing, losses), e.mul(smoothing, uniform))
    return e.select(e.eq(labels, options["ignore_index"]), 0.0, mixed)


def _of_labels(weight: Any, labels: Any) -> Any:
    """Return the weight of each label; 1 for what is no class, whose loss is 0 or NaN without it."""
    valid = e.logical_and(e.ge(labels, 0), e.lt(labels, weight.shape[0]))
    return e.select(valid, weight[e.select(valid, labels, 0)], 1.0)


@takes_tensors
def cross_entropy(
    logits: Any,
    labels: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "none",
    impl: str | None = None,
) -> Any:
    """Return the softmax cross-entropy of rows of logits and their labels.

    Args:
        logits: (..., columns), floating.
        labels: (...), integers in [0, columns), or `ignore_index` for rows that do not count.
        weight: (columns,), floating, what losses of each class are multiplied by; None for 1.
        ignore_index: the label of rows whose loss and gradient are 0.
        label_smoothing: weight of the uniform distribution in the target, in [0, 1). Source: Szegedy et al. (2016),
            section 7.
        reduction: "none", "sum", or "mean" over the weights of the labels that count; 0 if none does.
        impl: "numpy" or "triton".

    Returns:
        The losses, (...), or one number: float64 for float64 logits, float32 otherwise. A label that is no column
        gives NaN.

    Raises:
        TypeError: logits are not floating or labels are not integers.
        ValueError: shapes do not fit, label_smoothing is out of range, or there is no such `reduction` or `impl`.
        ImportError: `impl` is "triton", which is not installed.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.kernels.cross_entropy(np.zeros((2, 4)), np.array([1, 3])).round(4)
        array([1.3863, 1.3863])
    """
    logits, labels = as_array(logits), as_array(labels)
    if logits.dtype.kind not in "fV":
        raise TypeError(f"cross_entropy: logits must be floating, got {logits.dtype}")
    if not logits.ndim or labels.shape != logits.shape[:-1] or not logits.shape[-1]:
        raise ValueError(
            "cross_entropy: logits must have shape (..., columns) with at least one column, and labels (...); got "
            f"{logits.shape} and {labels.shape}"
        )
    weight = _check("cross_entropy", labels, weight, logits.shape[-1], label_smoothing, reduction)
    rows = s.reshape(logits, shape=(labels.size, logits.shape[-1]))
    losses = cross_entropy_of_rows(
        rows,
        _flat(labels),
        weight,
        ignore_index=int(ignore_index),
        label_smoothing=float(label_smoothing),
        impl=impl,
    )
    return _reduced(s.reshape(losses, shape=labels.shape), labels, weight, ignore_index, reduction)


def _flat(labels: Any) -> Any:
    return cast(s.reshape(labels, shape=(labels.size,)), np.int64)


def _check(name: str, labels: Any, weight: Any, columns: int, smoothing: float, reduction: str) -> Any:
    """Refuse what does not fit; return the weights of classes as an array, or None."""
    if labels.dtype.kind not in "iu":
        raise TypeError(f"{name}: labels must be integers, got {labels.dtype}")
    if not 0 <= smoothing < 1:
        raise ValueError(f"{name}: label_smoothing must be in [0, 1), got {smoothing}")
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f'{name}: reduction must be "none", "sum" or "mean", got {reduction!r}')
    if weight is None:
        return None
    weight = as_array(weight)
    if weight.shape != (columns,) or weight.dtype.kind not in "fV":
        raise ValueError(
            f"{name}: weights of classes must be floating of shape {(columns,)}, got {weight.dtype} of {weight.shape}"
        )
    return weight


def _reduced(losses: Any, labels: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    if reduction == "none":
        return losses
    total = r.reduce_sum(losses, axes=tuple(range(losses.ndim)))
    if reduction == "sum":
        return total
    counts = np.ones((), losses.dtype) if weight is None else _of_labels(wide(weight), labels)
    counts = e.select(e.eq(labels, ignore_index), 0.0, cast(counts, losses.dtype))
    count = r.reduce_sum(s.broadcast(counts, shape=losses.shape), axes=tuple(range(losses.ndim)))
    return e.select(e.eq(count, 0), 0.0, e.div(total, e.select(e.eq(count, 0), 1.0, count)))


def _log_totals_of_product(hidden: Any, weight: Any, labels: Any, class_weight: Any, **options: Any) -> tuple[Any]:
    return (r.logsumexp(_logits(hidden, weight), axes=(1,)),)


def _logits(hidden: Any, weight: Any) -> Any:
    return wide(hidden) @ s.transpose(wide(weight), perm=(1, 0))


@with_kernels(
    "linear_cross_entropy.linear_cross_entropy",
    called="linear_cross_entropy",
    wrt=("hidden", "weight"),
    outputs=("losses", "lse"),
    extras=_log_totals_of_product,
)
def linear_cross_entropy_of_rows(
    hidden: Any,
    weight: Any,
    labels: Any,
    class_weight: Any = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    chunk: int | None = None,
    precision: str = "ieee",
) -> Any:
    """Return the losses of `linear_cross_entropy` for hidden (rows, size) and labels (rows,)."""
    options = {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
    return cross_entropy_of_rows(_logits(hidden, weight), labels, class_weight, **options)


@takes_tensors
def linear_cross_entropy(
    hidden: Any,
    weight: Any,
    labels: Any,
    class_weight: Any = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "none",
    chunk: int | None = None,
    precision: str = "ieee",
    impl: str | None = None,
) -> Any:
    """Return the cross-entropy of the logits hidden @ weightᵀ; kernels never hold them, or their gradient, in full.

    Args:
        hidden: (..., size), floating.
        weight: (columns, size), of hidden's type.
        labels, ignore_index, label_smoothing, reduction: as in `cross_entropy`.
        class_weight: (columns,), the `weight` of `cross_entropy`.
        chunk: rows whose logits are in memory at a time, by kernels; by the number of columns if None.
        precision: of float32 products on a GPU, as in `matmul`.
        impl: "numpy" or "triton".

    Returns:
        The losses, (...), or one number: float64 for float64, float32 otherwise.

    Raises:
        TypeError: hidden is not floating, weight has another type, or labels are not integers.
        ValueError: shapes do not fit, or an option is out of range.

    Source: Hsu et al., arXiv 2410.10989.

    Example:
        >>> import numpy as np, fgrad
        >>> hidden, weight, labels = np.zeros((2, 3)), np.zeros((4, 3)), np.array([1, 3])
        >>> fgrad.kernels.linear_cross_entropy(hidden, weight, labels, reduction="mean").round(4)
        np.float64(1.3863)
    """
    name = "linear_cross_entropy"
    hidden, weight, labels = as_array(hidden), as_array(weight), as_array(labels)
    if hidden.dtype.kind not in "fV" or weight.dtype != hidden.dtype:
        raise TypeError(f"{name}: hidden and weight must have one floating type, got {hidden.dtype}, {weight.dtype}")
    if weight.ndim != 2 or not hidden.ndim or hidden.shape[-1] != weight.shape[1] or not weight.shape[0]:
        raise ValueError(
            f"{name}: hidden and weight must be (..., size) and (columns, size), got {hidden.shape} and {weight.shape}"
        )
    if labels.shape != hidden.shape[:-1]:
        raise ValueError(f"{name}: labels must have shape {hidden.shape[:-1]}, got {labels.shape}")
    class_weight = _check(name, labels, class_weight, weight.shape[0], label_smoothing, reduction)
    losses = linear_cross_entropy_of_rows(
        s.reshape(hidden, shape=(math.prod(labels.shape), hidden.shape[-1])),
        weight,
        _flat(labels),
        class_weight,
        ignore_index=int(ignore_index),
        label_smoothing=float(label_smoothing),
        chunk=chunk,
        precision=precision,
        impl=impl,
    )
    return _reduced(s.reshape(losses, shape=labels.shape), labels, class_weight, ignore_index, reduction)

"""`torch.nn.functional`: activations, losses, normalisation and the like, as plain functions.

Formulas of fgrad's values; `composed` makes them functions of tensors.
"""

from __future__ import annotations

import numpy as np

import fgrad.numpy as fnp
from fgrad.extend import TABLE as P
from fgrad.extend import Tracer, on_gpu

from .. import devices
from ..devices import beside as _beside
from ..methods.random import drawn as _drawn
from ..methods.random import source as _source
from ..methods.reduce import log_softmax as _log_softmax_of
from ..methods.reduce import mean as _mean
from ..methods.reduce import positions as _positions
from ..methods.reduce import softmax as _softmax_of
from ..methods.reduce import sum as _sum
from ..methods.reduce import vector_norm as _vector_norm
from ..methods.steps import named, quick, shown_as_one, steps
from ..methods.table import FUNCTIONS, check_broadcast, composed, in_place
from ..tape import NO_PARAMS, clock, place_of
from ..tensor import Tensor as _Tensor
from ..tensor import normal_dim as _normal_dim
from ..tensor import wrap as _wrap

# ---------------------------------------------------------------------------------------------------- activations


def _activation(fun, node):
    """Return an activation as torch has it, with `inplace=`: of a formula, recorded as `node`."""
    return _with_inplace(composed(fun, node), fun.__name__)


def _with_inplace(call, name):
    write = in_place(call, name)

    def activation(input, *args, inplace=False, **kwargs):
        return write(input, *args, **kwargs) if inplace else call(input, *args, **kwargs)

    activation.__name__ = name
    activation.in_place = write
    return activation


relu = _with_inplace(FUNCTIONS["relu"], "relu")
leaky_relu = _activation(
    lambda input, negative_slope=0.01: np.where(input > 0, input, input * negative_slope), "LeakyReluBackward0"
)
elu = _activation(
    lambda input, alpha=1.0: np.where(input > 0, input, alpha * P["expm1"](np.where(input > 0, 0, input))),
    "EluBackward0",
)
celu = _activation(
    lambda input, alpha=1.0: np.where(input > 0, input, alpha * P["expm1"](np.where(input > 0, 0, input) / alpha)),
    "CeluBackward0",
)
selu = _activation(
    lambda input: (
        1.0507009873554805 * np.where(input > 0, input, 1.6732632423543772 * P["expm1"](np.where(input > 0, 0, input)))
    ),
    "EluBackward0",
)
silu = _activation(lambda input: input * P["sigmoid"](input), "SiluBackward0")
mish = _activation(lambda input: input * P["tanh"](P["softplus"](input)), "MishBackward0")
relu6 = _activation(lambda input: np.clip(input, 0, 6), "HardtanhBackward0")
hardtanh = _activation(lambda input, min_val=-1.0, max_val=1.0: np.clip(input, min_val, max_val), "HardtanhBackward0")
hardsigmoid = _activation(lambda input: np.clip(input + 3, 0, 6) / 6, "HardsigmoidBackward0")
hardswish = _activation(lambda input: input * np.clip(input + 3, 0, 6) / 6, "HardswishBackward0")
threshold = _activation(
    lambda input, threshold, value: np.where(input > threshold, input, np.asarray(value, input.dtype)),
    "ThresholdBackward0",
)
relu_, leaky_relu_, elu_, celu_, threshold_ = (f.in_place for f in (relu, leaky_relu, elu, celu, threshold))
tanh = FUNCTIONS["tanh"]
sigmoid = FUNCTIONS["sigmoid"]
softmax = FUNCTIONS["softmax"]
log_softmax = FUNCTIONS["log_softmax"]


def _gelu(input, approximate="none"):
    if approximate == "tanh":
        return P["gelu_tanh"](input)
    return 0.5 * input * (1 + P["erf"](input * 0.7071067811865476))


gelu = composed(_gelu, "GeluBackward0")


def _softplus(input, beta=1.0, threshold=20.0):
    scaled = input * beta
    return np.where(scaled > threshold, input, P["softplus"](scaled) / beta)


softplus = composed(_softplus, "SoftplusBackward0")
logsigmoid = composed(lambda input: P["log_sigmoid"](input), "LogSigmoidBackward0")
softsign = composed(lambda input: input / (1 + P["abs"](input)), "DivBackward0")
tanhshrink = composed(lambda input: input - P["tanh"](input), "SubBackward0")
softmin = composed(lambda input, dim=None: _softmax_of(-input, dim), "SoftmaxBackward0")
hardshrink = composed(lambda input, lambd=0.5: np.where(P["abs"](input) > lambd, input, 0), "HardshrinkBackward0")
softshrink = composed(
    lambda input, lambd=0.5: np.where(input > lambd, input - lambd, np.where(input < -lambd, input + lambd, 0 * input)),
    "SoftshrinkBackward0",
)
prelu = composed(
    lambda input, weight: np.where(
        input > 0,
        input,
        input * (weight.reshape((1, -1, *(1,) * (input.ndim - 2))) if weight.size > 1 else weight.reshape(())),
    ),
    "PreluKernelBackward0",
)
FUNCTIONS["hardshrink"] = _Tensor.hardshrink = hardshrink
FUNCTIONS["prelu"] = _Tensor.prelu = prelu
glu = composed(lambda input, dim=-1: _glu(input, dim), "GluBackward0")


def _glu(input, dim):
    a, b = np.split(input, 2, axis=_normal_dim(dim, input.ndim))
    return a * P["sigmoid"](b)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Leaky ReLU with a slope drawn for each element in training, and the mean slope otherwise."""
    slope = (lower + upper) / 2
    if training:
        slope = _drawn(_source(None).uniform(lower, upper, input._data.shape).astype(input._data.dtype), input)
    return leaky_relu(input, slope, inplace=inplace)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """`rrelu`, in place."""
    return rrelu(input, lower, upper, training, True)


# ------------------------------------------------------------------------------------------------ linear and friends


def linear(input, weight, bias=None):
    """Return input @ weight.T + bias."""
    out = FUNCTIONS["matmul"](input, weight.t())
    return out if bias is None else out + bias


def bilinear(input1, input2, weight, bias=None):
    """Return for each output k the form input1 @ weight[k] @ input2."""
    out = FUNCTIONS["einsum"]("...i,kij,...j->...k", input1, weight, input2)
    return out if bias is None else out + bias


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Return the rows of `weight` that `input` numbers; the row `padding_idx` gets no gradient."""
    return _embedding(weight, input, padding_idx)


def _embedding_of(weight, input, padding_idx):
    rows = np.take(weight, input, 0)
    if padding_idx is None:
        return rows
    still = (input == padding_idx % weight.shape[0])[..., None]
    return np.where(still, _stopped(rows), rows)


def _stopped(x):
    return P["stop_gradient"](x)


_embedding = composed(_embedding_of, "EmbeddingBackward0")


def one_hot(tensor, num_classes=-1):
    """Return vectors with a 1 at the place that each entry numbers."""
    classes = int(tensor._data.max()) + 1 if num_classes == -1 else num_classes
    return _wrap((tensor._data[..., None] == _beside(tensor._data, np.arange(classes))).astype(np.int64))


def dropout(input, p=0.5, training=True, inplace=False):
    """Zero elements with probability p and scale the rest by 1 / (1 - p), in training."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    kept = (_source(None).random(input._data.shape) >= p).astype(input._data.dtype)
    mask = _drawn(kept if p == 1 else kept / np.asarray(1 - p, kept.dtype), input)
    return input.mul_(mask) if inplace else input * mask


def _normalize(input, p=2.0, dim=1, eps=1e-12):
    norms = _vector_norm(input, p, dim, True)
    return input / np.where(norms > eps, norms, np.asarray(eps, input.dtype))


normalize = composed(_normalize, "DivBackward0")


def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    over = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    out = P["standardize"](input, axes=over, epsilon=eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def _batch_norm(input, running_mean, running_var, weight, bias, training, eps):
    axes = (0, *range(2, input.ndim))
    shape = (1, -1, *(1,) * (input.ndim - 2))
    if training:
        mean = _mean(input, axes, True)
        variance = _mean((input - mean) * (input - mean), axes, True)
    else:
        mean, variance = running_mean.reshape(shape), running_var.reshape(shape)
    out = (input - mean) * P["rsqrt"](variance + np.asarray(eps, input.dtype))
    out = out if weight is None else out * weight.reshape(shape)
    return out if bias is None else out + bias.reshape(shape)


def _group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    grouped = input.reshape((input.shape[0], num_groups, -1))
    out = _layer_norm(grouped, (grouped.shape[-1],), eps=eps).reshape(input.shape)
    shape = (1, -1, *(1,) * (input.ndim - 2))
    out = out if weight is None else out * weight.reshape(shape)
    return out if bias is None else out + bias.reshape(shape)


layer_norm = composed(_layer_norm, "NativeLayerNormBackward0")
group_norm = composed(_group_norm, "NativeGroupNormBackward0")
_normalized_batch = composed(_batch_norm, "NativeBatchNormBackward0")


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Normalise over all dimensions but the second; in training running statistics are updated in place."""
    out = _normalized_batch(input, running_mean, running_var, weight, bias, training, eps)
    if training and running_mean is not None:
        axes = (0, *range(2, input._data.ndim))
        running_mean.data.mul_(1 - momentum).add_(_wrap(momentum * input._data.mean(axes)).to(running_mean.dtype))
        running_var.data.mul_(1 - momentum).add_(_wrap(momentum * input._data.var(axes, ddof=1)).to(running_var.dtype))
    return out


# ------------------------------------------------------------------------------------------------------------ losses


def _reduced(loss, reduction):
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _mean(loss) if reduction == "mean" else _sum(loss)


def _loss(fun, node):
    def reduced(*args, reduction="mean", size_average=None, reduce=None, **kwargs):
        return _reduced(fun(*args, **kwargs), reduction)

    return composed(reduced, node)


def _class_loss(logp, target, weight, ignore_index, reduction):
    """Return the loss -logp[target], for logp of shape (N, C, ...), averaged by the weights of what is not ignored."""
    if logp.ndim == 1:
        logp, target = logp.reshape((1, -1)), target.reshape((1,))
        return _class_loss(logp, target, weight, ignore_index, "mean" if reduction == "mean" else "sum")
    counted = target != ignore_index
    index = np.where(counted, target, 0)
    _check_classes(index, logp.shape[1])
    picked = P["take_along"](logp, np.expand_dims(index, 1), axis=1).reshape(target.shape)
    weights = counted.astype(logp.dtype) if weight is None else np.where(counted, fnp.take(weight, index, 0), 0)
    losses = np.where(counted, -picked, 0) * weights
    return losses if reduction == "none" else _sum(losses) / _sum(weights) if reduction == "mean" else _sum(losses)


def _nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    return _class_loss(input, target, weight, ignore_index, reduction)


def _cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    classes = target.dtype.kind in "iu"
    if classes and input.ndim == 2 and target.ndim == 1 and target.shape != input.shape[:1]:
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({target.shape[0]})."
        )
    if weight is None and input.ndim == 2 and classes and _has_finite_sums(_known(input)):
        return _plain_cross_entropy(input, target, ignore_index, reduction, label_smoothing)
    dim = 0 if input.ndim == 1 else 1
    logp = _log_softmax_of(input, dim)
    if target.dtype.kind in "fV":
        return _soft_cross_entropy(logp, target, weight, reduction, label_smoothing, dim)
    hard = _class_loss(logp, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return hard
    return (1 - label_smoothing) * hard + label_smoothing * _smooth_part(
        logp, target, weight, ignore_index, reduction, dim
    )


def _plain_cross_entropy(input, target, ignore_index, reduction, label_smoothing):
    """Return the loss of rows of logits without class weights, by the primitive that has a pull of its own."""
    count = _count_of_classes(_known_classes(target), ignore_index, input.shape[1])
    losses = P["cross_entropy"](input, target, ignore_index=ignore_index, label_smoothing=label_smoothing)
    if reduction == "mean":
        return P["reduce_sum"](losses, axes=(0,)) / (count if count.__class__ is int else count.astype(losses.dtype))
    return losses if reduction == "none" else _sum(losses)


def _has_finite_sums(x):
    """Return whether all rows are known to have sums of exponentials; for others torch's losses are differences."""
    return isinstance(x, np.ndarray) and x.size and bool(np.isfinite(np.maximum.reduce(x, 1)).all())


def _count_of_classes(classes, ignore_index, columns):
    """Return how many classes count, and raise torch's error for those that there are not."""
    known = isinstance(classes, np.ndarray) and classes.size and not 0 <= ignore_index < columns
    if known and classes.min() >= 0 and classes.max() < columns:
        return classes.size
    counted = classes != ignore_index
    _check_classes(np.where(counted, classes, 0), columns)
    return _sum(counted)


def _known(x):
    """Return the array that a recorded value stands for, or the value itself where that is not known: within vmap."""
    if isinstance(x, np.ndarray):
        return x
    found = x.concrete() if isinstance(x, Tracer) else x
    return x if found is None else found


def _known_classes(target):
    """Return the classes that a value stands for, brought to the host to be looked at; itself where not known."""
    found = _known(target)
    return devices.on_host(found) if on_gpu(found) else found


def _check_classes(target, count):
    """Raise torch's error for a class that is not among `count`, where values are known."""
    classes = _known_classes(target)
    if not isinstance(classes, np.ndarray):
        return
    wrong = classes[(classes < 0) | (classes >= count)]
    if wrong.size:
        raise IndexError(f"Target {int(wrong[0])} is out of bounds.")


def _smooth_part(logp, target, weight, ignore_index, reduction, dim):
    """Return the loss against the uniform distribution over classes, averaged as the hard loss is."""
    scaled = logp if weight is None else logp * weight.reshape((-1, *(1,) * (logp.ndim - dim - 1)))
    counted = target != ignore_index
    losses = np.where(counted, -_mean(scaled, dim), 0)
    if reduction != "mean":
        return losses if reduction == "none" else _sum(losses)
    weights = (
        counted.astype(logp.dtype)
        if weight is None
        else np.where(counted, fnp.take(weight, np.where(counted, target, 0), 0), 0)
    )
    return _sum(losses) / _sum(weights)


def _soft_cross_entropy(logp, target, weight, reduction, label_smoothing, dim):
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / logp.shape[dim]
    products = logp * target
    if weight is not None:
        products = products * weight.reshape((-1, *(1,) * (logp.ndim - dim - 1)))
    losses = -_sum(products, dim)
    return losses if reduction == "none" else _sum(losses) / (losses.size if reduction == "mean" else 1)


nll_loss = composed(_nll_loss, "NllLossBackward0")
_any_cross_entropy = composed(_cross_entropy, "NllLossBackward0")
_LOSSES, _TOTAL, _MEAN = steps(P["cross_entropy"]), steps(P["reduce_sum"]), steps(P["div"])
_NO_OPTIONS = {"ignore_index": -100, "label_smoothing": 0.0}


def cross_entropy(input, target, *args, **kwargs):
    """Return the cross-entropy of logits and classes, or probabilities of classes: torch's arguments."""
    plain = not args and not kwargs and quick(input) and input._data.ndim == 2 and isinstance(target, _Tensor)
    classes = target._data if plain else None
    if classes.__class__ is not np.ndarray or classes.dtype.kind not in "iu" or classes.shape != input._data.shape[:1]:
        return _any_cross_entropy(input, target, *args, **kwargs)
    start = clock()
    count = _count_of_classes(classes, -100, input._data.shape[1])
    losses = _LOSSES((input, classes), _NO_OPTIONS)
    if not np.isfinite(losses._data).all():
        return _any_cross_entropy(input, target)
    mean = _MEAN((_TOTAL((losses,), {"axes": (0,)}), np.asarray(count, losses._data.dtype)), NO_PARAMS)
    return shown_as_one(mean, input, "NllLossBackward0", start)


_squared_error = _loss(lambda input, target: (input - target) * (input - target), "MseLossBackward0")


def mse_loss(input, target, *args, **kwargs):
    """Return the mean, or sum, of squared differences."""
    check_broadcast(input, target)
    if args or kwargs or not quick(input, target) or input._data.shape != target._data.shape:
        return _squared_error(input, target, *args, **kwargs)
    start = clock()
    error = input - target
    loss = (error * error).mean()
    return loss if loss._node is None else named(loss, "MseLossBackward0", [place_of(input), place_of(target)], start)


l1_loss = _loss(lambda input, target: P["abs"](input - target), "MeanBackward0")


def _huber(input, target, delta=1.0):
    size = P["abs"](input - target)
    return np.where(size < delta, 0.5 * size * size, delta * (size - 0.5 * delta))


def _smooth_l1(input, target, beta=1.0):
    size = P["abs"](input - target)
    return size if beta == 0 else np.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)


def _binary_cross_entropy(input, target, weight=None):
    logs = [np.where(x == 0, -100.0, P["log"](np.where(x == 0, 1, x))) for x in (input, 1 - input)]
    loss = -(target * np.maximum(logs[0], -100.0) + (1 - target) * np.maximum(logs[1], -100.0))
    return loss if weight is None else loss * weight


def _binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None):
    negative = P["log_sigmoid"](-input)
    positive = P["log_sigmoid"](input) if pos_weight is None else P["log_sigmoid"](input) * pos_weight
    loss = -(target * positive + (1 - target) * negative)
    return loss if weight is None else loss * weight


def _kl_div(input, target, log_target=False):
    return np.exp(target) * (target - input) if log_target else P["xlogy"](target, target) - target * input


huber_loss = _loss(_huber, "HuberLossBackward0")
smooth_l1_loss = _loss(_smooth_l1, "SmoothL1LossBackward0")
binary_cross_entropy = _loss(_binary_cross_entropy, "BinaryCrossEntropyBackward0")
binary_cross_entropy_with_logits = _loss(_binary_cross_entropy_with_logits, "BinaryCrossEntropyWithLogitsBackward0")
soft_margin_loss = _loss(lambda input, target: P["softplus"](-target * input), "SoftMarginLossBackward0")


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """Return the Kullback-Leibler divergence pointwise loss; "batchmean" divides by the batch size."""
    if reduction == "batchmean":
        return _kl_loss(input, target, reduction="sum", log_target=log_target) / input._data.shape[0]
    return _kl_loss(input, target, reduction=reduction, log_target=log_target)


_kl_loss = _loss(_kl_div, "KlDivBackward0")
cosine_similarity = composed(
    lambda x1, x2, dim=1, eps=1e-8: (
        _sum(x1 * x2, dim) / (np.maximum(_vector_norm(x1, 2, dim), eps) * np.maximum(_vector_norm(x2, 2, dim), eps))
    ),
    "DivBackward0",
)
pairwise_distance = composed(
    lambda x1, x2, p=2.0, eps=1e-6, keepdim=False: _vector_norm(x1 - x2 + eps, p, -1, keepdim), "NormBackward0"
)

# ------------------------------------------------------------------------------------------- convolution and pooling


def _tuple(n, dims):
    return (n,) * dims if isinstance(n, int) else tuple(n)


def _convolution(dims):
    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        batched = input.ndim == dims + 2
        x = input if batched else np.expand_dims(input, 0)
        steps, holes = _tuple(stride, dims), _tuple(dilation, dims)
        out = P["conv_general"](
            x, weight, strides=steps, padding=_padding(padding, weight.shape[2:], holes, dims),
            x_dilation=(1,) * dims, w_dilation=holes, groups=groups,
        )  # fmt: skip
        if bias is not None:
            out = out + bias.reshape((1, -1, *(1,) * dims))
        return out if batched else out.reshape(out.shape[1:])

    return composed(conv, "ConvolutionBackward0")


def _padding(padding, kernel, dilation, dims):
    """Return the padding before and after each dimension; "same" and "valid" as torch has them."""
    if padding == "valid":
        return ((0, 0),) * dims
    if padding == "same":
        spans = [d * (k - 1) for k, d in zip(kernel, dilation)]
        return tuple([(s // 2, s - s // 2) for s in spans])
    return tuple([(p, p) for p in _tuple(padding, dims)])


conv1d, conv2d, conv3d = (_convolution(n) for n in (1, 2, 3))


def _windows(x, kernel, stride, dilation):
    """Return the windows of the last axes: shape (..., out positions, window)."""
    dims = len(kernel)
    lead = x.ndim - dims
    for k in range(dims):
        axis = lead + k
        count = (x.shape[axis] - dilation[k] * (kernel[k] - 1) - 1) // stride[k] + 1
        at = np.arange(count)[:, None] * stride[k] + np.arange(kernel[k]) * dilation[k]
        x = np.moveaxis(np.take(x, at, axis), axis + 1, -1)
    return x.reshape((*x.shape[: lead + dims], -1))


def _padded(x, padding, dims, value):
    widths = ((0, 0),) * (x.ndim - dims) + tuple([(p, p) for p in padding])
    return np.pad(x, widths, constant_values=value) if any(padding) else x


def _max_pool(dims):
    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        kernel = _tuple(kernel_size, dims)
        steps = _tuple(kernel_size if stride is None else stride, dims)
        x = _padded(input, _tuple(padding, dims), dims, -np.inf)
        windows = _windows(x, kernel, steps, _tuple(dilation, dims))
        first = _positions(windows, find=np.argmax, axis=windows.ndim - 1)
        return P["take_along"](windows, first.reshape((*first.shape, 1)), axis=windows.ndim - 1).reshape(first.shape)

    return composed(pool, f"MaxPool{dims}DWithIndicesBackward0")


def _avg_pool(dims):
    def pool(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        kernel = _tuple(kernel_size, dims)
        steps = _tuple(kernel_size if stride is None else stride, dims)
        pads = _tuple(padding, dims)
        windows = _windows(_padded(input, pads, dims, 0), kernel, steps, (1,) * dims)
        if count_include_pad or not any(pads):
            return _mean(windows, -1)
        ones = _windows(_padded(np.ones(input.shape, input.dtype), pads, dims, 0), kernel, steps, (1,) * dims)
        return _sum(windows, -1) / _sum(ones, -1)

    return composed(pool, f"AvgPool{dims}DBackward0")


max_pool1d, max_pool2d, max_pool3d = (_max_pool(n) for n in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_avg_pool(n) for n in (1, 2, 3))


def _adaptive_avg_pool2d(input, output_size):
    sizes = _tuple(output_size, 2)
    for k, n in enumerate(sizes):
        axis = input.ndim - 2 + k
        size = input.shape[axis]
        if n is None or n == size:
            continue
        edges = [(i * size // n, -((-(i + 1) * size) // n)) for i in range(n)]
        index = (slice(None),) * axis
        input = np.concatenate([_mean(input[(*index, slice(a, b))], axis, True) for a, b in edges], axis)
    return input


adaptive_avg_pool2d = composed(_adaptive_avg_pool2d, "AdaptiveAvgPool2DBackward0")


def _pad(input, pad, mode="constant", value=None):
    widths = [(0, 0)] * (input.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    if mode != "constant":
        return np.pad(input, widths, {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])
    crops = tuple([slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(widths, input.shape)])
    grown = [(max(a, 0), max(b, 0)) for a, b in widths]
    return np.pad(input[crops], grown, constant_values=0 if value is None else value)


pad = composed(_pad, "ConstantPadNdBackward0")


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    """Return softmax(query @ key.T * scale + mask) @ value over the last two dimensions."""
    scale = query._data.shape[-1] ** -0.5 if scale is None else scale
    scores = FUNCTIONS["matmul"](query, key.transpose(-2, -1)) * scale
    if is_causal:
        attn_mask = _wrap(_beside(scores._data, np.tri(scores._data.shape[-2], scores._data.shape[-1], dtype=bool)))
    if attn_mask is not None:
        scores = (
            scores.masked_fill(attn_mask.logical_not(), -np.inf)
            if attn_mask._data.dtype == bool
            else scores + attn_mask
        )
    return FUNCTIONS["matmul"](dropout(softmax(scores, -1), dropout_p), value)

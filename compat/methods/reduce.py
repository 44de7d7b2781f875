"""Reductions, scans and order statistics. Dimensions are torch's `dim`; each function is a formula of fgrad values."""

from __future__ import annotations

import functools
import math
from collections import namedtuple

import numpy as np

from fgrad.extend import TABLE as P
from fgrad.extend import ArrayType, constant, on_gpu

from .. import devices, dtypes
from ..tape import NO_PARAMS, clock
from ..tensor import Tensor, normal_dim
from .steps import quick, shown_as_one, steps
from .table import FUNCTIONS, composed, define


def axes(dim, ndim):
    """Return torch's `dim` (None or empty: all) as a tuple of axes; errors in torch's words."""
    if dim is None or dim == () or dim == []:
        return tuple(range(ndim))
    dims = (dim,) if not isinstance(dim, (tuple, list)) else dim
    found = [normal_dim(int(d), ndim) for d in dims]
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return tuple(found) if ndim else ()


def keep(out, x, over, keepdim):
    """Return a reduction of `x` with its reduced axes put back at size 1, if they are to be kept."""
    return out.reshape(tuple([1 if i in over else n for i, n in enumerate(x.shape)])) if keepdim else out


def summand(x, dtype):
    """Return `x` in the dtype it is summed in: int64 for integers, or `dtype`."""
    if dtype is not None:
        wanted = dtypes.to_numpy(dtype)
    elif x.dtype.kind in "biu":
        wanted = dtypes.INT64
    else:
        return x
    return x if x.dtype == wanted else x.astype(wanted)


def sum(input, dim=None, keepdim=False, *, dtype=None):
    over = axes(dim, input.ndim)
    x = summand(input, dtype)
    return keep(P["reduce_sum"](x, axes=tuple(sorted(over))), input, over, keepdim)


def mean(input, dim=None, keepdim=False, *, dtype=None):
    if dtype is None and input.dtype.kind not in "fcV":
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{torch_scalar(input.dtype)}"
        )
    over = axes(dim, input.ndim)
    count = 1
    for i in over:
        count *= input.shape[i]
    return sum(input, dim, keepdim, dtype=dtype) / np.asarray(
        count, input.dtype if dtype is None else dtypes.to_numpy(dtype)
    )


def torch_scalar(d):
    """Return torch's C++ name of a dtype, as its messages have it."""
    names = {"int64": "Long", "int32": "Int", "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short"}
    return names.get(d.name, d.name.capitalize())


def prod(input, dim=None, keepdim=False, *, dtype=None):
    over = axes(dim, input.ndim)
    return keep(P["reduce_prod"](summand(input, dtype), axes=tuple(sorted(over))), input, over, keepdim)


def amax(input, dim=(), keepdim=False):
    over = axes(dim, input.ndim)
    return keep(P["reduce_max"](input, axes=tuple(sorted(over))), input, over, keepdim)


def amin(input, dim=(), keepdim=False):
    over = axes(dim, input.ndim)
    return keep(P["reduce_min"](input, axes=tuple(sorted(over))), input, over, keepdim)


def _correction(unbiased, correction):
    if isinstance(unbiased, bool):
        return int(unbiased)
    return 1 if correction is None else correction


def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    over = axes(dim, input.ndim)
    centered = input - mean(input, over, True)
    squares = centered * centered if input.dtype.kind != "c" else (centered * centered.conj()).real
    count = 1
    for i in over:
        count *= input.shape[i]
    return sum(squares, over, keepdim) / np.asarray(max(count - _correction(unbiased, correction), 0), squares.dtype)


def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    return root(var(input, dim, unbiased, keepdim, correction=correction))


def root(x):
    """Return sqrt(x) with derivative 0 where x is 0, as torch has it for std and norm."""
    positive = x != 0
    return np.where(positive, P["sqrt"](np.where(positive, x, 1)), 0 * x)


def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return var(input, dim, unbiased, keepdim, correction=correction), mean(input, dim, keepdim)


def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return std(input, dim, unbiased, keepdim, correction=correction), mean(input, dim, keepdim)


def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    if dtype is not None:
        input = input.astype(dtypes.to_numpy(dtype))
    p = 2 if p in ("fro", None) else p
    return vector_norm(input, p, dim, keepdim)


def vector_norm(input, ord=2, dim=None, keepdim=False, *, dtype=None):
    x = input if dtype is None else input.astype(dtypes.to_numpy(dtype))
    if p_is(ord, 2):
        return root(sum(x * x if x.dtype.kind != "c" else (x * x.conj()).real, dim, keepdim))
    size = np.abs(x)
    if ord in (float("inf"), "inf"):
        return amax(size, dim if dim is not None else (), keepdim)
    if ord == float("-inf"):
        return amin(size, dim if dim is not None else (), keepdim)
    if p_is(ord, 0):
        return sum((size != 0).astype(size.dtype), dim, keepdim)
    if p_is(ord, 1):
        return sum(size, dim, keepdim)
    present = size != 0
    powers = np.where(present, np.where(present, size, 1) ** ord, 0 * size) if ord > 0 else size**ord
    total = sum(powers, dim, keepdim)
    found = total != 0
    return np.where(found, np.where(found, total, 1) ** (1 / ord), 0 * total)


def p_is(p, n):
    return not isinstance(p, str) and p == n


def logsumexp(input, dim, keepdim=False):
    over = axes(dim, input.ndim)
    return keep(P["logsumexp"](input, axes=tuple(sorted(over))), input, over, keepdim)


def nansum(input, dim=None, keepdim=False, *, dtype=None):
    return sum(np.where(np.isnan(input), 0, input), dim, keepdim, dtype=dtype)


def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    present = ~np.isnan(input)
    return nansum(input, dim, keepdim, dtype=dtype) / sum(present, dim, keepdim)


def all(input, dim=None, keepdim=False):
    over = axes(dim, input.ndim)
    return keep(np.all(input, axis=over), input, over, keepdim)


def any(input, dim=None, keepdim=False):
    over = axes(dim, input.ndim)
    return keep(np.any(input, axis=over), input, over, keepdim)


def count_nonzero(input, dim=None):
    return sum(input != 0, dim)


def cumsum(input, dim, *, dtype=None):
    x = summand(input, dtype)
    return P["cumsum"](x, axis=normal_dim(dim, x.ndim), reverse=False) if x.ndim else x + 0


def cumprod(input, dim, *, dtype=None):
    x = summand(input, dtype)
    return P["cumprod"](x, axis=normal_dim(dim, x.ndim), reverse=False) if x.ndim else x + 0


def logcumsumexp(input, dim):
    return P["cumlogsumexp"](input, axis=normal_dim(dim, input.ndim), reverse=False) if input.ndim else input + 0


def trace(input):
    return sum(np.diagonal(input))


def softmax(input, dim=None, dtype=None):
    return _over_one("softmax", input, dim, dtype)


def log_softmax(input, dim=None, dtype=None):
    return _over_one("log_softmax", input, dim, dtype)


def _over_one(name, input, dim, dtype):
    x = input if dtype is None else input.astype(dtypes.to_numpy(dtype))
    axis = normal_dim(-1 if dim is None else dim, x.ndim)
    return P[name](x, axes=(axis,) if x.ndim else ())


def overload(name):
    """Return the name of the node of a reduction: torch numbers the form along dimensions apart."""
    plain = "".join(word.capitalize() for word in name.split("_")) + "Backward"
    whole, along = plain + "0", plain + ("1" if name in ("sum", "mean", "prod") else "0")

    def node(input, *args, **kwargs):
        if (
            name == "norm"
            and not isinstance(args[0] if args else kwargs.get("p", 2), str)
            and kwargs.get("dtype") is None
        ):
            return "LinalgVectorNormBackward0"
        return along if args or kwargs.get("dim") is not None else whole

    return node


_SUMMED, _DIVIDED, _RESHAPED = steps(P["reduce_sum"]), steps(P["div"]), steps(P["reshape"], silent=True)
_SHARES = {name: steps(P[name]) for name in ("softmax", "log_softmax")}


def _quick_sum(slow, mean=False):
    """Return `sum` or `mean` that takes few steps for a plain tensor of floats, and is `slow` for all else."""
    names = ["MeanBackward0", "MeanBackward1"] if mean else ["SumBackward0", "SumBackward1"]

    @functools.wraps(slow)
    def call(*args, **kwargs):
        if len(args) > 3 or not kwargs.keys() <= {"dim", "keepdim"} or not args or not quick(args[0]):
            return slow(*args, **kwargs)
        x = args[0]
        dim, keepdim = _dim_and_keepdim(*args[1:], **kwargs)
        over = axes(dim, x._data.ndim)
        name = names[dim is not None or len(args) > 1]
        start = clock()
        t = _SUMMED((x,), {"axes": tuple(sorted(over))}, name)
        if mean:
            t = _DIVIDED((t, np.asarray(math.prod([x._data.shape[i] for i in over]), t._data.dtype)), NO_PARAMS)
        if keepdim:
            t = _RESHAPED((t,), {"shape": tuple([1 if i in over else n for i, n in enumerate(x._data.shape)])})
        return shown_as_one(t, x, name, start) if mean or keepdim else t

    return call


def _dim_and_keepdim(dim=None, keepdim=False):
    return dim, keepdim


def _quick_share(slow):
    """Return `softmax` or `log_softmax`, one step for a plain tensor of floats."""
    step = _SHARES[slow.__name__]

    @functools.wraps(slow)
    def call(*args, **kwargs):
        if len(args) != 2 - len(kwargs) or not kwargs.keys() <= {"dim"} or not quick(args[0]):
            return slow(*args, **kwargs)
        ndim = args[0]._data.ndim
        dim = kwargs["dim"] if kwargs else args[1]
        return step((args[0],), {"axes": (normal_dim(-1 if dim is None else dim, ndim),) if ndim else ()})

    return call


_QUICK = {"sum": _quick_sum, "mean": lambda slow: _quick_sum(slow, mean=True)} | dict.fromkeys(_SHARES, _quick_share)

for fun, inplace in (
    (sum, False), (mean, False), (prod, False), (amax, False), (amin, False), (var, False), (std, False), (norm, False),
    (logsumexp, False), (nansum, False), (nanmean, False), (all, False), (any, False), (count_nonzero, False),
    (cumsum, True), (cumprod, True), (logcumsumexp, False), (trace, False), (var_mean, False), (std_mean, False),
    (softmax, False), (log_softmax, False),
):  # fmt: skip
    made = composed(fun, overload(fun.__name__))
    define(fun.__name__, _QUICK.get(fun.__name__, lambda slow: slow)(made), inplace=inplace)


# ------------------------------------------------------------------------ values with the indices they were found at


def result_type(name, *fields):
    """Return the named tuple that torch's function `name` returns."""
    made = namedtuple(name, fields or ("values", "indices"))
    made.__module__ = "torch.return_types"
    return made


def chosen(x, index, axis):
    """Return the entries of `x` at `index` along an axis: gradients flow to these entries alone."""
    return P["take_along"](x, index, axis=axis)


def known(x):
    """Return the plain array behind a value: where the shape of a result follows from values."""
    while not isinstance(x, np.ndarray):
        found = devices.on_host(x) if on_gpu(x) else x.concrete()
        if found is None:
            raise TypeError("the shape of the result depends on values, which are not known here: not under func.vmap")
        x = found
    return x


def _found(x, *, find, axis):
    return np.asarray(find(x, axis), np.int64)


positions = constant(
    "positions",
    _found,
    type=lambda x, *, find, axis: ArrayType(_found(np.zeros(x.shape, x.dtype), find=find, axis=axis).shape, "int64"),
    shift=lambda size, *, find, axis: {"axis": axis + 1},
    doc="What a function of arrays finds along an axis of x: where the largest entry is, or which order sorts.",
)


def _select(x, index, dim, keepdim):
    """Return (values, indices) at `index`, which keeps axis `dim` at size 1."""
    out = chosen(x, index, dim)
    if not keepdim:
        shape = tuple([n for i, n in enumerate(x.shape) if i != dim])
        return out.reshape(shape), index.reshape(shape)
    return out, index


def _at(x, dim, find, keepdim):
    """Return (values, indices) found by `find(array, axis)` along a dimension; a 0-d tensor counts as of one entry."""
    if x.ndim == 0:
        normal_dim(dim, 0)
        return x + np.zeros((), x.dtype) if x.dtype.kind != "b" else x | False, np.zeros((), np.int64)
    dim = normal_dim(dim, x.ndim)
    index = positions(x, find=find, axis=dim)
    index = index.reshape((*index.shape[:dim], 1, *index.shape[dim:]))
    return _select(x, index, dim, keepdim)


def _extreme(name, whole, pairwise, find):
    """Return torch's three-in-one `max` or `min`: of all, along a dimension, or of two tensors."""
    pair = result_type(name)

    def along(input, dim, keepdim=False):
        return pair(*_at(input, dim, find, keepdim))

    along.__name__ = name
    of_all, along, of_two = (
        composed(whole, name.capitalize() + "Backward1"),
        composed(along, name.capitalize() + "Backward0"),
        pairwise,
    )

    def fun(input, other=None, keepdim=False, *, dim=None, axis=None, keepdims=False):
        keepdim = keepdim or keepdims
        dim = axis if dim is None else dim
        if isinstance(other, Tensor):
            return of_two(input, other)
        dim = other if dim is None else dim
        return of_all(input) if dim is None else along(input, dim, keepdim)

    return define(name, fun)


def _first_extreme(find):
    def first(x, axis):
        if x.dtype.kind in "fV" and x.size and np.isnan(x).any():
            return np.where(np.isnan(x).any(axis), np.argmax(np.isnan(x), axis), find(x, axis))
        return find(x, axis)

    return first


_extreme("max", amax, lambda a, b: FUNCTIONS["maximum"](a, b), _first_extreme(np.argmax))
_extreme("min", amin, lambda a, b: FUNCTIONS["minimum"](a, b), _first_extreme(np.argmin))


def _argfind(name, find):
    def fun(input, dim=None, keepdim=False):
        if input.ndim == 0:
            return np.zeros((), np.int64)
        x = input.reshape((-1,)) if dim is None else input
        axis = 0 if dim is None else normal_dim(dim, input.ndim)
        over = range(input.ndim) if dim is None else (axis,)
        return keep(positions(x, find=find, axis=axis), input, over, keepdim)

    fun.__name__ = name
    return define(name, composed(fun))


_argfind("argmax", _first_extreme(np.argmax))
_argfind("argmin", _first_extreme(np.argmin))


def ascending(x, dim):
    """Return the indices that sort an array along an axis, stably; NaN counts as the largest."""
    return _ordered(x, dim, False)


def descending_order(x, dim):
    """Return the indices that sort an array along an axis from the largest entry, stably."""
    return _ordered(x, dim, True)


def _ordered(x, dim, descending):
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    flipped = np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)
    return x.shape[dim] - 1 - flipped


_sort, _topk, _kth, _median, _mode = map(result_type, ("sort", "topk", "kthvalue", "median", "mode"))


def sort(input, dim=-1, descending=False, stable=False):
    if input.ndim == 0:
        return _sort(*_at(input, dim, np.argmax, False))
    dim = normal_dim(dim, input.ndim)
    index = positions(input, find=descending_order if descending else ascending, axis=dim)
    return _sort(chosen(input, index, dim), index)


def argsort(input, dim=-1, descending=False, stable=False):
    return sort(input, dim, descending)[1]


def topk(input, k, dim=-1, largest=True, sorted=True):
    if input.ndim == 0:
        return _topk(*_at(input, dim, np.argmax, False))
    dim = normal_dim(dim, input.ndim)
    if k > input.shape[dim]:
        raise RuntimeError("selected index k out of range")
    order = positions(input, find=descending_order if largest else ascending, axis=dim)
    index = order[(slice(None),) * dim + (slice(0, k),)]
    return _topk(chosen(input, index, dim), index)


def kthvalue(input, k, dim=-1, keepdim=False):
    def find(x, axis):
        if not 1 <= k <= x.shape[axis]:
            raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
        return np.take(_ordered(x, axis, False), k - 1, axis)

    return _kth(*_at(input, dim, find, keepdim))


def _middle(x, axis):
    if x.dtype.kind in "fV" and np.isnan(x).any():
        lowest = np.take(_ordered(x, axis, False), (x.shape[axis] - 1) // 2, axis)
        return np.where(np.isnan(x).any(axis), np.argmax(np.isnan(x), axis), lowest)
    return np.take(_ordered(x, axis, False), (x.shape[axis] - 1) // 2, axis)


def _nan_middle(x, axis):
    count = np.sum(~np.isnan(x), axis, keepdims=True)
    at = np.maximum((count - 1) // 2, 0)
    return np.take_along_axis(_ordered(x, axis, False), at, axis).squeeze(axis)


def _shared_by_ties(x, value):
    """Return `value`, an entry of `x`, with its gradient shared evenly by all entries that equal it."""
    if x.dtype.kind not in "fcV":
        return value
    plain, value = P["stop_gradient"](x), P["stop_gradient"](value)
    ties = (plain == value) | (plain != plain) & (value != value)
    return value + sum(np.where(ties, x - np.where(ties, plain, 0), 0)) / sum(ties).astype(x.dtype)


def _median_of(find):
    def fun(input, dim=None, keepdim=False):
        if dim is None:
            flat = input.reshape((-1,))
            index = positions(flat, find=find, axis=0)
            return _shared_by_ties(input, chosen(flat, index.reshape((1,)), 0).reshape(()))
        return _median(*_at(input, dim, find, keepdim))

    return fun


def mode(input, dim=-1, keepdim=False):
    def find(x, axis):
        rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
        found = []
        for row in rows:
            values, counts = np.unique(row, return_counts=True)
            found.append(np.flatnonzero(row == values[np.argmax(counts)])[-1])
        return np.array(found).reshape(np.delete(x.shape, axis))

    return _mode(*_at(input, dim, find, keepdim))


def _cumulative(name, better):
    pair = result_type(name)

    def find(x, dim):
        running = better.accumulate(x, axis=dim)
        position = np.arange(x.shape[dim]).reshape([-1 if i == dim else 1 for i in range(x.ndim)])
        hit = (x == running) | (x != x) & (running != running)
        return np.maximum.accumulate(np.where(hit, position, 0), axis=dim)

    def fun(input, dim):
        if input.ndim == 0:
            return pair(*_at(input, dim, np.argmax, False))
        dim = normal_dim(dim, input.ndim)
        index = positions(input, find=find, axis=dim)
        return pair(chosen(input, index, dim), index)

    fun.__name__ = name
    return define(name, composed(fun))


_cumulative("cummax", np.maximum)
_cumulative("cummin", np.minimum)
for name, fun in (
    ("sort", sort), ("argsort", argsort), ("topk", topk), ("kthvalue", kthvalue), ("mode", mode),
    ("median", _median_of(_middle)), ("nanmedian", _median_of(_nan_middle)),
):  # fmt: skip
    fun.__name__ = name
    define(name, composed(fun))


def renorm(input, p, dim, maxnorm):
    dim = normal_dim(dim, input.ndim)
    norms = vector_norm(input, p, tuple([i for i in range(input.ndim) if i != dim]), True)
    return np.where(norms > maxnorm, input * (maxnorm / (norms + 1e-7)), input)


def dist(input, other, p=2):
    return vector_norm(input - other, p)


def quantiles(find):
    """Return quantile or nanquantile, which `find` is for values of fgrad; several q come first in the result."""

    def fun(input, q, dim=None, keepdim=False, *, interpolation="linear"):
        q = q if hasattr(q, "dtype") else np.asarray(q, input.dtype)
        if q.dtype != input.dtype:
            raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
        return find(input, q, dim, keepdims=keepdim, method=interpolation).astype(input.dtype)

    return fun


define("renorm", composed(renorm), inplace=True)
define("dist", composed(dist))
define("quantile", composed(quantiles(np.quantile), "QuantileBackward0"))
define("nanquantile", composed(quantiles(np.nanquantile), "NanquantileBackward0"))

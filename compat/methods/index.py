"""Indexing in all its forms, reading and writing, and gather, scatter and their kin."""

from __future__ import annotations

import builtins

import numpy as np

from fgrad.extend import TABLE as P
from fgrad.extend import Tracer, on_gpu

from .. import devices, views
from ..tape import NO_PARAMS, moved
from ..tensor import Tensor, normal_dim, wrap
from .reduce import known
from .shape import index_view
from .steps import quick, steps
from .table import FUNCTIONS, composed, define, in_place, promoted, to

ARRAYS: tuple[type, ...] = (np.ndarray, Tracer)
"""What an index may hold to pick elements; the class of arrays on a GPU is added when one is seen."""

# ------------------------------------------------------------------------------------------ what an index means


def normalized(index):
    """Return an index as a tuple of ints, slices, None, Ellipsis and arrays, as torch reads it."""
    if isinstance(index, list) and _means_tuple(index):
        index = tuple(index)
    return tuple([_entry(i) for i in (index if isinstance(index, tuple) else (index,))])


def _means_tuple(index):
    """Say whether a list stands for a tuple: as in old NumPy, if it is short and holds sequences or slices."""
    return len(index) < 32 and builtins.any(
        i is None or i is Ellipsis or isinstance(i, (list, tuple, builtins.slice, Tensor)) for i in index
    )


def _entry(i):
    if isinstance(i, Tensor):
        data = i._data
        if data.dtype.kind not in "iub":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if data.__class__ is not np.ndarray and (found := _elsewhere(data)) is not None:
            return found
        if data.ndim == 0 and data.dtype.kind in "iu" and i._node is None:
            return int(data)
        return data.astype(bool) if data.dtype == np.uint8 else data
    if i is None or i is Ellipsis or isinstance(i, bool):
        return np.asarray(i) if isinstance(i, bool) else i
    if isinstance(i, builtins.slice):
        return _slice(i)
    if isinstance(i, (list, tuple, range)):
        found = np.asarray([_entry(k) for k in i] if i else np.zeros((0,), np.int64))
        return found if found.size else found.astype(np.int64)
    if isinstance(i, np.ndarray):
        return i
    if hasattr(i, "__index__"):
        return i.__index__()
    raise TypeError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
        f"{type(i).__name__})"
    )


def _elsewhere(data):
    """Return an index of no known values as it is, and one on a GPU: masks, whose count is asked for, on the host."""
    global ARRAYS
    if isinstance(data, Tracer):
        return data if data.concrete() is None else None
    if on_gpu(data):
        if data.dtype.kind == "b" or data.dtype == np.uint8:
            return devices.on_host(data).astype(bool)
        if data.__class__ not in ARRAYS:
            ARRAYS += (data.__class__,)
    return None


def _slice(i):
    if isinstance(i.step, int) and i.step <= 0:
        raise ValueError("step must be greater than zero")
    parts = [None if p is None else int(p) for p in (i.start, i.stop, i.step)]
    return builtins.slice(*parts)


def is_basic(entries):
    return not builtins.any(isinstance(e, ARRAYS) for e in entries)


def _check(x, entries):
    """Raise torch's error if an index is too long or out of range."""
    used = builtins.sum(
        e.ndim if isinstance(e, ARRAYS) and e.dtype == bool else e is not None and e is not Ellipsis for e in entries
    )
    shape = x._data.shape
    if used > len(shape):
        if not shape:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                "convert a 0-dim tensor to a number"
            )
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    axis = 0
    for k, e in enumerate(entries):
        if e is Ellipsis:
            axis = len(shape) - builtins.sum(
                r.ndim if isinstance(r, ARRAYS) and r.dtype == bool else r is not None for r in entries[k + 1 :]
            )
        elif e is not None:
            if isinstance(e, int) and not -shape[axis] <= e < shape[axis]:
                raise IndexError(f"index {e} is out of bounds for dimension {axis} with size {shape[axis]}")
            if isinstance(e, ARRAYS) and e.dtype == bool:
                _check_mask(e, shape, axis)
                axis += e.ndim
            else:
                axis += 1


def _check_mask(mask, shape, axis):
    for d, n in enumerate(mask.shape):
        if shape[axis + d] != n:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {d} does not match the shape of the indexed "
                f"tensor {list(shape)} at index {axis + d}"
            )


def _basic_name(entries):
    """Return torch's name for the node of a basic index."""
    last = [e for e in entries if e is not Ellipsis]
    if not last:
        return "AliasBackward0"
    e = last[-1]
    return "SelectBackward0" if isinstance(e, int) else "UnsqueezeBackward0" if e is None else "SliceBackward0"


_read = composed(lambda x, index: x[index], "IndexBackward0")


def _split(entries):
    """Return an index with arrays as a basic one, which comes first, and one of arrays and full slices for the rest."""
    basic, rest = [], []
    for e in entries:
        if not isinstance(e, ARRAYS):
            basic.append(e)
            rest += [] if isinstance(e, int) else [e if e is Ellipsis else builtins.slice(None)]
        else:
            basic += [builtins.slice(None)] * (e.ndim if e.dtype == bool else 1) if e.ndim or e.dtype != bool else []
            rest.append(e)
    return tuple(basic), tuple(rest)


def _is_full(entries):
    return builtins.all(e is Ellipsis or e == builtins.slice(None) for e in entries)


def getitem(self, index):
    entries = (index,) if index.__class__ is int else normalized(index)
    _check(self, entries)
    if is_basic(entries):
        return index_view(self, entries, _basic_name(entries))
    basic, rest = _split(entries)
    source = self if _is_full(basic) else index_view(self, basic, _basic_name(basic))
    try:
        return _read(source, _as_given(rest, index, source) if views.requires_grad(source) else rest)
    except TypeError:
        if any(map(on_gpu, rest)) and not on_gpu(self._data):
            raise RuntimeError(
                f"indices should be either on cpu or on the same device as the indexed tensor ({self.device})"
            ) from None
        raise


def _as_given(entries, index, source):
    """Return an index with tensors of integers in place of their arrays: what is saved of them is checked."""
    given = {
        id(i._data): i if i._data.__class__ is source._data.__class__ else _beside(i, source)
        for i in (index if isinstance(index, (tuple, list)) else (index,))
        if isinstance(i, Tensor)
    }
    return tuple([given.get(id(e), e) if isinstance(e, ARRAYS) and e.dtype != bool else e for e in entries])


def setitem(self, index, value):
    entries = normalized(index)
    _check(self, entries)
    value = value if isinstance(value, Tensor) else _beside(wrap(np.asarray(value).astype(self._data.dtype)), self)
    if is_basic(entries):
        index_view(self, entries, _basic_name(entries)).copy_(_squeezed(value, self._data[entries].ndim))
    else:
        basic, rest = _split(entries)
        put_at(self if _is_full(basic) else index_view(self, basic, _basic_name(basic)), rest, value)


def _squeezed(value, ndim):
    """Return a value without leading dimensions of size 1 that its target lacks."""
    while value._data.ndim > ndim and value._data.shape[0] == 1:
        value = value.reshape(*value._data.shape[1:])
    return value


Tensor.__getitem__ = getitem
Tensor.__setitem__ = setitem


def _scatter_positions(x, entries):
    """Return the numbers, in row-major order, of the elements of `x` that an index reaches."""
    return np.arange(x.size).reshape(x.shape)[tuple([devices.on_host(e) for e in entries])]


def index_put(input, indices, values, accumulate=False):
    where = _scatter_positions(input, tuple(indices))
    flat = input.reshape((-1,))
    u = np.broadcast_to(values, where.shape).reshape((-1,))
    prim = P["scatter_add"] if accumulate else P["scatter_set"]
    return prim(flat, where.reshape((1, -1)), u, axes=(0,)).reshape(input.shape)


_index_put = composed(index_put)


def _put(self, indices, values, accumulate=False):
    entries = normalized(tuple(indices))
    values = to(values, self._data.dtype) if values._data.ndim == 0 else values
    if values._data.dtype != self._data.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {views._scalar_name(self._data.dtype)} "
            f"for the destination and {views._scalar_name(values._data.dtype)} for the source."
        )
    return _index_put(self, entries, values, accumulate)


define("index_put", _put, inplace=True)


def put_at(self, entries, value):
    value = value if value._data.ndim else _beside(value, self)
    in_place(lambda x, v: _index_put(x, entries, to(v, x._data.dtype)), "index_put")(self, value)


# ------------------------------------------------------------------------------------------------- masks


def masked_fill(input, mask, value):
    if mask.dtype != bool:
        raise RuntimeError("masked_fill_ only supports boolean masks")
    return np.where(
        mask, value.astype(input.dtype) if hasattr(value, "astype") else np.asarray(value, input.dtype), input
    )


def masked_select(input, mask):
    shape = np.broadcast_shapes(input.shape, mask.shape)
    return np.broadcast_to(input, shape)[np.broadcast_to(known(mask), shape)]


def masked_scatter(input, mask, source):
    shape = np.broadcast_shapes(input.shape, mask.shape)
    where = np.flatnonzero(np.broadcast_to(known(mask), shape))
    flat = np.broadcast_to(input, shape).reshape((-1,)) + np.zeros((), input.dtype)
    taken = source.reshape((-1,))[0 : len(where)]
    return P["scatter_set"](flat, where[None], taken, axes=(0,)).reshape(shape)


def where(condition, input=None, other=None):
    if input is None:
        return FUNCTIONS["nonzero"](condition, as_tuple=True)
    a, b = promoted((input, other), "arithmetic")
    mask = condition._data if isinstance(condition, Tensor) else None
    if mask.__class__ is np.ndarray and mask.dtype == bool and quick(a, b):
        return _SELECTED((mask, a, b), NO_PARAMS)
    return _where(condition, a, b)


_SELECTED = steps(P["select"], silent=True)
_where = composed(lambda condition, input, other: np.where(condition, input, other), "WhereBackward0")
define("where", where, method=False)
Tensor.where = lambda self, condition, other: where(condition, self, other)
define("masked_fill", composed(masked_fill), inplace=True)
define("masked_select", composed(masked_select))
define("masked_scatter", composed(masked_scatter), inplace=True)


def nonzero(input, *, as_tuple=False):
    found = np.nonzero(np.atleast_1d(input._data))
    if as_tuple:
        return tuple([wrap(i.astype(np.int64)) for i in found])
    rows = np.stack(found, 1).astype(np.int64)
    return wrap(rows if input._data.ndim else rows[:, :0])


define("nonzero", nonzero, aliases=("argwhere",))

# ------------------------------------------------------------------------------------------ along a dimension


def _integer(index, what):
    if index.dtype.kind not in "iu" or index.dtype.itemsize < 4:
        raise RuntimeError(f"{what}(): Expected dtype int64 for index")


def _check_bounds(index, x, dim):
    """Raise torch's error for an index along `dim` that is out of range, where values are known: not under vmap."""
    found = index.concrete() if isinstance(index, Tracer) else index
    if found is not None and found.size and not 0 <= found.min() <= found.max() < x.shape[dim]:
        raise RuntimeError(f"index {int(found.max())} is out of bounds for dimension {dim} with size {x.shape[dim]}")


def _cut(x, index, dim):
    """Return the part of `x` that an index of its own shape (smaller off `dim`) covers."""
    return x[tuple([builtins.slice(None) if i == dim else builtins.slice(0, n) for i, n in enumerate(index.shape)])]


def gather(input, dim, index, *, sparse_grad=False):
    _integer(index, "gather")
    if input.ndim == 0:
        return input.reshape((1,))[index.reshape((-1,))].reshape(index.shape)
    dim = normal_dim(dim, input.ndim)
    _check_bounds(index, input, dim)
    return P["take_along"](_cut(input, index, dim), index, axis=dim)


def _full_index(index, dim):
    """Return integer arrays for every axis, that reach what `index` along `dim` does."""
    grid = list(np.indices(index.shape, sparse=False))
    grid[dim] = index
    return np.stack([g.reshape(-1) for g in grid])


def _scattered(prim, input, dim, index, src):
    _integer(index, "scatter")
    if input.ndim == 0:
        return _scattered(
            prim, input.reshape((1,)), 0, index.reshape((-1,)), src.reshape((-1,)) if hasattr(src, "reshape") else src
        ).reshape(())
    dim = normal_dim(dim, input.ndim)
    _check_bounds(index, input, dim)
    if hasattr(src, "shape") and src.ndim:
        u = src[tuple([builtins.slice(0, n) for n in index.shape])].reshape((-1,))
    else:
        u = np.broadcast_to(np.asarray(src, input.dtype) if not hasattr(src, "shape") else src, (index.size,))
    return P[prim](input, _full_index(index, dim), u, axes=tuple(range(input.ndim)))


def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    prim = {None: "scatter_set", "add": "scatter_add", "multiply": "scatter_mul"}[reduce]
    return _scattered(prim, input, dim, index, src if value is None else value)


_IDENTITY = {"sum": 0, "mean": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}


def _neutral(reduce, d):
    """Return the value that a reduction starts from in a dtype."""
    value = _IDENTITY[reduce]
    if d.kind in "iu" and not np.isfinite(value):
        return np.iinfo(d).min if value < 0 else np.iinfo(d).max
    return np.asarray(value, d)


def _reduced(scattered, input, ones, u, reduce, include_self):
    """Return `input` with updates reduced into it, by `scattered(primitive, array, updates)`."""
    if reduce not in _IDENTITY:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    hits = scattered("scatter_add", np.zeros(input.shape, np.int64), ones)
    x = input if include_self else np.where(hits > 0, _neutral(reduce, input.dtype), input)
    prim = {"prod": "scatter_mul", "amax": "scatter_max", "amin": "scatter_min"}.get(reduce, "scatter_add")
    out = scattered(prim, x, u)
    if reduce != "mean":
        return out
    count = np.where(hits > 0, hits + include_self, 1)
    return out / count.astype(out.dtype) if out.dtype.kind in "fcV" else out // count


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    def scattered(prim, x, u):
        return _scattered(prim, x, dim, index, u)

    return _reduced(scattered, input, 1, src, reduce, include_self)


def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    def scattered(prim, x, u):
        return _rows(x, dim, index, u, prim)

    return _reduced(scattered, input, np.asarray(1), source, reduce, include_self)


def scatter_add(input, dim, index, src):
    return _scattered("scatter_add", input, dim, index, src)


def _front(x, dim):
    return np.moveaxis(x, dim, 0)


def _rows(input, dim, index, update, prim):
    """Return `input` with whole slices along `dim` at a 1-d index changed by `update`."""
    scalar = input.ndim == 0
    x = input.reshape((1,)) if scalar else input
    dim = normal_dim(dim, x.ndim)
    index = index.reshape((-1,))
    rest = tuple([n for i, n in enumerate(x.shape) if i != dim])
    update = np.broadcast_to(update, (len(index), *rest)) if update.ndim < x.ndim else _front(update, dim)
    out = np.moveaxis(P[prim](_front(x, dim), index[None], update, axes=(0,)), 0, dim)
    return out.reshape(()) if scalar else out


def index_add(input, dim, index, source, *, alpha=1):
    return _rows(input, dim, index, source if alpha == 1 else source * alpha, "scatter_add")


def index_copy(input, dim, index, source):
    return _rows(input, dim, index, source, "scatter_set")


def index_fill(input, dim, index, value):
    value = value if hasattr(value, "astype") else np.asarray(value)
    return _rows(input, dim, index, value.astype(input.dtype), "scatter_set")


def index_select(input, dim, index):
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if input.ndim == 0:
        return input.reshape((1,))[index.reshape((-1,))].reshape(())
    dim = normal_dim(dim, input.ndim)
    return np.take(input, index.reshape((-1,)), dim)


def take(input, index):
    return input.reshape((-1,))[index]


def take_along_dim(input, indices, dim=None):
    x = input.reshape((-1,)) if dim is None else input
    return np.take_along_axis(x, indices.reshape((-1,)) if dim is None else indices, 0 if dim is None else dim)


def put(input, index, source, accumulate=False):
    prim = P["scatter_add"] if accumulate else P["scatter_set"]
    return prim(input.reshape((-1,)), index.reshape((1, -1)), source.reshape((-1,)), axes=(0,)).reshape(input.shape)


for fun, inplace in (
    (gather, False), (scatter, True), (scatter_add, True), (scatter_reduce, True), (index_reduce, True),
    (index_add, True), (index_copy, True), (index_fill, True), (index_select, False), (take, False),
    (take_along_dim, False), (put, True),
):  # fmt: skip
    define(fun.__name__, composed(fun), inplace=inplace)

# ----------------------------------------------------------------------------------------------- filling and copying


_replaced = composed(lambda input, value: P["select"](np.asarray(False), input, value), "CopyBackwards")


def copied(self, src):
    """Return `src` in the shape and dtype of `self`: what `copy_` writes. The old values get a gradient of zeros."""
    data = self._data
    out = src if src._data.shape == data.shape else src.expand(*data.shape)
    real = src._data.dtype.kind == "c" and data.dtype.kind != "c"
    out = to(FUNCTIONS["real"](out) if real else out, data.dtype)
    if views.requires_grad(self) and views.requires_grad(out):
        return _replaced(self, out)
    return FUNCTIONS["clone"](out) if out is src else out


def copy_(self, src, non_blocking=False):
    """Write `src`, broadcast and cast, into this tensor in place."""
    src = src if isinstance(src, Tensor) else wrap(np.asarray(src))
    return _write_copy(self, src if src._data.__class__ is self._data.__class__ else _beside(src, self), False)


def _write_copy(self, src, uniform):
    views.check_inplace(self, views.requires_grad(src))
    return views.write(self, copied(self, src), uniform)


def fill_(self, value):
    """Fill with a number or a 0-d tensor in place."""
    if isinstance(value, Tensor) and value._data.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._data.ndim} dimensions."
        )
    if not isinstance(value, Tensor):
        if isinstance(value, complex) and self._data.dtype.kind != "c":
            raise RuntimeError(f"value cannot be converted to type {self.dtype!r} without overflow")
        value = wrap(np.asarray(value).astype(self._data.dtype))
    return _write_copy(self, value if value._data.__class__ is self._data.__class__ else _beside(value, self), True)


def _beside(value, t):
    return moved(value, devices.place_of(t._data))


def zero_(self):
    """Fill with zeros in place."""
    return fill_(self, 0)


for fun in (copy_, fill_, zero_):
    define(fun.__name__, fun, function=False)
define("zero_", zero_)
define("fill_", fill_)
define("fill", lambda input, value: fill_(FUNCTIONS["clone"](input), value), function=True)

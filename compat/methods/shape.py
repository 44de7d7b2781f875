"""Views: other shapes of the same memory, parts of it, and several parts at once.

Each is made by `views.view` from a primitive that shares memory.
"""

from __future__ import annotations

import builtins
import math
from itertools import pairwise

import numpy as np

from fgrad.extend import TABLE as P
from fgrad.extend import ArrayType, Plan, Primitive, linear, state

from .. import devices, dtypes, views
from ..modes import mode
from ..tape import apply, node_class
from ..tensor import Tensor, normal_dim, wrap
from ..views import Index, view
from .table import FUNCTIONS, define

# ---------------------------------------------------------------------------------------------- views


def sizes(given):
    """Return sizes given as `f(2, 3)` or `f((2, 3))` as a tuple of ints."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    return tuple([int(n) for n in given])


def resolved(shape, count):
    """Return a shape with -1 worked out; RuntimeError in torch's words if it cannot hold `count` elements."""
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if -1 in shape:
        known = math.prod(n for n in shape if n != -1)
        if known and count % known == 0:
            return tuple([count // known if n == -1 else n for n in shape])
    elif math.prod(shape) == count:
        return shape
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")


def reshape(input, *shape, node="ViewBackward0"):
    shape = resolved(sizes(shape), input._data.size)
    out = view(P["reshape"], input, {"shape": shape}, node)
    return out


def view_(input, *shape):
    """The method `view`: another shape of the same memory; RuntimeError if strides forbid it."""
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        return view_as_dtype(input, shape[0])
    out = reshape(input, *shape)
    data = input._data
    if data.size and not views.shares(out._data, data):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return out


def view_as_dtype(input, dtype):
    out = wrap(input._data.view(dtypes.to_numpy(dtype)))
    out._counter = input.counter
    return out


def permute(input, *dims):
    dims = sizes(dims)
    if len(dims) != input._data.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {input._data.ndim} is not equal to len(dims) = {len(dims)}"
        )
    return view(P["transpose"], input, {"perm": tuple([normal_dim(d, len(dims)) for d in dims])})


def transpose(input, dim0, dim1):
    n = input._data.ndim
    a, b = normal_dim(dim0, n), normal_dim(dim1, n)
    perm = list(range(n))
    if n:
        perm[a], perm[b] = perm[b], perm[a]
    return view(P["transpose"], input, {"perm": tuple(perm)}, "TransposeBackward0")


def t(input):
    if input._data.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._data.ndim}D")
    return view(P["transpose"], input, {"perm": tuple(range(input._data.ndim))[::-1]}, "TBackward0")


def movedim(input, source, destination):
    order = np.moveaxis(np.empty((1,) * input._data.ndim), source, destination)
    n = input._data.ndim
    source = [normal_dim(d, n) for d in ([source] if isinstance(source, int) else source)]
    destination = [normal_dim(d, n) for d in ([destination] if isinstance(destination, int) else destination)]
    perm = [None] * n
    for s, d in zip(source, destination):
        perm[d] = s
    rest = iter([i for i in range(n) if i not in source])
    assert order.ndim == n
    return permute(input, [next(rest) if p is None else p for p in perm])


def unsqueeze(input, dim):
    n = input._data.ndim
    dim = normal_dim(dim, n + 1)
    shape = input._data.shape
    return view(P["reshape"], input, {"shape": (*shape[:dim], 1, *shape[dim:])}, "UnsqueezeBackward0")


def squeeze(input, dim=None):
    shape = input._data.shape
    n = len(shape)
    if dim is None:
        kept = [k for k in shape if k != 1]
    else:
        dims = [normal_dim(d, n) for d in ((dim,) if isinstance(dim, int) else dim)]
        kept = [k for i, k in enumerate(shape) if i not in dims or k != 1]
    return view(P["reshape"], input, {"shape": tuple(kept)}, "SqueezeBackward0" if dim is None else "SqueezeBackward1")


def flatten(input, start_dim=0, end_dim=-1):
    shape = input._data.shape
    if not shape:
        return reshape(input, 1)
    a, b = normal_dim(start_dim, len(shape)), normal_dim(end_dim, len(shape))
    if a > b:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    return reshape(input, *shape[:a], math.prod(shape[a : b + 1]), *shape[b + 1 :])


def unflatten(input, dim, sizes):
    shape = input._data.shape
    dim = normal_dim(dim, len(shape))
    return reshape(input, *shape[:dim], *resolved(tuple(sizes), shape[dim]), *shape[dim + 1 :])


def expand(input, *shape):
    shape = sizes(shape)
    data = input._data
    lead = len(shape) - data.ndim
    if lead < 0:
        raise RuntimeError(
            f"expand({type_of_message(input)}{{{list(data.shape)}}}, size={list(shape)}): the number of sizes "
            f"provided ({len(shape)}) must be greater or equal to the number of dimensions in the tensor "
            f"({data.ndim})"
        )
    full = []
    for i, n in enumerate(shape):
        have = 1 if i < lead else data.shape[i - lead]
        if n == -1 and i >= lead:
            n = have
        if have not in (n, 1):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton "
                f"dimension {i}.  "
                f"Target sizes: {list(shape)}.  Tensor sizes: {list(data.shape)}"
            )
        full.append(n)
    return view(views.expand, input, {"shape": tuple(full)})


def type_of_message(x):
    """Return the type of a tensor as torch's messages of `expand` have it."""
    return f"torch.{x._data.dtype}"


def index_view(input, raw, node):
    """Return a tensor at a basic index, as a view."""
    if Ellipsis not in raw_kinds(raw):
        raw = (*raw, Ellipsis)
    return view(views.index_view, input, {"index": Index(raw)}, node)


def raw_kinds(raw):
    return [i for i in raw if i is Ellipsis]


def _along(dim, entry):
    return (builtins.slice(None),) * dim + (entry,)


def select(input, dim, index):
    n = input._data.ndim
    if not n:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = normal_dim(dim, n)
    size = input._data.shape[dim]
    index = int(index)
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input._data.shape)} at dimension {dim}"
        )
    return index_view(input, _along(dim, index), "SelectBackward0")


def narrow(input, dim, start, length):
    n = input._data.ndim
    if not n:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    dim = normal_dim(dim, n)
    size = input._data.shape[dim]
    start = int(start)
    start = start + size if start < 0 else start
    if start > size or length < 0 or start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return index_view(input, _along(dim, builtins.slice(start, start + length)), "SliceBackward0")


def diagonal(input, offset=0, dim1=0, dim2=1):
    n = input._data.ndim
    a, b = normal_dim(dim1, n), normal_dim(dim2, n)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return view(diagonal_view, input, {"offset": offset, "axis1": a, "axis2": b}, "DiagonalBackward0")


def _diagonal(x, *, offset, axis1, axis2):
    out = np.diagonal(x, offset, axis1, axis2)
    start = [builtins.slice(None)] * x.ndim
    start[axis2 if offset > 0 else axis1] = builtins.slice(builtins.abs(offset), None)
    return views.window(x[tuple(start)], out.shape, out.strides)


def _undiagonal(ct, x, *, offset, axis1, axis2):
    return place_diagonal(ct, shape=x.shape, offset=offset, axis1=axis1, axis2=axis2)


def _place_diagonal(u, *, shape, offset, axis1, axis2):
    out = devices.filled(0, shape, u.dtype, devices.place_of(u))
    _diagonal(out, offset=offset, axis1=axis1, axis2=axis2)[...] = u
    return out


def _diagonal_type(x, *, offset, axis1, axis2):
    shape = np.diagonal(np.broadcast_to(np.zeros(()), x.shape), offset, axis1, axis2).shape
    return ArrayType(shape, x.dtype)


diagonal_view = linear("diagonal_view", _diagonal, type=_diagonal_type, transpose=_undiagonal)
place_diagonal = linear(
    "place_diagonal",
    _place_diagonal,
    type=lambda u, *, shape, offset, axis1, axis2: ArrayType(shape, u.dtype),
    transpose=lambda ct, *, shape, offset, axis1, axis2: diagonal_view(ct, offset=offset, axis1=axis1, axis2=axis2),
)


def unfold(input, dimension, size, step):
    data = input._data
    dim = normal_dim(dimension, data.ndim)
    if data.ndim == 0:
        return as_strided(input, (size,), (1,))
    count = (data.shape[dim] - size) // step + 1
    shape = (*data.shape[:dim], count, *data.shape[dim + 1 :], size)
    index = np.arange(count)[:, None] * step + np.arange(size)
    windows = view(unfold_view, input, {"axis": dim, "size": size, "step": step}, "UnfoldBackward0")
    assert windows.shape == shape, index
    return windows


def _unfold(x, *, axis, size, step):
    shape = (*x.shape[:axis], x.shape[axis] - size + 1, *x.shape[axis + 1 :], size)
    windows = views.window(x, shape, (*x.strides, x.strides[axis]))
    return windows[(builtins.slice(None),) * axis + (builtins.slice(None, None, step),)]


def _unfold_type(x, *, axis, size, step):
    count = (x.shape[axis] - size) // step + 1
    return ArrayType((*x.shape[:axis], count, *x.shape[axis + 1 :], size), x.dtype)


def _refold(ct, x, *, axis, size, step):
    moved = ct.transpose((axis, ct.ndim - 1, *[i for i in range(ct.ndim - 1) if i != axis]))
    count = moved.shape[0]
    at = (np.arange(count)[:, None] * step + np.arange(size)).reshape(1, -1)
    rest = moved.shape[2:]
    total = P["scatter_add"](
        np.zeros((x.shape[axis], *rest), x.dtype), at, moved.reshape((count * size, *rest)), axes=(0,)
    )
    perm = list(range(1, x.ndim))
    perm.insert(axis, 0)
    return total.transpose(tuple(perm))


unfold_view = linear("unfold_view", _unfold, type=_unfold_type, transpose=_refold)


def as_strided(input, size, stride, storage_offset=None):
    data = input._data
    _, first = views.storage_of(data)
    offset = 0 if storage_offset is None else storage_offset - first
    base = input
    if input._view is not None:
        base = input._view.base
    if base is not input or offset < 0 or not data.flags.c_contiguous:
        return _strided_of_base(input, base, size, stride, first if storage_offset is None else storage_offset)
    return view(views.as_strided, input, {"shape": tuple(size), "strides": tuple(stride), "offset": offset})


def _strided_of_base(input, base, size, stride, start):
    """Return a window on the storage behind `input`, as a view of its base, which is contiguous."""
    _, first = views.storage_of(base._data)
    return view(views.as_strided, base, {"shape": tuple(size), "strides": tuple(stride), "offset": start - first})


def view_as(input, other):
    return view_(input, *other._data.shape)


def reshape_as(input, other):
    return reshape(input, *other._data.shape)


def expand_as(input, other):
    return expand(input, *other._data.shape)


define("reshape", reshape, out=False)
Tensor.view = view_
view_.__name__ = "view"
for fun, aliases in (
    (permute, ()), (transpose, ("swapaxes", "swapdims")), (t, ()), (movedim, ("moveaxis",)), (unsqueeze, ()),
    (squeeze, ()), (flatten, ()), (unflatten, ()), (select, ()), (narrow, ()), (diagonal, ()), (as_strided, ()),
):  # fmt: skip
    define(fun.__name__, fun, out=False, aliases=aliases)
for fun in (expand, expand_as, view_as, reshape_as, unfold):
    define(fun.__name__, fun, function=False)
Tensor.T = property(lambda self: permute(self, *range(self._data.ndim)[::-1]))
Tensor.mT = property(lambda self: transpose(self, -1, -2))
Tensor.H = property(lambda self: FUNCTIONS["conj"](transpose(self, 0, 1)))
Tensor.mH = property(lambda self: FUNCTIONS["conj"](transpose(self, -1, -2)))


def in_place_view(name, fun):
    """Attach the method that turns a tensor into a view of itself (`t_`, `squeeze_`, `unsqueeze_`, `transpose_`)."""

    def method(self, *args):
        views.check_inplace(self)
        source = views.alias(self)
        source._node = views.place_of(self)
        made = fun(source, *args)
        self._data = made._data
        views.raise_version(self)
        if views.mode.enabled:
            self._node = made._node if made._node is not source._node else self._node
        return self

    method.__name__ = name + "_"
    setattr(Tensor, name + "_", method)


_TURNING = {"t": t, "squeeze": squeeze, "unsqueeze": unsqueeze, "as_strided": as_strided}
for name, fun in _TURNING.items() | {(n, transpose) for n in ("transpose", "swapaxes", "swapdims")}:
    in_place_view(name, fun)


# ------------------------------------------------------------------------------------------ several views at once


def parts(input, dim, lengths, node, safe):
    """Return consecutive parts of a tensor along a dimension: views, which may be written to only if `safe`."""
    dim = normal_dim(dim, input._data.ndim)
    bounds = np.cumsum([0, *lengths]).tolist()
    entries = [builtins.slice(a, b) for a, b in pairwise(bounds)]
    return _several(input, dim, entries, node, safe)


def _several(input, dim, entries, node, safe):
    outs = split_views(input, dim, entries, node)
    if not safe and mode.enabled:
        for out in outs:
            if out._view is not None:
                out._view.origin = views.MULTIPLE
    return outs


def split_views(input, dim, entries, node):
    """Return views at several basic indices along a dimension, as outputs of one node."""
    indices = tuple([Index((*_along(dim, entry), Ellipsis)) for entry in entries])
    outs = apply(split_prim, (input,), {"indices": indices}, state.interpreter)
    for out, index in zip(outs, indices):
        if out._node is not None:
            out._node.node.__class__ = node_class(node)
        views.as_view(out, input, ((views.index_view, {"index": index}),))
    return outs


def _split_plan(prim, mask, forward):
    def pull(saved, types, params, ct):
        pieces = [(c, index) for c, index in zip(ct, params["indices"]) if c is not None]
        total = None
        for c, index in pieces:
            placed = views.place_at(c, index=index, shape=types[0].shape)
            total = placed if total is None else total + placed
        return (total,)

    return Plan(prim, (0,), (), (0,), pull, None)


split_prim = Primitive(
    "split_views",
    "linear",
    lambda x, *, indices: tuple([x[index.raw] for index in indices]),
    lambda x, *, indices: tuple([views.index_view.type_rule(x, index=index) for index in indices]),
    inputs=("x",),
    make_plan=_split_plan,
    multiple=True,
)


def split_lengths(size, split):
    if split == 0 and size == 0:
        return [0]
    if split <= 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split}")
    whole, rest = divmod(size, split)
    return [split] * whole + ([rest] if rest or not whole else [])


def splitter(safe):
    def split(tensor, split_size_or_sections, dim=0):
        dim = normal_dim(dim, tensor._data.ndim)
        size = tensor._data.shape[dim] if tensor._data.ndim else 1
        if isinstance(split_size_or_sections, int):
            lengths, node = split_lengths(size, split_size_or_sections), "SplitBackward0"
        else:
            lengths, node = list(split_size_or_sections), "SplitWithSizesBackward0"
            if builtins.sum(lengths) != size:
                raise RuntimeError(
                    f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at "
                    f"dimension {dim}), but got split_sizes={lengths}"
                )
        return parts(tensor, dim, lengths, node, safe)

    return split


def chunker(safe):
    def chunk(input, chunks, dim=0):
        if chunks <= 0:
            raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        size = input._data.shape[normal_dim(dim, input._data.ndim)]
        return parts(input, dim, split_lengths(size, builtins.max(-(-size // chunks), 1)), "SplitBackward0", safe)

    return chunk


for prefix, safe in (("", False), ("unsafe_", True)):
    define(prefix + "split", splitter(safe), out=False)
    define(prefix + "split_with_sizes", splitter(safe), out=False)
    define(prefix + "chunk", chunker(safe), out=False)


def tensor_split(input, indices_or_sections, dim=0):
    dim = normal_dim(dim, input._data.ndim)
    size = input._data.shape[dim]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        small, more = divmod(size, indices_or_sections)
        bounds = np.cumsum([0] + [small + 1] * more + [small] * (indices_or_sections - more)).tolist()
    else:
        bounds = [0, *indices_or_sections, size]
    return _several(input, dim, [builtins.slice(a, b) for a, b in pairwise(bounds)], "TensorSplitBackward0", False)


def unbind(input, dim=0):
    if not input._data.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = normal_dim(dim, input._data.ndim)
    return _several(input, dim, range(input._data.shape[dim]), "UnbindBackward0", False)


define("tensor_split", tensor_split, out=False)
define("unbind", unbind, out=False)


def iterate(self):
    if not self._data.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self))


Tensor.__iter__ = iterate

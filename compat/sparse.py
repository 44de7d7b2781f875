"""Sparse COO tensors, as far as `gradcheck` and `detach` need them: made, taken apart, made dense.

The values are an ordinary tensor, `stored`, which is what gradients flow to; the rest of torch's sparse operations is
refused by `_REFUSAL`.
"""

from __future__ import annotations

from math import prod

import numpy as np

from . import devices
from .dtypes import Size
from .methods import FUNCTIONS
from .tensor import Tensor, wrap

LAYOUT = "torch.sparse_coo"

_REFUSAL = (
    "sparse tensors are made by sparse_coo_tensor and to_sparse, and have to_dense, coalesce, indices, values, detach, "
    "clone and grad, and gradcheck takes them; no other operation. Call .to_dense() and go on from there; for "
    "autograd.grad, ask for the tensor of values that the sparse one was made of"
)


def _refused(self):
    raise NotImplementedError(_REFUSAL)


class SparseTensor(Tensor):
    """A tensor that holds `stored` values at the columns of `positions` and zeros elsewhere.

    Values may have dense dimensions after their first. What reads the array or the place in the graph of a tensor is
    told that this one has none.
    """

    def __new__(cls, positions, stored, shape, coalesced=False):
        self = object.__new__(cls)
        self.positions, self.stored = positions, stored
        self.sizes, self.coalesced = tuple(shape), coalesced
        return self

    _data = _node = _view = _counter = property(_refused)
    is_sparse = True
    layout = LAYOUT
    _extras = None

    # ------------------------------------------------------------------------------------------- what it is

    shape = property(lambda self: Size(self.sizes))
    ndim = property(lambda self: len(self.sizes))
    dtype = property(lambda self: self.stored.dtype)
    requires_grad = property(lambda self: self.stored.requires_grad)
    is_leaf = property(lambda self: self.stored.is_leaf)

    def size(self, dim=None):
        """Return the shape, or the size of one dimension."""
        return self.shape if dim is None else self.sizes[dim]

    def dim(self):
        """Return the number of dimensions."""
        return len(self.sizes)

    def numel(self):
        """Return the number of elements of the dense tensor."""
        return prod(self.sizes)

    def is_floating_point(self):
        """Return whether the dtype is a real floating one."""
        return self.stored.is_floating_point()

    def is_complex(self):
        """Return whether the dtype is complex."""
        return self.stored.is_complex()

    def sparse_dim(self):
        """Return the number of dimensions that are indexed."""
        return len(self.positions)

    def dense_dim(self):
        """Return the number of dimensions of each value."""
        return self.stored.dim() - 1

    def _nnz(self):
        return self.positions.shape[1]

    def is_coalesced(self):
        """Return whether the positions are known to be sorted and distinct."""
        return self.coalesced

    def __len__(self):
        return self.sizes[0]

    def __repr__(self, **options):
        grad = ", requires_grad=True" if self.requires_grad else ""
        return (
            f"tensor(indices={self._indices()},\n       values={self._values()},\n       size={self.sizes}, "
            f"nnz={self._nnz()}, layout={LAYOUT}{grad})"
        )

    __str__ = __repr__

    # -------------------------------------------------------------------------------------------- its parts

    def _indices(self):
        return wrap(devices.beside(self.stored._data, self.positions))

    def _values(self):
        return self.stored.detach()

    def indices(self):
        """Return the positions, a column for each value; RuntimeError unless coalesced."""
        self._need_coalesced("indices")
        return self._indices()

    def values(self):
        """Return the values, with their history; RuntimeError unless coalesced."""
        self._need_coalesced("values")
        return self.stored.view_as(self.stored)

    def _need_coalesced(self, what):
        if not self.coalesced:
            raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")

    def _flat(self):
        if not len(self.positions):
            return np.zeros(self._nnz(), np.int64)
        return np.ravel_multi_index(tuple(self.positions), self.sizes[: len(self.positions)])

    def coalesce(self):
        """Return a tensor with sorted and distinct positions; values of one position are added up."""
        if self.coalesced:
            return self
        first, inverse = np.unique(self._flat(), return_inverse=True)
        summed = self._added(inverse, len(first))
        positions = np.array(np.unravel_index(first, self.sizes[: len(self.positions)]), np.int64)
        return SparseTensor(positions.reshape(len(self.positions), -1), summed, self.sizes, True)

    def to_dense(self, dtype=None, *, masked_grad=None):
        """Return the dense tensor, recorded: gradients flow to the values at their positions."""
        dense = self._added(self._flat(), prod(self.sizes[: len(self.positions)])).reshape(self.sizes)
        return dense if dtype is None else dense.to(dtype)

    def _added(self, places, count):
        """Return `count` rows of zeros with the values added at `places`, recorded."""
        stored = self.stored._data
        zeros = devices.filled(0, (count, *stored.shape[1:]), stored.dtype, devices.place_of(stored))
        return wrap(zeros).index_add(0, wrap(devices.beside(stored, np.asarray(places, np.int64))), self.stored)

    # -------------------------------------------------------------------------------------------- gradients

    @property
    def grad(self):
        """The gradient of a leaf, at the stored positions, or None."""
        g = self.stored.grad
        return None if g is None else SparseTensor(self.positions, g, self.sizes, self.coalesced)

    def requires_grad_(self, requires_grad=True):
        """Say whether gradients are wanted."""
        self.stored.requires_grad_(requires_grad)
        return self

    def detach(self):
        """Return a tensor of the same values without their history."""
        return SparseTensor(self.positions, self.stored.detach(), self.sizes, self.coalesced)

    def clone(self):
        """Return a copy, with its history."""
        return SparseTensor(self.positions.copy(), self.stored.clone(), self.sizes, self.coalesced)


def sparse_coo_tensor(
    indices,
    values,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """Return a sparse tensor with `values` at the columns of `indices`.

    Args:
        indices: integers, shape (sparse dimensions, count).
        values: one for each column, shape (count, *dense dimensions); their history is kept.
        size: the shape; the smallest that holds the indices if None.
        requires_grad: make it a leaf that wants a gradient.
        is_coalesced: promise that the positions are sorted and distinct.

    Raises:
        RuntimeError: indices, values and size do not fit.

    Example:
        >>> import fgrad.compat as torch
        >>> s = torch.sparse_coo_tensor([[0, 2]], [3., 4.], (3,))
        >>> s.to_dense()
        tensor([3., 0., 4.])
    """
    indices = FUNCTIONS["as_tensor"](indices)
    stored = values if isinstance(values, Tensor) else FUNCTIONS["tensor"](values, device=device)
    stored = stored if device is None else stored.to(device)
    stored = stored if dtype is None else stored.to(dtype)
    positions = devices.on_host(indices._data).astype(np.int64)
    _check_indices(indices, positions, stored)
    least = tuple(positions.max(1, initial=-1) + 1) if positions.size else (0,) * len(positions)
    size = (*map(int, least), *stored.shape[1:]) if size is None else tuple(map(int, size))
    _check_size(positions, stored, size)
    if requires_grad:
        stored = stored.detach().requires_grad_()
    return SparseTensor(positions, stored, size, bool(is_coalesced))


def _check_indices(indices, positions, stored):
    if positions.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(positions.shape)}")
    if indices._data.dtype.kind not in "iu" and indices._data.size:
        raise RuntimeError("indices must be an int64 tensor")
    if stored._data.shape[:1] != positions.shape[1:]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {positions.shape[1]}, nnz from values: "
            f"{stored._data.shape[0] if stored._data.ndim else 'a number'}"
        )
    for d, row in enumerate(positions):
        if row.size and row.min() < 0:
            raise RuntimeError(f"found negative index {row.min()} for dim {d}")


def _check_size(positions, stored, size):
    sparse, dense = len(positions), stored._data.ndim - 1
    if len(size) != sparse + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse}, "
            f"dense_dim = {dense}"
        )
    for d, row in enumerate(positions):
        if row.size and row.max() >= size[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {row.max()}"
            )
    if tuple(size[sparse:]) != stored._data.shape[1:]:
        raise RuntimeError(
            f"values has incorrect size, expected {[positions.shape[1], *size[sparse:]]}, got {list(stored.shape)}"
        )


def to_sparse(self):
    """Return the sparse tensor of the elements that are not zero, with their history."""
    data = devices.on_host(self._data)
    positions = np.argwhere(data).T.astype(np.int64)
    rows = np.flatnonzero(data)
    return SparseTensor(positions, self.reshape(-1)[wrap(rows)], self.shape, True)


Tensor.to_sparse = to_sparse
Tensor.to_dense = lambda self, dtype=None, *, masked_grad=None: self if dtype is None else self.to(dtype)

"""Parts of tensors: functions that return a tensor with one part replaced, and that split by dimension."""

from __future__ import annotations

import numpy as np

from .. import devices, views
from ..tensor import Tensor, normal_dim
from .index import copy_
from .reduce import result_type
from .shape import as_strided, diagonal, expand, select, tensor_split
from .table import FUNCTIONS, composed, define, without_derivative


def replaced(part, name):
    """Return the function that copies a tensor and writes `src` into the part of it that a view is."""

    def fun(input, src, *args, **kwargs):
        out = FUNCTIONS["clone"](input)
        view = part(out, *args, **kwargs)
        if view.shape != src.shape:
            raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
                               f"slice size = {list(view.shape)}")  # fmt: skip
        copy_(view, src)
        return out

    return define(name, fun)


def sliced(input, dim=0, start=None, end=None, step=1):
    """Return every `step`-th slice of a dimension from `start` to `end`, as a view."""
    return input[(slice(None),) * normal_dim(dim, input._data.ndim) + (slice(start, end, step),)]


for name, part in {
    "select_scatter": select,
    "slice_scatter": sliced,
    "diagonal_scatter": diagonal,
    "as_strided_scatter": as_strided,
}.items():
    replaced(part, name)


def narrow_copy(input, dim, start, length):
    return FUNCTIONS["clone"](FUNCTIONS["narrow"](input, dim, start, length))


def fill_diagonal_(self, fill_value, wrap=False):
    """Fill the main diagonal in place; with `wrap` it starts again below in a tall matrix."""
    if self._data.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    rows, columns = self._data.shape[0], self._data.shape[-1]
    if self._data.ndim > 2 and len(set(self._data.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if self._data.ndim > 2:
        index = tuple([np.arange(rows)] * self._data.ndim)
        self[index] = fill_value
        return self
    step = columns + 1
    for start in range(0, rows if wrap else columns, step):
        part = self[start : start + columns] if wrap else self
        diagonal(part).fill_(fill_value)
    return self


def splitter(name, dim, least):
    """Define hsplit, vsplit or dsplit: tensor_split along one dimension."""

    def fun(input, indices_or_sections):
        n = input._data.ndim
        if n < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with "
                               f"{n} dimensions!")  # fmt: skip
        return tensor_split(input, indices_or_sections, 0 if n == 1 else dim)

    define(name, fun, out=False)


for name, dim, least in (("hsplit", 1, 1), ("vsplit", 0, 2), ("dsplit", 2, 3)):
    splitter(name, dim, least)
define("narrow_copy", narrow_copy)
define("fill_diagonal_", fill_diagonal_, function=False)
define("ravel", lambda input: FUNCTIONS["reshape"](input, -1), out=False)
define("adjoint", lambda input: input.mH, out=False)
define("is_same_size", lambda input, other: input.shape == other.shape, out=False)


def sum_to_size(self, *size):
    """Return the sum over the dimensions that broadcasting added or stretched to get from `size` to this shape."""
    size = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    lead = self._data.ndim - len(size)
    if lead < 0 or any(m not in (1, n) for m, n in zip(size, self._data.shape[lead:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(self.shape)}}}.")
    over = [*range(lead), *[i + lead for i, m in enumerate(size) if m == 1 and self._data.shape[i + lead] != 1]]
    return self.sum(over, True).reshape(*size) if over else self


define("sum_to_size", sum_to_size, function=False)

# ------------------------------------------------------------------------------------------ searching and counting

_aminmax, _frexp, _histogram = (
    result_type("aminmax", "min", "max"),
    result_type("frexp", "mantissa", "exponent"),
    result_type("histogram", "hist", "bin_edges"),
)


def aminmax(input, *, dim=None, keepdim=False):
    over = () if dim is None else dim
    return _aminmax(FUNCTIONS["amin"](input, over, keepdim), FUNCTIONS["amax"](input, over, keepdim))


def msort(input):
    return FUNCTIONS["sort"](input, 0)[0]


def frexp(input):
    mantissa, exponent = np.frexp(input)
    return _frexp(mantissa, exponent.astype(np.int32))


def histogram(input, bins, *, range=None, weight=None, density=False):
    edges = bins if not hasattr(bins, "_data") else bins._data
    count, edges = np.histogram(input, edges, range, density, weight)
    return _histogram(count.astype(input.dtype), edges.astype(input.dtype))


def corrcoef(input):
    covariance = input.cov()
    if not covariance._data.ndim:
        return covariance / covariance
    scale = FUNCTIONS["sqrt"](covariance.diag())
    return covariance / scale[:, None] / scale[None, :]


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    x = input.reshape(-1) if dim is None else input.movedim(dim, 0)
    rows = x._data.reshape(len(x._data), -1)
    starts = np.ones(len(rows), bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(1)
    at = np.flatnonzero(starts)
    values = x[at] if dim is None else x[at].movedim(0, dim)
    integer = FUNCTIONS["as_tensor"]
    inverse = integer(np.cumsum(starts) - 1)
    found = [
        values,
        inverse.reshape(*input.shape) if dim is None else inverse,
        integer(np.diff(at, append=len(rows))),
    ]
    out = [f for f, wanted in zip(found, (True, return_inverse, return_counts)) if wanted]
    return out[0] if len(out) == 1 else tuple(out)


define("aminmax", aminmax, out=False)
define("msort", msort)
define("frexp", composed(frexp), out=False)
define("histogram", composed(histogram), out=False)
define("corrcoef", corrcoef, out=False)
define("unique_consecutive", without_derivative(unique_consecutive, "unique_consecutive"), out=False)


# --------------------------------------------------------------------------------------- Python functions, elementwise


def apply_(self, callable):
    """Replace every element by `callable(element)` in place."""
    return map_elements(self, callable)


def map_(self, tensor, callable):
    """Replace every element by `callable(element, other element)` in place."""
    return map_elements(self, callable, tensor)


def map2_(self, x, y, callable):
    """Replace every element by `callable(element, x, y)` in place."""
    return map_elements(self, callable, x, y)


def map_elements(t, callable, *others):
    """Write what a function of Python numbers gives for each element; RuntimeError for what requires grad."""
    if any(views.requires_grad(x) for x in (t, *others)):
        raise RuntimeError(
            "Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead."
            if not others
            else "Can't call map_() on Variable that requires grad. Use var.detach().map_()"
        )
    flat = [np.broadcast_to(devices.on_host(x._data), t._data.shape).reshape(-1).tolist() for x in (t, *others)]
    views.check_inference(t)
    made = np.array([callable(*items) for items in zip(*flat)], t._data.dtype).reshape(t._data.shape)
    t._data[...] = devices.beside(t._data, made)
    views.raise_version(t)
    return t


for fun in (apply_, map_, map2_):
    define(fun.__name__, fun, function=False)


def as_subclass(self, cls):
    """Return the tensor as one of a subclass, on the same memory and with its history."""
    made = object.__new__(cls)
    alias = expand(self, *self._data.shape)
    for slot in ("_data", "_node", "_counter", "_view"):
        setattr(made, slot, getattr(alias, slot))
    made._extras = None
    return made


define("as_subclass", as_subclass, function=False)
define("is_nonzero", lambda input: bool(input), out=False)
for name in ("is_conj", "is_neg"):
    define(name, lambda input: False, out=False)
define("resolve_neg", lambda input: input, out=False)
Tensor.is_cpu = True
for name in ("ipu", "maia", "mps", "mtia", "vulkan", "xla", "xpu", "sparse_csr"):
    setattr(Tensor, f"is_{name}", False)
Tensor.name = property(lambda self: None if self._extras is None else self._extras.name)
Tensor.grad_dtype = property(lambda self: self.dtype)
Tensor.dim_order = lambda self: tuple(sorted(range(self._data.ndim), key=lambda d: -abs(self._data.strides[d])))
Tensor.storage_type = lambda self: type(self.storage())


def _removed(name, instead):
    def method(self, *args, **kwargs):
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. {instead}")

    setattr(Tensor, name, method)


for name in ("eig", "symeig", "lstsq", "solve"):
    _removed(name, f"`torch.{name}` is replaced by a function of `torch.linalg`.")
_removed("reinforce", "reinforce() was removed: use the logarithm of the probability.")

"""Making tensors: from data, filled, random, and like another one."""

from __future__ import annotations

import functools

import numpy as np

from fgrad.extend import Tracer

from .. import dtypes
from ..modes import mode
from ..tensor import INFERENCE, LEAF, TYPE_NAMES, Tensor, fresh, wrap
from .table import FUNCTIONS, define, write_out


def made(data, requires_grad=False):
    """Return a tensor of an array; RuntimeError if a gradient is wanted of integers."""
    if not requires_grad:
        return fresh(data)
    if data.dtype.kind not in "fcV":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return wrap(data, LEAF)


def enter_factory(name, fun):
    """Define a function that makes a tensor; with `out=`, a tensor whose dtype it takes, it writes there."""

    @functools.wraps(fun)
    def call(*args, out=None, **kwargs):
        if out is None:
            return fun(*args, **kwargs)
        write_out(out, fun(*args, **{"dtype": out.dtype, **kwargs}))
        return out

    return define(name, call, method=False, out=False)


def numpy_dtype(dtype, fallback=None):
    """Return the NumPy dtype to use for a factory's `dtype=`, None meaning `fallback` or the default."""
    return dtypes.to_numpy(dtype) if dtype is not None else fallback or dtypes.default.real


def inferred(values):
    """Return an array of nested Python numbers in the dtype torch infers: floats take the default one."""
    if isinstance(values, (list, tuple)):
        values = [_plain(v) for v in values]
    data = np.asarray(values)
    if data.dtype == object:
        raise ValueError("expected sequence of equal length at every dim, or numbers")
    return data


def _plain(v):
    if isinstance(v, Tensor):
        return v._data.tolist()
    return [_plain(item) for item in v] if isinstance(v, (list, tuple)) else v


def _python_only(values):
    while isinstance(values, (list, tuple)) and values:
        values = values[0]
    return not isinstance(values, (np.ndarray, np.generic))


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """Return a new leaf tensor of a copy of `data`.

    Args:
        data: a number, a nested sequence of numbers, an array or a tensor.
        dtype: element type; by default that of arrays, the default dtype for Python floats, int64 for ints.
        device: "cpu".
        requires_grad: whether gradients are wanted.

    Raises:
        RuntimeError: `requires_grad` of integers.
        ValueError: a ragged sequence.

    Example:
        >>> import fgrad.compat as torch
        >>> torch.tensor([[1., 2.], [3., 4.]])
        tensor([[1., 2.],
                [3., 4.]])
    """
    dtypes.check_device(device)
    if isinstance(data, Tensor):
        data = data._data
    if isinstance(data, Tracer):
        return made(data if dtype is None else data.astype(dtypes.to_numpy(dtype)), requires_grad)
    python = _python_only(data)
    data = inferred(data)
    if dtype is not None:
        data = data.astype(dtypes.to_numpy(dtype))
    elif python:
        kind = {"f": dtypes.default.real, "c": dtypes.default.complex}.get(data.dtype.kind)
        if data.size == 0 and data.dtype.kind == "f":
            kind = dtypes.default.real
        data = data.astype(kind or data.dtype)
    else:
        data = np.array(data)
    return made(data, requires_grad)


def as_tensor(data, dtype=None, device=None):
    """Return `data` as a tensor, on the same memory where it can be."""
    if isinstance(data, Tensor):
        return data if dtype is None or data.dtype is dtype else data.to(dtype)
    if isinstance(data, np.ndarray) and (dtype is None or dtypes.to_numpy(dtype) == data.dtype):
        return from_numpy(data)
    return tensor(data, dtype=dtype, device=device)


def from_numpy(array):
    """Return a tensor on the memory of an array; TypeError for dtypes that torch has not."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    dtypes.of(array.dtype)
    return fresh(array)


def from_dlpack(ext_tensor):
    """Return a tensor on the memory of an array of another library, which offers it by DLPack."""
    shared = isinstance(ext_tensor, np.ndarray) and ext_tensor.flags.writeable
    return from_numpy(ext_tensor if shared else np.from_dlpack(ext_tensor))  # whose result NumPy 2.0 makes read-only


def shape_of(size):
    """Return sizes given as `f(2, 3)` or `f((2, 3))` as a tuple."""
    if len(size) == 1 and not isinstance(size[0], (int, np.integer)) and not isinstance(size[0], Tensor):
        size = size[0]
    return tuple([int(n) for n in size])


def filled(name, fill):
    """Define `name(*size)`, `name_like(x)` and `x.new_name(*size)` from `fill(shape, numpy dtype)`."""

    def factory(
        *size,
        dtype=None,
        device=None,
        requires_grad=False,
        layout=None,
        pin_memory=False,
        size_=None,
        generator=None,
        **size_word,
    ):
        dtypes.check_device(device)
        shape = shape_of((size_word["size"],) if "size" in size_word else size)
        data = fill(shape, numpy_dtype(dtype), **({"generator": generator} if generator is not None else {}))
        return made(data, requires_grad)

    def like(input, *, dtype=None, device=None, requires_grad=False, layout=None, memory_format=None):
        dtypes.check_device(device)
        return made(fill(input._data.shape, numpy_dtype(dtype, input._data.dtype)), requires_grad)

    def new(self, *size, dtype=None, device=None, requires_grad=False):
        return made(fill(shape_of(size), numpy_dtype(dtype, self._data.dtype)), requires_grad)

    enter_factory(name, factory)
    define(name + "_like", like, method=False, out=False)
    define("new_" + name, new, function=False)


filled("zeros", np.zeros)
filled("ones", np.ones)
filled("empty", np.zeros)


def full(size, fill_value, *, dtype=None, device=None, requires_grad=False):
    dtypes.check_device(device)
    if dtype is None:
        data = tensor(fill_value)._data
        kind = data.dtype
    else:
        kind = dtypes.to_numpy(dtype)
    fill_value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return made(np.full(shape_of((size,)), fill_value, kind), requires_grad)


def full_like(input, fill_value, *, dtype=None, device=None, requires_grad=False):
    dtypes.check_device(device)
    return made(np.full(input._data.shape, fill_value, numpy_dtype(dtype, input._data.dtype)), requires_grad)


def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    return made(np.full(shape_of((size,)), fill_value, numpy_dtype(dtype, self._data.dtype)), requires_grad)


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    return tensor(data, dtype=dtype or self.dtype, requires_grad=requires_grad)


def new(self, *args):
    """The old `x.new(...)`: a tensor of the same dtype, of sizes or of a sequence."""
    if not args:
        return fresh(np.zeros((0,), self._data.dtype))
    if len(args) == 1 and isinstance(args[0], (list, tuple)) and not isinstance(args[0], dtypes.Size):
        return tensor(args[0], dtype=self.dtype)
    if len(args) == 1 and isinstance(args[0], Tensor):
        return tensor(args[0], dtype=self.dtype)
    return fresh(np.zeros(shape_of(args), self._data.dtype))


def arange(*bounds, dtype=None, device=None, requires_grad=False, start=None, end=None, step=None):
    dtypes.check_device(device)
    values = [b.item() if isinstance(b, Tensor) else b for b in bounds]
    if end is not None:
        values = [start or 0, end]
    if step is not None:
        values = [*([0, *values] if len(values) == 1 else values), step]
    whole = all(isinstance(v, (int, np.integer)) for v in values)
    kind = dtypes.to_numpy(dtype) if dtype is not None else dtypes.INT64 if whole else dtypes.default.real
    return made(np.arange(*values).astype(kind), requires_grad)


def linspace(start, end, steps, *, dtype=None, device=None, requires_grad=False):
    dtypes.check_device(device)
    return made(np.linspace(float(start), float(end), steps).astype(numpy_dtype(dtype)), requires_grad)


def logspace(start, end, steps, base=10.0, *, dtype=None, device=None, requires_grad=False):
    dtypes.check_device(device)
    return made(np.logspace(float(start), float(end), steps, base=base).astype(numpy_dtype(dtype)), requires_grad)


def eye(n, m=None, *, dtype=None, device=None, requires_grad=False):
    dtypes.check_device(device)
    return made(np.eye(n, m, dtype=numpy_dtype(dtype)), requires_grad)


def tri_indices(find):
    def call(row, col, offset=0, *, dtype=None, device=None):
        return fresh(np.stack(find(row, offset, col)).astype(numpy_dtype(dtype, dtypes.INT64)))

    return call


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    return tensor(s, dtype=dtype, requires_grad=requires_grad)


for fun in (tensor, as_tensor, from_numpy, from_dlpack, full_like, scalar_tensor):
    define(fun.__name__, fun, method=False, out=False)
for fun in (full, arange, linspace, logspace, eye):
    enter_factory(fun.__name__, fun)
FUNCTIONS["asarray"] = as_tensor


def new_empty_strided(self, size, stride, *, dtype=None, device=None, requires_grad=False):
    """Return a tensor of a size with these steps in memory, of the same dtype; its values are zero."""
    kind = numpy_dtype(dtype, self._data.dtype)
    count = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else 0
    memory = np.zeros(count, kind)
    return made(np.lib.stride_tricks.as_strided(memory, size, [s * kind.itemsize for s in stride]), requires_grad)


for fun in (new_full, new_tensor, new, new_empty_strided):
    define(fun.__name__, fun, function=False)
define("tril_indices", tri_indices(np.tril_indices), method=False, out=False)
define("triu_indices", tri_indices(np.triu_indices), method=False, out=False)


# -------------------------------------------------------------------------------------------- typed constructors


class _TypedMeta(type):
    """`isinstance(x.float(), torch.FloatTensor)` asks for the dtype."""

    def __instancecheck__(cls, x):
        return isinstance(x, Tensor) and x.dtype is cls.dtype

    def __repr__(cls):
        return f"<class 'torch.{cls.__name__}'>"


def _typed(name, numpy_name):
    kind = dtypes.DTYPES[numpy_name]

    def construct(cls, *args):
        if not args:
            return fresh(np.zeros((0,), dtypes.to_numpy(kind)))
        if len(args) == 1 and not isinstance(args[0], (int, dtypes.Size)):
            return tensor(args[0], dtype=kind)
        return fresh(np.zeros(shape_of(args), dtypes.to_numpy(kind)))

    return _TypedMeta(name, (), {"__new__": construct, "dtype": kind, "__module__": "torch"})


TYPED = {name: _typed(name, numpy_name) for numpy_name, name in TYPE_NAMES.items()}
FUNCTIONS.update(TYPED)


def construct(cls, *args, requires_grad=False, device=None, dtype=None):
    """`torch.Tensor(...)`: float tensors from sizes or from a sequence; also what subclasses are made by."""
    self = object.__new__(cls)
    self._node = self._counter = self._view = self._extras = None
    if not args:
        self._data = np.zeros((0,), dtypes.default.real)
    elif len(args) == 1 and isinstance(args[0], Tensor):
        self._data, self._counter = args[0]._data, args[0].counter
    elif len(args) == 1 and not isinstance(args[0], (int, dtypes.Size)):
        self._data = inferred(args[0]).astype(dtypes.default.real)
    else:
        self._data = np.zeros(shape_of(args), dtypes.default.real)
    if mode.inference:
        self._counter = INFERENCE
    return self


Tensor.__new__ = staticmethod(construct)

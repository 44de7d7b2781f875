"""Making tensors: from data, filled, random, and like another one."""

from __future__ import annotations

import functools

import numpy as np

from fgrad import extend
from fgrad.extend import Tracer, on_gpu

from .. import devices, dtypes
from ..modes import mode
from ..tensor import INFERENCE, LEAF, TYPE_NAMES, Tensor, fresh, wrap
from .table import FUNCTIONS, define, write_out


def made(data, requires_grad=False, place=None):
    """Return a tensor of an array, on the GPU of a number if given; RuntimeError if integers are to have a gradient."""
    if place is not None:
        data = devices.to_device(data, place=place, source=None)
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
        write_out(out, fun(*args, **{"dtype": out.dtype, "device": out.device, **kwargs}))
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
    if isinstance(v, Tensor) or on_gpu(v):
        return v.tolist()
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
        device: "cpu", "cuda" or "cuda:1"; by default that of a tensor, the CPU for other data.
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
    place = devices.number_of(device)
    if isinstance(data, Tensor):
        data = data._data
    if isinstance(data, Tracer):
        return made(data if dtype is None else data.astype(dtypes.to_numpy(dtype)), requires_grad)
    if on_gpu(data):
        kept = data.copy() if dtype is None else data.astype(dtypes.to_numpy(dtype))
        return made(kept if device is None else devices.moved(kept, place), requires_grad)
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
    return made(data, requires_grad, place)


def as_tensor(data, dtype=None, device=None):
    """Return `data` as a tensor, on the same memory where it can be."""
    if isinstance(data, Tensor):
        if device is None and (dtype is None or data.dtype is dtype):
            return data
        return data.to(device or data.device, dtype or data.dtype)
    if on_gpu(data):
        return wrap(data).to(device or devices.device_of(data), dtype or dtypes.of(data.dtype))
    if isinstance(data, np.ndarray) and (dtype is None or dtypes.to_numpy(dtype) == data.dtype):
        shared = from_numpy(data)
        place = devices.number_of(device)
        return shared if place is None else made(data, place=place)
    return tensor(data, dtype=dtype, device=device)


def from_numpy(array):
    """Return a tensor on the memory of an array; TypeError for dtypes that torch has not."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    dtypes.of(array.dtype)
    return fresh(array)


def from_dlpack(ext_tensor):
    """Return a tensor on the memory of an array of another library, which offers it by DLPack."""
    if not isinstance(ext_tensor, np.ndarray) and devices.is_there(ext_tensor):
        return fresh(extend.put(ext_tensor))
    shared = isinstance(ext_tensor, np.ndarray) and ext_tensor.flags.writeable
    return from_numpy(ext_tensor if shared else np.from_dlpack(ext_tensor))  # whose result NumPy 2.0 makes read-only


def shape_of(size):
    """Return sizes given as `f(2, 3)` or `f((2, 3))` as a tuple."""
    if len(size) == 1 and not isinstance(size[0], (int, np.integer)) and not isinstance(size[0], Tensor):
        size = size[0]
    return tuple([int(n) for n in size])


def beside(t, device):
    """Return the number of the GPU that a tensor like `t` is made on, None for the CPU: `device` if it is given."""
    return devices.place_of(t._data) if device is None else devices.number_of(device)


def filled(name, fill, value=None):
    """Define `name(*size)`, `name_like(x)` and `x.new_name(*size)` from `fill(shape, numpy dtype)`.

    `value` is what all elements are, if they are alike: then nothing but it is sent to a GPU.
    """

    def make(shape, kind, place, **options):
        if value is None or place is None:
            return fill(shape, kind, **options)
        return devices.filled(value, shape, kind, place)

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
        place = devices.number_of(device)
        shape = shape_of((size_word["size"],) if "size" in size_word else size)
        options = {"generator": generator} if generator is not None else {}
        if place is None:
            return made(fill(shape, numpy_dtype(dtype), **options), requires_grad)
        return made(make(shape, numpy_dtype(dtype), place, **options), requires_grad, place)

    def like(input, *, dtype=None, device=None, requires_grad=False, layout=None, memory_format=None):
        place = beside(input, device)
        return made(make(input._data.shape, numpy_dtype(dtype, input._data.dtype), place), requires_grad, place)

    def new(self, *size, dtype=None, device=None, requires_grad=False):
        place = beside(self, device)
        return made(make(shape_of(size), numpy_dtype(dtype, self._data.dtype), place), requires_grad, place)

    enter_factory(name, factory)
    define(name + "_like", like, method=False, out=False)
    define("new_" + name, new, function=False)


filled("zeros", np.zeros, 0)
filled("ones", np.ones, 1)
filled("empty", np.zeros, 0)


def full(size, fill_value, *, dtype=None, device=None, requires_grad=False):
    place = devices.number_of(device)
    kind = tensor(fill_value)._data.dtype if dtype is None else dtypes.to_numpy(dtype)
    fill_value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return made(devices.filled(fill_value, shape_of((size,)), kind, place), requires_grad)


def full_like(input, fill_value, *, dtype=None, device=None, requires_grad=False):
    kind = numpy_dtype(dtype, input._data.dtype)
    return made(devices.filled(fill_value, input._data.shape, kind, beside(input, device)), requires_grad)


def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    kind = numpy_dtype(dtype, self._data.dtype)
    return made(devices.filled(fill_value, shape_of((size,)), kind, beside(self, device)), requires_grad)


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    return tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def new(self, *args):
    """The old `x.new(...)`: a tensor of the same dtype and device, of sizes or of a sequence."""
    if len(args) == 1 and isinstance(args[0], (list, tuple, Tensor)) and not isinstance(args[0], dtypes.Size):
        return tensor(args[0], dtype=self.dtype, device=self.device)
    return fresh(devices.filled(0, shape_of(args) if args else (0,), self._data.dtype, devices.place_of(self._data)))


def arange(*bounds, dtype=None, device=None, requires_grad=False, start=None, end=None, step=None):
    place = devices.number_of(device)
    values = [b.item() if isinstance(b, Tensor) else b for b in bounds]
    if end is not None:
        values = [start or 0, end]
    if step is not None:
        values = [*([0, *values] if len(values) == 1 else values), step]
    whole = all(isinstance(v, (int, np.integer)) for v in values)
    kind = dtypes.to_numpy(dtype) if dtype is not None else dtypes.INT64 if whole else dtypes.default.real
    return made(np.arange(*values).astype(kind), requires_grad, place)


def linspace(start, end, steps, *, dtype=None, device=None, requires_grad=False):
    place = devices.number_of(device)
    return made(np.linspace(float(start), float(end), steps).astype(numpy_dtype(dtype)), requires_grad, place)


def logspace(start, end, steps, base=10.0, *, dtype=None, device=None, requires_grad=False):
    place = devices.number_of(device)
    found = np.logspace(float(start), float(end), steps, base=base)
    return made(found.astype(numpy_dtype(dtype)), requires_grad, place)


def eye(n, m=None, *, dtype=None, device=None, requires_grad=False):
    place = devices.number_of(device)
    return made(np.eye(n, m, dtype=numpy_dtype(dtype)), requires_grad, place)


def tri_indices(find):
    def call(row, col, offset=0, *, dtype=None, device=None):
        found = np.stack(find(row, offset, col)).astype(numpy_dtype(dtype, dtypes.INT64))
        return made(found, place=devices.number_of(device))

    return call


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    return tensor(s, dtype=dtype, device=device, requires_grad=requires_grad)


for fun in (tensor, as_tensor, from_numpy, from_dlpack, full_like, scalar_tensor):
    define(fun.__name__, fun, method=False, out=False)
for fun in (full, arange, linspace, logspace, eye):
    enter_factory(fun.__name__, fun)
FUNCTIONS["asarray"] = as_tensor


def new_empty_strided(self, size, stride, *, dtype=None, device=None, requires_grad=False):
    """Return a tensor of a size with these steps in memory, of the same dtype; its values are zero."""
    kind = numpy_dtype(dtype, self._data.dtype)
    place = beside(self, device)
    count = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else 0
    memory = devices.filled(0, (count,), kind, place)
    return made(devices.strided(memory, size, [s * kind.itemsize for s in stride]), requires_grad)


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

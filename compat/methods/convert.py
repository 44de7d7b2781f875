"""Changes of dtype and device."""

from __future__ import annotations

from .. import devices, dtypes
from ..dtypes import device as Device
from ..tape import moved
from ..tensor import Tensor, type_name
from .create import TYPED
from .table import FUNCTIONS, define
from .table import to as cast_to


def to(self, *args, dtype=None, device=None, copy=False, non_blocking=False, memory_format=None):
    """Return the tensor in another dtype or on another device; itself if nothing changes and `copy` is False.

    Takes a dtype, a device, another tensor (whose dtype and device are taken), or a device and a dtype. A move is
    recorded: the gradient comes back to where the tensor was.
    """
    for arg in args:
        if isinstance(arg, dtypes.dtype) or arg in (int, float, bool, complex):
            dtype = arg
        elif isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif isinstance(arg, bool):
            copy = arg
        elif isinstance(arg, (str, Device, int)):
            device = arg
    place = devices.number_of(device)
    out = self if dtype is None else cast_to(self, dtypes.to_numpy(dtype))
    out = out if device is None else moved(out, place)
    return FUNCTIONS["clone"](self) if copy and out is self else out


def converter(numpy_name):
    """Return the method that converts to one dtype, such as `float()`."""

    def method(self, memory_format=None):
        return cast_to(self, dtypes.to_numpy(dtypes.DTYPES[numpy_name]))

    return method


def type_(self, dtype=None, non_blocking=False):
    """Return the name of the tensor's type, or the tensor in another dtype (the same memory if it has that already)."""
    if dtype is None:
        return type_name(self)
    if isinstance(dtype, str):
        name = dtype.removeprefix("torch.")
        if name.startswith("cuda."):
            return cast_to(cuda(self), dtypes.to_numpy(TYPED[name.removeprefix("cuda.")].dtype))
        dtype = TYPED[name].dtype
    if not isinstance(dtype, dtypes.dtype) and hasattr(dtype, "dtype"):
        dtype = dtype.dtype
    return cast_to(self, dtypes.to_numpy(dtype))


def same(self, *args, **kwargs):
    """Return the tensor itself: it is on the CPU already."""
    return self


define("to", to, function=False)
define("type", type_, function=False)
define("type_as", lambda self, other: to(self, other), function=False)
for name, numpy_name in {
    **dtypes.ALIASES,
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "bfloat16": "bfloat16",
}.items():
    define(name, converter(numpy_name), function=False)
define("cpu", lambda self, memory_format=None: moved(self, None), function=False)


def cuda(self, device=None, non_blocking=False, memory_format=None):
    """Return the tensor on a GPU (the current one by default); itself if it is there. The move is recorded.

    Raises:
        AssertionError: torch's error of a build without CUDA, where there is no GPU.
        RuntimeError: `device` is no GPU.
    """
    devices.check_available()
    if device is not None and Device(device).type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    return moved(self, devices.number_of("cuda" if device is None else device))


define("cuda", cuda, function=False)


def result_type(tensor1, tensor2):
    values = [x._data if isinstance(x, Tensor) else x for x in (tensor1, tensor2)]
    return dtypes.of(dtypes.result_dtype(values))


def promote_types(type1, type2):
    return dtypes.of(dtypes.combine(dtypes.to_numpy(type1), dtypes.to_numpy(type2)))


def can_cast(from_, to):
    return dtypes.category(dtypes.to_numpy(from_)) <= dtypes.category(dtypes.to_numpy(to))


def is_tensor(obj):
    return isinstance(obj, Tensor)


def is_floating_point(input):
    return input.is_floating_point()


def is_complex(input):
    return input.is_complex()


def numel(input):
    return input.numel()


for fun in (result_type, promote_types, can_cast, is_tensor, is_floating_point, is_complex, numel):
    define(fun.__name__, fun, method=False, out=False)

"""The memory behind tensors: storages, addresses, and the methods that give a tensor another size or other memory."""

from __future__ import annotations

import math
import warnings

import numpy as np

from .. import devices, views
from ..tape import cut
from ..tensor import Tensor, wrap
from .shape import reshape, sizes
from .table import define


def storage_offset(self):
    """Return the place in the storage where the tensor starts, in elements."""
    return int(views.storage_of(self._data)[1])


def data_ptr(self):
    """Return the address of the first element."""
    return devices.address_of(self._data)


class Storage:
    """The whole memory behind a tensor."""

    def __init__(self, t):
        self.tensor = wrap(views.storage_of(t._data)[0])

    def data_ptr(self):
        """Return the address of the first element."""
        return data_ptr(self.tensor)

    def __len__(self):
        return self.tensor._data.size

    size = __len__

    def __getitem__(self, i):
        return self.tensor._data[i].item()

    def __setitem__(self, i, value):
        self.tensor._data[i] = value

    def tolist(self):
        """Return the elements in a list."""
        return self.tensor.tolist()

    def nbytes(self):
        """Return the size in bytes."""
        return self.tensor._data.nbytes


Tensor.storage_offset = storage_offset
Tensor.data_ptr = Tensor.const_data_ptr = data_ptr
Tensor.storage = Tensor.untyped_storage = Tensor._typed_storage = lambda self: Storage(self)

# --------------------------------------------------------------------------------- another size, other memory

_DETACHED = (
    "{} is not allowed on a Tensor created from .data or .detach(). If your intent is to change the metadata of a "
    "Tensor (such as sizes / strides / storage / storage_offset) without autograd tracking the change, remove the "
    ".data / .detach() call and wrap the change in a `with torch.no_grad():` block."
)


def _check_changeable(t, what):
    """Raise torch's error if the size or memory of `t` may not be changed."""
    views.check_inference(t)
    if t._extras is not None and t._extras.detached:
        raise RuntimeError(_DETACHED.format(what))


def resize_(self, *sizes_, memory_format=None):
    """Give the tensor another size in place: elements keep their order in memory, new ones are zero.

    Raises:
        RuntimeError: the tensor requires grad, or was made by `detach()`.
    """
    if views.requires_grad(self):
        raise RuntimeError("cannot resize variables that require grad")
    _check_changeable(self, "set_sizes_contiguous")
    shape = sizes(sizes_)
    count = math.prod(shape)
    storage, first = views.storage_of(self._data)
    if storage.size - first < count:
        grown = devices.filled(0, (first + count,), storage.dtype, devices.place_of(storage))
        grown[: storage.size] = storage
        storage = grown
    self._data = storage[first : first + count].reshape(shape)
    views.raise_version(self)
    return self


def resize_as_(self, the_template, *, memory_format=None):
    """Give the tensor the size of another in place."""
    return resize_(self, *the_template._data.shape)


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Let the tensor look into the memory of a tensor or a storage from now on.

    Raises:
        RuntimeError: the tensor requires grad or was made by `detach()`, or the source is of another dtype.
    """
    views.check_inplace(self)
    _check_changeable(self, "set_storage")
    if views.requires_grad(self):
        raise RuntimeError("the derivative for 'set_' is not implemented: the tensor requires grad")
    views.raise_version(self)
    if source is None:
        self._data = devices.filled(0, (0,), self._data.dtype, devices.place_of(self._data))
        return self
    source = source.tensor if isinstance(source, Storage) else source
    if source.device != self.device:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{self.device}" to a storage on different device '
            f'"{source.device}".  This is no longer allowed; the devices must match.'
        )
    data = source._data
    if data.dtype != self._data.dtype:
        raise RuntimeError(f"Could not set tensor of type {data.dtype} to a tensor of type {self._data.dtype}")
    if size is not None:
        storage, _ = views.storage_of(data)
        steps = np.zeros(size, bool).strides if stride is None else stride
        data = devices.strided(storage[storage_offset:], size, [s * data.itemsize for s in steps])
    self._data = data
    return self


def resize(self, *sizes_):
    """Return the elements in another shape of as many; deprecated."""
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    shape = sizes(sizes_)
    if math.prod(shape) != self._data.size:
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, shape))} ({math.prod(shape)} elements in total), but the given "
            f"tensor has a size of {'x'.join(map(str, self.shape))} ({self._data.size} elements). autograd's resize "
            "can only change the shape of a given tensor, while preserving the number of elements. "
        )
    out = reshape(self, *shape)
    return out if out._data is not self._data else reshape(out, *shape)


def resize_as(self, tensor):
    """Return the elements in the shape of another tensor; deprecated."""
    return resize(self, *tensor._data.shape)


def is_set_to(self, tensor):
    """Return whether two tensors look into the same memory in the same way."""
    a, b = self._data, tensor._data
    return data_ptr(self) == data_ptr(tensor) and a.shape == b.shape and a.strides == b.strides


for fun in (resize_, resize_as_, set_, resize, resize_as, is_set_to):
    define(fun.__name__, fun, function=False)
define("resize_as_", resize_as_)


def pin_memory(self, device=None):
    """Return the tensor: memory is not pinned here. Raise torch's error where there is no GPU."""
    if not devices.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if self.is_cuda:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    return self


define("pin_memory", pin_memory, function=False)
for name, fun in {
    "share_memory_": lambda self: self,
    "is_shared": lambda self: False,
    "is_pinned": lambda self, device=None: False,
}.items():
    define(name, fun, function=False)


def detach(self):
    """Return a tensor on the same memory, cut from the graph; in-place changes of either are seen by both.

    The size of the result may not be changed in place: that would not change the tensor it came from.
    """
    made = views.alias(self)
    made._data = cut(made._data)
    made.extras.detached = True
    return made


define("detach", detach, out=False)

"""The Tensor: an array, the place in the recorded graph that it came from, and what little hangs on it.

Holds no operation: those are attached by `fgrad.compat.methods`, gradients by `engine`, views and in-place rules by
`views`, hooks by `hooks`. Must not import any of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import devices, dtypes
from .dtypes import Size
from .modes import mode


class _Leaf:
    """Stands for "made by the user and wants a gradient" where other tensors have a node."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<leaf>"


LEAF = _Leaf()


class _Unversioned(list):
    """The version counter of inference tensors: who has to know their version may not have them."""

    def __getitem__(self, index):
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
            "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use "
            "it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
        )


INFERENCE = _Unversioned([0])
"""The counter of every tensor made in inference mode."""


class Extras:
    """What few tensors have: a gradient, hooks, a name. Made on demand."""

    __slots__ = ("grad", "hooks", "post_hooks", "accumulate", "name", "retains", "detached")

    def __init__(self) -> None:
        self.grad: Any = None
        self.hooks: Any = None
        self.post_hooks: Any = None
        self.accumulate: Any = None
        self.name: str | None = None
        self.retains = self.detached = False


_new = object.__new__


class Tensor:
    """An n-dimensional array that records what is computed from it.

    `_data` is an ndarray, an array on a GPU, or a value traced by a transform of the core. `_node` is None for a
    constant, LEAF for a leaf that requires grad, else the place in the graph that the value came from. `_counter` is a
    list with the version, shared by all views of the memory; None as long as nobody has asked for it. `_view` is a
    `views.View` or None.
    """

    __slots__ = ("_data", "_node", "_counter", "_view", "_extras", "__dict__", "__weakref__")

    _data: Any
    _node: Any
    _counter: list[int] | None
    _view: Any
    _extras: Extras | None

    # Leaves stand in the graph beside nodes, last in the order of a backward pass.
    _seq = 0

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        self = _new(cls)
        self._data = None
        self._node = self._counter = self._view = self._extras = None
        return self

    # Python calls these on instances; the tape reads the slots.

    @property
    def extras(self) -> Extras:
        found = self._extras
        if found is None:
            found = self._extras = Extras()
        return found

    @property
    def counter(self) -> list[int]:
        found = self._counter
        if found is None:
            found = self._counter = [0]
        return found

    @property
    def _version(self):
        if self._counter is INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self.counter[0]

    # ------------------------------------------------------------------------------------------- what it is

    @property
    def shape(self):
        """The size of each dimension."""
        return Size(self._data.shape)

    def size(self, dim=None):
        """Return the shape, or the size of one dimension; IndexError if there is no such dimension."""
        return self.shape if dim is None else self._data.shape[normal_dim(dim, self._data.ndim)]

    @property
    def ndim(self):
        """The number of dimensions."""
        return self._data.ndim

    def dim(self):
        """Return the number of dimensions."""
        return self._data.ndim

    ndimension = dim

    def numel(self):
        """Return the number of elements."""
        return int(self._data.size)

    nelement = numel

    @property
    def dtype(self):
        """The element type."""
        return dtypes.of(self._data.dtype)

    @property
    def itemsize(self):
        return self._data.dtype.itemsize

    def element_size(self):
        """Return the bytes of one element."""
        return self._data.dtype.itemsize

    @property
    def nbytes(self):
        return self._data.nbytes

    @property
    def device(self):
        """Where the tensor lives."""
        return devices.device_of(self._data)

    @property
    def is_cuda(self):
        """Whether the tensor lives on a GPU."""
        return devices.place_of(self._data) is not None

    @property
    def is_cpu(self):
        """Whether the tensor lives in host memory."""
        return devices.place_of(self._data) is None

    def is_floating_point(self):
        """Return whether the dtype is a real floating one."""
        return self._data.dtype.kind in "fV"

    def is_complex(self):
        """Return whether the dtype is complex."""
        return self._data.dtype.kind == "c"

    def is_signed(self):
        """Return whether the dtype has negative numbers."""
        return self._data.dtype.kind in "fciV"

    def is_contiguous(self, memory_format=None):
        """Return whether the elements lie in memory in row-major order without gaps."""
        return self._data.flags.c_contiguous

    def stride(self, dim=None):
        """Return the steps in memory between neighbours, in elements."""
        steps = tuple(s // self._data.itemsize for s in self._data.strides)
        return steps if dim is None else steps[normal_dim(dim, self._data.ndim)]

    def get_device(self):
        """Return the number of the GPU the tensor lives on, -1 for the CPU."""
        place = devices.place_of(self._data)
        return -1 if place is None else place

    is_sparse = is_quantized = is_meta = is_nested = is_mkldnn = False
    layout = "torch.strided"
    names = property(lambda self: (None,) * self._data.ndim)

    # ------------------------------------------------------------------------------------ Python and NumPy

    def __len__(self):
        if not self._data.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self._data.shape[0]

    def __bool__(self):
        self._one_element("Boolean value of Tensor with {} is ambiguous")
        return bool(self._data.reshape(())[()])

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self._data.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        self._one_element("only integer tensors of a single element can be converted to an index", TypeError)
        return int(self._data.reshape(())[()])

    def __float__(self):
        return float(self.item())

    def __complex__(self):
        return complex(self.item())

    def item(self):
        """Return the value of a tensor of one element as a Python number; RuntimeError if it has more."""
        if self._data.size != 1:
            raise RuntimeError(f"a Tensor with {self._data.size} elements cannot be converted to Scalar")
        return self._data.item()

    def tolist(self):
        """Return the values as nested lists of Python numbers."""
        return self._data.tolist()

    def _one_element(self, message, error=RuntimeError):
        if self._data.size != 1:
            what = "no values" if self._data.size == 0 else "more than one value"
            raise error(message.format(what))

    __hash__ = object.__hash__

    def __format__(self, spec):
        return format(self.item(), spec) if spec and not self._data.ndim else str(self)

    def __dir__(self):
        return sorted(set(dir(type(self))) | set(self.__dict__))


def wrap(data: Any, node: Any = None) -> Tensor:
    """Return a new Tensor of an array and the place it came from: the one way results are made."""
    t = _new(Tensor)
    t._data = data
    t._node = node
    t._counter = t._view = t._extras = None
    return t


def fresh(data: Any) -> Tensor:
    """Return a tensor of a value that comes from nothing recorded: in inference mode an inference tensor."""
    t = wrap_value(data)
    if mode.inference:
        t._counter = INFERENCE
    return t


def wrap_value(x: Any, node: Any = None) -> Tensor:
    """Return a Tensor of whatever a primitive gives: an array, a NumPy scalar, a Python number or a traced value."""
    if x.__class__ is not np.ndarray and isinstance(x, (np.generic, int, float, complex)):
        x = np.asarray(x)
    return wrap(x, node)


def normal_dim(dim, ndim):
    """Return dimension `dim` counted from the front; IndexError in torch's words if it is out of range."""
    span = max(ndim, 1)
    if not -span <= dim < span:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {dim})")
    return dim % span


def type_name(t: Tensor) -> str:
    """Return for example `torch.FloatTensor`."""
    where = "torch" if devices.place_of(t._data) is None else "torch.cuda"
    return f"{where}.{TYPE_NAMES.get(t._data.dtype.name, 'Tensor')}"


TYPE_NAMES = {
    "float32": "FloatTensor",
    "float64": "DoubleTensor",
    "float16": "HalfTensor",
    "bfloat16": "BFloat16Tensor",
    "int64": "LongTensor",
    "int32": "IntTensor",
    "int16": "ShortTensor",
    "int8": "CharTensor",
    "uint8": "ByteTensor",
    "bool": "BoolTensor",
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
}

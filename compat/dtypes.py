"""Dtypes, sizes and devices as torch names them, and torch's promotion of mixed operands.

Owns the one cast step: `promote` decides by category (tensors with dimensions, then 0-d tensors, then Python numbers)
what dtype operands are computed in. Knows nothing of tensors or of the tape.
"""

from __future__ import annotations

import sys

import numpy as np

from fgrad import extend
from fgrad.extend import Tracer, on_gpu


class dtype:
    """An element type; one object for all its spellings (`torch.double is torch.float64`).

    `np` is the NumPy dtype behind it; that of bfloat16 comes from ml_dtypes and is None until it is needed. Its kind is
    "V", which no other dtype here has.
    """

    __slots__ = ("name", "np", "is_floating_point", "is_complex", "is_signed", "itemsize")

    def __init__(self, name, numpy_dtype, itemsize=None):
        self.name = name
        self.np = None if numpy_dtype is None else np.dtype(numpy_dtype)
        kind = "f" if numpy_dtype is None else self.np.kind
        self.is_floating_point = kind == "f"
        self.is_complex = kind == "c"
        self.is_signed = kind in "fci"
        self.itemsize = itemsize if numpy_dtype is None else self.np.itemsize

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return _dtype_named, (self.name,)

    def to_real(self):
        """Return the dtype of the real part."""
        return of(np.zeros((), self.np).real.dtype)

    def to_complex(self):
        """Return the complex dtype of the same precision."""
        return of(np.result_type(self.np, np.complex64))


DTYPES = {
    name: dtype(name, name)
    for name in (
        "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
    )
}
DTYPES["bfloat16"] = dtype("bfloat16", None, 2)
ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
_BY_NUMPY = {d.np: d for d in DTYPES.values() if d.np is not None}

FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
INT64 = np.dtype(np.int64)
BOOL = np.dtype(bool)


def _dtype_named(name):
    return DTYPES[name]


def of(numpy_dtype):
    """Return the dtype object for a NumPy dtype; TypeError if torch has none."""
    found = _BY_NUMPY.get(numpy_dtype)
    if found is None and numpy_dtype.name == "bfloat16":
        _loaded(DTYPES["bfloat16"])
        found = _BY_NUMPY.get(numpy_dtype)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {numpy_dtype}. The only supported types are: float64, float32, float16, "
            "complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    return found


def _loaded(d):
    """Return the NumPy dtype of bfloat16; TypeError if ml_dtypes is not installed."""
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(
            f"{d!r} needs the package ml_dtypes, which gives NumPy the dtype: pip install ml_dtypes"
        ) from None
    d.np = np.dtype(ml_dtypes.bfloat16)
    _BY_NUMPY[d.np] = d
    return d.np


def to_numpy(d):
    """Return the NumPy dtype for a dtype object (or a Python type); TypeError if there is none."""
    if isinstance(d, dtype):
        return d.np or _loaded(d)
    if d is float:
        return DTYPES["float64"].np
    if d in (int, bool, complex):
        return np.dtype(d)
    raise TypeError(f"dtype must be torch.dtype, not {type(d).__name__}")


class _Default:
    """The dtype of new floating tensors; `set_default_dtype` changes it."""

    real = FLOAT32
    complex = np.dtype(np.complex64)


default = _Default()


def set_default_dtype(d):
    """Set the dtype of new floating tensors; TypeError unless it is a floating dtype."""
    if not isinstance(d, dtype):
        raise TypeError(f"invalid dtype object: {d!r}")
    if not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d!r}")
    default.real = to_numpy(d)
    default.complex = np.result_type(default.real, np.complex64)


def get_default_dtype():
    """Return the dtype of new floating tensors."""
    return of(default.real)


# ---------------------------------------------------------------------------------------------- sizes and devices


class Size(tuple):
    """A shape: a tuple of ints that prints like torch's."""

    __slots__ = ()

    def numel(self):
        """Return the number of elements of a tensor of this shape."""
        count = 1
        for n in self:
            count *= n
        return count

    def __getitem__(self, index):
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other):
        return Size(tuple(self) + tuple(other))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count):
        return Size(tuple(self) * count)

    __rmul__ = __mul__

    def __repr__(self):
        return f"torch.Size({list(self)})"

    def __reduce__(self):
        return Size, (tuple(self),)


class device:
    """Where a tensor lives: the CPU or a GPU. Others can be named, and are refused where they are used.

    A number names a GPU where there is one. RuntimeError for a name that is none.
    """

    __slots__ = ("type", "index", "_outer")

    def __init__(self, type="cpu", index=None):
        if isinstance(type, device):
            type, index = type.type, type.index
        if isinstance(type, int):
            if not extend.has_gpu():
                raise RuntimeError("Cannot access accelerator device when none is available.")
            type, index = "cuda", type
        name, _, number = str(type).partition(":")
        if name not in ("cpu", "cuda", "mps", "meta", "xpu"):
            raise RuntimeError(
                f"Expected one of cpu, cuda, xpu, mps, meta device type at start of device string: {type}"
            )
        self.type = name
        self.index = int(number) if number else index

    def __eq__(self, other):
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash(self.type)

    def __repr__(self):
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return device, (self.type, self.index)


CPU = device()


class finfo:
    """The limits of a floating dtype: eps, max, min, tiny, smallest_normal, resolution, bits."""

    def __init__(self, type=None):
        d = to_numpy(type) if type is not None else default.real
        if d.kind not in "fcV":
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{of(d)!r}'"
            )
        found = np.finfo(d) if d.kind != "V" else sys.modules["ml_dtypes"].finfo(d)
        for name in ("eps", "max", "min", "tiny", "smallest_normal", "resolution"):
            setattr(self, name, float(getattr(found, name)))
        self.bits = found.bits
        self.dtype = of(d).name


class iinfo:
    """The limits of an integer dtype: max, min, bits."""

    def __init__(self, type):
        d = to_numpy(type)
        if d.kind not in "iu":
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{of(d)!r}'")
        found = np.iinfo(d)
        self.max, self.min, self.bits, self.dtype = int(found.max), int(found.min), found.bits, of(d).name


# ------------------------------------------------------------------------------------------------------ promotion

_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
_PYTHON = {bool: (0, BOOL), int: (1, INT64), float: (2, None), complex: (3, None)}


def category(numpy_dtype):
    """Return 0 for bool, 1 for integers, 2 for real and 3 for complex floating dtypes."""
    return _CATEGORY[numpy_dtype.kind]


def result_dtype(values):
    """Return the NumPy dtype that torch computes operands in: arrays, 0-d arrays and Python numbers.

    Within a category tensors with dimensions decide over 0-d ones, and those over Python numbers.
    """
    found = [None, None, None]  # with dimensions, 0-d, Python numbers
    for x in values:
        python = _PYTHON.get(x.__class__)
        if python is None:
            rank, d = (0 if x.ndim else 1), x.dtype
        else:
            rank = 2
            d = python[1] or (default.real if python[0] == 2 else default.complex)
        have = found[rank]
        found[rank] = d if have is None else combine(have, d)
    out = None
    for d in found:
        if d is not None and (out is None or category(d) > category(out)):
            out = np.result_type(out, np.complex64) if out is not None and d.kind == "c" and out.kind in "fV" else d
    return out


def combine(a, b):
    """Return the common dtype of two tensors of equal rank; floats win over integers of any width."""
    if a is b:
        return a
    low, high = sorted((a, b), key=category)
    if category(low) < category(high) and not (high.kind == "c" and low.kind in "fV"):
        return high
    if low.itemsize == high.itemsize == 2:  # float16 and bfloat16
        return FLOAT32
    if high.kind == "c" and low.itemsize == 2:
        return high
    return np.result_type(a, b)


def to_inexact(d):
    """Return `d`, or the default dtype in place of an integer or bool one: what sin or division compute in."""
    return d if d.kind in "fcV" else default.real


def cast(x, d):
    """Return operand `x` in NumPy dtype `d`; Python numbers become 0-d arrays."""
    if x.__class__ in _PYTHON:
        return np.asarray(x).astype(d)
    if x.dtype is d or x.dtype == d:
        return x
    return x.astype(d) if isinstance(x, (np.ndarray, Tracer)) or on_gpu(x) else np.asarray(x, d)

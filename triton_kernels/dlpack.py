"""DLPack for host arrays whose types NumPy's own importer and exporter refuse: bfloat16 and 8-bit floats of ml_dtypes.

Layout of the structures: dlpack.h of the DLPack project, version 0.8 (the form that every library still reads and
writes when asked for no version). Nothing is copied in either direction.
"""

import ctypes

import numpy as np

_CODES = {4: "bfloat16", 10: "float8_e4m3fn", 11: "float8_e4m3fnuz", 12: "float8_e5m2", 13: "float8_e5m2fnuz"}
_CPU = 1
_NAME = b"dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _tensor_in(capsule):
    """Return the description that a capsule holds, to read or to write."""
    return ctypes.cast(_pointer(capsule, _NAME), ctypes.POINTER(_Managed)).contents.tensor


class _Memory:
    """Memory of a capsule, as NumPy reads it; holds the capsule, which frees what it holds when it goes."""

    def __init__(self, capsule, tensor, itemsize):
        self.capsule = capsule
        shape = tuple(tensor.shape[: tensor.ndim])
        strides = tuple(itemsize * s for s in tensor.strides[: tensor.ndim]) if tensor.strides else None
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"<u{itemsize}",
            "shape": shape,
            "strides": strides,
            "data": ((tensor.data or 0) + tensor.byte_offset, False),
        }


def from_dlpack(x):
    """Return an object with `__dlpack__` that lies on the host as a NumPy array on the same memory.

    Raises:
        TypeError: it holds a type that NumPy and ml_dtypes have no name for.
    """
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError):
        capsule = x.__dlpack__()
        tensor = _tensor_in(capsule)
        if tensor.code not in _CODES or tensor.lanes != 1:
            raise
    import ml_dtypes

    return np.asarray(_Memory(capsule, tensor, tensor.bits // 8)).view(getattr(ml_dtypes, _CODES[tensor.code]))


class Exported:
    """A NumPy array of any type as an object with `__dlpack__`, for the `from_dlpack` of other libraries."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return _CPU, 0

    def __dlpack__(self, *, stream=None, **options):
        codes = {name: code for code, name in _CODES.items()}
        code = codes.get(self.array.dtype.name)
        if code is None:
            return self.array.__dlpack__(**options)
        # NumPy's own capsule of equally wide integers, which frees itself as it should, under another name.
        capsule = self.array.view(f"u{self.array.itemsize}").__dlpack__()
        _tensor_in(capsule).code = code
        return capsule

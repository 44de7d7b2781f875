"""A stand-in for a GPU: a driver library that records launches, and arrays that claim to lie on its devices."""

import ctypes
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fgrad.triton_kernels.runtime import group

SOURCE = Path(__file__).with_name("libcuda.c")


class Record(ctypes.Structure):
    """What the library noted of the last launch."""

    _fields_ = [
        ("launches", ctypes.c_int),
        ("device", ctypes.c_int),
        ("launched_on", ctypes.c_int),
        ("loads", ctypes.c_int),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_uint64),
        ("parameters", ctypes.c_uint64 * 32),
        ("largest_shared", ctypes.c_int),
    ]


def compiler():
    """Return the path of a C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(folder):
    """Compile the library into a folder and return its path."""
    path = Path(folder) / "libcuda.so.1"
    subprocess.run([compiler(), "-shared", "-fPIC", "-w", "-o", str(path), str(SOURCE)], check=True)
    return path


@dataclass(eq=False)
class DeviceArray:
    """An array on a device that does not exist; its memory is the host's, and nothing reads it."""

    host: np.ndarray
    number: int = 0

    def __post_init__(self):
        self.dtype = self.host.dtype
        self.pointer = self.host.ctypes.data

    def __getattr__(self, name):
        return getattr(self.host, name)

    def __setitem__(self, index, value):
        self.host[index] = getattr(value, "host", value)

    def __getitem__(self, index):
        return DeviceArray(self.host[index], self.number)

    def __len__(self):
        return len(self.host)

    def copy(self):
        return DeviceArray(self.host.copy(), self.number)

    def reshape(self, *shape):
        return DeviceArray(self.host.reshape(*shape), self.number)

    def swapaxes(self, one, other):
        return DeviceArray(self.host.swapaxes(one, other), self.number)

    @property
    def __cuda_array_interface__(self):
        return self.host.__array_interface__


class Arrays:
    """What the home asks of CuPy, for stand-in arrays."""

    handle = 0x77

    def __init__(self, driver):
        self.driver = driver

    def current_device(self):
        device = ctypes.c_int()
        self.driver.call("cuCtxGetDevice", ctypes.byref(device))
        return device.value

    @contextmanager
    def on_device(self, device):
        previous = self.current_device()
        self.driver.call("cuCtxSetCurrent", ctypes.c_uint64(0x1000 + device))
        yield
        self.driver.call("cuCtxSetCurrent", ctypes.c_uint64(0x1000 + previous))

    def empty(self, like, shape, dtype):
        return DeviceArray(np.empty(shape, dtype), like.number)

    def zeros(self, like, shape, dtype):
        return DeviceArray(np.zeros(shape, dtype), like.number)

    def pointer(self, array):
        return array.pointer

    def device(self, array):
        return array.number

    def set_device(self, device):
        self.driver.call("cuCtxSetCurrent", ctypes.c_uint64(0x1000 + device))

    def elapsed(self, call):
        start = time.perf_counter()
        call()
        return 1e3 * (time.perf_counter() - start)

    def stream(self):
        return self.handle

    def synchronize(self):
        pass

    def group(self, index, groups):
        return tuple(DeviceArray(array, index.number) for array in group(np, index.host, groups))

    def to_numpy(self, array):
        return array.host.copy()

    def from_numpy(self, array):
        return DeviceArray(array.copy(), self.current_device())

    def move(self, array):
        return DeviceArray(array.host.copy(), self.current_device())

    def adopt(self, array):
        return DeviceArray(np.asarray(Interface(array.__cuda_array_interface__)))

    def count(self):
        count = ctypes.c_int()
        self.driver.call("cuDeviceGetCount", ctypes.byref(count))
        return count.value


class Interface:
    """The memory that a CUDA array interface describes: the host's, for a stand-in."""

    def __init__(self, description):
        self.__array_interface__ = description

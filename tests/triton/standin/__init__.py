"""A stand-in for a GPU: a driver library that records launches, and arrays that claim to lie on its devices."""

import ctypes
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fgrad.triton_kernels import toolchain
from fgrad.triton_kernels.cuda import CudaHome
from fgrad.triton_kernels.runtime import group, interpret_launch, with_own_arrays
from fgrad.triton_kernels.tune import strided_copy

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


class DeviceArray(NDArrayOperatorsMixin):
    """An array on a device that does not exist: its memory is the host's, and NumPy does for it what CuPy would."""

    def __init__(self, host, number=0):
        self.host = host
        self.number = number
        self.dtype = host.dtype
        self.pointer = host.ctypes.data

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.host, name)
        return self._call(found) if callable(found) else self._there(found)

    def __getitem__(self, index):
        return self._there(self.host[_here(index)])

    def __setitem__(self, index, value):
        self.host[_here(index)] = _here(value)

    def __len__(self):
        return len(self.host)

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")  # as CuPy says

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        return self._call(getattr(ufunc, method))(*args, **kwargs)

    def __array_function__(self, function, types, args, kwargs):
        return self._call(function)(*args, **kwargs)

    @property
    def device(self):
        return self.number

    @property
    def __cuda_array_interface__(self):
        return self.host.__array_interface__

    def _call(self, function):
        return lambda *args, **kwargs: self._there(function(*_here(args), **_here(kwargs)))

    def _there(self, x):
        return DeviceArray(np.asarray(x), self.number) if isinstance(x, (np.ndarray, np.generic)) else x


def _here(x):
    """Return nested arguments with arrays on the device as what they are."""
    if isinstance(x, (tuple, list)):
        return type(x)(map(_here, x))
    if isinstance(x, dict):
        return {name: _here(value) for name, value in x.items()}
    return getattr(x, "host", x)


class InterpretingHome(CudaHome):
    """A home on the stand-in driver whose kernels run after all: every launch is also interpreted on the memory."""

    def execute(self, launch):
        super().execute(launch)
        if not toolchain.is_tuned(launch.kernel):  # those come back resolved
            args = tuple(map(_here, with_own_arrays(launch).args))
            interpret_launch(replace(launch, args=args))


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

    def copied(self, array):
        return DeviceArray(strided_copy(np, array.host), array.number)

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

    def capture(self, call):
        call()
        return call

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

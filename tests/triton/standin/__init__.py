"""A stand-in for a GPU: a driver library that records launches, and arrays that claim to lie on its devices."""

import ctypes
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from fgrad.triton_kernels import toolchain
from fgrad.triton_kernels.cuda import CudaHome
from fgrad.triton_kernels.runtime import group, interpret_launch, with_own_arrays
from fgrad.triton_kernels.tune import strided_copy
from tests.triton.standin.arrays import DeviceArray, here

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


class InterpretingHome(CudaHome):
    """A home on the stand-in driver whose kernels run after all: every launch is also interpreted on the memory."""

    def execute(self, launch):
        super().execute(launch)
        if not toolchain.is_tuned(launch.kernel):  # those come back resolved
            args = tuple(map(here, with_own_arrays(launch).args))
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

    def owner(self, array):
        return array.owner

    def strided(self, array, shape, strides):
        window = np.lib.stride_tricks.as_strided(array.host, shape, strides)
        return DeviceArray(window, array.number, owner=array.owner)

    def properties(self, device):
        return SimpleNamespace(name="stand-in", major=9, minor=0, total_memory=2**30, multi_processor_count=1)

    def memory(self):
        return 0, 0

    def release(self):
        pass

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

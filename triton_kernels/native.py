"""Triton's own `kernel[grid]` and `triton.autotune` on the arrays of a home, without torch.

For kernels that take tensor descriptors made on the host, use clusters of programs, or whose configurations have hooks.
Everything else is launched faster by `runtime.launch`.
"""

import triton

from . import toolchain
from .runtime import home_of
from .timing import measured


class Argument:
    """An array as Triton's launcher and tuner take it.

    Raises:
        TypeError: the array lies in host memory, or no home knows it.
    """

    def __init__(self, array):
        self._home = _gpu_home_of(array)
        self.array = array
        self.dtype = array.dtype
        self.shape = array.shape

    def data_ptr(self):
        """Return the address of the first element."""
        return self._home.pointer(self.array)

    def stride(self):
        """Return the strides counted in elements."""
        return tuple(stride // self.dtype.itemsize for stride in self.array.strides)

    def element_size(self):
        """Return the bytes of an element."""
        return self.dtype.itemsize

    def zero_(self):
        """Set all elements to 0, as the tuner does between runs of an accumulating kernel."""
        self.array[...] = 0

    def clone(self):
        """Return a copy, as the tuner does before runs of a kernel that works in place."""
        return Argument(self.array.copy())

    def copy_(self, other):
        """Take over the elements of another argument."""
        self.array[...] = other.array


class _Scratch:
    """What Triton's allocator returns: memory with an address."""

    def __init__(self, home, array):
        self.array = array
        self.address = home.pointer(array)

    def data_ptr(self):
        return self.address


def activate(like):
    """Make `kernel[grid](…)` of this thread run on the home of an array; call it once in every thread that launches.

    Arrays are passed as `Argument(array)`; they lie on the current device.

    Args:
        like: an array of the home, such as any CuPy array.

    Raises:
        TypeError: no home knows the array, or its home runs no machine code.
    """
    home = _gpu_home_of(like)
    toolchain.set_driver(toolchain.make_driver(_Devices(home, like), _benchmark(home)))
    triton.set_allocator(lambda size, alignment, stream: _Scratch(home, home.empty(like, (size,), "uint8")))


def _gpu_home_of(array):
    home = home_of(array)
    if not hasattr(home, "pointer"):
        raise TypeError(f"kernel[grid] needs arrays on a GPU, got {type(array).__module__}.{type(array).__name__}")
    return home


class _Devices:
    """What Triton's driver asks of a home."""

    def __init__(self, home, like):
        self.home = home
        self.like = like
        self.current_device = home.current_device
        self.set_device = home.set_device
        self.stream = home.stream

    def capability(self, device):
        number = int(self.home.driver.target(device).removeprefix("sm_"))
        return divmod(number, 10)

    def flush_buffer(self):
        return Argument(self.home.empty(self.like, (256 << 20,), "uint8"))


def _benchmark(home):
    def benchmark(call, quantiles=(0.5, 0.2, 0.8), **unused):
        """Time a call as Triton's tuner asks for it; return the milliseconds at its three quantiles."""
        timing = measured(home, call, repeats=20)
        found = {0.5: timing.median, 0.2: timing.low, 0.8: timing.high}
        return [found[quantile] for quantile in quantiles]

    return benchmark

"""Where kernels run: one call launches a kernel on whatever holds its arrays.

NumPy arrays are interpreted by the twin. The kernels and the functions over them say `launch` and `empty`, and know
nothing of devices.
"""

import contextlib
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

from .signature import array_of, is_descriptor

_executor = ContextVar("executor", default=None)
_allocated = ContextVar("allocated", default=None)


@dataclass(frozen=True)
class Launch:
    """One launch: the kernel, the grid, positional arguments, and arguments and compile options by name."""

    kernel: object
    grid: object
    args: tuple
    meta: dict = field(default_factory=dict)


def launch(kernel, grid, *args, **meta):
    """Run a kernel over a grid on the arrays among its arguments; an empty grid runs nothing.

    Args:
        kernel: a `@triton.jit` function, tuned or not.
        grid: up to three sizes, one size, or a function of the arguments by name that returns them.
        *args: arrays that live in one place, Python numbers, None, tensor descriptors.
        **meta: further arguments and compile options (num_warps, num_stages, …) by name.

    Raises:
        TypeError: the arrays live in different places, or nowhere a kernel can run.
    """
    execute = _executor.get() or _executor_for(args)
    execute(Launch(kernel, grid, args, meta))


@contextlib.contextmanager
def launching(execute, allocated=None):
    """Give every launch of this thread within the block to `execute(launch)` instead of running it.

    `allocated(array)` is told of every array made by `empty`.
    """
    tokens = _executor.set(execute), _allocated.set(allocated)
    try:
        yield
    finally:
        _executor.reset(tokens[0])
        _allocated.reset(tokens[1])


def empty(like, shape, dtype):
    """Return an uninitialised array beside `like`, which a kernel must write in full."""
    array = _home(like).empty(shape, dtype)
    if tell := _allocated.get():
        tell(array)
    return array


def zeros(like, shape, dtype):
    """Return an array of zeros beside `like`."""
    return _home(like).zeros(shape, dtype)


def strides(array):
    """Return an array's strides counted in elements, the last as None where it is 1.

    None is known when the kernel is compiled (see `tiling.along`), so that packed rows are read as vectors.
    """
    counted = tuple(stride // array.dtype.itemsize for stride in array.strides)
    return counted[:-1] + (None,) if counted and counted[-1] == 1 else counted


def _executor_for(args):
    arrays = [array_of(arg.base) if is_descriptor(arg) else array_of(arg) for arg in args if not _is_plain(arg)]
    for array in arrays:
        _home(array)
    return interpret_launch


def _is_plain(value):
    return value is None or isinstance(value, (bool, int, float, str))


def _home(array):
    """Return the array module an array belongs to."""
    if isinstance(array, np.ndarray):
        return np
    raise TypeError(f"kernels run on NumPy arrays, got {type(array).__module__}.{type(array).__name__}")


def interpret_launch(launch):
    """Run a launch in the twin."""
    from .twin import interpret

    interpret(launch.kernel, launch.grid, *launch.args, **launch.meta)

"""Where kernels run: the seam between kernels and what holds their arrays.

A *home* does four jobs for its arrays: memory (`empty`, `zeros`), streams (`stream`, `synchronize`), load and launch
(`execute`), interop (`to_numpy`, `from_numpy`). NumPy arrays live in `NumpyHome`, whose kernels the twin interprets;
CuPy arrays live in `cuda.CudaHome`. The kernels and the functions over them say `launch` and `empty`, and know nothing
of homes.
"""

import contextlib
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

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


class NumpyHome:
    """The home of NumPy arrays: kernels run in the twin, at once."""

    def empty(self, like, shape, dtype):
        """Return an uninitialised array."""
        return np.empty(shape, dtype)

    def zeros(self, like, shape, dtype):
        """Return an array of zeros."""
        return np.zeros(shape, dtype)

    def device(self, array):
        """Return where an array lies, for comparison and messages."""
        return "host"

    def stream(self):
        """Return the handle of the stream launches go to; 0, there is none."""
        return 0

    def synchronize(self):
        """Wait until all launches are done; they are."""

    def to_numpy(self, array):
        """Return the array itself."""
        return array

    def from_numpy(self, array):
        """Return the array itself."""
        return array

    def group(self, index, groups):
        """Return the positions of an index in the order of its values, and where each value's positions start."""
        return group(np, index, groups)

    def execute(self, launch):
        """Interpret a launch."""
        launch = with_own_arrays(launch)
        require_one_home(launch.args)
        interpret_launch(launch)


def launch(kernel, grid, *args, **meta):
    """Run a kernel over a grid on the arrays among its arguments; an empty grid runs nothing.

    Args:
        kernel: a `@triton.jit` function, tuned or not.
        grid: up to three sizes, one size, or a function of the arguments by name that returns them.
        *args: arrays that live in one place, Python numbers, None, tensor descriptors. Arrays of other libraries are
            taken by DLPack or the CUDA array interface, and written to where they lie.
        **meta: further arguments and compile options (num_warps, num_stages, …) by name.

    Raises:
        TypeError: the arrays live in different homes, or in none that runs kernels.
        ValueError: the arrays live on different devices.
    """
    execute = _executor.get() or _first_home(args).execute
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
    array = home_of(like).empty(like, shape, dtype)
    if tell := _allocated.get():
        tell(array)
    return array


def zeros(like, shape, dtype):
    """Return an array of zeros beside `like`."""
    return home_of(like).zeros(like, shape, dtype)


def strides(array):
    """Return an array's strides counted in elements, the last as None where it is 1.

    None is known when the kernel is compiled (see `tiling.along`), so that packed rows are read as vectors.
    """
    counted = tuple(stride // array.dtype.itemsize for stride in array.strides)
    return counted[:-1] + (None,) if counted and counted[-1] == 1 else counted


_HOMES = {np.ndarray: NumpyHome()}


def home_of(array):
    """Return the home of an array.

    Raises:
        TypeError: no home knows arrays of this type.
    """
    home = _HOMES.get(type(array))
    if home is not None:
        return home
    kind = type(array)
    if isinstance(array, np.ndarray):
        return register_home(kind, _HOMES[np.ndarray])
    if kind.__module__.partition(".")[0] == "cupy":
        return register_home(kind, gpu_home())
    raise TypeError(f"kernels run on NumPy and CuPy arrays, got {kind.__module__}.{kind.__name__}")


def gpu_home():
    """Return the home of arrays on GPUs.

    Raises:
        ImportError: CuPy is not installed.
    """
    for home in _HOMES.values():
        if hasattr(home, "pointer"):
            return home
    try:
        import cupy
    except ModuleNotFoundError as error:
        raise ImportError("arrays on a GPU need CuPy: pip install 'fgrad[cuda13]' (or 'fgrad[cuda12]')") from error
    from .cuda import CudaHome

    return register_home(cupy.ndarray, CudaHome())


def register_home(kind, home):
    """Let `home` run the kernels whose arrays are of type `kind`; return the home."""
    _HOMES[kind] = home
    return home


def group(module, index, groups):
    """Return (order, starts) of an integer array by an array module, for values 0, …, groups - 1.

    `order` lists positions by value, equal values as they stand; those of value i are order[starts[i] : starts[i + 1]].
    """
    order = module.argsort(index, kind="stable")
    return order, module.searchsorted(index[order], module.arange(groups + 1))


def interpret_launch(launch):
    """Run a launch in the twin."""
    from .twin import interpret

    interpret(launch.kernel, launch.grid, *launch.args, **launch.meta)


def arrays_of(args):
    """Return the arrays among arguments, those in tuples and descriptors too; of numbers `bind` judges."""
    found = []
    for value in args:
        if isinstance(value, tuple):
            found += arrays_of(value)
        elif is_descriptor(value):
            found.append(array_of(value.base))
        elif value is not None and not isinstance(value, (bool, int, float, str, np.generic)):
            found.append(array_of(value))
    return found


def require_one_home(args):
    """Refuse arrays that do not live together.

    Raises:
        TypeError: they live in different homes.
        ValueError: they live on different devices.
    """
    homes = {home_of(array): array for array in arrays_of(args)}
    if len(homes) > 1:
        kinds = sorted({type(array).__module__ + "." + type(array).__name__ for array in homes.values()})
        raise TypeError(f"a kernel's arrays must live in one place, got {' and '.join(kinds)}")
    devices = sorted({str(home.device(array)) for home in homes for array in arrays_of(args)})
    if len(devices) > 1:
        raise ValueError(f"a kernel's arrays must lie on one device, got {' and '.join(devices)}")


def _first_home(args):
    """Return the home of the first array among arguments; the home itself refuses mixed ones."""
    for value in args:
        home = _HOMES.get(type(value))
        if home is not None:
            return home
    arrays = arrays_of(args)
    return home_of(_own(arrays[0])) if arrays else _HOMES[np.ndarray]


def with_own_arrays(launch):
    """Return a launch whose arrays of other libraries are replaced by views; the launch itself if there are none."""
    if all(array is _own(array) for array in arrays_of(launch.args)):
        return launch
    return replace(launch, args=tuple([_own(x) if is_foreign(x) else x for x in launch.args]))


def is_foreign(value):
    """Say whether an argument is an array of a library that has no home here."""
    return type(value) not in _HOMES and (hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__"))


def _own(array):
    from .interop import own  # here, for it stands on this module

    return own(array) if is_foreign(array) else array


def as_rows(array):
    """Return an array as (rows, columns) over its last axis; a view where the strides allow one.

    Raises:
        ValueError: the array has no axes.
    """
    if array.ndim == 0:
        raise ValueError("expected an array with at least one axis, got one without")
    rows = 1
    for size in array.shape[:-1]:
        rows *= size
    return array if array.ndim == 2 else array.reshape(rows, array.shape[-1])

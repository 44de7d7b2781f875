"""Runs a translated kernel over a grid: binds arguments, picks or makes the translation, walks the programs."""

import threading
from itertools import product
from weakref import WeakKeyDictionary

import numpy as np

from .. import toolchain
from ..signature import array_of, bind, grid_shape, is_descriptor
from .descriptor import Descriptor
from .memory import Memory
from .translate import Program

# Names of 8-bit floats differ by vendor; the twin takes all that NumPy can hold.
_OPTIONS = {
    "debug": True,  # keeps tl.device_assert
    "enable_fp_fusion": False,
    "supported_fp8_dtypes": ("fp8e5", "fp8e5b16", "fp8e4nv", "fp8e4b8"),
}
_TARGET = "sm_90"

_programs = WeakKeyDictionary()
_programs_lock = threading.Lock()


class Machine:
    """What a program can ask for while it runs: its place in the grid, memory, print and assert."""

    def __init__(self, grid, memory):
        self.grid = tuple(np.int32(size) for size in grid)
        self.memory = memory
        self.program = ()

    def start(self, program):
        """Become a program of the grid."""
        self.program = tuple(np.int32(index) for index in program)
        self.memory.program = program

    def program_id(self, axis):
        """Return the program's index along an axis."""
        return self.program[axis]

    def num_programs(self, axis):
        """Return the grid's size along an axis."""
        return self.grid[axis]

    def require(self, condition, message, source):
        """Fail unless condition holds in every lane."""
        if not np.all(condition):
            self.memory.fail(message, source)

    def show(self, prefix, *values):
        """Print what `tl.device_print` prints."""
        print(f"program {self.memory.program}:{prefix}", *values)


def interpret(kernel, grid, *args, programs=None, memory=None, sanitize_overflow=False, **meta):
    """Run a kernel on NumPy arrays, one program after the other, and write its results into them.

    Args:
        kernel: a `@triton.jit` function, tuned or not (of autotune configurations the first is taken).
        grid: up to three sizes, one size, or a function of the named arguments that returns them.
        *args: arrays of any strides (bfloat16 and 8-bit floats from ml_dtypes), numbers, None, or tuples of those.
        programs: indices of the programs to run, instead of all of the grid.
        memory: the `Memory` that sees every access; a checker passes its own.
        sanitize_overflow: raise where an integer operation of the kernel overflows.
        **meta: remaining arguments by name; compile options such as num_warps are accepted and change nothing.

    Raises:
        TypeError: an argument is missing, unknown, or of a kind a kernel cannot take.
        KernelMemoryError: the kernel touched memory outside its arguments.
        KernelAssertion: a device_assert of the kernel failed.
        NotImplementedError: the kernel uses an operation the twin does not know.
        ValueError: `programs` names one that the grid has not.

    >>> import numpy as np
    >>> from fgrad.triton_kernels import interpret
    >>> from fgrad.triton_kernels.tiling import fill_kernel
    >>> out = np.zeros(6, np.float32)
    >>> interpret(fill_kernel, 2, out, 5, 1.5, BLOCK=4)
    >>> out
    array([1.5, 1.5, 1.5, 1.5, 1.5, 0. ], dtype=float32)
    """
    kernel, meta = toolchain.untuned(kernel, args, meta)
    bound = bind(toolchain.parameters(kernel), args, meta, toolchain.LAUNCH_OPTIONS)
    program = translated(kernel, bound, sanitize_overflow)
    memory = Memory() if memory is None else memory
    values = [passed for name, value in bound.runtime for passed in _passed(name, value, memory)]
    grid = grid_shape(grid, bound.named)
    machine = Machine(grid, memory)
    with np.errstate(all="ignore"):
        for index in product(*map(range, grid)) if programs is None else _in_grid(programs, grid):
            machine.start(tuple(index))
            program.run(machine, *values)


def _in_grid(programs, grid):
    for index in programs:
        if len(index) != 3 or not all(0 <= at < size for at, size in zip(index, grid)):
            raise ValueError(f"programs: got {index}, expected three indices inside the grid {grid}")
    return programs


def source_text(kernel, *args, **meta):
    """Return the NumPy program that `interpret` would run for these arguments, as source text."""
    kernel, meta = toolchain.untuned(kernel, args, meta)
    bound = bind(toolchain.parameters(kernel), args, meta, toolchain.LAUNCH_OPTIONS)
    return translated(kernel, bound, sanitize_overflow=False).text


def translated(kernel, bound, sanitize_overflow):
    """Return the translation of a kernel for the types and compile-time values of a launch, made once."""
    # The type belongs to the key: 1, 1.0 and True are equal, and compile differently.
    fixed = tuple((path, type(value), value) for path, value in bound.constexprs.items())
    key = (tuple(bound.types.items()), fixed, sanitize_overflow)
    with _programs_lock:
        known = _programs.setdefault(kernel, {})
        if key not in known:
            options = {**_OPTIONS, "sanitize_overflow": sanitize_overflow}
            known[key] = Program(toolchain.to_ttir(kernel, bound.types, bound.constexprs, _TARGET, options))
        return known[key]


def _passed(name, value, memory):
    """Return what the translated kernel takes for a run-time argument: one value, or a descriptor and its sizes."""
    if is_descriptor(value):
        return _descriptor(name, value, memory)
    if isinstance(value, bool):
        return [np.bool_(value)]
    if isinstance(value, float):
        return [np.float32(value)]
    if isinstance(value, int):
        return [np.array(value).astype(np.int32 if -(2**31) <= value < 2**31 else np.int64)[()]]
    return [memory.bind(name, _numpy_array(name, value))]


def _descriptor(name, value, memory):
    array = _numpy_array(f"{name}.base", array_of(value.base))
    if getattr(value, "round_f32_to_tf32", False):
        raise NotImplementedError(f"argument {name!r}: the twin has no descriptors that round to TF32")
    padding = np.nan if value.padding == "nan" else 0
    shape, strides = np.array(value.shape, np.int32), np.array(value.strides, np.int64)
    address = memory.bind(name, array)
    return [
        Descriptor(memory, address, shape, strides, array.dtype, tuple(value.block_shape), padding),
        *shape,
        *strides,
    ]


def _numpy_array(name, value):
    if not isinstance(value, np.ndarray):
        raise TypeError(
            f"argument {name!r}: got {type(value).__name__}, expected np.ndarray; the twin runs on NumPy arrays"
        )
    return value

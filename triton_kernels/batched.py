"""A kernel over a batch of arrays, made of a kernel over one: the batch is the third axis of the grid.

The new kernel moves each array's pointer to its example and calls the old one. Triton reads a kernel's source from a
file, so its text is kept in the cache directory under the hash of what it says.
"""

from . import store, toolchain
from .runtime import launch
from .signature import bind, grid_shape

_LARGEST_THIRD_AXIS = 65_535

_HEAD = '''\
"""Generated: {name} over a batch, the third axis of the grid."""

import triton
import triton.language as tl


@triton.jit
def {name}_batched({parameters}):
    example = tl.program_id(2).to(tl.int64)
    {name}_one({arguments})
'''

_kernels = {}


def launch_batched(kernel, grid, size, args, moving, meta):
    """Run a kernel once for each example of a batch, all in one launch.

    Args:
        kernel: a `@triton.jit` function, tuned or not (of autotune configurations the first is taken).
        grid: the grid for one example: one or two sizes, or a function of the arguments by name.
        size: the number of examples.
        args: the positional arguments. Arrays in `moving` have the batch as first axis and lie in memory row after row.
        moving: the positions in `args` of arrays with a batch axis.
        meta: arguments and compile options by name.

    Raises:
        ValueError: the grid has a third axis already.
    """
    examples = [value[0] if at in moving else value for at, value in enumerate(args)] if size else args
    kernel, meta = toolchain.untuned(kernel, examples, meta)
    parameters = toolchain.parameters(kernel)
    named = bind(parameters, examples, meta, toolchain.LAUNCH_OPTIONS).named
    rows, columns, layers = grid_shape(grid, named)
    if layers != 1:
        raise ValueError(f"a grid of three axes leaves none for a batch, got {(rows, columns, layers)}")
    names = [name for name, _, _ in parameters]
    moved = {names[at] for at in moving}
    options = {name: value for name, value in meta.items() if name in toolchain.LAUNCH_OPTIONS}
    strides = [examples[at].size for at in sorted(moving)]
    for start in range(0, size, _LARGEST_THIRD_AXIS):
        part = slice(start, start + _LARGEST_THIRD_AXIS)
        arrays = {names[at]: args[at][part] for at in moving}
        values = [arrays.get(name, named[name]) for name in names]
        count = min(size - start, _LARGEST_THIRD_AXIS)
        launch(_batched(kernel, moved), (rows, columns, count), *values, *strides, **options)


def _batched(kernel, moving):
    """Return the kernel over a batch of the named arrays; made once."""
    key = kernel, frozenset(moving)
    if key not in _kernels:
        _kernels[key] = _generated(kernel, moving)
    return _kernels[key]


def _generated(kernel, moving):
    parameters = toolchain.parameters(kernel)
    declared = [f"{name}: tl.constexpr" if fixed else name for name, fixed, _ in parameters]
    moved = [name for name, _, _ in parameters if name in moving]
    passed = [f"{name} + example * {name}_batch" if name in moving else name for name, _, _ in parameters]
    name = kernel.__name__
    text = _HEAD.format(
        name=name, parameters=", ".join([*declared, *(f"{n}_batch" for n in moved)]), arguments=", ".join(passed)
    )
    return getattr(store.module_of(text, **{f"{name}_one": kernel}), f"{name}_batched")

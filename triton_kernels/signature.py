"""What a launch says of its arguments: the type of each, as the compiler names it, and which are fixed at compile time.

The same rules serve the twin, compilation and launching, so the three cannot read an argument differently. Arguments
are never specialised by value: 1 stays a run-time integer. Imports neither Triton nor CuPy.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

TYPE_NAMES = {
    "bool": "i1",
    "int8": "i8",
    "uint8": "u8",
    "int16": "i16",
    "uint16": "u16",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
}


@dataclass(frozen=True)
class Bound:
    """A launch's arguments, sorted out.

    types: parameter name to type name ("*bf16", "i32", "constexpr", or a tuple of those).
    constexprs: path of a parameter (its position, and positions inside tuples) to its compile-time value.
    runtime: (name, value) of what is passed when the kernel runs, tuples flattened; `paths` says where each stands.
    aligned: paths of pointers and integers that are multiples of 16, which the compiler may rely on.
    named: every argument by name, for a grid that is a function of them.
    """

    types: Mapping
    constexprs: Mapping
    runtime: list
    paths: list
    aligned: list
    named: Mapping

    def type_at(self, path):
        """Return the type name of the argument at a path."""
        found = list(self.types.values())[path[0]]
        for index in path[1:]:
            found = found[index]
        return found


def bind(parameters, args, meta, options=frozenset()):
    """Match arguments to a kernel's parameters and name their types.

    Args:
        parameters: (name, is a constexpr, default or None) in order.
        args: positional arguments.
        meta: arguments by name.
        options: names in meta that belong to the compiler.

    Raises:
        TypeError: an argument is missing, unknown, given twice, or of a kind a kernel cannot take.
    """
    named = _by_name(parameters, args, meta, options)
    bound = Bound({}, {}, [], [], [], named)
    for position, (name, is_constexpr, _) in enumerate(parameters):
        if is_constexpr:
            bound.types[name] = "constexpr"
            bound.constexprs[(position,)] = named[name]
        else:
            bound.types[name] = _describe(name, named[name], (position,), bound)
    return bound


def type_name(name, value):
    """Return the compiler's name for the type of a run-time argument.

    Raises:
        TypeError: a kernel cannot take such a value.
    """
    if isinstance(value, bool):
        return "u1"
    if isinstance(value, float):
        return "fp32"
    if isinstance(value, int):
        return _integer_type(name, value)
    if isinstance(value, np.generic):
        raise TypeError(
            f"argument {name!r}: got a NumPy scalar ({value.dtype}), expected a Python number; call .item()"
        )
    dtype = getattr(value, "dtype", None)
    if not isinstance(dtype, np.dtype):
        raise TypeError(f"argument {name!r}: got {type(value).__name__}, expected an array, a Python number or None")
    if dtype.name not in TYPE_NAMES:
        raise TypeError(f"argument {name!r}: a kernel has no type for arrays of {dtype}")
    if not dtype.isnative:
        raise TypeError(f"argument {name!r}: got byte-swapped {dtype.str!r}, expected native byte order")
    return "*" + TYPE_NAMES[dtype.name]


def grid_shape(grid, named):
    """Return a launch's grid as three sizes.

    Args:
        grid: one size, up to three sizes, or a function of the arguments by name that returns them.
        named: the arguments by name.

    Raises:
        TypeError: a size is no integer.
        ValueError: more than three sizes, or a negative one.
    """
    given = grid(named) if callable(grid) else grid
    try:
        sizes = tuple(map(operator.index, given if isinstance(given, (tuple, list)) else (given,)))
    except TypeError:
        raise TypeError(f"grid: got {given!r}, expected one to three integers") from None
    if not 1 <= len(sizes) <= 3 or min(sizes) < 0:
        raise ValueError(f"grid: got {sizes}, expected one to three sizes of at least 0")
    return (*sizes, 1, 1)[:3]


def _by_name(parameters, args, meta, options):
    names = [name for name, _, _ in parameters]
    if len(args) > len(names):
        raise TypeError(f"the kernel takes {len(names)} arguments ({', '.join(names)}), got {len(args)}")
    named = dict(zip(names, args))
    for name, value in meta.items():
        if name in named:
            raise TypeError(f"argument {name!r} is given twice")
        if name in names:
            named[name] = value
        elif name not in options:
            raise TypeError(f"the kernel has no argument {name!r}; it has {', '.join(names)}")
    for name, _, default in parameters:
        if name not in named and default is None:
            raise TypeError(f"argument {name!r} is missing")
        named.setdefault(name, default)
    return named


def _describe(name, value, path, bound):
    """Return the type of one argument and note where it goes."""
    if value is None:
        bound.constexprs[path] = None
        return "constexpr"
    if isinstance(value, tuple):
        return tuple(_describe(f"{name}[{index}]", item, (*path, index), bound) for index, item in enumerate(value))
    bound.runtime.append((name, value))
    bound.paths.append(path)
    if _is_aligned(value):
        bound.aligned.append(path)
    if is_descriptor(value):
        base = type_name(f"{name}.base", array_of(value.base)).removeprefix("*")
        return f"tensordesc<{base}{list(value.block_shape)}>"
    return type_name(name, value)


def _is_aligned(value):
    if isinstance(value, int):
        return not isinstance(value, bool) and value % 16 == 0
    return not isinstance(value, float) and not is_descriptor(value) and address_of(value) % 16 == 0


def address_of(array):
    """Return the address of an array's first element, on its own device."""
    interface = getattr(array, "__cuda_array_interface__", None) or getattr(array, "__array_interface__", None)
    return interface["data"][0] if interface else 1


def is_descriptor(value):
    """Say whether an argument is a tensor descriptor made on the host (`triton.tools.tensor_descriptor`)."""
    return hasattr(value, "block_shape") and hasattr(value, "base")


def array_of(value):
    """Return the array behind a `DeviceArray`, or the value itself."""
    return getattr(value, "array", value)


def _integer_type(name, value):
    if -(2**31) <= value < 2**31:
        return "i32"
    if -(2**63) <= value < 2**63:
        return "i64"
    if value < 2**64:
        return "u64"
    raise TypeError(f"argument {name!r}: {value} does not fit in 64 bits")

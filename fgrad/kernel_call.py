"""`triton_call`: one launch of a Triton kernel as an operation on arrays, under `jit` and `vmap` as well.

A launch has no derivative of its own; `fgrad.kernel_op` pairs it with one. Triton is loaded by the first launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from fgrad.core import ArrayType, Primitive, Tracer, type_of
from fgrad.kernel_arguments import as_kernel_array, beside, hand_over, owner_of
from fgrad.transforms.vmap import one_by_one, to_front

BATCHING = ("loop", "grid")


@dataclass(frozen=True)
class Call:
    """A launch without its arrays.

    `fixed` has, for each positional argument, None for an array and a tuple of the value for anything else. `outputs`
    are the types of what is returned; `aliases` maps outputs to the array whose memory they take over; `zeroed`
    lists outputs that start as zeros. `size` is None, or the length of the leading batch axis of every result and of
    the arrays in `moving`.
    """

    kernel: Any
    grid: Any
    fixed: tuple[tuple[Any, ...] | None, ...]
    outputs: tuple[ArrayType, ...]
    aliases: tuple[tuple[int, int], ...]
    zeroed: tuple[int, ...]
    batch: str
    meta: tuple[tuple[str, Any], ...]
    size: int | None = None
    moving: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"{self.name}[grid={getattr(self.grid, '__name__', self.grid)}]"

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(getattr(self.kernel, "__name__", None) or self.kernel.fn.__name__)

    @property
    def types(self) -> tuple[ArrayType, ...]:
        """The types of the results, the batch axis included."""
        lead = () if self.size is None else (self.size,)
        return tuple([ArrayType((*lead, *t.shape), t.dtype) for t in self.outputs])

    def positional(self, arrays: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
        """Return the kernel's positional arguments."""
        given = iter(arrays)
        return (*[next(given) if value is None else value[0] for value in self.fixed], *results)


def triton_call(
    kernel: Any,
    *args: Any,
    out_shape: Any,
    grid: Any,
    input_output_aliases: Mapping[int, int] | None = None,
    zeroed_outputs: Sequence[int] = (),
    batch: str = "loop",
    **meta: Any,
) -> Any:
    """Launch a Triton kernel and return new arrays that it wrote.

    The kernel is called with `args`, then the results, then `meta` by name. NumPy arrays are interpreted by the twin;
    where one of the arrays lies on a GPU the kernel runs there, and NumPy arrays beside it are moved. Arrays are passed
    packed, row after row: a kernel needs no strides.

    Args:
        kernel: a `@triton.jit` function; with `@triton.autotune`, its configurations are timed on a GPU, on copies.
        *args: arrays and traced values, of any shape, passed by their address; Python numbers, bools and None by value.
        out_shape: what is returned: anything with `shape` and `dtype`, such as an array or `ShapeDtypeStruct`, or a
            tuple of those.
        grid: one to three sizes, one size, or a function of the arguments by name that returns them.
        input_output_aliases: {position in args: position among the results}. That result begins as a copy of the
            argument, and the kernel gets its address in both places.
        zeroed_outputs: positions of results that begin as zeros; the others must be written in full.
        batch: what `vmap` does: "loop" launches once an example; "grid" launches once, with the batch as the third
            axis of the grid, which the kernel must leave alone.
        **meta: the kernel's further arguments, and compile options: num_warps, num_stages, num_ctas, maxnreg, …

    Returns:
        An array, or a tuple of arrays if `out_shape` is one.

    Raises:
        TypeError: an argument is of a kind that a kernel cannot take.
        ValueError: an alias joins what does not fit, or `batch` is neither of the two.
        NotImplementedError: when it is differentiated.

    Example:
        >>> import numpy as np, triton, fgrad
        >>> from fgrad.triton_kernels.tiling import fill_kernel
        >>> fgrad.triton_call(
        ...     fill_kernel, out_shape=np.empty(3, np.float32), grid=1, size=3, value=2.5, BLOCK=4
        ... )
        array([2.5, 2.5, 2.5], dtype=float32)
    """
    owner = owner_of(args)
    if owner is not None:
        options = {"out_shape": out_shape, "grid": grid, "input_output_aliases": input_output_aliases}
        options |= {"zeroed_outputs": zeroed_outputs, "batch": batch, **meta}
        return hand_over(owner, triton_call, (kernel, *args), options)
    if batch not in BATCHING:
        raise ValueError(f"triton_call: batch must be one of {', '.join(BATCHING)}, got {batch!r}")
    operands = [as_kernel_array(x) for x in args if _is_array(x)]
    several = isinstance(out_shape, (tuple, list))
    outputs = tuple([_output_type(x) for x in (out_shape if several else (out_shape,))])
    call = Call(
        kernel,
        grid,
        tuple([None if _is_array(x) else (x,) for x in args]),
        outputs,
        _aliases(input_output_aliases or {}, args, outputs),
        tuple(zeroed_outputs),
        batch,
        tuple(meta.items()),
    )
    out = _primitive(*operands, call=call)
    return out if several else out[0]


triton_call.runs_on_tracers = True  # type: ignore[attr-defined]


def _is_array(x: Any) -> bool:
    """Return whether a positional argument is an operand: not a number, None, or a tuple of those."""
    if isinstance(x, Tracer) and x.weak_type:
        raise TypeError(
            f"triton_call: a traced number ({x.type}) cannot be passed by value. Remedy: make it static "
            "(static_argnums of jit), or let the kernel take an array, passed by address"
        )
    if isinstance(x, np.generic):
        return False
    return isinstance(x, (list, Tracer)) or hasattr(x, "shape") or hasattr(x, "__dlpack__")


def _output_type(x: Any) -> ArrayType:
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(f"triton_call: out_shape must have shape and dtype, or be a tuple of such, got {x!r}")
    return type_of(x).strong()


def _aliases(
    given: Mapping[int, int], args: Sequence[Any], outputs: Sequence[ArrayType]
) -> tuple[tuple[int, int], ...]:
    """Return (output, operand) pairs; ValueError if one joins what is no array or has another type."""
    pairs = []
    for source, target in given.items():
        if not (0 <= source < len(args) and _is_array(args[source])):
            raise ValueError(f"triton_call: input_output_aliases names argument {source}, which is no array")
        if not 0 <= target < len(outputs):
            raise ValueError(f"triton_call: input_output_aliases names output {target} of {len(outputs)}")
        have, want = type_of(as_kernel_array(args[source])).strong(), outputs[target]
        if have != want:
            raise ValueError(f"triton_call: argument {source} of type {have} cannot become output {target}, a {want}")
        pairs.append((target, sum(_is_array(x) for x in args[:source])))
    return tuple(pairs)


# --------------------------------------------------------------------------------------------------- the primitive


def _launch(*operands: Any, call: Call) -> tuple[Any, ...]:
    from fgrad.triton_kernels import runtime  # here, for Triton is loaded when it is first used

    arrays = [_packed(beside(x, operands)) for x in operands]
    like = arrays[0] if arrays else np.empty(0)
    for target, source in call.aliases:
        kind = call.types[target]
        arrays[source] = runtime.zeros(like, kind.shape, kind.dtype)
        arrays[source][...] = operands[source]
    taken = dict(call.aliases)
    results = []
    for k, kind in enumerate(call.types):
        make = runtime.zeros if k in call.zeroed else runtime.empty
        results.append(arrays[taken[k]] if k in taken else make(like, kind.shape, kind.dtype))
    values = call.positional(arrays, results)
    if call.size is None:
        runtime.launch(call.kernel, call.grid, *values, **dict(call.meta))
    else:
        from fgrad.triton_kernels.batched import launch_batched

        launch_batched(call.kernel, call.grid, call.size, values, _moving(call), dict(call.meta))
    return tuple(results)


def _moving(call: Call) -> set[int]:
    """Return the positions of the kernel's arguments that have a batch axis."""
    operands = [at for at, value in enumerate(call.fixed) if value is None]
    moving = {operands[k] for k in (*call.moving, *[source for _, source in call.aliases])}
    return moving | {len(call.fixed) + k for k in range(len(call.outputs))}


def _packed(x: Any) -> Any:
    """Return an array whose elements lie row after row; 0-d results of NumPy become arrays again."""
    x = np.asarray(x) if isinstance(x, (np.generic, bool, int, float)) else x
    return x if x.flags.c_contiguous else x.copy()


def _batch(args: Sequence[Any], axes: Sequence[int | None], size: int, *, call: Call) -> Any:
    if call.batch == "loop":
        return one_by_one(_primitive, args, axes, size, {"call": call}), 0
    moving = [k for k, axis in enumerate(axes) if axis is not None]
    if call.size is None:
        values = [x if a is None else to_front(x, a, size) for x, a in zip(args, axes, strict=True)]
        return _primitive(*values, call=replace(call, size=size, moving=tuple(moving))), 0
    moving = sorted({*moving, *call.moving})
    values = list(args)
    for k in moving:
        x = to_front(args[k], axes[k], size)
        if k not in call.moving:
            shape = x.shape
            x = np.broadcast_to(x.reshape((size, 1, *shape[1:])), (size, call.size, *shape[1:]))
        values[k] = x.reshape((size * call.size, *x.shape[2:]))
    outs = _primitive(*values, call=replace(call, size=size * call.size, moving=tuple(moving)))
    return tuple([x.reshape((size, call.size, *x.shape[1:])) for x in outs]), 0


def _refuse(prim: Primitive, mask: int, forward: bool) -> NoReturn:
    raise NotImplementedError(
        "triton_call has no derivative: a kernel says nothing of its gradient. Remedy: pair it with a backward kernel "
        "in fgrad.kernel_op, or cut the derivative with fgrad.stop_gradient(x)"
    )


_primitive = Primitive(
    "triton_call",
    "constant",
    _launch,
    lambda *types, call: call.types,
    inputs=("*xs",),
    make_plan=_refuse,
    batch=_batch,
    declared={"category": "kernel", "source": "hand-written", "label": lambda params: params["call"].name},
    multiple=True,
)

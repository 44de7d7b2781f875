"""Batching: a function of one example becomes a function of many, one primitive at a time.

Elementwise primitives need no rule: batch axes go to the front and ranks are aligned. The others say in `shift` how
their parameters change under a leading batch axis, or give a whole rule in `batch`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import ArrayType, Interpreter, Params, Primitive, Tracer, state, type_of
from fgrad.plans import parameters_of
from fgrad.source import function_label
from fgrad.transforms.linearize import as_operand, check_callable, result


class BatchTracer(Tracer):
    """A value with a batch axis at position `axis`."""

    __slots__ = ("value", "axis")

    def __init__(self, interpreter: Batch, value: Any, axis: int):
        self.interpreter = interpreter
        self.value = value
        self.axis = axis

    @property
    def type(self) -> ArrayType:
        kind = type_of(self.value)
        return ArrayType((*kind.shape[: self.axis], *kind.shape[self.axis + 1 :]), kind.dtype)


class Batch(Interpreter):
    """Apply primitives to all examples at once."""

    def __init__(self, label: str, size: int, axis_name: Any = None):
        super().__init__(label)
        self.size = size
        self.axis_name = axis_name

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        values: list[Any] = []
        axes: list[int | None] = []
        for arg in args:
            if arg.__class__ is BatchTracer and arg.interpreter is self:
                values.append(arg.value)
                axes.append(arg.axis)
            else:
                values.append(arg)
                axes.append(None)
        rule = prim.rules.get(Batch)
        if rule is not None:  # asked first: a collective may have no batched argument
            return rule(self, args, params)
        if axes.count(None) == len(axes):
            return self.pass_on(prim, args, params)
        if prim.batch is not None:
            return self.wrap(prim, *prim.batch(values, axes, self.size, **params))
        if prim.kind == "elementwise" or prim.declared.get("elementwise"):
            return BatchTracer(self, prim(*align(values, axes), **params), 0)
        shift = prim.declared.get("shift")
        if shift is not None:
            params = {**params, **shift(self.size, **params)}
            values = [to_front(x, axis, self.size) for x, axis in zip(values, axes, strict=True)]
            return self.wrap(prim, prim(*values, **params), 0)
        if prim.definition is not None:
            return prim.definition(*args, **params)
        return self.wrap(prim, one_by_one(prim, values, axes, self.size, params), 0)

    def wrap(self, prim: Primitive, out: Any, axis: Any) -> Any:
        """Return results as tracers; `axis` is one for all, or one each (None: not batched)."""
        if not prim.multiple:
            return out if axis is None else BatchTracer(self, out, axis)
        axes = axis if isinstance(axis, (tuple, list)) else [axis] * len(out)
        return tuple(x if a is None else BatchTracer(self, x, a) for x, a in zip(out, axes, strict=True))

    def split(self, x: Any) -> tuple[Any, int | None]:
        """Return value and batch axis (None if not batched) of anything met by this interpreter."""
        if x.__class__ is BatchTracer and x.interpreter is self:
            return x.value, x.axis
        return x, None


def move_axis(x: Any, source: int, target: int) -> Any:
    """Return `x` with one axis moved."""
    if source == target:
        return x
    order = [i for i in range(x.ndim) if i != source]
    order.insert(target, source)
    return x.transpose(order)


def to_front(x: Any, axis: int | None, size: int) -> Any:
    """Return `x` with its batch axis in front, broadcast there if it has none."""
    if axis is not None:
        return move_axis(x, axis, 0)
    return np.broadcast_to(x, (size, *type_of(x).shape))


def align(values: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
    """Return batched values with the batch axis in front and ranks made equal, so that they broadcast."""
    rank = max(len(type_of(x).shape) - (axis is not None) for x, axis in zip(values, axes, strict=True))
    out = []
    for x, axis in zip(values, axes, strict=True):
        if axis is not None:
            x = move_axis(x, axis, 0)
            missing = rank - (x.ndim - 1)
            if missing:
                x = x.reshape((x.shape[0], *(1,) * missing, *x.shape[1:]))
        out.append(x)
    return out


def one_by_one(prim: Primitive, values: Sequence[Any], axes: Sequence[int | None], size: int, params: Params) -> Any:
    """Apply a primitive without a batching rule to each example and stack the results."""
    examples = [
        prim(*[x if a is None else take(x, a, i) for x, a in zip(values, axes, strict=True)], **params)
        for i in range(max(size, 1))
    ]
    if prim.multiple:
        return tuple(_stack(parts, size) for parts in zip(*examples, strict=True))
    return _stack(examples, size)


def _stack(parts: Sequence[Any], size: int) -> Any:
    return np.stack(parts)[:size]


def take(x: Any, axis: int, i: int) -> Any:
    """Return the i-th example of `x`; zeros stand for the example of an empty batch."""
    if not x.shape[axis]:
        return np.zeros((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)
    return x[(slice(None),) * axis + (i,)]


# ---------------------------------------------------------------------------------------------------- vmap


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
) -> Callable[..., Any]:
    """Return `fun` vectorised over an axis of its arguments.

    Args:
        fun: a function of one example.
        in_axes: which axis of each argument to map over: an int for all, or a tuple or list with an int, None (not
            mapped) or a prefix of the argument's pytree for each. Negative axes count from the end. Keyword arguments
            map over axis 0.
        out_axes: where the mapped axis goes in the outputs: an int, None (for an output that is not mapped), or a
            prefix of the output's pytree.
        axis_name: a name for the axis, for `fgrad.lax.psum` and its kin.
        axis_size: its size, needed if no argument is mapped.

    Returns:
        The vectorised function.

    Raises:
        TypeError: `fun` is not callable; `in_axes` is of the wrong kind.
        ValueError: sizes differ, an axis is out of range, or in_axes and arguments do not fit.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.vmap(np.dot)(np.ones((3, 2)), np.arange(6.).reshape(3, 2))
        array([1., 5., 9.])
    """
    check_callable("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple, dict)) or tree.structure(in_axes).num_leaves):
        raise TypeError(f"vmap: in_axes must be an int, None, or a tuple of pytree prefixes, got {in_axes!r}")
    label = function_label("vmap", fun)

    @functools.wraps(fun, updated=())
    def vmap_fun(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                f"vmap: in_axes must have one entry per positional argument: it has {len(in_axes)}, "
                f"the call has {len(args)}"
            )
        leaves, treedef = tree.flatten((args, kwargs))
        axes = tree.broadcast_prefix(in_axes, args, is_leaf=_is_none, name="vmap in_axes")
        axes += [0] * (len(leaves) - len(axes))
        leaves = [as_operand(x, "an argument of the function given to vmap") for x in leaves]
        axes = [_axis(x, axis, k) for k, (x, axis) in enumerate(zip(leaves, axes, strict=True))]
        size = _mapped_size(fun, leaves, axes, (args, kwargs), axis_size)
        interpreter = Batch(label, size, axis_name)
        inputs = [x if a is None else BatchTracer(interpreter, x, a) for x, a in zip(leaves, axes, strict=True)]
        full, named = tree.unflatten(treedef, inputs)
        with interpreter:
            out = fun(*full, **named)
        out_leaves, out_tree = tree.flatten(out)
        targets = tree.broadcast_prefix(out_axes, out, is_leaf=_is_none, name="vmap out_axes")
        seen = {id(x) for x in leaves}
        return tree.unflatten(
            out_tree,
            [result(_place(interpreter, x, a), seen) for x, a in zip(out_leaves, targets, strict=True)],
        )

    return vmap_fun


def is_mapping() -> bool:
    """Return whether what is called now is applied to a batch by `vmap`."""
    interpreter = state.interpreter
    while interpreter is not None and interpreter.__class__ is not Batch:
        interpreter = interpreter.parent
    return interpreter is not None


def _is_none(x: Any) -> bool:
    return x is None


def _axis(x: Any, axis: Any, k: int) -> int | None:
    """Return a mapped axis as a non-negative int; ValueError if the argument has no such axis."""
    if axis is None:
        return None
    if not isinstance(axis, (int, np.integer)):
        raise TypeError(f"vmap: in_axes must hold ints and None, got {axis!r}")
    ndim = type_of(x).ndim
    if not -ndim <= axis < ndim:
        raise ValueError(f"vmap: in_axes asks for axis {axis} of an argument of type {type_of(x)} (leaf {k})")
    return int(axis) % ndim


def _mapped_size(
    fun: Callable[..., Any], leaves: Sequence[Any], axes: Sequence[int | None], args: Any, given: int | None
) -> int:
    """Return the size of the mapped axis; ValueError lists the sizes if they differ."""
    sizes = {x.shape[a] for x, a in zip(leaves, axes, strict=True) if a is not None}
    if given is not None:
        sizes.add(given)
    if not sizes:
        raise ValueError(
            "vmap must have at least one mapped argument (a value of in_axes that is not None), or axis_size"
        )
    if len(sizes) == 1:
        return sizes.pop()  # type: ignore[no-any-return]
    lines = [
        f"  axis {a} of argument {name} of type {type_of(x)} has size {x.shape[a]}"
        for x, a, name in zip(leaves, axes, _argument_names(fun, args), strict=True)
        if a is not None
    ]
    if given is not None:
        lines.append(f"  axis_size is {given}")
    raise ValueError("vmap got inconsistent sizes for array axes to be mapped:\n" + "\n".join(lines))


def _argument_names(fun: Callable[..., Any], args: Any) -> list[str]:
    """Return for each leaf of `(args, kwargs)` the name of its argument, and where it lies in it."""
    try:
        names = parameters_of(fun)[0]
    except (TypeError, ValueError):  # some functions in C say nothing of their parameters
        names = ()
    out = []
    for (by_name, key, *rest), _ in tree.leaves_with_path(args):
        name = key.key if by_name.idx else names[key.idx] if key.idx < len(names) else key.idx
        out.append(f"{name}{tree.keystr(tuple(rest))}")
    return out


def _place(interpreter: Batch, x: Any, target: Any) -> Any:
    """Return an output with its batch axis at `target`."""
    value, axis = interpreter.split(as_operand(x, "an output of the function given to vmap"))
    if target is None:
        if axis is not None:
            raise ValueError("vmap has a mapped output, but its out_axes is None")
        return value
    ndim = type_of(value).ndim + (axis is None)
    if not -ndim <= target < ndim:
        raise ValueError(f"vmap: out_axes asks for axis {target} of an output of {ndim} dimensions")
    target %= ndim
    if axis is None:
        value, axis = to_front(value, None, interpreter.size), 0
    return move_axis(value, axis, target)

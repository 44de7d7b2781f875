"""What vmap makes of collectives: the one over its own axis is done here, others are passed on, example by example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fgrad.core import Params, Primitive, state, type_of
from fgrad.ops.collective import all_gather, axis_index, own_part, own_place, psum
from fgrad.transforms.structured import rule
from fgrad.transforms.vmap import Batch, BatchTracer, move_axis, to_front


def axis_size(axis_name: Any) -> int:
    """Return the size of a named axis of an enclosing vmap, as a Python int; NameError if there is none.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.vmap(lambda x: x / fgrad.lax.axis_size("i"), axis_name="i")(np.ones(4))
        array([0.25, 0.25, 0.25, 0.25])
    """
    interpreter = state.interpreter
    while interpreter is not None:
        if isinstance(interpreter, Batch) and interpreter.axis_name == axis_name:
            return interpreter.size
        interpreter = interpreter.parent
    raise NameError(f"unbound axis name: {axis_name!r}. It must be the axis_name of an enclosing fgrad.vmap")


@rule(psum, Batch)
def _psum(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    x, axis = batch.split(args[0])
    if params["axis_name"] != batch.axis_name:
        out = batch.pass_on(psum, (x,), params)
        return out if axis is None else BatchTracer(batch, out, axis)
    return x * batch.size if axis is None else x.sum(axis=axis)


@rule(axis_index, Batch)
def _axis_index(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    if params["axis_name"] != batch.axis_name:
        return batch.pass_on(axis_index, args, params)
    return BatchTracer(batch, np.arange(batch.size), 0)


def _other_axis(batch: Batch, prim: Primitive, x: Any, axis: int | None, params: Params) -> Any:
    """Pass on a collective over another axis; this batch axis goes to the front."""
    if axis is None:
        return batch.pass_on(prim, (x,), params)
    out = batch.pass_on(prim, (to_front(x, axis, batch.size),), {**params, "axis": params["axis"] + 1})
    return BatchTracer(batch, out, 0)


@rule(all_gather, Batch)
def _all_gather(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    x, axis = batch.split(args[0])
    if params["axis_name"] != batch.axis_name:
        return _other_axis(batch, all_gather, x, axis, params)
    return move_axis(to_front(x, axis, batch.size), 0, params["axis"])


@rule(own_part, Batch)
def _own_part(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    x, axis = batch.split(args[0])
    if params["axis_name"] != batch.axis_name:
        return _other_axis(batch, own_part, x, axis, params)
    target = params["axis"]
    if axis is None:
        return BatchTracer(batch, x, target)
    x = move_axis(to_front(x, axis, batch.size), target + 1, 1)
    return BatchTracer(batch, x[np.arange(batch.size), np.arange(batch.size)], 0)


@rule(own_place, Batch)
def _own_place(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    x, axis = batch.split(args[0])
    if params["axis_name"] != batch.axis_name:
        return _other_axis(batch, own_place, x, axis, params)
    x = to_front(x, axis, batch.size)
    mine = np.eye(batch.size, dtype=bool).reshape((batch.size, batch.size, *(1,) * (type_of(x).ndim - 1)))
    placed = np.where(mine, x.reshape((batch.size, 1, *x.shape[1:])), np.zeros((), x.dtype))
    return BatchTracer(batch, move_axis(placed, 1, params["axis"] + 1), 0)

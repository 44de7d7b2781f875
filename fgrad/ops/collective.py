"""Collectives over a named axis of vmap. What `vmap` makes of them is in `fgrad.transforms.collective`."""

from __future__ import annotations

from fgrad.core import ArrayType
from fgrad.kinds import constant, linear


def _unbound(axis_name):
    return NameError(f"unbound axis name: {axis_name!r}. It must be the axis_name of an enclosing fgrad.vmap")


def _no_axis(x, *, axis_name, **params):
    raise _unbound(axis_name)


def _no_index(*, axis_name):
    raise _unbound(axis_name)


psum = linear(
    "psum",
    _no_axis,
    type=lambda x, *, axis_name: x.strong(),
    transpose=lambda ct, *, axis_name: psum(ct, axis_name=axis_name),
    doc="Sum over the examples of a named axis.",
)

all_gather = linear(
    "all_gather",
    _no_axis,
    type=lambda x, *, axis_name, size, axis: ArrayType((*x.shape[:axis], size, *x.shape[axis:]), x.dtype),
    transpose=lambda ct, *, axis_name, size, axis: own_part(
        psum(ct, axis_name=axis_name), axis_name=axis_name, size=size, axis=axis
    ),
    doc="The values of all examples of a named axis, stacked along a new axis.",
)

own_part = linear(
    "own_part",
    _no_axis,
    type=lambda x, *, axis_name, size, axis: ArrayType((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype),
    transpose=lambda ct, *, axis_name, size, axis: own_place(ct, axis_name=axis_name, size=size, axis=axis),
    doc="The part of an array that belongs to the example: what all_gather would have put there.",
)

own_place = linear(
    "own_place",
    _no_axis,
    type=all_gather.type_rule,
    transpose=lambda ct, *, axis_name, size, axis: own_part(ct, axis_name=axis_name, size=size, axis=axis),
    doc="An array of zeros with the example's value in the place that belongs to it.",
)

axis_index = constant(
    "axis_index",
    _no_index,
    type=lambda *, axis_name: ArrayType((), int),
    doc="The position of the example along a named axis.",
)

"""Collectives over a named axis of vmap, on pytrees: few primitives, the rest composed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import type_of
from fgrad.ops import collective as c
from fgrad.ops.elementwise import select
from fgrad.ops.index import gather
from fgrad.transforms.collective import axis_size
from fgrad.transforms.linearize import as_operand


def _each(fun: Callable[[Any], Any], x: Any, name: str) -> Any:
    return tree.map(lambda leaf: fun(as_operand(leaf, f"an argument of {name}")), x)


def psum(x: Any, axis_name: Any) -> Any:
    """Sum `x` over the named axis (or axes, a tuple); every example gets the sum.

    Args:
        x: pytree of arrays.
        axis_name: the `axis_name` of an enclosing vmap, or a tuple of them.

    Raises:
        NameError: there is no such axis.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.vmap(lambda x: x / fgrad.lax.psum(x, "i"), axis_name="i")(np.array([1., 3.]))
        array([0.25, 0.75])
    """
    for name in axis_name if isinstance(axis_name, tuple) else (axis_name,):
        axis_size(name)
        x = _each(lambda leaf: c.psum(leaf, axis_name=name), x, "psum")  # noqa: B023
    return x


def pmean(x: Any, axis_name: Any) -> Any:
    """Average `x` over the named axis (or axes); see `psum`."""
    names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    count = int(np.prod([axis_size(name) for name in names]))
    return tree.map(lambda total: total / count, psum(x, axis_name))


def pmax(x: Any, axis_name: Any) -> Any:
    """Take the maximum of `x` over the named axis; ties share the gradient. See `psum`."""
    return tree.map(lambda leaf: leaf.max(axis=0), all_gather(x, axis_name))


def pmin(x: Any, axis_name: Any) -> Any:
    """Take the minimum of `x` over the named axis; ties share the gradient. See `psum`."""
    return tree.map(lambda leaf: leaf.min(axis=0), all_gather(x, axis_name))


def all_gather(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """Give every example the values of all, stacked along a new `axis`, or with `tiled` joined along an existing one.

    Args:
        x: pytree of arrays.
        axis_name: the `axis_name` of an enclosing vmap.
        axis: where the values go; negative counts from the end of the result.
        tiled: join along `axis` instead of making a new one.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.vmap(lambda x: fgrad.lax.all_gather(x, "i"), axis_name="i")(np.arange(2.))
        array([[0., 1.],
               [0., 1.]])
    """
    size = axis_size(axis_name)

    def gather(leaf: Any) -> Any:
        ndim = type_of(leaf).ndim + (not tiled)
        place = axis % ndim
        out = c.all_gather(leaf, axis_name=axis_name, size=size, axis=place)
        if not tiled:
            return out
        shape = type_of(leaf).shape
        return out.reshape((*shape[:place], size * shape[place], *shape[place + 1 :]))

    return _each(gather, x, "all_gather")


def axis_index(axis_name: Any) -> Any:
    """Return the position of the example along the named axis, an integer; NameError if there is no such axis."""
    axis_size(axis_name)
    return c.axis_index(axis_name=axis_name)


def psum_scatter(x: Any, axis_name: Any, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """Sum over the named axis and give each example its part of the sum along `scatter_dimension`.

    Without `tiled` that dimension has the size of the axis and is dropped; with it, it is divided by that size.
    """
    size = axis_size(axis_name)

    def scatter(leaf: Any) -> Any:
        total = c.psum(leaf, axis_name=axis_name)
        shape, d = total.shape, scatter_dimension
        if tiled:
            total = total.reshape((*shape[:d], size, shape[d] // size, *shape[d + 1 :]))
        return c.own_part(total, axis_name=axis_name, size=size, axis=d)

    return _each(scatter, x, "psum_scatter")


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values along the named axis: `perm` has pairs (source, destination); who receives nothing gets zeros."""
    size = axis_size(axis_name)
    source = np.zeros(size, int)
    receives = np.zeros(size, bool)
    for i, j in perm:
        source[j], receives[j] = i, True
    me = c.axis_index(axis_name=axis_name)

    def permute(leaf: Any) -> Any:
        everyone = c.all_gather(leaf, axis_name=axis_name, size=size, axis=0)
        sent = _look_up(everyone, _look_up(source, me))
        return select(_look_up(receives, me), sent, np.zeros((), sent.dtype))

    return _each(permute, x, "ppermute")


def _look_up(table: Any, index: Any) -> Any:
    """Return `table[index]` for a scalar index that may be traced."""
    return gather(table, index.reshape((1,)), axes=(0,))


def all_to_all(x: Any, axis_name: Any, split_axis: int, concat_axis: int) -> Any:
    """Send part j along `split_axis` to example j, which stacks what it gets along `concat_axis`."""
    size = axis_size(axis_name)

    def exchange(leaf: Any) -> Any:
        everyone = c.all_gather(leaf, axis_name=axis_name, size=size, axis=0)
        mine = c.own_part(everyone, axis_name=axis_name, size=size, axis=split_axis + 1)
        order = list(range(1, mine.ndim))
        order.insert(concat_axis, 0)
        return mine.transpose(order)

    return _each(exchange, x, "all_to_all")

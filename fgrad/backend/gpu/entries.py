"""Entries of an array by index, read in the kernel that uses them: an index is a load whose value addresses another.

A result has the index's axes first, then the others of the array; so the array is seen as having the result's shape,
with no stride along the axes of the index, and the entry's offset comes on top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fgrad.backend.gpu.expressions import is_float
from fgrad.backend.gpu.layout import Access, Strides, access
from fgrad.program import Equation

if TYPE_CHECKING:
    from fgrad.backend.gpu.fusion import Domain


def accesses(eq: Equation, x_strides: Strides, i_strides: Strides, domain: Domain) -> tuple[Access, Access] | None:
    """Return how a `gather` along one axis addresses its array and its index; None if it cannot be one load each."""
    (axis, *others) = eq.params["axes"]
    x, i, out = eq.inputs[0].type, eq.inputs[1].type, eq.outputs[0].type
    if others or i.dtype.kind not in "iu":
        return None
    rest = [a for a in range(x.ndim) if a != axis]
    inner = i.ndim - 1
    array = access(out.shape, (*(0,) * inner, *[x_strides[a] for a in rest]), out.shape, domain, "full")
    shape = (*i.shape[1:], *(1,) * len(rest))
    index = access(shape, (*i_strides[1:], *(0,) * len(rest)), out.shape, domain, "full")
    if array is None or index is None:
        return None
    return array._replace(pick=(x.shape[axis], x_strides[axis])), index


def picked(entry: str, count: str, stride: str) -> tuple[list[str], str]:
    """Return the lines that make the number of an entry a valid one, and the offset of that entry.

    Negative numbers count from the end. `entry` names the number, `<entry>_is_there` whether there is such an entry.
    """
    lines = [
        f"{entry} = tl.where({entry} < 0, {entry} + {count}, {entry})",
        f"{entry}_is_there = ({entry} >= 0) & ({entry} < {count})",
    ]
    return lines, f"{entry} * {stride}"


def absent(eq: Equation) -> str:
    """Return what stands for an entry that there is not: NaN, or 0 where there is no NaN."""
    return "float('nan')" if is_float(eq.outputs[0].type.dtype) else "0"

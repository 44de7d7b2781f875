"""Donated arguments: results written over arrays that the caller gives away.

A result takes the place of a donated argument of its type if nothing reads the argument after the result is made, and
if nothing that read it before may still look at its memory. Large results then cost no fresh pages, which take
longer to map than to fill.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fgrad.backend.emit import ufunc_of
from fgrad.program import Equation, Program, Var


def overwritten(program: Program, donated: Sequence[int]) -> dict[int, int]:
    """Return the donated inputs that outputs may be written over: id of the output's variable -> number of the input.

    Args:
        program: what runs, in the order it runs in.
        donated: numbers of the inputs that are given away.
    """
    if not donated:
        return {}
    last: dict[int, int] = {}
    viewed: set[int] = {id(a) for a in program.outputs}
    makers: dict[int, int] = {}
    for step, eq in enumerate(program.equations):
        for a in eq.inputs:
            last[id(a)] = step
            if not _makes_new(eq):
                viewed.add(id(a))
        makers.update((id(v), step) for v in eq.outputs)
    free = {k: program.inputs[k] for k in donated if id(program.inputs[k]) not in viewed}
    found: dict[int, int] = {}
    for v in program.outputs:
        step = makers.get(id(v), -1)
        if step < 0 or id(v) in found or ufunc_of(program.equations[step]) is None:
            continue
        k = next((k for k, u in free.items() if _same(u, v) and last.get(id(u), -1) <= step), None)
        if k is not None:
            found[id(v)] = k
            del free[k]
    return found


def _makes_new(eq: Equation) -> bool:
    """Return whether the results of an equation are certainly no views of its operands."""
    return ufunc_of(eq) is not None or eq.prim.name in ("dot_general", "reduce_sum", "reduce_max")


def _same(u: Var, v: Any) -> bool:
    return bool(u.type.shape) and u.type == v.type and not u.type.weak


def may_overwrite(leaves: Sequence[Any], donated: Sequence[int]) -> bool:
    """Return whether donated arrays own memory that can be written to, and share it with no other argument.

    Who gives a view away may still look at the whole.
    """
    arrays = [(k, x) for k, x in enumerate(leaves) if isinstance(x, np.ndarray)]
    for k in donated:
        x = leaves[k]
        if x.__class__ is not np.ndarray or x.base is not None or not x.dtype.isnative:
            return False
        if not (x.flags.writeable and x.flags.c_contiguous):
            return False
        if any(np.may_share_memory(x, y) for j, y in arrays if j != k):
            return False
    return True

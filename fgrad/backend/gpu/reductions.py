"""The Triton text of reductions: of a block along an axis, of two results, and what changes nothing."""

from __future__ import annotations

import numpy as np

from fgrad.backend.gpu.expressions import is_float, stored
from fgrad.program import Equation


def identity(eq: Equation) -> str:
    """Return what changes nothing in a reduction."""
    kind = eq.inputs[0].type.dtype
    if eq.prim.name in ("reduce_sum", "reduce_any"):
        return "0"
    if eq.prim.name in ("reduce_all", "reduce_prod"):
        return "1"
    low = eq.prim.name == "reduce_max"
    if is_float(kind):
        return "-float('inf')" if low else "float('inf')"
    if kind.kind == "b":
        return "0" if low else "1"
    info = np.iinfo(kind)
    return str(info.min if low else info.max)


def reduced(eq: Equation, value: str, axis: int = 1, keep: bool = True) -> str:
    """Return the reduction of a block along one of its axes."""
    kept = ", keep_dims=True" if keep else ""
    if eq.prim.name == "reduce_sum":
        total = f"tl.sum({value}, {axis}{kept})"
        dtype = eq.inputs[0].type.dtype
        return total if is_float(dtype) or dtype.itemsize >= 4 else f"{total}.to({stored(dtype)})"
    name = _operation(eq)
    if name in ("reduce_any", "reduce_all"):
        function = "max" if name == "reduce_any" else "min"
        return f"(tl.{function}(({value} != 0).to(tl.int32), {axis}{kept}) != 0)"
    return f"tl.reduce({value}, {axis}, {_FUNCTIONS[eq.prim.name]}{kept})"


def joined(eq: Equation, total: str, value: str) -> str:
    """Return two partial results joined."""
    sign = {"reduce_sum": "+", "reduce_prod": "*", "reduce_any": "|", "reduce_all": "&"}.get(_operation(eq))
    return f"{total} {sign} {value}" if sign else f"{_FUNCTIONS[eq.prim.name]}({total}, {value})"


def _operation(eq: Equation) -> str:
    """Return the name of a reduction; of bools, the largest is whether there is any, the smallest whether all are."""
    of_bools = {"reduce_max": "reduce_any", "reduce_min": "reduce_all"} if eq.inputs[0].type.dtype.kind == "b" else {}
    return of_bools.get(eq.prim.name, eq.prim.name)


_FUNCTIONS = {"reduce_prod": "product", "reduce_max": "larger", "reduce_min": "smaller"}

"""Where values are zero beyond the rows and columns of a kernel, so that sums need no mask.

Loads give zero there. An operation keeps it if zeros give zero; what could be NaN or infinite beside them does not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fgrad.program import Equation, Literal

if TYPE_CHECKING:
    from fgrad.backend.gpu.fusion import Kernel
    from fgrad.backend.gpu.layout import Access

ROWS, COLUMNS = "rows", "columns"

_BOTH = frozenset({ROWS, COLUMNS})
_KEEP = frozenset(
    "neg abs square sqrt tanh sin tan sinh asin asinh atan atanh expm1 log1p erf relu sign floor ceil trunc rint cast "
    "copy stop_gradient broadcast reshape add sub max min hypot".split()
)


def zero_beyond(kernel: Kernel) -> dict[int, frozenset[str]]:
    """Return for each value of a kernel beyond which of its bounds it is known to be zero."""
    known: dict[int, frozenset[str]] = {}

    def operand(eq: Equation, k: int) -> frozenset[str]:
        a: Any = eq.inputs[k]
        if isinstance(a, Literal):
            return _BOTH if a.value == 0 else frozenset()
        at = kernel.uses.get((id(eq.outputs[0]), k))
        if at is None:
            return known.get(id(a), frozenset())
        if id(a) in kernel.counting:
            return frozenset()
        return loaded_zero(at)

    for eq in kernel.equations:
        known[id(eq.outputs[0])] = _kept(eq, [operand(eq, k) for k in range(len(eq.inputs))])
    return known


def loaded_zero(at: Access) -> frozenset[str]:
    """Return beyond which bounds a load gives zero: those of the axes that it follows."""
    return frozenset(name for name, axes in ((ROWS, at.rows), (COLUMNS, at.columns)) if axes)


def _kept(eq: Equation, zero: list[frozenset[str]]) -> frozenset[str]:
    name = eq.prim.name
    if name in _KEEP:
        return frozenset.intersection(*zero)
    if name == "select":
        return zero[1] & zero[2]
    if name == "mul":
        one, other = zero
        return (one & other) | (one if _finite(eq.inputs[1]) else other if _finite(eq.inputs[0]) else frozenset())
    if name == "div" and _finite(eq.inputs[1]) and eq.inputs[1].value != 0:  # type: ignore[union-attr]
        return zero[0]
    return frozenset()


def _finite(a: Any) -> bool:
    return isinstance(a, Literal) and math.isfinite(a.value)

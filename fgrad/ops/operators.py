"""Python's operators on traced values.

Each operator is bound straight to its primitive. Operands that are no arrays are converted (lists) or left to the
other operand's class.
"""

from __future__ import annotations

import numpy as np

from fgrad.core import Tracer, binary_operator, function_table, ufunc_table, unary_operator
from fgrad.ops import elementwise as e

_BINARY = {
    "add": e.add,
    "sub": e.sub,
    "mul": e.mul,
    "truediv": e.div,
    "floordiv": e.floor_divide,
    "mod": e.rem,
    "pow": e.pow,
    "and": e.bitwise_and,
    "or": e.bitwise_or,
    "xor": e.bitwise_xor,
    "lshift": e.left_shift,
    "rshift": e.right_shift,
}
_COMPARISONS = {"eq": e.eq, "ne": e.ne, "lt": e.lt, "le": e.le, "gt": e.gt, "ge": e.ge}
_UNARY = {"neg": e.neg, "invert": e.invert}


_UFUNCS = {
    np.add: e.add,
    np.subtract: e.sub,
    np.multiply: e.mul,
    np.true_divide: e.div,
    np.floor_divide: e.floor_divide,
    np.remainder: e.rem,
    np.power: e.pow,
    np.negative: e.neg,
    np.equal: e.eq,
    np.not_equal: e.ne,
    np.less: e.lt,
    np.less_equal: e.le,
    np.greater: e.gt,
    np.greater_equal: e.ge,
    np.bitwise_and: e.bitwise_and,
    np.bitwise_or: e.bitwise_or,
    np.bitwise_xor: e.bitwise_xor,
    np.left_shift: e.left_shift,
    np.right_shift: e.right_shift,
    np.invert: e.invert,
}
"""The ufuncs that NumPy's arrays call for operators whose other operand is a traced value."""


def install() -> None:
    """Attach the operators to traced values, and `np.where`, by which gates are written."""
    function_table[np.where] = e.select
    ufunc_table.update(_UFUNCS)
    for name, prim in _BINARY.items():
        method, reflected = binary_operator(prim)
        setattr(Tracer, f"__{name}__", method)
        setattr(Tracer, f"__r{name}__", reflected)
    for name, prim in _COMPARISONS.items():
        setattr(Tracer, f"__{name}__", binary_operator(prim)[0])
    for name, prim in _UNARY.items():
        setattr(Tracer, f"__{name}__", unary_operator(prim))
    Tracer.__pos__ = lambda self: self  # type: ignore[attr-defined]
    Tracer.__divmod__ = lambda self, other: (self // other, self % other)  # type: ignore[attr-defined]
    Tracer.__rdivmod__ = lambda self, other: (other // self, other % self)  # type: ignore[attr-defined]


install()

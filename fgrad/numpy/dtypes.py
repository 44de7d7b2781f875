"""Dtypes, constants and questions about types. Scalar types and finfo are NumPy's own."""

from __future__ import annotations

import numpy as np

from fgrad.core import Tracer
from fgrad.numpy.arguments import counterpart, operand, promotes_as, stands_for

__all__ = """
    can_cast common_type iscomplexobj isrealobj may_share_memory min_scalar_type result_type shares_memory
""".split()


@counterpart(np.result_type)
def result_type(*arrays_and_dtypes):
    """Return the dtype that arrays, numbers and dtypes promote to, by NumPy 2's rules."""
    return np.result_type(*[promotes_as(x) if isinstance(x, Tracer) else x for x in arrays_and_dtypes])


@counterpart(np.can_cast)
def can_cast(from_, to, casting="safe"):
    """Say whether values of one dtype can be cast to another by a rule."""
    return np.can_cast(from_.dtype if isinstance(from_, Tracer) else from_, to, casting)


@counterpart(np.min_scalar_type)
def min_scalar_type(a, /):
    """Return the dtype of an array; of a number, the smallest that holds it."""
    return a.dtype if isinstance(a, Tracer) else np.min_scalar_type(a)


@counterpart(np.common_type)
def common_type(*arrays):
    """Return the floating scalar type that arrays have in common; integers count as float64."""
    return np.common_type(
        *[np.broadcast_to(np.zeros((), x.dtype), x.shape) if isinstance(x, Tracer) else x for x in arrays]
    )


@counterpart(np.iscomplexobj)
def iscomplexobj(x):
    """Say whether an array or number is of a complex dtype."""
    return np.iscomplexobj(np.zeros((), x.dtype) if isinstance(x, Tracer) else operand(x))


@counterpart(np.isrealobj)
def isrealobj(x):
    """Say whether an array or number is not of a complex dtype."""
    return not iscomplexobj(x)


@stands_for(np.shares_memory, np.may_share_memory)
def shares_memory(a, b, /, max_work=None):
    """Say whether two arrays share memory; a traced value shares none."""
    if isinstance(a, Tracer) or isinstance(b, Tracer):
        return False
    return np.shares_memory(a, b)


may_share_memory = shares_memory

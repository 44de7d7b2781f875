"""The functions and methods of tensors, by family: one line each, composed from fgrad's primitives and functions."""

from . import pointwise  # noqa: I001  (families that others build on come first)
from . import (
    reduce,
    shape,
    arrange,
    create,
    convert,
    linalg,
    index,
    gradients,
    memory,
    random,
    numeric,
    pieces,
    special,
    protocols,
)
from .table import FUNCTIONS

__all__ = [
    "FUNCTIONS",
    "arrange",
    "convert",
    "create",
    "gradients",
    "index",
    "linalg",
    "memory",
    "numeric",
    "pieces",
    "pointwise",
    "protocols",
    "random",
    "reduce",
    "shape",
    "special",
]

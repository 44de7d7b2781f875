"""The table of primitives: one declaration each, by family.

Importing this package fills `fgrad.core.TABLE`; linear algebra and Fourier transforms enter when they are first asked
for. A module here may use the primitives of its siblings; rules are ordinary code in operators and primitives, with no
`np.` calls on values that may be traced.
"""

from importlib import import_module

from fgrad.core import TABLE
from fgrad.ops import (
    along,
    complex,
    contract,
    elementwise,
    index,
    kernels,
    methods,
    operators,
    random,
    reduce,
    shape,
    sort,
    special,
)

LATE = ("factor", "fft", "linalg", "spectral")
"""Families that are imported when one of their primitives is first asked for."""

TABLE.late += [f"fgrad.ops.{name}" for name in LATE]


def __getattr__(name: str) -> object:
    if name in LATE:
        return import_module(f"fgrad.ops.{name}")
    raise AttributeError(f"module 'fgrad.ops' has no attribute '{name}'")


__all__ = [
    "along",
    "complex",
    "contract",
    "elementwise",
    "factor",
    "fft",
    "index",
    "kernels",
    "linalg",
    "methods",
    "operators",
    "random",
    "reduce",
    "shape",
    "sort",
    "special",
    "spectral",
]

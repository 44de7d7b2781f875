"""The table of primitives: one declaration each, by family.

Importing this package fills `fgrad.core.TABLE`. A module here may use the primitives of its siblings; rules are
ordinary code in operators and primitives, with no `np.` calls on values that may be traced.
"""

from fgrad.ops import (
    along,
    complex,
    contract,
    elementwise,
    factor,
    fft,
    index,
    kernels,
    linalg,
    methods,
    operators,
    random,
    reduce,
    shape,
    sort,
    special,
    spectral,
)

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

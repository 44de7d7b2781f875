"""What describes a kernel family to the battery, beside what it is to whoever runs it: a `Workload` of the package."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from fgrad.triton_kernels.bench.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Family(Workload):
    """A workload, and what its tests must know.

    huge(dtype) gives arrays of zeros with more than 2**31 elements. `sizes` are the rows and columns that are tried,
    `wide` further numbers of columns. `reduces_rows` says that a NaN must reach all of its row, `keeps_rows_apart` that
    it must reach no other (an index holds no NaN, and a norm of all holds every one), `linear` that the first array's
    gradient does not depend on it. A family without gradients has `differentiable` ().
    """

    huge: Callable
    sizes: tuple = ((1, 1), (3, 5), (4, 17), (2, 127), (3, 1000))
    reduces_rows: bool = True
    keeps_rows_apart: bool = True
    linear: bool = False
    tolerance: float = 4.0
    wide: tuple = (4097, 65_537)


def family(workload, **known):
    """Return a workload as a family."""
    return Family(**{field.name: getattr(workload, field.name) for field in fields(workload)}, **known)


def huge_rows(dtype):
    """Return one array of rows with more than 2**31 elements."""
    return (np.zeros((70_000, 40_000), dtype),)

"""NumPy's functions, differentiable: `import fgrad.numpy as fnp`, or `import numpy as np` on traced values.

Outside transforms these are NumPy's functions, on plain arrays; inside `grad`, `jvp`, `vmap` or `jit` they are composed
of primitives. NumPy's own functions called on a traced value come here through its protocols. Promotion is NumPy 2's.
Beyond NumPy there is `at(x)[index].set(values)`.
"""

from importlib import import_module as _import_module

import numpy as _np

from fgrad.core import Array as ndarray  # noqa: F401
from fgrad.core import late_functions as _late_functions
from fgrad.numpy import methods
from fgrad.numpy.applying import *  # noqa: F403
from fgrad.numpy.calculus import *  # noqa: F403
from fgrad.numpy.creation import *  # noqa: F403
from fgrad.numpy.dtypes import *  # noqa: F403
from fgrad.numpy.elementwise import *  # noqa: F403
from fgrad.numpy.joining import *  # noqa: F403
from fgrad.numpy.linear import *  # noqa: F403
from fgrad.numpy.nanreductions import *  # noqa: F403
from fgrad.numpy.numpys_own import *  # noqa: F403
from fgrad.numpy.padding import *  # noqa: F403
from fgrad.numpy.reductions import *  # noqa: F403
from fgrad.numpy.selecting import *  # noqa: F403
from fgrad.numpy.sets import *  # noqa: F403
from fgrad.numpy.shaping import *  # noqa: F403
from fgrad.numpy.sorting import *  # noqa: F403
from fgrad.numpy.statistics import *  # noqa: F403
from fgrad.numpy.subscripts import *  # noqa: F403
from fgrad.numpy.updating import *  # noqa: F403
from fgrad.numpy.writing import *  # noqa: F403

__array_api_version__ = "2024.12"
if hasattr(_np, "__array_namespace_info__"):  # from NumPy 2.1 on
    __array_namespace_info__ = _np.__array_namespace_info__

methods.install()
_late_functions.update({"numpy.fft": "fgrad.numpy.fft", "numpy.linalg": "fgrad.numpy.linalg"})


def __getattr__(name: str) -> object:
    """Load `fft` and `linalg` when they are first asked for."""
    if name in ("fft", "linalg"):
        return _import_module(f"fgrad.numpy.{name}")
    raise AttributeError(f"module 'fgrad.numpy' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), "fft", "linalg"})

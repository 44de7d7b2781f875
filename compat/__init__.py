"""The imperative face of fgrad: tensors that record themselves.

`import fgrad.compat as torch` carries code written for `torch.autograd`. Names stand where torch has them.
"""

from importlib import import_module as _import_module
from math import e, inf, nan, pi

import fgrad.numpy as _numpy  # noqa: F401  (its functions are what recorded operations are composed of)
from fgrad.extend import probe_providers as _probe_providers

from . import dtypes as _dtypes
from .devices import get_default_device, set_default_device
from .dtypes import Size, device, dtype, finfo, get_default_dtype, iinfo, set_default_dtype
from .methods import FUNCTIONS as _FUNCTIONS
from .modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .printing import set_printoptions
from .tensor import Tensor

# What the table of functions and dtypes holds; the namespaces below are modules that take some of these names back.
globals().update(_FUNCTIONS)
globals().update(_dtypes.DTYPES)
globals().update({alias: _dtypes.DTYPES[name] for alias, name in _dtypes.ALIASES.items()})

_probe_providers.append("fgrad.compat.profiling")

from . import autograd, cuda, fft, func, linalg, nn, random, special, testing, utils  # noqa: E402
from .anomaly import (  # noqa: E402
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
)
from .func import vmap  # noqa: E402
from .sparse import sparse_coo_tensor  # noqa: E402
from .unchanged import as_torch  # noqa: E402

newaxis, sparse_coo = None, "torch.sparse_coo"
strided, contiguous_format, preserve_format = "torch.strided", "torch.contiguous_format", "torch.preserve_format"
__version__ = "2.13.0+fgrad"

__all__ = [
    "Size", "Tensor", "as_torch", "autograd", "cuda", "device", "draw", "dtype", "e", "enable_grad", "fft", "finfo",
    "func", "get_default_device", "get_default_dtype", "iinfo", "inf", "inference_mode", "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled", "linalg", "nan", "nn", "no_grad", "pi",
    "profiler", "random", "set_anomaly_enabled", "set_default_device", "set_default_dtype", "set_grad_enabled",
    "set_printoptions", "sparse_coo_tensor", "special", "testing", "utils", "vmap",
]  # fmt: skip
__all__ += sorted({*_FUNCTIONS, *_dtypes.DTYPES, *_dtypes.ALIASES} - set(__all__))


def __getattr__(name):
    """Load what few programs need when it is asked for; say what stands in for a name of torch that is not here."""
    if name == "draw":
        from .drawing import draw

        return draw
    if name == "profiler":
        return _import_module("fgrad.compat.profiler")
    import difflib

    near = difflib.get_close_matches(name, __all__, 3)
    hint = f"; did you mean {' or '.join(near)}?" if near else "."
    raise AttributeError(
        f"fgrad.compat has no '{name}'{hint} It covers torch.autograd and the operations on tensors: dir(fgrad.compat)"
    )

"""The imperative face of fgrad: tensors that record themselves.

`import fgrad.compat as torch` carries code written for `torch.autograd`. Names stand where torch has them.
"""

import fgrad.numpy as _numpy  # noqa: F401  (its functions are what recorded operations are composed of)
from fgrad.compat import dtypes as _dtypes
from fgrad.compat.dtypes import Size, device, finfo, get_default_dtype, iinfo, set_default_dtype
from fgrad.compat.methods import FUNCTIONS as _FUNCTIONS
from fgrad.compat.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from fgrad.compat.printing import set_printoptions
from fgrad.compat.tensor import Tensor

globals().update(_FUNCTIONS)
globals().update(_dtypes.DTYPES)
globals().update({alias: _dtypes.DTYPES[name] for alias, name in _dtypes.ALIASES.items()})
dtype = _dtypes.dtype

from math import e, inf, nan, pi  # noqa: E402

from math import e, inf, nan, pi  # noqa: E402

from fgrad.compat import autograd, cuda, fft, func, linalg, nn, random, special, testing, utils  # noqa: E402
from fgrad.compat.func import vmap  # noqa: E402
from fgrad.compat.unchanged import as_torch  # noqa: E402

newaxis = None
strided = "torch.strided"
contiguous_format = "torch.contiguous_format"
preserve_format = "torch.preserve_format"
Generator = random.Generator
__version__ = "2.13.0+fgrad"


def __getattr__(name):
    """Say what stands in for a name of torch that is not here."""
    import difflib

    near = difflib.get_close_matches(name, globals(), 3)
    raise AttributeError(
        f"fgrad.compat has no '{name}'" + (f"; did you mean {' or '.join(near)}?" if near else "")
        + " It covers torch.autograd and the operations on tensors; see dir(fgrad.compat)."
    )

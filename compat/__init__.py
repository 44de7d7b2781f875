"""The imperative face of fgrad: tensors that record themselves.

`import fgrad.compat as torch` carries code written for `torch.autograd`. Names stand where torch has them.
"""

import fgrad.numpy as _numpy  # noqa: F401  (its functions are what recorded operations are composed of)
from fgrad.compat import dtypes as _dtypes
from fgrad.compat.dtypes import Size, device, get_default_dtype, set_default_dtype
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

from fgrad.compat import autograd, cuda, nn, testing, utils  # noqa: E402
from fgrad.compat.methods.linalg import LINALG as linalg  # noqa: E402
from fgrad.compat.methods.random import RANDOM as random  # noqa: E402

newaxis = None

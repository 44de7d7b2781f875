"""`torch.autograd`: gradients of recorded computations. Names only; the work is done beside this package."""

import types as _types

from fgrad.compat import engine as _engine
from fgrad.compat.autograd import function, graph
from fgrad.compat.autograd.variable import Variable
from fgrad.compat.engine import backward, grad
from fgrad.compat.function import Function
from fgrad.compat.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

__all__ = [
    "Function", "Variable", "backward", "enable_grad", "function", "grad", "graph", "inference_mode", "is_grad_enabled", "no_grad",
    "set_grad_enabled",
]  # fmt: skip

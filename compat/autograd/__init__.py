"""`torch.autograd`: gradients of recorded computations. Names only; the work is done beside this package."""

from fgrad.compat.autograd import forward_ad, function, functional, grad_mode, gradcheck, graph
from fgrad.compat.autograd.variable import Variable
from fgrad.compat.backward import backward, grad
from fgrad.compat.function import Function
from fgrad.compat.gradcheck import gradgradcheck
from fgrad.compat.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

__all__ = [
    "Function", "Variable", "backward", "enable_grad", "forward_ad", "function", "functional", "grad", "grad_mode",
    "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled",
]  # fmt: skip

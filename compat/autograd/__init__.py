"""`torch.autograd`: gradients of recorded computations. Names only; the work is done beside this package."""

from importlib import import_module

from ..anomaly import detect_anomaly, set_detect_anomaly
from ..backward import backward, grad
from ..function import Function
from ..gradcheck import gradgradcheck
from ..modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from . import anomaly_mode, forward_ad, function, functional, grad_mode, gradcheck, graph
from .variable import Variable


def __getattr__(name):
    """Load the profiler when it is first asked for."""
    if name in ("profiler", "_profiler_enabled"):
        module = import_module("fgrad.compat.autograd.profiler")
        return module if name == "profiler" else module._profiler_enabled
    raise AttributeError(f"module 'torch.autograd' has no attribute '{name}'")


__all__ = [
    "Function", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
    "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled",
    "no_grad", "profiler", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip

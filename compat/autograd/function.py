"""`torch.autograd.function`."""

from fgrad.compat.function import (
    AutogradContext,
    BackwardCFunction,
    Function,
    FunctionCtx,
    InplaceFunction,
    _ContextMethodMixin,
    once_differentiable,
)

__all__ = [
    "AutogradContext", "BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "_ContextMethodMixin",
    "once_differentiable",
]  # fmt: skip

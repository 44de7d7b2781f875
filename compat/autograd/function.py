"""`torch.autograd.function`."""

from fgrad.compat.context import AutogradContext, BackwardCFunction, FunctionCtx, _ContextMethodMixin
from fgrad.compat.function import Function, FunctionMeta, InplaceFunction, once_differentiable

__all__ = [
    "AutogradContext", "BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction",
    "_ContextMethodMixin", "once_differentiable",
]  # fmt: skip

"""`torch.autograd.function`."""

from ..context import AutogradContext, BackwardCFunction, FunctionCtx, _ContextMethodMixin
from ..function import Function, FunctionMeta, InplaceFunction, once_differentiable

__all__ = [
    "AutogradContext", "BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction",
    "_ContextMethodMixin", "once_differentiable",
]  # fmt: skip

"""`torch.nn`: parameters and plain functions. Layers are not part of this package."""

from fgrad.compat.nn import functional
from fgrad.compat.nn.parameter import Parameter

__all__ = ["Parameter", "functional"]

"""`torch.nn`: parameters and plain functions. Layers are not part of this package."""

from . import functional
from .parameter import Parameter

__all__ = ["Parameter", "functional"]

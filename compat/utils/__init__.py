"""`torch.utils`."""

from . import checkpoint

__all__ = ["checkpoint"]

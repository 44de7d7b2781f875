"""`torch.utils`."""

from fgrad.compat.utils import checkpoint

__all__ = ["checkpoint"]

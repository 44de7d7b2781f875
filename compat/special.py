"""`torch.special`: special functions."""

from .methods.special import SPECIAL

globals().update(vars(SPECIAL))
__all__ = sorted(vars(SPECIAL))

"""`torch.special`: special functions."""

from .methods.numeric import SPECIAL

globals().update(vars(SPECIAL))
__all__ = sorted(vars(SPECIAL))

"""`torch.linalg`: linear algebra."""

from fgrad.compat.methods.linalg import LINALG

globals().update(vars(LINALG))
__all__ = sorted(vars(LINALG))

"""`torch.linalg`: linear algebra."""

from .methods.linalg import LINALG

globals().update(vars(LINALG))
__all__ = sorted(vars(LINALG))

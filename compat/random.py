"""`torch.random`: the default generator."""

from fgrad.compat.methods.random import Generator  # noqa: F401
from fgrad.compat.methods.random import RANDOM

globals().update(vars(RANDOM))
__all__ = sorted(vars(RANDOM))  # noqa: PLE0605

"""`torch.random`: the default generator."""

from .methods.random import (
    RANDOM,
    Generator,  # noqa: F401
)

globals().update(vars(RANDOM))
__all__ = sorted(vars(RANDOM))

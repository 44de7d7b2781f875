"""`torch.nn`: parameters and plain functions. Layers are not part of this package."""

from . import functional
from .parameter import Parameter

__all__ = ["Parameter", "functional"]


def __getattr__(name):
    """Say what stands in for layers."""
    raise AttributeError(
        f"fgrad.compat.nn has no '{name}': it has Parameter and nn.functional, and no layers. Keep parameters in a "
        "dict of tensors; examples/characters.py has a transformer and its optimiser"
    )

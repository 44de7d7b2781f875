"""`torch.autograd.graph`."""

from fgrad.compat.graph import GradientEdge, Node

__all__ = ["GradientEdge", "Node"]

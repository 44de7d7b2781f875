"""The graph as programs see it: `grad_fn`, `next_functions`, names, saved values, hooks on nodes.

Owns what every kind of node offers. Places (see `tape`) become edges here: pairs of a node and an output's number.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

# Relative, so that a type checker follows: it knows the folders, not the map that makes `compat` a part of fgrad.
from .hooks import PlaceHooks, RemovableHandle, add
from .tensor import LEAF, Tensor

if TYPE_CHECKING:
    from . import tape
    from .context import AutogradContext

    Place = tape.Node | tape.Output | AutogradContext | Tensor
    Edge = tuple["GraphNode | None", int]


class GraphNode:
    """What every node of a recorded graph offers; nodes are what `Tensor.grad_fn` gives."""

    __slots__ = ()

    _parents: Sequence[Place | None]
    _more: PlaceHooks | None

    def name(self) -> str:
        """Return the node's name, such as `MulBackward0`."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """For each input a pair of the node it came from and that node's output number; (None, 0) for constants."""
        more = self._more
        if more is not None and more.sources is not None:
            return tuple([edge(place) for place in more.sources])
        return tuple([edge(place) for place in self._sources()])

    def _sources(self) -> Sequence[Place | None]:
        return self._parents

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the user's notes, which lives as long as the node."""
        more = PlaceHooks.at(self)
        if more.metadata is None:
            more.metadata = {}
        return more.metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node has run; what it returns replaces `grad_inputs`."""
        return add(PlaceHooks.at(self).post, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node runs; what it returns replaces `grad_outputs`."""
        return add(PlaceHooks.at(self).pre, hook)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class Node(GraphNode):
    """The type of all nodes, for `isinstance(t.grad_fn, torch.autograd.graph.Node)`."""

    __slots__ = ()


class AccumulateGrad(Node):
    """The end of the graph at a leaf: stands for adding to `variable.grad`."""

    __slots__ = ("variable", "__weakref__")

    next_functions = ()

    def __init__(self, variable: Tensor):
        self.variable = variable

    def name(self) -> str:
        """Return torch's name of it, which has a prefix that others have not."""
        return "torch::autograd::AccumulateGrad"

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after the gradient has been added to the leaf's."""

        def after(leaf: Tensor) -> None:
            hook((), (leaf.grad,))

        return self.variable.register_post_accumulate_grad_hook(after)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the gradient is added."""

        def on_tensor(g: Tensor) -> Tensor | None:
            got = hook((g,))
            return got[0] if isinstance(got, tuple) else got

        return self.variable.register_hook(on_tensor)


AccumulateGrad.__module__ = "fgrad.compat"


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """Return the AccumulateGrad of a leaf: the same object as long as somebody holds it."""
    extras = leaf.extras
    found = extras.accumulate and extras.accumulate()
    if found is None:
        found = AccumulateGrad(leaf)
        extras.accumulate = weakref.ref(found)
    return found


def edge(place: Place | None) -> Edge:
    """Return the (node, output number) pair of a place; a leaf gives its AccumulateGrad, None gives (None, 0)."""
    if place is None:
        return None, 0
    if isinstance(place, Tensor):
        return accumulator(place), 0
    return place.node_and_index()


class GradientEdge(NamedTuple):
    """A place in the graph as `autograd.grad` and `backward` take it: a node and the number of its output."""

    node: object
    output_nr: int


def grad_fn(t: Tensor) -> GraphNode | None:
    """Return the node that made a tensor, or None for a leaf."""
    if t._view is not None:
        t._view.refresh(t)
    node = t._node
    return None if node is None or node is LEAF else edge(node)[0]

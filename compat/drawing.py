"""Pictures of recorded graphs: nodes, what they saved, and the shapes that flow, as steps that `fgrad.drawing` draws.

A node does not know the shape of its output. It is found from the roots: the gradient that a node's pull gives to a
parent has the type of the parent's value, and that is computed on types alone.
"""

from __future__ import annotations

import re

import numpy as np

from fgrad.extend import ArrayType, Picture, SavedValue, Step, pulled_types, type_of

from .anomaly import TORCH_NAMES, TRACEBACK
from .context import AutogradContext
from .engine import sources
from .tape import FREED, Output, Packed, place_of
from .tensor import Tensor

FREED_NOTE = "freed"


def draw(tensors, names=None, max_nodes=60):
    """Return a picture of the graph that was recorded for a tensor: what backward will run, and what it keeps.

    With more than `max_nodes` nodes, neighbours fold into one box: what was recorded by one line, where
    `detect_anomaly` was on and noted it, and rounds of what repeats.

    Args:
        tensors: a tensor that requires grad, or several.
        names: what to call leaves: a dict from name to tensor, or pairs of them.
        max_nodes: how many nodes are drawn one by one.

    Returns:
        A `Picture`: `.dot`, `.svg()`, `.save("x.svg")`, shown by notebooks.

    Raises:
        RuntimeError: a tensor does not require grad.
        TypeError: `tensors` is no tensor and holds something else.

    Example:
        >>> import fgrad.compat as torch
        >>> w = torch.ones(3, requires_grad=True)
        >>> torch.draw((w * w).sum(), names={"w": w})
        <picture of the graph of SumBackward0: 2 operations, 12 B saved for backward>
    """
    roots = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
    for k, t in enumerate(roots):
        if not isinstance(t, Tensor):
            raise TypeError(f"draw expects a tensor or a list of tensors, got {t!r} of type {type(t).__name__}")
        if place_of(t) is None:
            raise RuntimeError(f"element {k} of tensors does not require grad and does not have a grad_fn")
    leaves = {id(t): name for name, t in (names.items() if isinstance(names, dict) else names or ())}
    steps = graph_steps(roots, leaves)
    freed = any(step.note == FREED_NOTE for step in steps)
    title = f"the graph of {', '.join(_name(place_of(t)) for t in roots)}"
    return Picture(title, steps, max_nodes, "what freed nodes had saved is not known" if freed else "")


def _name(place):
    return "a leaf" if isinstance(place, Tensor) else place.node_and_index()[0].name()


def graph_steps(roots, names):
    """Return the steps of the graph behind tensors: leaves, nodes in the order of their creation, and the tensors."""
    ends = [place_of(t) for t in roots]
    places = _behind(ends)
    types = _types(dict(zip(ends, [type_of(t._data) for t in roots])), places)
    inner = _inner(places, set(ends))
    outputs = _grouped((p, p.node) for p in places if p.__class__ is Output)
    parts = _grouped((p, owner) for p, owner in inner.items() if p.__class__ is not Output)
    position = {}
    steps = []
    for place in places:
        if place in inner:
            continue
        if place.__class__ is Output:
            position[place] = position[place.node]
            continue
        if isinstance(place, Tensor):
            name = names.get(id(place)) or (place._extras and place._extras.name) or "leaf"
            step = Step(name, "input", (), [type_of(place._data)])
        else:
            kinds = [types.get(p) for p in sorted(outputs.get(place, ()), key=lambda p: p.index) or [place]]
            step = _step([*parts.get(place, ()), place], kinds, position)
        position[place] = len(steps)
        steps.append(step)
    for k, (t, end) in enumerate(zip(roots, ends)):
        name = f"output {k}" if len(roots) > 1 else "output"
        steps.append(Step(name, "output", [position[end]], [type_of(t._data)]))
    return steps


def _step(parts, kinds, position):
    """Return the step of the last of some nodes, the others of which the graph does not show, with these types."""
    node = parts[-1]
    reads = sorted({position[p] for part in parts for p in part._parents if p in position})
    saved = [value for part in parts for value in _saved(part)]
    note = FREED_NOTE if any(map(_is_freed, parts)) else ""
    return Step(node.name(), "operation", reads, kinds, note, _source(node), saved=saved, sequence_nr=node._seq)


def _source(node):
    """Return `file:line` of what recorded a node, where anomaly mode noted it."""
    more = node._more
    calls = more.metadata.get(TRACEBACK) if more is not None and more.metadata else None
    found = re.search(r'File "(.*)", line (\d+)', calls[-1]) if calls else None
    return ":".join(found.groups()) if found else ""


def _grouped(pairs):
    """Return the first of each pair in a list for the second."""
    groups = {}
    for member, owner in pairs:
        groups.setdefault(owner, []).append(member)
    return groups


def _behind(ends):
    """Return all places behind others, in the order of their creation, leaves first."""
    seen, stack = set(), list(ends)
    while stack:
        place = stack.pop()
        if place is not None and place not in seen:
            seen.add(place)
            stack.extend(sources(place))
    return sorted(seen, key=lambda place: place._seq)


def _inner(places, ends):
    """Map places inside of composed operations, which nobody else reads, to the node that the graph shows for them."""
    readers = {}
    for place in places:
        for source in sources(place):
            readers.setdefault(source, []).append(place)
    inner = {}
    for place in reversed(places):  # those that read a place come after it
        owners = {_owner_within(reader, place, inner) for reader in readers.get(place, ())}
        if len(owners) == 1 and place not in ends and not isinstance(place, Tensor):
            owner = owners.pop()
            if owner is not None:
                inner[place] = owner
    return inner


def _owner_within(reader, place, inner):
    """Return the node of the composed operation in which `reader` reads `place`, None if it reads it from outside."""
    owner = inner.get(reader, reader)
    more = owner._more
    if more is None or more.sources is None or any(place is source for source in more.sources):
        return None
    return owner


# ---------------------------------------------------------------------------------------------------- what is saved


def _is_freed(node):
    return (node._kept if isinstance(node, AutogradContext) else node._saved) is FREED


def _saved(node):
    """Return the arrays that a node has saved, by the memory they hold."""
    if _is_freed(node):
        return []
    if isinstance(node, AutogradContext):
        named = [*(("saved", s) for s in node._kept or ()), *(node._kept_by_name or {}).items()]
        pairs = [(name, s.value._data) for name, s in named if isinstance(s.value, Tensor)]
    else:
        pairs = [(_name_of(node._plan.prim, k), x) for k, x in zip(node._plan.saves, node._saved)]
    return [_saved_value(name, x) for name, x in pairs if isinstance(x, np.ndarray)]


def _name_of(prim, k):
    """Return torch's name for an input of a primitive, or, from -1 downwards, for an output."""
    name = prim.outputs[~k] if k < 0 else prim.inputs[k] if k < len(prim.inputs) else f"input {k}"
    return TORCH_NAMES.get(name, name)


def _saved_value(name, x):
    owner = x if x.base is None or not isinstance(x.base, np.ndarray) else x.base
    return SavedValue(id(owner), owner.nbytes, name)


# --------------------------------------------------------------------------------------------------------- types


def _types(types, places):
    """Complete the types of places, known for the last ones, from gradients: each has the type of its value."""
    outputs = {}
    for place in places:
        if place.__class__ is Output:
            outputs.setdefault(place.node, {})[place.index] = place
    for node in reversed(places):
        if node.__class__ is Output or isinstance(node, Tensor):
            continue
        for parent, kind in zip(node._parents, _pulled(node, types, outputs.get(node))):
            if parent is not None and kind is not None:
                types.setdefault(parent, kind)
    return types


def _pulled(node, types, outputs):
    """Return the types of the gradients that a node gives to its parents, as far as they can be known."""
    if isinstance(node, AutogradContext):
        return [found and ArrayType(*found) for found in node._in_types]
    unknown = [None] * len(node._parents)
    if outputs is None:
        ct = types.get(node)
    else:
        ct = [types.get(outputs.get(k)) for k in range(node._width)]
    if node._saved is FREED or ct is None or any(x.__class__ is Packed for x in node._saved):
        return unknown
    return pulled_types(node._plan.pull, node._saved, node.types, node.params, ct) or unknown

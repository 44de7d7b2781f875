"""Anomaly mode: an error or a NaN in backward names the operation of the forward pass that it belongs to.

While the mode is on, `_seq` of nodes is a property that notes where the operation was recorded, and passes are of a
class that watches each node; both are put back afterwards, so that nothing is paid on the path of every operation. As
in torch the mode holds for the whole process, whatever thread sets it.
"""

from __future__ import annotations

import sys
import threading
import traceback
import warnings
from typing import Any, NamedTuple

import numpy as np

from fgrad.extend import Tracer, counterpart, entry, first_bad, on_gpu, user_frame

from . import engine
from .context import AutogradContext
from .engine import sources
from .hooks import PlaceHooks
from .tape import Node, Output
from .tensor import Tensor

TRACEBACK, PARENT = "traceback_", "parent_"
"""The keys of `grad_fn.metadata` under which torch keeps the forward call and the node whose backward made this one."""

TORCH_NAMES = {"x": "self", "y": "other", "out": "result"}


class _Settings:
    """What holds for the process: whether the mode is on, and whether gradients are searched for NaN."""

    enabled = False
    check_nan = True


class _Evaluating(threading.local):
    """The node whose backward runs in this thread: the parent of nodes that are recorded meanwhile."""

    node = None


settings = _Settings()
evaluating = _Evaluating()


def is_anomaly_enabled():
    """Return whether anomaly mode is on."""
    return settings.enabled


def is_anomaly_check_nan_enabled():
    """Return whether anomaly mode searches gradients for NaN."""
    return settings.check_nan


def set_anomaly_enabled(mode, check_nan=True):
    """Switch anomaly mode on or off, for the whole process."""
    settings.enabled, settings.check_nan = bool(mode), bool(check_nan)
    if mode:
        Node._seq, AutogradContext._seq = _Numbering(_slot), _Numbering(None)
        engine.pass_class = WatchedPass
    elif isinstance(Node._seq, _Numbering):
        Node._seq = _slot
        del AutogradContext._seq
        engine.pass_class = engine.Pass


class set_detect_anomaly:
    """Switch anomaly mode on or off at once; as a context, put the previous state back at its end.

    Args:
        mode: whether the mode is on.
        check_nan: whether a gradient with a NaN is an error.

    Example:
        >>> import fgrad.compat as torch
        >>> with torch.autograd.set_detect_anomaly(True):
        ...     torch.is_anomaly_enabled()
        True
        >>> torch.is_anomaly_enabled()
        False
    """

    def __init__(self, mode, check_nan=True):
        self.previous = settings.enabled, settings.check_nan
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        set_anomaly_enabled(*self.previous)


class detect_anomaly:
    """Run forward and backward with anomaly mode on; a warning says that it is.

    Operations recorded inside remember the call that made them. An error in backward, or with `check_nan` a NaN among
    the gradients, names that operation, in a warning with the traceback of its forward call.

    Args:
        check_nan: whether a gradient with a NaN is an error.

    Raises:
        RuntimeError: (from backward) a gradient has a NaN. The message also says what the operands were, and whether
            the NaN came from the forward pass.

    Example:
        >>> import warnings
        >>> import fgrad.compat as torch
        >>> warnings.simplefilter("ignore")
        >>> x = torch.tensor([0.], requires_grad=True)
        >>> with torch.autograd.detect_anomaly():
        ...     (x.sqrt() * 0).sum().backward()
        Traceback (most recent call last):
            ...
        RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
        ...
    """

    def __init__(self, check_nan=True):
        self.previous = settings.enabled, settings.check_nan
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self):
        set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exc):
        set_anomaly_enabled(*self.previous)


# ---------------------------------------------------------------------------------------------------- recording


_slot = Node.__dict__["_seq"]


class _Numbering:
    """Stands in for the attribute `_seq` while the mode is on: a node that gets its number is noted down.

    `slot` is what keeps the number, None for nodes that keep it in their `__dict__`.
    """

    def __init__(self, slot):
        self.slot = slot

    def __get__(self, node, owner=None):
        if node is None:
            return self
        return node.__dict__["_seq"] if self.slot is None else self.slot.__get__(node)

    def __set__(self, node, number):
        if self.slot is None:
            node.__dict__["_seq"] = number
        else:
            self.slot.__set__(node, number)
        if number:
            note(node)


def note(node):
    """Keep in a node's metadata the call that it was recorded in, and the node whose backward recorded it."""
    frame = user_frame()
    node.metadata[TRACEBACK] = [] if frame is None else traceback.format_stack(frame)
    if evaluating.node is not None:
        node.metadata[PARENT] = evaluating.node


# ----------------------------------------------------------------------------------------------------- backward


class WatchedPass(engine.Pass):
    """A backward pass that reports the node an error comes from, and takes a NaN for an error."""

    __slots__ = ()

    def _work(self, place, g):
        outer = evaluating.node
        evaluating.node = node = place.node_and_index()[0]
        try:
            super()._work(place, g)
        except Exception:
            report(node.name(), node._more)
            raise
        finally:
            evaluating.node = outer

    def _finish(self, leaf, g):
        try:
            super()._finish(leaf, g)
        except Exception:
            report("torch::autograd::AccumulateGrad", None)
            raise

    def _pull(self, node, g):
        operands = held(node)  # before they are freed
        pulled = super()._pull(node, g)
        if settings.check_nan:
            for k, h in enumerate(pulled):
                index = _bad(h)
                if index is not None:
                    number = k if node._plan is None else node._plan.active[k]
                    raise RuntimeError(
                        f"Function '{node.name()}' returned nan values in its {number}th output."
                        f"{_circumstances(node, operands, g, np.shape(_array(h)), index)}"
                    )
        return pulled


def report(name, more):
    """Warn of an error in the backward of a node, with the call that recorded it, and those that induced that."""
    notes = _notes(more)
    if TRACEBACK not in notes:
        _tell(
            f"Error detected in {name}. No forward pass information available. Enable detect anomaly during forward "
            "pass for more information."
        )
        return
    _tell(f"Error detected in {name}. Traceback of forward call that caused the error:\n{''.join(notes[TRACEBACK])}")
    while (parent := notes.get(PARENT)) is not None:
        notes = _notes(parent._more)
        calls = "".join(notes.get(TRACEBACK, ()))
        _tell(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
            f"previous calculation:\n{calls or 'No forward pass information available.'}"
        )


def _notes(more):
    return more.metadata if isinstance(more, PlaceHooks) and more.metadata else {}


def _tell(message):
    """Warn; where warnings are errors, write to stderr: the error that is on its way must not be replaced."""
    try:
        warnings.warn(message, stacklevel=2)
    except Warning:
        print(message, file=sys.stderr)


# ------------------------------------------------------------------------------------------ what a NaN came from


class Held(NamedTuple):
    """A value of the forward pass that a node still knows, and the place it came from; None: the node's own result."""

    name: str
    value: Any
    place: Any


def held(node):
    """Return what a node saved, by torch's names, and the leaves among its inputs."""
    if node._plan is None:
        kept = [(k, s) for k, s in enumerate(node._kept or ()) if s.kind in ("tensor", "output")]
        places = [None if s.kind == "output" else CONSTANT if s.place is None else s.place for _, s in kept]
        return [Held(f"saved_tensors[{k}]", s.value, place) for (k, s), place in zip(kept, places)]
    plan, prim = node._plan, node._plan.prim
    places = dict(zip(plan.active, node._parents))
    items = {
        k: Held(_name(prim, k), value, places.get(k, CONSTANT) if k >= 0 else None)
        for k, value in zip(plan.saves, node._saved or ())
    }
    for k, place in places.items():
        if k not in items and isinstance(place, Tensor):
            items[k] = Held(_name(prim, k), place, place)
    return list(items.values())


CONSTANT = object()
"""Stands for the place of an operand that requires no grad."""


def _name(prim, k):
    """Return torch's name for an input of a primitive, or, from -1 downwards, for an output."""
    name = prim.outputs[~k] if k < 0 else prim.inputs[k] if k < len(prim.inputs) else f"input {k}"
    return TORCH_NAMES.get(name, name)


def _array(x):
    """Return the array behind a gradient or saved value, None if there is none to look at."""
    x = x._data if isinstance(x, Tensor) else x
    x = x.concrete() if isinstance(x, Tracer) else x
    return x if isinstance(x, (np.ndarray, np.generic, float, complex)) or on_gpu(x) else None


def _bad(x):
    x = _array(x)
    return None if x is None else first_bad(x)


def _circumstances(node, operands, g, shape, index):
    """Return words on what met at the NaN of a gradient, and on whether the forward pass had made it."""
    given = g if g.__class__ is list else [g]
    met = [Held(f"grad_output{k or ''}", x, None) for k, x in enumerate(given)] + operands
    words = _met(met, shape, index)
    return (f"\nAt {list(index)} it met: {words}." if words else "") + _forward_story(node, operands)


def _met(operands, shape, index):
    """Return in words what operands held where a result of this shape has `index`."""
    arrays = [(item.name, _array(item.value)) for item in operands]
    return ", ".join([counterpart(name, x, shape, index) for name, x in arrays if x is not None])


def _forward_story(node, operands):
    """Return words on the first NaN among the values that the graph behind a node knows."""
    known = [(node, operands), *[(other, held(other)) for other in _behind(node)]]
    if not any(items for _, items in known):
        return ""
    tainted = [(other, item) for other, items in known for item in items if _bad(item.value) is not None]
    if not tainted:
        return "\nNo NaN was saved by the forward pass: it was made here, in backward."
    first, item = min(tainted, key=lambda pair: (pair[0]._seq, pair[1].place is None))  # inputs before results
    index = _bad(item.value)
    story = (
        f"\nThe forward value was NaN already: {entry(item.name, _array(item.value), index)} of "
        f"{first.name()}{_where(first)}"
    )
    if item.place is None:
        others = [other for of, items in known if of is first for other in items if other is not item]
        return f"{story}, made there{_from(others, item.value)}."
    if item.place is CONSTANT or isinstance(item.place, Tensor):
        return f"{story}, which came into the graph as it is."
    maker = item.place.node_and_index()[0]
    return f"{story}; {maker.name()}{_where(maker)} made it{_from(held(maker), item.value)}."


def _from(operands, value):
    met = _met(operands, np.shape(_array(value)), _bad(value))
    return f" from {met}" if met else "; fgrad.debug_nans() around the forward pass shows its operands"


def _behind(node):
    """Yield the nodes that a node was computed from."""
    seen, stack = {node}, list(sources(node))
    while stack:
        place = stack.pop()
        if place is None or isinstance(place, Tensor) or place in seen:
            continue
        seen.add(place)
        stack.extend(sources(place))
        if place.__class__ is not Output:
            yield place


def _where(node):
    """Return the line that recorded a node, where it is known."""
    calls = _notes(node._more).get(TRACEBACK)
    if not calls:
        return ""
    place = calls[-1].strip().splitlines()[0].removeprefix("File ")
    return f" ({place})"

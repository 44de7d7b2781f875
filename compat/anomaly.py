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

import numpy as np

from fgrad.extend import Tracer, counterpart, entry, first_bad, user_frame

from . import engine
from .context import AutogradContext
from .engine import sources
from .hooks import PlaceHooks
from .tape import FREED, Node, Output
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
        saved = node._saved
        pulled = super()._pull(node, g)
        if settings.check_nan:
            for k, h in enumerate(pulled):
                index = _bad(h)
                if index is not None:
                    number = k if node._plan is None else node._plan.active[k]
                    raise RuntimeError(
                        f"Function '{node.name()}' returned nan values in its {number}th output."
                        f"{_circumstances(node, saved, g, np.shape(_array(h)), index)}"
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


def _array(x):
    """Return the array behind a gradient or saved value, None if there is none to look at."""
    x = x._data if isinstance(x, Tensor) else x
    x = x.concrete() if isinstance(x, Tracer) else x
    return x if isinstance(x, (np.ndarray, np.generic, float, complex)) else None


def _bad(x):
    x = _array(x)
    return None if x is None else first_bad(x)


def _circumstances(node, saved, g, shape, index):
    """Return words on what met at the NaN of a gradient, and on whether the forward pass had made it."""
    given = g if g.__class__ is list else [g]
    operands = {f"grad_output{k or ''}": x for k, x in enumerate(given)} | _saved(node, saved)
    met = _met(operands, shape, index)
    return (f"\nAt {list(index)} it met: {met}." if met else "") + _forward_story(node, saved)


def _met(operands, shape, index):
    """Return in words what operands held where a result of this shape has `index`."""
    arrays = {name: _array(x) for name, x in operands.items()}
    return ", ".join([counterpart(name, x, shape, index) for name, x in arrays.items() if x is not None])


def _saved(node, saved):
    """Return what a node saved by torch's names."""
    if node._plan is None or saved is FREED:
        return {}
    return dict(zip(saved_names(node), saved))


def saved_names(node):
    """Return torch's names of what the node of a primitive saves, in order."""
    prim = node._plan.prim
    names = [prim.outputs[~k] if k < 0 else prim.inputs[k] if k < len(prim.inputs) else f"x{k}" for k in _kept(node)]
    return [TORCH_NAMES.get(name, name) for name in names]


def _kept(node):
    return node._plan.saves


def _forward_story(node, saved):
    """Return words on the first NaN among the saved values of the graph behind a node."""
    if node._plan is None or saved is FREED:
        return ""
    tainted = [(other, values) for other, values in _behind(node, saved) if any(_bad(x) is not None for x in values)]
    if not tainted:
        return "\nNo NaN was saved by the forward pass: it was made here, in backward."
    first, values = min(tainted, key=lambda pair: pair[0]._seq)
    k = next(k for k, x in enumerate(values) if _bad(x) is not None)
    name = list(_saved(first, values))[k]
    kept = _kept(first)[k]
    story = (
        f"\nThe forward value was NaN already: {entry(name, _array(values[k]), _bad(values[k]))} of "
        f"{first.name()}{_where(first)}"
    )
    if kept >= 0:
        return story + _maker(first, kept, values[k])
    others = {n: x for n, x in _saved(first, values).items() if n != name}
    return f"{story}, made there{_from(others, values[k])}."


def _maker(node, kept, value):
    """Return words on who made the NaN in a saved input of a node."""
    plan = node._plan
    place = node._parents[plan.active.index(kept)] if kept in plan.active else None
    if place is None or isinstance(place, Tensor):
        return ", which came into the graph as it is."
    maker = place.node_and_index()[0]
    saved = {} if maker._plan is None else _saved(maker, maker._saved)
    return f"; {maker.name()}{_where(maker)} made it{_from(saved, value)}."


def _from(operands, value):
    met = _met(operands, np.shape(_array(value)), _bad(value))
    return f" from {met}" if met else "; fgrad.debug_nans() around the forward pass shows its operands"


def _behind(node, saved):
    """Yield a node with what it saved, and so those that it was computed from."""
    yield node, saved
    seen, stack = {node}, list(sources(node))
    while stack:
        place = stack.pop()
        if place is None or isinstance(place, Tensor) or place in seen:
            continue
        seen.add(place)
        stack.extend(sources(place))
        if place.__class__ is not Output and place._plan is not None and place._saved is not FREED:
            yield place, place._saved


def _where(node):
    """Return the line that recorded a node, where it is known."""
    place = recorded_at(node)
    return f" ({place})" if place else ""


def recorded_at(node):
    """Return the place that recorded a node, such as `"model.py", line 3, in f`; nothing where it was not noted."""
    calls = _notes(node._more).get(TRACEBACK)
    return calls[-1].strip().splitlines()[0].removeprefix("File ") if calls else ""

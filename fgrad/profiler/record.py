"""What is written down while a profiler is at work: the clock, one log per thread, and the interpreter that fills it.

This is the hot path of profiling, so it holds numbers and references to types alone; names, trees and costs are made
of them afterwards (`fgrad.profiler.build`). A record is a tuple, written when its event ends:

    (serial, start, end, depth, what, category, facts, link, stack)

`serial` counts events in order of their start, in all threads. `depth` says how deep events were nested. `what` is a
name, or the primitive itself. `facts` are `(inputs, outputs, params, moves)`: shapes and dtypes of what went in and
came out, the parameters, and whether bytes were moved (False for views); for events that are no primitives, flops and
bytes stand in the last two places. They are None if shapes are not recorded. `link` ties events of a
backward pass to the event that made them: equal links belong together. `stack` is a tuple of (code, line), innermost
first. No record keeps an array alive.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fgrad.core import Interpreter, Params, Primitive, Tracer, ValueTracer, raise_leaked, state

if TYPE_CHECKING:
    from fgrad.profiler.memory import Ledger

now = time.perf_counter_ns
next_serial = itertools.count(1).__next__

ndarray = np.ndarray


class Place:
    """What one thread is doing: how deep its events nest, the primitive that ended last, and who observes it.

    `shapes`, `stacks` and `ledgers` say what at least one of the observers wants; `marks` is told of events when they
    begin and end (see `fgrad.profiler.nvtx`), or None.
    """

    __slots__ = ("thread", "name", "depth", "last", "observers", "shapes", "stacks", "ledgers", "marks")

    def __init__(self) -> None:
        thread = threading.current_thread()
        self.thread = thread.native_id or thread.ident or 0
        self.name = thread.name
        self.depth = self.last = 0
        self.watch(())

    def watch(self, observers: tuple[Observer, ...]) -> None:
        """Let these observers see what this thread does from now on."""
        self.observers = observers
        self.shapes = any(o.shapes for o in observers)
        self.stacks = any(o.stacks for o in observers)
        self.ledgers = [o.ledger for o in observers if o.ledger is not None]
        self.marks = next((o.marks for o in reversed(observers) if o.marks is not None), None)


class _Here(threading.local):
    def __init__(self) -> None:
        self.place = Place()


here = _Here()


class Seen(ValueTracer):
    """A value inside a rule that is being observed, so that its operators are seen as well."""

    __slots__ = ()

    def __init__(self, interpreter: Observer, value: Any):
        self.interpreter = interpreter
        self.value = value


class Observer(Interpreter):
    """Writes down every primitive that one thread applies, and hands it on: values do not change.

    Entered directly inside another observer of the same thread, it writes to that one's log as well and takes its
    place, so that every application is timed once.

    Args:
        place: the thread that is observed.
        limit: how many records are kept; the oldest go first.
        shapes, stacks: whether records hold facts and stacks.
        ledger: where allocations are written down, or None.
    """

    def __init__(self, place: Place, limit: int, shapes: bool, stacks: bool, ledger: Ledger | None):
        super().__init__("profile")
        self.place = place
        self.shapes = shapes
        self.stacks = stacks
        self.ledger = ledger
        self.records: deque[tuple[Any, ...]] = deque(maxlen=limit)
        self.append: Callable[[tuple[Any, ...]], None] = self.records.append
        self.write = self.append
        self.below: Interpreter | None = None
        self.marks: Any = None
        self.session: Any = None
        self.opened = now()
        self.closed: int | None = None

    def __enter__(self) -> Observer:
        below = self.below = state.interpreter
        self.parent = below
        if isinstance(below, Observer) and below.place is self.place and below.closed is None:
            self.parent = below.parent
            self.write = self._write_to_both
        state.interpreter = self
        self.place.watch((*self.place.observers, self))
        return self

    def _write_to_both(self, record: tuple[Any, ...]) -> None:
        if self.closed is None:
            self.append(record)
        self.below.write(record)  # type: ignore[union-attr]

    def __exit__(self, *exc: object) -> None:
        self.closed = now()
        if self.write == self.append:
            self.write = _drop
        self.place.watch(tuple([o for o in self.place.observers if o is not self]))
        if state.interpreter is self:
            state.interpreter = self.next_below()
        self.__class__ = _Closed

    def next_below(self) -> Interpreter | None:
        """Return what was at work when this observer was entered, without observers that have closed since."""
        below = self.below
        while isinstance(below, Observer) and below.closed is not None:
            below = below.below
        return below

    @property
    def truncated(self) -> bool:
        """Whether records may have been pushed out of the log."""
        return len(self.records) == self.records.maxlen

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        place = self.place
        values = []
        kinds = []
        seen = False
        for x in args:
            if x.__class__ is ndarray:
                kinds.append((x.shape, x.dtype))
            elif x.__class__ is Seen and x.interpreter is self:
                x = x.value
                seen = True
                kinds.append((x.shape, x.dtype) if x.__class__ is ndarray else x.__class__)
            else:
                if self.parent is None and isinstance(x, Tracer):
                    raise_leaked(x)
                kinds.append(kind_of(x))
            values.append(x)
        serial = next_serial()
        place.depth = depth = place.depth + 1
        parent = self.parent
        if place.marks is not None:
            place.marks.begin(prim, serial, None, kinds)
        start = now()
        try:
            out = prim.impl(*values, **params) if parent is None else parent.process(prim, values, params)
        except BaseException:
            self.write((serial, start, now(), depth, prim, "primitive", None, None, stack_if(place.stacks)))
            raise
        finally:
            place.depth = depth - 1
            if place.marks is not None:
                place.marks.end(serial, ("primitive", serial))
        end = now()
        place.last = serial
        facts = (kinds, out_kinds(out), params, not_a_view(out)) if place.shapes else None
        self.write((serial, start, end, depth, prim, "primitive", facts, None, stack_if(place.stacks)))
        for ledger in place.ledgers:
            ledger.enter(out, serial, values)
        if not seen:
            return out
        return tuple([Seen(self, o) for o in out]) if prim.multiple else Seen(self, out)


def _drop(record: tuple[Any, ...]) -> None:
    """Stand for the log of an observer that has closed."""


class _Closed(Observer):
    """An observer whose profile has ended: it steps aside as soon as its thread meets it again."""

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        if state.interpreter is self:
            state.interpreter = self.next_below()
        return self.pass_on(prim, [x.value if x.__class__ is Seen else x for x in args], params)


def kind_of(x: Any) -> Any:
    """Return shape and dtype of a value (and "CuPy" for an array of its), or the class of what has neither."""
    if not (hasattr(x, "dtype") and hasattr(x, "shape")):
        return x.__class__
    return (x.shape, x.dtype, "CuPy") if x.__class__.__module__.startswith("cupy") else (x.shape, x.dtype)


def out_kinds(out: Any) -> list[Any]:
    """Return shapes and dtypes of what a primitive gave."""
    if out.__class__ is ndarray:
        return [(out.shape, out.dtype)]
    return [kind_of(o) for o in out] if isinstance(out, (tuple, list)) else [kind_of(out)]


def not_a_view(out: Any) -> bool:
    """Return whether bytes were moved to make a value: a view looks at memory that was there."""
    return out.__class__ is not ndarray or out.base is None or out.size == 1


def stack_if(wanted: bool) -> Any:
    """Return the user's frames as (code, line) pairs, innermost first, or None if they are not wanted."""
    if not wanted:
        return None
    frames = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if not module.startswith(("fgrad.", "numpy.")) and not frame.f_code.co_filename.startswith("<fgrad"):
            frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(frames)


class span:
    """Context manager: one event of a name and category in the log of every observer of this thread.

    `facts` and `link` may be set while it is open. Without an observer it does nothing.
    """

    __slots__ = ("what", "category", "facts", "link", "serial", "start", "depth", "place")

    def __init__(self, what: Any, category: str, facts: Any = None, link: Any = None):
        self.what = what
        self.category = category
        self.facts = facts
        self.link = link
        self.start: int | None = None

    def __enter__(self) -> span:
        self.place = place = here.place
        if place.observers:
            self.serial = next_serial()
            place.depth = self.depth = place.depth + 1
            if place.marks is not None:
                place.marks.begin(self.what, self.serial, self.link if self.category == "backward" else None, ())
            self.start = now()
        return self

    def __exit__(self, *exc: object) -> None:
        start, place = self.start, self.place
        if start is None:
            return
        end = now()
        self.start = None
        place.depth = self.depth - 1
        if place.marks is not None:
            place.marks.end(self.serial, None)
        stack = stack_if(place.stacks)
        record = (self.serial, start, end, self.depth, self.what, self.category, self.facts, self.link, stack)
        for observer in place.observers:
            observer.append(record)

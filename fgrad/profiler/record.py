"""What is written down while a profiler is at work: the clock, one log per thread, and the interpreter that fills it.

This is the hot path of profiling, so it holds numbers and references to types alone; names, trees and costs are made
of them afterwards (`fgrad.profiler.build`). A record is a tuple, written when its event ends:

    (serial, start, end, depth, what, category, facts, link, stack)

`serial` counts events in order of their start, in all threads. `depth` says how deep events were nested. `what` is a
name, or the primitive itself. `facts`, None if shapes are not recorded, are one flat tuple, which is quicker to make
than a nested one: the number of inputs; the bytes moved, or whether those of inputs and outputs were; the operations
done, or what they follow from (a primitive's parameters, or the primitive); then for each input and output a pair, its
shape and dtype, or its `kind_of` and None. `link` ties events of a backward pass to the event that recorded what they
go back through: equal links belong together; one of three parts belongs to all nodes between its third and second.
`stack` is a tuple of (code, line), innermost first. No record keeps an array alive.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fgrad.core import PYTHON_SCALARS, Interpreter, Params, Primitive, Tracer, ValueTracer, raise_leaked, recover, state

if TYPE_CHECKING:
    from fgrad.profiler.memory import Ledger

now = time.perf_counter_ns
next_serial = itertools.count(1).__next__

ndarray = np.ndarray


class Place:
    """What one thread is doing: how deep its events nest, which of them ended last, and who observes it.

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


class Ran(str):
    """The name of an event that knows where its code came from, one of `fgrad.profiler.events.SOURCES`."""

    __slots__ = ("source",)

    source: str

    @classmethod
    def of(cls, name: str, source: str) -> Ran:
        """Return the name with its source."""
        found = cls(name)
        found.source = source
        return found


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
        self.append(record)
        self.below.write(record)  # type: ignore[union-attr]

    def __exit__(self, *exc: object) -> None:
        self.closed = now()
        self.write = _drop if self.write == self.append else functools.partial(_pass_on, self.below)
        self.session = None  # which holds this observer: logs should go with the last reference, not wait for a search
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
        place, parent = self.place, self.parent
        values, seen = args, False
        for x in args:
            if x.__class__ not in PLAIN:
                values, seen = self._values(args)
                break
        serial = next_serial()
        place.depth = depth = place.depth + 1
        if place.marks is not None:
            place.marks.begin(prim, serial, None, list(map(kind_of, values)))
        start = now()
        try:
            if parent is not None:
                out = parent.process(prim, values, params)
            else:
                try:
                    out = prim.impl(*values, **params)
                except Exception:
                    out = recover(prim, values, params)
        except BaseException:
            self.write((serial, start, now(), depth, prim, "primitive", None, None, None))
            raise
        finally:
            place.depth = depth - 1
            if place.marks is not None:
                place.marks.end(serial, ("primitive", serial))
        end = now()
        place.last = serial
        facts = facts_of(values, out, params) if place.shapes else None
        self.write((serial, start, end, depth, prim, "primitive", facts, None, stack() if place.stacks else None))
        for ledger in place.ledgers:
            ledger.enter(out, serial, values)
        if not seen:
            return out
        return tuple([Seen(self, o) for o in out]) if prim.multiple else Seen(self, out)

    def _values(self, args: Sequence[Any]) -> tuple[list[Any], bool]:
        """Return operands as the parent knows them, and whether one was seen inside a rule."""
        values, seen = [], False
        for x in args:
            if x.__class__ is Seen and x.interpreter is self:
                values.append(x.value)
                seen = True
                continue
            if self.parent is None and isinstance(x, Tracer):
                raise_leaked(x)
            values.append(x)
        return values, seen


def _drop(record: tuple[Any, ...]) -> None:
    """Stand for the log of an observer that has closed."""


def _pass_on(below: Observer, record: tuple[Any, ...]) -> None:
    """Write to the log below an observer that has closed."""
    below.write(record)


class _Closed(Observer):
    """An observer whose profile has ended: it steps aside as soon as its thread meets it again."""

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        if state.interpreter is self:
            state.interpreter = self.next_below()
        return self.pass_on(prim, [x.value if x.__class__ is Seen else x for x in args], params)


PLAIN = frozenset({ndarray, *PYTHON_SCALARS})
"""Classes of operands that are handed on as they are."""


def kind_of(x: Any) -> Any:
    """Return shape and dtype of a value (and "CuPy" for an array of its), or the class of what has neither."""
    cls = x.__class__
    if cls is ndarray:
        return x.shape, x.dtype
    if cls in PYTHON_SCALARS or not hasattr(x, "dtype") or getattr(x, "shape", None).__class__ is not tuple:
        return cls
    return (x.shape, x.dtype, "CuPy") if cls.__module__.startswith("cupy") else (x.shape, x.dtype)


def facts_of(inputs: Sequence[Any], out: Any, work: Any) -> tuple[Any, ...]:
    """Return the facts of an operation; a view moved no bytes, for it looks at what was there."""
    if len(inputs) == 2 and out.__class__ is ndarray:  # most operations: written out, it takes half the time
        x, y = inputs
        if x.__class__ is y.__class__ is ndarray:
            moved = out.base is None or out.size == 1
            return 2, moved, work, x.shape, x.dtype, y.shape, y.dtype, out.shape, out.dtype
    facts = [len(inputs), True, work]
    for x in inputs:
        facts += (x.shape, x.dtype) if x.__class__ is ndarray else (kind_of(x), None)
    if out.__class__ is ndarray:
        facts += (out.shape, out.dtype)
        facts[1] = out.base is None or out.size == 1
        return tuple(facts)
    for x in out if out.__class__ in (tuple, list) else (out,):
        facts += (kind_of(x), None)
    return tuple(facts)  # which the garbage collector stops looking at


def stack() -> Any:
    """Return the user's frames as (code, line) pairs, innermost first."""
    frames = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if not module.startswith(("fgrad.", "numpy.")) and not frame.f_code.co_filename.startswith("<fgrad"):
            frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(frames)


def write(place: Place, record: tuple[Any, ...]) -> None:
    """Write a record, complete but for the stack, to the log of every observer of a thread."""
    record = (*record, stack() if place.stacks else None)
    for observer in place.observers:
        observer.append(record)


def timed(place: Place, what: Any, category: str, link: Any, facts: Any, fun: Callable[..., Any], *args: Any) -> Any:
    """Return `fun(*args)`, which becomes one event in the log of every observer of this thread."""
    serial = next_serial()
    place.depth = depth = place.depth + 1
    if place.marks is not None:
        place.marks.begin(what, serial, link if category == "backward" else None, ())
    start = now()
    try:
        return fun(*args)
    finally:
        end = now()
        place.depth = depth - 1
        place.last = serial
        if place.marks is not None:
            place.marks.end(serial, None)
        write(place, (serial, start, end, depth, what, category, facts, link))


class span:
    """Context manager: what `timed` does for a block. Without an observer it does nothing; `note` is kept with it."""

    __slots__ = ("what", "category", "note", "serial", "start", "depth", "place")

    def __init__(self, what: str, category: str, note: str | None = None):
        self.what = what
        self.category = category
        self.note = note
        self.start: int | None = None

    def __enter__(self) -> span:
        self.place = place = here.place
        if place.observers:
            self.serial = next_serial()
            place.depth = self.depth = place.depth + 1
            if place.marks is not None:
                place.marks.begin(self.what, self.serial, None, ())
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
        write(place, (self.serial, start, end, self.depth, self.what, self.category, self.note, None))

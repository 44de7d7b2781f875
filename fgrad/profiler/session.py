"""`profile`: a session of observing, from its entry to its end, and what came of it. `record_function` names a stretch.

A session observes the threads that joined it: the one that enters it, and those that are started inside. It owns
when records are kept (schedules) and turns them into events once, when they are asked for.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fgrad import forks
from fgrad.core import Primitive
from fgrad.profiler import probes
from fgrad.profiler.averages import FunctionEventAvg
from fgrad.profiler.build import build
from fgrad.profiler.events import EventList
from fgrad.profiler.memory import Ledger
from fgrad.profiler.record import Observer, here, now, span
from fgrad.profiler.schedule import ProfilerAction, Schedule

if TYPE_CHECKING:
    from fgrad.drawing.memory import MemoryTimeline

OBSERVING = (ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
KEEPING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

_joining = forks.lock()  # one for all sessions: threads join and leave seldom


class profile:
    """Observe what is computed inside the block: every primitive, pull, jitted call, trace, compilation and kernel.

    Threads that are started inside are observed as well; a thread that runs already joins by entering the same object.
    Entering it again adds to what was observed. Profilers may be nested: each sees everything inside its own block.

    Args:
        enabled: False makes the context do nothing.
        record_shapes: keep shapes and dtypes; bytes and flops follow from them.
        with_flops: estimate floating-point operations (needs `record_shapes`).
        profile_memory: follow what observed operations allocate until it is freed.
        with_stack: keep the user's call stack of every event.
        schedule: which steps are observed (see `fgrad.profiler.schedule`); `step()` ends one. All without it.
        on_trace_ready: called with this object when the active steps of a cycle have ended.
        max_events: how many records one thread keeps; the oldest go first.

    Raises:
        RuntimeError: results are asked for before the block has ended.

    Example:
        >>> import numpy as np, fgrad
        >>> with fgrad.profile() as prof:
        ...     _ = fgrad.grad(lambda x: np.tanh(x).sum())(np.ones(3))
        >>> [event.name for event in prof.function_events if event.parent is None]
        ['tanh', 'reduce_sum', 'reduce_sum pull', 'tanh pull']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        record_shapes: bool = True,
        with_flops: bool = True,
        profile_memory: bool = False,
        with_stack: bool = False,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        max_events: int = 1_000_000,
    ):
        if max_events < 1:
            raise ValueError(f"profile: max_events must be positive, got {max_events}")
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready = on_trace_ready
        self.max_events = max_events
        self.step_num = 0
        self._depth: dict[int, int] = {}
        self._action = ProfilerAction.NONE
        self._step_span: span | None = None
        self._observers: list[Observer] = []
        self._ledger = Ledger(max_events) if profile_memory else None
        self._events: EventList | None = None

    def _forget(self) -> None:
        """Empty the logs; threads that are still observed go on with theirs."""
        self._observers = [o for o in self._observers if o.closed is None]
        for observer in self._observers:
            observer.records.clear()
            observer.opened = now()
        if self._ledger is not None:
            self._ledger.entries.clear()
        self._events = None

    # ------------------------------------------------------------------------------------------- entering, leaving

    def __enter__(self) -> profile:
        if self.enabled:
            self._action = self.schedule(self.step_num)
            if self._action in OBSERVING:
                self.join()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._end_step()
            if self._action in OBSERVING:
                self.leave()
            if self._action is ProfilerAction.WARMUP:
                self._forget()
            if self._action in KEEPING and not self._depth:
                self._hand_over()

    def join(self) -> None:
        """Observe this thread until it leaves; a thread that has joined already is counted."""
        ident = threading.get_ident()
        with _joining:
            depth = self._depth.get(ident, 0)
            if not depth:
                probes.install()
                self._observers.append(self._observer().__enter__())
                self._events = None
            self._depth[ident] = depth + 1

    def _observer(self) -> Observer:
        """Return a new observer of this thread for this session."""
        observer = Observer(here.place, self.max_events, self.record_shapes, self.with_stack, self._ledger)
        observer.session = self
        return observer

    def leave(self) -> None:
        """End what `join` began in this thread; nothing if it has not joined."""
        ident = threading.get_ident()
        with _joining:
            depth = self._depth.get(ident, 0) - 1
            if depth > 0:
                self._depth[ident] = depth
            if depth:
                return
            del self._depth[ident]
        next(o for o in here.place.observers if o.session is self).__exit__()
        probes.uninstall()

    # ------------------------------------------------------------------------------------------------------- steps

    def step(self) -> None:
        """End a step of the schedule and begin the next."""
        self._end_step()
        before, self.step_num = self._action, self.step_num + 1
        self._action = after = self.schedule(self.step_num)
        ends = before is ProfilerAction.RECORD_AND_SAVE
        if before in OBSERVING and (ends or after not in OBSERVING or (before not in KEEPING and after in KEEPING)):
            self.leave()
            if ends:
                self._hand_over()
            if after in OBSERVING:
                self._forget()
                self.join()
        elif before not in OBSERVING and after in OBSERVING:
            self._forget()
            self.join()
        self._step_span = span(f"ProfilerStep#{self.step_num}", "user").__enter__()

    def _end_step(self) -> None:
        if self._step_span is not None:
            self._step_span.__exit__()
            self._step_span = None

    def _hand_over(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # --------------------------------------------------------------------------------------------------- results

    def _name(self, prim: Primitive) -> str:
        return prim.name

    @property
    def function_events(self) -> EventList:
        """The events, in order of their start; RuntimeError while the block runs."""
        if self._depth and self._observers and threading.get_ident() in self._depth:
            raise RuntimeError("Profiler didn't finish running: its block has not ended yet")
        if self._events is None:
            self._events = build(self._observers, self._name, self.with_flops, self._ledger)
        return self._events

    def events(self) -> EventList:
        """Return the events, as `function_events`."""
        return self.function_events

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in events, each counted once."""
        return self.function_events.self_cpu_time_total

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Return the events summed up; see `EventList.key_averages`."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """Return the sum of all events."""
        return self.function_events.total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Return the events as a table of text; see `EventList.table`."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: Any) -> None:
        """Write a trace that Perfetto opens; see `EventList.export_chrome_trace`."""
        self.function_events.export_chrome_trace(path)

    # ---------------------------------------------------------------------------------------------------- pictures

    def flamegraph(self, path: str | os.PathLike[str]) -> None:
        """Write a flame graph: width is time, what lies below a frame happened inside it.

        Args:
            path: ends in .svg, or in .html for a page with a table of the events; both open without a network.

        Raises:
            ValueError: the name ends in neither.
        """
        from fgrad.drawing.flames import save_flamegraph

        save_flamegraph(self.function_events, path)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write an overview: the names that took most time in themselves, and what ran when in which thread.

        Takes `path` and raises as `flamegraph` does.
        """
        from fgrad.drawing.flames import save_overview

        save_overview(self.function_events, path)

    def memory_timeline(self, path: str | os.PathLike[str] | None = None) -> MemoryTimeline:
        """Return live bytes over time, by what they are alive for, and who held most; written as a picture if asked.

        Args:
            path: as in `flamegraph`, or None to write nothing.

        Raises:
            ValueError: the profile did not follow memory (`profile_memory=True`), or the name ends in something else.

        Example:
            >>> import numpy as np, fgrad
            >>> with fgrad.profile(profile_memory=True, with_stack=True) as prof:
            ...     _ = fgrad.grad(lambda x: np.tanh(x).sum())(np.ones(1000))
            >>> int(prof.memory_timeline().live["saved"].max())
            8000
        """
        from fgrad.drawing.memory import MemoryTimeline

        if not self.profile_memory:
            raise ValueError("this profile did not follow memory: profile with profile_memory=True")
        timeline = MemoryTimeline(self.function_events.memory)
        if path is not None:
            timeline.save(path)
        return timeline

    def _repr_html_(self) -> str | None:
        return None if self._depth or not self._observers else self.key_averages()._repr_html_()

    def __str__(self) -> str:
        if self._depth or not self._observers:
            return f"<{type(self).__name__} that has not finished>"
        return self.table()


class record_function:
    """Name what happens inside: a context manager, or a decorator of functions; one event.

    Args:
        name: the event's name.
        args: a text that is kept with it, as the event's `note`.

    Example:
        >>> import numpy as np, fgrad
        >>> with fgrad.profile() as prof, fgrad.record_function("forward"):
        ...     _ = fgrad.numpy.tanh(np.ones(3))
        >>> [event.name for event in prof.function_events]
        ['forward', 'tanh']
    """

    def __init__(self, name: str, args: str | None = None):
        self.name = name
        self.args = args
        self._spans: dict[int, list[span]] = {}  # by thread: several may be inside at once

    def __enter__(self) -> record_function:
        entered = self._spans.setdefault(threading.get_ident(), [])
        entered.append(span(self.name, "user", self.args).__enter__())
        return self

    def __exit__(self, *exc: object) -> None:
        entered = self._spans.get(threading.get_ident())
        if entered:  # leaving twice, or without having entered, does nothing
            entered.pop().__exit__(*exc)

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fun)
        def named(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return fun(*args, **kwargs)

        return named

"""`profile`: a session of observing, from its entry to its end, and what came of it. `record_function` names a stretch.

A session observes the threads that joined it: the one that enters it, and those that are started inside. It owns
when records are kept (schedules) and turns them into events once, when they are asked for.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from fgrad.core import Primitive
from fgrad.profiler import probes
from fgrad.profiler.build import build
from fgrad.profiler.events import EventList
from fgrad.profiler.record import Observer, here, span


class profile:
    """Observe what is computed inside the block: every primitive, pull, jitted call, trace, compilation and kernel.

    Args:
        enabled: False makes the context do nothing.
        record_shapes: keep shapes and dtypes; bytes and flops follow from them.
        with_flops: estimate floating-point operations (needs `record_shapes`).
        profile_memory: follow what observed operations allocate until it is freed.
        with_stack: keep the user's call stack of every event.
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
        max_events: int = 1_000_000,
    ):
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.max_events = max_events
        self._lock = threading.Lock()
        self._depth: dict[int, int] = {}
        self._observers: list[Observer] = []
        self._events: EventList | None = None

    # ------------------------------------------------------------------------------------------- entering, leaving

    def __enter__(self) -> profile:
        if self.enabled:
            self.join()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self.leave()

    def join(self) -> None:
        """Observe this thread until it leaves; a thread that has joined already is counted."""
        ident = threading.get_ident()
        with self._lock:
            depth = self._depth[ident] = self._depth.get(ident, 0) + 1
        if depth > 1:
            return
        probes.install()
        observer = Observer(here.place, self.max_events, self.record_shapes, self.with_stack, None)
        observer.session = self
        with self._lock:
            self._observers.append(observer)
            self._events = None
        observer.__enter__()

    def leave(self) -> None:
        """End what `join` began in this thread."""
        ident = threading.get_ident()
        with self._lock:
            self._depth[ident] -= 1
            if self._depth[ident]:
                return
            del self._depth[ident]
        mine = next(o for o in here.place.observers if o.session is self)
        mine.__exit__()
        probes.uninstall()

    # --------------------------------------------------------------------------------------------------- results

    def _name(self, prim: Primitive) -> str:
        return prim.name

    @property
    def function_events(self) -> EventList:
        """The events, in order of their start; RuntimeError while the block runs."""
        if any(o.closed is None for o in self._observers):
            raise RuntimeError("Profiler didn't finish running: its block has not ended yet")
        if self._events is None:
            self._events = build(self._observers, self._name, self.with_flops)
        return self._events


class record_function:
    """Name what happens inside: a context manager, or a decorator of functions; one event.

    Args:
        name: the event's name.
        args: a text that is kept with it.

    Example:
        >>> import numpy as np, fgrad
        >>> with fgrad.profile() as prof, fgrad.profiler.record_function("forward"):
        ...     _ = fgrad.numpy.tanh(np.ones(3))
        >>> [event.name for event in prof.function_events]
        ['forward', 'tanh']
    """

    def __init__(self, name: str, args: str | None = None):
        self.name = name
        self.args = args
        self._spans: list[span] = []

    def __enter__(self) -> record_function:
        self._spans.append(span(self.name, "user").__enter__())
        return self

    def __exit__(self, *exc: object) -> None:
        if self._spans:  # leaving twice, or without having entered, does nothing
            self._spans.pop().__exit__(*exc)

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fun)
        def named(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return fun(*args, **kwargs)

        return named

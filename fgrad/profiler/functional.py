"""What is observed of functional code beside primitives: jit, code generation and its product, backward passes."""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from fgrad import tree
from fgrad.backend import cpu
from fgrad.backend.cpu import Compiled
from fgrad.backend.gpu import program as gpu
from fgrad.backend.gpu.fusion import Kernel
from fgrad.backend.guard import MISS
from fgrad.backend.lowered import flops
from fgrad.core import Primitive, state
from fgrad.plans import Plan
from fgrad.profiler.record import Observer, Ran, Seen, here, span, timed
from fgrad.program import Program
from fgrad.transforms import jit, linearize
from fgrad.transforms.jit import JittedFunction, _Entry
from fgrad.transforms.linearize import _PICK, Linearize, LinearTracer, Node

Probe = tuple[Any, str, Any]


def probes() -> Iterator[Probe]:
    """Yield the owner, name and observed form of every entry point."""
    _guards.clear()
    yield JittedFunction, "__call__", _observed_call(JittedFunction.__call__)
    yield JittedFunction, "clear_cache", _observed_clear_cache(JittedFunction.clear_cache)
    yield JittedFunction, "_trace", _observed_trace(JittedFunction._trace)
    yield jit, "make_guard", _observed_make_guard(jit.make_guard)
    yield _Entry, "run", _observed_run(_Entry.run)
    yield Compiled, "__init__", _observed_compile(Compiled.__init__)
    yield cpu, "run_tiles", _observed_tiles(cpu.run_tiles)
    yield Program, "compute", _observed_program(Program.compute)
    yield gpu, "run_part", _observed_part(gpu.run_part)
    yield Linearize, "process", _observed_process(Linearize.process)
    pull_back = _observed_pull_back(linearize.pull_back)
    for name, module in list(sys.modules.items()):  # those that imported it have it under its name
        if name.startswith("fgrad.") and vars(module).get("pull_back") is linearize.pull_back:
            yield module, "pull_back", pull_back
    yield threading.Thread, "start", _observed_start(threading.Thread.start)


# ------------------------------------------------------------------------------------------------------------- jit


_guards: weakref.WeakKeyDictionary[JittedFunction, Callable[[Any], Any]] = weakref.WeakKeyDictionary()
"""The quick ways into jitted functions, made anew with generated code that is an event; those of one profile."""


def _observed_call(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: JittedFunction, *args: Any, **kwargs: Any) -> Any:
        place = here.place
        if not place.observers:
            return original(self, *args, **kwargs)
        return timed(place, self._label, "jit", None, None, _call, self, args, kwargs)

    return call


def _call(function: JittedFunction, args: Any, kwargs: Any) -> Any:
    guard = _guards.get(function)
    if guard is not None and not kwargs and jit.jit_enabled():
        out = guard(args)
        if out is not MISS:
            return out
    return function._call(args, kwargs)


class _Watched(NamedTuple):
    """An entry of a jitted function as guards know it, whose code is an event."""

    compiled: Any
    out_tree: Any


def _observed_make_guard(original: Callable[..., Any]) -> Callable[..., Any]:
    def make_guard(function: JittedFunction, in_tree: Any, leaves: Any, entry: Any) -> Any:
        if not here.place.observers:
            return original(function, in_tree, leaves, entry)
        code = functools.partial(compute, entry.compiled, facts_of_program(entry.compiled.program))
        guard = original(function, in_tree, leaves, _Watched(SimpleNamespace(compute=code), entry.out_tree))
        if guard is not None:
            _guards[function] = guard
        return function._guard

    return make_guard


def _observed_clear_cache(original: Callable[..., Any]) -> Callable[..., Any]:
    def clear_cache(self: JittedFunction) -> None:
        _guards.pop(self, None)
        original(self)

    return clear_cache


def _observed_trace(original: Callable[..., Any]) -> Callable[..., Any]:
    def trace(self: JittedFunction, *args: Any) -> Any:
        with span(f"trace: {self._label}", "trace"):
            return original(self, *args)

    return trace


def _observed_compile(original: Callable[..., Any]) -> Callable[..., Any]:
    def compile(self: Compiled, program: Any, *args: Any, **kwargs: Any) -> None:
        with span(f"compile: {program.label}", "compile"):
            original(self, program, *args, **kwargs)

    return compile


def _observed_run(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: _Entry, leaves: Sequence[Any]) -> Any:
        if not here.place.observers:
            return original(self, leaves)
        compiled = self.compiled_for(leaves)
        facts = facts_of_program(compiled.program)
        if not isinstance(compiled, Compiled):
            facts[1] = 0  # the parts that run on a device are events with bytes of their own
        return tree.unflatten(self.out_tree, compute(compiled, facts, *leaves))

    return run


def compute(compiled: Compiled, facts: Any, *args: Any) -> Any:
    """Run generated code as one event, if the thread is observed."""
    place = here.place
    if not place.observers:
        return compiled.compute(*args)
    out = timed(place, f"generated: {compiled.label}", "region", None, facts, compiled.compute, *args)
    for ledger in place.ledgers:
        ledger.enter(tuple(out), place.last, args)
    return out


def facts_of_program(program: Program) -> list[Any]:
    """Return the facts of generated code: what goes in and comes out, and the operations between."""
    kinds = [*program.in_types, *program.out_types]
    facts = [len(program.in_types), sum(t.size * t.dtype.itemsize for t in kinds), flops(program)]
    for kind in kinds:
        facts += (kind.shape, kind.dtype)
    return facts


def _observed_tiles(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_tiles(region: Any, *args: Any) -> Any:
        with span(f"tiles: {region.before.label}", "region"):
            return original(region, *args)

    return run_tiles


def _observed_program(original: Callable[..., Any]) -> Callable[..., Any]:
    def compute(self: Program, *args: Any) -> list[Any]:
        before = lowest = state.interpreter
        while lowest is not None and lowest.parent is not None:
            lowest = lowest.parent
        if lowest.__class__ is not Observer:
            return original(self, *args)  # type: ignore[no-any-return]
        state.interpreter = lowest  # plain values as well, and seen
        try:
            return self.run(*args)
        finally:
            state.interpreter = before

    return compute


def _observed_part(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_part(part: Any, run: Any, arrays: Any) -> None:
        place = here.place
        if not place.observers or getattr(part, "kind", None) == "view":
            original(part, run, arrays)
        else:
            timed(place, _name_of_part(part), "kernel", None, (0, _moved(part), None), original, part, run, arrays)

    return run_part


def _name_of_part(part: Any) -> Ran:
    if isinstance(part, Kernel):
        return Ran.of(f"kernel: {', '.join(dict.fromkeys(eq.prim.name for eq in part.equations))}", "generated")
    return Ran.of(part.equation.prim.name, "hand-written" if gpu.has_kernel(part) else "no Triton kernel")


def _moved(part: Any) -> int:
    """Return the bytes of what a part of a Program on a device reads and writes, each value once."""
    if isinstance(part, Kernel):
        values = [*part.loads.values(), *part.stores, *[eq.outputs[0] for eq in part.partials]]
    else:
        values = [*part.equation.inputs, *part.equation.outputs]
    return sum(v.type.size * v.type.dtype.itemsize for v in {id(v): v for v in values}.values())


# ---------------------------------------------------------------------------------------------------- backward passes


class Watched:
    """A plan whose pull is an event of its own, tied to the event that recorded it, and whose operators are seen.

    It stands in place of the plan of one node, also after the profile has ended, when it passes everything on.
    """

    __slots__ = ("plan", "name", "link")

    def __init__(self, plan: Any, name: str, link: Any = None):
        self.plan = plan
        self.name = name
        self.link = link

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plan, name)

    def pull(self, saved: Any, types: Any, params: Any, ct: Any) -> Any:
        """Pull a cotangent back, observed if the thread is."""
        place, pull = here.place, self.plan.pull
        if not place.observers:
            return pull(saved, types, params, ct)
        return timed(place, self.name, "backward", self.link, None, seen_pull, pull, saved, types, params, ct)


def seen_pull(pull: Callable[..., Any], saved: Any, types: Any, params: Any, ct: Any) -> Any:
    """Run a pull so that the operators in its rule are events, too.

    What it gives is plain again, unless this is a pull within the rule of another, whose values are seen already.
    """
    observer = state.interpreter
    several = ct.__class__ in (list, tuple)
    if observer.__class__ is not Observer:
        return pull(saved, types, params, ct)
    for x in (*saved, *ct) if several else (*saved, ct):
        if x.__class__ is Seen:
            return pull(saved, types, params, ct)
    lifted = [Seen(observer, x) if hasattr(x, "dtype") else x for x in saved]
    cts = [c if c is None else Seen(observer, c) for c in ct] if several else Seen(observer, ct)
    return [g.value if g.__class__ is Seen else g for g in pull(lifted, types, params, cts)]


def _observed_process(original: Callable[..., Any]) -> Callable[..., Any]:
    def process(self: Linearize, prim: Primitive, args: Sequence[Any], params: Any) -> Any:
        out = original(self, prim, args, params)
        place = here.place
        if not place.observers:
            return out
        first = out[0] if out.__class__ is tuple and out else out
        if first.__class__ is LinearTracer and first.interpreter is self:
            node = first.node.parents[0] if first.node.plan is _PICK else first.node
            if node.plan.__class__ is Plan and node.plan.prim is prim:
                node.plan = Watched(node.plan, _pull_of(prim.name), ("primitive", place.last))
                for ledger in place.ledgers:
                    ledger.save(node.saved, place.last, ours=True)
        return out

    return process


def _observed_pull_back(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def pull_back(order: Sequence[Node], cts: Any, once: bool = False) -> None:
        if here.place.observers:
            for node in order:
                plan = node.plan
                if plan is not _PICK and plan.__class__ is not Watched:
                    node.plan = Watched(plan, _pull_of(_name_of(plan)))  # type: ignore[assignment]
        original(order, cts, once)

    return pull_back


@functools.cache
def _pull_of(name: str) -> str:
    return f"{name} pull"


def _name_of(plan: Any) -> str:
    if isinstance(plan, Plan):
        return plan.prim.name
    return str(getattr(plan.pull, "__qualname__", "step")).partition(".")[0].lstrip("_").removeprefix("pull_")


# ------------------------------------------------------------------------------------------------------------ threads


def _observed_start(original: Callable[..., Any]) -> Callable[..., Any]:
    def start(self: threading.Thread) -> None:
        sessions = [o.session for o in here.place.observers]
        if sessions:
            run = self.run

            def observed() -> None:
                for session in sessions:
                    session.join()
                try:
                    run()
                finally:
                    for session in reversed(sessions):
                        session.leave()

            self.run = observed  # type: ignore[method-assign]
        original(self)

    return start

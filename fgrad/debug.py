"""`debug_nans`: stop where the first NaN or infinity is made, forward or backward, and say from what.

An interpreter at the bottom looks at what every primitive gives; jitted functions are interpreted meanwhile, loops and
branches step by step. Tapes of a class of their own look at what each derivative gives, for which the line that ran
forward is known.
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fgrad.core import Interpreter, Params, Primitive, Tracer, state
from fgrad.errors import NonFiniteError
from fgrad.nonfinite import Index, counterpart, entry, first_bad
from fgrad.plans import Plan
from fgrad.program import Program, attributed
from fgrad.source import on_behalf_of, user_frame, user_line
from fgrad.transforms.jit import interpret_jit
from fgrad.transforms.jvp import Forward
from fgrad.transforms.linearize import _PICK, Linearize, LinearTracer, Node, tapes

Operands = dict[str, Any]

MOVING = frozenset(
    """
    all_gather broadcast cast concatenate conj copy dynamic_slice dynamic_update_slice gather imag named own_part
    own_place pad place real repeated reshape reverse scatter_set select slice sort stop_gradient take_along transpose
    """.split()
)
"""Primitives that hand values on: a NaN that came in with the data passes them, up to where it is computed with."""


class debug_nans(contextlib.ContextDecorator):
    """Raise where the first NaN, or infinity, is made: a context manager, and a decorator of functions.

    Holds for this thread, for functions of fgrad and for what is recorded inside: under `grad`, `vjp`, `jvp`,
    `linearize`, `vmap`, `jit` and in loops, for gradients and tangents as well as for values. Jitted functions are
    interpreted, one primitive at a time. NumPy's own functions on plain arrays are watched through `np.errstate`: the
    line is known then, the operands are not. Put it outermost: inside a function that is being traced there are no
    values to look at.

    Args:
        nan: watch for NaN. One that came in from outside is reported where it is first computed with.
        inf: watch for infinities that are made of finite operands; one that came in from outside is let through, since
            masks and bounds are made of those.

    Raises:
        NonFiniteError: (a FloatingPointError) names the primitive, the line of the program, and the operands at the
            place. For a derivative, the line is that of the forward computation.
        ValueError: neither is to be watched.

    Example:
        >>> import numpy as np, fgrad, fgrad.numpy as fnp
        >>> with fgrad.debug_nans():
        ...     fgrad.grad(lambda x: fnp.sqrt(x * 0.0))(2.0)
        Traceback (most recent call last):
            ...
        fgrad.errors.NonFiniteError: invalid value (nan) encountered in the derivative of 'mul' ...
    """

    def __init__(self, nan: bool = True, inf: bool = False):
        if not (nan or inf):
            raise ValueError("debug_nans: nothing to watch for: give nan=True, inf=True or both")
        self._wanted = bool(nan), bool(inf)
        self._entered: list[contextlib.ExitStack] = []

    def _recreate_cm(self) -> debug_nans:
        return debug_nans(*self._wanted)

    def __enter__(self) -> debug_nans:
        hunt = Hunt(*self._wanted)
        with contextlib.ExitStack() as stack:
            stack.enter_context(hunt)
            stack.enter_context(_Hunting(hunt))
            stack.enter_context(interpret_jit())
            stack.enter_context(hunt.numpy_errors())
            self._entered.append(stack.pop_all())
        return self

    def __exit__(self, *exc: Any) -> None:
        self._entered.pop().__exit__(*exc)


class _Current(threading.local):
    hunt: Hunt | None = None


_current = _Current()


class _Hunting:
    """Context: the hunt at work in this thread, and tapes that ask it."""

    def __init__(self, hunt: Hunt):
        self.hunt = hunt

    def __enter__(self) -> None:
        self.before = _current.hunt, tapes.reverse, tapes.forward
        _current.hunt, tapes.reverse, tapes.forward = self.hunt, WatchedTape, WatchedForward

    def __exit__(self, *exc: object) -> None:
        _current.hunt, tapes.reverse, tapes.forward = self.before


# ---------------------------------------------------------------------------------------------------- the hunt


class Hunt(Interpreter):
    """Computes, and looks at what comes out."""

    def __init__(self, nan: bool, inf: bool):
        super().__init__("debug_nans")
        self.wanted = [{"nan": True, "inf": False}] * nan + [{"nan": False, "inf": True}] * inf
        self._ignored = dict.fromkeys(["invalid"] * nan + ["divide", "over"] * inf, "ignore")

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        if prim.kind == "structured":  # runs functions and Programs, which are looked at in turn
            if self.parent is None:
                params = {name: self._watched(value) for name, value in params.items()}
            out = self.pass_on(prim, args, params)
        else:
            with np.errstate(**self._ignored):  # type: ignore[arg-type]
                out = self.pass_on(prim, args, params)
        outs = out if prim.multiple else (out,)
        names = [output_name(prim, k) for k in range(len(outs))]
        self.look(prim, outs, names, {input_name(prim, k): x for k, x in enumerate(args)})
        return out

    def _watched(self, x: Any) -> Any:
        """Return a parameter in which Programs are interpreted under this hunt."""
        if isinstance(x, tuple):
            return tuple([self._watched(item) for item in x])
        return WatchedProgram(self, x) if isinstance(x, Program) else x

    def look(
        self, prim: Primitive, outs: Sequence[Any], names: Sequence[str], operands: Operands, words: str = ""
    ) -> None:
        """Raise NonFiniteError if a value is not finite, by what is watched for; `words` say what of the primitive."""
        for out, name in zip(outs, names, strict=True):
            value = concrete(out)
            for kind in self.wanted if value is not None else ():
                index = first_bad(value, **kind)
                if index is not None:
                    _report(
                        f"{words}'{prim.name}'", name, np.asarray(value), index, kind, operands, prim.name in MOVING
                    )

    def numpy_errors(self) -> Any:
        """Return the context in which what NumPy makes of plain arrays raises, at the line of the program."""
        kinds: Any = dict.fromkeys(self._ignored, "call")
        return np.errstate(call=_numpy_error, **kinds)


def _report(
    what: str, name: str, value: Any, index: Index, kind: dict[str, bool], operands: Operands, moving: bool
) -> None:
    """Raise NonFiniteError for what stands at an index of a value, unless it came in and is let through."""
    values = {n: x for n, x in ((n, concrete(x)) for n, x in operands.items()) if x is not None}
    tainted = {n: at for n, x in values.items() if (at := first_bad(x, **kind)) is not None}
    if tainted and (moving or kind["inf"]):
        return
    story = ", ".join([counterpart(n, x, value.shape, index) for n, x in values.items()])
    message = (
        f"invalid value ({'inf' if kind['inf'] else 'nan'}) encountered in {what} at {user_line()}: "
        f"{entry(name, value, index)}{', from ' + story if story else ''}"
    )
    for n, at in tainted.items():
        message += f"; {entry(n, values[n], at)} was there before: it came in from outside"
    raise NonFiniteError(message)


def input_name(prim: Primitive, k: int) -> str:
    """Return what a primitive calls its input of a number."""
    return prim.inputs[k] if k < len(prim.inputs) else f"operand {k}"


def output_name(prim: Primitive, k: int) -> str:
    """Return what a primitive calls its output of a number."""
    return prim.outputs[k] if k < len(prim.outputs) else f"output {k}"


def concrete(x: Any) -> Any:
    """Return the plain value behind a value, None if it has none or is no number."""
    while isinstance(x, Tracer):
        x = x.concrete()
    return x if isinstance(x, (np.ndarray, np.generic, float, complex, int)) else None


def _numpy_error(kind: str, flag: int) -> None:
    """Raise for what a call from the user's own line did; what fgrad computes inside is watched by other means."""
    frame = sys._getframe(1)
    while frame is not None and (frame.f_globals.get("__name__") or "").partition(".")[0] == "numpy":
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None or frame is not user_frame():
        return
    name, number = frame.f_code.co_filename, frame.f_lineno
    value = "nan" if kind == "invalid value" else "inf"
    raise NonFiniteError(
        f"invalid value ({value}) encountered in a NumPy function at {name}:{number}: {kind} in "
        f"`{linecache.getline(name, number).strip()}`. Its operands are plain arrays, which NumPy does not show; "
        "functions of fgrad.numpy do."
    )


class WatchedProgram(Program):
    """A Program whose plain computation is interpreted under a hunt, each equation on behalf of its line."""

    __slots__ = ("hunt",)

    def __init__(self, hunt: Hunt, program: Program):
        super().__init__(program.label, program.inputs, program.consts, program.equations, program.outputs)
        self.cache = program.cache
        self.hunt = hunt

    def compute(self, *args: Any) -> list[Any]:
        """Apply the Program to plain values and look at every one."""
        before = state.interpreter
        state.interpreter = self.hunt
        try:
            return attributed(self).run(*args)
        finally:
            state.interpreter = before


# ----------------------------------------------------------------------------------------------------- derivatives


class WatchedPlan:
    """A plan in one node, whose pull and push are looked at on behalf of the line that recorded the node."""

    __slots__ = ("plan", "prim", "line")

    def __init__(self, plan: Any, prim: Primitive, line: str):
        self.plan = plan
        self.prim = prim
        self.line = line

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plan, name)

    def pull(self, saved: Any, types: Any, params: Any, ct: Any) -> Any:
        """Pull a cotangent back and look at what comes out."""
        given = numbered("ct", ct if isinstance(ct, (list, tuple)) else (ct,))
        active = self.plan.active if isinstance(self.plan, Plan) else itertools.count()
        names = (f"the cotangent of {input_name(self.prim, k)}" for k in active)
        return self._looked_at(lambda: self.plan.pull(saved, types, params, ct), names, given, saved)

    def push(self, saved: Any, types: Any, params: Any, tangents: Any) -> Any:
        """Push tangents forward and look at what comes out."""
        given = numbered("t", tangents)
        names = (f"the tangent of {output_name(self.prim, k)}" for k in itertools.count())
        return self._looked_at(lambda: self.plan.push(saved, types, params, tangents), names, given, saved)

    def _looked_at(self, run: Callable[[], Any], names: Iterator[str], given: Operands, saved: Any) -> Any:
        hunt = _current.hunt
        if hunt is None:
            return run()
        with on_behalf_of(f"{self.line} (derivative of '{self.prim.name}')"):
            moved = run()
        outs = moved if isinstance(moved, (list, tuple)) else (moved,)
        operands = {**given, **self._saved(saved)}
        with on_behalf_of(self.line):
            hunt.look(self.prim, outs, list(itertools.islice(names, len(outs))), operands, "the derivative of ")
        return moved

    def _saved(self, saved: Sequence[Any]) -> Operands:
        """Return what the node saved by the names of the primitive's inputs and outputs."""
        if not isinstance(self.plan, Plan):
            return {}
        prim = self.prim
        names = [input_name(prim, k) if k >= 0 else output_name(prim, ~k) for k in self.plan.saves]
        return dict(zip(names, saved, strict=True))


def numbered(letter: str, values: Sequence[Any]) -> Operands:
    """Return the cotangents or tangents there are, by name."""
    return {f"{letter}{k or ''}": x for k, x in enumerate(values) if x is not None}


class WatchedTape(Linearize):
    """A tape whose nodes look at the cotangents they pull back."""

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        out = super().process(prim, args, params)
        for x in out if isinstance(out, tuple) else (out,):
            if x.__class__ is LinearTracer and x.interpreter is self:
                node: Node = x.node.parents[0] if x.node.plan is _PICK else x.node
                if node.plan is not None and not isinstance(node.plan, WatchedPlan):
                    node.plan = WatchedPlan(node.plan, prim, user_line())  # type: ignore[assignment]
        return out


class WatchedForward(Forward):
    """Forward mode that looks at the tangents it pushes."""

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        out = super().process(prim, args, params)
        tangents = [self.split(x)[1] for x in (out if isinstance(out, tuple) else (out,))]
        if _current.hunt is not None and any(t is not None for t in tangents):
            pairs = [self.split(x) for x in args]
            operands = numbered("t", [t for _, t in pairs])
            operands.update((input_name(prim, k), x) for k, (x, _) in enumerate(pairs))
            names = [f"the tangent of {output_name(prim, k)}" for k in range(len(tangents))]
            _current.hunt.look(prim, tangents, names, operands, "the derivative of ")
        return out

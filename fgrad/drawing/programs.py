"""Steps of a Program: its equations, and what the backward pass of each would keep.

What is saved is not estimated: the Program runs once under the interpreter of reverse mode over a recorder, so that
the nodes of its tape tell it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fgrad.drawing.record import DERIVATIVE
from fgrad.drawing.steps import SavedValue, Step, size_of
from fgrad.drawing.text import plural
from fgrad.program import Atom, Equation, Literal, Program, ProgramTracer, Trace, Var
from fgrad.source import place_of, scope_of
from fgrad.transforms.checkpoint import named
from fgrad.transforms.linearize import Linearize, LinearTracer, Node, in_order, leaf
from fgrad.transforms.programs import differentiable, under


def program_steps(program: Program, names: Sequence[str] = (), out_names: Sequence[str] = ()) -> tuple[list[Step], str]:
    """Return the steps of a Program and what is to be said about them.

    Args:
        program: what to draw.
        names, out_names: what to call inputs and outputs; by default they are numbered.
    """
    names = names or [f"input {k}" for k in range(len(program.inputs))]
    saved, remark = _saved(program, names)
    steps: list[Step] = []
    place: dict[int, int] = {}

    def add(step: Step, *results: Atom) -> None:
        place.update((id(v), len(steps)) for v in results)
        steps.append(step)

    for k, v in enumerate(program.inputs):
        add(Step(names[k], "input", (), [v.type]), v)
    for v, value in program.consts:
        add(Step("constant", "constant", (), [v.type], _number(value)), v)
    for eq, kept in zip(program.equations, saved, strict=True):
        step = _equation_step(eq, place, kept)
        add(_summing(step, steps) or step, *eq.outputs)
    for k, a in enumerate(program.outputs):
        name = out_names[k] if out_names else f"output {k}" if len(program.outputs) > 1 else "output"
        reads = [place[id(a)]] if isinstance(a, Var) else []
        add(Step(name, "output", reads, [a.type], "" if reads else repr(a.value)))  # type: ignore[union-attr]
    return steps, remark


def _equation_step(eq: Equation, place: dict[int, int], saved: Sequence[SavedValue]) -> Step:
    """Return the step of an equation; `place` has the steps of variables."""
    line, derivative, _ = eq.source.partition(DERIVATIVE)
    return Step(
        eq.prim.name,
        "operation",
        [place[id(a)] for a in eq.inputs if isinstance(a, Var)],
        [v.type for v in eq.outputs],
        equation_note(eq),
        place_of(line),
        bool(derivative),
        _label(eq),
        scope_of(line),
        saved,
    )


def _summing(step: Step, before: Sequence[Step]) -> Step | None:
    """Return the step as part of the derivative before it, if it sums what came of derivatives: no line does that."""
    if step.name != "add" or step.derivative or len(step.inputs) < 2 or not before[-1].derivative:
        return None
    if not all(before[k].derivative or before[k].role == "constant" for k in step.inputs):
        return None
    return replace(step, source=before[-1].source, scope=before[-1].scope, derivative=True)


def _number(value: Any) -> str:
    """Return a constant of one element as text."""
    return str(value) if getattr(value, "size", 0) == 1 and not isinstance(value, ProgramTracer) else ""


def _label(eq: Equation) -> str:
    """Return the name that the user gave: to a value, or to a function that stays one equation."""
    if eq.prim is named:
        return str(eq.params["name"])
    programs = _nested(eq)
    return programs[0].label if len(programs) == 1 and "program" in eq.params else ""


def _nested(eq: Equation) -> list[Program]:
    values = [x for value in eq.params.values() for x in (value if isinstance(value, tuple) else (value,))]
    return [x for x in values if isinstance(x, Program)]


def equation_note(eq: Equation) -> str:
    """Return operands that are numbers, and parameters."""
    numbers = ", ".join(repr(a.value) if isinstance(a, Literal) else "_" for a in eq.inputs)
    given = f"({numbers})" if any(isinstance(a, Literal) for a in eq.inputs) else ""
    return " ".join(filter(None, [given, parameters_text(eq)]))


def parameters_text(eq: Equation) -> str:
    """Return the size of Programs within, and parameters that say something."""
    nested = _nested(eq)
    size = [plural(sum(len(p.equations) for p in nested), "equation")] if nested else []
    return " ".join(size + [f"{k}={v}" for k, v in eq.params.items() if _is_plain(v) and not _is_empty(v)])


def _is_plain(value: Any) -> bool:
    """Say whether a parameter is a number, a text, or a tuple of such."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, complex, str))


def _is_empty(value: Any) -> bool:
    """Say whether a parameter tells nothing: None, False, or tuples of nothing."""
    return value is None or value is False or isinstance(value, tuple) and all(map(_is_empty, value))


# ------------------------------------------------------------------------------------------ what backward keeps


def _saved(program: Program, names: Sequence[str]) -> tuple[list[list[SavedValue]], str]:
    """Return for each equation what its nodes save, and a remark where there is no reverse mode."""
    mask = [differentiable(kind) for kind in program.in_types]
    if not any(mask):
        return [[] for _ in program.equations], "no input is differentiable"
    recorder = Trace.alone(program.label)
    inputs = [recorder.input(kind) for kind in program.in_types]
    tape = under(recorder, Linearize, program.label)
    args = [LinearTracer(tape, x, leaf()) if m else x for x, m in zip(inputs, mask, strict=True)]
    try:
        outs, ends = under(tape, _run_in_steps, tape, program, args)
    except (NotImplementedError, TypeError, ValueError) as error:  # such as a while_loop without a bound
        return [[] for _ in program.equations], f"no reverse mode: {str(error).splitlines()[0]}"
    nodes = in_order([x.node for x in outs if x.__class__ is LinearTracer and x.interpreter is tape])
    origins = {id(v): name for v, name in zip(recorder.inputs, names, strict=True)}
    origins |= {id(v): eq.prim.name for eq in recorder.equations for v in eq.outputs}
    saved: list[list[SavedValue]] = [[] for _ in program.equations]
    for node in nodes:
        saved[bisect(ends, node.seq)] += _of_node(node, recorder, origins)
    return saved, ""


def _run_in_steps(tape: Linearize, program: Program, args: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Run a Program and return its outputs, and for each equation the number after those of its nodes."""
    env = dict(zip(map(id, program.inputs), args, strict=True)) | {id(v): x for v, x in program.consts}

    def read(a: Atom) -> Any:
        return env[id(a)] if isinstance(a, Var) else a.value

    ends = []
    for eq in program.equations:
        out = eq.prim(*map(read, eq.inputs), **eq.params)
        env.update(zip(map(id, eq.outputs), out if eq.prim.multiple else (out,), strict=True))
        ends.append(tape.clock())
    return [read(a) for a in program.outputs], ends


def _of_node(node: Node, recorder: Trace, origins: dict[int, str]) -> list[SavedValue]:
    """Return the arrays that a node of the tape saves, traced ones and constants."""
    saved = []
    for x in node.saved:
        if x.__class__ is ProgramTracer and x.interpreter is recorder:
            v = x.variable
            saved.append(SavedValue(id(v), size_of(v.type), origins.get(id(v), "constant")))
        elif isinstance(x, np.ndarray):
            saved.append(SavedValue(id(x), x.nbytes, "constant"))
    return saved

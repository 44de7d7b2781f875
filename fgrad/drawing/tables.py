"""Tables for notebooks and pages: the equations of a Program, the events of a profile."""

from __future__ import annotations

from typing import Any

from fgrad.drawing.html import folded, table
from fgrad.drawing.picture import draw
from fgrad.drawing.programs import parameters_text
from fgrad.drawing.text import near, plural, seconds_text
from fgrad.profiler.events import EventList
from fgrad.program import Atom, Literal, Program, Var, letters

LONGEST = 400
"""Rows of a table; more would only slow a notebook down."""


def program_html(program: Program) -> str:
    """Return a Program as a table of its equations, with its picture below."""
    names: dict[int, str] = {}

    def name(a: Atom) -> str:
        return repr(a.value) if isinstance(a, Literal) else names.setdefault(id(a), letters(len(names)))

    def typed(v: Var) -> str:
        return f"{name(v)}: {v.type}"

    rows = [[typed(v), "input", "", "", ""] for v in program.inputs]
    rows += [[typed(v), "constant", "", "", ""] for v, _ in program.consts]
    for eq in program.equations[:LONGEST]:
        operands = ", ".join(map(name, eq.inputs))
        rows.append([", ".join(map(typed, eq.outputs)), eq.prim.name, operands, parameters_text(eq), near(eq.source)])
    more = len(program.equations) - LONGEST
    if more > 0:
        rows.append([f"… {plural(more, 'more equation')}", "", "", "", ""])
    else:
        rows.append([", ".join(map(name, program.outputs)), "returned", "", "", ""])
    listing = table(["value", "operation", "of", "parameters", "line"], rows)
    title = f"program {program.label}: {plural(len(program.equations), 'equation')}"
    return folded(title, listing, opened=True) + folded("picture", draw(program).svg())


EVENT_COLUMNS = ("name", "category", "code from", "calls", "self ms", "self %", "total ms", "bytes", "flops")


def events_table(events: EventList) -> str:
    """Return the events (or averages) of a profile as a table, those with most time in themselves first.

    Shapes and lines have columns if they were recorded and, in averages, grouped by.
    """
    ordered = sorted(events, key=lambda e: -e.self_ns)
    whole = sum(e.self_ns for e in ordered) or 1
    shapes, lines = any(e.input_shapes for e in ordered), any(e.stack for e in ordered)
    columns = [*EVENT_COLUMNS, *["shapes"] * shapes, *["line"] * lines]
    rows = [
        [*_event_row(e, whole), *[str(e.input_shapes)] * shapes, *[near(e.stack[0]) if e.stack else ""] * lines]
        for e in ordered[:LONGEST]
    ]
    if len(ordered) > LONGEST:
        rows.append([f"… {plural(len(ordered) - LONGEST, 'more row')}"])
    unseen = f"{seconds_text(events.unattributed_ns / 1e9)} of {seconds_text(events.wall_ns / 1e9)}"
    meanings = "self: without what happened inside; total: from start to end; bytes: read and written"
    return table(columns, rows, f"{meanings}; {unseen} observed were in no event")


def _event_row(e: Any, whole: int) -> list[object]:
    times = [e.self_ns / 1e6, 100 * e.self_ns / whole, e.total_ns / 1e6]
    return [e.name, e.category, e.source, e.count, *times, e.bytes, e.flops]

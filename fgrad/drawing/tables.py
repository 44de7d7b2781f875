"""Tables for notebooks: the equations of a Program."""

from __future__ import annotations

from fgrad.drawing.html import folded, table
from fgrad.drawing.picture import draw
from fgrad.drawing.programs import equation_note
from fgrad.drawing.text import plural
from fgrad.program import Atom, Literal, Program, Var, letters

LONGEST = 400
"""Equations of a Program that a notebook is shown; more would only slow it down."""


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
        rows.append([", ".join(map(typed, eq.outputs)), eq.prim.name, operands, equation_note(eq), eq.source])
    more = len(program.equations) - LONGEST
    if more > 0:
        rows.append([f"… {plural(more, 'more equation')}", "", "", "", ""])
    else:
        rows.append([", ".join(map(name, program.outputs)), "returned", "", "", ""])
    listing = table(["value", "operation", "of", "parameters", "line"], rows)
    title = f"program {program.label}: {plural(len(program.equations), 'equation')}"
    return folded(title, listing, opened=True) + folded("picture", draw(program).svg())

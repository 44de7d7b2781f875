"""The table of primitives as a page of documentation."""

from __future__ import annotations

import inspect
import operator

import numpy as np

from fgrad.core import TABLE, Primitive
from fgrad.plans import plan_for

HEADER = """# The primitives

All that fgrad differentiates is made of these. `python -m fgrad.check --table` prints this page, and a test holds it
against the table. What stands after `*` are parameters. "Saves" is what reverse mode keeps if all inputs are
differentiated; for what has no rule of its own its parts decide.

| primitive | kind | saves | what it computes |
| --- | --- | --- | --- |
"""


def table() -> str:
    """Return the page: a row for each primitive, by name.

    Raises:
        LookupError: a primitive neither has a `doc` nor stands for a function of NumPy or an operator of Python.
    """
    TABLE.complete()
    return HEADER + "".join(row(TABLE[name]) + "\n" for name in sorted(TABLE))


def row(prim: Primitive) -> str:
    """Return a primitive's line of the table."""
    star = () if not parameters(prim) or "*" in "".join(prim.inputs) else ("*",)
    names = [*prim.inputs, *star, *parameters(prim)]
    cells = [f"`{prim.name}({', '.join(names)})`", prim.kind, saves(prim), describe(prim)]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def describe(prim: Primitive) -> str:
    """Return a line on what a primitive computes; LookupError if it has none."""
    if prim.doc:
        return prim.doc
    for module, name in ((np, "NumPy"), (operator, "Python")):
        if getattr(module, getattr(prim.impl, "__name__", ""), None) is prim.impl:
            return f"{name}'s `{prim.impl.__name__}`."
    raise LookupError(f"primitive '{prim.name}' has no line of documentation: give it doc=")


def parameters(prim: Primitive) -> list[str]:
    """Return the names of a primitive's parameters."""
    if isinstance(prim.impl, np.ufunc):
        return []
    try:
        found = inspect.signature(prim.definition or prim.impl).parameters.values()
    except ValueError:  # a compiled function without a signature, as `np.where` in NumPy 2.0
        return []
    return [p.name for p in found if p.kind is p.KEYWORD_ONLY and p.default is p.empty]


def saves(prim: Primitive) -> str:
    """Return the names of what the pull saves if every input is differentiated."""
    if prim.make_plan is None:
        return "as its parts"
    count = 2 if prim.inputs and prim.inputs[0].startswith("*") else len(prim.inputs)
    plan = plan_for(prim, (1 << count) - 1, count)
    return ", ".join(prim.inputs[k] if k >= 0 else prim.outputs[~k] for k in plan.saves) or "nothing"

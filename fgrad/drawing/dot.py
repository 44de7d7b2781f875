"""Graphviz: graphs as DOT text, and its program where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from fgrad.drawing.boxes import Box
from fgrad.drawing.svg import ORANGE, heat, ink_on
from fgrad.drawing.text import printable

_LOOKS = {
    "input": 'shape=box, style="rounded,filled", fillcolor="#e3f0fa"',
    "constant": 'shape=box, style="rounded,filled,dashed", fillcolor="#ffffff"',
    "operation": 'shape=box, style=filled, fillcolor="#f6f8fa"',
    "output": 'shape=box, style="rounded,filled,bold", fillcolor="#e3f0fa"',
}
MISSING = (
    "this picture needs Graphviz's program `dot`, which is not installed: install the package `graphviz` of your "
    "system (apt install graphviz, brew install graphviz, conda install graphviz); .dot text and .svg files with "
    "fgrad's own layout need nothing"
)


def quoted(text: str) -> str:
    """Return a text as a quoted DOT string, in which nothing is an escape of Graphviz's (`\\N`, `\\l` and so on).

    Example:
        >>> print(quoted('say "a\\\\N"'))
        "say \\"a\\\\N\\""
    """
    text = printable(text).replace("\r", "").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def to_dot(boxes: Sequence[Box], title: str, remark: str) -> str:
    """Return a graph as DOT text."""
    lines = [
        "digraph {",
        f'  graph [label={quoted(title + chr(10) + remark)}, labelloc=t, fontname="monospace", fontsize=12]',
        '  node [fontname="monospace", fontsize=11, margin="0.12,0.06"]',
        '  edge [color="#8c959f", arrowsize=0.7]',
    ]
    lines += [f"  n{k} [{_attributes(box)}]" for k, box in enumerate(boxes)]
    lines += [f"  n{u} -> n{k}" for k, box in enumerate(boxes) for u in box.group.reads]
    return "\n".join([*lines, "}", ""])


def _attributes(box: Box) -> str:
    group = box.group
    parts = [f"label={quoted(chr(10).join([box.title, *box.lines]))}", _LOOKS[group.role], f"tooltip={quoted(box.tip)}"]
    if group.saved:
        parts.append(f'color="{ORANGE}", penwidth=2')
    if group.folded:
        parts.append("peripheries=2")
    if box.share is not None:
        parts.append(f'fillcolor="{heat(box.share)}", fontcolor="{ink_on(box.share)}"')
    return ", ".join(parts)


def render(dot: str, form: str) -> bytes:
    """Return a picture of DOT text in one of Graphviz's formats, such as "svg" or "png".

    Raises:
        RuntimeError: Graphviz is not installed, or it refuses; the message says what to do or what it said.
    """
    program = shutil.which("dot")
    if program is None:
        raise RuntimeError(MISSING)
    done = subprocess.run([program, f"-T{form}"], input=dot.encode(), capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Graphviz cannot make {form}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout

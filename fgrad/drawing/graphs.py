"""Graphs as SVG, in a layout of our own: works without Graphviz, in a notebook and on a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from fgrad.drawing import svg
from fgrad.drawing.boxes import Box
from fgrad.drawing.layout import Point, layered
from fgrad.drawing.svg import SIZE, element, number, text, text_width
from fgrad.drawing.text import seconds_text

LINE = 15.0
PAD = 9.0
MARGIN = 16.0
HEAD = 44.0
BOLD = 1.02
"""How much wider bold text may be, in fonts whose bold is not of the same width."""


def graph_svg(boxes: Sequence[Box], title: str, remark: str) -> str:
    """Return a graph as an SVG file."""
    sizes = [box_size(box) for box in boxes]
    edges = [(u, k) for k, box in enumerate(boxes) for u in box.group.reads]
    placed = layered(sizes, edges)
    legend = _legend(boxes)
    needed = max(text_width(title) * BOLD, text_width(remark, SIZE - 1), 420.0 if legend else 0.0)
    width = max(placed.width, needed) + 2 * MARGIN
    left = (width - placed.width) / 2
    height = HEAD + placed.height + MARGIN + (30.0 if legend else 0.0)
    shift = f"translate({number(left)} {number(HEAD)})"
    drawn = [_edge(route) for route in placed.routes]
    drawn += [_node(box, c, size) for box, c, size in zip(boxes, placed.centres, sizes, strict=True)]
    parts = [
        text(MARGIN, 20.0, title, "fg-ink fg-bold"),
        text(MARGIN, 36.0, remark, "fg-dim fg-small"),
        element("g", "\n".join(drawn), transform=shift),
        element("g", legend, transform=f"translate({number(MARGIN)} {number(height - 22)})"),
    ]
    return svg.document(width, height, parts, title)


def box_size(box: Box) -> Point:
    """Return the width and height that a box needs for its text."""
    widest = max([text_width(box.title) * BOLD, *[text_width(line, SIZE - 1) for line in box.lines]])
    return widest + 2 * PAD + 6, LINE * (1 + len(box.lines)) + PAD


def _node(box: Box, centre: Point, size: Point) -> str:
    """Return a box: pills for inputs and outputs, a second frame behind what is folded, a bar where it saves."""
    (x, y), (w, h) = centre, size
    left, top = x - w / 2, y - h / 2
    group = box.group
    ends = group.role in ("input", "output")
    radius = 10.0 if group.role != "operation" else 3.0
    look: dict[str, Any] = {"class_": "fg-end" if ends else "fg-box", "rx": radius}
    if group.role == "constant":
        look["stroke_dasharray"] = "4 3"
    if group.role == "output":
        look["stroke_width"] = 2.5
    parts = []
    if group.folded:
        parts.append(element("rect", x=left + 4, y=top + 4, width=w, height=h, **look))
    if box.share is None:
        parts.append(element("rect", x=left, y=top, width=w, height=h, **look))
    else:
        style = f"fill:{svg.heat(box.share)}"
        parts.append(element("rect", x=left, y=top, width=w, height=h, style=style, **look))
    if group.saved:
        parts.append(element("rect", x=left, y=top, width=5.0, height=h, fill=svg.ORANGE))
    ink = None if box.share is None else f"fill:{svg.ink_on(box.share)}"
    parts.append(text(x, top + LINE, box.title, "fg-ink fg-bold", "middle", style=ink))
    for k, line in enumerate(box.lines):
        parts.append(text(x, top + LINE * (k + 2), line, "fg-dim fg-small", "middle", style=ink))
    return svg.titled("".join(parts), box.tip)


def _edge(route: Sequence[Point]) -> str:
    """Return an edge as a curve that leaves and reaches every layer vertically, with a head."""
    path = [f"M{number(route[0][0])} {number(route[0][1])}"]
    end = (route[-1][0], route[-1][1] - 6)
    for (x0, y0), (x1, y1) in pairwise([*route[:-1], end]):
        middle = (y0 + y1) / 2
        path.append(f"C{number(x0)} {number(middle)} {number(x1)} {number(middle)} {number(x1)} {number(y1)}")
    x, y = route[-1]
    head = f"M{number(x)} {number(y)}l-3.5 -7h7z"
    return element("path", d="".join(path), class_="fg-line") + element("path", d=head, class_="fg-head")


def _legend(boxes: Sequence[Box]) -> str:
    """Return what colours mean, as far as they are used."""
    parts = []
    x = 0.0
    if any(box.group.saved for box in boxes):
        parts += [element("rect", x=0.0, y=0.0, width=5.0, height=14.0, fill=svg.ORANGE)]
        parts += [text(11.0, 11.0, "saves values for backward", "fg-dim fg-small")]
        x = 210.0
    longest = max((box.group.seconds for box in boxes if box.group.seconds is not None), default=None)
    if longest is not None:
        parts += [
            element("rect", x=x + 26 + 10 * k, y=0.0, width=10.0, height=14.0, fill=svg.heat(k / 9)) for k in range(10)
        ]
        parts.append(text(x, 11.0, "0 s", "fg-dim fg-small"))
        parts.append(text(x + 132, 11.0, seconds_text(longest), "fg-dim fg-small"))
    return "".join(parts)

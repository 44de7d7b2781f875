"""What is written on each box of a graph, the same for DOT and SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fgrad.core import ArrayType
from fgrad.drawing.steps import Group, size_of, total
from fgrad.drawing.text import bytes_text, cells, listed, near, plural, seconds_text, shorten

WIDTH = 34
"""Columns of a line on a box; what is longer is shortened, and stands whole in the tip."""


@dataclass
class Box:
    """A box: its first line, the others, what the pointer shows, and `share`, its part of the longest time or None."""

    group: Group
    title: str
    lines: list[str]
    tip: str
    share: float | None


def boxes_of(groups: Sequence[Group]) -> list[Box]:
    """Return the boxes of groups."""
    longest = max((g.seconds for g in groups if g.seconds is not None), default=0.0)
    return [_box(g, longest) for g in groups]


def _box(group: Group, longest: float) -> Box:
    title = group.title + (f" ×{group.repeats}" if group.repeats > 1 else "")
    lines = [(prefix, items) for prefix, items in _lines(group) if items]
    sources = list(dict.fromkeys(near(step.source) for step in group.steps if step.source))
    whole = [prefix + ", ".join(items) for prefix, items in lines]
    tip = "\n".join([title, *whole, *sources[:12], *(["…"] if len(sources) > 12 else [])])
    short = [prefix + listed(items, WIDTH - cells(prefix)) for prefix, items in lines]
    seconds = group.seconds
    share = None if seconds is None else seconds / longest if longest else 0.0
    return Box(group, shorten(title, WIDTH), short, tip, share)


def _lines(group: Group) -> list[tuple[str, Sequence[str]]]:
    """Return the lines below the title of a box: how each begins, and what it lists."""
    lines: list[tuple[str, Sequence[str]]] = [("", group.detail)]
    if group.folded and group.role == "operation":
        lines.append(("", _counted([step.name for step in group.steps[: len(group.steps) // group.repeats]])))
    if group.folded and group.role != "operation":
        lines.append(("", [bytes_text(sum(size_of(kind) for kind in _known(group)))]))
    else:
        lines.append(("", _counted(["type unknown" if kind is None else str(kind) for kind in group.shown])))
    saved = group.saved
    if saved:
        lines.append((f"saves {bytes_text(total(saved))}: ", list(dict.fromkeys(s.what for s in saved))))
    if group.seconds is not None:
        lines.append(("", [seconds_text(group.seconds)]))
    return lines


def _counted(names: Sequence[str]) -> list[str]:
    """Return names with how often they occur, the most frequent first."""
    return [name if n == 1 else f"{n} {name}" for name, n in Counter(names).most_common()]


def _known(group: Group) -> list[ArrayType]:
    return [kind for step in group.steps for kind in step.types if kind is not None]


def summary(groups: Sequence[Group]) -> str:
    """Return one line about a whole graph."""
    operations = [step for g in groups for step in g.steps if step.role == "operation"]
    drawn = sum(1 for g in groups if g.role == "operation")
    saved = [s for g in groups for s in g.saved]
    parts = [plural(len(operations), "operation")]
    if drawn != len(operations):
        parts[0] += f" in {plural(drawn, 'box', 'boxes')}"
    parts.append(f"{bytes_text(total(saved))} saved for backward")
    seconds = [g.seconds for g in groups if g.seconds is not None]
    if seconds:
        parts.append(f"{seconds_text(sum(seconds))} measured")
    return ", ".join(parts)

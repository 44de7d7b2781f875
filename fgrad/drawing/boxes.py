"""What is written on each box of a graph, the same for DOT and SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fgrad.core import ArrayType
from fgrad.drawing.steps import Group, SavedValue, size_of, total
from fgrad.drawing.text import bytes_text, plural, seconds_text, shorten

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
    lines = [group.detail] if group.detail else []
    if group.folded and group.role == "operation":
        lines.append(_contents(group))
    lines.append(_types(group.shown) if group.role == "operation" or not group.folded else _size(group))
    saved = group.saved
    if saved:
        lines.append(f"saves {bytes_text(total(saved))}: {_whats(saved)}")
    seconds = group.seconds
    if seconds is not None:
        lines.append(seconds_text(seconds))
    sources = list(dict.fromkeys(step.source for step in group.steps if step.source))
    tip = "\n".join([title, *lines, *sources[:12], *(["…"] if len(sources) > 12 else [])])
    share = None if seconds is None else seconds / longest if longest else 0.0
    return Box(group, shorten(title, WIDTH), [shorten(line, WIDTH) for line in lines if line], tip, share)


def _contents(group: Group) -> str:
    """Return the operations of one round of a group, the most frequent first."""
    counts = Counter(step.name for step in group.steps[: len(group.steps) // group.repeats]).most_common()
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts)


def _types(kinds: Sequence[ArrayType | None]) -> str:
    names = Counter("type unknown" if kind is None else str(kind) for kind in kinds)
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in names.items())


def _size(group: Group) -> str:
    kinds = [kind for step in group.steps for kind in step.types if kind is not None]
    return bytes_text(sum(map(size_of, kinds)))


def _whats(saved: Sequence[SavedValue]) -> str:
    return ", ".join(dict.fromkeys(s.what for s in saved))


def summary(groups: Sequence[Group]) -> str:
    """Return one line about a whole graph."""
    operations = [step for g in groups for step in g.steps if step.role == "operation"]
    drawn = sum(1 for g in groups if g.role == "operation")
    saved = [s for g in groups for s in g.saved]
    parts = [plural(len(operations), "operation")]
    if drawn != len(operations):
        parts[0] += f" in {plural(drawn, 'box')}".replace("boxs", "boxes")
    parts.append(f"{bytes_text(total(saved))} saved for backward")
    seconds = [g.seconds for g in groups if g.seconds is not None]
    if seconds:
        parts.append(f"{seconds_text(sum(seconds))} measured")
    return ", ".join(parts)

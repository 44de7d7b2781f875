"""Where time went, as pictures of a profile: a flame graph, and an overview of names and of what ran when.

Static SVG: what does not fit stands in the tips, and in a table where the picture is a page.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from fgrad.drawing import svg
from fgrad.drawing.files import write_svg
from fgrad.drawing.svg import SIZE, document, element, legend, text, text_width, titled
from fgrad.drawing.tables import events_table
from fgrad.drawing.text import plural, seconds_text, shorten
from fgrad.profiler.events import EventList, FunctionEvent

WIDTH = 1120.0
MARGIN = 16.0
ROW = 18.0
NARROW = 0.4
"""Frames narrower than this many pixels are left out; a line says how many."""

COLOURS = {
    "op": svg.SKY,
    "primitive": "#a6d8f5",
    "backward": svg.ORANGE,
    "jit": svg.GREEN,
    "trace": "#f0e442",
    "compile": "#cc79a7",
    "region": "#7fd1b9",
    "kernel": svg.VERMILION,
    "user": "#c3c9d0",
}
"""Colour of each category of events."""


@dataclass
class Frame:
    """Events of one name in the same place of the tree, taken together; times in nanoseconds."""

    name: str
    category: str
    total: int = 0
    own: int = 0
    count: int = 0
    inside: dict[tuple[str, str], Frame] = field(default_factory=dict)

    def add(self, event: FunctionEvent) -> Frame:
        """Count an event among those inside this frame, and return its frame."""
        frame = self.inside.setdefault((event.name, event.category), Frame(event.name, event.category))
        frame.total += event.total_ns
        frame.own += event.self_ns
        frame.count += 1
        return frame


def frames(events: EventList) -> Frame:
    """Return the tree of frames of a profile; the root is all time that was observed."""
    outermost = sum(e.total_ns for e in events if e.parent is None)
    root = Frame("observed", "user", total=max(events.wall_ns, outermost), count=1)
    homes: dict[int, Frame] = {}
    for event in events:  # a parent comes before what is inside it
        above = root if event.parent is None else homes.get(event.parent.id, root)
        homes[event.id] = above.add(event)
    root.own = root.total - sum(frame.total for frame in root.inside.values())
    return root


@dataclass(frozen=True)
class Bar:
    """A frame as it is drawn: where it starts, in nanoseconds, and how deep it lies."""

    frame: Frame
    start: int
    depth: int


def bars(root: Frame) -> list[Bar]:
    """Return the frames, the longest of each parent first."""
    found = []
    stack = [Bar(root, 0, 0)]
    while stack:
        bar = stack.pop()
        found.append(bar)
        start = bar.start
        for frame in sorted(bar.frame.inside.values(), key=lambda f: -f.total):
            stack.append(Bar(frame, start, bar.depth + 1))
            start += frame.total
    return found


def flamegraph_svg(events: EventList) -> str:
    """Return a flame graph of a profile: width is time, what lies below a frame happened inside it."""
    root = frames(events)
    scale = (WIDTH - 2 * MARGIN) / max(root.total, 1)
    every = bars(root)
    drawn = [bar for bar in every if bar.frame.total * scale >= NARROW or bar.frame is root]
    hidden = len(every) - len(drawn)
    remark = f"{seconds_text(root.total / 1e9)} observed, {seconds_text(root.own / 1e9)} of it in no event"
    if hidden:
        remark += f"; {plural(hidden, 'frame')} too narrow to draw"
    top = 52.0
    parts = [_frame(bar, root.total, scale, top) for bar in drawn]
    bottom = top + ROW * (1 + max(bar.depth for bar in drawn)) + 14
    used = [c for c in COLOURS if any(bar.frame.category == c for bar in drawn if bar.frame is not root)]
    parts += legend([(COLOURS[c], c) for c in used], MARGIN, bottom)
    return document(WIDTH, bottom + 26, [*_heading("flame graph", remark), *parts], "flame graph")


def _heading(title: str, remark: str) -> list[str]:
    return [text(MARGIN, 22.0, title, "fg-ink fg-bold"), text(MARGIN, 39.0, remark, "fg-dim fg-small")]


def _frame(bar: Bar, whole: int, scale: float, top: float) -> str:
    frame = bar.frame
    x, y, w = MARGIN + bar.start * scale, top + ROW * bar.depth, frame.total * scale
    tip = "\n".join(
        [
            f"{frame.name} ({frame.category})",
            f"{seconds_text(frame.total / 1e9)} = {frame.total / max(whole, 1):.1%} of what was observed",
            f"{seconds_text(frame.own / 1e9)} in itself, {plural(frame.count, 'call')}",
        ]
    )
    return titled(_labelled(x, y, w, frame.name, COLOURS[frame.category]), tip)


def _labelled(x: float, y: float, w: float, name: str, colour: str) -> str:
    """Return a coloured bar with as much of a name as fits."""
    rect = element("rect", x=x, y=y, width=max(w - 0.5, 0.3), height=ROW - 1.5, rx=1.5, fill=colour)
    room = int((w - 7) / (svg.CELL * (SIZE - 1)))
    if room < 3:
        return rect
    style = f"fill:{svg.ink_for(colour)}"
    return rect + text(x + 3.5, y + 12.5, shorten(name, room), "fg-small", style=style)


# -------------------------------------------------------------------------------------------------------- overview

NAMES = 25
"""Names that an overview shows."""


def overview_svg(events: EventList) -> str:
    """Return an overview of a profile: the names that took most time in themselves, and what ran when."""
    remark = f"{seconds_text(events.wall_ns / 1e9)} observed in {plural(len({s[0] for s in events.spans}), 'thread')}, "
    remark += f"{plural(len(events), 'event')}, {seconds_text(events.unattributed_ns / 1e9)} in none"
    if events.truncated:
        remark += "; the oldest events are missing"
    parts, bottom = _names(events, 62.0)
    more, bottom = _lanes(events, bottom + 34)
    used = [c for c in COLOURS if any(e.category == c for e in events)]
    parts += more + legend([(COLOURS[c], c) for c in used], MARGIN, bottom + 10)
    return document(WIDTH, bottom + 38, [*_heading("profile", remark), *parts], "profile")


def _names(events: EventList, top: float) -> tuple[list[str], float]:
    """Return bars of time in themselves, one for each name."""
    found = sorted(events.key_averages(), key=lambda a: -a.self_ns)
    rest = sum(a.self_ns for a in found[NAMES:])
    rows = [(a.name, a.self_ns, plural(a.count, "call"), COLOURS[a.category]) for a in found[:NAMES]]
    if rest:
        rows.append((f"{len(found) - NAMES} more names", rest, "", "#c3c9d0"))
    if events.unattributed_ns:
        rows.append(("in no event", events.unattributed_ns, "", "#8c959f"))
    label = min(max([text_width(name) for name, *_ in rows], default=0.0), 330.0) + 12
    longest = max([own for _, own, _, _ in rows], default=1) or 1
    whole = sum(own for _, own, _, _ in rows) or 1
    room = WIDTH - 2 * MARGIN - label - 260
    parts = []
    for k, (name, own, calls, colour) in enumerate(rows):
        y = top + ROW * k
        width = room * own / longest
        values = ", ".join(filter(None, [seconds_text(own / 1e9), f"{own / whole:.1%}", calls]))
        content = text(MARGIN + label - 8, y + 12.5, shorten(name, 45), "fg-ink", "end")
        content += element("rect", x=MARGIN + label, y=y, width=max(width, 0.5), height=ROW - 3, fill=colour)
        content += text(MARGIN + label + width + 8, y + 12.5, values, "fg-dim fg-small")
        parts.append(titled(content, f"{name}: {values}"))
    return parts, top + ROW * len(rows)


def _lanes(events: EventList, top: float) -> tuple[list[str], float]:
    """Return what ran when: a lane for each thread, with the outermost events and those inside, and for each device."""
    lanes = _by_lane(events)
    moments = [(e.start_ns, e.end_ns) for lane in lanes.values() for e in lane]
    moments += [(start, end) for _, _, start, end in events.spans]
    if not moments:
        return [], top
    start, end = min(m[0] for m in moments), max(m[1] for m in moments)
    scale = (WIDTH - 2 * MARGIN) / max(end - start, 1)
    parts = [text(MARGIN, top - 8, "what ran when", "fg-ink fg-bold")]
    for name, lane in lanes.items():
        parts.append(text(MARGIN, top + 12, name, "fg-dim fg-small"))
        parts += _moments(lane, start, scale, top + 18)
        top += 18 + ROW * (2 if any(e.parent for e in lane) else 1) + 8
    parts += _axis(end - start, scale, top)
    return parts, top + 20


def _by_lane(events: EventList) -> dict[str, list[FunctionEvent]]:
    """Return the events to show of each thread, and the kernels of each device."""
    lanes: dict[str, list[FunctionEvent]] = {f"thread {name}": [] for _, name, _, _ in events.spans}
    names = {thread: f"thread {name}" for thread, name, _, _ in events.spans}
    for event in events:
        if event.parent is None or event.parent.parent is None:
            lanes.setdefault(names.get(event.thread, f"thread {event.thread}"), []).append(event)
    for event in events:
        for kernel in event.kernels:
            lanes.setdefault(f"kernels on {kernel.device}", []).append(kernel)
    return lanes


def _moments(lane: list[FunctionEvent], start: int, scale: float, top: float) -> list[str]:
    """Return the bars of a lane; of those narrower than half a pixel, one for each half pixel."""
    parts = []
    taken = set()
    for event in lane:
        x, w = MARGIN + (event.start_ns - start) * scale, event.total_ns * scale
        y = top + (ROW if event.parent is not None else 0.0)
        if w >= 0.5:
            tip = f"{event.name} ({event.category})\n{seconds_text(event.total_ns / 1e9)}"
            parts.append(titled(_labelled(x, y, w, event.name, COLOURS[event.category]), tip))
        elif (place := (int(2 * x), y)) not in taken:
            taken.add(place)
            colour = COLOURS[event.category]
            parts.append(element("rect", x=place[0] / 2, y=y, width=0.5, height=ROW - 1.5, fill=colour))
    return parts


def _axis(length: int, scale: float, y: float) -> list[str]:
    """Return a time axis from zero."""
    parts = [element("path", d=f"M{MARGIN} {y}h{svg.number(length * scale)}", class_="fg-line")]
    for t in svg.ticks(length / 1e9, 8):
        x = MARGIN + t * 1e9 * scale
        parts.append(element("path", d=f"M{svg.number(x)} {y}v4", class_="fg-line"))
        anchor = None if t == 0 else "end" if x > WIDTH - 60 else "middle"
        parts.append(text(x, y + 16, seconds_text(t), "fg-dim fg-small", anchor))
    return parts


def save_flamegraph(events: EventList, path: str | os.PathLike[str]) -> None:
    """Write a flame graph to a file that ends in .svg or .html; ValueError for another."""
    write_svg(path, "flame graph", flamegraph_svg(events), events_table(events.key_averages()))


def save_overview(events: EventList, path: str | os.PathLike[str]) -> None:
    """Write an overview to a file that ends in .svg or .html; ValueError for another."""
    write_svg(path, "profile", overview_svg(events), events_table(events.key_averages()))

"""Memory over time: how many bytes were alive, what for, and who held most; as numbers and as a picture."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fgrad.drawing import svg
from fgrad.drawing.files import write_svg
from fgrad.drawing.html import table
from fgrad.drawing.svg import document, element, legend, text, titled
from fgrad.drawing.text import bytes_text, near, plural, seconds_text, shorten
from fgrad.profiler.events import FunctionEvent, MemoryEvent

KINDS = ("saved", "gradient", "value")
"""What bytes are alive for, in the order in which they are stacked."""

COLOURS = {"saved": svg.ORANGE, "gradient": svg.BLUE, "value": svg.SKY}
MEANINGS = {"saved": "saved for backward", "gradient": "gradients", "value": "values"}
WIDTH, HEIGHT, LEFT, MARGIN = 1120.0, 300.0, 90.0, 16.0
HOLDERS = 12
"""Holders that a picture lists."""


class Holder(NamedTuple):
    """Bytes alive at one moment that one operation of one line made, in so many `calls`.

    For gradients `name` is the step of the backward pass, and `line` that of the operation it goes back through. `line`
    is empty if stacks were not recorded.
    """

    nbytes: int
    kind: str
    name: str
    line: str
    calls: int


class MemoryTimeline:
    """Live bytes over time. `fgrad.profile(profile_memory=True)` makes it, with lines if `with_stack=True`.

    Attributes:
        times: seconds since the first event, ascending, shape (n,).
        live: for each of "saved", "gradient" and "value" the bytes alive from that time on, int64 of shape (n,).
        total: the sum of these.
        peak: the most bytes alive; `peak_index` is when.
    """

    def __init__(self, memory: Sequence[MemoryEvent]):
        self._memory = sorted(memory, key=lambda m: m.time_ns)
        start = self._memory[0].time_ns if self._memory else 0
        self.times = np.array([(m.time_ns - start) / 1e9 for m in self._memory], np.float64)
        self.live = {kind: _running([m.bytes if m.kind == kind else 0 for m in self._memory]) for kind in KINDS}
        self.total = sum(self.live.values(), np.zeros(len(self._memory), np.int64))
        self.peak_index = int(np.argmax(self.total)) if len(self._memory) else 0
        self.peak = int(self.total[self.peak_index]) if len(self._memory) else 0

    def holders(self, count: int = HOLDERS, at: int | None = None) -> list[Holder]:
        """Return who held most at a moment, the largest first.

        Args:
            count: how many at most.
            at: a position in `times`; the peak by default.
        """
        at = self.peak_index if at is None else at
        found: dict[tuple[str, str, str], int] = defaultdict(int)
        makers: dict[tuple[str, str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for m in self._memory[: at + 1]:
            key = m.kind, *_maker(m.event)
            found[key] += m.bytes
            makers[key][m.event.id if m.event else 0] += m.bytes
        alive = [
            Holder(nbytes, *key, sum(1 for b in makers[key].values() if b > 0))
            for key, nbytes in found.items()
            if nbytes > 0
        ]
        return sorted(alive, key=lambda h: -h.nbytes)[:count]

    def svg(self) -> str:
        """Return the picture: what was alive over time, and the holders at its peak."""
        return _picture(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file that ends in .svg or .html; ValueError for another."""
        write_svg(path, "memory over time", self.svg(), self._table(100))

    def _table(self, count: int) -> str:
        rows = [[bytes_text(h.nbytes), MEANINGS[h.kind], h.name, h.calls, near(h.line)] for h in self.holders(count)]
        caption = f"alive at the peak of {bytes_text(self.peak)}, {seconds_text(self._peak_time())} in"
        return table(["bytes", "what for", "made by", "calls", "line"], rows, caption)

    def _peak_time(self) -> float:
        return float(self.times[self.peak_index]) if len(self.times) else 0.0

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>'

    def __repr__(self) -> str:
        at_peak = ", ".join(f"{bytes_text(self.live[k][self.peak_index])} {MEANINGS[k]}" for k in KINDS if self.peak)
        return f"<memory timeline: peak {bytes_text(self.peak)}{f' ({at_peak})' if at_peak else ''}>"


def _running(changes: Sequence[int]) -> np.ndarray:
    """Return the sum after each change; what is given back without having been taken was there from the beginning."""
    sums = np.cumsum(changes, dtype=np.int64)
    return sums - min(int(sums.min(initial=0)), 0)


def _maker(event: FunctionEvent | None) -> tuple[str, str]:
    """Return the name and the line of what made an array: of a gradient, the step of backward and its forward line."""
    if event is None:
        return "made before", ""
    step: FunctionEvent | None = event
    while step is not None and step.category != "backward":
        step = step.parent
    if step is None:
        return event.name, _line(event)
    return step.name, _line(step.forward or step)


def _line(event: FunctionEvent) -> str:
    return event.stack[0] if event.stack else ""


# ------------------------------------------------------------------------------------------------------ the picture


def _picture(timeline: MemoryTimeline) -> str:
    top = 56.0
    end = float(timeline.times[-1]) if len(timeline.times) else 0.0
    across = (WIDTH - LEFT - MARGIN) / (end or 1.0)
    up = HEIGHT / (timeline.peak * 1.04 or 1.0)
    parts = [text(MARGIN, 22.0, "memory over time", "fg-ink fg-bold")]
    parts.append(text(MARGIN, 39.0, repr(timeline)[1:-1].partition(": ")[2], "fg-dim fg-small"))
    parts += _grid(timeline, end, across, up, top)
    parts += _areas(timeline, across, up, top)
    parts += _peak(timeline, across, up, top)
    bottom = top + HEIGHT + 38
    parts += legend([(COLOURS[k], MEANINGS[k]) for k in KINDS], MARGIN, bottom)
    rows, bottom = _rows(timeline, bottom + 44)
    return document(WIDTH, bottom, [*parts, *rows], "memory over time")


def _areas(timeline: MemoryTimeline, across: float, up: float, top: float) -> list[str]:
    """Return one area for each kind, stacked; bytes stay what they are until the next event."""
    seen = _seen(timeline, across)
    xs = LEFT + timeline.times[seen] * across
    floor = np.zeros(len(xs))
    parts = []
    for kind in KINDS:
        ceiling = floor + timeline.live[kind][seen]
        upper = _steps(xs, top + HEIGHT - ceiling * up)
        lower = _steps(xs, top + HEIGHT - floor * up)
        if len(xs):
            path = "M" + "L".join([*upper, *lower[::-1]]) + "z"
            most = bytes_text(int(timeline.live[kind].max()))
            area = element("path", d=path, fill=COLOURS[kind], fill_opacity=0.9)
            parts.append(titled(area, f"{MEANINGS[kind]}: at most {most}"))
        floor = ceiling
    return parts


def _seen(timeline: MemoryTimeline, across: float) -> np.ndarray:
    """Return the positions that one can see: in each half pixel the largest total and the last."""
    columns = (2 * timeline.times * across).astype(np.int64)
    last = np.flatnonzero(np.diff(columns, append=-1))
    by_size = np.lexsort((timeline.total, columns))
    return np.union1d(last, by_size[last])


def _steps(xs: np.ndarray, ys: np.ndarray) -> list[str]:
    """Return the corners of a step function, those that one cannot see left out."""
    points = []
    last: tuple[str, str] | None = None
    for x, y in zip(map(svg.number, xs.tolist()), map(svg.number, ys.tolist()), strict=True):
        if last is not None and y == last[1]:
            continue
        if last is not None:
            points.append(f"{x} {last[1]}")
        points.append(f"{x} {y}")
        last = x, y
    if last is not None:
        points.append(f"{svg.number(float(xs[-1]))} {last[1]}")
    return points


def _grid(timeline: MemoryTimeline, end: float, across: float, up: float, top: float) -> list[str]:
    """Return axes of bytes and of time."""
    parts = []
    unit = 1024 ** int(np.log2(max(timeline.peak, 1)) // 10)
    for tick in svg.ticks(timeline.peak * 1.04 / unit, 5):
        y = top + HEIGHT - tick * unit * up
        grid: dict[str, Any] = {"class_": "fg-line", "stroke_opacity": 0.35}
        parts.append(element("path", d=f"M{svg.number(LEFT)} {svg.number(y)}H{svg.number(WIDTH - MARGIN)}", **grid))
        parts.append(text(LEFT - 8, y + 4, bytes_text(tick * unit), "fg-dim fg-small", "end"))
    for tick in svg.ticks(end, 8):
        x = LEFT + tick * across
        anchor = "end" if x > WIDTH - 60 else "middle"
        parts.append(element("path", d=f"M{svg.number(x)} {svg.number(top + HEIGHT)}v5", class_="fg-line"))
        parts.append(text(x, top + HEIGHT + 18, seconds_text(tick), "fg-dim fg-small", anchor))
    return parts


def _peak(timeline: MemoryTimeline, across: float, up: float, top: float) -> list[str]:
    if not timeline.peak:
        return []
    x = LEFT + timeline._peak_time() * across
    y = top + HEIGHT - timeline.peak * up
    line = element("path", d=f"M{svg.number(x)} {svg.number(top - 2)}V{svg.number(top + HEIGHT)}",
                   class_="fg-line", stroke_dasharray="3 3")  # fmt: skip
    left = x > WIDTH / 2
    place = x - 6 if left else x + 6
    return [
        line,
        text(place, min(y, top) + 8, f"peak {bytes_text(timeline.peak)}", "fg-ink fg-small", "end" if left else None),
    ]


def _rows(timeline: MemoryTimeline, top: float) -> tuple[list[str], float]:
    """Return the holders at the peak as lines of text."""
    holders = timeline.holders()
    if not holders:
        return [], top - 20
    parts = [text(MARGIN, top - 8, "alive at the peak, by what made it", "fg-ink fg-bold")]
    for k, h in enumerate(holders):
        y = top + 12 + 17 * k
        name = h.name if h.calls == 1 else f"{h.name} ({plural(h.calls, 'call')})"
        content = element("rect", x=MARGIN, y=y - 10, width=12.0, height=12.0, fill=COLOURS[h.kind])
        content += text(MARGIN + 100, y, bytes_text(h.nbytes), "fg-ink", "end")
        content += text(MARGIN + 116, y, shorten(name, 44), "fg-ink")
        content += text(MARGIN + 456, y, shorten(near(h.line), 90), "fg-dim fg-small")
        parts.append(titled(content, f"{bytes_text(h.nbytes)} {MEANINGS[h.kind]}\n{name}\n{near(h.line)}"))
    return parts, top + 12 + 17 * len(holders) + 8

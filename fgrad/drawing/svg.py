"""Elements of static SVG, and the colours of all pictures.

Text is escaped here and nowhere else. Colours are those of Okabe and Ito, which colour-blind people tell apart, and one
ramp whose lightness alone says how much; each picture paints its own background and follows a dark page where the
viewer says that it prefers one. Class names begin with `fg-`, so that a picture inside a page styles nothing else.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable

from fgrad.drawing.text import cells, printable

FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
SIZE = 12.0
CELL = 0.605
"""Width of a character of a fixed-width font, in sizes of the font: the widest of those in FONT."""

BLUE, ORANGE, GREEN, VERMILION, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9"
RAMP = ((255, 247, 228), (253, 208, 140), (238, 139, 62), (189, 76, 18), (104, 34, 6))
"""From little to much, light to dark."""

LIGHT = {"page": "#ffffff", "ink": "#1b1f24", "dim": "#57606a", "line": "#8c959f", "box": "#f6f8fa", "end": "#e3f0fa"}
DARK = {"page": "#15181d", "ink": "#e6e9ed", "dim": "#a3abb5", "line": "#768190", "box": "#252b33", "end": "#14344d"}


def _rules(c: dict[str, str]) -> str:
    return (
        f".fg-page{{fill:{c['page']}}}.fg-ink{{fill:{c['ink']}}}.fg-dim{{fill:{c['dim']}}}"
        f".fg-line{{stroke:{c['line']};fill:none}}.fg-head{{fill:{c['line']}}}"
        f".fg-box{{fill:{c['box']};stroke:{c['line']}}}.fg-end{{fill:{c['end']};stroke:{BLUE}}}"
    )


STYLE = (
    f".fg-svg text{{font-family:{FONT};font-size:{SIZE:g}px}}.fg-svg text.fg-bold{{font-weight:bold}}"
    f".fg-svg text.fg-small{{font-size:{SIZE - 1:g}px}}{_rules(LIGHT)}"
    f"@media(prefers-color-scheme:dark){{{_rules(DARK)}}}"
)


def escape(text: str) -> str:
    """Return a text as it may stand in an element or a quoted attribute.

    Example:
        >>> escape('a < "b"')
        'a &lt; &quot;b&quot;'
    """
    return html.escape(printable(text))


def text_width(text: str, size: float = SIZE) -> float:
    """Return the width of a text in the font of the pictures."""
    return cells(text) * CELL * size


def number(x: float) -> str:
    """Return a coordinate without needless digits."""
    return f"{x:.1f}".rstrip("0").rstrip(".") if x % 1 else f"{x:.0f}"


def element(name: str, content: str | None = None, **attributes: object) -> str:
    """Return an element; `_` in the names of attributes stands for `-`, and a last one is dropped (`class_`)."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{number(v) if isinstance(v, float) else escape(str(v))}"'
        for key, v in attributes.items()
        if v is not None
    )
    return f"<{name}{given}/>" if content is None else f"<{name}{given}>{content}</{name}>"


def text(x: float, y: float, content: str, class_: str = "fg-ink", anchor: str | None = None, **more: object) -> str:
    """Return a line of text; `anchor` is "middle" or "end"."""
    return element("text", escape(content), x=x, y=y, class_=class_, text_anchor=anchor, **more)


def titled(content: str, tip: str) -> str:
    """Return elements as a group that shows `tip` where the pointer rests on it."""
    return element("g", element("title", escape(tip)) + content)


def document(width: float, height: float, parts: Iterable[str], label: str) -> str:
    """Return a whole SVG file; `label` is what it is called where it cannot be seen."""
    background = element("rect", width=width, height=height, class_="fg-page")
    content = "\n".join([element("title", escape(label)), f"<style>{STYLE}</style>", background, *parts])
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="fg-svg" role="img" {size}>\n{content}\n</svg>\n'


def legend(entries: Iterable[tuple[str, str]], x: float, y: float) -> list[str]:
    """Return a row of coloured squares with their meanings."""
    parts = []
    for colour, meaning in entries:
        parts.append(element("rect", x=x, y=y, width=12.0, height=12.0, fill=colour))
        parts.append(text(x + 17, y + 10, meaning, "fg-dim fg-small"))
        x += 17 + text_width(meaning, SIZE - 1) + 18
    return parts


def ticks(end: float, count: int) -> list[float]:
    """Return at most `count` + 1 round numbers from 0 to `end`.

    Example:
        >>> ticks(7.3, 5)
        [0.0, 2.0, 4.0, 6.0]
    """
    if end <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(end / count))
    step = next(m * power for m in (1, 2, 5, 10) if end / (m * power) <= count)
    return [float(f"{k * step:.12g}") for k in range(int(end / step * (1 + 1e-12)) + 1)]


def heat(share: float) -> str:
    """Return the colour of the ramp for a share between 0 and 1."""
    return _hex(_heat_rgb(share))


def ink_on(share: float) -> str:
    """Return the colour of text that is legible on `heat(share)`."""
    return ink_for(heat(share))


def ink_for(colour: str) -> str:
    """Return black or white, whichever is more legible on a colour; their contrasts are equal at luminance 0.179."""
    return "#ffffff" if luminance([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) < 0.179 else "#000000"


def _heat_rgb(share: float) -> tuple[float, ...]:
    at = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    k = min(int(at), len(RAMP) - 2)
    return tuple(a + (b - a) * (at - k) for a, b in zip(RAMP[k], RAMP[k + 1], strict=True))


def _hex(rgb: Iterable[float]) -> str:
    return "#" + "".join(f"{round(c):02x}" for c in rgb)


def luminance(rgb: Iterable[float]) -> float:
    """Return the relative luminance of a colour (WCAG 2.2's definition)."""
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

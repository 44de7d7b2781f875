"""Numbers and names as people read them: bytes, times, shortened names, widths of text."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence

_BYTES = ("B", "KiB", "MiB", "GiB", "TiB")
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def bytes_text(n: float) -> str:
    """Return a number of bytes with three digits and its unit.

    Example:
        >>> bytes_text(96), bytes_text(1_500_000)
        ('96 B', '1.43 MiB')
    """
    power = 0
    while abs(n) >= 1024 and power < len(_BYTES) - 1:
        n /= 1024
        power += 1
    return f"{n:.0f} {_BYTES[power]}" if power == 0 else f"{_three_digits(n)} {_BYTES[power]}"


def seconds_text(t: float) -> str:
    """Return a time with three digits and its unit.

    Example:
        >>> seconds_text(0.00123), seconds_text(0), seconds_text(75)
        ('1.23 ms', '0 s', '75.0 s')
    """
    if not t:
        return "0 s"
    for unit, name in _SECONDS:
        if abs(t) >= unit * 0.9995:
            return f"{_three_digits(t / unit)} {name}"
    return f"{t / 1e-9:.2g} ns"


def _three_digits(x: float) -> str:
    digits = 2 if abs(x) < 9.995 else 1 if abs(x) < 99.95 else 0
    return f"{x:.{digits}f}"


def plural(n: int, word: str, words: str = "") -> str:
    """Return `1 input`, `2 inputs`; `words` where it is not made with an s."""
    return f"{n:,} {word if n == 1 else words or word + 's'}"


def cells(text: str) -> int:
    """Return how many columns of a fixed-width font a text takes: wide characters take two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shorten(text: str, width: int) -> str:
    """Return a text of at most `width` columns, its middle replaced by … where it is longer.

    Example:
        >>> shorten("a_rather_long_name", 9)
        'a_ra…name'
    """
    if cells(text) <= width:
        return text
    if width < 3:
        return "…"[:width]
    head, tail = "", ""
    for c in text:
        if cells(head + c) > width // 2:
            break
        head += c
    for c in reversed(text):
        if cells(head + c + tail) > width - 1:
            break
        tail = c + tail
    return f"{head}…{tail}"


def listed(items: Sequence[str], width: int) -> str:
    """Return items with commas between them: as many as fit into `width` columns, then ….

    Example:
        >>> listed(["2 mul", "add", "reduce_sum"], 15)
        '2 mul, add, …'
    """
    whole = ", ".join(items)
    if cells(whole) <= width or len(items) == 1:
        return shorten(whole, width)
    fitting = [", ".join(items[:k]) + ", …" for k in range(1, len(items))]
    return next((text for text in reversed(fitting) if cells(text) <= width), shorten(items[0], width - 3) + ", …")


def near(place: str) -> str:
    """Return a place in a file, its path relative to the working directory where it lies below that."""
    return place.removeprefix(os.getcwd() + os.sep)


def printable(text: str) -> str:
    """Return a text without characters that XML and DOT cannot hold; each becomes the sign for a wrong character."""
    return "".join(c if _allowed(ord(c)) else "\N{REPLACEMENT CHARACTER}" for c in text)


def _allowed(c: int) -> bool:
    """Say whether XML 1.0 has this character (production 2 of the recommendation)."""
    return c in (9, 10, 13) or 32 <= c <= 0xD7FF or 0xE000 <= c <= 0xFFFD or c >= 0x10000

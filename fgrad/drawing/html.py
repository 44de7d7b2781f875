"""HTML: pages that hold pictures, and tables, for files and notebooks."""

from __future__ import annotations

from collections.abc import Sequence

from fgrad.drawing.svg import FONT, escape

_PAGE_STYLE = (
    "body{margin:16px;background:#fff;color:#1b1f24;font-family:system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){body{background:#15181d;color:#e6e9ed}}"
)


def page(title: str, *parts: str) -> str:
    """Return a whole page that needs no network."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_PAGE_STYLE}</style>'
    content = "\n".join(f'<div style="overflow-x:auto">{part}</div>' for part in parts)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{content}\n</body></html>\n'


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> str:
    """Return a table; what is a number stands at the right. Long text wraps and is never cut off."""
    head = "".join(f'<th style="text-align:left;padding:2px 10px 2px 0">{escape(c)}</th>' for c in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    top = f'<caption style="text-align:left;padding-bottom:4px">{escape(caption)}</caption>' if caption else ""
    style = f"font-family:{FONT};font-size:12px;border-collapse:collapse"
    return f'<table style="{style}">{top}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(value: object) -> str:
    numeric = isinstance(value, (int, float))
    shown = f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if numeric else str(value)
    style = f"text-align:{'right' if numeric else 'left'};padding:1px 10px 1px 0;vertical-align:top"
    return f'<td style="{style};overflow-wrap:anywhere">{escape(shown)}</td>'


def folded(summary: str, content: str, opened: bool = False) -> str:
    """Return content that a click on its summary shows."""
    return f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>{content}</details>"

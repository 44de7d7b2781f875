"""Files that hold pictures: SVG, or a page around it, by the end of their name."""

from __future__ import annotations

import os
from pathlib import Path

from fgrad.drawing.html import page


def write_svg(path: str | os.PathLike[str], title: str, picture: str, *tables: str) -> None:
    """Write a picture to a file that ends in .svg, or with its tables to one in .html; ValueError for another."""
    path = Path(path)
    form = path.suffix.lower()
    if form not in (".svg", ".html"):
        raise ValueError(f"this picture is saved as .svg or .html, got {path.name!r}")
    path.write_text(picture if form == ".svg" else page(title, picture, *tables), encoding="utf-8")

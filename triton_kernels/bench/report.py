"""Rows of figures: as a table, in a file, beside earlier ones, and as a picture."""

from __future__ import annotations

import csv
import json
from pathlib import Path

KEY = ("case", "dtype", "rows", "columns", "target")
_WORSE_ABOVE = {"ms": 1.1, "registers": 1.1, "spills": 1.0, "bytes": 1.0}
_WORSE_BELOW = {"load bits": 1.0, "occupancy": 1.0}


def table(rows):
    """Return rows as lines of text under one head."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *[[_cell(name, row.get(name)) for name in names] for row in rows]]
    widths = [max(len(line[k]) for line in cells) for k in range(len(names))]
    lines = [
        "  ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in cells
    ]
    return "\n".join(line.rstrip() for line in lines)


def _cell(name, value):
    if value is None:
        return ""
    if name.startswith("of ") or name == "occupancy":
        return f"{value:.0%}"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def save(rows, path):
    """Write rows to a file: .csv, or else JSON."""
    path = Path(path)
    if path.suffix != ".csv":
        path.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def regressions(rows, old):
    """Return in words what is worse than in earlier rows of the same case, type, size and target.

    Times and registers may grow by a tenth; spills and bytes may not grow, nor vector widths and occupancy shrink.
    """
    before = {_key(row): row for row in old}
    found = []
    for row in rows:
        was = before.get(_key(row), {})
        for name in (*_WORSE_ABOVE, *_WORSE_BELOW):
            new, past = row.get(name), was.get(name)
            if new is None or past is None:
                continue
            if new > past * _WORSE_ABOVE.get(name, float("inf")) or new < past * _WORSE_BELOW.get(name, 0):
                found.append(f"{' '.join(str(part) for part in _key(row) if part)}: {name} {past:.4g} → {new:.4g}")
    return found


def _key(row):
    return tuple([row.get(name, "") for name in KEY])


def draw(rows, path):
    """Draw each case's share of its ceiling against the size: a picture, by matplotlib.

    Without times the share is that of the vector width, 128 bits being whole.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for name in dict.fromkeys((row["case"], row["dtype"], row.get("target", "")) for row in rows):
        mine = [row for row in rows if (row["case"], row["dtype"], row.get("target", "")) == name]
        axes.plot(
            [row["rows"] * row["columns"] for row in mine], [share(row) for row in mine], "o-", label=" ".join(name)
        )
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("elements")
    axes.set_ylabel("share of the ceiling" if "ms" in rows[0] else "share of full vector width")
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    figure.savefig(path, bbox_inches="tight", dpi=150)
    pyplot.close(figure)


def share(row):
    """Return the share of what bounds a row: the product's ceiling, the copy's, or the vector width."""
    return row.get("of product", row.get("of copy", min(1.0, row.get("load bits", 0) / 128)))

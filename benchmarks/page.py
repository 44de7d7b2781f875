"""Draw the picture of docs/benchmarks.md from the page's own table of times: `python -m benchmarks.page`."""

import re
from pathlib import Path
from typing import NamedTuple

from benchmarks import report

PAGE = Path(__file__).parents[1] / "docs/benchmarks.md"
TIME = re.compile(r"([\d.]+) (\w+)")


class Row(NamedTuple):
    """What a plot wants to know of a workload."""

    key: str


def seconds(text):
    """Return the time that a cell of the table has, or None."""
    found = TIME.fullmatch(text)
    return float(found[1]) * {unit: scale for scale, unit in report.UNITS}[found[2]] if found else None


def results(page):
    """Return the table of median times as (workload, seconds by library)."""
    lines = page.partition("### Median time of one call")[2].partition("###")[0].strip().splitlines()
    heading, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
    found = []
    for key, _, *cells in rows:
        times = {name: [seconds(cell)] for name, cell in zip(heading[2:], cells, strict=True) if seconds(cell)}
        found.append((Row(key), times))
    return found


def main():
    """Write the picture beside the page."""
    import matplotlib

    matplotlib.rcParams.update({"font.size": 14, "svg.fonttype": "none", "svg.hashsalt": "fgrad"})
    report.plot(results(PAGE.read_text()), [], PAGE.with_suffix(".svg"))


if __name__ == "__main__":
    main()

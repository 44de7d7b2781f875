"""Showing what was found: tables of text, and one plot."""

import datetime
import os
import platform
import statistics
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from benchmarks.libraries import LIBRARIES
from benchmarks.scaling import exponent

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


class Sheet(NamedTuple):
    """A table of text; the first `words` columns are set to the left, figures to the right."""

    title: str
    words: int
    headings: list[str]
    rows: list[list[str]]


def time_text(seconds):
    """Return a time with three figures and its unit, a dash for none."""
    if seconds is None:
        return "–"
    scale, unit = next((pair for pair in UNITS if seconds >= pair[0]), UNITS[-1])
    return f"{figures(seconds / scale)} {unit}"


def figures(x):
    """Return a positive number to three figures, without an exponent."""
    return f"{x:.{max(0, 2 - int(np.floor(np.log10(x))))}f}"


def times_sheet(results):
    """Return the table of all workloads; `results` has (workload, seconds by library and round)."""
    names = [name for name in LIBRARIES if any(name in seconds for _, seconds in results)]
    rows = []
    for workload, seconds in results:
        times = [time_text(statistics.median(seconds[n]) / workload.per) if n in seconds else "–" for n in names]
        per = " (an operation)" if workload.per > 1 else ""
        rows.append([workload.key, workload.title + per, *times])
    return Sheet("Median time of one call", 2, ["", "workload", *names], rows)


def targets_sheet(outcomes):
    """Return the table of targets and what became of them."""
    rows = []
    for o in outcomes:
        found, most = (time_text(o.found), time_text(o.most)) if o.unit else (figures(o.found), f"{o.most:g}")
        stretch = "–" if o.stretch is None else f"{o.stretch:g}"
        rows.append([o.key, o.what, found, f"≤ {most}", stretch, "met" if o.met else "missed"])
    return Sheet(
        "Targets: medians of paired ratios", 2, ["", "ours and theirs", "found", "target", "stretch", ""], rows
    )


def first_call_sheet(calls):
    """Return the table of first calls, from seconds by workload and library."""
    names = [name for name in LIBRARIES if any(name in row for row in calls.values())]
    rows = [[key, *[time_text(row[name]) for name in names]] for key, row in calls.items()]
    return Sheet("First jitted call", 1, ["", *names], rows)


def start_sheet(starts):
    """Return the table of W13, from seconds by library."""
    rows = [[name, *map(time_text, times)] for name, times in starts.items()]
    headings = ["W13: library", "NumPy imported after", "library imported in", "first gradient in", "in all"]
    return Sheet("From the start of a process to the gradient of W3", 1, headings, rows)


def memory_sheet(nbytes):
    """Return the table of W12's memory, from bytes by library."""
    return Sheet(
        "W12: growth of the process", 1, ["library", "memory"], [[n, f"{b / 1e6:.1f} MB"] for n, b in nbytes.items()]
    )


def scaling_sheet(curves):
    """Return the table of growth exponents."""
    rows = []
    for curve in curves:
        sizes = curve.scale.sizes
        for name, seconds in curve.seconds.items():
            nbytes = curve.nbytes.get(name)
            memory = f"{nbytes[-1] / 1e6:.2f} MB" if nbytes else "–"
            power = f"{exponent(sizes, nbytes):.2f}" if nbytes else "–"
            ends = f"{time_text(seconds[0])} → {time_text(seconds[-1])}"
            span = f"{curve.scale.axis} = {sizes[0]:,} → {sizes[-1]:,}"
            rows.append([curve.scale.title, span, name, ends, f"{exponent(sizes, seconds):.2f}", memory, power])
    headings = ["", "size", "library", "time", "exponent", "peak at the largest", "exponent of the peak"]
    return Sheet("Growth, over the larger half of the sizes", 3, headings, rows)


def conditions():
    """Return what figures depend on: date, machine, load, versions, BLAS."""
    from threadpoolctl import threadpool_info

    pools = [
        f"{p['internal_api']} {p['version']} ({p.get('architecture')}, {p['num_threads']} threads)"
        for p in threadpool_info()
        if p["user_api"] == "blas"
    ]
    distributions = dict.fromkeys(["fgrad", "numpy", *[library.distribution for library in LIBRARIES.values()]])
    versions = [f"{name} {found}" for name in distributions if (found := _version(name))]
    return [
        f"{datetime.date.today()}, Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores",
        f"load average at the start: {', '.join(f'{x:.1f}' for x in os.getloadavg())}",
        ", ".join(versions),
        "BLAS: " + ", ".join(dict.fromkeys(pools)),
    ]


def _version(name):
    try:
        return version(name)
    except ImportError:
        return None


def as_markdown(sheet):
    """Return a table in Markdown."""
    lines = [sheet.headings, ["---"] * len(sheet.headings), *sheet.rows]
    return "\n".join([f"**{sheet.title}**", "", *["| " + " | ".join(line) + " |" for line in lines], ""])


def as_rich(sheet):
    """Return a table for the terminal: words to the left, figures to the right."""
    from rich.table import Table

    table = Table(title=sheet.title)
    for k, heading in enumerate(sheet.headings):
        table.add_column(heading, justify="left" if k < sheet.words else "right", no_wrap=k >= sheet.words)
    for row in sheet.rows:
        table.add_row(*row)
    return table


# ------------------------------------------------------------------------------------------------------------ the plot


def plot(results, curves, path):
    """Draw times relative to fgrad for every workload, and the curves of time and memory."""
    import matplotlib

    matplotlib.use("Agg")  # draws without a screen
    import matplotlib.pyplot as plt

    columns = max(len(curves), 1)
    layout = [["all"] * columns] * bool(results) + (
        [[f"time{k}" for k in range(columns)], [f"memory{k}" for k in range(columns)]]
    ) * bool(curves)
    size = max(14, 5 * len(curves)), 5 * len(layout) - 2 * bool(curves)
    figure, axes = plt.subplot_mosaic(layout, figsize=size, layout="constrained")
    colours = dict(zip(LIBRARIES, plt.get_cmap("tab10").colors, strict=False))
    if results:
        _draw_ratios(axes["all"], results, colours)
    for k, curve in enumerate(curves):
        _draw_curves(axes[f"time{k}"], curve, curve.seconds, "seconds", colours)
        _draw_curves(axes[f"memory{k}"], curve, curve.nbytes, "peak bytes", colours)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_ratios(axes, results, colours):
    for name, colour in colours.items():
        points = []
        for k, (_, seconds) in enumerate(results):
            ours = [statistics.median(s) for n, s in seconds.items() if n.startswith("fgrad")]
            if name in seconds and ours:
                points.append((k, statistics.median(seconds[name]) / min(ours)))
        if points:
            axes.plot(*zip(*points, strict=True), "o" if name.startswith("fgrad") else "x", color=colour, label=name)
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set_xticks(range(len(results)), [workload.key for workload, _ in results])
    axes.set(yscale="log", ylabel="time ÷ time of the fastest of fgrad", title="Lower is faster")
    axes.legend(ncols=4)


def _draw_curves(axes, curve, values, label, colours):
    if not values:
        axes.set_axis_off()
        return
    for name, ys in values.items():
        power = exponent(curve.scale.sizes, ys)
        axes.plot(curve.scale.sizes, ys, "o-", color=colours.get(name), label=f"{name}, exponent {power:.2f}")
    axes.set(xscale="log", yscale="log", xlabel=curve.scale.axis, ylabel=label, title=curve.scale.title)
    axes.legend(fontsize="small")

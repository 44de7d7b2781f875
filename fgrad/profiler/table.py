"""The table: events or averages as text of fixed width, one unit of time, with definitions of its columns below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from fgrad.profiler.ceiling import Ceiling, measured_ceiling

SORTS = (
    "cpu_time", "cpu_time_total", "self_cpu_time_total", "count", "bytes", "flops", "cpu_memory_usage",
    "self_cpu_memory_usage", "cuda_time", "cuda_time_total", "self_cuda_time_total", "cuda_memory_usage",
    "self_cuda_memory_usage", "name",
)  # fmt: skip

UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))


class Column(NamedTuple):
    """One column: its title, the text of a row in it, and what it means (None: nothing to explain)."""

    title: str
    cell: Callable[[Any], str]
    meaning: str | None = None
    left: bool = False


class Rest(NamedTuple):
    """The row of the time that belongs to no event."""

    self_ns: int
    name: str = "(unattributed)"


def table(
    events: Any,
    sort_by: str | None,
    row_limit: int,
    top_level_only: bool,
    header: str | None,
    name_width: int,
    ceiling: Any,
) -> str:
    """Return the text; arguments are those of `EventList.table`."""
    if len(events) == 0:
        return ""
    rows = _chosen(events, sort_by, row_limit, top_level_only)
    if ceiling is True:
        ceiling = measured_ceiling()
    columns = _columns(events, name_width, ceiling)
    if events.spans:
        rows = [*rows, Rest(events.unattributed_ns)]
    lines = _ruled(columns, rows)
    width = len(lines[0])
    if header is not None:
        lines = ["=" * width, header, *lines]
    if top_level_only:
        lines = ["=" * width, "Only events that lie inside no other", *lines]
    return "\n".join([*lines, *_below(events, rows, columns, name_width)]) + "\n"


def _chosen(events: Any, sort_by: str | None, row_limit: int, top_level_only: bool) -> list[Any]:
    if sort_by is not None and sort_by not in SORTS:
        raise ValueError(f"table: sort_by must be one of {', '.join(SORTS)}; got {sort_by!r}")
    rows = [e for e in events if not top_level_only or getattr(e, "at_top", e.parent is None)]
    if sort_by == "name":
        rows.sort(key=lambda e: e.name)
    elif sort_by is not None:
        key = sort_by.replace("cuda_memory", "cpu_memory")
        rows.sort(key=lambda e: getattr(e, key), reverse=True)
    return rows if row_limit < 0 else rows[:row_limit]


def _columns(events: Any, name_width: int, ceiling: Ceiling | None) -> list[Column]:
    wall = max(1, events.wall_ns or events.attributed_ns)
    size, unit = _unit(events)

    def time(ns: float) -> str:
        return f"{ns / size:.3f}{unit}"

    columns = [
        Column("Name", lambda e: e.name if isinstance(e, Rest) else shortened(e.name, name_width), left=True),
        Column("Self CPU total %", lambda e: f"{100 * e.self_ns / wall:.2f}%", "of the time observed"),
        Column("Self CPU total", lambda e: time(e.self_ns), "time in an event, without the events inside it"),
        Column("CPU total %", _of_events(lambda e: f"{100 * e.total_ns / wall:.2f}%"), None),
        Column("CPU total", _of_events(lambda e: time(e.total_ns)), "time from start to end, each moment once"),
        Column("CPU time avg", _of_events(lambda e: time(e.total_ns / e.count)), "CPU total by call"),
    ]
    if any(e.device_ns for e in events):
        columns.append(Column("CUDA total", _of_events(lambda e: time(e.device_ns)), "time of kernels on a GPU"))
    columns.append(Column("Number of Calls", _of_events(lambda e: str(e.count))))
    return [*columns, *_costs(events, ceiling), *_origins(events)]


def _unit(events: Any) -> tuple[float, str]:
    """Return the one unit of a table: the largest in which the median event is at least 0.1."""
    times = sorted(e.total_ns for e in events)
    middle = times[len(times) // 2]
    return next(((size, unit) for size, unit in UNITS if middle >= size / 10), UNITS[-1])


def _of_events(cell: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a cell that is empty in the row of the rest."""
    return lambda e: "" if isinstance(e, Rest) else cell(e)


def _costs(events: Any, ceiling: Ceiling | None) -> list[Column]:
    """Return the columns of bytes, operations and memory, as far as they were recorded."""
    columns = []
    if any(e.bytes for e in events):
        size, unit = _byte_unit(e.total_bytes for e in events)
        columns.append(Column(unit, _of_events(lambda e: _number(e.total_bytes / size)), "moved: read and written"))
        columns.append(Column("GB/s", _of_events(lambda e: _rate(e.total_bytes, e.total_ns)), "moved by CPU total"))
    if any(e.flops for e in events):
        columns.append(Column("GFLOP/s", _of_events(lambda e: _rate(e.total_flops, e.total_ns)), "estimated"))
    if ceiling is not None:
        share = _of_events(lambda e: _share(ceiling.ideal_ns(e.total_bytes, e.total_flops), e.total_ns))
        columns.append(Column("Ceiling %", share, f"of the speed that {ceiling} allow"))
    if any(e.self_allocated_bytes for e in events):
        meaning = "allocated less what was freed meanwhile"
        held, held_unit = _byte_unit(abs(e.allocated_bytes) for e in events)
        whole = _of_events(lambda e: _number(e.allocated_bytes / held))
        alone = _of_events(lambda e: _number(e.self_allocated_bytes / held))
        columns.append(Column(f"CPU Mem ({held_unit})", whole, meaning))
        columns.append(Column(f"Self CPU Mem ({held_unit})", alone))
    return columns


def _origins(events: Any) -> list[Column]:
    columns = [Column("Source", _of_events(lambda e: e.source), "where the code that ran came from", True)]
    if any(e.input_shapes for e in events):
        columns.append(Column("Input Shapes", _of_events(lambda e: str(e.input_shapes or "")), None, True))
    if any(e.stack for e in events):
        line = _of_events(lambda e: e.stack[0] if e.stack else "")
        columns.append(Column("Source Location", line, "the innermost line of yours", True))
    return columns


def _byte_unit(amounts: Iterable[int]) -> tuple[float, str]:
    return (1e6, "MB") if max(amounts) >= 1e5 else (1e3, "KB")


def _number(x: float) -> str:
    return f"{x:.3f}" if x else ""


def _rate(amount: int, ns: int) -> str:
    return f"{amount / ns:.3f}" if amount and ns else ""


def _share(ideal_ns: float, ns: int) -> str:
    return f"{100 * ideal_ns / ns:.1f}%" if ideal_ns and ns else ""


def shortened(name: str, width: int) -> str:
    """Return a name on one line in at most `width` characters: the middle of a longer one gives way to `…`."""
    name = "".join(c if c.isprintable() else "�" for c in name)
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return name[: width - 1 - tail] + "…" + name[len(name) - tail :]


def _ruled(columns: Sequence[Column], rows: Sequence[Any]) -> list[str]:
    cells = [[c.cell(row) for c in columns] for row in rows]
    widths = [max(len(c.title), *(len(row[k]) for row in cells)) for k, c in enumerate(columns)]
    rule = "  ".join("-" * w for w in widths)

    def line(texts: Sequence[str]) -> str:
        return "  ".join(
            t.ljust(w) if c.left else t.rjust(w) for t, w, c in zip(texts, widths, columns, strict=True)
        ).rstrip()

    return [rule, line([c.title for c in columns]), rule, *map(line, cells), rule]


def _below(events: Any, rows: Sequence[Any], columns: Sequence[Column], name_width: int) -> list[str]:
    """Return what stands below the table: the sum, what columns mean, and names that were shortened."""
    size, unit = _unit(events)
    lines = [f"Self CPU time total: {events.attributed_ns / size:.3f}{unit}"]
    device = sum(e.self_device_ns for e in events)
    if device:
        lines.append(f"CUDA time total: {device / size:.3f}{unit}")
    if events.truncated:
        lines.append("The log was full: the oldest events are missing.")
    lines += [f"{c.title}: {c.meaning}." for c in columns if c.meaning]
    if events.spans:
        lines.append("(unattributed): time observed that belongs to no event, such as Python between operations.")
    names = [e.name for e in rows if not isinstance(e, Rest)]
    long = {name: shortened(name, name_width) for name in names if shortened(name, name_width) != name}
    if long:
        lines += ["Names in full:", *[f"  {short} = {name!r}" for name, short in long.items()]]
    return lines

"""Tables: fixed widths, one unit, everything explained, nothing cut off for good."""

import re

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.profiler import Ceiling, EventList, FunctionEvent
from fgrad.profiler.averages import FunctionEventAvg


def made(*rows, wall=None):
    """Return a list of events of one thread, made of (name, start, end) in nanoseconds, nested as they lie."""
    from fgrad.profiler.build import nest, sum_up

    events = [FunctionEvent(k + 1, name, 7, start, end) for k, (name, start, end) in enumerate(rows)]
    nest(events)
    sum_up(events)
    return EventList(events, [(7, "main", 0, wall)] if wall else ())


EVENTS = made(
    ("outer", 0, 9_000), ("inner", 1_000, 4_000), ("inner", 5_000, 6_000), ("after", 9_500, 10_000), wall=20_000
)


def cells(text, column):
    """Return the cells of one column of a table, by its title, cut at the rule above."""
    rule, title, _, *rows = [line for line in text.splitlines() if line and not line.startswith("=")]
    start, stop = next(
        (m.start(), m.end()) for m in re.finditer("-+", rule) if title[m.start() : m.end()].strip() == column
    )
    ends = rows.index(rule)
    return [row[start:stop].strip() for row in rows[:ends]]


def test_numbers():
    text = EVENTS.key_averages().table()
    assert cells(text, "Name") == ["outer", "inner", "after", "(unattributed)"]
    assert cells(text, "Self CPU total") == ["5.000us", "4.000us", "0.500us", "10.500us"]
    assert cells(text, "CPU total") == ["9.000us", "4.000us", "0.500us", ""]
    assert cells(text, "CPU time avg") == ["9.000us", "2.000us", "0.500us", ""]
    assert cells(text, "Self CPU total %") == ["25.00%", "20.00%", "2.50%", "52.50%"]
    assert cells(text, "Number of Calls") == ["1", "2", "1", ""]
    assert "Self CPU time total: 9.500us" in text


def test_columns_have_one_width_and_times_one_unit():
    events = made(("short", 0, 400), ("a long name indeed", 1_000, 3_000_000_000), wall=4_000_000_000)
    text = events.table()
    rule = text.splitlines()[0]
    assert all(len(line) <= len(rule) for line in text.splitlines()[:6])
    units = {re.sub(r"[\d.]+", "", cell) for cell in cells(text, "CPU total") if cell}
    assert len(units) == 1


@pytest.mark.parametrize("key", ["cpu_time", "cpu_time_total", "self_cpu_time_total", "count", "cuda_time", "bytes"])
def test_order(key):
    averages = EVENTS.key_averages()
    names = cells(averages.table(sort_by=key), "Name")[:-1]
    assert names == [e.key for e in sorted(averages, key=lambda e: getattr(e, key), reverse=True)]


def test_order_by_name():
    assert cells(EVENTS.key_averages().table(sort_by="name"), "Name")[:-1] == ["after", "inner", "outer"]


def test_an_unknown_order_is_refused():
    with pytest.raises(ValueError, match="sort_by must be one of cpu_time, .*; got 'speed'"):
        EVENTS.table(sort_by="speed")


def test_limits_and_headers():
    text = EVENTS.table(row_limit=2, header="a header")
    assert cells(text.split("a header\n")[1], "Name") == ["outer", "inner", "(unattributed)"]
    assert text.splitlines()[1] == "a header" and set(text.splitlines()[0]) == {"="}
    assert len(cells(EVENTS.table(row_limit=-1), "Name")) == 5
    text = EVENTS.key_averages().table(top_level_events_only=True)
    assert cells(text.split("no other\n")[1], "Name") == ["outer", "after", "(unattributed)"]


def test_names_are_never_lost():
    name = "a name of more than a few letters, with a\nnew line and a \x07"
    text = made((name, 0, 10), wall=20).table(max_name_column_width=12)
    assert cells(text, "Name")[0] == "a name…d a �"
    assert f"a name…d a � = {name!r}" in text
    assert name[:30] in made((name[:30], 0, 10), wall=20).table()


def test_everything_is_explained():
    x = np.ones((64, 64), np.float32)
    with fgrad.profile(with_stack=True, profile_memory=True) as prof:
        kept = fnp.matmul(x, x)
    text = prof.table(ceiling=Ceiling(1e10, 1e11))
    for column in ("GB/s", "GFLOP/s", "Ceiling %", "CPU Mem (KB)", "Source", "Source Location"):
        assert cells(text, column)[0], column
        assert any(line.startswith(f"{column}: ") for line in text.splitlines()), column
    assert cells(text, "Input Shapes")[0] == "[[64, 64], [64, 64]]"
    assert cells(text, "CPU Mem (KB)")[0] == f"{kept.nbytes / 1e3:.3f}"
    assert "(unattributed): " in text and "a copy (10.0 GB/s) and a product (100 GFLOP/s)" in text


def test_nothing_observed():
    assert EventList().table() == "" and str(EventList()) == ""
    assert EventList().total_average().count == 0 and EventList().unattributed_ns == 0


def test_recursion_counts_no_time_twice():
    events = made(("f", 0, 100), ("g", 10, 90), ("f", 20, 80), wall=100)
    f, g = events.key_averages()
    assert (f.count, f.total_ns, f.self_ns) == (2, 100, 80)
    assert (g.total_ns, g.self_ns) == (80, 20)


def test_averages_add_up():
    first, second = EVENTS.key_averages(), EVENTS.key_averages()
    first[0] += second[0]
    assert (first[0].count, first[0].total_ns, first[0].self_ns) == (2, 18_000, 10_000)
    assert FunctionEventAvg("empty").cpu_time == 0 and "empty" in repr(FunctionEventAvg("empty"))

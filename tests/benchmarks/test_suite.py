"""The suite measures, pairs ratios and reports; times themselves are not looked at."""

import statistics

import numpy as np
import pytest

from benchmarks import page, report, sparse, start, targets
from benchmarks.first_call import first_calls
from benchmarks.libraries import LIBRARIES, installed
from benchmarks.measure import Effort, interleaved, ratio
from benchmarks.scaling import Scale, exponent, measure
from benchmarks.workloads import WORKLOADS, rosenbrock

pytestmark = pytest.mark.heavy

BRIEF = Effort(sample=0.0, row=0.0, least=2, most=2, pause=0.0, warm=0.0)


@pytest.fixture(scope="module")
def ours():
    return installed(["fgrad jit", "fgrad eager"])[0]


def test_rounds_are_paired_by_library():
    order = []
    seconds = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, BRIEF)
    assert [len(s) for s in seconds.values()] == [2, 2]
    assert order[-8:] == ["a", "a", "b", "b", "b", "b", "a", "a"]  # each call is preceded by one that is not timed


def test_a_ratio_is_the_median_of_pairs_and_not_the_ratio_of_medians():
    ours, theirs = [1.0, 10.0, 3.0], [2.0, 2.0, 30.0]
    assert ratio(ours, theirs) == 0.5
    assert statistics.median(ours) / statistics.median(theirs) != 0.5


def test_the_best_peer_is_the_one_that_comes_closest():
    seconds = {"fgrad jit": [1.0, 1.0], "fgrad eager": [1.0, 1.0], "torch": [8.0, 8.0], "jax jit": [4.0, 4.0]}
    first, second = targets.of_rounds("W1", seconds)
    assert first == ("W1", "fgrad jit ÷ jax jit (best)", 0.25, 0.25, 0.2, "")
    assert first.met
    assert second.what == "fgrad eager ÷ torch"
    assert not second.met


def test_a_target_without_its_peer_is_left_out():
    assert targets.of_rounds("W8", {"fgrad jit": [1.0], "torch": [1.0]}) == []


def test_every_target_is_of_a_workload():
    keys = {w.key for w in WORKLOADS}
    assert set(targets.TARGETS) <= keys
    assert set(targets.FIRST_CALL) <= keys


def test_a_missing_library_is_named_with_its_reason(monkeypatch):
    def missing():
        raise ImportError("no such thing")

    monkeypatch.setitem(LIBRARIES, "torch", missing)
    found, reasons = installed(["torch", "fgrad eager"])
    assert list(found) == ["fgrad eager"]
    assert reasons == {"torch": "no such thing"}


@pytest.mark.parametrize("power", [0.5, 1, 2])
def test_the_exponent_is_that_of_the_larger_half(power):
    sizes = [1, 10, 100, 1000, 10_000]
    assert exponent(sizes, [7.0, 7.0, *[float(n) ** power for n in sizes[2:]]]) == pytest.approx(power)


def test_memory_of_a_gradient_grows_with_its_size(ours):
    scale = Scale("W2", "n", rosenbrock, (1000, 10_000, 100_000), ("fgrad jit", "fgrad eager"))
    curve = measure(scale, ours, BRIEF)
    for nbytes in curve.nbytes.values():
        assert nbytes[-1] > 8 * 100_000
        assert exponent(scale.sizes, nbytes) == pytest.approx(1, abs=0.15)


def test_first_calls_are_calls_of_functions_jitted_anew(ours):
    calls = first_calls({"fgrad jit": ours["fgrad jit"]}, WORKLOADS[:1], rounds=2)
    assert calls["W1"]["fgrad jit"] > 0
    assert targets.of_first_calls(calls) == []  # there is no peer


@pytest.mark.heavy
def test_processes_report_their_start_and_their_memory():
    starts = start.starts(["fgrad eager"], rounds=1)
    assert starts[start.BARE][1:3] == [None, None]
    numpy, imported, gradient, whole = starts["fgrad eager"]
    assert numpy + imported + gradient <= whole
    assert [o.key for o in targets.of_starts(starts)] == ["W13"] * 3
    assert all(n > 0 for n in start.memory(["fgrad.compat"], operations=1000).values())


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.5, "1.50 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 µs"), (2e-8, "20.0 ns"), (None, "–")]
)
def test_times_have_three_figures(seconds, text):
    assert report.time_text(seconds) == text


def test_the_report_shows_everything(ours, tmp_path):
    results = [(w, interleaved({n: lib.prepare(w) for n, lib in ours.items()}, BRIEF)) for w in WORKLOADS[:2]]
    curve = measure(Scale("W2", "n", rosenbrock, (10, 20), ("fgrad jit",)), ours, BRIEF)
    outcome = targets.Outcome("W1", "fgrad jit ÷ torch", 0.2, 0.25, 0.2)
    sheets = [
        report.times_sheet(results),
        report.targets_sheet([outcome]),
        report.start_sheet({"NumPy alone": [0.1, None, None, 0.1]}),
        report.memory_sheet({"torch": 10**8}),
        report.scaling_sheet([curve]),
    ]
    text = "\n".join(map(report.as_markdown, sheets))
    for words in ("Rosenbrock, n = 10", "| 0.200 | ≤ 0.25 | 0.2 | met |", "100 ms | – | – | 100 ms", "100.0 MB"):
        assert words in text
    for sheet in sheets:
        assert report.as_rich(sheet).row_count == len(sheet.rows)
        assert {len(row) for row in sheet.rows} == {len(sheet.headings)}
    report.plot(results, [curve], tmp_path / "plots" / "benchmarks.png")
    assert (tmp_path / "plots" / "benchmarks.png").stat().st_size > 10_000
    assert len(report.conditions()) == 4


def test_reference_arguments_are_the_same_each_time():
    for w in WORKLOADS:
        if w.key == "W5":
            continue
        first, again = w.arguments(), w.arguments()
        np.testing.assert_equal(first, again)


def test_sparse_derivatives_and_loops_are_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(sparse, "_peers", lambda: None)
    sizes = {"n": (10, 20), "steps": (64, 1024)}
    scales = [(scale._replace(sizes=sizes[scale.axis]), memory) for scale, memory in sparse.SCALES]
    curves = sparse.curves(BRIEF, scales)
    assert all(name in curves[k].seconds for k, name in enumerate(["fgrad: a Hessian", "fgrad: dense", "fgrad: scan"]))
    nbytes = curves[2].nbytes
    assert exponent(sizes["steps"], nbytes["fgrad: while_loop"]) < 0.7 < exponent(sizes["steps"], nbytes["fgrad: scan"])
    report.plot([], curves, tmp_path / "sparse.png")
    assert (tmp_path / "sparse.png").stat().st_size > 10_000


def test_the_picture_of_the_page_shows_its_table():
    rows = page.results(page.PAGE.read_text())
    drawn = page.PAGE.with_suffix(".svg").read_text()
    assert len(rows) > 10
    for workload, seconds in rows:
        assert f">{workload.key}</text>" in drawn, "run: python -m benchmarks.page"
        assert all(f">{name}</text>" in drawn and value[0] > 0 for name, value in seconds.items())

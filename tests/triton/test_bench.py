"""The kernel benchmark: without a GPU in full, with one run through on the stand-in."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fgrad.triton_kernels import softmax, tune
from fgrad.triton_kernels.bench import __main__ as bench
from fgrad.triton_kernels.bench import cases, check, device, report, static
from fgrad.triton_kernels.bench.workloads import WORKLOADS
from fgrad.triton_kernels.runtime import _HOMES, home_of
from tests.triton import standin
from tests.triton.families import FAMILIES

ARGUMENTS = ["--only", "generated softmax,rms_norm", "--sizes", "16x256,16x1000", "--dtypes", "float32"]


@pytest.fixture
def card(driver, record, monkeypatch):
    home = standin.InterpretingHome(standin.Arrays(driver), driver)
    monkeypatch.setitem(_HOMES, standin.DeviceArray, home)
    monkeypatch.setattr(device, "_CEILING_BYTES", 1 << 12)
    monkeypatch.setattr(device, "_SQUARE", 16)
    monkeypatch.setattr(device, "peers", lambda case: {})
    return home


@pytest.mark.heavy
def test_without_a_gpu_the_machine_code_is_reported(tmp_path, capsys):
    out, plot = tmp_path / "rows.json", tmp_path / "shares.svg"
    status = bench.main([*ARGUMENTS, "--targets", "sm_90,gfx942", "--out", str(out), "--plot", str(plot)])
    rows = json.loads(out.read_text())
    assert status == 0
    assert len(rows) == 3 * 2 * 2
    assert all(row["spills"] == 0 and row["problems"] == "" and row["projected µs"] > 0 for row in rows)
    text = capsys.readouterr().out
    assert text.startswith("No times: this is what the compiler says")
    assert "generated softmax" in text
    assert "<svg" in plot.read_text()
    assert bench.main([*ARGUMENTS, "--targets", "sm_90", "--compare", str(out)]) == 0
    worse = [{**row, "registers": row["registers"] // 2, "load bits": 256} for row in rows]
    out.write_text(json.dumps(worse))
    assert bench.main([*ARGUMENTS, "--targets", "sm_90", "--compare", str(out)]) == 1
    assert "rms_norm float32 16 256 sm_90: load bits 256 → 128" in capsys.readouterr().out


@pytest.mark.heavy
def test_on_a_card_times_and_shares_are_reported(card, tmp_path):
    options = bench.parsed([*ARGUMENTS, "--sizes", "4x64", "--repeats", "3", "--replay"])
    row, _, other = bench.measure(options, card)
    assert {"ms", "ms 20%", "ms 80%", "GB/s", "of copy", "TFLOP/s", "replayed ms"} <= set(row)
    assert row["ms 20%"] <= row["ms"] <= row["ms 80%"]
    assert other["case"] == "generated softmax"
    report.save([row, other], tmp_path / "rows.csv")
    report.draw([row, other], tmp_path / "rows.png")
    assert (tmp_path / "rows.csv").read_text().startswith("case,dtype,rows,columns,ms")
    slower = [{**row, "ms": row["ms"] * 2}]
    assert "ms" in report.regressions(slower, [row])[0]
    assert report.regressions([row], slower) == []


@pytest.mark.heavy
def test_products_are_held_against_the_cards_own(card):
    case = next(case for case in cases.CASES if case.name == "matmul")
    row = device.timed(case, np.dtype(np.float32), 16, 16, card, device.Ceilings(card, 2), repeats=2)
    assert row["of product"] > 0


EVERY = [*cases.CASES, *cases.found(cases.GENERATED)]
every_case = pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)


@pytest.mark.heavy
@every_case
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_case_is_right(case, dtype):
    check.require_right(case, bench.dtype_of(dtype), home_of(np.empty(0)))


@pytest.mark.heavy
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * case.products, id=case.name) for case in EVERY]
)
def test_every_case_has_its_figures_without_a_gpu_and_compares(case):
    (row,) = static.measured(case, np.dtype(np.float16), 64, 256, ["sm_90"])
    assert row["kernels"] >= 1
    assert row["registers"] > 0
    assert 0 < row["occupancy"] <= 1
    assert row["problems"] == ""
    assert row["bytes"] > 0
    assert row["projected µs"] > 0
    assert report.regressions([row], [row]) == []
    worse = {**row, "registers": 2 * row["registers"], "spills": row["spills"] + 8, "bytes": row["bytes"] + 1}
    assert len(report.regressions([worse], [row])) == 3


@every_case
def test_bytes_and_operations_grow_with_the_size(case):
    small, large = (case.make(np.random.default_rng(0), np.dtype(np.float32), rows, 256) for rows in (32, 128))
    assert small.moved < large.moved <= 17 * small.moved
    assert small.flops <= large.flops


def test_bytes_are_those_of_the_arrays():
    moved = {case.name: case.make(np.random.default_rng(0), np.dtype(np.float32), 8, 16).moved for case in cases.CASES}
    block = 4 * 8 * 16
    assert moved["softmax"] == 2 * block
    assert moved["softmax, gradient"] == 3 * block
    assert moved["layer_norm"] == 2 * block + 4 * (2 * 16 + 2 * 8)
    assert moved["sum"] == block + 4 * 8
    assert moved["adamw"] == 7 * block
    assert moved["clip_by_norm"] == block + 4
    assert moved["matmul"] == 2 * block + 4 * 16 * 16


def test_every_family_is_a_case():
    names = {case.name for case in cases.CASES}
    for family in FAMILIES:
        assert {family.name, f"{family.name}, gradient"} & names == (
            {family.name, f"{family.name}, gradient"} if family.differentiable else {family.name}
        )
    assert len(names) == len(cases.CASES)


def test_cases_are_listed(capsys):
    assert bench.main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [case.name for case in EVERY]
    assert bench.main(["--list", "--only", "rms_norm"]) == 0
    assert capsys.readouterr().out.splitlines() == ["rms_norm", "rms_norm, gradient"]


def test_types_that_a_case_does_not_take_are_left_out():
    case = next(case for case in cases.CASES if case.name == "adamw")
    assert [case.takes(dtype) for dtype in (np.float64, np.float32, np.float16)] == [False, True, True]


@pytest.mark.heavy
def test_cases_are_tuned_ahead(card, monkeypatch, tmp_path):
    monkeypatch.setenv("FGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tune, "REPEATS", 1)
    arguments = ["--only", "softmax", "--sizes", "4x64", "--dtypes", "float32", "--repeats", "1"]
    bench.measure(bench.parsed(arguments), card)
    assert list(tmp_path.glob("*.json")) == []
    bench.measure(bench.parsed([*arguments, "--tune"]), card)
    found = len(list(tmp_path.glob("*.json")))
    assert found >= 4  # softmax and log_softmax forward and backward, of two sizes: that of the check, and this
    bench.measure(bench.parsed([*arguments, "--tune"]), card)
    assert len(list(tmp_path.glob("*.json"))) == found


def test_tuning_needs_a_gpu():
    with pytest.raises(SystemExit, match="--tune: there is no GPU to time on"):
        bench.main(["--tune"])


def test_a_wrong_result_is_not_reported():
    wrong = cases.Case("wrong", cases.rowwise(softmax.softmax_forward, lambda x: x))
    with pytest.raises(AssertionError, match="wrong of float32: the result is wrong"):
        check.require_right(wrong, np.dtype(np.float32), home_of(np.empty(0)))


def test_a_wrong_gradient_is_not_reported():
    right = next(workload for workload in WORKLOADS if workload.name == "softmax")
    _, case = cases.of_workload(replace(right, pull=lambda ct, saved, x: (ct,)))
    with pytest.raises(AssertionError, match="softmax, gradient of float32: the result is wrong"):
        check.require_right(case, np.dtype(np.float32), home_of(np.empty(0)))


def test_kernels_of_ones_own():
    assert cases.found("fgrad.triton_kernels.softmax:softmax_forward")[0].name == "softmax_forward"
    assert len(cases.found("fgrad.triton_kernels.bench.workloads:WORKLOADS")) == len(cases.CASES)
    with pytest.raises(ValueError, match='expected "module:name"'):
        cases.found("softmax")
    with pytest.raises(TypeError, match="expected a Case"):
        cases.found("math:pi")


def test_unknown_names_are_refused():
    with pytest.raises(SystemExit, match="no case is called so; there are cross_entropy, .*softmax"):
        bench.chosen(bench.parsed(["--only", "nothing"]))

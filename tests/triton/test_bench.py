"""The kernel benchmark: without a GPU in full, with one run through on the stand-in."""

import json

import numpy as np
import pytest

from fgrad.triton_kernels import softmax
from fgrad.triton_kernels.bench import __main__ as bench
from fgrad.triton_kernels.bench import cases, check, device, report
from fgrad.triton_kernels.runtime import _HOMES, home_of
from tests.triton import standin

ARGUMENTS = ["--only", "generated softmax,rms_norm", "--sizes", "16x256,16x1000", "--dtypes", "float32"]


@pytest.fixture
def card(driver, record, monkeypatch):
    home = standin.InterpretingHome(standin.Arrays(driver), driver)
    monkeypatch.setitem(_HOMES, standin.DeviceArray, home)
    monkeypatch.setattr(device, "_CEILING_BYTES", 1 << 12)
    monkeypatch.setattr(device, "_SQUARE", 16)
    monkeypatch.setattr(device, "benchmark", lambda f, *args, repeats: device.measured(home, lambda: f(*args), repeats))
    monkeypatch.setattr(device, "peers", lambda case: {})
    return home


@pytest.mark.heavy
def test_without_a_gpu_the_machine_code_is_reported(tmp_path, capsys):
    out, plot = tmp_path / "rows.json", tmp_path / "shares.svg"
    status = bench.main([*ARGUMENTS, "--targets", "sm_90,gfx942", "--out", str(out), "--plot", str(plot)])
    rows = json.loads(out.read_text())
    assert status == 0
    assert len(rows) == 2 * 2 * 2
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
    (row, other) = bench.measure(options, card)
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


@pytest.mark.heavy
@pytest.mark.parametrize("case", [*cases.CASES, *cases.found(cases.GENERATED)], ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_case_is_right(case, dtype):
    check.require_right(case, bench.dtype_of(dtype), home_of(np.empty(0)))


def test_a_wrong_result_is_not_reported():
    wrong = cases.Case("wrong", cases.rowwise(softmax.softmax_forward, lambda x: x))
    with pytest.raises(AssertionError, match="wrong of float32: the result is wrong"):
        check.require_right(wrong, np.dtype(np.float32), home_of(np.empty(0)))


def test_kernels_of_ones_own():
    assert cases.found("fgrad.triton_kernels.softmax:softmax_forward")[0].name == "softmax_forward"
    with pytest.raises(ValueError, match='expected "module:name"'):
        cases.found("softmax")
    with pytest.raises(TypeError, match="expected a Case"):
        cases.found("math:pi")


def test_unknown_names_are_refused():
    with pytest.raises(SystemExit, match="no case is called so; there are softmax"):
        bench.chosen(bench.parsed(["--only", "nothing"]))

"""The script for a card, run through on the stand-in, whose launches are interpreted as well."""

from dataclasses import replace

import numpy as np
import pytest

from fgrad.triton_kernels import reduction, tune
from fgrad.triton_kernels.bench import device
from fgrad.triton_kernels.bench.cases import CASES
from fgrad.triton_kernels.runtime import _HOMES
from tests.triton import gpu, standin
from tests.triton.families import FAMILIES

SMALL = gpu.Sizes(rows=4, columns=32, square=32)
WAYS = [way for way in gpu.WAYS if way is not gpu.launched_by_triton]  # test_native runs that one


@pytest.fixture
def card(driver, record, monkeypatch):
    """Let the stand-in's launches compute."""
    monkeypatch.setitem(_HOMES, standin.DeviceArray, standin.InterpretingHome(standin.Arrays(driver), driver))
    monkeypatch.setattr(gpu, "REPEATS", 3)
    monkeypatch.setattr(tune, "REPEATS", 1)
    monkeypatch.setattr(gpu, "TUNED", ("rms_norm, gradient",))
    monkeypatch.setattr(device, "_CEILING_BYTES", 1 << 12)
    monkeypatch.setattr(device, "_SQUARE", 16)
    monkeypatch.setattr(device, "peers", lambda case: {})
    return record


def run(families, capsys):
    status = gpu.main(standin.DeviceArray, "a stand-in", families, SMALL, WAYS)
    return status, capsys.readouterr().out.splitlines()


def few(family):
    """Return a family with few sizes and types: every one is compiled."""
    return replace(family, sizes=((3, 5),), wide=(17,), dtypes=(np.float32, np.float16))


@pytest.mark.heavy
def test_a_card_that_agrees(card, capsys):
    families = [few(family) for family in FAMILIES if family.name in ("rms_norm", "embedding")]
    status, lines = run(families, capsys)
    assert status == 0
    assert lines[0].startswith("a stand-in, sm_90, Triton 3.")
    assert lines[-1] == "0 failures"
    for family in families:
        rows = [line.split() for line in lines if line.startswith(family.name + " ")]
        assert len(rows) == len(family.dtypes) + 1
        assert all(row[-2:] == ["0", "0"] for row in rows[:-1])
    assert "3 runs with equal bits: 2 of 2 families" in lines
    assert "ways to launch that work: 3 of 3" in lines
    timed = {line[:44].strip() for line in lines if line.endswith("%")}
    assert timed == {"rms_norm", "rms_norm, gradient", "embedding", "embedding, gradient"}
    assert sum(line.startswith("the card's own copy ") for line in lines) == 1
    assert lines[-2].startswith("rms_norm, gradient") or lines[-3].startswith("rms_norm, gradient")  # tuned
    assert card.launches > 100


def test_differences_are_counted_in_units_of_the_last_place_and_integers_agree_or_not():
    x = np.array([1.0, -2.0, np.inf], np.float32)
    assert gpu.difference(x, x) == 0
    assert gpu.difference(x + np.float32(2**-22), x) == 1
    assert gpu.difference(np.array([1.0, np.nan, np.inf]), x) == np.inf
    index = np.array([3, 5])
    assert gpu.difference(index, index) == 0
    assert gpu.difference(index + 1, index) == np.inf
    assert gpu.difference(index[:0], index[:0]) == 0


@pytest.mark.heavy
def test_every_family_has_inputs_that_it_takes():
    for family in FAMILIES:
        for _, arrays, ct, _, _ in gpu.cases(replace(family, wide=(7,)), family.dtypes[-1]):
            assert len(arrays) >= 1
            assert ct is not None


@pytest.mark.slow
def test_every_family_runs_through(card, capsys):
    families = [replace(few(family), dtypes=family.dtypes[-1:]) for family in FAMILIES]
    status, lines = run(families, capsys)
    assert status == 0, lines[-20:]
    timed = {line[:44].strip() for line in lines if line.endswith("%")}
    assert timed == {case.name for case in CASES}


@pytest.mark.heavy
def test_compiling_ahead(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    gpu.warm([replace(next(f for f in FAMILIES if f.name == "sum"), dtypes=(np.float32,))], "sm_90", 1, SMALL)
    assert any(tmp_path.rglob("*.cubin"))
    gpu.warm(FAMILIES, "sm_1", 1, SMALL)


@pytest.mark.heavy
def test_a_card_that_does_not_agree(card, capsys, monkeypatch):
    monkeypatch.setattr(gpu, "roofline", lambda *args: [])
    monkeypatch.setattr(gpu, "tuned", lambda *args: [])
    runs = iter(range(1000))

    def run_wrong(x):
        out = reduction.reduce_forward(x, "sum")
        return (out if isinstance(x, np.ndarray) else out * (1 + next(runs) / 100)), (out,)

    family = next(f for f in FAMILIES if f.name == "sum")
    broken = replace(family, run=run_wrong, sizes=((3, 5),), wide=(7,), dtypes=(np.float32,))
    status, lines = run([broken], capsys)
    assert status == 1
    failures = lines[lines.index(next(line for line in lines if line.endswith(" failures"))) :]
    assert any("sum, float32, transposed" in line for line in failures)
    assert "  sum: 3 different results in 3 runs" in failures

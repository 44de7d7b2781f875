"""The script for a card, run through on the stand-in, whose launches are interpreted as well."""

from dataclasses import replace

import numpy as np
import pytest

from fgrad.triton_kernels import reduction
from fgrad.triton_kernels.runtime import _HOMES
from tests.triton import gpu, standin
from tests.triton.families import FAMILIES

SMALL = gpu.Sizes(rows=4, columns=32, square=32, sequence=32, flush=1 << 14)
WAYS = [way for way in gpu.WAYS if way is not gpu.launched_by_triton]  # test_native runs that one


@pytest.fixture
def card(driver, record, monkeypatch):
    """Let the stand-in's launches compute."""
    monkeypatch.setitem(_HOMES, standin.DeviceArray, standin.InterpretingHome(standin.Arrays(driver), driver))
    monkeypatch.setattr(gpu, "REPEATS", 3)
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
        assert sum(line.startswith(f"{family.name}, gradient") for line in lines) == 1
    assert "3 runs with equal bits: 2 of 2 families" in lines
    assert "ways to launch that work: 3 of 3" in lines
    shares = {line[:44].strip(): line.split()[-1] for line in lines if line.endswith("%")}
    assert shares["the card's own copy"] == shares["the card's own product"] == "100%"
    assert {"matmul", "attention", "attention, gradient"} < set(shares)
    assert card.launches > 100


@pytest.mark.heavy
def test_compiling_ahead(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    gpu.warm([replace(next(f for f in FAMILIES if f.name == "sum"), dtypes=(np.float32,))], "sm_90", 1)
    assert any(tmp_path.rglob("*.cubin"))
    gpu.warm(FAMILIES, "sm_1", 1)


@pytest.mark.heavy
def test_a_card_that_does_not_agree(card, capsys, monkeypatch):
    monkeypatch.setattr(gpu, "roofline", lambda *args: None)
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

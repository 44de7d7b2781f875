"""The main job: all ways agree, both full ones learn the digits, and the page of results is complete."""

import importlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.xdist_group("digits")  # one run of the example
KERNEL = "Triton loss"


def run(examples, out, *options):
    command = [sys.executable, str(examples / "digits.py"), "--out", str(out), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True)


@pytest.fixture(scope="module")
def reduced(examples_on_path, tmp_path_factory):
    out = tmp_path_factory.mktemp("digits")
    return run(examples_on_path, out, "--epochs", "2", "--kernel-steps", "2"), out


@pytest.mark.heavy
def test_prints_the_table_and_where_the_plot_is(reduced):
    done, out = reduced
    for text in ("functional", "imperative", "Triton loss", "test accuracy", "loss", "time/step", "gradients off"):
        assert text in done.stdout
    assert f"loss curves: {out / 'digits_loss.png'}" in " ".join(done.stdout.split())


@pytest.mark.heavy
def test_shows_progress(reduced):
    assert "100%" in reduced[0].stderr or "step/s" in reduced[0].stderr


@pytest.mark.heavy
def test_draws_the_loss_curves(reduced):
    assert (reduced[1] / "digits_loss.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def digits(examples_on_path):
    return importlib.import_module("digits")


def test_a_way_that_cannot_run_says_why(digits, monkeypatch):
    def train(*args):
        raise ImportError("needs Triton")
        yield

    monkeypatch.setattr(digits.kernel, "train", train)
    runs, missing, accuracies = digits.compare(epochs=1)
    assert [run.way for run in runs] == ["functional", "imperative"]
    assert missing == [(KERNEL, "needs Triton")]
    assert f"{KERNEL}: needs Triton" in list(digits.table(runs, missing, accuracies).columns[0].cells)


@pytest.mark.heavy
def test_ways_agree_and_learn(digits, record_property):
    runs, missing, accuracies = digits.compare(epochs=30, kernel_steps=3)
    full = [run for run in runs if len(run.losses) > 3]
    assert [run.way for run in full] == ["functional", "imperative"]
    assert not missing or importlib.util.find_spec("triton") is None
    for way, accuracy in zip(full, accuracies, strict=False):
        assert accuracy >= 0.96, way.way
    for other in runs[1:]:
        difference = digits.largest_difference(other, runs[0])
        record_property(f"digits, {other.way}: gradients differ by", f"{difference:.1e}")
        assert difference <= 1e-5, other.way
    for x, y in zip(full[0].losses[:50], full[1].losses[:50], strict=True):
        assert x == pytest.approx(y, rel=1e-4)

"""Every example of the gallery runs, finds what it claims and draws its picture, which the page shows."""

import importlib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "examples.md").read_text()
GALLERY = sorted(path.stem for path in (DOCS / "examples").glob("*.svg"))


@pytest.fixture
def run(tmp_path, capsys):
    """Run an example, and return what it found and what it printed."""

    def run(name, **options):
        pytest.importorskip("matplotlib")
        found = importlib.import_module(name).main(tmp_path, **options)
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000
        return found, capsys.readouterr().out

    return run


@pytest.mark.parametrize("name", GALLERY)
def test_the_page_shows_it(name, examples_on_path):
    assert f"](examples/{name}.svg)" in PAGE
    assert f"`examples/{name}.py`" in PAGE
    assert (examples_on_path / f"{name}.py").exists()


@pytest.mark.heavy
def test_energy_is_conserved_while_neighbours_part(run, monkeypatch):
    monkeypatch.setattr(importlib.import_module("physics"), "STEPS", 2000)
    (drift, growth), text = run("physics")
    assert drift < 1e-3
    assert growth[-1] > 1e6
    assert "energy" in text


@pytest.mark.heavy
def test_all_methods_find_one_optimum(run):
    results, _ = run("gaussian_process")
    assert len({round(best.fun, 4) for best in results.values()}) == 1
    assert results["Newton-CG"].nfev < results["Nelder-Mead"].nfev / 5


@pytest.mark.heavy
def test_the_gradient_of_a_solution_is_that_of_the_loop(run):
    (difference, losses, right), text = run("implicit_layer")
    assert difference < 1e-8
    assert losses[-1] < 0.01
    assert right == 1
    assert "MiB saved" in text.splitlines()[1]


@pytest.mark.heavy
def test_noise_costs_accuracy(run):
    accuracies, _ = run("private_gradients")
    assert accuracies[0.0] > 0.9 > accuracies[10.0]


@pytest.mark.heavy
def test_the_transformer_learns_letters(run):
    losses, text = run("characters", steps=20)
    assert losses[-1] < 0.8 * losses[0]
    assert "bits a letter" in text


@pytest.mark.heavy
def test_the_kernel_passes_its_check_and_learns(run):
    (report, losses), _ = run("own_kernel", steps=30, targets=("sm_90",))
    assert not report.failed
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.heavy
def test_the_repaired_model_runs_fewer_operations(run):
    rows, text = run("slow_model")
    counts = [operations for _, operations in rows.values()]
    assert counts[0] > 100 * counts[1] > 200 * counts[2]
    assert "one body" in text


@pytest.mark.heavy
def test_newton_converges_on_the_sparse_system(run):
    force, rounds = run("sparse_newton")[0]
    assert force < 1e-8
    assert rounds < 20

"""Tuning of generated kernels: the fastest configuration is kept, and computes what the rule does."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
import fgrad.numpy as fnp
from fgrad.backend.gpu.program import GpuProgram
from fgrad.backend.gpu.tuning import _programs, configurations, content_hash
from fgrad.triton_kernels import tune
from fgrad.triton_kernels.driver import Driver
from fgrad.triton_kernels.runtime import _HOMES, launching
from tests.triton import standin
from tests.triton.standin import DeviceArray

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 40)).astype(np.float32)


class Clock(standin.InterpretingHome):
    """A card on which a configuration takes as long as told: by its rows at once and warps."""

    def __init__(self, driver, milliseconds):
        super().__init__(standin.Arrays(driver), driver)
        self.launches = []
        self.trials = 0
        self.milliseconds = milliseconds
        self.elapsed = self._told

    def execute(self, launch):
        super().execute(launch)
        self.launches.append(launch.meta)

    def _told(self, call):
        self.trials += 1
        call()
        return self.milliseconds(self.launches[-1])


def smallest_is_fastest(meta):
    return meta["ROWS"] + meta["num_warps"] / 100


def largest_is_fastest(meta):
    return 1000 - meta["ROWS"] - meta["num_warps"] / 100


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tune, "REPEATS", 1)


@pytest.fixture
def new_card(driver, record, monkeypatch):
    """Return a function that puts a card with such times in the place of all before, as a new process has it."""

    def make(milliseconds=smallest_is_fastest):
        home = Clock(driver, milliseconds)
        monkeypatch.setitem(_HOMES, DeviceArray, home)
        return home

    return make


def spread(x):
    return fnp.tanh(x) - fnp.tanh(x).mean(1, keepdims=True)


def source_of(f, *args):
    (source, *_) = GpuProgram(fgrad.make_ir(f)(*args).simplify()).sources
    return source


def run(x, **options):
    """Run `spread` on the card; return the configuration of the last launch."""
    result = fgrad.jit(spread, device="cuda", **options)(x)
    np.testing.assert_allclose(fgrad.to_numpy(result), spread(x), rtol=1e-4, atol=1e-5)
    meta = _HOMES[DeviceArray].launches[-1]
    return {name: meta[name] for name in ("ROWS", "BLOCK", "num_warps")}


def test_the_fastest_is_used_and_kept(new_card, tmp_path):
    configs = configurations(source_of(spread, X))
    card = new_card()
    assert run(X, tune=True) == min(configs, key=smallest_is_fastest) != configs[0]
    assert card.trials == len(configs)
    assert len(list(tmp_path.glob("*.json"))) == 1
    assert run(X, tune=True) == run(X) == min(configs, key=smallest_is_fastest)
    assert card.trials == len(configs)
    later = new_card(largest_is_fastest)
    assert run(X) == run(X, tune=True) == min(configs, key=smallest_is_fastest)
    assert later.trials == 0


def test_without_tuning_the_rule_holds(new_card, tmp_path):
    card = new_card()
    assert run(X) == configurations(source_of(spread, X))[0]
    assert card.trials == 0
    assert list(tmp_path.glob("*.json")) == []
    assert run(X, tune=True) == min(configurations(source_of(spread, X)), key=smallest_is_fastest)


def test_other_sizes_types_and_versions_are_tuned_anew(new_card, monkeypatch):
    card = new_card()

    def tunes(rows, columns, dtype=np.float32):
        before = card.trials
        run(np.ones((rows, columns), dtype), tune=True)
        return card.trials > before

    assert [tunes(60, 40), tunes(64, 40), tunes(33, 40)] == [True, False, False]
    assert [tunes(65, 40), tunes(60, 72), tunes(60, 40, np.float64)] == [True, True, True]
    card = new_card()
    assert not tunes(60, 40)
    monkeypatch.setattr(tune.toolchain, "version", "0.0")
    card = new_card()
    assert tunes(60, 40)


def test_the_choice_is_that_of_the_text_not_of_its_place():
    one, other = (source_of(f, X) for f in (lambda x: fnp.tanh(x) + 1, lambda x: fnp.tanh(x) + 1))
    assert content_hash(one.name, one.text) == content_hash("k", other.text.replace(other.name, "k"))
    third = source_of(lambda x: fnp.tanh(x) + 2, X)
    assert content_hash(one.name, one.text) != content_hash(third.name, third.text)


@pytest.mark.parametrize("text", ["", '{"ROWS": 1', "99", "-1", "true", '"a"', "[]", "null", "[" * 100_000, "1.5"])
def test_broken_and_foreign_files_are_ignored(new_card, tmp_path, text):
    new_card()
    best = run(X, tune=True)
    (path,) = tmp_path.glob("*.json")
    path.write_text(text)
    card = new_card()
    assert run(X) == configurations(source_of(spread, X))[0]
    assert run(X, tune=True) == best
    assert card.trials > 0
    assert path.read_text() == str(configurations(source_of(spread, X)).index(best))


def test_a_directory_that_cannot_be_written(new_card, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FGRAD_CACHE_DIR", str(tmp_path / "file" / "cache"))
    card = new_card()
    best = min(configurations(source_of(spread, X)), key=smallest_is_fastest)
    assert run(X, tune=True) == run(X) == best
    trials = card.trials
    assert run(X, tune=True) == best
    assert card.trials == trials


def test_everything_in_a_block_is_tuned(new_card):
    card = new_card()
    there = fgrad.device_put(X, "cuda")
    with fgrad.triton_kernels.tuning():
        _, pull = fgrad.vjp(fgrad.jit(spread), there)
        forward = card.trials
        pull(there)
    assert 0 < forward < card.trials


def test_replayed_launches_are_tuned_before_they_are_recorded(new_card):
    card = new_card()
    assert run(X, tune=True, replay=True) == min(configurations(source_of(spread, X)), key=smallest_is_fastest)
    assert card.trials > 0


def test_empty_arrays_are_not_tuned(new_card):
    card = new_card()
    result = fgrad.jit(lambda x: fnp.tanh(x) + 1, device="cuda", tune=True)(np.ones((0, 4), np.float32))
    assert result.shape == (0, 4)
    assert card.trials == 0


def test_the_twin_has_nothing_to_tune(tmp_path):
    np.testing.assert_allclose(fgrad.jit(spread, device="twin", tune=True)(X), spread(X), rtol=1e-4, atol=1e-5)
    assert list(tmp_path.glob("*.json")) == []


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def norm_backward(ct, x, scale):
    return fgrad.vjp(lambda x, scale: fgrad.nn.standardize(x) * scale, x, scale)[1](ct)


FORMS = {
    "flat": (lambda x: fnp.tanh(x) * 2, normal(7, 9)),
    "rows": (spread, X),
    "long rows in steps": (fgrad.nn.softmax, normal(2, 17_000)),
    "columns of middle axes": (lambda x: fgrad.nn.softmax(x, axis=1), normal(3, 20, 5)),
    "sum of all": (lambda x: (x * x).sum(), normal(90, 70)),
    "sums over rows": (norm_backward, normal(90, 40), normal(90, 40), normal(40)),
    "one row": (spread, normal(1, 40)),
}


@pytest.mark.heavy
@pytest.mark.parametrize("form", FORMS)
def test_every_configuration_computes_what_the_rule_does(form):
    f, *args = FORMS[form]
    compiled = GpuProgram(fgrad.make_ir(f)(*args).simplify())
    expected = compiled.compute(*args)
    for source in [*compiled.sources, *compiled.finishing.values()]:
        for config in configurations(source):
            source.ways.clear()
            source.ways[None] = (
                tune.Choice(config, True, None),
                _programs(source, config),
                {**source.constexprs, **config},
            )
            once, again = compiled.compute(*args), compiled.compute(*args)
            for x, y, want in zip(once, again, expected, strict=True):
                assert x.tobytes() == y.tobytes()
                np.testing.assert_allclose(x, want, rtol=2e-5, atol=2e-5 * max(1, np.abs(want).max()))
        source.ways.clear()


@pytest.mark.heavy
@pytest.mark.parametrize("form", FORMS)
def test_configurations_differ_and_fit(form):
    f, *args = FORMS[form]
    for source in GpuProgram(fgrad.make_ir(f)(*args).simplify()).sources:
        configs = configurations(source)
        assert configs[0] == {k: v for k, v in source.constexprs.items() if k in ("ROWS", "BLOCK")} | {
            "num_warps": source.warps
        }
        assert len({tuple(config.items()) for config in configs}) == len(configs) <= 18
        for config in configs:
            assert all(value & (value - 1) == 0 for value in config.values())
            assert config["num_warps"] <= 16


def tuned_elsewhere(library):
    """Tune in this process, on a card of its own; return what was chosen and how many trials it took."""
    driver = Driver(library)
    _HOMES[DeviceArray] = card = Clock(driver, smallest_is_fastest)
    tune.REPEATS = 1
    return run(X, tune=True), card.trials


@pytest.mark.heavy
def test_processes_share_what_they_find(driver, tmp_path, tmp_path_factory):
    library = str(standin.build(tmp_path_factory.mktemp("library")))
    best = min(configurations(source_of(spread, X)), key=smallest_is_fastest)
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        assert [config for config, _ in pool.map(tuned_elsewhere, [library] * 4)] == [best] * 4
    assert [path.suffix for path in tmp_path.iterdir() if "kernel_" not in path.name].count(".json") == 1
    assert not any(name.startswith("tmp") for name in os.listdir(tmp_path))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(tuned_elsewhere, library).result() == (best, 0)


def test_launches_that_are_looked_at_follow_the_rule(new_card):
    new_card()
    run(X, tune=True)
    seen = []
    program = GpuProgram(fgrad.make_ir(spread)(X).simplify())
    with launching(seen.append):
        program.compute(fgrad.device_put(X, "cuda"))
    assert seen[0].meta["ROWS"] == program.sources[0].constexprs["ROWS"]

"""Tuned kernels: the fastest configuration is found on copies, kept, and changes nothing but speed."""

import numpy as np
import pytest
import triton
import triton.language as tl

from fgrad.triton_kernels import attention, matmul, norm, softmax, store, tuning
from fgrad.triton_kernels.runtime import _HOMES, Launch, interpret_launch, launch, launching
from fgrad.triton_kernels.tiling import row_configurations
from fgrad.triton_kernels.tune import Tuner, strided_copy
from tests.triton import standin

CONFIGS = [triton.Config({"BLOCK": block}, num_warps=block // 16) for block in (16, 32, 64)]


@triton.autotune(CONFIGS, key=["n"])
@triton.jit
def accumulate(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(out + at, mask=mask, other=0.0) + tl.load(x + at, mask=mask, other=0.0), mask=mask)


@triton.heuristics({"EVEN": lambda named: named["n"] % named["BLOCK"] == 0})
@triton.autotune(CONFIGS[:1], key=[])
@triton.heuristics({"HALF": lambda named: named["BLOCK"] // 2})
@triton.jit
def layered(out, n, BLOCK: tl.constexpr, HALF: tl.constexpr, EVEN: tl.constexpr):
    tl.store(out + tl.arange(0, HALF), EVEN)


def programs(named):
    return triton.cdiv(named["n"], named["BLOCK"])


class Clock:
    """A timer that is told how long each configuration takes, by its block."""

    def __init__(self, milliseconds):
        self.milliseconds = milliseconds
        self.blocks = []
        self.tuner = Tuner(self.execute, self.elapsed, "sm_90")

    def execute(self, launch):
        self.blocks.append(launch.meta["BLOCK"])
        if self.milliseconds[launch.meta["BLOCK"]] is None:
            raise ValueError("does not fit")
        interpret_launch(launch)

    def elapsed(self, call):
        call()
        return self.milliseconds[self.blocks[-1]]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FGRAD_CACHE_DIR", str(tmp_path))


def test_15_the_first_call_does_what_later_calls_do():
    clock = Clock({16: 3.0, 32: 1.0, 64: 2.0})
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    for call in (1, 2, 3):
        resolved = clock.tuner.resolve(Launch(accumulate, programs, (x, out, 100), {}))
        interpret_launch(resolved)
        np.testing.assert_array_equal(out, call)
    assert (x == 1).all()
    assert (resolved.meta["BLOCK"], resolved.meta["num_warps"]) == (32, 2)


def test_a_kernel_is_tuned_once_for_each_key_and_type():
    clock = Clock({16: 3.0, 32: 1.0, 64: 2.0})

    def tunes(n, dtype):
        before = len(clock.blocks)
        clock.tuner.resolve(Launch(accumulate, programs, (np.ones(n, dtype), np.zeros(n, dtype), n), {}))
        return len(clock.blocks) > before

    assert [tunes(8, "f4"), tunes(8, "f4"), tunes(9, "f4"), tunes(8, "f8"), tunes(9, "f4")] == [1, 0, 1, 1, 0]


def test_the_choice_outlives_the_process():
    arrays = np.ones(8, np.float32), np.zeros(8, np.float32)
    first = Clock({16: 3.0, 32: 1.0, 64: 2.0})
    first.tuner.resolve(Launch(accumulate, programs, (*arrays, 8), {}))
    later = Clock({16: 1.0, 32: 9.0, 64: 9.0})
    assert later.tuner.resolve(Launch(accumulate, programs, (*arrays, 8), {})).meta["BLOCK"] == 32
    assert later.blocks == []


def test_configurations_that_do_not_fit_are_left_out():
    arrays = np.ones(8, np.float32), np.zeros(8, np.float32)
    clock = Clock({16: 3.0, 32: None, 64: 4.0})
    assert clock.tuner.resolve(Launch(accumulate, programs, (*arrays, 8), {})).meta["BLOCK"] == 16
    with pytest.raises(ValueError, match=r"no configuration of the kernel runs:\n.*'BLOCK': 16.*does not fit"):
        Clock(dict.fromkeys((16, 32, 64))).tuner.resolve(Launch(accumulate, programs, (*arrays, 9), {}))


def test_heuristics_above_and_below_a_tuner():
    resolved = Clock({}).tuner.resolve(Launch(layered, 1, (np.zeros(16), 32), {"BLOCK": 16}))
    assert {name: resolved.meta[name] for name in ("EVEN", "HALF", "num_warps")} == {
        "EVEN": True,
        "HALF": 8,
        "num_warps": 1,
    }


def test_hooks_of_configurations_are_refused():
    tuned = triton.autotune([triton.Config({"BLOCK": 16}, pre_hook=print)], key=[])(accumulate.fn)
    with pytest.raises(NotImplementedError, match="pre_hook: launch with"):
        Clock({}).tuner.resolve(Launch(tuned, 1, (np.zeros(1), np.zeros(1), 1), {}))


def test_launches_on_a_device_are_tuned(record):
    x, out = (standin.DeviceArray(np.zeros(100, np.float32)) for _ in range(2))
    launch(accumulate, programs, x, out, 100)
    trials = record.launches
    assert trials > 3 * 20
    assert record.loads == 3
    launch(accumulate, programs, x, out, 100)
    assert record.launches == trials + 1
    assert record.block[0] in (32, 64, 128)


@pytest.mark.parametrize("text", ["", "[1", "3", "-1", "true", '"1"', "[]", "null", "[" * 100_000])
def test_broken_and_foreign_files_are_ignored(tmp_path, text):
    arrays = np.ones(8, np.float32), np.zeros(8, np.float32)
    clock = Clock({16: 3.0, 32: 1.0, 64: 2.0})
    clock.tuner.resolve(Launch(accumulate, programs, (*arrays, 8), {}))
    (path,) = tmp_path.glob("*.json")
    path.write_text(text)
    later = Clock({16: 1.0, 32: 9.0, 64: 9.0})
    assert later.tuner.resolve(Launch(accumulate, programs, (*arrays, 8), {})).meta["BLOCK"] == 16
    assert path.read_text() == "0"


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr(store.os, "replace", refuse)
    assert store.remembered("key", lambda: 3) == 3
    assert list(tmp_path.iterdir()) == []
    assert store.recalled("key") is None


LAYOUTS = {
    "packed": lambda x: x,
    "transposed": lambda x: x.T,
    "sliced": lambda x: x[1::2, ::3],
    "backwards": lambda x: x[::-1, ::-2],
    "broadcast": lambda x: np.broadcast_to(x[:, :1], (6, 50)),
    "one": lambda x: x[2:3, 4:5],
    "empty": lambda x: x[:0],
    "no axes": lambda x: x[2, 3, ...],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_have_the_strides_that_a_kernel_was_told(layout):
    x = LAYOUTS[layout](np.arange(60.0, dtype=np.float32).reshape(6, 10))
    copy = strided_copy(np, x)
    np.testing.assert_array_equal(copy, x)
    assert not x.size or copy.strides == x.strides or x.flags.c_contiguous
    assert not np.shares_memory(copy, x)


class Card(standin.InterpretingHome):
    """A card on which the last configuration that was compiled is always the fastest."""

    def __init__(self, driver):
        super().__init__(standin.Arrays(driver), driver)
        self.launches = []
        self.trials = 0
        self.elapsed = self._told

    def execute(self, launch):
        super().execute(launch)
        self.launches.append(launch.meta)

    def _told(self, call):
        self.trials += 1
        call()
        return 1 / self.trials


@pytest.fixture
def card(driver, record, monkeypatch):
    monkeypatch.setattr("fgrad.triton_kernels.tune.REPEATS", 1)
    home = Card(driver)
    monkeypatch.setitem(_HOMES, standin.DeviceArray, home)
    return home


def test_kernels_of_the_library_are_tuned_where_it_is_asked_for(card):
    x = np.random.default_rng(0).normal(size=(3, 600)).astype(np.float32)
    there = standin.DeviceArray(x)
    rule, *others = row_configurations(600)

    def used():
        out = softmax.softmax_forward(there)
        np.testing.assert_allclose(card.to_numpy(out), softmax.softmax_forward(x), rtol=1e-5)
        return {name: card.launches[-1][name] for name in rule}

    assert used() == rule
    assert card.trials == 0
    with tuning():
        assert used() == others[-1]
    assert card.trials == 1 + len(others)
    assert used() == others[-1]
    assert card.trials == 1 + len(others)
    seen = []
    with launching(seen.append):
        softmax.softmax_forward(there)
    assert seen[0].meta["num_warps"] == rule["num_warps"]


def drawn(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def _norm_backward(ct, x, weight):
    _, mean, rstd = norm.layer_norm_forward(x, weight, weight)
    return norm.layer_norm_backward(ct, x, weight, weight, mean, rstd)


def _products(x, y, bias):
    out, before = matmul.linear_forward(x, y, bias, activation="silu")
    return out, *matmul.linear_backward(out, x, y, bias, before, activation="silu")


def _attention(q, k, v):
    out, lse = attention.attention_forward(q, k, v, causal=True)
    return out, *attention.attention_backward(out, q, k, v, out, lse, causal=True)


TUNED = {
    "softmax of long rows": (softmax.log_softmax_forward, drawn(2, 17_000)),
    "norm": (_norm_backward, drawn(5, 20), drawn(5, 20), drawn(20)),
    "norm of transposed rows": (_norm_backward, drawn(20, 5).T, drawn(20, 5).T, drawn(20)),
    "products": (_products, drawn(40, 70), drawn(70, 50), drawn(50)),
    "attention": (_attention, *[drawn(1, 2, 40, 16)] * 3),
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", TUNED)
def test_every_configuration_computes_what_the_rule_does(case, monkeypatch):
    function, *arrays = TUNED[case]
    expected, counts = function(*arrays), []
    for k in range(14):

        def launch_one(kernel, grid, *args, configs, sizes, k=k, **meta):
            counts.append(len(configs()))
            launch(kernel, grid, *args, **configs()[k % len(configs())], **meta)

        for module in (softmax, norm, attention, matmul):
            monkeypatch.setattr(module, "launch_fastest", launch_one)
        for got, want in zip(
            *[x if isinstance(x, tuple) else (x,) for x in (function(*arrays), expected)], strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert 1 < max(counts) <= 14


@pytest.mark.heavy
def test_kernels_that_take_strides_are_tuned_on_copies_with_the_same(card):
    ct, x, weight = TUNED["norm of transposed rows"][1:]
    with tuning():
        results = _norm_backward(*map(standin.DeviceArray, (ct, x, weight)))
    assert card.trials > 3
    for got, want in zip(results, _norm_backward(ct, x, weight), strict=True):
        np.testing.assert_allclose(card.to_numpy(got), want, rtol=1e-4, atol=1e-4)

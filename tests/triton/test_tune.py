"""Tuned kernels: the fastest configuration is found on copies, kept, and changes nothing but speed."""

import numpy as np
import pytest
import triton
import triton.language as tl

from fgrad.triton_kernels.runtime import Launch, interpret_launch, launch
from fgrad.triton_kernels.tune import Tuner
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

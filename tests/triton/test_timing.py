"""Timing by a home's events: what is timed, what is refused."""

import numpy as np
import pytest

from fgrad.triton_kernels import benchmark, cross_entropy
from fgrad.triton_kernels.runtime import home_of
from fgrad.triton_kernels.timing import measured
from tests.triton import standin


class Clock:
    """A home whose events are made up: the calls take 1, 2, 3, … milliseconds, the last one first."""

    def __init__(self, count):
        self.left = count

    def elapsed(self, call):
        call()
        self.left -= 1
        return self.left + 1.0


def test_the_median_and_the_quantiles():
    done = []
    timing = measured(Clock(10), lambda: done.append("call"), 10, lambda: done.append("between"))
    assert (timing.low, timing.median, timing.high) == (3, 6, 9)
    assert done == ["call"] + ["between", "call"] * 10
    assert timing.rate(6) == 1000


def test_a_function_on_a_device_is_timed_with_the_cache_emptied_between(record, monkeypatch):
    flushed = []
    home = home_of(standin.DeviceArray(np.ones(1)))
    monkeypatch.setattr(home, "zeros", lambda like, shape, dtype: flushed.append((shape, dtype)))
    logits = standin.DeviceArray(np.ones((2, 8), np.float32))
    labels = standin.DeviceArray(np.ones(2, np.int64))
    timing = benchmark(cross_entropy.cross_entropy_forward, logits, labels, repeats=3, flushed_bytes=64)
    assert 0 < timing.low <= timing.median <= timing.high
    assert record.launches == 1 + 3
    assert flushed == [((64,), np.uint8)] * 3


def test_host_arrays_and_zeros_are_refused(record):
    with pytest.raises(TypeError, match="benchmark: no argument lies on a GPU"):
        benchmark(np.sum, np.ones(3))
    with pytest.raises(TypeError, match="benchmark: no argument lies on a GPU"):
        benchmark(abs, 3)
    with pytest.raises(ValueError, match="benchmark: array 1 begins with nothing but zeros"):
        benchmark(np.add, *(standin.DeviceArray(np.full(3, x)) for x in (1.0, 0.0)))

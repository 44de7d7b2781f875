"""What being observed costs: `python -m benchmarks.profiling` prints nanoseconds by event, and what being off costs.

A row's overhead is the time of a call inside a profile less that outside, by the number of its events. The least of
many short samples counts: a busy machine only ever adds.
"""

from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

import fgrad
import fgrad.compat as torch
from fgrad.core import TABLE

TARGET = 2_000
"""Nanoseconds by event that a profile may cost."""


class Row(NamedTuple):
    """One call: its events, nanoseconds by event outside, and what a profile adds with and without shapes."""

    name: str
    events: int
    off: float
    shapes: float
    plain: float


def calls():
    """Return the calls that are measured, each with how often one sample runs it."""
    x, t, w = np.ones(4), torch.ones(4), torch.ones(4, requires_grad=True)
    mul, jitted = TABLE["mul"], fgrad.jit(lambda x: np.tanh(x) * 2)
    gradient = fgrad.grad(lambda x: (np.tanh(x) * x + np.exp(x) * x).sum())

    def backward():
        y = w
        for _ in range(50):
            y = y * w
        y.sum().backward()

    return {
        "a primitive": (lambda: mul(x, x), 200),
        "tensors": (lambda: t * t, 200),
        "tensors, recorded": (lambda: t * w, 200),
        "51 operations, forward and backward": (backward, 1),
        "grad, 22 events": (lambda: gradient(x), 5),
        "jit": (lambda: jitted(x), 100),
    }


def least(call, repeat, samples):
    """Return the nanoseconds of one call, the least of several samples."""
    best = float("inf")
    for _ in range(samples):
        start = perf_counter_ns()
        for _ in range(repeat):
            call()
        best = min(best, (perf_counter_ns() - start) / repeat)
    return best


def measure(samples=60):
    """Return a row for each call."""
    rows = []
    for name, (call, repeat) in calls().items():
        call()
        with fgrad.profile() as prof:
            call()
        count = len(prof.function_events)
        off = least(call, repeat, samples)
        with fgrad.profile():
            shapes = least(call, repeat, samples)
        with fgrad.profile(record_shapes=False):
            plain = least(call, repeat, samples)
        rows.append(Row(name, count, off / count, (shapes - off) / count, (plain - off) / count))
    return rows


def entering(samples=20):
    """Return the nanoseconds that entering and leaving a profile takes."""

    def enter():
        with fgrad.profile():
            pass

    return least(enter, 1, samples)


def left_behind(samples=200):
    """Return the nanoseconds of a small operation before any profile, and after one has ended."""
    t = torch.ones(4)
    before = least(lambda: t * t, 200, samples)
    with fgrad.profile():
        t * t
    return before, least(lambda: t * t, 200, samples)


def main():
    before, after = left_behind()
    print(f"off: an operation takes {before:.0f} ns before any profile, {after:.0f} ns after one has ended")
    print(f"entering and leaving: {entering() / 1e3:.0f} us")
    print(f"{'by event, in ns':38}{'events':>7}{'off':>8}{'+ on':>8}{'+ on, without shapes':>22}")
    for row in measure():
        over = "" if row.shapes <= TARGET else "  over the target"
        print(f"{row.name:38}{row.events:7}{row.off:8.0f}{row.shapes:8.0f}{row.plain:22.0f}{over}")


if __name__ == "__main__":
    main()

"""What this machine can do at best: how fast a copy moves bytes and a matrix product computes, measured when asked."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fgrad.profiler.record import now


class Ceiling(NamedTuple):
    """The best speeds: bytes a second of a large copy (read and written), flops a second of a float32 product."""

    bytes_per_s: float
    flops_per_s: float

    def ideal_ns(self, bytes: int, flops: int) -> float:
        """Return the least time in which so much can be moved and computed, in nanoseconds.

        Source: Williams, Waterman, Patterson (2009), the roofline model.
        """
        return 1e9 * max(bytes / self.bytes_per_s, flops / self.flops_per_s)

    def __str__(self) -> str:
        return f"a copy ({self.bytes_per_s / 1e9:.1f} GB/s) and a product ({self.flops_per_s / 1e9:.0f} GFLOP/s)"


@functools.cache
def measured_ceiling() -> Ceiling:
    """Measure the ceiling of this machine, once a process: a tenth of a second, some 100 MB.

    Example:
        >>> from fgrad.profiler import measured_ceiling
        >>> measured_ceiling().flops_per_s > 1e8
        True
    """
    source = np.ones(8_000_000, np.float32)
    target = np.empty_like(source)
    moved = 2 * source.nbytes / _best(lambda: np.copyto(target, source))
    n = 768
    a = np.ones((n, n), np.float32)
    out = np.empty_like(a)
    done = 2 * n**3 / _best(lambda: np.matmul(a, a, out))
    return Ceiling(moved, done)


def _best(run: Callable[[], Any], times: int = 5) -> float:
    """Return the shortest of several times, in seconds."""
    seconds = []
    for _ in range(times):
        start = now()
        run()
        seconds.append((now() - start) / 1e9)
    return min(seconds)

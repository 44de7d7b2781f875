"""How long what runs on a GPU takes: by the device's own events, its second-level cache emptied before each run."""

from dataclasses import dataclass

from .runtime import arrays_of, home_of

FLUSHED_BYTES = 256 << 20
"""More than twice the second-level cache of any card."""

_LOOKED_AT = 4096


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one call: the median, and what 20 and 80 of 100 calls stay below."""

    median: float
    low: float
    high: float

    def rate(self, amount):
        """Return how much a second: bytes, operations."""
        return amount / self.median * 1e3


def benchmark(function, *args, repeats=20, flushed_bytes=FLUSHED_BYTES):
    """Time `function(*args)` on the GPU that holds its arrays.

    Args:
        function: launches kernels on the current stream; it is called once to compile, then `repeats` times.
        *args: its arguments, among them at least one array on a GPU.
        repeats: how often it is timed.
        flushed_bytes: how much is written between runs, so that none finds its inputs in a cache.

    Returns:
        A `Timing`.

    Raises:
        TypeError: no argument lies on a GPU: the time of an interpreted kernel says nothing.
        ValueError: an array holds nothing but zeros, which draw less power and run faster than data.
    """
    arrays = arrays_of(args)
    home = home_of(arrays[0]) if arrays else None
    if not hasattr(home, "elapsed"):
        raise TypeError("benchmark: no argument lies on a GPU; see compile_kernel for what can be said without one")
    for at, array in enumerate(arrays):
        if array.size and not home.to_numpy(array.reshape(-1)[:_LOOKED_AT]).any():
            raise ValueError(f"benchmark: array {at} begins with nothing but zeros; time a kernel on data")
    return measured(home, lambda: function(*args), repeats, lambda: home.flush(arrays[0], flushed_bytes))


def measured(home, call, repeats, between=lambda: None):
    """Return the `Timing` of a call by a home's events; `between` runs before each, untimed."""
    call()
    times = []
    for _ in range(repeats):
        between()
        times.append(home.elapsed(call))
    times.sort()
    at = [times[min(repeats - 1, int(share * repeats))] for share in (0.5, 0.2, 0.8)]
    return Timing(*at)

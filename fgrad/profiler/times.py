"""Times in torch's units and names, made of whole nanoseconds: what single events and averages share."""

from __future__ import annotations


class Times:
    """Times of what has `count`, `total_ns` and `self_ns`; microseconds, as torch has them. `cpu_time` is a mean."""

    __slots__ = ()

    count: int
    total_ns: int
    self_ns: int
    device_ns: int
    self_device_ns: int

    cpu_time_total = property(lambda self: self.total_ns / 1e3)
    self_cpu_time_total = property(lambda self: self.self_ns / 1e3)
    cpu_time = property(lambda self: self.total_ns / 1e3 / self.count if self.count else 0.0)
    cuda_time_total = device_time_total = property(lambda self: self.device_ns / 1e3)
    self_cuda_time_total = self_device_time_total = property(lambda self: self.self_device_ns / 1e3)
    cuda_time = device_time = property(lambda self: self.device_ns / 1e3 / self.count if self.count else 0.0)
    cpu_time_str = property(lambda self: format_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: format_time(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: format_time(self.self_cpu_time_total))
    cuda_time_str = property(lambda self: format_time(self.cuda_time))
    cuda_time_total_str = property(lambda self: format_time(self.cuda_time_total))
    cpu_memory_usage = property(lambda self: self.allocated_bytes)  # type: ignore[attr-defined]
    self_cpu_memory_usage = property(lambda self: self.self_allocated_bytes)  # type: ignore[attr-defined]


class Interval:
    """A stretch of time in microseconds."""

    __slots__ = ("start", "end")

    def __init__(self, start: float, end: float):
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Return the length in microseconds."""
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval(start={self.start}, end={self.end})"


def format_time(us: float) -> str:
    """Return a time in microseconds with its unit, as `1.250ms`."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"

"""Which device a Program is being recorded for, in this thread: a function with two ways to compute may ask."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class _Placement(threading.local):
    device: str | None = None


_placement = _Placement()


def device() -> str | None:
    """Return the device that `jit` was told, while it records a function; None where it runs where its arrays are."""
    return _placement.device


@contextlib.contextmanager
def recording_for(where: str | None) -> Iterator[None]:
    """Say what device a Program is recorded for within the block."""
    before, _placement.device = _placement.device, where
    try:
        yield
    finally:
        _placement.device = before

"""Where Programs run: what `jit` was told of one, and which device one is being recorded for, in this thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import NamedTuple


class Placed(NamedTuple):
    """The device that a Program runs on, wherever its arguments are, and how: options of `fgrad.jit`."""

    device: str
    fast_math: bool = False
    tune: bool = False


class _Recording(threading.local):
    device: str | None = None


_recording = _Recording()


def device() -> str | None:
    """Return the device that `jit` was told, while it records a function; None where it runs where its arrays are."""
    return _recording.device


@contextlib.contextmanager
def recording_for(where: str | None) -> Iterator[None]:
    """Say what device a Program is recorded for within the block."""
    before, _recording.device = _recording.device, where
    try:
        yield
    finally:
        _recording.device = before

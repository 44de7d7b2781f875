"""Where Programs run: what `jit` was told of one, and which device one is being recorded for, in this thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple


class Placed(NamedTuple):
    """The device that a Program runs on, wherever its arguments are, and how: options of `fgrad.jit`.

    `brought` has, by id, those of its arguments that are constants of the function, each with its copy on the device
    once there is one, so that it is brought there once.
    """

    device: str
    fast_math: bool
    tune: bool
    brought: dict[int, tuple[Any, Any]]


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

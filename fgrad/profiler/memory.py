"""The ledger: which arrays observed operations made, what they are kept for, and when their memory went.

An array is followed by a weak reference, so that the ledger keeps nothing alive. What NumPy and Python allocate for
themselves meanwhile, and arrays that were there before, do not appear.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fgrad.profiler.record import here, now


class Entry(NamedTuple):
    """Bytes taken or given back: when, in which thread, for what, and the serial of the event that made the array.

    `moved` says that the array only changed its kind: one entry of two.
    """

    time: int
    thread: int
    bytes: int
    kind: str
    serial: int
    moved: bool


class _Holding:
    """A living array: its size, the event that made it, and how many nodes saved it for a backward pass."""

    __slots__ = ("ref", "nbytes", "serial", "saves")

    def __init__(self, ref: Any, nbytes: int, serial: int):
        self.ref = ref
        self.nbytes = nbytes
        self.serial = serial
        self.saves = 0

    @property
    def kind(self) -> str:
        return "saved" if self.saves else "value"


class Ledger:
    """Follows the arrays of one session; `limit` bounds its entries, the oldest go first."""

    def __init__(self, limit: int):
        self.entries: deque[Entry] = deque(maxlen=limit)
        self.living: dict[int, _Holding] = {}

    def enter(self, out: Any, serial: int, inputs: Iterable[Any] = ()) -> None:
        """Write down the arrays that an operation made: those with memory of their own that were not among `inputs`."""
        for x in out if out.__class__ is tuple else (out,):
            owns = x.__class__ is np.ndarray and x.base is None
            if owns and id(x) not in self.living and not any(x is y for y in inputs):
                self._follow(x, serial)

    def save(self, values: Iterable[Any], serial: int, ours: bool = False) -> None:
        """Say that a node keeps these values for a backward pass; with `ours`, also those that are not known yet."""
        for x in values:
            owner = _owner(x)
            if owner is None:
                continue
            held = self.living.get(id(owner))
            if held is None and ours and owner.flags.writeable:
                held = self._follow(owner, serial)
            if held is not None:
                self._count_save(held, 1)

    def release(self, values: Iterable[Any]) -> None:
        """Say that a node no longer keeps these values."""
        for x in values:
            owner = _owner(x)
            held = self.living.get(id(owner)) if owner is not None else None
            if held is not None and held.saves:
                self._count_save(held, -1)

    def _follow(self, x: Any, serial: int) -> _Holding:
        key, nbytes = id(x), x.nbytes

        def freed(_: Any) -> None:
            held = self.living.pop(key, None)
            if held is not None:
                self._write(-held.nbytes, held.kind, held.serial)

        held = self.living[key] = _Holding(weakref.ref(x, freed), nbytes, serial)
        self._write(nbytes, "value", serial)
        return held

    def _count_save(self, held: _Holding, step: int) -> None:
        before = held.kind
        held.saves += step
        if held.kind != before:
            self._write(-held.nbytes, before, held.serial, moved=True)
            self._write(held.nbytes, held.kind, held.serial, moved=True)

    def _write(self, nbytes: int, kind: str, serial: int, moved: bool = False) -> None:
        self.entries.append(Entry(now(), here.place.thread, nbytes, kind, serial, moved))


def _owner(x: Any) -> Any:
    """Return the array that owns the memory of a value, None for what is no array."""
    while x.__class__ is np.ndarray and x.base is not None:
        x = x.base
    return x if x.__class__ is np.ndarray else None

"""Planning memory: which values of a Program share which block, from liveness.

A block is bytes that belong to one running call. A value is a view of a block, known when code is generated, so that
reshapes, transposes and slices of it cost nothing at run time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_ALIGN = 64


class View(NamedTuple):
    """Where a value lies: enough to build the array over any copy of the block."""

    name: str
    block: int
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class Block:
    """Bytes shared by values one after the other; `last` is the step that uses it last.

    A `bordered` block is of one value for good, written into a part of it; the rest is zeros from the start.
    """

    __slots__ = ("array", "index", "last", "bordered")

    def __init__(self, index: int, nbytes: int, last: float, bordered: bool = False):
        self.index = index
        self.array = np.empty(nbytes, np.uint8)
        self.last = last
        self.bordered = bordered


class Arena:
    """Hands out blocks while code is generated and records the views taken of them."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.free: list[Block] = []
        self.views: list[View] = []

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any], last: int) -> tuple[Block, np.ndarray[Any, Any]]:
        """Return a block and a contiguous view of it: the smallest free one that is large enough, else a new one."""
        nbytes = _rounded(shape, dtype)
        fitting = [b for b in self.free if nbytes <= b.array.nbytes <= 2 * nbytes]
        if fitting:
            block = min(fitting, key=lambda b: b.array.nbytes)
            self.free.remove(block)
            block.last = last
        else:
            block = Block(len(self.blocks), nbytes, last)
            self.blocks.append(block)
        return block, np.ndarray(shape, dtype, block.array)

    def take_bordered(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Block, np.ndarray[Any, Any]]:
        """Return a block that is zeros but where its one value is written, and a view of the whole."""
        block = Block(len(self.blocks), _rounded(shape, dtype), math.inf, bordered=True)
        self.blocks.append(block)
        return block, np.ndarray(shape, dtype, block.array)

    def release(self, step: int, live: Sequence[Block]) -> list[Block]:
        """Move blocks whose last use is `step` to the free list; return those still live."""
        kept = []
        for block in live:
            if block.last > step:
                kept.append(block)
            else:
                self.free.append(block)
        return kept

    def view(self, block: Block, array: np.ndarray[Any, Any]) -> str:
        """Record a view of a block and return the name that generated code has for it."""
        start = array.__array_interface__["data"][0] - block.array.__array_interface__["data"][0]
        name = f"b{len(self.views)}"
        self.views.append(View(name, block.index, array.dtype, array.shape, array.strides, start if array.size else 0))
        return name

    @property
    def nbytes(self) -> int:
        """The bytes that one running call holds."""
        return sum(b.array.nbytes for b in self.blocks)

    def finish(self) -> Layout:
        """Return what is needed to build the arena for a call, and let go of the blocks used for planning."""
        return Layout([(b.array.nbytes, b.bordered) for b in self.blocks], self.views)


def _rounded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the bytes of a block for an array."""
    return max(_ALIGN, -(-math.prod(shape) * dtype.itemsize // _ALIGN) * _ALIGN)


class Layout:
    """The sizes of the blocks, whether they are bordered by zeros, and the views of them."""

    def __init__(self, blocks: Sequence[tuple[int, bool]], views: Sequence[View]):
        self.sizes = [nbytes for nbytes, _ in blocks]
        self.bordered = [bordered for _, bordered in blocks]
        self.views = list(views)

    def build(self) -> list[np.ndarray[Any, Any]]:
        """Return the arrays of all views over newly allocated blocks."""
        blocks = [(np.zeros if b else np.empty)(n, np.uint8) for n, b in zip(self.sizes, self.bordered, strict=True)]
        return [np.ndarray(v.shape, v.dtype, blocks[v.block], v.offset, v.strides) for v in self.views]

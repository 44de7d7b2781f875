"""What is drawn: steps in order, each an input, a constant, an operation or an output, and the groups they fold into.

A `Step` comes from an equation of a Program or from a node of a recorded graph. Whoever makes steps gives them in an
order in which each stands after those it reads. Must not import anything that renders.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from fgrad.core import ArrayType


@dataclass(frozen=True)
class SavedValue:
    """A value that the backward pass keeps: `key` tells it from others (one value may be saved by several steps)."""

    key: Hashable
    nbytes: int
    what: str


@dataclass
class Step:
    """One thing to draw.

    `role` is "input", "constant", "operation" or "output"; `inputs` are positions of earlier steps; a type is None
    where it is not known. `note` tells parameters and numbers; `source` is the user's line, `derivative` says that the
    step belongs to the derivative of what that line does; `label` is a name that the user gave to the step, `scope` the
    names of the scopes it lies in. `sequence_nr` is what a profile calls a node of a recorded graph; `seconds` is None
    as long as nothing was measured.
    """

    name: str
    role: str
    inputs: Sequence[int]
    types: Sequence[ArrayType | None]
    note: str = ""
    source: str = ""
    derivative: bool = False
    label: str = ""
    scope: str = ""
    saved: Sequence[SavedValue] = ()
    sequence_nr: int = -1
    seconds: float | None = None


@dataclass
class Group:
    """Steps drawn as one box; `repeats` of the same kind may stand one after the other in it.

    `detail` is what stands below the title, `reads` are the positions of the groups it reads, and `shown` the types
    that leave it.
    """

    steps: Sequence[Step]
    title: str
    detail: Sequence[str] = ()
    repeats: int = 1
    reads: list[int] = field(default_factory=list)
    shown: list[ArrayType | None] = field(default_factory=list)

    @property
    def role(self) -> str:
        return self.steps[0].role

    @property
    def folded(self) -> bool:
        return len(self.steps) > 1

    @property
    def saved(self) -> list[SavedValue]:
        return distinct([s for step in self.steps for s in step.saved])

    @property
    def seconds(self) -> float | None:
        measured = [step.seconds for step in self.steps if step.seconds is not None]
        return sum(measured) if measured else None


def distinct(saved: Sequence[SavedValue]) -> list[SavedValue]:
    """Return saved values without those that were named before."""
    return list({s.key: s for s in reversed(saved)}.values())[::-1]


def total(saved: Sequence[SavedValue]) -> int:
    """Return the bytes of saved values, each counted once."""
    return sum(s.nbytes for s in distinct(saved))


def size_of(kind: ArrayType) -> int:
    """Return the bytes of an array of a type."""
    return kind.size * int(kind.dtype.itemsize)

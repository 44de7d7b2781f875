"""Fusion: which equations of a Program make one kernel, and what passes between kernels through memory.

A kernel works on a *domain*: arrays of one size, seen as rows and columns. Inside it a value is FULL (one number per
row and column) or ROW (one per row, what a reduction along the columns leaves). A reduction over the rows, or over
everything, ends the kernel: each program leaves a partial result, and a second kernel adds these up.

The level of an equation is the number of kernels that must have run before it. Equations of one level and domain make
one kernel, so kernels never wait for each other in a circle. What no kernel can express is a step of its own: a view,
or a call of the array library.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from fgrad.backend.gpu import entries
from fgrad.backend.gpu.expressions import DTYPES, expression
from fgrad.backend.gpu.layout import Access, access, packed, viewed
from fgrad.backend.gpu.library import VIEWS
from fgrad.backend.gpu.recompute import recompute, stored_values
from fgrad.core import ArrayType
from fgrad.program import Atom, Equation, Literal, Program, Var

FULL, ROW = "full", "row"

REDUCTIONS = ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all")

LONGEST_ROW = 16384
"""Columns that a program keeps in registers; longer rows are read in steps, once for each depth of reduction."""

LONGEST_APART = 128
"""The same where a row's elements lie apart in memory: a program then reads many rows at once, which lie together."""


LONGEST_SHARE = 8192
"""Elements of a row that a program reads where several share one."""

FEW_ROWS = 2 * 132
"""Rows in steps that leave a card idle if each is one program's: fewer than two for each multiprocessor of an H100."""

ENOUGH_ROWS = 16 * 132
"""Rows in steps from which on sums over them are worth keeping in few programs' totals, beside what else is done."""

MOST_PARTS = 512
"""Programs of a kernel that leaves partial results: a few for each multiprocessor of a large GPU."""

MOST_LOADS = 24
"""Loads of a kernel that equations with nothing in common with it may still join."""


class Domain(NamedTuple):
    """Arrays of `rows * columns` elements; one column means that nothing is reduced along rows.

    Elements are in C order; or, with `shape` and `order`, arrays of that shape are seen with their axes in that order.
    Rows longer than `longest` are read in steps.
    """

    rows: int
    columns: int
    shape: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    longest: int = LONGEST_ROW

    @property
    def in_steps(self) -> bool:
        """Whether rows are too long to be kept in registers."""
        return self.columns > self.longest

    @property
    def shares(self) -> int:
        """How many programs share a row: where few are long, each leaves a partial result of its steps."""
        if not self.in_steps or self.rows >= FEW_ROWS or self.columns <= LONGEST_SHARE:
            return 1
        return min(-(-self.columns // LONGEST_SHARE), MOST_PARTS // self.rows)


@dataclass
class Kernel:
    """Equations that run as one kernel.

    `kinds` says FULL or ROW for each value made here, by id. `loads` are the values that come from memory, with how
    they are addressed, by (id, access); `counting` those of them that need no memory, integers that count from a start,
    which it has by id. `stores` are written in full, `partials` summed up
    over programs: (value, operand, primitive's name).
    """

    level: int
    domain: Domain
    equations: list[Equation] = field(default_factory=list)
    kinds: dict[int, str] = field(default_factory=dict)
    loads: dict[tuple[int, Access], Var] = field(default_factory=dict)
    uses: dict[tuple[int, int], Access | None] = field(default_factory=dict)
    counting: dict[int, int] = field(default_factory=dict)
    stores: list[Var] = field(default_factory=list)
    partials: list[Equation] = field(default_factory=list)


@dataclass
class Step:
    """One equation outside of kernels: a `view` of an array, or a `call` of the array library."""

    level: int
    equation: Equation
    kind: str


class Plan(NamedTuple):
    """A Program in the order it runs in: kernels and steps."""

    program: Program
    parts: list[Kernel | Step]

    @property
    def kernels(self) -> list[Kernel]:
        """Return the kernels."""
        return [part for part in self.parts if isinstance(part, Kernel)]


def plan(program: Program, domains: Mapping[int, Domain] = MappingProxyType({})) -> Plan:
    """Return how a simplified Program is cut into kernels and steps.

    Args:
        program: what runs; its inputs and constants are packed.
        domains: those of arrays of a size, where they are decided; others are by the Program's reductions.
    """
    return _Planner(program, domains).result()


def domains_by_size(program: Program) -> dict[int, Domain]:
    """Return for each size of arrays the domain in which most of the reductions of such arrays happen."""
    votes: dict[int, Counter[Domain]] = {}
    for eq in program.equations:
        if eq.prim.name not in REDUCTIONS:
            continue
        x, axes = eq.inputs[0].type, tuple(eq.params["axes"])
        if math.prod([x.shape[a] for a in axes]) == x.size:
            continue
        domain, weight = reduced_along(x.shape, axes), 2
        if _leading(axes):
            domain, weight = Domain(domain.columns, domain.rows), 1
        if domain.columns > 1:
            votes.setdefault(x.size, Counter())[domain] += weight
    return {size: found.most_common(1)[0][0] for size, found in votes.items()}


def reduced_along(shape: tuple[int, ...], axes: tuple[int, ...]) -> Domain:
    """Return the domain in which these axes of an array are the columns."""
    kept = tuple([a for a in range(len(shape)) if a not in axes])
    rows, columns = (math.prod([shape[a] for a in part]) for part in (kept, axes))
    order = (*kept, *sorted(axes))
    if order == tuple(range(len(shape))):
        return Domain(rows, columns)
    return Domain(rows, columns, shape, order, LONGEST_APART)


def _leading(axes: tuple[int, ...]) -> bool:
    return axes == tuple(range(len(axes)))


class _Planner:
    def __init__(self, program: Program, domains: Mapping[int, Domain]):
        self.program = program
        self.domains = domains_by_size(program) | dict(domains)
        self.ready: dict[int, int] = {id(v): 0 for v in program.inputs}
        self.ready.update((id(v), 0) for v, _ in program.consts)
        self.strides: dict[int, tuple[int, ...]] = {}
        self.home: dict[int, Kernel] = {}
        self.kernels: dict[tuple[int, Domain], list[Kernel]] = {}
        self.parts: list[tuple[int, int, int, Kernel | Step]] = []
        self.needed: set[int] = {id(a) for a in program.outputs}
        for eq in program.equations:
            self._place(eq)

    def result(self) -> Plan:
        self.parts.sort(key=lambda part: part[:3])
        kernels = [part[3] for part in self.parts if isinstance(part[3], Kernel)]
        recompute(kernels, self.needed)
        counting = {id(v): int(x.flat[0]) for v, x in self.program.consts if counts(x)}
        for kernel in kernels:
            known = {id(v) for (_, at), v in kernel.loads.items() if at.pick}
            loaded = {id(v) for v in kernel.loads.values()}
            kernel.counting = {v: start for v, start in counting.items() if v in loaded - known}
            kernel.stores = stored_values(kernel, kernels, self.needed)
        return Plan(self.program, [part[3] for part in self.parts])

    # where an equation goes

    def _place(self, eq: Equation) -> None:
        if len(eq.outputs) == 1 and _computable(eq):
            if eq.prim.name in REDUCTIONS:
                if self._reduce(eq):
                    return
            elif eq.prim.name == "reshape":
                if self._relabel(eq):
                    return
            elif eq.prim.name == "gather":
                if self._gather(eq):
                    return
            elif expression(eq) is not None and self._elementwise(eq):
                return
        self._step(eq, "view" if self._is_view(eq) else "call")

    def _elementwise(self, eq: Equation) -> bool:
        out = eq.outputs[0].type
        for kernel in self._homes(eq):
            if kernel.domain.columns > 1 and kernel.domain.rows == out.size and self._join(eq, kernel.domain, ROW):
                return True
        return self._join(eq, self._domain(out), FULL)

    def _reduce(self, eq: Equation) -> bool:
        x, axes = eq.inputs[0].type, tuple(eq.params["axes"])
        domain, own = self._domain(x), reduced_along(x.shape, axes)
        if own.rows == 1 and own != domain:
            return self._join(eq, domain, FULL, None)
        is_over_rows = _leading(axes) and not domain.order and own.rows == domain.columns
        if own != domain and is_over_rows and (not domain.in_steps or domain.rows >= ENOUGH_ROWS):
            return self._join(eq, domain, FULL, None)
        return self._join(eq, own, FULL, ROW if own.shares == 1 else None)

    def _gather(self, eq: Equation) -> bool:
        """Let entries by index be loads of the kernel that needs them; array and index come from memory."""
        x, i = eq.inputs
        domain = self._domain(eq.outputs[0].type)
        if not (isinstance(x, Var) and isinstance(i, Var)):
            return False
        found = entries.accesses(eq, self._strides(x), self._strides(i), domain)
        if found is None:
            return False
        kernel = self._open_kernel(max(self._available(x), self._available(i)), domain)
        self._add(eq, kernel, FULL, dict(enumerate(found)))
        return True

    def _relabel(self, eq: Equation) -> bool:
        """Let a reshaped value of a kernel be the same value under another shape."""
        a = eq.inputs[0]
        kernel = self.home.get(id(a))
        if kernel is None or id(a) not in kernel.kinds:
            return False
        if kernel.domain.order and kernel.kinds[id(a)] == FULL:
            return False
        self._add(eq, kernel, kernel.kinds[id(a)], {0: None})
        return True

    def _step(self, eq: Equation, kind: str) -> None:
        level = max([self._available(a) for a in eq.inputs], default=0)
        self.needed.update(id(a) for a in eq.inputs)
        for v in eq.outputs:
            self.ready[id(v)] = level
        if kind == "view":
            self.strides[id(eq.outputs[0])] = viewed(eq, self._strides(eq.inputs[0]))
        self.parts.append((level, 0, len(self.parts), Step(level, eq, kind)))

    def _is_view(self, eq: Equation) -> bool:
        if eq.prim.name not in VIEWS or not isinstance(eq.inputs[0], Var):
            return False
        x = eq.inputs[0]
        return eq.prim.name != "reshape" or self._strides(x) == packed(x.type.shape)

    # joining kernels

    def _join(self, eq: Equation, domain: Domain, seen: str, made: str | None = FULL) -> bool:
        """Put an equation into the kernel of its level and domain; False if one of its operands cannot be addressed.

        `seen` is the kind of its operands (broadcast), `made` that of its result, None for a partial result.
        """
        made = ROW if seen == ROW else made
        shape = eq.inputs[0].type.shape if eq.prim.name in REDUCTIONS else eq.outputs[0].type.shape
        uses: dict[int, Access | None] = {}
        inside: dict[int, Kernel] = {}
        level = 0
        for k, a in enumerate(eq.inputs):
            if not isinstance(a, Var):
                continue
            kernel = self.home.get(id(a))
            if kernel is not None and kernel.domain == domain and self._fits(a, kernel, shape, domain, seen):
                inside[k] = kernel
                level = max(level, kernel.level)
                continue
            level = max(level, self._available(a))
            uses[k] = access(a.type.shape, self._strides(a), shape, domain, seen)
            if uses[k] is None:
                return False
        neighbours = {id(kernel): kernel for kernel in inside.values() if kernel.level == level}
        if len(neighbours) > 1:  # of kernels that run side by side, it can join neither
            level += 1
            neighbours = {}
        for k, kernel in inside.items():
            a = eq.inputs[k]
            uses[k] = None
            if id(kernel) not in neighbours:
                uses[k] = access(a.type.shape, packed(a.type.shape), shape, domain, seen)
                if uses[k] is None:
                    return False
        (kernel,) = neighbours.values() or [self._open_kernel(level, domain)]
        self._add(eq, kernel, made, uses)
        return True

    def _open_kernel(self, level: int, domain: Domain) -> Kernel:
        """Return the last kernel of a level and domain if it may grow, else a new one."""
        kernels = self.kernels.setdefault((level, domain), [])
        if not kernels or len(kernels[-1].loads) >= MOST_LOADS:
            kernels.append(Kernel(level, domain))
            self.parts.append((level, 1, len(self.parts), kernels[-1]))
        return kernels[-1]

    def _add(self, eq: Equation, kernel: Kernel, made: str | None, uses: dict[int, Access | None]) -> None:
        v = eq.outputs[0]
        for k, a in enumerate(eq.inputs):
            found = uses.get(k)
            if found is not None and isinstance(a, Var):
                kernel.loads[id(a), found] = a
            kernel.uses[id(v), k] = found
        if made is None:
            kernel.partials.append(eq)
            self.ready[id(v)] = kernel.level + 1
        else:
            kernel.kinds[id(v)] = made
            self.home[id(v)] = kernel
        kernel.equations.append(eq)

    @staticmethod
    def _fits(a: Atom, kernel: Kernel, shape: tuple[int, ...], domain: Domain, seen: str) -> bool:
        """Return whether a value of a kernel stands where an operand of `shape` is read: no element moves."""
        kind = kernel.kinds[id(a)]
        if seen == ROW:
            return kind == ROW and a.type.size == domain.rows
        if kind == FULL or domain.rows == 1:
            return kind == ROW or (a.type.shape == shape if domain.order else a.type.size == math.prod(shape))
        seen_as = access(a.type.shape, packed(a.type.shape), shape, domain, FULL)
        return seen_as is not None and not seen_as.columns and len(seen_as.rows) == 1 and seen_as.rows[0][1] == 1

    # what is known of values

    def _homes(self, eq: Equation) -> list[Kernel]:
        found = [self.home[id(a)] for a in eq.inputs if id(a) in self.home]
        return [k for k in found if any(k.kinds.get(id(a)) == ROW for a in eq.inputs)]

    def _domain(self, kind: ArrayType) -> Domain:
        found = self.domains.get(kind.size)
        if found is None or (found.order and found.shape != kind.shape):
            return Domain(kind.size, 1)
        return found

    def _available(self, a: Atom) -> int:
        """Return the level at which a value can be read from memory."""
        if isinstance(a, Literal):
            return 0
        kernel = self.home.get(id(a))
        return self.ready[id(a)] if kernel is None else kernel.level + 1

    def _strides(self, a: Atom) -> tuple[int, ...]:
        return self.strides.get(id(a), packed(a.type.shape))


def counts(x: Any) -> bool:
    """Return whether an array holds integers that count up by one, in C order."""
    if x.dtype.kind not in "iu" or x.size < 2:
        return False
    flat = x.reshape(-1)
    return bool(flat[-1] - flat[0] == x.size - 1 and (flat[1:] - flat[:-1] == 1).all())


def _computable(eq: Equation) -> bool:
    """Return whether all values of an equation have elements, and types that kernels compute with."""
    return all(v.type.dtype.name in DTYPES and v.type.size for v in (*eq.inputs, *eq.outputs))

"""Values computed again where that moves fewer bytes than writing them for a later kernel to read.

A later kernel of the same domain takes over the equations between a value and what it is computed from: arrays in
memory, and numbers per row, which are stored. What nothing needs any longer is then left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fgrad.backend.gpu.layout import Access, access, packed
from fgrad.program import Equation, Var

if TYPE_CHECKING:
    from fgrad.backend.gpu.fusion import Kernel

MOST = 32
"""Equations that are done twice for one value."""


class _Cone(NamedTuple):
    """What lies between a value and memory: equations in order, loads, and values at hand with how others read them."""

    equations: list[Equation]
    loads: dict[tuple[int, Access], Var]
    at_hand: dict[tuple[int, int], tuple[Var, Access]]


def recompute(kernels: Sequence[Kernel], needed: set[int]) -> None:
    """Let later kernels compute FULL values again where it pays.

    Args:
        kernels: in the order of their levels; they are changed.
        needed: ids of values that steps and outputs read.
    """
    for kernel in kernels:
        if kernel.domain.order:
            continue
        for v in _only_for_kernels(kernel, kernels, needed):
            readers = [k for k in kernels if any(w is v for w in k.loads.values())]
            stored = {id(w) for w in stored_values(kernel, kernels, needed)}
            cone = _cone(kernel, v, stored)
            if cone is None or not all(_reads_as_made(k, kernel, v) for k in readers):
                continue
            read = cone.loads | {(id(w), at): w for w, at in cone.at_hand.values()}
            extra = sum(_bytes(w) for r in readers for at, w in read.items() if at not in r.loads)
            extra += sum(
                _bytes(w) for w in {id(w): w for w, _ in cone.at_hand.values()}.values() if id(w) not in stored
            )
            if extra < _bytes(v) * (1 + len(readers)):
                for reader in readers:
                    _take_over(reader, kernel, v, cone)
                _prune(kernel, kernels, needed)


def stored_values(kernel: Kernel, kernels: Sequence[Kernel], needed: set[int]) -> list[Var]:
    """Return the values of a kernel that others read."""
    read = needed | {id(v) for k in kernels for v in k.loads.values()}
    return [v for eq in kernel.equations for v in eq.outputs if id(v) in read and id(v) in kernel.kinds]


def _only_for_kernels(kernel: Kernel, kernels: Sequence[Kernel], needed: set[int]) -> list[Var]:
    found = [v for v in stored_values(kernel, kernels, needed) if id(v) not in needed and kernel.kinds[id(v)] == "full"]
    return found[::-1]


def _reads_as_made(reader: Kernel, kernel: Kernel, v: Var) -> bool:
    """Return whether a kernel reads a value of another where it computes it: no element moves."""
    here = access(v.type.shape, packed(v.type.shape), v.type.shape, kernel.domain, "full")
    accesses = [at for (_, at), w in reader.loads.items() if w is v]
    return reader.domain == kernel.domain and reader.level > kernel.level and accesses == [here]


def _cone(kernel: Kernel, v: Var, stored: set[int]) -> _Cone | None:
    """Return what a value is computed from, values in memory at the ends; None if that is too much.

    `at_hand` has the operands that the kernel itself need not read: numbers per row, and values stored anyway.
    """
    made = {id(w): eq for eq in kernel.equations for w in eq.outputs}
    chosen: set[int] = set()
    cone = _Cone([], {}, {})
    pending = [v]
    while pending:
        eq = made[id(pending.pop())]
        if id(eq) in chosen:
            continue
        chosen.add(id(eq))
        for k, a in enumerate(eq.inputs):
            if not isinstance(a, Var):
                continue
            at = kernel.uses.get((id(eq.outputs[0]), k))
            if at is not None:
                cone.loads[id(a), at] = a
            elif kernel.kinds[id(a)] == "full" and id(a) not in stored:
                pending.append(a)
            else:
                shape = a.type.shape if eq.prim.name == "reshape" else eq.outputs[0].type.shape
                seen = access(a.type.shape, packed(a.type.shape), shape, kernel.domain, "full")
                if seen is None:
                    return None
                cone.at_hand[id(eq.outputs[0]), k] = a, seen
    cone.equations.extend(eq for eq in kernel.equations if id(eq) in chosen)
    return cone if len(cone.equations) <= MOST else None


def _take_over(reader: Kernel, kernel: Kernel, v: Var, cone: _Cone) -> None:
    """Put the equations of a cone before those of a later kernel, which then reads no `v`."""
    taken = {id(eq) for eq in cone.equations}  # some may be there already, behind others that now need them
    reader.equations[:] = [*cone.equations, *[eq for eq in reader.equations if id(eq) not in taken]]
    reader.loads.update(cone.loads)
    reader.loads.update({(id(a), at): a for a, at in cone.at_hand.values()})
    for eq in cone.equations:
        out = eq.outputs[0]
        reader.kinds[id(out)] = "full"
        for k in range(len(eq.inputs)):
            key = id(out), k
            reader.uses[key] = cone.at_hand[key][1] if key in cone.at_hand else kernel.uses.get(key)
    for eq in reader.equations:
        for k, a in enumerate(eq.inputs):
            if a is v:
                reader.uses[id(eq.outputs[0]), k] = None
    for at in [at for at, w in reader.loads.items() if w is v]:
        del reader.loads[at]


def _prune(kernel: Kernel, kernels: Sequence[Kernel], needed: set[int]) -> None:
    """Leave out what nothing needs, and loads for it."""
    partial = {id(eq) for eq in kernel.partials}
    alive = {id(v) for v in stored_values(kernel, kernels, needed)}
    kept: list[Equation] = []
    for eq in reversed(kernel.equations):
        if id(eq) in partial or id(eq.outputs[0]) in alive:
            kept.append(eq)
            alive.update(id(a) for a in eq.inputs)
    kernel.equations[:] = kept[::-1]
    used = set(_accesses(kernel))
    for at in [at for at in kernel.loads if at not in used]:
        del kernel.loads[at]


def _accesses(kernel: Kernel) -> Iterable[Any]:
    for eq in kernel.equations:
        for k, a in enumerate(eq.inputs):
            yield id(a), kernel.uses.get((id(eq.outputs[0]), k))


def _bytes(v: Var) -> int:
    return v.type.size * v.type.dtype.itemsize

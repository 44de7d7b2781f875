"""Which inputs the elements of a Program's outputs may depend on, to first order: the sparsity of its Jacobian.

Each value carries a boolean matrix with a row per element and a column per input that is differentiated. A primitive
multiplies it by its incidence: the chain rule in booleans. What a primitive looks up at indices that are not known, or
a branch that is not known, counts as depending on all that it could be.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array, vstack

from fgrad.core import Tracer
from fgrad.program import Atom, Equation, Literal, Program, Trace
from fgrad.sparse.incidence import Application, Chain, Matrix, incidence
from fgrad.transforms.programs import jvp_program, under

LIMIT = 2**27
"""So many entries a pattern may have: beyond it, memory fails before the derivative is of use."""


class Fact(NamedTuple):
    """What is known of a value: the value itself, or what its elements depend on; neither, if it is constant."""

    value: Any = None
    depends: Matrix | None = None


UNKNOWN = Fact()


def jacobian_pattern(program: Program, active: Sequence[bool]) -> Matrix:
    """Return a matrix with an entry wherever the Jacobian of `program` by its `active` inputs may be other than zero.

    Its rows are the elements of all outputs, its columns those of the active inputs, one after the other in C order.

    Raises:
        ValueError: the pattern, or that of a value on the way, has more than `LIMIT` entries.
        TypeError: a value on the way is traced by an enclosing transform.
    """
    sizes = [t.size if a else 0 for t, a in zip(program.in_types, active, strict=True)]
    ends = list(itertools.accumulate(sizes, initial=0))
    whole = eye_array(ends[-1], dtype=bool, format="csr")
    facts = [
        Fact(None, whole[start:stop]) if a else UNKNOWN for start, stop, a in zip(ends, ends[1:], active, strict=False)
    ]
    outs = propagate(program, facts)
    rows = [
        csr_array((t.size, ends[-1]), dtype=bool) if f.depends is None else f.depends
        for f, t in zip(outs, program.out_types, strict=True)
    ]
    pattern = vstack(rows, format="csr", dtype=bool) if rows else csr_array((0, ends[-1]), dtype=bool)
    pattern.sort_indices()
    return pattern


def propagate(program: Program, facts: Sequence[Fact]) -> list[Fact]:
    """Return what is known of the outputs of a Program, given that of its inputs."""
    known = {id(v): f for v, f in zip(program.inputs, facts, strict=True)}
    for var, value in program.consts:
        if isinstance(value, Tracer):
            raise TypeError(
                f"{program.label}: the function closes over a value traced by {value.interpreter.label}; a sparse "
                "derivative is a SciPy array and has no derivative or batch of its own: call it outside of transforms"
            )
        known[id(var)] = Fact(value)

    def fact(a: Atom) -> Fact:
        return Fact(a.value) if isinstance(a, Literal) else known[id(a)]

    for eq in program.equations:
        outs = _apply(eq, [fact(a) for a in eq.inputs])
        known.update((id(v), f) for v, f in zip(eq.outputs, outs, strict=True))
    return [fact(a) for a in program.outputs]


def _apply(eq: Equation, facts: Sequence[Fact]) -> list[Fact]:
    """Return what is known of the outputs of one equation."""
    if all(f.value is not None for f in facts):
        out = eq.prim.impl(*[f.value for f in facts], **eq.params)
        return [Fact(x) for x in (out if eq.prim.multiple else (out,))]
    if all(f.depends is None for f in facts):
        return [UNKNOWN] * len(eq.outputs)
    rule = STRUCTURED.get(eq.prim.name)
    if rule is not None:
        return rule(eq, facts)
    if eq.prim.definition is not None:
        return propagate(_definition(eq), facts)
    return [_output(eq, facts, k) for k in range(len(eq.outputs))]


def _output(eq: Equation, facts: Sequence[Fact], k: int) -> Fact:
    """Return what output k of a primitive depends on: the union over its inputs."""
    one = Application(
        eq.prim, [a.type for a in eq.inputs], [v.type for v in eq.outputs], eq.params, [f.value for f in facts]
    )
    total = None
    for i, f in enumerate(facts):
        chain = None if f.depends is None else incidence(one, i, k)
        if chain is not None:
            total = union(total, product(chain, f.depends, eq))
    return Fact(None, total)


def product(chain: Chain, depends: Matrix, eq: Equation) -> Matrix:
    """Return an incidence times what the input depends on; ValueError if that would be too large."""
    for factor in reversed(chain):
        entries = np.diff(depends.indptr)[factor.indices].sum(dtype=np.int64)
        if entries > LIMIT:
            raise ValueError(
                f"the derivative is not sparse: at primitive '{eq.prim.name}' ({eq.source}) each of {factor.shape[0]} "
                f"elements depends on up to {entries // max(factor.shape[0], 1)} inputs.\nRemedy: give the pattern by "
                "sparsity=, if it is known to have fewer entries; or use products with the derivative (jvp, vjp, hvp)."
            )
        depends = factor @ depends
    return depends


def union(a: Matrix | None, b: Matrix | None) -> Matrix | None:
    """Return the entries of both patterns."""
    return b if a is None else a if b is None else a + b


def _definition(eq: Equation) -> Program:
    """Return a composite's definition as a Program."""
    recorder = Trace.alone(eq.prim.name)
    inputs = [recorder.input(a.type) for a in eq.inputs]
    out = under(recorder, lambda: eq.prim.definition(*inputs, **eq.params))  # type: ignore[misc]
    return recorder.finish(out if eq.prim.multiple else (out,))


# -------------------------------------------------------------------------------------------------- structured


def _inlined(eq: Equation, facts: Sequence[Fact]) -> list[Fact]:
    return propagate(eq.params["program"], facts)


def _branches(eq: Equation, facts: Sequence[Fact]) -> list[Fact]:
    """Follow the branch that is known to be taken, or all of them."""
    index, *operands = facts
    branches = eq.params["branches"]
    if index.value is not None:
        return propagate(branches[int(index.value)], operands)
    each = [propagate(branch, operands) for branch in branches]
    return [Fact(None, _union_of(outs)) for outs in zip(*each, strict=True)]


def _union_of(facts: Sequence[Fact]) -> Matrix | None:
    total = None
    for f in facts:
        total = union(total, f.depends)
    return total


def _steps(eq: Equation, facts: Sequence[Fact]) -> list[Fact]:
    """Follow a scan step by step."""
    body, n, k = eq.params["body"], eq.params["consts"], eq.params["carries"]
    length = eq.params["length"]
    carry = list(facts[n : n + k])
    ys: list[list[Fact]] = [[] for _ in body.outputs[k:]]
    for step in reversed(range(length)) if eq.params["reverse"] else range(length):
        outs = propagate(body, [*facts[:n], *carry, *[_row(f, step, length) for f in facts[n + k :]]])
        carry = outs[:k]
        for rows, f in zip(ys, outs[k:], strict=True):
            rows.append(f)
    if eq.params["reverse"]:
        ys = [rows[::-1] for rows in ys]
    stacked = [_stacked(rows, t.size) for rows, t in zip(ys, body.out_types[k:], strict=True)]
    return [*carry, *stacked]


def _row(f: Fact, step: int, length: int) -> Fact:
    """Return what is known of one slice along the leading axis."""
    if f.value is not None:
        return Fact(np.asarray(f.value)[step])
    if f.depends is None:
        return UNKNOWN
    size = f.depends.shape[0] // length
    return Fact(None, f.depends[step * size : (step + 1) * size])


def _stacked(rows: Sequence[Fact], size: int) -> Fact:
    """Return what is known of values of `size` elements stacked along a new leading axis."""
    columns = {f.depends.shape[1] for f in rows if f.depends is not None}
    if not columns:
        return UNKNOWN
    empty = csr_array((size, columns.pop()), dtype=bool)
    return Fact(None, vstack([empty if f.depends is None else f.depends for f in rows], format="csr", dtype=bool))


def _until_it_stays(eq: Equation, facts: Sequence[Fact]) -> list[Fact]:
    """Follow a loop of unknown length until what the carry depends on grows no more."""
    body, m, n = eq.params["body"], eq.params["test_consts"], eq.params["body_consts"]
    fixed = facts[m : m + n]
    carry = [Fact(None, f.depends) for f in facts[m + n :]]
    while True:
        outs = propagate(body, [*fixed, *carry])
        grown = [Fact(None, union(f.depends, out.depends)) for f, out in zip(carry, outs, strict=True)]
        if all(_entries(a) == _entries(b) for a, b in zip(grown, carry, strict=True)):
            return carry
        carry = grown


def _entries(f: Fact) -> int:
    return 0 if f.depends is None else int(f.depends.nnz)


def _by_rule(eq: Equation, facts: Sequence[Fact]) -> list[Fact]:
    """Follow tangents through the user's own rule, which need not agree with the function."""
    recorder = Trace.alone(eq.prim.name)
    alone = recorder.finish(recorder.record(eq.prim, [recorder.input(a.type) for a in eq.inputs], eq.params))
    mask = tuple(f.depends is not None for f in facts)
    derived, active = jvp_program(alone, mask)
    values = [Fact(f.value) for f in facts]
    tangents = [Fact(None, f.depends) for f in facts if f.depends is not None]
    pushed = iter(propagate(derived, [*values, *tangents])[len(active) :])
    return [next(pushed) if a else UNKNOWN for a in active]


STRUCTURED: dict[str, Callable[[Equation, Sequence[Fact]], list[Fact]]] = {
    "call": _inlined,
    "checkpoint_call": _inlined,
    "cond": _branches,
    "scan": _steps,
    "while_loop": _until_it_stays,
    "custom_jvp_call": _by_rule,
    "custom_vjp_call": _by_rule,
}
"""What becomes of primitives that hold Programs or rules; of those that are not here, all depends on all."""

"""Scans in generated code: what does not depend on the carry leaves the loop, steps write straight into the stacks.

A body is cut in three: work on the constants alone, done once; work on constants and xs, done for all steps at once
(the body's own equations, batched); the rest, done step by step. A carry that merely collects a sum (the gradients of
weights) is taken out too: its terms are stacked and summed once, products as one product.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fgrad.backend.simplify import prepare
from fgrad.core import TABLE, ArrayType, Params
from fgrad.program import Equation, Program, Var
from fgrad.transforms.programs import batch_program

Compile = Callable[..., Any]


class Scan(NamedTuple):
    """The parameters of a scan, with its body ready for compiling."""

    body: Program
    length: int
    reverse: bool
    consts: int
    carries: int


def compile_scan(params: Params, compile: Compile) -> Callable[..., tuple[Any, ...]]:
    """Return a function of the operands of a scan that runs it.

    Args:
        params: the parameters of the `scan` primitive.
        compile: makes a compiled Program: `compile(program, modes=None)`, with `compute`.
    """
    scan = Scan(**{**params, "body": prepare(params["body"])})
    if not scan.length:
        return functools.partial(TABLE["scan"].impl, **params)
    scan, collected = _without_collectors(scan)
    once, every, scan = _hoisted(scan)
    scan, stacks = _distinct_stacks(scan)
    first = compile(once) if once.outputs else None
    batched = compile(every) if every.outputs else None
    step = compile(scan.body, modes=["write"] * len(scan.body.outputs))
    totals = [compile(c.total) for c in collected]
    dropped = {c.carry for c in collected}

    def run(*args: Any) -> tuple[Any, ...]:
        n = params["consts"]
        fixed, carry, xs = args[:n], args[n : n + params["carries"]], args[n + params["carries"] :]
        if first is not None:
            fixed = (*fixed, *first.compute(*fixed))
        if batched is not None:
            xs = (*xs, *batched.compute(*fixed, *xs))
        kept = [c for k, c in enumerate(carry) if k not in dropped]
        with step.borrowed() as run_step:
            carries, ys = _run_steps(scan, run_step, fixed, kept, xs)
        outs = [*carries, *[xs[k] if is_x else ys[k] for is_x, k in stacks]]
        if not collected:
            return tuple(outs)
        return _with_collected(collected, totals, carry, outs, scan)

    return run


def _run_steps(
    scan: Scan, step: Any, fixed: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Run the loop: carries go to and fro between two sets of buffers, ys are written in place."""
    types = scan.body.out_types
    k = scan.carries
    ys = [np.empty((scan.length, *t.shape), t.dtype) for t in types[k:]]
    here = [np.array(c, t.dtype) for c, t in zip(carry, types, strict=False)]
    there = [np.empty(t.shape, t.dtype) for t in types[:k]]
    rows_x = [_rows(x) for x in xs]
    rows_y = [_rows(y) for y in ys]
    order = range(scan.length - 1, -1, -1) if scan.reverse else range(scan.length)
    for i in order:
        step(*fixed, *here, *[x[i] for x in rows_x], *there, *[y[i] for y in rows_y])
        here, there = there, here
    return here, ys


def _distinct_stacks(scan: Scan) -> tuple[Scan, list[tuple[bool, int]]]:
    """Return the scan with each y stacked once, and where each stack is found: `(True, k)` is the k-th xs itself."""
    body, k = scan.body, scan.carries
    xs = {id(v): j for j, v in enumerate(body.inputs[scan.consts + k :])}
    distinct: dict[int, int] = {}
    ys, places = [], []
    for a in body.outputs[k:]:
        if id(a) in xs:
            places.append((True, xs[id(a)]))
            continue
        if id(a) not in distinct:
            distinct[id(a)] = len(ys)
            ys.append(a)
        places.append((False, distinct[id(a)]))
    left = Program(body.label, body.inputs, body.consts, body.equations, [*body.outputs[:k], *ys])
    return scan._replace(body=left), places


def _rows(x: Any) -> Any:
    """Return the slices of an array along its first axis as arrays, 0-d ones included."""
    return [x[i : i + 1].reshape(()) for i in range(len(x))] if x.ndim == 1 else x


# ---------------------------------------------------------------------------------------------------- hoisting


def _hoisted(scan: Scan) -> tuple[Program, Program, Scan]:
    """Return the Program of the constants alone, that of all steps at once, and the scan of what is left."""
    body = scan.body
    n, k = scan.consts, scan.carries
    known = {id(v) for v in [*body.inputs[:n], *(v for v, _ in body.consts)]}
    free = known | {id(v) for v in body.inputs[n + k :]}
    once, every, rest = [], [], []
    for eq in body.equations:
        variables = {id(a) for a in eq.inputs if isinstance(a, Var)}
        if variables <= known:
            once.append(eq)
            known.update(id(v) for v in eq.outputs)
        elif variables <= free and _worth_batching(eq):
            every.append(eq)
        else:
            rest.append(eq)
            continue
        free.update(id(v) for v in eq.outputs)
    used = {id(a) for eq in [*rest, *every] for a in eq.inputs} | {id(a) for a in body.outputs}
    shared = [v for eq in once for v in eq.outputs if id(v) in used]
    late = {id(a) for eq in rest for a in eq.inputs} | {id(a) for a in body.outputs}
    stacked = [v for eq in every for v in eq.outputs if id(v) in late]
    first = Program(body.label, body.inputs[:n], body.consts, once, shared)
    all_fixed = [*body.inputs[:n], *shared]
    one = Program(body.label, [*all_fixed, *body.inputs[n + k :]], body.consts, every, stacked)
    mask = (*[False] * len(all_fixed), *[True] * (len(body.inputs) - n - k))
    batched = (
        batch_program(one, mask, scan.length, None, (True,) * len(stacked))[0]
        if stacked
        else Program(body.label, one.inputs, (), (), ())
    )
    inputs = [*all_fixed, *body.inputs[n:], *stacked]
    left = Program(body.label, inputs, body.consts, rest, body.outputs)
    return first, batched, scan._replace(body=left, consts=len(all_fixed))


def _worth_batching(eq: Equation) -> bool:
    """Return whether an equation is done for all steps at once: products and elementwise work, of moderate size."""
    if len(eq.outputs) != 1 or eq.prim.kind == "structured" or eq.prim.rules:
        return False
    return eq.outputs[0].type.size <= 2**16


# -------------------------------------------------------------------------------------- sums that a carry collects


class Collected(NamedTuple):
    """A carry that only collects: its place, which stacked ys its terms are, and the sum over all steps of them."""

    carry: int
    places: tuple[int, ...]
    total: Program


def _without_collectors(scan: Scan) -> tuple[Scan, list[Collected]]:
    """Take out carries of the form c + term, used for nothing else: stack what terms are made of, and sum once."""
    body = scan.body
    n, k = scan.consts, scan.carries
    makers = {id(v): eq for eq in body.equations for v in eq.outputs}
    uses = Counter(id(a) for eq in body.equations for a in eq.inputs)
    uses.update(id(a) for a in body.outputs)
    ys = list(body.outputs[k:])
    collected: list[Collected] = []
    for i in range(k):
        term = _collected_term(body.inputs[n + i], body.outputs[i], makers, uses)
        if term is not None:
            parts, total = _sum_of_terms(term, makers, uses, scan.length)
            collected.append(Collected(i, tuple(range(len(ys), len(ys) + len(parts))), total))
            ys += parts
    if not collected:
        return scan, []
    gone = {c.carry for c in collected}
    inputs = [v for j, v in enumerate(body.inputs) if j - n not in gone]
    outputs = [a for i, a in enumerate(body.outputs[:k]) if i not in gone]
    left = Program(body.label, inputs, body.consts, body.equations, [*outputs, *ys]).simplify()
    return scan._replace(body=left, carries=k - len(gone)), collected


def _collected_term(carry: Var, out: Any, makers: dict[int, Equation], uses: Counter[int]) -> Var | None:
    """Return what is added to a carry, if the carry is used for that alone."""
    total = makers.get(id(out))
    if total is None or total.prim.name != "add" or uses[id(carry)] != 1 or uses[id(out)] != 1:
        return None
    others = [a for a in total.inputs if a is not carry]
    if len(others) != 1 or not isinstance(others[0], Var) or others[0].type != carry.type:
        return None
    return others[0] if carry.type.dtype.kind in "fc" and carry.type.dtype.itemsize > 2 else None


def _sum_of_terms(term: Var, makers: dict[int, Equation], uses: Counter[int], length: int) -> tuple[list[Any], Program]:
    """Return what to stack for a term, and the Program that makes the sum over steps of the stacks.

    The sum of products, or of sums, is one product, or sum, with the step axis among those that are contracted.
    """
    eq = makers.get(id(term))
    parts: list[Any] = [term]
    prim, params = TABLE["reduce_sum"], {"axes": (0,)}
    if eq is not None and uses[id(term)] == 1 and all(isinstance(a, Var) for a in eq.inputs):
        if eq.prim.name == "dot_general" and not eq.params["batch"][0]:
            xc, yc = eq.params["contract"]
            contract = ((0, *[a + 1 for a in xc]), (0, *[a + 1 for a in yc]))
            parts, prim, params = eq.inputs, eq.prim, {"contract": contract, "batch": ((), ())}
        elif eq.prim.name == "reduce_sum":
            parts, params = eq.inputs, {"axes": (0, *[a + 1 for a in eq.params["axes"]])}
    inputs = [Var(ArrayType((length, *a.type.shape), a.type.dtype)) for a in parts]
    out = Var(term.type)
    total = Program("a sum over steps", inputs, (), [Equation(prim, list(inputs), params, [out], "")], [out])
    return parts, total


def _with_collected(
    collected: Sequence[Collected], totals: Sequence[Any], carry: Sequence[Any], outs: Sequence[Any], scan: Scan
) -> tuple[Any, ...]:
    """Put the collected sums in the place of their carries and drop the stacks they were made of."""
    ys = outs[scan.carries :]
    sums = {
        c.carry: carry[c.carry] + total.compute(*[ys[j] for j in c.places])[0]
        for c, total in zip(collected, totals, strict=True)
    }
    rest = iter(outs[: scan.carries])
    carries = [sums[k] if k in sums else next(rest) for k in range(len(carry))]
    return (*carries, *ys[: len(ys) - sum(len(c.places) for c in collected)])

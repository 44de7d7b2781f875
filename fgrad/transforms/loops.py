"""What each interpreter makes of `scan` and `while_loop`: loops over derived bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad.core import Params
from fgrad.ops.control import scan, while_loop
from fgrad.ops.reduce import reduce_any
from fgrad.plans import zeros
from fgrad.program import Program, Trace, attributed
from fgrad.transforms.jvp import Forward
from fgrad.transforms.linearize import Linearize, LinearTracer, Step
from fgrad.transforms.programs import (
    Linearization,
    Mask,
    batch_program,
    jvp_program,
    linearize_program,
    prefixed,
    under,
)
from fgrad.transforms.structured import (
    as_derivative,
    bind_down,
    check_linear,
    record,
    rule,
    split_arguments,
    traced_mask,
    uses_axis,
    wrap_tangents,
)
from fgrad.transforms.transpose import Transpose, is_zero, not_linear
from fgrad.transforms.vmap import Batch, to_front

# --------------------------------------------------------------------------------------------------- scan


def _carried(mask: Mask, consts: int, carries: int, step: Callable[[Mask], Mask]) -> Mask:
    """Return the mask with carries marked until `step`, which tells the outputs marked, marks no more."""
    while True:
        active = step(mask)
        grown = tuple(m or (consts <= i < consts + carries and active[i - consts]) for i, m in enumerate(mask))
        if grown == mask:
            return mask
        mask = grown


@rule(scan, Linearize)
def _scan_linearize(tape: Linearize, args: Sequence[Any], params: Params) -> Any:
    body, n, k = params["body"], params["consts"], params["carries"]
    mask, values, _ = split_arguments(tape, args)
    mask = tuple(m for m in mask)
    full = _carried(mask, n, k, lambda m: linearize_program(body, m, tape.forward).active)
    force = (*full[n : n + k], *[False] * (len(body.outputs) - k))
    split = linearize_program(body, full, tape.forward, force)
    fixed = {j: i for j, i in enumerate(split.residual_inputs) if i is not None and i < n}
    stacked = [j for j in range(len(split.residual_inputs)) if j not in fixed]
    m = len(body.outputs)
    keep = [*range(m), *[m + j for j in stacked]]
    forward = Program(body.label, split.forward.inputs, split.forward.consts, split.forward.equations,
                      [split.forward.outputs[i] for i in keep])  # fmt: skip
    outs = bind_down(tape, scan, values, {**params, "body": forward})
    saved = [*[values[fixed[j]] for j in fixed], *outs[m:]]
    nodes = [x.node for x in args if x.__class__ is LinearTracer and x.interpreter is tape]
    info = (params, split, tuple(fixed), tuple(stacked), mask, full)
    return record(tape, _SCAN, saved, info, nodes, outs[:m], split.active)


def _pull_scan(saved: Any, types: Any, info: Any, cts: Any) -> Any:
    """Run the body's pull over the steps in reverse: carry holds cotangents of carries and sums of those of consts."""
    params, split, fixed, stacked, mask, full = info
    body, n, k, length = params["body"], params["consts"], params["carries"], params["length"]
    active_carry = [i for i in range(k) if split.active[i]]
    active_ys = [i for i in range(k, len(body.outputs)) if split.active[i]]
    const_ids = [i for i in range(n) if full[i]]
    x_ids = [i for i in range(n + k, len(full)) if full[i]]
    back = _scan_pull_body(split, body, fixed, stacked, const_ids, active_carry, active_ys, x_ids, n)
    carry_cts = [zeros(body.out_types[i]) if cts[i] is None else cts[i] for i in active_carry]
    sums = [np.zeros(body.in_types[i].shape, body.in_types[i].dtype) for i in const_ids]
    ys = [
        np.zeros((length, *body.out_types[i].shape), body.out_types[i].dtype) if cts[i] is None else cts[i]
        for i in active_ys
    ]
    outs = scan(
        *saved[: len(fixed)],
        *sums,
        *carry_cts,
        *saved[len(fixed) :],
        *ys,
        body=back,
        length=length,
        reverse=not params["reverse"],
        consts=len(fixed),
        carries=len(sums) + len(carry_cts),
    )
    found = dict(zip([*const_ids, *[n + i for i in active_carry], *x_ids], outs, strict=True))
    return [found.get(i) for i, m in enumerate(mask) if m]


def _scan_pull_body(
    split: Linearization,
    body: Program,
    fixed: Sequence[int],
    stacked: Sequence[int],
    const_ids: Sequence[int],
    active_carry: Sequence[int],
    active_ys: Sequence[int],
    x_ids: Sequence[int],
    n: int,
) -> Program:
    """Return the body of the backward scan, made once per linearization."""
    cache = split.linear.cache
    if "scan body" not in cache:
        cache["scan body"] = _record_scan_pull(
            split, body, fixed, stacked, const_ids, active_carry, active_ys, x_ids, n
        )
    return cache["scan body"]  # type: ignore[no-any-return]


def _record_scan_pull(split, body, fixed, stacked, const_ids, active_carry, active_ys, x_ids, n):  # type: ignore[no-untyped-def]
    back = Trace.alone(f"pull of {body.label}")
    linear = split.linear
    residuals: dict[int, Any] = {j: back.input(linear.inputs[j].type) for j in fixed}
    sums = [back.input(body.in_types[i].strong()) for i in const_ids]
    carry = [back.input(body.out_types[i].strong()) for i in active_carry]
    residuals.update({j: back.input(linear.inputs[j].type) for j in stacked})
    ys = [back.input(body.out_types[i].strong()) for i in active_ys]
    args = [*[residuals[j] for j in range(len(residuals))], *carry, *ys]

    def steps() -> list[Any]:
        found = dict(zip(split.reached, attributed(linear).run(*args), strict=True))
        zero = lambda i: zeros(body.in_types[i])  # noqa: E731
        new_sums = [s + found[i] if i in found else s for s, i in zip(sums, const_ids, strict=True)]
        new_carry = [found.get(n + i, zero(n + i)) for i in active_carry]
        return [*new_sums, *new_carry, *[found.get(i, zero(i)) for i in x_ids]]

    return back.finish(under(back, steps)).simplify()


def _push_scan(saved: Any, types: Any, info: Any, tangents: Any) -> Any:
    """Run the body's push over the steps in their order: carry holds tangents of carries."""
    params, split, fixed, stacked, mask, _ = info
    body, n, k, length = params["body"], params["consts"], params["carries"], params["length"]
    given = dict(zip([i for i, m in enumerate(mask) if m], tangents, strict=True))

    def tangent(i: int) -> Any:
        if given.get(i) is not None:
            return given[i]
        shape = body.in_types[i].shape if i < n + k else (length, *body.in_types[i].shape)
        return np.zeros(shape, body.in_types[i].dtype)

    reached = split.reached
    groups = [
        [i for i in reached if i < n],
        [i for i in reached if n <= i < n + k],
        [i for i in reached if i >= n + k],
    ]
    linear = split.linear
    res = linear.inputs[: len(split.residual_inputs)]
    ts = dict(zip(reached, linear.inputs[len(res) :], strict=True))
    inputs = [
        *[res[j] for j in fixed],
        *[ts[i] for i in groups[0]],
        *[ts[i] for i in groups[1]],
        *[res[j] for j in stacked],
        *[ts[i] for i in groups[2]],
    ]
    step = Program(linear.label, inputs, linear.consts, linear.equations, linear.outputs)
    outs = iter(
        scan(
            *saved[: len(fixed)],
            *map(tangent, groups[0]),
            *map(tangent, groups[1]),
            *saved[len(fixed) :],
            *map(tangent, groups[2]),
            body=step,
            length=length,
            reverse=params["reverse"],
            consts=len(fixed) + len(groups[0]),
            carries=len(groups[1]),
        )
    )
    return [next(outs) if a else None for a in split.active]


_SCAN = Step(_pull_scan, _push_scan)


@rule(scan, Forward)
def _scan_forward(forward: Forward, args: Sequence[Any], params: Params) -> Any:
    body, n, k = params["body"], params["consts"], params["carries"]
    pairs = [forward.split(x) for x in args]
    mask = tuple(t is not None for _, t in pairs)
    full = _carried(mask, n, k, lambda m: jvp_program(body, m)[1])
    force = (*full[n : n + k], *[False] * (len(body.outputs) - k))
    derived, active = jvp_program(body, full, force)
    carry_t = [i for i in range(n, n + k) if full[i]]
    derived = _regrouped(derived, full, active, n, k)
    tangent = lambda i: np.zeros(np.shape(pairs[i][0]), body.in_types[i].dtype) if pairs[i][1] is None else pairs[i][1]  # noqa: E731
    values = [v for v, _ in pairs]
    group = lambda lo, hi: [*values[lo:hi], *[tangent(i) for i in range(lo, hi) if full[i]]]  # noqa: E731
    consts, carry = group(0, n), group(n, n + k)
    outs = bind_down(forward, scan, [*consts, *carry, *group(n + k, len(values))],
                      {**params, "body": derived, "consts": len(consts), "carries": len(carry)})  # fmt: skip
    m = len(body.outputs)
    ny = m - k
    primal = [*outs[:k], *outs[k + len(carry_t) : k + len(carry_t) + ny]]
    tangents = [*outs[k : k + len(carry_t)], *outs[k + len(carry_t) + ny :]]
    return wrap_tangents(forward, [*primal, *tangents], m, active)


def _regrouped(derived: Program, full: Mask, active: Mask, n: int, k: int) -> Program:
    """Return a jvp body with tangents next to their values: consts, carries, xs; carries, ys."""
    count = len(full)
    ts = dict(zip([i for i, f in enumerate(full) if f], derived.inputs[count:], strict=True))
    bounds = ((0, n), (n, n + k), (n + k, count))
    inputs = [v for lo, hi in bounds for v in (*derived.inputs[lo:hi], *[ts[i] for i in range(lo, hi) if i in ts])]
    m = len(active)
    outs = dict(zip([i for i, a in enumerate(active) if a], derived.outputs[m:], strict=True))
    outputs = [
        a
        for lo, hi in ((0, k), (k, m))
        for a in (*derived.outputs[lo:hi], *[outs[i] for i in range(lo, hi) if i in outs])
    ]
    return Program(derived.label, inputs, derived.consts, derived.equations, outputs)


@rule(scan, Batch)
def _scan_batch(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    body, n, k = params["body"], params["consts"], params["carries"]
    pairs = [batch.split(x) for x in args]
    mask = tuple(a is not None for _, a in pairs)
    if not any(mask) and not uses_axis(body, batch.axis_name):
        return batch.pass_on(scan, args, params)
    size, name = batch.size, batch.axis_name
    full = _carried(mask, n, k, lambda m: batch_program(body, m, size, name)[1])
    force = (*full[n : n + k], *[False] * (len(body.outputs) - k))
    derived, batched = batch_program(body, full, size, name, force)
    values = []
    for i, (x, a) in enumerate(pairs):
        if full[i]:
            x = to_front(x, a, size)
            if i >= n + k:  # the step axis comes first: an x of one step has the batch axis in front
                x = x.swapaxes(0, 1)
        values.append(x)
    outs = bind_down(batch, scan, values, {**params, "body": derived})
    return batch.wrap(scan, outs, [(0 if i < k else 1) if b else None for i, b in enumerate(batched)])


@rule(scan, Transpose)
def _scan_transpose(linear: Transpose, args: Sequence[Any], params: Params) -> Any:
    body, n, k = params["body"], params["consts"], params["carries"]
    traced = traced_mask(linear, args)
    full = _carried(traced, n, k, lambda m: linearize_program(body, m, linear.forward).active)
    check_linear(linear, body, full)
    if not all(is_zero(x) for x, m, f in zip(args, traced, full, strict=True) if f and not m):
        raise not_linear(linear, scan)
    return as_derivative(linear, scan, args, params)


# ----------------------------------------------------------------------------------------------- while_loop


@rule(while_loop, Linearize)
def _while_linearize(tape: Linearize, args: Sequence[Any], params: Params) -> Any:
    """Record a loop for pushing: the push runs it again, with tangents beside values."""
    if not tape.forward:
        raise ValueError(
            f"{tape.label}: reverse mode through fgrad.lax.while_loop needs a bound on the number of steps.\n"
            "Remedy: while_loop(…, max_steps=n); or fgrad.lax.fori_loop or scan with known bounds, or forward mode."
        )
    mask, values, nodes = split_arguments(tape, args)
    outs = tape.pass_on(while_loop, values, params)
    return record(tape, _WHILE, values, (params, mask), nodes, outs, (True,) * len(outs))


def _push_while(saved: Any, types: Any, info: Any, tangents: Any) -> Any:
    params, mask = info
    given = iter(tangents)
    ts = [next(given) if m else None for m in mask]
    derived, operands, active = _while_with_tangents(saved, ts, params)
    outs = while_loop(*operands, **derived)
    pushed = iter(outs[len(active) :])
    return [next(pushed) if a else None for a in active]


_WHILE = Step(None, _push_while)


@rule(while_loop, Forward)
def _while_forward(forward: Forward, args: Sequence[Any], params: Params) -> Any:
    pairs = [forward.split(x) for x in args]
    derived, operands, active = _while_with_tangents([v for v, _ in pairs], [t for _, t in pairs], params)
    outs = bind_down(forward, while_loop, operands, derived)
    return wrap_tangents(forward, outs, len(active), active)


def _while_with_tangents(
    values: Sequence[Any], tangents: Sequence[Any], params: Params
) -> tuple[Params, list[Any], Mask]:
    """Return parameters and operands of the loop that carries tangents too, and which carries have one."""
    test, body, m, n = params["test"], params["body"], params["test_consts"], params["body_consts"]
    mask = tuple(t is not None for t in tangents[m:])
    k = len(mask) - n
    full = _carried(mask, n, k, lambda a: jvp_program(body, a)[1])
    derived, active = jvp_program(body, full, full[n:])
    derived = _regrouped(derived, full, active, n, k)

    def with_tangents(lo: int, hi: int) -> list[Any]:
        ts = [tangents[m + i] for i in range(lo, hi) if full[i]]
        kinds = [body.in_types[i] for i in range(lo, hi) if full[i]]
        return [*values[m + lo : m + hi], *[zeros(t) if x is None else x for x, t in zip(ts, kinds, strict=True)]]

    fixed, carry = with_tangents(0, n), with_tangents(n, n + k)
    wide_test = prefixed(test, (), [body.in_types[i].strong() for i in range(n, n + k) if full[i]])
    new = {"test": wide_test, "body": derived, "test_consts": m, "body_consts": len(fixed)}
    return new, [*values[:m], *fixed, *carry], active


@rule(while_loop, Batch)
def _while_batch(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    test, body, m, n = params["test"], params["body"], params["test_consts"], params["body_consts"]
    pairs = [batch.split(x) for x in args]
    if all(a is None for _, a in pairs) and not (uses_axis(test, batch.axis_name) or uses_axis(body, batch.axis_name)):
        return batch.pass_on(while_loop, args, params)
    size, name = batch.size, batch.axis_name
    batched = tuple(a is not None for _, a in pairs)
    mask = _carried(batched[m:], n, len(pairs) - m - n, lambda a: batch_program(body, a, size, name)[1])
    test_mask = (*batched[:m], *mask[n:])
    own_test, test_batched = batch_program(test, test_mask, size, name)
    if test_batched[0]:  # every example has its own end: all carries are batched, finished ones are frozen
        mask = (*mask[:n], *[True] * (len(mask) - n))
        own_test, _ = batch_program(test, (*batched[:m], *mask[n:]), size, name)
    own_body, _ = batch_program(body, mask, size, name, mask[n:])
    wanted = (*batched[:m], *mask)
    values = [to_front(x, a, size) if w else x for (x, a), w in zip(pairs, wanted, strict=True)]
    if test_batched[0]:
        own_test, own_body, values = _frozen_lanes(own_test, own_body, values, m, n)
        params = {"test": own_test, "body": own_body, "test_consts": m, "body_consts": m + n}
    else:
        params = {**params, "test": own_test, "body": own_body}
    outs = bind_down(batch, while_loop, values, params)
    return batch.wrap(while_loop, outs, [0 if w else None for w in mask[n:]])


def _frozen_lanes(
    test: Program, body: Program, values: list[Any], m: int, n: int
) -> tuple[Program, Program, list[Any]]:
    """Return test and body that go on until every example is done, and keep the carry of those that are."""
    types = [v.type for v in test.inputs]
    any_left = Trace.alone(test.label)
    inputs = [any_left.input(t) for t in types]
    program = any_left.finish([under(any_left, lambda: reduce_any(test.run(*inputs)[0], axes=(0,)))])
    step = Trace.alone(body.label)
    head = [step.input(t) for t in types[:m]]
    fixed = [step.input(t) for t in body.in_types[:n]]
    carry = [step.input(t) for t in body.in_types[n:]]

    def steps() -> list[Any]:
        going = test.run(*head, *carry)[0]
        new = attributed(body).run(*fixed, *carry)
        return [np.where(going.reshape((-1, *(1,) * (x.ndim - 1))), y, x) for x, y in zip(carry, new, strict=True)]

    frozen_step = step.finish(under(step, steps))
    return program, frozen_step, [*values[:m], *values[:m], *values[m : m + n], *values[m + n :]]

"""What each interpreter makes of the structured primitives `call`, `cond`, `scan` and `while_loop`.

All are built from derived Programs (`fgrad.transforms.programs`). A node of the tape keeps every array it needs in
`saved`, so that the tape itself can be recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad.core import Params, Primitive, Tracer, type_of
from fgrad.kinds import zeros
from fgrad.ops.control import call, cond, scan, while_loop
from fgrad.ops.reduce import reduce_any
from fgrad.program import Program, Trace, Var
from fgrad.transforms.jvp import Forward
from fgrad.transforms.linearize import Linearize, LinearTracer, Node, Step, leaf, private
from fgrad.transforms.programs import (
    Linearization,
    Mask,
    batch_program,
    jvp_program,
    linearize_program,
    prefixed,
    under,
)
from fgrad.transforms.transpose import TangentTracer, Transpose, is_zero, not_linear
from fgrad.transforms.vmap import Batch, to_front


def rule(prim: Primitive, interpreter: type) -> Callable[[Any], Any]:
    """Register the meaning of a structured primitive under an interpreter."""

    def enter(fun: Any) -> Any:
        prim.rules[interpreter] = fun
        return fun

    return enter


def split_arguments(tape: Linearize, args: Sequence[Any]) -> tuple[Mask, list[Any], list[Node]]:
    """Return which arguments are differentiated, the values of all, and the nodes of those."""
    mask = tuple(x.__class__ is LinearTracer and x.interpreter is tape for x in args)
    values = [x.value if m else x for x, m in zip(args, mask, strict=True)]
    return mask, values, [x.node for x, m in zip(args, mask, strict=True) if m]


def _bind_down(interpreter: Any, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
    return interpreter.pass_on(prim, args, params)


def record(
    tape: Linearize,
    step: Step,
    saved: Sequence[Any],
    params: Any,
    nodes: Sequence[Node],
    outs: Sequence[Any],
    active: Mask,
) -> tuple[Any, ...]:
    """Enter a node of several outputs and return them; inactive ones stay plain."""
    node = Node(step, [private(x) for x in saved], None, params, tuple(nodes), tape.clock(), len(outs))
    wrapped = tape.wrap_many(node, outs)
    return tuple(w if a else x for w, x, a in zip(wrapped, outs, active, strict=True))


def filled_cotangents(cts: Sequence[Any], types: Sequence[Any], active: Mask) -> list[Any]:
    """Return the cotangents of the active outputs, zeros for those that are missing."""
    return [zeros(t) if ct is None else ct for ct, t, a in zip(cts, types, active, strict=True) if a]


def scatter_cotangents(values: Sequence[Any], reached: Sequence[int], mask: Mask) -> list[Any]:
    """Return cotangents for the differentiated inputs out of those that were reached."""
    found = dict(zip(reached, values, strict=True))
    return [found.get(i) for i, m in enumerate(mask) if m]


# --------------------------------------------------------------------------------------------------- call


@rule(call, Linearize)
def _call_linearize(tape: Linearize, args: Sequence[Any], params: Params) -> Any:
    program = params["program"]
    mask, values, nodes = split_arguments(tape, args)
    split = linearize_program(program, mask, tape.forward)
    outs = _bind_down(tape, call, values, {"program": split.forward})
    n = len(program.outputs)
    return record(tape, _CALL, outs[n:], (program, split, mask), nodes, outs[:n], split.active)


def _pull_call(saved: Any, types: Any, params: Any, cts: Any) -> Any:
    program, split, mask = params
    pulled = call(*saved, *filled_cotangents(cts, program.out_types, split.active), program=split.linear)
    return scatter_cotangents(pulled, split.reached, mask)


def _push_call(saved: Any, types: Any, params: Any, tangents: Any) -> Any:
    program, split, mask = params
    given = dict(zip([i for i, m in enumerate(mask) if m], tangents, strict=True))
    ts = [zeros(program.in_types[i]) if given[i] is None else given[i] for i in split.reached]
    pushed = iter(call(*saved, *ts, program=split.linear))
    return [next(pushed) if a else None for a in split.active]


_CALL = Step(_pull_call, _push_call)


@rule(call, Forward)
def _call_forward(forward: Forward, args: Sequence[Any], params: Params) -> Any:
    program = params["program"]
    values, tangents, mask = split_tangents(forward, args)
    derived, active = jvp_program(program, mask)
    outs = _bind_down(forward, call, [*values, *tangents], {"program": derived})
    return wrap_tangents(forward, outs, len(program.outputs), active)


def split_tangents(forward: Forward, args: Sequence[Any]) -> tuple[list[Any], list[Any], Mask]:
    """Return values, the tangents there are, and which arguments have one."""
    pairs = [forward.split(x) for x in args]
    return [v for v, _ in pairs], [t for _, t in pairs if t is not None], tuple(t is not None for _, t in pairs)


def wrap_tangents(forward: Forward, outs: Sequence[Any], n: int, active: Mask) -> tuple[Any, ...]:
    """Return the first `n` outputs as tracers, the active ones with the tangents that follow."""
    tangents = iter(outs[n:])
    return tuple(forward.wrap(x, next(tangents)) if a else x for x, a in zip(outs[:n], active, strict=True))


@rule(call, Batch)
def _call_batch(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    pairs = [batch.split(x) for x in args]
    mask = tuple(a is not None for _, a in pairs)
    if not any(mask) and not uses_axis(params["program"], batch.axis_name):
        return batch.pass_on(call, args, params)
    program, batched = batch_program(params["program"], mask, batch.size, batch.axis_name)
    outs = _bind_down(batch, call, fronted(batch, pairs), {"program": program})
    return batch.wrap(call, outs, [0 if b else None for b in batched])


def fronted(batch: Batch, pairs: Sequence[tuple[Any, int | None]]) -> list[Any]:
    """Return values with the batch axis in front, where they have one."""
    return [x if a is None else to_front(x, a, batch.size) for x, a in pairs]


def uses_axis(program: Program, axis_name: Any) -> bool:
    """Return whether a Program has a collective over `axis_name`."""
    if axis_name is None:
        return False
    for eq in program.equations:
        for value in eq.params.values():
            parts = value if isinstance(value, tuple) else (value,)
            if axis_name in [p for p in parts if not isinstance(p, Program)]:
                return True
            if any(isinstance(p, Program) and uses_axis(p, axis_name) for p in parts):
                return True
    return False


@rule(call, Transpose)
def _call_transpose(linear: Transpose, args: Sequence[Any], params: Params) -> Any:
    return tuple(params["program"].run(*args))


# --------------------------------------------------------------------------------------------------- cond


def is_known(x: Any) -> bool:
    """Return whether a value is plain, so that Python can look at it."""
    return not isinstance(x, Tracer)


@rule(cond, Linearize)
def _cond_linearize(tape: Linearize, args: Sequence[Any], params: Params) -> Any:
    branches = params["branches"]
    index, operands = args[0], args[1:]
    if is_known(index):
        return _call_linearize(tape, operands, {"program": branches[int(index)]})
    mask, values, nodes = split_arguments(tape, operands)
    if not any(mask):
        return tape.pass_on(cond, args, params)
    splits = [linearize_program(b, mask, tape.forward) for b in branches]
    active = tuple(any(s.active[k] for s in splits) for k in range(len(branches[0].outputs)))
    splits = [linearize_program(b, mask, tape.forward, active) for b in branches]
    n = len(branches[0].outputs)
    forwards = _with_all_residuals([s.forward for s in splits], n)
    outs = _bind_down(tape, cond, (index, *values), {"branches": forwards})
    saved = [index, *outs[n:]]
    return record(tape, _COND, saved, (branches[0], splits, mask), nodes, outs[:n], active)


def _with_all_residuals(forwards: Sequence[Program], n: int) -> tuple[Program, ...]:
    """Return the branches' forward Programs, each giving the residuals of all (zeros for those of others)."""
    programs = []
    for k, program in enumerate(forwards):
        outputs = list(program.outputs[:n])
        consts = list(program.consts)
        for j, other in enumerate(forwards):
            for atom in other.outputs[n:]:
                if j == k:
                    outputs.append(atom)
                else:
                    var = Var(atom.type)
                    consts.append((var, zeros(atom.type)))
                    outputs.append(var)
        programs.append(Program(program.label, program.inputs, consts, program.equations, outputs))
    return tuple(programs)


def _linear_branches(splits: Sequence[Linearization]) -> list[Program]:
    """Return the branches' linear Programs, each taking the residuals of all branches."""
    counts = [len(s.residual_inputs) for s in splits]
    residuals = [s.linear.inputs[:n] for s, n in zip(splits, counts, strict=True)]
    programs = []
    for k, s in enumerate(splits):
        inputs = []
        for j, own in enumerate(residuals):
            inputs += own if j == k else [Var(v.type) for v in own]
        linear = s.linear
        inputs += linear.inputs[counts[k] :]
        programs.append(Program(linear.label, inputs, linear.consts, linear.equations, linear.outputs))
    return programs


def _pull_branches(
    splits: Sequence[Linearization], reached: Sequence[int], kinds: Sequence[Any]
) -> tuple[Program, ...]:
    """Return the branches' pulls, each giving cotangents for all of `reached`, zeros where it has none."""
    programs = []
    for s, linear in zip(splits, _linear_branches(splits), strict=True):
        found = dict(zip(s.reached, linear.outputs, strict=True))
        missing = {i: Var(kinds[i].strong()) for i in reached if i not in found}
        consts = [*linear.consts, *((var, zeros(kinds[i])) for i, var in missing.items())]
        outputs = [found.get(i) or missing[i] for i in reached]
        programs.append(Program(linear.label, linear.inputs, consts, linear.equations, outputs))
    return tuple(programs)


def _pull_cond(saved: Any, types: Any, params: Any, cts: Any) -> Any:
    program, splits, mask = params
    index, *residuals = saved
    reached = sorted({i for s in splits for i in s.reached})
    branches = _pull_branches(splits, reached, program.in_types)
    given = filled_cotangents(cts, program.out_types, splits[0].active)
    return scatter_cotangents(cond(index, *residuals, *given, branches=branches), reached, mask)


def _push_cond(saved: Any, types: Any, params: Any, tangents: Any) -> Any:
    program, splits, mask = params
    index, *residuals = saved
    given = dict(zip([i for i, m in enumerate(mask) if m], tangents, strict=True))
    ts = [zeros(program.in_types[i]) if given[i] is None else given[i] for i in splits[0].reached]
    branches = tuple(_linear_branches(splits))
    pushed = iter(cond(index, *residuals, *ts, branches=branches))
    return [next(pushed) if a else None for a in splits[0].active]


_COND = Step(_pull_cond, _push_cond)


@rule(cond, Forward)
def _cond_forward(forward: Forward, args: Sequence[Any], params: Params) -> Any:
    branches = params["branches"]
    values, tangents, mask = split_tangents(forward, args)
    active = tuple(np.any([jvp_program(b, mask[1:])[1] for b in branches], axis=0).tolist())
    derived = tuple(jvp_program(b, mask[1:], active)[0] for b in branches)
    outs = _bind_down(forward, cond, [*values, *tangents], {"branches": derived})
    return wrap_tangents(forward, outs, len(branches[0].outputs), active)


@rule(cond, Batch)
def _cond_batch(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    branches = params["branches"]
    pairs = [batch.split(x) for x in args]
    if all(a is None for _, a in pairs) and not any(uses_axis(b, batch.axis_name) for b in branches):
        return batch.pass_on(cond, args, params)
    mask = tuple(a is not None for _, a in pairs[1:])
    everything = (True,) * len(branches[0].outputs)
    derived = tuple(batch_program(b, mask, batch.size, batch.axis_name, everything)[0] for b in branches)
    values = fronted(batch, pairs)
    if pairs[0][1] is None:
        outs = _bind_down(batch, cond, values, {"branches": derived})
    else:  # each example has its own index: compute all branches and choose
        index = values[0]
        results = [call(*values[1:], program=b) for b in derived]
        outs = results[-1]
        for k in reversed(range(len(results) - 1)):
            chosen = index == k
            outs = [
                np.where(chosen.reshape((-1, *(1,) * (x.ndim - 1))), x, y)
                for x, y in zip(results[k], outs, strict=True)
            ]
    return batch.wrap(cond, outs, 0)


@rule(cond, Transpose)
def _cond_transpose(linear: Transpose, args: Sequence[Any], params: Params) -> Any:
    if is_known(args[0]):
        return tuple(params["branches"][int(args[0])].run(*args[1:]))
    traced = _traced(linear, args)
    for branch in params["branches"]:
        _check_linear(linear, branch, traced[1:])
    return _as_derivative(linear, cond, args, params)


def _traced(linear: Transpose, args: Sequence[Any]) -> Mask:
    return tuple(x.__class__ is TangentTracer and x.interpreter is linear for x in args)


def _check_linear(linear: Transpose, program: Program, mask: Mask) -> None:
    """Raise TypeError unless a Program is linear in the inputs in `mask`."""
    recorder = Trace(program.label)
    recorder.parent = None
    scratch = Transpose(linear.label, recorder, linear.clock)
    inputs = [TangentTracer(scratch, t, leaf()) if m else recorder.input(t) for t, m in zip(program.in_types, mask)]
    under(scratch, lambda: program.run(*inputs))


def _as_derivative(linear: Transpose, prim: Primitive, args: Sequence[Any], params: Params) -> tuple[Any, ...]:
    """Record a primitive that is linear in its traced inputs as its own derivative, at zero."""
    tape = under(linear.parent, Linearize, linear.label, linear.forward)
    tape.clock = linear.clock
    mine = _traced(linear, args)
    inputs = [LinearTracer(tape, zeros(x.kind), x.node) if m else x for x, m in zip(args, mine, strict=True)]
    outs = under(tape, lambda: prim(*inputs, **params))
    return tuple(
        TangentTracer(linear, type_of(x), x.node) if x.__class__ is LinearTracer and x.interpreter is tape else x
        for x in outs
    )


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
    outs = _bind_down(tape, scan, values, {**params, "body": forward})
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
    back = Trace(f"pull of {body.label}")
    back.parent = None
    linear = split.linear
    residuals: dict[int, Any] = {j: back.input(linear.inputs[j].type) for j in fixed}
    sums = [back.input(body.in_types[i].strong()) for i in const_ids]
    carry = [back.input(body.out_types[i].strong()) for i in active_carry]
    residuals.update({j: back.input(linear.inputs[j].type) for j in stacked})
    ys = [back.input(body.out_types[i].strong()) for i in active_ys]
    args = [*[residuals[j] for j in range(len(residuals))], *carry, *ys]

    def steps() -> list[Any]:
        found = dict(zip(split.reached, linear.run(*args), strict=True))
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
    outs = _bind_down(forward, scan, [*consts, *carry, *group(n + k, len(values))],
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
    outs = _bind_down(batch, scan, values, {**params, "body": derived})
    return batch.wrap(scan, outs, [(0 if i < k else 1) if b else None for i, b in enumerate(batched)])


@rule(scan, Transpose)
def _scan_transpose(linear: Transpose, args: Sequence[Any], params: Params) -> Any:
    body, n, k = params["body"], params["consts"], params["carries"]
    traced = _traced(linear, args)
    full = _carried(traced, n, k, lambda m: linearize_program(body, m, linear.forward).active)
    _check_linear(linear, body, full)
    if not all(is_zero(x) for x, m, f in zip(args, traced, full, strict=True) if f and not m):
        raise not_linear(linear, scan)
    return _as_derivative(linear, scan, args, params)


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
    outs = _bind_down(forward, while_loop, operands, derived)
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
    outs = _bind_down(batch, while_loop, values, params)
    return batch.wrap(while_loop, outs, [0 if w else None for w in mask[n:]])


def _frozen_lanes(
    test: Program, body: Program, values: list[Any], m: int, n: int
) -> tuple[Program, Program, list[Any]]:
    """Return test and body that go on until every example is done, and keep the carry of those that are."""
    types = [v.type for v in test.inputs]
    any_left = Trace(test.label)
    any_left.parent = None
    inputs = [any_left.input(t) for t in types]
    program = any_left.finish([under(any_left, lambda: reduce_any(test.run(*inputs)[0], axes=(0,)))])
    step = Trace(body.label)
    step.parent = None
    head = [step.input(t) for t in types[:m]]
    fixed = [step.input(t) for t in body.in_types[:n]]
    carry = [step.input(t) for t in body.in_types[n:]]

    def steps() -> list[Any]:
        going = test.run(*head, *carry)[0]
        new = body.run(*fixed, *carry)
        return [np.where(going.reshape((-1, *(1,) * (x.ndim - 1))), y, x) for x, y in zip(carry, new, strict=True)]

    frozen_step = step.finish(under(step, steps))
    return program, frozen_step, [*values[:m], *values[:m], *values[m : m + n], *values[m + n :]]

"""What each interpreter makes of `cond`: the branch taken where the index is known, all of them where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fgrad.core import Params, Tracer
from fgrad.ops.control import call, cond
from fgrad.plans import zeros
from fgrad.program import Program, Var
from fgrad.transforms.jvp import Forward
from fgrad.transforms.linearize import Linearize, Step
from fgrad.transforms.programs import (
    Linearization,
    batch_program,
    jvp_program,
    linearize_program,
)
from fgrad.transforms.structured import (
    as_derivative,
    bind_down,
    call_linearize,
    check_linear,
    filled_cotangents,
    fronted,
    record,
    rule,
    scatter_cotangents,
    split_arguments,
    split_tangents,
    traced_mask,
    uses_axis,
    wrap_tangents,
)
from fgrad.transforms.transpose import Transpose
from fgrad.transforms.vmap import Batch


def is_known(x: Any) -> bool:
    """Return whether a value is plain, so that Python can look at it."""
    return not isinstance(x, Tracer)


@rule(cond, Linearize)
def _cond_linearize(tape: Linearize, args: Sequence[Any], params: Params) -> Any:
    branches = params["branches"]
    index, operands = args[0], args[1:]
    if is_known(index):
        return call_linearize(tape, operands, {"program": branches[int(index)]})
    mask, values, nodes = split_arguments(tape, operands)
    if not any(mask):
        return tape.pass_on(cond, args, params)
    splits = [linearize_program(b, mask, tape.forward) for b in branches]
    active = tuple(any(s.active[k] for s in splits) for k in range(len(branches[0].outputs)))
    splits = [linearize_program(b, mask, tape.forward, active) for b in branches]
    n = len(branches[0].outputs)
    forwards = _with_all_residuals([s.forward for s in splits], n)
    outs = bind_down(tape, cond, (index, *values), {"branches": forwards})
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
    outs = bind_down(forward, cond, [*values, *tangents], {"branches": derived})
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
        outs = bind_down(batch, cond, values, {"branches": derived})
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
    traced = traced_mask(linear, args)
    for branch in params["branches"]:
        check_linear(linear, branch, traced[1:])
    return as_derivative(linear, cond, args, params)

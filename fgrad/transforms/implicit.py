"""What each interpreter makes of `linear_solve`: derivatives are solutions of the same system, or of its transpose.

From matvec(x) = b follows matvec(dx) = db - dmatvec(x). How a solution was found is never differentiated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fgrad.core import Params, type_of
from fgrad.ops.control import linear_solve
from fgrad.plans import zeros
from fgrad.transforms.jvp import Forward
from fgrad.transforms.linearize import Linearize, LinearTracer, Node, Pick, Step, private
from fgrad.transforms.programs import batch_program, jvp_program, under
from fgrad.transforms.structured import bind_down, fronted, rule, split_arguments, traced_mask, uses_axis
from fgrad.transforms.transpose import TangentTracer, Transpose, is_zero, not_linear, splice
from fgrad.transforms.vmap import Batch, to_front


def _unknowns(params: Params) -> int:
    """Return the number of arrays that x and b have; outputs of `solve` beyond these are auxiliary."""
    return len(params["matvec"].outputs)


def _tangents(values: Sequence[Any], ts: Sequence[Any], outs: Sequence[Any], params: Params) -> list[Any]:
    """Return the tangents of the solution, given those of the operands (None for zero)."""
    m, consts, n = params["counts"][0], sum(params["counts"]), _unknowns(params)
    matvec, x, right = params["matvec"], outs[:n], list(ts[consts:])
    mask = (*[t is not None for t in ts[:m]], *[False] * n)
    if any(mask):
        derived, active = jvp_program(matvec, mask)
        moved = iter(derived.run(*values[:m], *x, *[t for t in ts[:m] if t is not None])[n:])
        for k, a in enumerate(active):
            if a:
                change = -next(moved)
                right[k] = change if right[k] is None else right[k] + change
    right = [zeros(type_of(v)) if t is None else t for v, t in zip(values[consts:], right, strict=True)]
    return list(linear_solve(*values[:consts], *right, **params)[:n])


def _no_tangents(ts: Sequence[Any], params: Params) -> bool:
    """Return whether neither the matrix nor the right-hand side has a tangent; a solver's own operands do not count."""
    m, consts = params["counts"][0], sum(params["counts"])
    return all(t is None for t in (*ts[:m], *ts[consts:]))


@rule(linear_solve, Forward)
def _solve_forward(forward: Forward, args: Sequence[Any], params: Params) -> Any:
    pairs = [forward.split(x) for x in args]
    values, ts = [v for v, _ in pairs], [t for _, t in pairs]
    outs = bind_down(forward, linear_solve, values, params)
    if _no_tangents(ts, params):
        return outs
    pushed = under(forward.parent, _tangents, values, ts, outs, params)
    return tuple(forward.wrap(x, t) for x, t in zip(outs, [*pushed, *[None] * len(outs)], strict=False))


@rule(linear_solve, Linearize)
def _solve_linearize(tape: Linearize, args: Sequence[Any], params: Params) -> Any:
    mask, values, _ = split_arguments(tape, args)
    outs = tape.pass_on(linear_solve, values, params)

    def run(linear: Transpose) -> Any:
        ts = [
            TangentTracer(linear, type_of(v).strong(), x.node) if m else None
            for x, v, m in zip(args, values, mask, strict=True)
        ]
        return [] if _no_tangents(ts, params) else _tangents(values, ts, outs, params)

    nodes = [t.node for t in splice(tape, run)]
    return tuple([LinearTracer(tape, x, node) for x, node in zip(outs, nodes, strict=False)]) + tuple(
        outs[len(nodes) :]
    )


@rule(linear_solve, Transpose)
def _solve_transpose(linear: Transpose, args: Sequence[Any], params: Params) -> Any:
    """Record the solution as a linear function of b."""
    consts = sum(params["counts"])
    traced = traced_mask(linear, args)
    mask = traced[consts:]
    if any(traced[:consts]) or not all(m or is_zero(x) for x, m in zip(args[consts:], mask, strict=True)):
        raise not_linear(linear, linear_solve)
    kinds = linear_solve.type_rule(*[type_of(x) for x in args], **params)
    node = Node(
        _SOLVE,
        [private(x) for x in args[:consts]],
        None,
        (tuple(params.items()), mask),  # type: ignore[arg-type]
        tuple([x.node for x, m in zip(args[consts:], mask, strict=True) if m]),
        linear.clock(),
        len(kinds),
    )
    return tuple([TangentTracer(linear, t, Pick(node, k, linear.clock())) for k, t in enumerate(kinds)])


def _push_solve(saved: Any, types: Any, info: Any, tangents: Any) -> Any:
    params, mask = dict(info[0]), info[1]
    given = iter(tangents)
    kinds = params["matvec"].in_types[params["counts"][0] :]
    right = [next(given) if m else None for m in mask]
    right = [zeros(t) if b is None else b for b, t in zip(right, kinds, strict=True)]
    outs = linear_solve(*saved, *right, **params)
    return [*outs[: len(kinds)], *[None] * (len(outs) - len(kinds))]


def _pull_solve(saved: Any, types: Any, info: Any, cts: Any) -> Any:
    params, mask = dict(info[0]), info[1]
    if params["transpose_solve"] is None:
        raise TypeError(
            "custom_linear_solve: transpose_solve required for backwards mode automatic differentiation.\n"
            "Remedy: transpose_solve=lambda vecmat, ct: …, or symmetric=True if the matrix is."
        )
    m, s, t = params["counts"]
    kinds = params["matvec"].out_types
    right = [zeros(kind) if ct is None else ct for ct, kind in zip(cts, kinds, strict=False)]
    swapped = {
        "matvec": params["vecmat"],
        "solve": params["transpose_solve"],
        "vecmat": params["matvec"],
        "transpose_solve": params["solve"],
        "counts": (m, t, s),
    }
    outs = linear_solve(*saved[:m], *saved[m + s :], *saved[m : m + s], *right, **swapped)
    return [ct for ct, active in zip(outs, mask, strict=False) if active]


_SOLVE = Step(_pull_solve, _push_solve)


@rule(linear_solve, Batch)
def _solve_batch(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    """Batch x and b wherever either, or the matrix, is batched; matrices and their transposes alike."""
    names = ("matvec", "solve", "vecmat", "transpose_solve")
    programs = [params[name] for name in names]
    pairs = [batch.split(x) for x in args]
    size, axis = batch.size, batch.axis_name
    if all(a is None for _, a in pairs) and not any(p is not None and uses_axis(p, axis) for p in programs):
        return batch.pass_on(linear_solve, args, params)
    m, s, t = params["counts"]
    mask = tuple(a is not None for _, a in pairs)
    every = (True,) * _unknowns(params)
    of_consts = (mask[:m], mask[m : m + s], mask[:m], mask[m + s : m + s + t])
    derived = [
        p if p is None else batch_program(p, (*own, *every), size, axis, (True,) * len(p.outputs))[0]
        for p, own in zip(programs, of_consts, strict=True)
    ]
    consts = fronted(batch, pairs[: m + s + t])
    right = [to_front(x, a, size) for x, a in pairs[m + s + t :]]
    outs = bind_down(batch, linear_solve, [*consts, *right], {**params, **dict(zip(names, derived, strict=True))})
    return batch.wrap(linear_solve, outs, 0)

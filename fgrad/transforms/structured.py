"""What structured primitives share under transforms, and the meaning of the simplest of them, `call`.

All are built from derived Programs (`fgrad.transforms.programs`). A node of the tape keeps every array it needs in
`saved`, so that the tape itself can be recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fgrad.core import Params, Primitive, type_of
from fgrad.ops.control import call
from fgrad.plans import zeros
from fgrad.program import Program, Trace
from fgrad.transforms.jvp import Forward
from fgrad.transforms.linearize import Linearize, LinearTracer, Node, Step, leaf, private
from fgrad.transforms.programs import (
    Mask,
    batch_program,
    jvp_program,
    linearize_program,
    under,
)
from fgrad.transforms.transpose import TangentTracer, Transpose
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


def bind_down(interpreter: Any, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
    """Apply a primitive one level below an interpreter."""
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


def traced_mask(linear: Transpose, args: Sequence[Any]) -> Mask:
    """Return which arguments are tangents of a linear recording."""
    return tuple(x.__class__ is TangentTracer and x.interpreter is linear for x in args)


def check_linear(linear: Transpose, program: Program, mask: Mask) -> None:
    """Raise TypeError unless a Program is linear in the inputs in `mask`."""
    recorder = Trace.alone(program.label)
    scratch = Transpose(linear.label, recorder, linear.clock)
    inputs = [TangentTracer(scratch, t, leaf()) if m else recorder.input(t) for t, m in zip(program.in_types, mask)]
    under(scratch, lambda: program.run(*inputs))


def as_derivative(linear: Transpose, prim: Primitive, args: Sequence[Any], params: Params) -> tuple[Any, ...]:
    """Record a primitive that is linear in its traced inputs as its own derivative, at zero."""
    tape = under(linear.parent, Linearize, linear.label, linear.forward)
    tape.clock = linear.clock
    mine = traced_mask(linear, args)
    inputs = [LinearTracer(tape, zeros(x.kind), x.node) if m else x for x, m in zip(args, mine, strict=True)]
    outs = under(tape, lambda: prim(*inputs, **params))
    return tuple(
        TangentTracer(linear, type_of(x), x.node) if x.__class__ is LinearTracer and x.interpreter is tape else x
        for x in outs
    )


# ---------------------------------------------------------------------------------------------------- call


@rule(call, Linearize)
def call_linearize(tape: Linearize, args: Sequence[Any], params: Params) -> Any:
    """Record the application of a Program: its forward part runs now, its linear part is the node's."""
    program = params["program"]
    mask, values, nodes = split_arguments(tape, args)
    split = linearize_program(program, mask, tape.forward)
    outs = bind_down(tape, call, values, {"program": split.forward})
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
    outs = bind_down(forward, call, [*values, *tangents], {"program": derived})
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
    outs = bind_down(batch, call, fronted(batch, pairs), {"program": program})
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

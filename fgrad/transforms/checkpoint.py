"""Trading work for memory: `checkpoint` computes intermediate values again for the backward pass.

The function becomes a Program, so that a policy can say, equation by equation, what is kept. Closed-over values are
inputs like any other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import Params, Primitive, state, type_of
from fgrad.kinds import linear
from fgrad.ops.control import call
from fgrad.ops.custom import checkpoint_call
from fgrad.plans import zeros
from fgrad.program import Program, Trace, Var, attributed, simplify, trace
from fgrad.source import function_label
from fgrad.transforms.jvp import Forward
from fgrad.transforms.linearize import (
    Linearize,
    LinearTracer,
    Step,
    as_operand,
    check_callable,
    in_order,
    leaf,
    pull_back,
    tapes,
)
from fgrad.transforms.programs import Mask, batch_program, cached, differentiable, jvp_program, under
from fgrad.transforms.structured import (
    filled_cotangents,
    fronted,
    record,
    rule,
    scatter_cotangents,
    split_arguments,
    uses_axis,
)
from fgrad.transforms.transpose import Transpose
from fgrad.transforms.vmap import Batch

Policy = Callable[..., bool]


class Again:
    """The name of what is computed from a second time: equal to no other, so that jit does not merge the two."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "again"


named = linear(
    "named",
    lambda x, *, name: np.asarray(x)[...],
    type=lambda x, *, name: x.strong(),
    transpose=lambda ct: ct,
    shift=lambda size, *, name: {},
    gpu="x",
    doc="A value with a name that a checkpoint policy can refer to.",
)


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Any:
    """Return `fun` with its intermediate values computed again, rather than kept, for reverse mode.

    Args:
        fun: a function of arrays or pytrees; without it, a decorator is returned.
        prevent_cse: accepted for JAX's signature; recomputed values are never merged with the first ones.
        policy: `policy(prim, *types, **params) -> bool` says whether the outputs of an application are kept; see
            `checkpoint_policies`. By default only the arguments are.
        static_argnums: positions of arguments that are not traced.

    Returns:
        A function with the same values and derivatives.

    Example:
        >>> import numpy as np, fgrad
        >>> f = fgrad.checkpoint(lambda x: np.sin(np.sin(x)))
        >>> fgrad.grad(f)(np.array(0.))
        array(1.)
    """
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums)
    check_callable("checkpoint", fun)
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    label = function_label("checkpoint", fun)

    @functools.wraps(fun, updated=())
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if state.interpreter is None:
            return fun(*args, **kwargs)
        fixed = {n % len(args) for n in numbers}

        def of_traced(*traced: Any, **options: Any) -> Any:
            rest = iter(traced)
            return fun(*[x if i in fixed else next(rest) for i, x in enumerate(args)], **options)

        leaves, treedef = tree.flatten((tuple(x for i, x in enumerate(args) if i not in fixed), kwargs))
        leaves = [as_operand(x, f"an argument of {label}") for x in leaves]
        recorded = trace(of_traced, [type_of(x) for x in leaves], treedef, label)
        program, consts = recorded.program.simplify().lifted()
        return tree.unflatten(recorded.out_tree, checkpoint_call(*consts, *leaves, program=program, policy=policy))

    return checkpointed


# ---------------------------------------------------------------------------------------------- policies


def _dots(prim: Primitive, *types: Any, **params: Any) -> bool:
    return prim.name in ("dot_general", "conv_general")


def _dots_without_batch(prim: Primitive, *types: Any, **params: Any) -> bool:
    return prim.name == "dot_general" and not params["batch"][0]


def _only_names(*names: str) -> Policy:
    return lambda prim, *types, **params: prim is named and params["name"] in names


def _any_but_names(*names: str) -> Policy:
    return lambda prim, *types, **params: not (prim is named and params["name"] in names)


checkpoint_policies = SimpleNamespace(
    everything_saveable=lambda prim, *types, **params: True,
    nothing_saveable=lambda prim, *types, **params: False,
    dots_saveable=_dots,
    checkpoint_dots=_dots,
    dots_with_no_batch_dims_saveable=_dots_without_batch,
    checkpoint_dots_with_no_batch_dims=_dots_without_batch,
    save_only_these_names=_only_names,
    save_anything_except_these_names=_any_but_names,
)
"""Policies for `checkpoint`, in JAX's names."""


def checkpoint_name(x: Any, name: str) -> Any:
    """Give a value a name for the policies `save_only_these_names` and `save_anything_except_these_names`.

    Example:
        >>> import numpy as np, fgrad
        >>> policy = fgrad.checkpoint_policies.save_only_these_names("inner")
        >>> f = fgrad.checkpoint(lambda x: np.sin(fgrad.checkpoint_name(np.sin(x), "inner")), policy=policy)
        >>> fgrad.grad(f)(np.array(0.))
        array(1.)
    """
    return tree.map(lambda leaf: named(as_operand(leaf, "checkpoint_name"), name=name), x)


def _kept(program: Program, policy: Policy | None) -> list[Var]:
    """Return the variables whose values the policy keeps."""
    if policy is None:
        return []
    return [
        v for eq in program.equations if policy(eq.prim, *[a.type for a in eq.inputs], **eq.params) for v in eq.outputs
    ]


# ------------------------------------------------------------------------------------------------- meaning


@rule(checkpoint_call, Linearize)
def _linearize(tape: Linearize, args: Sequence[Any], params: Params) -> Any:
    program, policy = params["program"], params["policy"]
    mask, values, nodes = split_arguments(tape, args)
    kept = _kept(program, policy)
    forward = cached(program, ("with kept", policy), lambda: _giving(program, kept))
    outs = tape.pass_on(call, values, {"program": forward})
    n = len(program.outputs)
    key = "again", policy, mask, tapes.reverse
    pull, reached, active = cached(program, key, lambda: _pull_again(program, mask, kept))
    return record(tape, _STEP, [*values, *outs[n:]], (program, mask, pull, reached, active), nodes, outs[:n], active)


def _giving(program: Program, kept: Sequence[Var]) -> Program:
    return Program(program.label, program.inputs, program.consts, program.equations, [*program.outputs, *kept])


def _pull_again(program: Program, mask: Mask, kept: Sequence[Var]) -> tuple[Program, list[int], Mask]:
    """Record `(inputs, kept values, cotangents of active outputs) -> cotangents of reached inputs` as one Program."""
    recorder = Trace.alone(f"pull of {program.label}")
    inputs = [recorder.input(t) for t in program.in_types]
    again = Again()
    apart = [under(recorder, lambda x: named(x, name=again), x) if differentiable(x.type) else x for x in inputs]
    given = {id(v): recorder.input(v.type) for v in kept}
    tape = under(recorder, tapes.reverse, program.label)
    leaves = [leaf() if m and differentiable(t) else None for m, t in zip(mask, program.in_types, strict=True)]
    args = [x if n is None else LinearTracer(tape, x, n) for x, n in zip(apart, leaves, strict=True)]
    outs = under(tape, lambda: _run_with(attributed(program), args, given))
    active = tuple(x.__class__ is LinearTracer and x.interpreter is tape for x in outs)
    cts: dict[Any, Any] = {}
    for x, kind, a in zip(outs, program.out_types, active, strict=True):
        if a:
            ct = recorder.input(kind.strong())
            have = cts.get(x.node)
            cts[x.node] = ct if have is None else under(recorder, lambda p, q: p + q, have, ct)
    under(recorder, pull_back, in_order(list(cts)), cts)
    reached = [i for i, n in enumerate(leaves) if n is not None and n in cts]
    return simplify(recorder.finish([cts[leaves[i]] for i in reached])), reached, active


def _run_with(program: Program, args: Sequence[Any], given: dict[int, Any]) -> list[Any]:
    """Run a Program under the current tape, taking kept values as given; what computed them becomes dead."""
    env = {id(v): x for v, x in zip(program.inputs, args, strict=True)}
    env.update((id(v), x) for v, x in program.consts)
    read = lambda a: env[id(a)] if isinstance(a, Var) else a.value  # noqa: E731
    for eq in program.equations:
        out = eq.prim(*map(read, eq.inputs), **eq.params)
        for v, x in zip(eq.outputs, out if eq.prim.multiple else (out,), strict=True):
            if id(v) in given:
                x = LinearTracer(x.interpreter, given[id(v)], x.node) if x.__class__ is LinearTracer else given[id(v)]
            env[id(v)] = x
    return [read(a) for a in program.outputs]


def _pull(saved: Any, types: Any, info: Any, cts: Any) -> Any:
    program, mask, pull, reached, active = info
    pulled = call(*saved, *filled_cotangents(cts, program.out_types, active), program=pull)
    return scatter_cotangents(pulled, reached, mask)


def _push(saved: Any, types: Any, info: Any, tangents: Any) -> Any:
    program, mask, _, _, _ = info
    kinds = [t for t, m in zip(program.in_types, mask, strict=True) if m]
    ts = [zeros(kind) if t is None else t for t, kind in zip(tangents, kinds, strict=True)]
    derived, active = jvp_program(program, mask)
    pushed = iter(call(*saved[: len(mask)], *ts, program=derived)[len(active) :])
    return [next(pushed) if a else None for a in active]


_STEP = Step(_pull, _push)


@rule(checkpoint_call, Forward)
def _forward(forward: Forward, args: Sequence[Any], params: Params) -> Any:
    return call.rules[Forward](forward, args, {"program": params["program"]})


@rule(checkpoint_call, Batch)
def _batch(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    pairs = [batch.split(x) for x in args]
    mask = tuple(a is not None for _, a in pairs)
    if not any(mask) and not uses_axis(params["program"], batch.axis_name):
        return batch.pass_on(checkpoint_call, args, params)
    program, batched = batch_program(params["program"], mask, batch.size, batch.axis_name)
    outs = batch.pass_on(checkpoint_call, fronted(batch, pairs), {**params, "program": program})
    return batch.wrap(checkpoint_call, outs, [0 if b else None for b in batched])


@rule(checkpoint_call, Transpose)
def _transpose(linear_tape: Transpose, args: Sequence[Any], params: Params) -> Any:
    return tuple(params["program"].run(*args))

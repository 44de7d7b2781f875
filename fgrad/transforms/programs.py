"""What transforms make of whole Programs: their linearization, pushforward and batching, as Programs again.

Each is found by running the transform's interpreter over a recording one, once per pattern of active inputs, and
kept on the Program. The structured primitives (`fgrad.transforms.control`) and `jit` are built of these.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from fgrad import tree
from fgrad.core import ArrayType, Interpreter, Params, Primitive, Tracer, elsewhere, state, type_of
from fgrad.plans import hooks, zeros
from fgrad.program import Program, ProgramTracer, Trace, Var, attributed, simplify
from fgrad.transforms.jvp import Forward
from fgrad.transforms.linearize import (
    LinearTracer,
    Node,
    Pullback,
    in_order,
    leaf,
    pull_back,
    push_forward,
    tapes,
)
from fgrad.transforms.pushforward import LinearFunction
from fgrad.transforms.vmap import Batch, BatchTracer, move_axis, to_front

Mask = tuple[bool, ...]


def cached(program: Program, key: Any, make: Callable[[], Any]) -> Any:
    """Return what `make` derives from `program`, made once."""
    value = program.cache.get(key)
    if value is None:
        value = program.cache[key] = make()
    return value


def under(interpreter: Interpreter | None, fun: Callable[..., Any], *args: Any) -> Any:
    """Call `fun` with `interpreter` as the current one."""
    before = state.interpreter
    state.interpreter = interpreter
    try:
        return fun(*args)
    finally:
        state.interpreter = before


def differentiable(kind: ArrayType) -> bool:
    """Return whether values of this type have tangents."""
    return kind.dtype.kind in "fcV"


def type_by_tracing(definition: Callable[..., Any], kinds: Sequence[ArrayType], params: Params) -> Any:
    """Return the type (or types) of what a composite's definition gives."""
    recorder = Trace.alone("a definition")
    out = under(recorder, lambda: definition(*[recorder.input(kind) for kind in kinds], **params))
    return tuple([type_of(x) for x in out]) if isinstance(out, tuple) else type_of(out)


hooks.type_by_tracing = type_by_tracing


def _compute_on_gpu(program: Program, *args: Any) -> list[Any]:
    from fgrad.backend.gpu.device import compute  # loaded when there is an array on a GPU, or a Program placed there

    return compute(program, *args)


def _compute_primitive_on_gpu(prim: Primitive, args: Sequence[Any], params: Params) -> Any:
    from fgrad.backend.gpu.eager import compute  # loaded when there is an array on a GPU

    return compute(prim, args, params)


def _apply_rule_on_gpu(*args: Any) -> Any:
    from fgrad.backend.gpu.eager import apply_rule  # loaded when there is an array on a GPU

    return apply_rule(*args)


hooks.compute_on_gpu = _compute_on_gpu
hooks.apply_rule_on_gpu = _apply_rule_on_gpu
elsewhere.compute = _compute_primitive_on_gpu


class Linearization:
    """A Program split at a point into what is computed there and what is linear.

    `forward`: inputs -> outputs and residuals. `linear`: residuals and cotangents of the `active` outputs -> cotangents
    of the inputs in `reached`; or, if made for pushing, residuals and tangents of active inputs -> tangents of
    `active` outputs. `residual_inputs` tells which residuals are inputs passed on unchanged (else None).
    """

    __slots__ = ("forward", "linear", "active", "reached", "residual_inputs")

    def __init__(
        self,
        forward: Program,
        linear: Program,
        active: Mask,
        reached: Sequence[int],
        residual_inputs: Sequence[int | None],
    ):
        self.forward = forward
        self.linear = linear
        self.active = active
        self.reached = tuple(reached)
        self.residual_inputs = tuple(residual_inputs)


def linearize_program(program: Program, mask: Mask, push: bool = False, force: Mask | None = None) -> Linearization:
    """Return the linearization of `program` by the inputs in `mask`.

    With `force`, the outputs marked there count as active even where they do not depend on the inputs.
    """
    key = ("linearize", mask, push, force, tapes.reverse)
    return cached(program, key, lambda: _linearize(program, mask, push, force))  # type: ignore[no-any-return]


def _linearize(program: Program, mask: Mask, push: bool, force: Mask | None) -> Linearization:
    recorder = Trace.alone(program.label)
    inputs = [recorder.input(kind) for kind in program.in_types]
    tape = under(recorder, tapes.reverse, program.label, push)
    leaves = [leaf() if m and differentiable(t) else None for m, t in zip(mask, program.in_types, strict=True)]
    args = [x if n is None else LinearTracer(tape, x, n) for x, n in zip(inputs, leaves, strict=True)]
    outs = under(tape, lambda: attributed(program).run(*args))
    mine = [x.__class__ is LinearTracer and x.interpreter is tape for x in outs]
    nodes = [x.node if m else None for x, m in zip(outs, mine, strict=True)]
    values = [x.value if m else x for x, m in zip(outs, mine, strict=True)]
    order = in_order([node for node in nodes if node is not None])
    residuals = list({id(x.variable): x for x in _saved_tracers(order, recorder)}.values())
    forward = recorder.finish([*values, *residuals])
    active = tuple(m or bool(force and f) for m, f in zip(mine, force or mine, strict=True))
    places = {id(v): k for k, v in enumerate(recorder.inputs)}
    residual_inputs = [places.get(id(x.variable)) for x in residuals]
    walk = Trace.alone(f"{'push' if push else 'pull'} of {program.label}")
    copies, moved = _with_saved(order, {id(x.variable): walk.input(x.type) for x in residuals})
    ends = [None if node is None else moved.get(node, node) for node in nodes]
    record = _record_push if push else _record_pull
    linear, reached = record(walk, program, copies, ends, leaves, active)
    forward, linear = (simplify(part).on(program.placed) for part in (forward, linear))
    return Linearization(forward, linear, active, reached, residual_inputs)


def _saved_tracers(order: Sequence[Node], recorder: Trace) -> list[ProgramTracer]:
    return [x for node in order for x in node.saved if x.__class__ is ProgramTracer and x.interpreter is recorder]


def _with_saved(order: Sequence[Node], swap: dict[int, Any]) -> tuple[list[Node], dict[Node, Node]]:
    """Return copies of the nodes with saved values replaced, and where each went."""
    saved = [[swap.get(id(x.variable), x) if x.__class__ is ProgramTracer else x for x in n.saved] for n in order]
    copies = _with_arrays(order, saved)
    return list(copies.values()), copies


def _with_arrays(order: Sequence[Node], arrays: Sequence[Sequence[Any]]) -> dict[Node, Node]:
    """Return for each node, oldest first, a copy with other saved values, whose parents are copies, too."""
    copies: dict[Node, Node] = {}
    for node, saved in zip(order, arrays, strict=True):
        twin = copies[node] = copy.copy(node)
        twin.saved = saved
        twin.parents = tuple([copies.get(p, p) for p in node.parents])
    return copies


def _record_pull(
    walk: Trace,
    program: Program,
    order: Sequence[Node],
    ends: Sequence[Node | None],
    leaves: Sequence[Node | None],
    active: Mask,
) -> tuple[Program, list[int]]:
    """Record the walk backwards, from cotangents of the active outputs to those of the inputs that are reached."""
    cts: dict[Node, Any] = {}
    for end, kind, is_active in zip(ends, program.out_types, active, strict=True):
        if is_active:
            ct = walk.input(kind.strong())
            if end is not None:
                have = cts.get(end)
                cts[end] = ct if have is None else under(walk, lambda a, b: a + b, have, ct)
    under(walk, pull_back, order, cts)
    reached = [i for i, n in enumerate(leaves) if n is not None and n in cts]
    return walk.finish([cts[leaves[i]] for i in reached]), reached  # type: ignore[index]


def _record_push(
    walk: Trace,
    program: Program,
    order: Sequence[Node],
    ends: Sequence[Node | None],
    leaves: Sequence[Node | None],
    active: Mask,
) -> tuple[Program, list[int]]:
    """Record the walk forwards, from tangents of the inputs to those of the active outputs."""
    reached = [i for i, n in enumerate(leaves) if n is not None]
    tangents: dict[Node, Any] = {leaves[i]: walk.input(program.in_types[i].strong()) for i in reached}  # type: ignore[misc]
    under(walk, push_forward, order, tangents)
    outs = []
    for end, kind, is_active in zip(ends, program.out_types, active, strict=True):
        if is_active:
            t = None if end is None else tangents.get(end)
            outs.append(zeros(kind) if t is None else t)
    return walk.finish(outs), reached


def jvp_program(program: Program, mask: Mask, force: Mask | None = None) -> tuple[Program, Mask]:
    """Return the Program of `(inputs, tangents of masked inputs) -> (outputs, tangents of active outputs)`."""
    return cached(program, ("jvp", mask, force), lambda: _jvp(program, mask, force))  # type: ignore[no-any-return]


def _jvp(program: Program, mask: Mask, force: Mask | None) -> tuple[Program, Mask]:
    recorder = Trace.alone(f"jvp of {program.label}")
    inputs = [recorder.input(kind) for kind in program.in_types]
    forward = under(recorder, Forward, program.label)
    args = [forward.wrap(x, recorder.input(x.type.strong())) if m else x for x, m in zip(inputs, mask, strict=True)]
    pairs = [forward.split(x) for x in under(forward, lambda: attributed(program).run(*args))]
    active = tuple(
        t is not None or bool(force and f) for (_, t), f in zip(pairs, force or [False] * len(pairs), strict=True)
    )
    tangents = [zeros(type_) if t is None else t for (_, t), type_, a in _zip3(pairs, program.out_types, active) if a]
    return simplify(recorder.finish([*(x for x, _ in pairs), *tangents])).on(program.placed), active


def _zip3(a: Any, b: Any, c: Any) -> Any:
    return zip(a, b, c, strict=True)


def batch_program(
    program: Program, mask: Mask, size: int, axis_name: Any, force: Mask | None = None
) -> tuple[Program, Mask]:
    """Return the Program over batches of the inputs in `mask`, axis in front, and which outputs are batched."""
    key = ("batch", mask, size, axis_name, force)
    return cached(program, key, lambda: _batch(program, mask, size, axis_name, force))  # type: ignore[no-any-return]


def _batch(program: Program, mask: Mask, size: int, axis_name: Any, force: Mask | None) -> tuple[Program, Mask]:
    recorder = Trace.alone(f"vmap of {program.label}")
    inputs = [
        recorder.input(ArrayType((size, *t.shape), t.dtype) if m else t)
        for t, m in zip(program.in_types, mask, strict=True)
    ]
    batch = under(recorder, Batch, program.label, size, axis_name)
    args = [BatchTracer(batch, x, 0) if m else x for x, m in zip(inputs, mask, strict=True)]
    outs = [batch.split(x) for x in under(batch, lambda: attributed(program).run(*args))]
    batched = tuple(
        a is not None or bool(force and f) for (_, a), f in zip(outs, force or [False] * len(outs), strict=True)
    )

    def place(x: Any, axis: int | None, wanted: bool) -> Any:
        if not wanted:
            return x
        return to_front(x, None, size) if axis is None else move_axis(x, axis, 0)

    values = under(recorder, lambda: [place(x, a, b) for (x, a), b in zip(outs, batched, strict=True)])
    return simplify(recorder.finish(values)).on(program.placed), batched


def prefixed(program: Program, before: Sequence[ArrayType], after: Sequence[ArrayType] = ()) -> Program:
    """Return the Program with further inputs, which it does not use, before and after its own."""
    inputs = [*[Var(t) for t in before], *program.inputs, *[Var(t) for t in after]]
    return Program(program.label, inputs, program.consts, program.equations, program.outputs)


def has_tracers(values: Sequence[Any]) -> bool:
    """Return whether any of the values is traced."""
    return any(isinstance(x, Tracer) for x in values)


# ---------------------------------------------------------------------------------------------- tapes as trees


class _Husk:
    """A tape without its arrays: what is left of the function that `vjp` or `linearize` returns."""

    __slots__ = ("function", "sizes", "key")

    def __init__(self, function: Any):
        order = function._order
        self.sizes = [len(node.saved) for node in order]
        self.function = _refilled(function, [()] * len(order))
        ends = {node: ~i for i, node in enumerate(function._recorded.leaves)}
        places = {**ends, **{node: i for i, node in enumerate(order)}}
        steps = [(n.plan, n.types, _hashable(n.params), tuple([places[p] for p in n.parents])) for n in order]
        outs = tuple([places.get(n) for n in getattr(function, _ends(function))])
        self.key = (tuple(steps), tuple(self.sizes), outs, function._out_tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Husk) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _hashable(params: Any) -> Any:
    return tuple(params.items()) if isinstance(params, dict) else params


def _ends(function: Any) -> str:
    """Return the name of the attribute that holds the nodes of the outputs."""
    return "_nodes" if isinstance(function, Pullback) else "_leaves"


def _refilled(function: Any, arrays: Sequence[Sequence[Any]]) -> Any:
    """Return a copy of the function with other arrays on its tape."""
    moved = _with_arrays(function._order, arrays)
    recorded = copy.copy(function._recorded)
    recorded.tape = recorded.out = None
    new = copy.copy(function)
    new._recorded, new._order = recorded, list(moved.values())
    setattr(new, _ends(new), [moved.get(node, node) for node in getattr(function, _ends(function))])
    return new


def _flatten_tape(function: Any) -> tuple[tuple[Any, ...], _Husk]:
    return tuple([x for node in function._order for x in node.saved]), _Husk(function)


def _unflatten_tape(husk: _Husk, arrays: Sequence[Any]) -> Any:
    given = iter(arrays)
    return _refilled(husk.function, [[next(given) for _ in range(n)] for n in husk.sizes])


for _cls in (Pullback, LinearFunction):
    tree.register_pytree_node(_cls, _flatten_tape, _unflatten_tape)

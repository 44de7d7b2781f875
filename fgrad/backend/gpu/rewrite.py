"""Equations that kernels have no form of their own for, written in primitives that they have."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad.backend.gpu.expressions import wide
from fgrad.ops.elementwise import exp, isfinite, log, ne, select
from fgrad.ops.reduce import kept, logsumexp, reduce_all, reduce_any, reduce_max, reduce_min, reduce_prod, reduce_sum
from fgrad.ops.shape import cast
from fgrad.program import Atom, Equation, Program, Trace, Var, simplify

Definition = Callable[..., Any]


def in_kernel_terms(program: Program) -> Program:
    """Return an equal Program whose reductions join two elements or more, by an operation of two elements."""
    names: dict[int, Atom] = {}
    equations: list[Equation] = []
    consts = list(program.consts)
    for eq in program.equations:
        inputs = [names.get(id(a), a) for a in eq.inputs]
        definition = _definition(eq)
        if definition is None:
            equations.append(Equation(eq.prim, inputs, eq.params, eq.outputs, eq.source))
            continue
        body = _recorded(definition, eq)
        inner: dict[int, Atom] = {id(v): a for v, a in zip(body.inputs, inputs, strict=True)}
        consts += body.consts
        for part in body.equations:
            operands = [inner.get(id(a), a) for a in part.inputs]
            equations.append(Equation(part.prim, operands, part.params, part.outputs, eq.source))
        names[id(eq.outputs[0])] = inner.get(id(body.outputs[0]), body.outputs[0])
    outputs = [names.get(id(a), a) for a in program.outputs]
    return simplify(Program(program.label, program.inputs, consts, equations, outputs))


def _definition(eq: Equation) -> Definition | None:
    """Return what stands for an equation, a function of its inputs; None if it stays as it is."""
    if eq.prim not in _REDUCTIONS or not eq.inputs[0].type.size or not isinstance(eq.inputs[0], Var):
        return None
    x, axes = eq.inputs[0].type, eq.params["axes"]
    if math.prod([x.shape[a] for a in axes]) == 1:
        return _of_one_each
    if eq.prim is logsumexp:
        return None if x.dtype.kind == "c" else _logsumexp
    return _any_or_all(eq) if eq.prim in (reduce_any, reduce_all) and x.dtype.kind != "b" else None


_REDUCTIONS = (reduce_sum, reduce_prod, reduce_max, reduce_min, reduce_any, reduce_all, logsumexp)


def _of_one_each(x: Any, *, axes: Any) -> Any:
    return x.reshape(tuple([n for a, n in enumerate(x.shape) if a not in axes]))


def _logsumexp(x: Any, *, axes: Any) -> Any:
    dtype = x.dtype
    x = cast(x, dtype=wide(dtype))
    top = reduce_max(x, axes=axes)
    top = select(isfinite(top), top, 0)
    total = reduce_sum(exp(x - kept(top, x, axes)), axes=axes)
    return cast(log(total) + top, dtype=dtype)


def _any_or_all(eq: Equation) -> Definition:
    return lambda x, *, axes: eq.prim(ne(x, 0), axes=axes)


def _recorded(definition: Definition, eq: Equation) -> Program:
    recorder = Trace(eq.prim.name)
    with recorder:
        recorder.parent, outside = None, recorder.parent
        out = definition(*[recorder.input(a.type) for a in eq.inputs], **eq.params)
        if eq.outputs[0].type.dtype != out.dtype:
            out = ne(out, 0) if eq.outputs[0].type.dtype == np.bool_ else cast(out, dtype=eq.outputs[0].type.dtype)
        recorder.parent = outside
    return recorder.finish([out])

"""Equations that kernels have no form of their own for, written in primitives that they have."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad.backend.gpu.expressions import expression, wide
from fgrad.core import ArrayType
from fgrad.ops.along import take_along
from fgrad.ops.elementwise import eq as equal
from fgrad.ops.elementwise import exp, isfinite, log, ne, select
from fgrad.ops.reduce import kept, logsumexp, reduce_all, reduce_any, reduce_max, reduce_min, reduce_prod, reduce_sum
from fgrad.ops.shape import broadcast, cast, reshape
from fgrad.program import Atom, Equation, Literal, Program, Trace, Var, simplify

Definition = Callable[..., Any]


def in_kernel_terms(program: Program) -> Program:
    """Return an equal Program whose reductions join two elements or more, by an operation of two elements."""
    names: dict[int, Atom] = {}
    made: dict[int, Equation] = {}
    equations: list[Equation] = []
    consts = list(program.consts)
    reduced = {
        (eq.inputs[0].type.shape, tuple(eq.params["axes"])) for eq in program.equations if eq.prim in _REDUCTIONS
    }
    for eq in program.equations:
        inputs = [names.get(id(a), a) for a in eq.inputs]
        definition = _definition(eq)
        if definition is None and (definition := _one_of_each_row(eq, reduced)) is not None:
            spread = _Spread(eq.inputs[0].type.shape, made)
            inputs[1] = spread.of(inputs[1])
            equations += spread.equations
            eq = Equation(eq.prim, [eq.inputs[0], inputs[1]], eq.params, eq.outputs, eq.source)
        if definition is None:
            equations.append(Equation(eq.prim, inputs, eq.params, eq.outputs, eq.source))
            made.update((id(v), equations[-1]) for v in eq.outputs)
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


def _one_of_each_row(eq: Equation, reduced: set[Any]) -> Definition | None:
    """Return what picks one entry of each row with a sum, where such rows are reduced, and so read whole, anyway.

    It takes the index broadcast to the shape of the rows.
    """
    if eq.prim is not take_along:
        return None
    x, i = (a.type for a in eq.inputs)
    if x.ndim != 2 or eq.params["axis"] != 1 or i.shape != (x.shape[0], 1):
        return None
    if not x.size or x.dtype.kind == "c" or (x.shape, (1,)) not in reduced:
        return None
    places = np.arange(x.shape[1], dtype=i.dtype)

    def definition(x: Any, i: Any, *, axis: int) -> Any:
        mine = equal(select(i < 0, i + x.shape[axis], i), places)
        return kept(reduce_sum(select(mine, x, 0), axes=(axis,)), x, (axis,))

    return definition


class _Spread:
    """Numbers per row as arrays of whole rows, computed again from what lies in memory: so no kernel waits for them."""

    def __init__(self, shape: tuple[int, ...], made: dict[int, Equation]):
        self.shape = shape
        self.made = made
        self.equations: list[Equation] = []
        self.known: dict[int, Var] = {}

    def of(self, a: Atom) -> Atom:
        """Return a value, one number or one for each row, broadcast."""
        if isinstance(a, Literal) or not a.type.shape:
            return a
        if id(a) not in self.known:
            eq = self.made.get(id(a))
            if eq is not None and eq.prim is reshape:
                return self.of(eq.inputs[0])
            self.known[id(a)] = self._computed(eq) if eq is not None and self._is_by_row(eq) else self._broadcast(a)
        return self.known[id(a)]

    def _is_by_row(self, eq: Equation) -> bool:
        rows = self.shape[0]
        fits = all(a.type.size == rows or not a.type.shape for a in eq.inputs) and eq.outputs[0].type.size == rows
        return fits and eq.prim.name not in _VIEWS and eq.prim not in _REDUCTIONS and expression(eq) is not None

    def _computed(self, eq: Equation) -> Var:
        return self._made(eq.prim, [self.of(a) for a in eq.inputs], eq.params, eq.outputs[0], eq.source)

    def _broadcast(self, a: Var) -> Var:
        column = Var(ArrayType((self.shape[0], 1), a.type.dtype))
        self.equations.append(Equation(reshape, [a], {"shape": column.type.shape}, [column], ""))
        return self._made(broadcast, [column], {"shape": self.shape}, a, "")

    def _made(self, prim: Any, inputs: list[Atom], params: Any, like: Var, source: str) -> Var:
        out = Var(ArrayType(self.shape, like.type.dtype))
        self.equations.append(Equation(prim, inputs, params, [out], source))
        return out


_VIEWS = ("broadcast", "transpose", "slice", "reverse")


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

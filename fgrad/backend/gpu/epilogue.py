"""Products with what follows them: a row of biases and elementwise operations are done before the store.

What a product's kernel does so is a small Program, its *epilogue*: a function of the product, the bias added, and of up
to two arrays of the product's shape. It has one or two results. A value that must be in memory anyway, since a product
or a caller reads it, is one; where something else still needs the product itself, as the slope of an activation does,
the product is the other, and what lies between is computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fgrad.backend.gpu.expressions import DTYPES, HELPERS, computed, expression, filled, is_float
from fgrad.backend.gpu.fusion import REDUCTIONS
from fgrad.backend.gpu.library import VIEWS, kernel_for
from fgrad.backend.gpu.source import HEAD
from fgrad.core import TABLE, Primitive
from fgrad.program import Atom, Equation, Literal, Program, Var, simplify

MOST_BESIDE = 2
"""Arrays that an epilogue reads beside the product."""

MOST_RESULTS = 2

_DEMANDING = frozenset({"erfc"})
"""Functions whose code spills beside the sums of the largest block, as compiling them for the targets shows."""

MOST_EQUATIONS = 48
"""Equations of an epilogue: what registers are likely to have room for beside the sums."""


def _computed(x: Any, y: Any, *others: Any, bias: bool, epilogue: Program, **params: Any) -> list[Any]:
    out = TABLE["dot_general"].impl(x, y, **params)
    return epilogue.compute(out + others[0] if bias else out, *others[bias:])


fused_product = Primitive(
    "fused_product",
    "composite",
    _computed,
    lambda *types, epilogue, **params: tuple(epilogue.out_types),
    multiple=True,
)
"""dot_general of the first two operands, plus a row if `bias`; then `epilogue` of the sum and the other operands."""


def with_epilogues(program: Program) -> Program:
    """Return an equal Program whose products do what follows them, where that moves no more bytes."""
    for v in [eq.outputs[0] for eq in program.equations if eq.prim.name == "dot_general" and kernel_for(eq)]:
        if v.type.ndim >= 2:
            program = _Neighbours(program, v).fused()
    return program


def function_of(epilogue: Program) -> Any:
    """Return the Triton function of an epilogue, made once; None of one that does nothing."""
    from fgrad.backend.gpu.program import kernel_of  # which stands on this module

    if not epilogue.equations and len(epilogue.outputs) == 1:
        return None
    found = epilogue.cache.get("function")
    if found is None:
        found = epilogue.cache["function"] = kernel_of("epilogue", epilogue_text(epilogue))
    return found


def is_demanding(epilogue: Program) -> bool:
    """Return whether an epilogue needs so many registers that the sums of a large block leave too few."""
    return any(eq.prim.name in _DEMANDING for eq in epilogue.equations)


def epilogue_text(program: Program) -> str:
    """Return the module of an epilogue: a Triton function `epilogue` of blocks that returns two blocks."""
    names = {id(v): f"x{k}" for k, v in enumerate(program.inputs)}
    lines = [f"{names[id(v)]} = {names[id(v)]}.to({computed(v.type.dtype)})" for v in program.inputs[1:]]
    for k, eq in enumerate(program.equations):
        text = filled(eq, [names.get(id(a), "") for a in eq.inputs])
        names[id(eq.outputs[0])] = f"v{k}"
        lines.append(f"v{k} = {text}")
    results = [names[id(a)] for a in program.outputs]
    lines.append(f"return {results[0]}, {results[-1]}")
    head = HEAD.format(title="the end of a product") + HELPERS + "\n\n@triton.jit"
    body = "\n".join("    " + line for line in lines)
    return f"{head}\ndef epilogue({', '.join(names[id(v)] for v in program.inputs)}):\n{body}\n"


def _is_step(eq: Equation) -> bool:
    """Return whether no generated kernel computes an equation."""
    return eq.prim.name not in REDUCTIONS and expression(eq) is None


class _Chosen(NamedTuple):
    """What becomes an epilogue: its results, its equations in order, and the arrays it reads beside the product."""

    results: list[Var]
    equations: list[Equation]
    beside: list[Var]


class _Neighbours:
    """A product of a Program, and what is known of the values around it."""

    def __init__(self, program: Program, product: Var):
        self.program = program
        self.made = {id(v): eq for eq in program.equations for v in eq.outputs}
        self.readers: dict[int, list[Equation]] = {}
        for eq in program.equations:
            for a in {id(a): a for a in eq.inputs}.values():
                self.readers.setdefault(id(a), []).append(eq)
        self.kept = {id(a) for a in program.outputs}
        self.numbers = {id(v): x for v, x in program.consts if x.shape == () and v.type.dtype.kind == "f"}
        self.product = self.made[id(product)]
        self.place = next(k for k, eq in enumerate(program.equations) if eq is self.product)
        self.dependent = self._depending_on(product)
        self.bias: Var | None = None
        self.start = product
        self._take_bias()

    def fused(self) -> Program:
        """Return the Program with the product and what follows it as one equation; itself if nothing can follow."""
        chosen = self._chosen()
        if chosen is None:
            if self.bias is None:
                return self.program
            chosen = _Chosen([self.start], [], [])
        added = [] if self.bias is None else [self.bias]
        inner = Program("epilogue", [self.start, *chosen.beside], (), chosen.equations, chosen.results)
        params = {**self.product.params, "bias": bool(added), "epilogue": self._of_own_names(inner)}
        inputs = [*self.product.inputs, *added, *chosen.beside]
        eq = Equation(fused_product, inputs, params, chosen.results, (chosen.equations or [self.product])[-1].source)
        return self._with(eq)

    def _depending_on(self, product: Var) -> set[int]:
        found = {id(product)}
        for eq in self.program.equations[self.place + 1 :]:
            if any(id(a) in found for a in eq.inputs):
                found.update(id(v) for v in eq.outputs)
        return found

    def _take_bias(self) -> None:
        """Let the start of the epilogue be the product plus a row, where nothing reads it without."""
        v = self.product.outputs[0]
        readers = self.readers.get(id(v), [])
        if len(readers) != 1 or id(v) in self.kept or readers[0].prim.name != "add":
            return
        (eq,) = readers
        row = eq.inputs[1] if eq.inputs[0] is v else eq.inputs[0]
        y = self.product.inputs[1].type
        (_, contracted), (_, batched) = self.product.params["contract"], self.product.params["batch"]
        one_free_axis = y.ndim - len(contracted) - len(batched) == 1
        alike = row.type.dtype == v.type.dtype and eq.outputs[0].type == v.type
        if isinstance(row, Var) and one_free_axis and alike and row.type.shape == v.type.shape[-1:]:
            self.bias, self.start = row, eq.outputs[0]

    # what an epilogue may be

    def _chosen(self) -> _Chosen | None:
        """Return the epilogue whose results save most: those that must be in memory, the last ones first."""
        chain = self._chain()
        wanted = [v for v in chain if is_float(v.type.dtype) and self._is_in_memory(v)]
        options = [[v] for v in wanted[::-1]]
        if len(wanted) > 1:
            options.insert(0, wanted[-2:])
        if not wanted:  # an addition costs nothing here, and a kernel may be spared
            options = [[v] for v in chain[:1] if self.made[id(v)].prim.name == "add" and not self._needs_start([v])]
        for results in options:
            found = self._epilogue(results)
            if found is not None:
                return found
        return None

    def _chain(self) -> list[Var]:
        """Return the values of the product's shape that follow from it, elementwise, and from what can lie beside."""
        chain = {id(self.start): self.start}
        first = next(k for k, eq in enumerate(self.program.equations) if eq is self.made[id(self.start)])
        for eq in self.program.equations[first + 1 :]:
            if not any(id(a) in chain for a in eq.inputs) or not self._is_elementwise(eq):
                continue
            if all(id(a) in chain or self._is_number(a, eq) or self._can_lie_beside(a) for a in eq.inputs):
                chain[id(eq.outputs[0])] = eq.outputs[0]
        return list(chain.values())[1:]

    def _epilogue(self, results: list[Var]) -> _Chosen | None:
        """Return the epilogue with these results, and the product if something needs it; None if that is too much."""
        needs = self._needs_start(results)
        results = [*results, self.start] if needs else results
        inside = self._between(results)
        beside = self._beside(inside)
        expanded, further = self._expanded(beside)
        if len(further) <= MOST_BESIDE and len(inside) + len(expanded) <= MOST_EQUATIONS:
            inside, beside = [*expanded, *inside], further
        fits = len(results) <= MOST_RESULTS and len(beside) <= MOST_BESIDE and len(inside) <= MOST_EQUATIONS
        settled = all(self._lies_in_memory(v) for v in beside) or (not needs and len(inside) == 1)
        return _Chosen(results, inside, beside) if fits and settled else None

    def _between(self, results: Iterable[Var]) -> list[Equation]:
        """Return the equations between the start and results."""
        wanted = {id(v) for v in results}
        found = []
        for eq in reversed(self.program.equations):
            v = eq.outputs[0]
            if id(v) in wanted and v is not self.start and id(v) in self.dependent:
                found.append(eq)
                wanted.update(id(a) for a in eq.inputs)
        return found[::-1]

    def _needs_start(self, results: Iterable[Var]) -> bool:
        """Return whether anything outside reads the start, or what lies between it and results."""
        given = {id(v) for v in results}
        inside = self._between(results)
        mine = {id(eq) for eq in inside}
        between = [self.start, *[eq.outputs[0] for eq in inside]]
        return any(
            id(v) not in given and (id(v) in self.kept or any(id(eq) not in mine for eq in self.readers.get(id(v), [])))
            for v in between
        )

    def _beside(self, inside: Sequence[Equation]) -> list[Var]:
        """Return the arrays of the product's shape that equations read and do not make, the start left out."""
        made = {id(self.start), *[id(eq.outputs[0]) for eq in inside]}
        found = {id(a): a for eq in inside for a in eq.inputs if id(a) not in made and a.type.shape}
        return [a for a in found.values() if isinstance(a, Var)]

    def _expanded(self, beside: Sequence[Var]) -> tuple[list[Equation], list[Var]]:
        """Return the equations that compute arrays from others that are in memory, and these."""
        equations: dict[int, Equation] = {}
        ends: dict[int, Var] = {}
        pending = list(beside)
        while pending:
            v = pending.pop()
            eq = self.made.get(id(v))
            if id(v) in ends or id(eq) in equations:
                continue
            if eq is None or self._lies_in_memory(v) or not self._from_like_shapes(eq):
                ends[id(v)] = v
                continue
            equations[id(eq)] = eq
            pending += [a for a in eq.inputs if isinstance(a, Var) and a.type.shape]
        return [eq for eq in self.program.equations if id(eq) in equations], list(ends.values())

    # what is known of equations and values

    def _is_elementwise(self, eq: Equation) -> bool:
        shape = self.start.type.shape
        if len(eq.outputs) != 1 or eq.outputs[0].type.shape != shape or eq.prim.name in (*VIEWS, *REDUCTIONS):
            return False
        return all(a.type.dtype.name in DTYPES for a in (*eq.inputs, *eq.outputs)) and expression(eq) is not None

    def _from_like_shapes(self, eq: Equation) -> bool:
        shape = self.start.type.shape
        return self._is_elementwise(eq) and all(a.type.shape == shape or self._is_number(a, eq) for a in eq.inputs)

    def _is_number(self, a: Atom, eq: Equation) -> bool:
        """Return whether an operand is a number known now, and of the type of what it meets."""
        if isinstance(a, Literal):
            return True
        return id(a) in self.numbers and all(
            b.type.dtype == a.type.dtype for b in eq.inputs if isinstance(b, Var) and b.type.dtype.kind != "b"
        )

    def _can_lie_beside(self, a: Atom) -> bool:
        if not isinstance(a, Var) or a.type.shape != self.start.type.shape or id(a) in self.dependent:
            return False
        eq = self.made.get(id(a))
        return eq is None or eq.prim.name == "reshape" or eq.prim.name not in VIEWS

    def _is_in_memory(self, v: Var) -> bool:
        """Return whether a value must be in memory: something other than a generated kernel reads it."""
        return id(v) in self.kept or any(self._reads_memory(eq) for eq in self.readers.get(id(v), []))

    def _reads_memory(self, eq: Equation) -> bool:
        if eq.prim.name == "reshape":
            return self._is_in_memory(eq.outputs[0])
        return _is_step(eq)

    def _lies_in_memory(self, v: Var) -> bool:
        """Return whether a value is given, is made by a step, or must be in memory."""
        eq = self.made.get(id(v))
        return eq is None or _is_step(eq) or self._is_in_memory(v)

    # putting it in place

    def _of_own_names(self, inner: Program) -> Program:
        """Return an epilogue as a Program by itself: numbers in place of constants, no variable shared."""
        names: dict[int, Any] = {id(v): Var(v.type) for v in inner.inputs}
        inputs = list(names.values())
        equations = []
        for eq in inner.equations:
            operands = [
                Literal(float(self.numbers[id(a)])) if id(a) in self.numbers else names.get(id(a), a) for a in eq.inputs
            ]
            outputs = [Var(v.type) for v in eq.outputs]
            names.update((id(v), w) for v, w in zip(eq.outputs, outputs, strict=True))
            equations.append(Equation(eq.prim, operands, eq.params, outputs, eq.source))
        return Program(inner.label, inputs, (), equations, [names[id(a)] for a in inner.outputs])

    def _with(self, fused: Equation) -> Program:
        """Return the Program with an equation in the product's place, behind what it reads."""
        equations = self.program.equations
        given = {id(v) for v in fused.outputs}
        before, after = equations[: self.place], equations[self.place + 1 :]
        wanted = {id(a) for a in fused.inputs}
        early: list[Equation] = []
        late: list[Equation] = []
        for eq in reversed(after):
            if any(id(v) in wanted for v in eq.outputs):
                early.append(eq)
                wanted.update(id(a) for a in eq.inputs)
            elif not any(id(v) in given for v in eq.outputs):
                late.append(eq)
        order = [*before, *early[::-1], fused, *late[::-1]]
        return simplify(
            Program(self.program.label, self.program.inputs, self.program.consts, order, self.program.outputs)
        )

"""Products with what follows them: a row of biases and an array of their own shape are added before the store."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fgrad.backend.gpu.library import kernel_for
from fgrad.core import TABLE, Primitive
from fgrad.program import Atom, Equation, Program, Var


def _sum(x: Any, y: Any, *added: Any, bias: bool, **params: Any) -> Any:
    out = TABLE["dot_general"].impl(x, y, **params)
    for other in added:
        out = out + other
    return out


product_and_sum = Primitive("product_and_sum", "composite", _sum, lambda *types, **params: types[0])
"""dot_general of the first two operands, plus the others: a row if `bias`, then an array of the result's shape."""


def with_epilogues(program: Program) -> Program:
    """Return an equal Program whose products take over the additions that nothing else needs them without."""
    uses = Counter(id(a) for eq in program.equations for a in eq.inputs)
    uses.update(id(a) for a in program.outputs)
    products: dict[int, Equation] = {}
    equations: list[Equation] = []
    for eq in program.equations:
        if eq.prim.name == "dot_general" and kernel_for(eq) is not None:
            products[id(eq.outputs[0])] = eq
        taken = _taken_over(eq, products, uses)
        if taken is not None:
            inner, eq = taken
            equations = [other for other in equations if other is not inner]
            products[id(eq.outputs[0])] = eq
        equations.append(eq)
    return Program(program.label, program.inputs, program.consts, equations, program.outputs)


def _taken_over(eq: Equation, products: dict[int, Equation], uses: Counter[int]) -> tuple[Equation, Equation] | None:
    """Return (product, product with an addition) if `eq` is an addition to a product that nothing else reads."""
    if eq.prim.name != "add":
        return None
    for a, b in (eq.inputs, eq.inputs[::-1]):
        inner = products.get(id(a))
        if inner is not None and uses[id(a)] == 1 and isinstance(b, Var) and _fits(inner, a, b, eq):
            bias = b.type.ndim == 1
            params = {**inner.params, "bias": bias or inner.params.get("bias", False)}
            return inner, Equation(product_and_sum, [*inner.inputs, b], params, eq.outputs, eq.source)
    return None


def _fits(inner: Equation, a: Atom, b: Var, eq: Equation) -> bool:
    """Return whether the kernel can add `b` to a product `a`: a row first, an array of the product's shape last."""
    out = eq.outputs[0].type
    if not out.dtype == a.type.dtype == b.type.dtype or out.shape != a.type.shape or a.type.ndim < 2:
        return False
    if b.type.shape == out.shape:
        return len(inner.inputs) == 2 or (len(inner.inputs) == 3 and inner.params["bias"])
    y = inner.inputs[1].type
    (_, contracted), (_, batched) = inner.params["contract"], inner.params["batch"]
    one_free_axis = y.ndim - len(contracted) - len(batched) == 1
    return one_free_axis and b.type.shape == out.shape[-1:] and len(inner.inputs) == 2

"""Programs of single float64 numbers: Python's own floats and `math`, ten times cheaper a step than NumPy's ufuncs.

Where `math` raises (overflow, domain, division by zero) the caller computes again with NumPy, so that inf and nan
come out as NumPy gives them.
"""

from __future__ import annotations

from fgrad.core import ArrayType
from fgrad.program import Atom, Literal, Program

_EXPRESSIONS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "square": "{0} * {0}",
    "reciprocal": "1.0 / {}",
    "pow": "math.pow({}, {})",
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "le": "{} <= {}",
    "gt": "{} > {}",
    "ge": "{} >= {}",
    "logical_not": "not {}",
    "logical_and": "bool({}) and bool({})",
    "logical_or": "bool({}) or bool({})",
    "bitwise_and": "{} & {}",
    "bitwise_or": "{} | {}",
    "invert": "not {}",
    "select": "{1} if {0} else {2}",
    "abs": "abs({})",
    "exp": "math.exp({})",
    "expm1": "math.expm1({})",
    "log": "math.log({})",
    "log2": "math.log2({})",
    "log10": "math.log10({})",
    "log1p": "math.log1p({})",
    "sqrt": "math.sqrt({})",
    "sin": "math.sin({})",
    "cos": "math.cos({})",
    "tan": "math.tan({})",
    "asin": "math.asin({})",
    "acos": "math.acos({})",
    "atan": "math.atan({})",
    "sinh": "math.sinh({})",
    "cosh": "math.cosh({})",
    "tanh": "math.tanh({})",
    "asinh": "math.asinh({})",
    "acosh": "math.acosh({})",
    "atanh": "math.atanh({})",
    "cast": "{}",
    "copy": "{}",
}
"""Primitives as expressions of Python numbers."""


def scalar_source(program: Program) -> str | None:
    """Return the source of `run(*inputs)` if the whole Program works on float64 numbers, else None."""
    if not program.equations or not all(_is_float(v.type) for v in program.inputs):
        return None
    if program.consts and not all(_is_number(v.type) and getattr(x, "size", 0) == 1 for v, x in program.consts):
        return None
    names: dict[int, str] = {id(v): f"x{k}" for k, v in enumerate(program.inputs)}
    names.update((id(v), _literal(x.item())) for v, x in program.consts)
    lines = [f"    x{k} = float(x{k})" for k, v in enumerate(program.inputs) if not v.type.weak]

    def name(a: Atom) -> str:
        return _literal(a.value) if isinstance(a, Literal) else names[id(a)]

    for k, eq in enumerate(program.equations):
        text = _EXPRESSIONS.get(eq.prim.name)
        if text is None or eq.prim.multiple or not all(_is_number(v.type) for v in eq.outputs):
            return None
        if not all(_is_number(a.type) or isinstance(a, Literal) for a in eq.inputs):
            return None
        names[id(eq.outputs[0])] = f"t{k}"
        lines.append(f"    t{k} = {text.format(*[name(a) for a in eq.inputs])}")
    outputs = ", ".join(_output(a, name(a)) for a in program.outputs)
    arguments = ", ".join(f"x{k}" for k in range(len(program.inputs)))
    return "\n".join([f"def run({arguments}):", *lines, f"    return [{outputs}]", ""])


def _is_float(kind: ArrayType) -> bool:
    return kind.shape == () and kind.dtype.char == "d"


def _is_number(kind: ArrayType) -> bool:
    return kind.shape == () and kind.dtype.char in "d?"


def _output(a: Atom, name: str) -> str:
    return f"array(float({name}))" if a.type.dtype.char == "d" else f"array({name}, {a.type.dtype.char!r})"


def _literal(value: object) -> str:
    text = repr(value)
    return f"({text})" if text.startswith("-") else text

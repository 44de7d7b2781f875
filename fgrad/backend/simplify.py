"""Rewriting a Program before code is generated: nested calls inlined, identities removed, repeats merged.

Only identities that hold for nan, inf and signed zeros are used; `fast_math` adds those that do not. One pass over
the equations, each looked up in a table by primitive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad.core import TABLE, ArrayType, Params
from fgrad.program import Atom, Equation, Literal, Program, Trace, Var, simplify

_SAMPLE = 64  # elements of a constant that are looked at before all of them are


def prepare(program: Program, fast_math: bool = False) -> Program:
    """Return an equal Program, flat and without work that changes nothing; `program` has been simplified."""
    flat = inline(program)
    if flat is not program:  # bodies repeat what is around them
        flat = simplify(flat)
    return simplify(_Rewriter(flat, fast_math).result())


def inline(program: Program) -> Program:
    """Return the Program with the bodies of `call` equations in their place."""
    if not any(body_of(eq) or has_plain_definition(eq) for eq in program.equations):
        return program
    equations: list[Equation] = []
    consts = list(program.consts)
    outputs = _inline_into(program.equations, program.outputs, {}, equations, consts)
    return Program(program.label, program.inputs, consts, equations, outputs)


def body_of(eq: Equation) -> Program | None:
    """Return the Program that an equation merely applies: that of a call, a checkpoint, a custom function, a solver."""
    if eq.prim.name in ("call", "checkpoint_call"):
        return eq.params["program"]  # type: ignore[no-any-return]
    if eq.prim.name in ("custom_jvp_call", "custom_vjp_call"):
        return getattr(eq.params["fun"], "program", None)
    return eq.params["solve"] if eq.prim.name == "linear_solve" else None  # type: ignore[no-any-return]


def read_by_body(eq: Equation) -> Sequence[int]:
    """Return which inputs of an equation are those of its body."""
    count = len(eq.inputs)
    if eq.prim.name == "linear_solve":
        before, own, after = eq.params["counts"]
        return [*range(before, before + own), *range(before + own + after, count)]
    return getattr(eq.params.get("fun"), "places", range(count))


def has_plain_definition(eq: Equation) -> bool:
    """Return whether an equation is of a composite that computes by its definition, with no faster way of its own."""
    return eq.prim.kind == "composite" and eq.prim.impl is eq.prim.definition


def definition_of(eq: Equation) -> Program:
    """Return the definition of a composite as a Program, so that what it shares with its derivative is done once."""
    recorder = Trace(eq.prim.name)
    with recorder:
        recorder.parent, outside = None, recorder.parent
        out = eq.prim.definition(*[recorder.input(a.type) for a in eq.inputs], **eq.params)  # type: ignore[misc]
        recorder.parent = outside
    return recorder.finish(out if isinstance(out, tuple) else [out])


def _inline_into(
    source: Sequence[Equation],
    outputs: Sequence[Atom],
    names: dict[int, Atom],
    equations: list[Equation],
    consts: list[tuple[Var, Any]],
) -> list[Atom]:
    """Append `source` to `equations` with variables renamed by `names`; return the renamed outputs."""

    def renamed(a: Atom) -> Atom:
        return names.get(id(a), a) if isinstance(a, Var) else a

    for eq in source:
        inputs = [renamed(a) for a in eq.inputs]
        body = definition_of(eq) if has_plain_definition(eq) else body_of(eq)
        if body is not None:
            inner: dict[int, Atom] = {id(v): inputs[k] for v, k in zip(body.inputs, read_by_body(eq), strict=True)}
            for v, x in body.consts:
                inner[id(v)] = fresh = Var(v.type)
                consts.append((fresh, x))
            results = _inline_into(body.equations, body.outputs, inner, equations, consts)
            names.update((id(v), a) for v, a in zip(eq.outputs, results, strict=True))
            continue
        fresh_outputs = [Var(v.type) for v in eq.outputs]
        names.update((id(v), w) for v, w in zip(eq.outputs, fresh_outputs, strict=True))
        equations.append(Equation(eq.prim, inputs, eq.params, fresh_outputs, eq.source))
    return [renamed(a) for a in outputs]


class _Rewriter:
    """One pass: each equation is replaced by an atom it equals, or by a simpler equation, or kept."""

    def __init__(self, program: Program, fast_math: bool):
        self.program = program
        self.fast_math = fast_math
        self.names: dict[int, Atom] = {}
        self.made: dict[int, Equation] = {}
        self.splats: dict[int, Any] = {id(v): s for v, x in program.consts if (s := splat(x)) is not None}
        self.consts = list(program.consts)
        self.equations: list[Equation] = []
        self.source = ""
        self.uses = Counter(id(a) for eq in program.equations for a in eq.inputs)
        self.uses.update(id(a) for a in program.outputs)

    def result(self) -> Program:
        for eq in self.program.equations:
            self._visit(eq)
        outputs = [self._named(a) for a in self.program.outputs]
        return Program(self.program.label, self.program.inputs, self.consts, self.equations, outputs)

    def _named(self, a: Atom) -> Atom:
        return self.names.get(id(a), a) if isinstance(a, Var) else a

    def _visit(self, eq: Equation) -> None:
        eq = Equation(eq.prim, [self._named(a) for a in eq.inputs], eq.params, eq.outputs, eq.source)
        self.source = eq.source
        rule = _RULES.get(eq.prim.name)
        found = rule(self, eq) if rule is not None else None
        if found is None and not eq.prim.multiple:
            found = self._splat_result(eq)
        if isinstance(found, Equation):
            eq, found = found, None
        if found is not None:
            self.names[id(eq.outputs[0])] = found
            return
        self.equations.append(eq)
        for v in eq.outputs:
            self.made[id(v)] = eq

    # what rules ask

    def value(self, a: Atom) -> Any:
        """Return the one number that `a` consists of, or None."""
        return a.value if isinstance(a, Literal) else self.splats.get(id(a))

    def maker(self, a: Atom, name: str) -> Equation | None:
        """Return the equation that made `a`, if it is of the primitive `name`."""
        eq = self.made.get(id(a))
        return eq if eq is not None and eq.prim.name == name else None

    def shared(self, a: Atom) -> bool:
        """Return whether more than one equation, or output, needs a value."""
        return self.uses[id(a)] > 1

    def constant(self, value: Any, kind: ArrayType) -> Var:
        """Return a new constant of type `kind` all of whose elements are `value`."""
        var = Var(kind)
        array = np.broadcast_to(np.asarray(value, kind.dtype), kind.shape)
        self.consts.append((var, array))
        self.splats[id(var)] = array.flat[0] if array.size else array.dtype.type(0)
        return var

    def apply(self, name: str, *inputs: Any) -> Var:
        """Append an equation of an elementwise primitive; Python numbers are operands like any other."""
        prim = TABLE[name]
        atoms = [Literal(a) if isinstance(a, (int, float)) else a for a in inputs]
        out = Var(prim.type_rule(*[a.type for a in atoms]))
        eq = Equation(prim, atoms, {}, [out], self.source)
        self.equations.append(eq)
        self.made[id(out)] = eq
        return out

    def _splat_result(self, eq: Equation) -> Atom | None:
        """Compute elementwise work on constants of equal elements, and on views of them, once."""
        if eq.prim.kind not in ("elementwise", "constant") and eq.prim.name not in (
            "broadcast",
            "reshape",
            "transpose",
        ):
            return None
        if not eq.inputs or eq.prim.type_rule is None:
            return None
        values = [self.value(a) for a in eq.inputs]
        kind = eq.outputs[0].type
        if any(v is None for v in values) or kind.weak or kind.size == 0:
            return None
        if eq.prim.name in ("broadcast", "reshape", "transpose"):
            return self.constant(values[0], kind)
        if not (eq.prim.kind == "elementwise" or eq.prim.declared.get("elementwise")):
            return None
        with np.errstate(all="ignore"):
            return self.constant(eq.prim.impl(*values, **eq.params), kind)


def splat(x: Any) -> Any:
    """Return the element that an array consists of, None if elements differ (or it is no plain array)."""
    if not isinstance(x, np.ndarray) or x.size == 0 or x.dtype.kind == "V":
        return None
    if x.size == 1 or not any(s for s, n in zip(x.strides, x.shape, strict=True) if n > 1):
        return x.flat[0]
    first = x.flat[0]
    if (x.flat[:_SAMPLE] != first).any() or (x != first).any():
        return None
    return first if first != 0 or x.tobytes() == bytes(x.nbytes) else None  # not -0.0


def _same(a: Atom, eq: Equation) -> bool:
    """Return whether `a` could stand for the result: equal type, weakness included."""
    return a.type == eq.outputs[0].type


def _neutral(value: Any, positions: Sequence[int]) -> Callable[[_Rewriter, Equation], Atom | Equation | None]:
    """Return a rule: if the operand at one of `positions` is `value` everywhere, the result is the other operand."""

    def rule(r: _Rewriter, eq: Equation) -> Atom | None:
        for i in positions:
            number = r.value(eq.inputs[i])
            other = eq.inputs[1 - i]
            if number is None or number != value or other.type.dtype != eq.outputs[0].type.dtype:
                continue
            if _same(other, eq):
                return other
            if not other.type.weak and other.type.size == eq.outputs[0].type.size:  # but for axes of size 1
                return Equation(TABLE["reshape"], [other], {"shape": eq.outputs[0].type.shape}, eq.outputs, eq.source)
        return None

    return rule


def _mul(r: _Rewriter, eq: Equation) -> Atom | Equation | None:
    found = _neutral(1, (0, 1))(r, eq) or _scaled(r, eq) or _negative_factor(r, eq)
    if found is None and r.fast_math and any(r.value(a) == 0 for a in eq.inputs if r.value(a) is not None):
        return r.constant(0, eq.outputs[0].type)
    return found if found is not None else _scalar_operand(r, eq)


def _add(r: _Rewriter, eq: Equation) -> Atom | Equation | None:
    x, y = eq.inputs
    found = _neutral(0, (0, 1))(r, eq) if r.fast_math else None  # -0.0 + 0 is 0.0
    if found is None and _real(eq):
        for kept, negated in ((x, _negated(r, y)), (y, _negated(r, x))):
            if negated is not None:
                return _rewritten(r, "sub", [kept, negated], eq)
    return found if found is not None else _scalar_operand(r, eq)


def _sub(r: _Rewriter, eq: Equation) -> Atom | Equation | None:
    x, y = eq.inputs
    number = r.value(y)
    if number is not None and number == 0 and not np.signbit(number) and _same(x, eq):
        return x
    negated = _negated(r, y) if _real(eq) else None
    return _scalar_operand(r, eq) if negated is None else _rewritten(r, "add", [x, negated], eq)


def _rewritten(r: _Rewriter, name: str, inputs: list[Atom], eq: Equation) -> Atom | Equation:
    """Return the equation of another primitive in place of `eq`, simplified in its turn."""
    new = Equation(TABLE[name], inputs, {}, eq.outputs, eq.source)
    return _RULES[name](r, new) or new


def _negated(r: _Rewriter, a: Atom) -> Atom | None:
    """Return x if `a` is -x."""
    eq = r.maker(a, "neg")
    return eq.inputs[0] if eq is not None and eq.inputs[0].type == a.type else None


def _factor(r: _Rewriter, a: Atom) -> tuple[Any, Atom] | None:
    """Return (c, x) if `a` is c * x, or x + x, for a number c and an x of the same real type."""
    double = r.maker(a, "add")
    if double is not None and double.inputs[0] is double.inputs[1] and double.inputs[0].type == a.type and _is_f(a):
        return 2.0, double.inputs[0]
    eq = r.maker(a, "mul")
    if eq is None or not _is_f(a):
        return None
    for c, x in (eq.inputs, eq.inputs[::-1]):
        number = r.value(c)
        if number is not None and x.type == a.type:
            return number, x
    return None


def _scaled(r: _Rewriter, eq: Equation) -> Equation | None:
    """Write c * (d * x) as (c * d) * x where that rounds alike: one of the two is a power of 2, and neither shrinks."""
    for c, a in (eq.inputs, eq.inputs[::-1]):
        number, inner = r.value(c), _factor(r, a)
        if number is None or inner is None or a.type != eq.outputs[0].type:
            continue
        d, x = inner
        exact = abs(np.frexp(number)[0]) == 0.5 or abs(np.frexp(d)[0]) == 0.5
        most = float(np.finfo(a.type.dtype).max)
        if exact and min(abs(number), abs(d)) >= 1 and abs(float(number) * float(d)) <= most:
            product = r.constant(number * d, ArrayType((), a.type.dtype))
            return Equation(eq.prim, [product, x], eq.params, eq.outputs, eq.source)
    return None


def _negative_factor(r: _Rewriter, eq: Equation) -> Atom | Equation | None:
    """Write (-x) * y as -(x * y), where no more is computed: the sign then goes with an addition, or a number."""
    negated = [_negated(r, a) for a in eq.inputs] if _real(eq) else [None, None]
    if None not in negated:
        return _rewritten(r, "mul", negated, eq)  # type: ignore[arg-type]
    for i, x in enumerate(negated):
        a, other = eq.inputs[i], eq.inputs[1 - i]
        if x is not None and not r.shared(a) and _same(a, eq) and r.value(other) is None:
            return _rewritten(r, "neg", [r.apply("mul", *((x, other) if i == 0 else (other, x)))], eq)
    return None


def _div(r: _Rewriter, eq: Equation) -> Atom | Equation | None:
    found = _neutral(1, (1,))(r, eq)
    return found if found is not None else _scalar_operand(r, eq)


def _scalar_operand(r: _Rewriter, eq: Equation) -> Equation | None:
    """Use a 0-d constant for a splat, and skip a broadcast, where another operand has the whole shape."""
    shape = eq.outputs[0].type.shape
    inputs = list(eq.inputs)
    for i, a in enumerate(inputs):
        others = [b.type.shape for j, b in enumerate(inputs) if j != i]
        if a.type.shape == () or not others or np.broadcast_shapes(*others) != shape:
            continue
        number = r.value(a)
        wide = r.maker(a, "broadcast")
        if number is not None:
            inputs[i] = r.constant(number, ArrayType((), a.type.dtype))
        elif wide is not None:
            inputs[i] = wide.inputs[0]
    if all(a is b for a, b in zip(inputs, eq.inputs, strict=True)):
        return None
    return Equation(eq.prim, inputs, eq.params, eq.outputs, eq.source)


def _neg(r: _Rewriter, eq: Equation) -> Atom | Equation | None:
    x = eq.inputs[0]
    negated = _negated(r, x)
    if negated is not None and _same(negated, eq):
        return negated
    factor = None if r.shared(x) else _factor(r, x)
    if factor is None:
        return None
    number = r.constant(-factor[0], ArrayType((), x.type.dtype))
    return Equation(TABLE["mul"], [number, factor[1]], {}, eq.outputs, eq.source)


def _same_type(r: _Rewriter, eq: Equation) -> Atom | None:
    return eq.inputs[0] if _same(eq.inputs[0], eq) else None


def _named(r: _Rewriter, eq: Equation) -> Atom | None:
    """Drop a name; what a checkpoint computes again has one that is no string, and stays apart from the first time."""
    return _same_type(r, eq) if isinstance(eq.params["name"], str) else None


def _reshape(r: _Rewriter, eq: Equation) -> Atom | Equation | None:
    if _same(eq.inputs[0], eq):
        return eq.inputs[0]
    inner = r.maker(eq.inputs[0], "reshape")
    return None if inner is None else Equation(eq.prim, inner.inputs, eq.params, eq.outputs, eq.source)


def _transpose(r: _Rewriter, eq: Equation) -> Atom | Equation | None:
    perm = eq.params["perm"]
    if perm == tuple(range(len(perm))) and _same(eq.inputs[0], eq):
        return eq.inputs[0]
    inner = r.maker(eq.inputs[0], "transpose")
    if inner is None:
        return None
    both: Params = {"perm": tuple(inner.params["perm"][i] for i in perm)}
    if both["perm"] == tuple(range(len(perm))) and _same(inner.inputs[0], eq):
        return inner.inputs[0]
    return Equation(eq.prim, inner.inputs, both, eq.outputs, eq.source)


def _no_axes(r: _Rewriter, eq: Equation) -> Atom | None:
    return eq.inputs[0] if not eq.params["axes"] and _same(eq.inputs[0], eq) else None


def _pow(r: _Rewriter, eq: Equation) -> Atom | Equation | None:
    """Write a small whole power as products, which is what NumPy itself does for a square alone."""
    x, exponent = eq.inputs[0], r.value(eq.inputs[1])
    if exponent is None or x.type != eq.outputs[0].type or x.type.weak or x.type.dtype.kind not in "fc":
        return _scalar_operand(r, eq)
    if exponent in (0, 1):
        return x if exponent else r.constant(1, x.type)
    if exponent == 2:
        return Equation(TABLE["square"], [x], {}, eq.outputs, eq.source)
    if exponent in (3, 4, 5, 6):
        square = r.apply("square", x)
        base = x if exponent % 2 else None
        high = square if exponent < 4 else r.apply("square", square)
        if exponent == 6:
            high = r.apply("mul", high, square)
        return high if base is None else r.apply("mul", high, base)
    return _scalar_operand(r, eq)


def _real(eq: Equation) -> bool:
    return eq.outputs[0].type.dtype.kind == "f" and all(a.type.dtype == eq.outputs[0].type.dtype for a in eq.inputs)


def _logaddexp(r: _Rewriter, eq: Equation) -> Atom | None:
    """Write log(exp(x) + exp(c)), for a finite number c, as max + log1p(exp(-|x - c|)): much faster in NumPy."""
    for i in (0, 1):
        number, x = r.value(eq.inputs[i]), eq.inputs[1 - i]
        if number is not None and np.isfinite(number) and x.type.dtype == eq.outputs[0].type.dtype and _is_f(x):
            return _soft_maximum(r, x, float(number))
    return None


def _softplus(r: _Rewriter, eq: Equation) -> Atom | None:
    return _soft_maximum(r, eq.inputs[0], 0.0) if _real(eq) else None


def _is_f(a: Atom) -> bool:
    return a.type.dtype.kind == "f" and not a.type.weak


def _soft_maximum(r: _Rewriter, x: Atom, c: float) -> Var:
    distance = r.apply("abs", r.apply("sub", x, c) if c else x)
    return r.apply("add", r.apply("max", x, c), r.apply("log1p", r.apply("exp", r.apply("neg", distance))))


def _sigmoid(r: _Rewriter, eq: Equation) -> Atom | None:
    if not _real(eq):
        return None
    return r.apply("reciprocal", r.apply("add", r.apply("exp", r.apply("neg", eq.inputs[0])), 1.0))


def _rsqrt(r: _Rewriter, eq: Equation) -> Atom | None:
    return r.apply("reciprocal", r.apply("sqrt", eq.inputs[0])) if _real(eq) else None


def _relu(r: _Rewriter, eq: Equation) -> Atom | None:
    return r.apply("max", eq.inputs[0], 0.0) if _real(eq) else None


def _clamp(r: _Rewriter, eq: Equation) -> Atom | None:
    x, lo, hi = eq.inputs
    if x.type != eq.outputs[0].type or x.type.weak:
        return None
    return r.apply("min", r.apply("max", x, lo), hi)


_RULES: dict[str, Callable[[_Rewriter, Equation], Any]] = {
    "mul": _mul,
    "add": _add,
    "sub": _sub,
    "div": _div,
    "neg": _neg,
    "max": _scalar_operand,
    "min": _scalar_operand,
    "select": _scalar_operand,
    "pow": _pow,
    "logaddexp": _logaddexp,
    "softplus": _softplus,
    "sigmoid": _sigmoid,
    "rsqrt": _rsqrt,
    "relu": _relu,
    "clamp": _clamp,
    "cast": _same_type,
    "copy": _same_type,
    "stop_gradient": _same_type,
    "named": _named,
    "broadcast": _same_type,
    "reshape": _reshape,
    "transpose": _transpose,
    "reduce_sum": _no_axes,
}

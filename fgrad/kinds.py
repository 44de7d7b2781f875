"""The derivative kinds: constructors that turn one declaration into a primitive with push and pull.

A rule is ordinary code whose parameter names say what it needs, and that is its save list:

    x, y, …     an input's value (in a transpose, a linear input's ArrayType: never saved)
    x_type      an input's ArrayType
    out, …      an output's value
    ct, t       the cotangent of the output, the tangent of the input the rule is for
    *, axis     keyword-only names are the primitive's parameters

Each kind writes its plans (see `fgrad.plans`). Must not import any particular primitive: what rules need of arrays are
operators and NumPy's methods.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fgrad.core import ArrayType, Params, Primitive, register
from fgrad.plans import (
    Plan,
    Rule,
    Writer,
    bits_of,
    expand_to,
    hooks,
    input_names,
    is_variadic,
    parameters_of,
    sum_to,
    zeros,
)


class Gate:
    """A partial derivative that is `factor` where `mask` holds and `otherwise` elsewhere.

    A choice, never a product: what is not chosen has no effect, whatever the cotangent there (inf, nan). Both may be
    partial derivatives of any form, gates included.
    """

    __slots__ = ("factor", "mask", "otherwise")

    def __init__(self, mask: Rule, factor: Any = 1, otherwise: Any = 0):
        self.mask = mask
        self.factor = factor
        self.otherwise = otherwise


gate = Gate


# ------------------------------------------------------------------------------------------------ elementwise


def elementwise(
    name: str,
    impl: Rule,
    d: Any,
    *,
    type: Rule | None = None,
    operator: bool = False,
    gpu: str | None = None,
    doc: str = "",
) -> Primitive:
    """Declare a primitive that works element by element, broadcasts its inputs and promotes their dtypes.

    `d` has a partial derivative per input (or is one, for a single input): a number if it is constant, a rule of
    named values, a `gate`, or None for an input that has no derivative. A rule that names `t`, the tangent or
    cotangent, gives the product itself, for what is not best multiplied: a quotient. `operator` says that Python
    numbers among themselves stay Python numbers (weak). `type` overrides the type rule, which is read off `impl`.
    """
    partials = tuple(d) if isinstance(d, tuple) else (d,)
    prim = Primitive(
        name,
        "elementwise",
        impl,
        type or functools.partial(elementwise_type, impl, operator),
        inputs=input_names(impl, len(partials)),
        make_plan=_elementwise_plan,
        declared={"d": partials, "operator": operator},
        gpu=gpu,
        doc=doc,
    )
    for i, partial in enumerate(partials):  # a partial that names an unknown value fails here, at import
        if partial is not None:
            _partial(Writer(prim, (i,)), partial, "ct")
    return register(prim)


def _partial(w: Writer, partial: Any, ct: str) -> str:
    """Return the source of `ct` times a partial derivative."""
    if isinstance(partial, Gate):
        branches = _partial(w, partial.factor, ct), _partial(w, partial.otherwise, ct)
        return f"{w.name(_choose)}({w.call(partial.mask, {})}, {', '.join(branches)})"
    if callable(partial):
        whole = "t" in parameters_of(partial)[0]
        return w.call(partial, {"t": ct}) if whole else f"{ct} * {w.call(partial, {})}"
    if partial == 0 or partial == 1:
        return ct if partial else "0"
    return f"-{ct}" if partial == -1 else f"{ct} * {partial!r}"


def _choose(mask: Any, x: Any, y: Any) -> Any:
    """Return x where `mask` holds, else y; at once if it is a Python bool, as exponents that are numbers make it."""
    if mask is True:
        return x
    if y.__class__ is int and x.__class__ is np.ndarray and x.size > _MANY and np.shape(mask) == x.shape:
        bits = _BITS.get(x.dtype)
        if bits is not None:  # for masks without a pattern 3 to 17 times as fast as `where`; exact for inf and nan
            product = mask.astype(bits)
            product *= x.view(bits)
            return product.view(x.dtype)
    return np.where(mask, x, y)


_MANY = 1024
_BITS = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}


def _elementwise_plan(prim: Primitive, mask: int, forward: bool) -> Plan:
    partials = prim.declared["d"]
    active = [i for i in bits_of(mask) if partials[i] is not None]
    if not active:
        return _constant_plan(prim, mask, forward)
    w = Writer(prim, active)
    n = len(active)
    terms = [_partial(w, partials[i], f"t{k}" if forward else "ct") for k, i in enumerate(active)]
    if not forward:
        w.lines += [f"g{k} = {term}" for k, term in enumerate(terms)]
        w.lines += ["if types is not None:"]
        w.lines += [f"    g{k} = {w.name(sum_to)}(g{k}, types[{k}])" for k in range(n)]
        pull = w.compile("saved, types, params, ct", "".join(f"g{k}, " for k in range(n)))
        return Plan(prim, w.active, tuple(w.saves), None, pull, None)
    w.lines += [f"{''.join(f't{k}, ' for k in range(n))} = tangents", "t = None"]
    for k, term in enumerate(terms):
        value = term if k == 0 else f"{term} if t is None else t + ({term})"
        w.lines += [f"if t{k} is not None:", f"    t = {value}"]
    w.lines += ["if types is not None and t is not None:", f"    t = {w.name(expand_to)}(t, types[-1])"]
    return Plan(prim, w.active, tuple(w.saves), None, None, w.compile("saved, types, params, tangents", "t"))


def elementwise_type(impl: Rule, operator: bool, *types: ArrayType, **params: Any) -> ArrayType:
    """Return the type of an elementwise result: broadcast shapes, and the dtype that `impl` gives."""
    weak = operator and all(t.weak for t in types)
    dtype = _result_dtype(
        impl, tuple([(t.dtype, t.weak) for t in types]), tuple(sorted(params.items())) if params else ()
    )
    return ArrayType(_broadcast_shape(types), dtype, weak)


def _broadcast_shape(types: Sequence[ArrayType]) -> tuple[int, ...]:
    """Return the shape that types broadcast to; NumPy is asked where shapes with axes differ."""
    shape = types[0].shape
    for t in types:
        if t.shape != shape:
            if shape and t.shape:
                return np.broadcast_shapes(*[t.shape for t in types])
            shape = shape or t.shape
    return shape


@functools.lru_cache(maxsize=4096)
def _result_dtype(impl: Rule, dtypes: tuple[tuple[Any, bool], ...], params: Any) -> Any:
    """Return the dtype that `impl` gives for inputs of these dtypes, found by running it on one element."""
    samples = [dt.type(1).item() if weak else np.ones((1,), dt) for dt, weak in dtypes]
    with np.errstate(all="ignore"):
        return np.asarray(impl(*samples, **dict(params))).dtype


# -------------------------------------------------------------------------------------- linear and bilinear


def linear(
    name: str,
    impl: Rule,
    *,
    type: Rule,
    transpose: Any,
    wrt: tuple[int, ...] = (0,),
    shift: Rule | None = None,
    batch: Rule | None = None,
    gpu: str | None = None,
    doc: str = "",
) -> Primitive:
    """Declare a primitive that is linear in the inputs `wrt` (jointly, if several) for fixed other inputs.

    `transpose` is a rule for the one linear input, or a tuple with a rule for each. A variadic primitive (whose
    `impl` takes `*xs`) is linear in all inputs and its transpose returns a cotangent for each. `shift(size,
    **params)` returns the parameters that change when every input has a batch axis in front; `batch(args, dims,
    size, **params)` is the general batching rule.
    """
    transposes = transpose if isinstance(transpose, tuple) else (transpose,)
    prim = Primitive(
        name,
        "linear",
        impl,
        type,
        inputs=input_names(impl, None),
        make_plan=_linear_plan,
        batch=batch,
        declared={"wrt": wrt, "transpose": transposes, "shift": shift},
        gpu=gpu,
        doc=doc,
    )
    if not is_variadic(prim):
        for i, rule in zip(wrt, transposes, strict=True):
            Writer(prim, (i,)).call(rule, {"ct": "ct"}, wrt)
    return register(prim)


def _linear_plan(prim: Primitive, mask: int, forward: bool) -> Plan:
    if is_variadic(prim):
        return _variadic_plan(prim, mask, forward)
    wrt, rules = prim.declared["wrt"], prim.declared["transpose"]
    active = [i for i in bits_of(mask) if i in wrt]
    w = Writer(prim, active)
    if not forward:
        parts = [w.call(rules[wrt.index(i)], {"ct": "ct"}, wrt) for i in active]
        pull = w.compile("saved, types, params, ct", "".join(p + ", " for p in parts))
        return Plan(prim, w.active, tuple(w.saves), tuple(w.typed), pull, None)
    zero = w.name(zeros)
    parts = []
    for i in range(len(prim.inputs)):
        if i not in wrt:
            parts.append(w.saved(i))
        elif i not in active:
            parts.append(f"{zero}({w.type(i)})")
        elif len(active) == 1:
            parts.append("tangents[0]")
        else:
            t = f"tangents[{active.index(i)}]"
            parts.append(f"{zero}({w.type(i)}) if {t} is None else {t}")
    push = w.compile("saved, types, params, tangents", f"{w.name(prim)}({', '.join(parts)}, **params)")
    return Plan(prim, w.active, tuple(w.saves), tuple(w.typed), None, push)


def _variadic_plan(prim: Primitive, mask: int, forward: bool) -> Plan:
    """Plan a variadic linear primitive; the mask's top bit marks the number of inputs (see `plan_key`)."""
    count = mask.bit_length() - 1
    active = tuple(bits_of(mask ^ (1 << count)))
    transpose = prim.declared["transpose"][0]

    def pull(saved: Any, types: Any, params: Params, ct: Any) -> Any:
        cts = transpose(ct, *types, **params)
        return [cts[i] for i in active]

    def push(saved: Any, types: Any, params: Params, tangents: Any) -> Any:
        full: list[Any] = [zeros(t) for t in types]
        for i, t in zip(active, tangents, strict=True):
            if t is not None:
                full[i] = t
        return prim(*full, **params)

    return Plan(prim, active, (), tuple(range(count)), None if forward else pull, push if forward else None)


def bilinear(
    name: str,
    impl: Rule,
    *,
    type: Rule,
    transpose: tuple[Rule, Rule],
    batch: Rule | None = None,
    shift: Rule | None = None,
    gpu: str | None = None,
    doc: str = "",
) -> Primitive:
    """Declare a primitive of two inputs that is linear in each for a fixed other; a transpose for each."""
    prim = Primitive(
        name,
        "bilinear",
        impl,
        type,
        inputs=input_names(impl, 2),
        make_plan=_bilinear_plan,
        batch=batch,
        declared={"transpose": transpose, "shift": shift},
        gpu=gpu,
        doc=doc,
    )
    for i, rule in enumerate(transpose):
        Writer(prim, (i,)).call(rule, {"ct": "ct"}, (i,))
    return register(prim)


def _bilinear_plan(prim: Primitive, mask: int, forward: bool) -> Plan:
    active = bits_of(mask)
    w = Writer(prim, active)
    if not forward:
        parts = [w.call(prim.declared["transpose"][i], {"ct": "ct"}, (i,)) for i in active]
        pull = w.compile("saved, types, params, ct", "".join(p + ", " for p in parts))
        return Plan(prim, w.active, tuple(w.saves), tuple(w.typed), pull, None)
    op = w.name(prim)
    w.lines.append("t = None")
    for k, i in enumerate(active):
        operands = [w.saved(1 - i), w.saved(1 - i)]
        operands[i] = f"tangents[{k}]"
        w.lines += [
            f"if tangents[{k}] is not None:",
            f"    u = {op}({', '.join(operands)}, **params)",
            "    t = u if t is None else t + u",
        ]
    return Plan(prim, w.active, tuple(w.saves), tuple(w.typed), None, w.compile("saved, types, params, tangents", "t"))


# ---------------------------------------------------------------------------------------------- differential


def differential(
    name: str,
    impl: Rule,
    *,
    type: Rule,
    jvp: Any,
    pull: Any = None,
    outputs: tuple[str, ...] = ("out",),
    shift: Rule | None = None,
    batch: Rule | None = None,
    gpu: str | None = None,
    doc: str = "",
) -> Primitive:
    """Declare a primitive by a tangent rule, linear in `t`, for its first input, or one each (None for none).

    A primitive of several outputs returns a tuple of tangents (None for an integer output). The pull is the
    transpose of the rule, unless `pull` (per input, like `jvp`) is given; with several outputs it gets `ct` as a tuple
    of arrays.
    """
    jvps = jvp if isinstance(jvp, tuple) else (jvp,)
    pulls = pull if isinstance(pull, tuple) else (pull,) * len(jvps)
    prim = Primitive(
        name,
        "differential",
        impl,
        type,
        inputs=input_names(impl, None),
        outputs=outputs,
        make_plan=_differential_plan,
        batch=batch,
        declared={"jvp": jvps, "pull": pulls, "shift": shift},
        gpu=gpu,
        doc=doc,
    )
    for i in range(len(jvps)):
        if jvps[i] is not None:
            Writer(prim, (i,)).call(jvps[i], {"t": "t"})
        if pulls[i] is not None:
            Writer(prim, (i,)).call(pulls[i], {"ct": "ct"})
    return register(prim)


def _differential_plan(prim: Primitive, mask: int, forward: bool) -> Plan:
    jvps, pulls = prim.declared["jvp"], prim.declared["pull"]
    active = [i for i in bits_of(mask) if i < len(jvps) and jvps[i] is not None]
    w = Writer(prim, active)
    if forward:
        w.lines.append("t = None")
        for k, i in enumerate(active):
            w.lines += [
                f"if tangents[{k}] is not None:",
                f"    u = {w.call(jvps[i], {'t': f'tangents[{k}]'})}",
                f"    t = u if t is None else {w.name(_add_tangents)}(t, u)",
            ]
        push = w.compile("saved, types, params, tangents", "t")
        return Plan(prim, w.active, tuple(w.saves), tuple(w.typed), None, push)
    parts = []
    for i in active:
        if pulls[i] is not None:
            parts.append(w.call(pulls[i], {"ct": _materialized(w)}))
        else:
            rule = f"lambda t: {w.call(jvps[i], {'t': 't'})}"
            parts.append(f"{w.name(_transpose_rule)}({rule}, {w.type(i)}, ct)")
    pull = w.compile("saved, types, params, ct", "".join(p + ", " for p in parts))
    return Plan(prim, w.active, tuple(w.saves), tuple(w.typed), pull, None)


def _materialized(w: Writer) -> str:
    """Return the source of the cotangent as a rule gets it: arrays for all outputs."""
    if not w.prim.multiple:
        return "ct"
    types = ", ".join(w.type(~k) for k in range(len(w.prim.outputs)))
    return f"{w.name(_materialize)}(ct, ({types},))"


def _materialize(cts: Sequence[Any], types: Sequence[ArrayType]) -> tuple[Any, ...]:
    return tuple(zeros(kind) if ct is None else ct for ct, kind in zip(cts, types, strict=True))


def _transpose_rule(rule: Rule, kind: ArrayType, ct: Any) -> Any:
    return hooks.transpose_rule(rule, kind, ct)


def _add_tangents(t: Any, u: Any) -> Any:
    if not isinstance(t, tuple):
        return t + u
    return tuple(b if a is None else a if b is None else a + b for a, b in zip(t, u, strict=True))


# --------------------------------------------------------------------------------------- composite and constant


def composite(
    name: str,
    definition: Rule,
    *,
    pull: Any = None,
    impl: Rule | None = None,
    type: Rule | None = None,
    shift: Rule | None = None,
    batch: Rule | None = None,
    gpu: str | None = None,
    doc: str = "",
) -> Primitive:
    """Declare a primitive by a definition in other primitives; `pull` overrides the derived one.

    A transform without a rule of its own looks inside the definition. `impl` may give a faster way to compute, `shift`
    or `batch` one to batch.
    """
    pulls = pull if isinstance(pull, tuple) or pull is None else (pull,)
    prim = Primitive(
        name,
        "composite",
        impl or definition,
        type or _type_by_definition,
        inputs=input_names(definition, None),
        make_plan=_composite_plan if pulls else None,
        batch=batch,
        definition=definition,
        declared={"pull": pulls, "shift": shift},
        gpu=gpu,
        doc=doc,
    )
    if type is None:
        prim.type_rule = functools.partial(_type_by_definition, prim)
    for rule in pulls or ():
        if rule is not None:
            Writer(prim, ()).call(rule, {"ct": "ct"})
    return register(prim)


def _type_by_definition(prim: Primitive, *types: ArrayType, **params: Any) -> ArrayType:
    assert prim.definition is not None
    return hooks.type_by_tracing(prim.definition, types, params)  # type: ignore[no-any-return]


def _composite_plan(prim: Primitive, mask: int, forward: bool) -> Plan:
    pulls = prim.declared["pull"]
    active = [i for i in bits_of(mask) if i < len(pulls) and pulls[i] is not None]
    if forward:
        raise TypeError(f"composite '{prim.name}' is pushed through its definition")
    w = Writer(prim, active)
    parts = [w.call(pulls[i], {"ct": "ct"}) for i in active]
    pull = w.compile("saved, types, params, ct", "".join(p + ", " for p in parts))
    return Plan(prim, w.active, tuple(w.saves), tuple(w.typed), pull, None)


def constant(
    name: str,
    impl: Rule,
    *,
    type: Rule | None = None,
    elementwise: bool = False,
    operator: bool = False,
    outputs: tuple[str, ...] = ("out",),
    shift: Rule | None = None,
    batch: Rule | None = None,
    gpu: str | None = None,
    doc: str = "",
) -> Primitive:
    """Declare a primitive whose derivative is zero wherever it exists (comparisons, floor, argmax, …)."""
    prim = Primitive(
        name,
        "constant",
        impl,
        type or functools.partial(elementwise_type, impl, operator),
        inputs=input_names(impl, None) if not isinstance(impl, np.ufunc) else ("x", "y", "z")[: impl.nin],
        outputs=outputs,
        make_plan=_constant_plan,
        batch=batch,
        declared={"elementwise": elementwise or type is None, "shift": shift, "operator": operator},
        gpu=gpu,
        doc=doc,
    )
    return register(prim)


def _constant_plan(prim: Primitive, mask: int, forward: bool) -> Plan:
    return Plan(prim, (), (), (), None, None)


def structured(name: str, impl: Rule, type: Rule, *, multiple: bool = True, doc: str = "") -> Primitive:
    """Declare a primitive that holds functions or Programs; each interpreter has its own entry in `rules`."""
    return register(Primitive(name, "structured", impl, type, multiple=multiple, doc=doc))

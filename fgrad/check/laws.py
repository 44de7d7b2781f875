"""The laws of primitives: what must hold of every row of the table, at any point, whatever the primitive computes.

A law is a function `check_…(prim, *args, **params)` that raises AssertionError. `LAWS` has them all by name, each with
the primitives it speaks of. Tangents and cotangents are drawn from a fixed seed. Only the derivatives' laws ask that
`args` are points where the derivative exists; the others hold for any values, NaN included.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fgrad import tree
from fgrad.check.differences import estimate, is_inexact_type, widen
from fgrad.check.grads import cast_like, pairing, random_like, tolerance, worst
from fgrad.core import PYTHON_SCALARS, Params, Primitive, Tracer, type_of
from fgrad.plans import plan_for
from fgrad.program import trace
from fgrad.transforms.jit import jit
from fgrad.transforms.jvp import jvp
from fgrad.transforms.linearize import kept_types, vjp
from fgrad.transforms.vmap import vmap


@dataclass(frozen=True)
class _Case:
    """A law at work on a primitive at a point; a function of arrays with words for its failures."""

    law: str
    prim: Primitive
    args: tuple[Any, ...]
    params: Params

    def __call__(self, *args: Any) -> Any:
        return self.prim(*args, **self.params)

    def values(self) -> tuple[Any, ...]:
        """Return the outputs at the point, as a tuple."""
        out = self(*self.args)
        return out if self.prim.multiple else (out,)

    def fail(self, message: str) -> NoReturn:
        point = "\n".join(f"  {n} = {x!r}" for n, x in zip(_names(self.prim, len(self.args)), self.args, strict=True))
        params = f"\n  parameters {self.params}" if self.params else ""
        raise AssertionError(f"primitive '{self.prim.name}' breaks the law '{self.law}': {message}\n{point}{params}")

    def of(self, active: Sequence[int]) -> Callable[..., Any]:
        """Return the primitive as a function of the inputs `active` alone."""

        def fun(*xs: Any) -> Any:
            full = list(self.args)
            for i, x in zip(active, xs, strict=True):
                full[i] = x
            return self(*full)

        return fun

    def at(self, active: Sequence[int]) -> list[Any]:
        return [self.args[i] for i in active]

    def widened(self) -> _Case:
        """Return the same case in double precision."""
        return replace(self, args=tuple(x if x.__class__ in PYTHON_SCALARS else widen(x) for x in self.args))


def _names(prim: Primitive, count: int) -> list[str]:
    if len(prim.inputs) == count and not prim.inputs[0].startswith("*"):
        return list(prim.inputs)
    return [f"input {i}" for i in range(count)]


def differentiable_inputs(prim: Primitive, args: Sequence[Any]) -> list[int]:
    """Return the inputs that are of a floating type and that the primitive has a derivative for."""
    inexact = [i for i, x in enumerate(args) if is_inexact_type(x)]
    if prim.make_plan is None:
        return inexact
    return [i for i in inexact if plan_for(prim, 1 << i, len(args)).active]


def _subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the non-empty subsets, in order of size."""
    for n in range(1, len(items) + 1):
        yield from itertools.combinations(items, n)


# ------------------------------------------------------------------------------------------ types and memory


@np.errstate(all="ignore")
def check_type_rule(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check that the type rule predicts shapes, dtypes and weakness of what the primitive computes."""
    case = _Case("type rule", prim, args, params)
    want = prim.type_rule(*[type_of(x) for x in args], **params)
    got = tuple(type_of(x) for x in case.values())
    if (tuple(want) if prim.multiple else (want,)) != got:
        case.fail(f"the rule gives {want}, computing gives {got if prim.multiple else got[0]}")


@np.errstate(all="ignore")
def check_layout(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check that strides of inputs do not matter, that no input is written to, and that none is returned as it is."""
    case = _Case("layout", prim, args, params)
    plain = [np.array(x, order="C") if isinstance(x, np.ndarray) else x for x in args]
    outs = case.values()
    for i, (x, before) in enumerate(zip(args, plain, strict=True)):
        if isinstance(x, np.ndarray) and not _same(x, before):
            case.fail(f"input {i} was changed from {before!r}")
        if isinstance(x, np.ndarray) and any(out is x for out in outs):
            case.fail(f"input {i} itself is the result")
    _compare(case, "contiguous copies of the inputs", outs, replace(case, args=tuple(plain)).values())


# ---------------------------------------------------------------------------------------------- derivatives


@np.errstate(all="ignore")
def check_push(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check pushed tangents, in float64 and for every set of inputs, against finite differences or a complex step."""
    case = _Case("push = finite difference", prim, args, params).widened()
    for active in _subsets(differentiable_inputs(prim, args)):
        _push_is_difference(case, _say(active), case.of(active), case.at(active))


@np.errstate(all="ignore")
def check_adjoint(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check that push and pull are transposes, for every set of inputs: Re Σ ct·push t = Re Σ pull ct·t.

    There is no step size in this, so it holds to rounding, in the dtypes of `args`; types are checked, too.
    """
    case = _Case("push and pull are adjoint", prim, args, params)
    for active in _subsets(differentiable_inputs(prim, args)):
        _is_adjoint(case, _say(active), case.of(active), case.at(active))


@np.errstate(all="ignore")
def check_second_order(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check the pull, as a function of inputs and cotangent, by the laws of push and of adjoints."""
    case = _Case("the derivative of pull", prim, args, params)
    active = differentiable_inputs(prim, args)
    if active:
        what = "of pull by inputs and cotangent"
        _is_adjoint(case, what, *_pull_as_function(case, active))
        _push_is_difference(case.widened(), what, *_pull_as_function(case.widened(), active))


def _pull_as_function(case: _Case, active: Sequence[int]) -> tuple[Callable[..., Any], list[Any]]:
    """Return the pull as a function of inputs and cotangent, and a point for it."""
    fun = case.of(active)
    out, _ = vjp(fun, *case.at(active))
    ct = random_like(out, np.random.default_rng(1))

    def pull(*point: Any) -> Any:
        out, pull_at = vjp(fun, *point[:-1])
        return pull_at(cast_like(point[-1], out))

    return pull, [*case.at(active), ct]


def _push_is_difference(case: _Case, what: str, fun: Callable[..., Any], point: Sequence[Any]) -> None:
    tangents = random_like(list(point), np.random.default_rng(2))
    _, pushed = jvp(fun, point, tangents)
    dtypes = [type_of(x).dtype for x in tree.leaves((pushed, list(point))) if is_inexact_type(x)]
    narrow = [d for d in dtypes if np.finfo(d).bits < 64]
    eps = max([float(np.finfo(d).eps) for d in narrow], default=None)
    numeric = estimate(fun, point, tangents, eps and float(np.cbrt(eps)))
    for a, b in zip(tree.leaves(pushed), numeric.leaves, strict=True):
        if not is_inexact_type(a):
            continue
        tol = tolerance(narrow) if narrow else max(numeric.error, 1e-9)
        index = worst(a, b, tol * np.max(np.abs(b), initial=1), tol)
        if index is not None:
            place = list(index) or ""
            case.fail(f"the tangent {what} is {a[index]!r} at output{place}, differences give {b[index]!r}")


def _is_adjoint(case: _Case, what: str, fun: Callable[..., Any], point: Sequence[Any]) -> None:
    rng = np.random.default_rng(3)
    tangents = random_like(list(point), rng)
    out, pushed = jvp(fun, point, tangents)
    out_again, pull = vjp(fun, *point)
    _compare(case, "the value under vjp", tree.leaves(out), tree.leaves(out_again))
    ct = random_like(out, rng)
    pulled = pull(ct)
    _check_types(case, f"tangent {what}", pushed, out)
    _check_types(case, f"cotangent {what}", pulled, list(point))
    if not all(np.isfinite(x).all() for x in tree.leaves((pushed, pulled)) if is_inexact_type(x)):
        return
    left, a = pairing(ct, pushed)
    right, b = pairing(pulled, tangents)
    dtypes = [type_of(x).dtype for x in tree.leaves((out, list(point), pushed))]
    eps = max(float(np.finfo(d).eps) for d in dtypes if d.kind in "fc")
    if not abs(left - right) <= 256 * eps * (a + b + eps):
        case.fail(f"{what}, Re Σ ct·push t = {left!r}, Re Σ pull ct·t = {right!r}")


def _check_types(case: _Case, what: str, got: Any, like: Any) -> None:
    for k, (t, x) in enumerate(zip(tree.leaves(got), tree.leaves(like), strict=True)):
        want = type_of(x).strong()
        if is_inexact_type(x) and type_of(t) != want:
            case.fail(f"{what}: number {k} is of type {type_of(t)}, not {want}")


def _say(active: Sequence[int]) -> str:
    return f"with respect to input{'s' * (len(active) > 1)} {', '.join(map(str, active))}"


@np.errstate(all="ignore")
def check_transpose_twice(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check, for primitives linear in an input, that the transpose of the transpose is the primitive."""
    case = _Case("transposing twice gives the primitive", prim, args, params)
    for i in differentiable_inputs(prim, args):
        out, pull = vjp(case.of((i,)), args[i])
        _, pull_again = vjp(lambda ct, pull=pull: pull(ct)[0], random_like(out, np.random.default_rng(4)))
        t = random_like(args[i], np.random.default_rng(5))
        (twice,) = pull_again(t)
        _compare(case, f"twice with respect to input {i}", [twice], [jvp(case.of((i,)), (args[i],), (t,))[1]], scale=1)


@np.errstate(all="ignore")
def check_pull_override(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check that a pull written by hand equals the one derived from the tangent rule or the definition."""
    case = _Case("the given pull = the derived pull", prim, args, params)
    derived = replace(case, prim=_without_pull(prim))
    for active in _subsets([i for i in differentiable_inputs(prim, args) if i < len(prim.declared["pull"])]):
        out, pull = vjp(case.of(active), *case.at(active))
        ct = random_like(out, np.random.default_rng(6))
        want = vjp(derived.of(active), *case.at(active))[1](ct)
        _compare(case, f"the cotangent {_say(active)}", pull(ct), want, scale=1)


def _without_pull(prim: Primitive) -> Primitive:
    """Return an unregistered primitive that differs in having no pull of its own."""
    return Primitive(
        prim.name,
        prim.kind,
        prim.impl,
        prim.type_rule,
        inputs=prim.inputs,
        outputs=prim.outputs,
        make_plan=None if prim.kind == "composite" else prim.make_plan,
        batch=prim.batch,
        definition=prim.definition,
        declared={**prim.declared, "pull": (None,) * len(prim.declared["pull"])},
        multiple=prim.multiple,
    )


@np.errstate(all="ignore")
def check_saved_set(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check that pull uses what it saves and nothing else.

    With every input and output that is not saved overwritten the pull stays what it was; with one saved value
    replaced by an object that raises when it is touched, it raises.
    """
    case = _Case("the saved set is honest", prim, args, params)
    for active in _subsets(differentiable_inputs(prim, args)):
        plan = plan_for(prim, sum(1 << i for i in active), len(args))
        if plan.active != active:
            case.fail(f"the plan for inputs {active} differentiates {plan.active}")
        values = [x if x.__class__ in PYTHON_SCALARS else np.array(x) for x in args]
        outs = replace(case, args=tuple(values)).values()
        saved = [_copy(values[k] if k >= 0 else outs[~k]) for k in plan.saves]
        types = kept_types(plan, values, outs)
        cts = [random_like(x, np.random.default_rng(7)) if is_inexact_type(x) else None for x in outs]
        ct = tuple(cts) if prim.multiple else cts[0]
        want = _pulled(plan, saved, types, params, ct)
        for x in (*values, *outs):
            if isinstance(x, np.ndarray) and x.flags.writeable:
                x[...] = np.nan if is_inexact_type(x) else 1
        _compare(case, f"the pull {_say(active)}, all else overwritten", _pulled(plan, saved, types, params, ct), want)
        if all(np.size(x) for x in (*args, *outs)):
            _check_saved_is_used(case, plan, saved, types, ct)


def _check_saved_is_used(case: _Case, plan: Any, saved: list[Any], types: Any, ct: Any) -> None:
    for n, k in enumerate(plan.saves):
        try:
            _pulled(plan, [*saved[:n], Untouchable(), *saved[n + 1 :]], types, case.params, ct)
        except Touched:
            continue
        name = case.prim.inputs[k] if k >= 0 else case.prim.outputs[~k]
        case.fail(f"the pull {_say(plan.active)} saves '{name}' and does not use it")


def _copy(x: Any) -> Any:
    return x if x.__class__ in PYTHON_SCALARS else np.array(x)


def _pulled(plan: Any, saved: Any, types: Any, params: Params, ct: Any) -> list[Any]:
    return [np.array(g) for g in plan.pull(saved, types, params, ct) if g is not None]


class Touched(Exception):
    """Raised by an `Untouchable` that is used."""


class Untouchable:
    """Stands for a value that nobody may look at: whatever is done with it raises `Touched`."""

    def _touch(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Touched

    __getattr__ = __bool__ = __len__ = __iter__ = __getitem__ = __index__ = __float__ = __int__ = _touch
    __array__ = __array_ufunc__ = __array_function__ = _touch
    __neg__ = __pos__ = __abs__ = __invert__ = _touch
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _touch
    __hash__ = None  # type: ignore[assignment]


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    setattr(Untouchable, f"__{_name}__", Untouchable._touch)
    setattr(Untouchable, f"__r{_name}__", Untouchable._touch)


# ----------------------------------------------------------------------------------------------- batching


@np.errstate(all="ignore")
def check_batching(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check that vmap stacks the results of examples, for every set of batched inputs and every place of the axis."""
    case = _Case("vmap = stack", prim, args, params)
    examples = [args, tuple(another(x) for x in args)]
    for batched in _subsets(range(len(args))):
        rows = [[e[i] if i in batched else args[i] for i in range(len(args))] for e in examples]
        want = [replace(case, args=tuple(np.asarray(x) if i in batched else x for i, x in enumerate(r))) for r in rows]
        stacked = [np.stack(column) for column in zip(*[c.values() for c in want], strict=True)]
        for axes in _axes(args, batched):
            full = [x if a is None else np.stack([r[i] for r in rows], a) for i, (x, a) in enumerate(zip(args, axes))]
            _compare(case, f"in_axes={tuple(axes)}", _batched(case, axes, full), stacked)
    _check_empty_batch(case)


def _axes(args: Sequence[Any], batched: Sequence[int]) -> Iterator[list[int | None]]:
    """Yield in_axes: each batched input has its axis in every position, the others then in front or last."""
    ndims = {i: np.ndim(args[i]) for i in batched}
    seen = set()
    for others in (0, -1):
        for i in batched:
            for a in range(ndims[i] + 1):
                axes = [others % (ndims[k] + 1) if k in ndims else None for k in range(len(args))]
                axes[i] = a
                if tuple(axes) not in seen:
                    seen.add(tuple(axes))
                    yield axes


def _batched(case: _Case, axes: Sequence[int | None], full: Sequence[Any]) -> Any:
    out = vmap(case, in_axes=tuple(axes))(*full)
    return out if case.prim.multiple else (out,)


def _check_empty_batch(case: _Case) -> None:
    """Check that a batch of no examples has the type of the others."""
    if not case.args:
        return
    axes = [0] * len(case.args)
    none = _batched(case, axes, [np.empty((0, *np.shape(x)), type_of(x).dtype) for x in case.args])
    for x, out in zip(none, replace(case, args=tuple(map(np.asarray, case.args))).values(), strict=True):
        if x.shape != (0, *np.shape(out)) or x.dtype != type_of(out).dtype:
            case.fail(f"a batch of no examples gives {type_of(x)}, one example gives {type_of(out)}")


@np.errstate(all="ignore")
def check_batched_derivative(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check that push and pull under vmap stack those of examples: rules are code that can be batched."""
    case = _Case("vmap of push and pull = stack", prim, args, params)
    active = differentiable_inputs(prim, args)
    point = case.at(active)
    pull, full = _pull_as_function(case, active)

    def push(*xs: Any) -> Any:
        return jvp(case.of(active), xs[: len(point)], xs[len(point) :])[1]

    ts = random_like(point, np.random.default_rng(8))
    for name, fun, xs in (("pull", pull, full), ("push", push, [*point, *ts])):
        rows = [xs, [tree.map(another, x) for x in xs]]
        want = [tree.leaves(fun(*[tree.map(np.asarray, x) for x in row])) for row in rows]
        stacked = [np.stack(column) for column in zip(*want, strict=True)]
        both = tree.map(lambda *parts: np.stack(parts), *rows)
        _compare(case, name, tree.leaves(vmap(fun)(*both)), stacked, scale=1)


def another(x: Any) -> Any:
    """Return other values of the same type: floating ones backwards and smaller by a quarter, integers halved.

    So indices stay in range.
    """
    x = np.asarray(x)
    if x.dtype.kind in "iu":
        return x // 2
    if x.dtype.kind == "b":
        return ~x
    return x.reshape(-1)[::-1].reshape(x.shape) * x.dtype.type(0.75) if is_inexact_type(x) else x


# ------------------------------------------------------------------------------------------------- programs


@np.errstate(all="ignore")
def check_program(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check that the primitive traced into a Program type-checks, prints, and computes the same, simplified or not."""
    case = _Case("Program = primitive", prim, args, params)
    kinds = [type_of(x) for x in args]
    program = trace(case, kinds, tree.structure((args, {})), prim.name).program
    outs = case.values()
    for p in (program, program.simplify()):
        try:
            p.check()
        except TypeError as error:
            case.fail(f"{error}\n{p}")
        if prim.name not in repr(p):
            case.fail(f"the printed Program lacks it:\n{p}")
        _compare(case, f"the Program\n{p}", p.run(*args), outs)


@np.errstate(all="ignore")
def check_jit(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check that the jitted primitive computes the same, twice, and so do its jitted push and pull."""
    case = _Case("jit = primitive", prim, args, params)
    fast = jit(case)
    outs = case.values()
    for _ in range(2):
        got = fast(*args)
        _compare(case, "jit", got if prim.multiple else (got,), outs)
    active = differentiable_inputs(prim, args) if prim.kind != "constant" else []
    if active:
        pull, point = _pull_as_function(case, active)
        _compare(case, "jit of pull", tree.leaves(jit(pull)(*point)), tree.leaves(pull(*point)), scale=1)


# ---------------------------------------------------------------------------------------------- comparing


def _compare(case: _Case, what: str, got: Sequence[Any], want: Sequence[Any], scale: float = 0) -> None:
    """Fail unless values agree: shapes, dtypes and integers exactly, floating values to rounding, NaN with NaN.

    Rounding is that of the largest value or of `scale`, the size of what was added up (tangents are of order 1).
    """
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        which = f" (output {k})" if len(want) > 1 else ""
        if np.shape(a) != np.shape(b) or type_of(a).dtype != type_of(b).dtype:
            case.fail(f"{what}{which} has type {type_of(a)}, not {type_of(b)}")
        if not _same(a, b, scale):
            case.fail(f"{what}{which} is {a!r}, not {b!r}")


def _same(a: Any, b: Any, scale: float = 0) -> bool:
    if isinstance(a, Tracer) or isinstance(b, Tracer):
        return False
    if not is_inexact_type(b):
        return type_of(b).dtype.kind == "V" or bool(np.array_equal(a, b))
    eps = float(np.finfo(type_of(b).dtype).eps)
    finite = np.abs(np.asarray(b))[np.isfinite(b)]
    return worst(np.asarray(a), np.asarray(b), 16 * eps * np.max(finite, initial=scale), 64 * eps) is None


# ------------------------------------------------------------------------------------------------- all laws


class Law(NamedTuple):
    """A law and whether it speaks of a primitive; `smooth` laws want points where derivatives exist."""

    check: Callable[..., None]
    applies: Callable[[Primitive], bool]
    smooth: bool = False


def _always(prim: Primitive) -> bool:
    return True


def _has_derivative(prim: Primitive) -> bool:
    return prim.kind != "constant"


def _has_plan(prim: Primitive) -> bool:
    return prim.make_plan is not None and prim.kind != "constant"


LAWS: dict[str, Law] = {
    "type_rule": Law(check_type_rule, _always),
    "layout": Law(check_layout, _always),
    "push": Law(check_push, _has_derivative, smooth=True),
    "adjoint": Law(check_adjoint, _has_derivative),
    "second_order": Law(check_second_order, _has_derivative, smooth=True),
    "saved_set": Law(check_saved_set, _has_plan),
    "pull_override": Law(check_pull_override, lambda prim: any(prim.declared.get("pull") or ()), smooth=True),
    "transpose_twice": Law(check_transpose_twice, lambda prim: prim.kind in ("linear", "bilinear")),
    "batching": Law(check_batching, _always),
    "batched_derivative": Law(check_batched_derivative, _has_derivative, smooth=True),
    "program": Law(check_program, _always),
    "jit": Law(check_jit, _always),
}
"""Every law by name."""


def check_primitive(prim: Primitive, *args: Any, **params: Any) -> None:
    """Check every law that applies to a primitive at one point.

    Args:
        prim: the primitive, registered or not.
        *args: its inputs, arrays or Python numbers, at a point where its derivatives exist.
        **params: its parameters.

    Raises:
        AssertionError: a law is broken; the message names primitive, law and inputs.

    Example:
        >>> import numpy as np
        >>> from fgrad import check, extend
        >>> cube = extend.elementwise("cube", lambda x: x * x * x, d=lambda x: 3 * x * x)
        >>> check.check_primitive(cube, np.array([1.0, -2.0]))
    """
    for law in LAWS.values():
        if law.applies(prim):
            law.check(prim, *args, **params)

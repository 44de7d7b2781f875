"""Plans: what one application of a primitive saves, and how it moves tangents and cotangents.

A plan is made per primitive and set of differentiated inputs, as straight-line code compiled once per pattern; the
kinds (`fgrad.kinds`) write it with `Writer`, which reads off a rule's parameter names what must be saved. Broadcasting
is undone here, in `sum_to`, and nowhere else.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from fgrad.core import PYTHON_SCALARS, ArrayType, Params, Primitive, is_on_gpu

Rule = Callable[..., Any]


class Plan:
    """What one application of a primitive saves, and how it moves tangents and cotangents.

    `active`: the inputs that are differentiated. `saves`: what to keep, as input position i or output ~k;
    `foreign`: the places in `saves` that hold inputs which are not differentiated (a user may still write to
    those). `typed`: inputs (i) and outputs (~k) whose ArrayTypes are kept; None for elementwise primitives, which keep
    the types of active inputs and of the output only if they differ.

        pull(saved, types, params, ct) -> cotangents of the active inputs
        push(saved, types, params, tangents of the active inputs) -> tangent of the output
    """

    __slots__ = ("prim", "active", "saves", "foreign", "typed", "pull", "push")

    def __init__(
        self,
        prim: Primitive,
        active: tuple[int, ...],
        saves: tuple[int, ...],
        typed: tuple[int, ...] | None,
        pull: Rule | None,
        push: Rule | None,
    ):
        self.prim = prim
        self.active = active
        self.saves = saves
        self.foreign = tuple(k for k, s in enumerate(saves) if s >= 0 and s not in active)
        self.typed = typed
        self.pull = pull
        self.push = push


class Hooks:
    """The upward calls of this floor, set by `fgrad.transforms`: a derived pull transposes a tangent rule, the type of
    a composite is found by tracing its definition, and a Program, or a pull or push, is applied to arrays on a GPU."""

    transpose_rule: Callable[[Rule, ArrayType, Any], Any]
    type_by_tracing: Callable[[Rule, Sequence[ArrayType], Params], Any]
    compute_on_gpu: Callable[..., list[Any]]
    apply_rule_on_gpu: Callable[..., Any]


hooks = Hooks()


def recover_rule(plan: Any, rule: Rule, saved: Sequence[Any], types: Any, params: Params, moved: Any) -> Any:
    """Apply a pull or push of a plan that has just failed to arrays on a GPU, see `core.recover`."""
    values = (*saved, *moved) if isinstance(moved, (list, tuple)) else (*saved, moved)
    if not (hasattr(plan, "prim") and is_on_gpu(values)):
        raise
    return hooks.apply_rule_on_gpu(rule, saved, types, params, moved)


# ------------------------------------------------------------------------------------ broadcasting, undone once


def sum_to(ct: Any, kind: ArrayType) -> Any:
    """Return `ct` as a cotangent of type `kind`: sum over broadcast axes, take the real part for real inputs, cast."""
    shape = kind.shape
    if ct.__class__ in PYTHON_SCALARS:
        ct = np.asarray(ct)
    if ct.shape != shape:
        lead = ct.ndim - len(shape)
        axes = (*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 and ct.shape[i + lead] != 1))
        if axes == (0,) and lead and ct.__class__ is np.ndarray and ct.ndim == 2 and ct.dtype.char in "fd":
            ct = _sum_of_rows(ct)
        elif axes:
            wide = {"dtype": np.float32} if ct.dtype == np.float16 else {}
            ct = ct.sum(axis=axes, **wide).reshape(shape)
        if ct.shape != shape:  # a partial of fewer dimensions, such as a number
            ct = ct + zeros(kind)
    if ct.dtype != kind.dtype:
        if ct.dtype.kind == "c" and kind.dtype.kind != "c":
            ct = ct.real
        ct = ct.astype(kind.dtype)
    return ct


def _sum_of_rows(ct: Any) -> Any:
    """Return the sum of the rows of a matrix: by BLAS, which takes a quarter of the time, where rows are few."""
    rows = len(ct)
    return np.ones(rows, ct.dtype).dot(ct) if 0 < rows <= _FEW_ROWS else ct.sum(axis=0)


_FEW_ROWS = 4096


def expand_to(t: Any, kind: ArrayType) -> Any:
    """Return tangent `t` broadcast and cast to `kind`."""
    if t.__class__ in PYTHON_SCALARS:
        t = np.asarray(t)
    if t.dtype != kind.dtype:
        t = t.real.astype(kind.dtype) if kind.dtype.kind != "c" and t.dtype.kind == "c" else t.astype(kind.dtype)
    return t if t.shape == kind.shape else t + zeros(kind)


def zeros(kind: ArrayType) -> np.ndarray[Any, Any]:
    """Return zeros of a type, as a read-only array of no memory to speak of."""
    return np.broadcast_to(np.zeros((), kind.dtype), kind.shape)


# ------------------------------------------------------------------------------------------- reading of rules


Names = tuple[str, ...]


def parameters_of(function: Rule) -> tuple[Names, Names, Names, Names]:
    """Return the names of a function's parameters: positional ones, `*args`, keyword-only ones, `**kwargs`.

    Read off the function's code where there is one: import reads hundreds of rules, and `inspect` is slow for that.
    """
    inner = inspect.unwrap(function)
    if isinstance(inner, FunctionType):
        code = inner.__code__
        names, positional = code.co_varnames, code.co_argcount  # in order: positional, keyword-only, *args, **kwargs
        end = positional + code.co_kwonlyargcount
        star = end + bool(code.co_flags & inspect.CO_VARARGS)
        others = star + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        return names[:positional], names[end:star], names[positional:end], names[star:others]
    text = getattr(inner, "__text_signature__", None) if isinstance(inner, BuiltinFunctionType) else None
    if text:  # "($module, a, b, /)"
        return tuple(n for n in text.strip("()").split(", ") if n.isidentifier()), (), (), ()
    found = inspect.signature(function).parameters.values()
    plain = tuple(p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    of_star, of_keyword, of_rest = (tuple(p.name for p in found if p.kind is kind) for kind in kinds)
    return plain, of_star, of_keyword, of_rest


def read_rule(prim: str, rule: Rule, allowed: set[str]) -> tuple[Names, Names, Names]:
    """Return the values that a rule names, the parameters it names, and `**params`; TypeError for unknown names."""
    names, _, params, others = parameters_of(rule)
    unknown = [n for n in names if n not in allowed]
    if unknown:
        raise TypeError(
            f"primitive '{prim}': a rule names {', '.join(unknown)}, which is none of {', '.join(sorted(allowed))}"
        )
    return names, params, others


def input_names(impl: Rule, count: int | None) -> tuple[str, ...]:
    """Return the names of the inputs: the function's own, x y z if it is not Python's, ("*xs",) if variadic."""
    if isinstance(impl, np.ufunc):
        return ("x", "y", "z")[: impl.nin]
    if count is not None and not isinstance(impl, FunctionType):
        return ("x", "y", "z")[:count]
    names, star, _, _ = parameters_of(impl)
    if star:
        return ("*" + star[0],)
    if count is not None and len(names) != count or names in (("a", "b"), ("a",)):
        names = ("x", "y", "z")[: count or len(names)]
    return names


class Writer:
    """Writes the source of one plan; collects what is saved, which types are kept, and the rules called."""

    def __init__(self, prim: Primitive, active: Sequence[int]):
        self.prim = prim
        self.active = tuple(active)
        self.saves: list[int] = []
        self.typed: list[int] = []
        self.env: dict[str, Any] = {}
        self.lines: list[str] = []

    def name(self, value: Any) -> str:
        """Return a name for a constant of the generated code."""
        key = f"k{len(self.env)}"
        self.env[key] = value
        return key

    def saved(self, index: int) -> str:
        if index not in self.saves:
            self.saves.append(index)
        return f"saved[{self.saves.index(index)}]"

    def type(self, index: int) -> str:
        if index not in self.typed:
            self.typed.append(index)
        return f"types[{self.typed.index(index)}]"

    def call(self, rule: Rule, local: dict[str, str], linear: Sequence[int] = ()) -> str:
        """Return the source of a call of `rule`; `linear` inputs are given as types."""
        prim = self.prim
        allowed = {*local, *prim.inputs, *(n + "_type" for n in prim.inputs), *prim.outputs}
        names, params, others = read_rule(prim.name, rule, allowed)
        parts = []
        for n in names:
            if n in local:
                parts.append(local[n])
            elif n in prim.inputs:
                i = prim.inputs.index(n)
                parts.append(self.type(i) if i in linear else self.saved(i))
            elif n in prim.outputs:
                parts.append(self.saved(~prim.outputs.index(n)))
            else:
                parts.append(self.type(prim.inputs.index(n.removesuffix("_type"))))
        parts += [f"{n}=params['{n}']" for n in params]
        parts += ["**params"] * len(others)
        return f"{self.name(rule)}({', '.join(parts)})"

    def compile(self, arguments: str, result: str) -> Rule:
        body = [*self.lines, f"return {result}"]
        source = f"def plan({arguments}):\n" + "".join(f"    {line}\n" for line in body)
        env = self.env
        exec(_code(source), env)
        return env["plan"]  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=4096)
def _code(source: str) -> Any:
    return compile(source, "<fgrad plan>", "exec")


def bits_of(mask: int) -> list[int]:
    """Return the positions of the bits that are set."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def is_variadic(prim: Primitive) -> bool:
    """Return whether a primitive takes any number of inputs."""
    return bool(prim.inputs) and prim.inputs[0].startswith("*")


# ------------------------------------------------------------------------------------------------ finding a plan


def plan_for(prim: Primitive, mask: int, count: int, forward: bool = False) -> Plan:
    """Return the plan of `prim` for the differentiated inputs in `mask`, out of `count`; cached on the primitive."""
    plans = prim.push_plans if forward else prim.plans
    key = mask | (1 << count) if is_variadic(prim) else mask
    plan = plans.get(key)
    if plan is None:
        assert prim.make_plan is not None, prim
        plan = plans[key] = prim.make_plan(prim, key, forward)
    return plan  # type: ignore[no-any-return]

"""What is applied one at a time to arrays on a GPU, where the array library refuses: a Program of that alone.

Eager programs ask the array library first: its kernels are compiled and serve every shape. What it has not, and rules
that mix arrays of the host in, come here, by `core.recover` and `plans.recover_rule`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad.backend.gpu.library import VIEWS
from fgrad.backend.gpu.program import GpuProgram
from fgrad.core import ArrayType, Params, Primitive, on_gpu, type_of
from fgrad.plans import Rule
from fgrad.program import Trace
from fgrad.transforms.programs import under

KEPT = 1024
"""How many Programs are kept; they belong to types, so that ragged inputs make ever new ones."""


def compute(prim: Primitive, args: Sequence[Any], params: Params) -> Any:
    """Apply a primitive to arrays, some of them on a GPU, where the results are as well; views stay views."""
    if prim.name in VIEWS:
        return VIEWS[prim.name](*args, **params)
    return _run(Applied((prim, *params.items()), lambda *xs: prim(*xs, **params)), args)


def apply_rule(rule: Rule, saved: Sequence[Any], types: Any, params: Params, moved: Any) -> Any:
    """Apply a plan's pull or push to arrays, some of them on a GPU; `moved` is a cotangent, or a list of values."""
    several = isinstance(moved, (list, tuple))
    count = len(saved)

    def call(*xs: Any) -> Any:
        return rule(list(xs[:count]), types, params, list(xs[count:]) if several else xs[count])

    key = rule, types, count, several, *params.items()
    return _run(Applied(key, call), [*saved, *(moved if several else [moved])])


class Applied:
    """A function of arrays, known by `key`: the same key stands for the same function."""

    __slots__ = ("key", "fun")

    def __init__(self, key: tuple[Any, ...], fun: Callable[..., Any]):
        self.key = key
        self.fun = fun

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Applied) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class Single:
    """A function of arrays as kernels: its Program, and which of its results are there.

    `program` is None for a function that asks for values, and cannot be recorded; `present` for one result alone.
    """

    __slots__ = ("program", "present")

    def __init__(self, applied: Applied, kinds: Sequence[ArrayType | None]):
        recorder = Trace.alone("one step on a GPU")
        try:
            out = under(recorder, applied.fun, *[None if k is None else recorder.input(k) for k in kinds])
        except TypeError:
            self.program = None
            return
        results = list(out) if isinstance(out, (list, tuple)) else [out]
        self.present = [x is not None for x in results] if isinstance(out, (list, tuple)) else None
        self.program = GpuProgram(recorder.finish([x for x in results if x is not None]))

    def compute(self, given: Sequence[Any]) -> Any:
        """Return what the function gives, in the tuple it gives it in."""
        assert self.program is not None
        outs = self.program.compute(*[x for x in given if x is not None])
        kinds = self.program.out_types
        # The array library promotes by what it is given: a Python scalar is an array there.
        found = iter([x if x.dtype == k.dtype else x.astype(k.dtype) for x, k in zip(outs, kinds, strict=True)])
        if self.present is None:
            return next(found)
        return tuple([next(found) if there else None for there in self.present])


_single = functools.lru_cache(maxsize=KEPT)(Single)


def _run(applied: Applied, given: Sequence[Any]) -> Any:
    kinds = tuple([None if x is None else type_of(x) for x in given])
    try:
        single = _single(applied, kinds)
    except TypeError:  # a parameter that cannot be looked up
        single = Single(applied, kinds)
    return _on_host(applied, given) if single.program is None else single.compute(given)


def _on_host(applied: Applied, given: Sequence[Any]) -> Any:
    """Return what the function gives for copies in host memory, brought back."""
    from fgrad.triton_kernels.runtime import home_of

    like = next(filter(on_gpu, given))
    home = home_of(like)
    out = under(None, applied.fun, *[home.to_numpy(x) if on_gpu(x) else x for x in given])

    def back(x: Any) -> Any:
        return None if x is None else home.from_numpy(np.asarray(x))

    with home.on_device(home.device(like)):
        return tuple([back(x) for x in out]) if isinstance(out, (list, tuple)) else back(out)

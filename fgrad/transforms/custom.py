"""What functions with derivatives of the user's own share: their arguments, their calls, and how they are recorded.

The rules themselves are in `custom_jvp` and `custom_vjp`. Outside any transform the function is simply called.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from fgrad import tree
from fgrad.core import ArrayType, Interpreter, Params, Tracer, leaked_error
from fgrad.ops.custom import custom_jvp_call, custom_vjp_call
from fgrad.program import Program, Trace
from fgrad.transforms.linearize import (
    as_operand,
    check_callable,
)
from fgrad.transforms.programs import under
from fgrad.transforms.structured import rule
from fgrad.transforms.transpose import Transpose
from fgrad.transforms.vmap import Batch, vmap


class CustomFunction:
    """What the two decorators share: resolving arguments, and setting the undifferentiated ones apart."""

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Any = ()):
        check_callable(type(self).__name__, fun)
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        try:
            self._signature: inspect.Signature | None = inspect.signature(fun)
        except (TypeError, ValueError):  # a builtin
            self._signature = None
        names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        if names:
            places = list(inspect.signature(fun).parameters)
            numbers += tuple(places.index(n) for n in names)
        self._nondiff = tuple(sorted(numbers))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _positional(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments by position, defaults filled in; TypeError if a keyword has none."""
        if self._signature is None or (not kwargs and len(args) == len(self._signature.parameters)):
            return tuple(args)
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{type(self).__name__} function {self.__name__}: keyword arguments must have a position, "  # type: ignore[attr-defined]
                f"but {', '.join(bound.kwargs)} cannot be resolved to one"
            )
        return bound.args

    def _split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], Callable[[Sequence[Any]], list[Any]]]:
        """Return undifferentiated arguments, the others, and a function that puts them together again."""
        count = len(args)
        fixed = {n % count for n in self._nondiff if -count <= n < count}
        nondiff = [x for i, x in enumerate(args) if i in fixed]

        def join(diff: Sequence[Any]) -> list[Any]:
            rest = iter(diff)
            return [args[i] if i in fixed else next(rest) for i in range(count)]

        return nondiff, [x for i, x in enumerate(args) if i not in fixed], join


def missing_rule(name: str, what: str, how: str) -> AttributeError:
    """Return the error for a custom function that is differentiated before it has a rule."""
    return AttributeError(f"no {what} defined for the {how} function {name}; call {name}.def{what.lower()}(…) first")


class CustomCall:
    """One call of a custom function: flat arguments, and the trees of what went in and came out."""

    def __init__(self, custom: CustomFunction, args: Sequence[Any]):
        self.nondiff, diff, self.join = custom._split(args)
        self.fun = custom._fun
        self.name = custom.__name__  # type: ignore[attr-defined]
        self.leaves, self.in_tree = tree.flatten(diff)
        self.leaves = [as_operand(x, f"an argument of {self.name}") for x in self.leaves]
        self.out_tree: Any = None

    def flat(self, *xs: Any) -> list[Any]:
        """Call the function on flat arguments."""
        outs, self.out_tree = tree.flatten(self.fun(*self.join(tree.unflatten(self.in_tree, list(xs)))))
        return [as_operand(x, f"the output of {self.name}") for x in outs]


def check_closed_over(consts: Sequence[Any]) -> None:
    """Raise UnexpectedTracerError if a closed-over value of a custom function is being differentiated."""
    for x in consts:
        if isinstance(x, Tracer):
            raise leaked_error(x)


def mapped(batch: Batch, fun: Callable[..., Any], axes: Sequence[int | None]) -> Callable[..., Any]:
    """Return a flat function over batches of its arguments."""
    return vmap(lambda *xs: list(fun(*xs)), tuple(axes), 0, batch.axis_name, batch.size)


class RuleTrace(Trace):
    """Records a rule. Rules met on the way are not recorded in turn: most rules call their own function."""


def within_rule(recorder: Interpreter | None) -> bool:
    """Return whether a recording is part of the recording of a rule."""
    while recorder is not None:
        if isinstance(recorder, RuleTrace):
            return True
        recorder = recorder.parent
    return False


def recorded(
    recorder: Interpreter | None, fun: Callable[..., Any], kinds: Sequence[ArrayType], kind: type[Trace] = Trace
) -> tuple[Program, list[Any]]:
    """Record a flat function and lift what it closes over."""
    inner = kind(recorder.label if recorder else "a closed function")
    inner.parent = recorder
    inputs = [inner.input(kind) for kind in kinds]
    outs = under(inner, lambda: fun(*inputs))
    return inner.finish(outs).simplify().lifted()


class Skipping:
    """A function without its first arguments."""

    def __init__(self, fun: Callable[..., Any], count: int):
        self.fun = fun
        self.count = count
        self.__name__ = getattr(fun, "__name__", "rule")

    def __call__(self, *xs: Any) -> Any:
        return self.fun(*xs[self.count :])


class Taking:
    """A Program as a function that picks its inputs out of more arguments than it needs."""

    def __init__(self, program: Program, places: Sequence[int]):
        self.program = program
        self.places = places
        self.out_types = program.out_types
        self.__name__ = program.label

    def __call__(self, *xs: Any) -> list[Any]:
        return self.program.run(*[xs[k] for k in self.places])


@rule(custom_jvp_call, Transpose)
@rule(custom_vjp_call, Transpose)
def _custom_transpose(linear: Transpose, args: Sequence[Any], params: Params) -> Any:
    return tuple(params["fun"](*args))

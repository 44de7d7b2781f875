"""What a function closes over: made arguments of it, or computed while it is recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from fgrad import tree
from fgrad.core import Tracer, type_of
from fgrad.program import Program, trace
from fgrad.source import function_label
from fgrad.transforms.linearize import as_operand, check_callable, is_inexact


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Make explicit arguments of the traced values that a function closes over.

    For functions that are handed to a rule of one's own (`custom_vjp` with the function in `nondiff_argnums`), whose
    closed-over values would otherwise be out of the rule's sight.

    Args:
        fun: a function of arrays or pytrees; recorded, so its Python may not depend on values.
        *example_args: arguments; only their trees, shapes and dtypes are used.

    Returns:
        `(converted, consts)`: `converted(*args, *consts)` is `fun(*args)`. `consts` are the closed-over values of real
        or complex dtypes that a transform traces; all others stay where they are.

    Raises:
        TypeError: `fun` is not callable, or (from `converted`) the arguments have another tree.

    Example:
        >>> import numpy as np, fgrad
        >>> def inner_gradient(w):
        ...     converted, consts = fgrad.closure_convert(lambda x: w * x**2, 1.0)
        ...     return fgrad.grad(converted)(3.0, *consts)
        >>> fgrad.grad(inner_gradient)(1.0)
        array(6.)
    """
    check_callable("closure_convert", fun)
    leaves, in_tree = tree.flatten((example_args, {}))
    label = function_label("closure_convert", fun)
    kinds = [type_of(as_operand(x, "an example argument of closure_convert")) for x in leaves]
    traced = trace(fun, kinds, in_tree, label)
    program = traced.program
    hoisted = [(v, x) for v, x in program.consts if isinstance(x, Tracer) and is_inexact(x)]
    rest = [(v, x) for v, x in program.consts if not any(v is w for w, _ in hoisted)]
    closed = Program(label, [*program.inputs, *[v for v, _ in hoisted]], rest, program.equations, program.outputs)

    def converted(*args: Any) -> Any:
        count = len(args) - len(hoisted)
        own, own_tree = tree.flatten((args[: max(count, 0)], {}))
        if own_tree != in_tree:
            raise TypeError(
                f"{label}: the arguments must have the tree {in_tree}, then {len(hoisted)} constants, got {own_tree}"
            )
        return tree.unflatten(traced.out_tree, closed.run(*own, *args[count:]))

    return converted, [x for _, x in hoisted]


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Say that what is done inside on known values is to be computed now, even while a function is recorded.

    It always is: `jit` records what depends on its arguments and computes everything else at once. Here for programs
    that were written for JAX, and for readers.

    Example:
        >>> import numpy as np, fgrad
        >>> @fgrad.jit
        ... def f(x):
        ...     with fgrad.ensure_compile_time_eval():
        ...         size = int(np.sum(np.ones(3)))
        ...     return x * np.ones(size)
        >>> f(2.0)
        array([2., 2., 2.])
    """
    yield

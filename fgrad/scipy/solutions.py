"""Derivatives of solutions that SciPy finds, by further arguments of the function: the implicit function theorem.

A solution x(p) keeps a condition F(x, p) = 0, of a root the function, of a minimum the gradient; so F_x dx = -F_p dp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import Tracer
from fgrad.numpy import linalg
from fgrad.transforms.custom_jvp import custom_jvp
from fgrad.transforms.jacobian import jacfwd
from fgrad.transforms.jvp import jvp
from fgrad.transforms.programs import has_tracers, under


def solution(name: str, solve: Callable[..., Any], condition: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Return SciPy's result for these arguments; its vector `x` is differentiable by those that are traced.

    Args:
        name: the solver's name, for messages.
        solve: plain arguments -> SciPy's result.
        condition: F, of the vector and the arguments; its Jacobian by the vector is formed.
        args: the function's further arguments, pytrees of anything.

    Raises:
        TypeError: an argument is traced by a transform that knows no values.
        LinAlgError: (from derivatives) the condition does not determine the solution.
    """
    leaves, treedef = tree.flatten(tuple(args))
    places = [k for k, x in enumerate(leaves) if isinstance(x, Tracer)]
    if not places:
        return solve(*args)
    results = []

    def arguments(traced: Sequence[Any]) -> Any:
        given = dict(zip(places, traced, strict=True))
        return tree.unflatten(treedef, [given.get(k, x) for k, x in enumerate(leaves)])

    @custom_jvp
    def vector(*traced: Any) -> Any:
        if has_tracers(traced):
            raise TypeError(
                f"{name}: an argument in args is traced by a transform that knows no values (jit, vmap), and SciPy "
                "needs them.\nRemedy: call it outside of that transform, or use fgrad.lax.custom_root with a solver of "
                "fgrad's operations."
            )
        results.append(under(None, lambda: solve(*arguments(traced))))
        return np.array(results[-1].x)

    @vector.defjvp
    def push(traced: Any, tangents: Any) -> Any:
        x = vector(*traced)
        moved = jvp(lambda *p: condition(x, *arguments(p)), traced, tangents)[1]
        matrix = jacfwd(lambda v: condition(v, *arguments(traced)))(x)
        return x, linalg.solve(matrix, -moved)

    x = vector(*[leaves[k] for k in places])
    return type(results[-1])(results[-1], x=x)

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
from fgrad.scipy.installed import scipys
from fgrad.transforms.callback import pure_callback
from fgrad.transforms.custom_jvp import custom_jvp
from fgrad.transforms.jacobian import jacfwd
from fgrad.transforms.jit import ShapeDtypeStruct
from fgrad.transforms.jvp import jvp
from fgrad.transforms.programs import has_tracers, under


def solution(solve: Callable[..., Any], condition: Callable[..., Any], start: Any, args: Sequence[Any]) -> Any:
    """Return SciPy's result for these arguments; its vector `x` is differentiable by those that are traced.

    Where `jit` or `vmap` trace an argument, SciPy runs when the recorded function does, and the result has `x` alone.

    Args:
        solve: plain arguments -> SciPy's result.
        condition: F, of the vector and the arguments; its Jacobian by the vector is formed.
        start: the vector that SciPy starts from.
        args: the function's further arguments, pytrees of anything.

    Raises:
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

    def found(*traced: Any) -> Any:
        results[:] = [solve(*arguments(traced))]
        return np.array(results[0].x, np.float64)

    @custom_jvp
    def vector(*traced: Any) -> Any:
        if has_tracers(traced):
            like = ShapeDtypeStruct(start.shape, np.float64)
            return pure_callback(found, like, *traced, vmap_method="sequential")
        return under(None, found, *traced)

    @vector.defjvp
    def push(traced: Any, tangents: Any) -> Any:
        x = vector(*traced)
        moved = jvp(lambda *p: condition(x, *arguments(p)), traced, tangents)[1]
        matrix = jacfwd(lambda v: condition(v, *arguments(traced)))(x)
        return x, linalg.solve(matrix, -moved)

    x = vector(*[leaves[k] for k in places])
    known = results[0] if results else {}
    return scipys("optimize", "root").OptimizeResult(known, x=x)

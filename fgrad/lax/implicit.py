"""Solutions of equations whose derivatives do not go through the solver: linear systems, roots, fixed points.

Functions are recorded once and what they close over is found there, as for loops. Derivatives are by the implicit
function theorem. Source: Blondel et al. (2022), "Efficient and modular implicit differentiation".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import Tracer, type_of
from fgrad.lax.control import arrays, check_carry, leaves_of, record, while_loop
from fgrad.ops.control import linear_solve
from fgrad.ops.custom import custom_jvp_call
from fgrad.ops.elementwise import select
from fgrad.plans import zeros
from fgrad.program import Program, trace
from fgrad.transforms import implicit  # noqa: F401  (enters the rules of linear_solve)
from fgrad.transforms.jacobian import linear_transpose
from fgrad.transforms.linearize import check_callable, zero_cotangent
from fgrad.transforms.programs import differentiable, jvp_program
from fgrad.transforms.pushforward import linearize

Function = Callable[..., Any]


def custom_linear_solve(
    matvec: Function,
    b: Any,
    solve: Function,
    transpose_solve: Function | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve matvec(x) = b by a solver of one's own, with derivatives by further solves and never through the solver.

    Differentiable in `b` and in what `matvec` closes over, to any order.

    Args:
        matvec: a linear function from the tree of `b` to itself.
        b: right-hand side, a pytree of floating arrays.
        solve: `solve(matvec, b) -> x`.
        transpose_solve: `transpose_solve(vecmat, ct) -> x` solves the transposed system; needed for reverse mode.
        symmetric: `matvec` is its own transpose, so that `solve` serves both.
        has_aux: solvers return pairs `(x, aux)`; `aux` is not differentiated.

    Returns:
        x, or `(x, aux)`.

    Raises:
        TypeError: a function is not callable; `matvec` or `solve` changes the tree, shapes or dtypes of `b`; (in
            reverse mode) there is no `transpose_solve` and `symmetric` is false.

    Example:
        >>> import numpy as np, fgrad
        >>> def halve(matvec, b):
        ...     return b / matvec(np.ones(2))
        >>> def solved(a):
        ...     return fgrad.lax.custom_linear_solve(lambda x: a * x, np.array([1., 4.]), halve, symmetric=True).sum()
        >>> fgrad.grad(solved)(np.array([1., 2.]))
        array([-1., -1.])
    """
    name = "custom_linear_solve"
    for fun in (matvec, solve, *([] if transpose_solve is None else [transpose_solve])):
        check_callable(name, fun)
    leaves, treedef = leaves_of(b, f"b of {name}")
    leaves = arrays(leaves)
    kinds = [type_of(x) for x in leaves]
    like = tree.unflatten(treedef, kinds)
    traced, product, own = record(matvec, (like,), f"matvec of {name}")
    check_carry(f"{name}: matvec", treedef, kinds, traced.out_tree, product.out_types)
    out_tree, direct, first = _solver(lambda v: solve(matvec, v), like, treedef, has_aux, name)
    vecmat, transposed, second = None, None, []
    if symmetric:
        vecmat, transposed, second = product, direct, first
    elif transpose_solve is not None:
        vecmat = _transposed(product, len(own))
        by_transpose = linear_transpose(matvec, like)
        _, transposed, second = _solver(
            lambda v: transpose_solve(lambda ct: by_transpose(ct)[0], v), like, treedef, has_aux, name
        )
    outs = linear_solve(
        *own,
        *first,
        *second,
        *leaves,
        matvec=product,
        solve=direct,
        vecmat=vecmat,
        transpose_solve=transposed,
        counts=(len(own), len(first), len(second)),
    )
    return tree.unflatten(out_tree, arrays(outs))


def _solver(fun: Function, like: Any, treedef: Any, has_aux: bool, name: str) -> tuple[Any, Program, list[Any]]:
    """Record a solver, a function of one tree; TypeError unless its solution has that tree and its types."""
    traced, program, consts = record(fun, (like,), f"solve of {name}")
    solution = _checked_pair(traced.out_tree, f"{name}: a solver")[0] if has_aux else traced.out_tree
    kinds = tree.leaves(like)
    check_carry(f"{name}: solve", treedef, kinds, solution, program.out_types[: solution.num_leaves])
    return traced.out_tree, program, consts


def _checked_pair(out_tree: Any, what: str) -> list[Any]:
    """Return the trees of a pair; TypeError if it is none."""
    children = tree.treedef_children(out_tree)
    if len(children) != 2 or tree.structure((0, 0)).node_data() != out_tree.node_data():
        raise TypeError(f"{what} must return a pair (x, aux) if has_aux=True, got {out_tree}")
    return children


def _transposed(program: Program, consts: int) -> Program:
    """Return the transpose of a Program that is linear in its inputs after the first `consts`."""
    fixed, kinds = program.in_types[:consts], program.in_types[consts:]

    def fun(xs: list[Any], cts: list[Any]) -> Any:
        return linear_transpose(lambda ts: program.run(*xs, *ts), kinds)(cts)[0]

    leaves, treedef = tree.flatten(((fixed, program.out_types), {}))
    return trace(fun, leaves, treedef, program.label).program.simplify()


def custom_root(
    f: Function, initial_guess: Any, solve: Function, tangent_solve: Function, has_aux: bool = False
) -> Any:
    """Find x with f(x) = 0 by a solver of one's own, with derivatives by the implicit function theorem.

    Differentiable in what `f` closes over, to any order; `initial_guess` and the solver are not differentiated.

    Args:
        f: a function from the tree of x to itself.
        initial_guess: where the solver starts: a pytree of floating arrays.
        solve: `solve(f, initial_guess) -> x`.
        tangent_solve: `tangent_solve(g, y) -> t` solves g(t) = y for linear g, in operations that can be transposed
            (or by `custom_linear_solve`): y / g(1.0) for scalars, `np.linalg.solve(fgrad.jacobian(g)(y), y)` for
            vectors.
        has_aux: `solve` returns a pair `(x, aux)`; `aux` is not differentiated.

    Returns:
        x, or `(x, aux)`.

    Raises:
        TypeError: a function is not callable; `f` or `solve` changes the tree, shapes or dtypes of the guess.

    Example:
        >>> import numpy as np, fgrad
        >>> def bisect(f, x):
        ...     low, high = x, x + 10
        ...     for _ in range(60):
        ...         middle = (low + high) / 2
        ...         low, high = np.where(f(middle) < 0, middle, low), np.where(f(middle) < 0, high, middle)
        ...     return high
        >>> def cube_root(a):
        ...     return fgrad.lax.custom_root(lambda x: x**3 - a, 0.0, bisect, lambda g, y: y / g(1.0))
        >>> print(fgrad.grad(cube_root)(8.0).round(6))
        0.083333
    """
    name = "custom_root"
    for fun in (f, solve, tangent_solve):
        check_callable(name, fun)
    guess, treedef = leaves_of(initial_guess, f"initial_guess of {name}")
    guess = arrays(guess)
    kinds = [type_of(x) for x in guess]
    like = tree.unflatten(treedef, kinds)
    traced, residual, own = record(f, (like,), f"f of {name}")
    check_carry(f"{name}: f", treedef, kinds, traced.out_tree, residual.out_types)
    out_tree, solver, first = _solver(lambda x: solve(f, x), like, treedef, has_aux, name)

    def from_tangent(x: Any, y: Any) -> Any:
        return tangent_solve(linearize(f, x)[1], y)

    traced, tangent, second = record(from_tangent, (like, like), f"tangent_solve of {name}")
    check_carry(f"{name}: tangent_solve", treedef, kinds, traced.out_tree, tangent.out_types)
    rule = _RootRule(residual, solver, tangent, (len(own), len(first), len(second)))
    outs = custom_jvp_call(*own, *first, *second, *guess, fun=rule.solve, rule=rule.push, consts=0)
    return tree.unflatten(out_tree, arrays(outs))


class _RootRule:
    """A root as a function of what the residual, the solver and the tangents' solver close over, and of the guess."""

    def __init__(self, residual: Program, solver: Program, tangent: Program, counts: tuple[int, int, int]):
        self.residual = residual
        self.solver = solver
        self.tangent = tangent
        self.counts = counts

    def _split(self, xs: Sequence[Any]) -> list[Sequence[Any]]:
        n, m, k = self.counts
        return [xs[:n], xs[n : n + m], xs[n + m : n + m + k], xs[n + m + k :]]

    def solve(self, *xs: Any) -> list[Any]:
        """Return the root, by the user's solver."""
        _, consts, _, guess = self._split(xs)
        return self.solver.run(*consts, *guess)

    def push(self, *both: Any) -> list[Any]:
        """Return the root and its tangent: with f(x, p) = 0, the solution of f_x dx = -f_p dp."""
        xs, ts = both[: len(both) // 2], both[len(both) // 2 :]
        outs = custom_jvp_call(*xs, fun=self.solve, rule=self.push, consts=0)
        own, _, consts, _ = self._split(xs)
        n = len(self.residual.outputs)
        mask = tuple([differentiable(t) for t in self.residual.in_types[: len(own)]])
        derived, active = jvp_program(self.residual, (*mask, *[False] * n))
        moved = iter(derived.run(*own, *outs[:n], *[t for t, m in zip(ts, mask, strict=False) if m])[n:])
        right = [-next(moved) if a else zeros(t) for a, t in zip(active, self.residual.out_types, strict=True)]
        pushed = self.tangent.run(*consts, *outs[:n], *right)
        return [*outs, *pushed, *[zero_cotangent(type_of(x)) for x in outs[n:]]]


# ----------------------------------------------------------------------------------------------------- fixed points


def fixed_point(f: Function, x0: Any, *args: Any, tol: float | None = None, max_steps: int = 1000) -> Any:
    """Find x = f(x, *args) by iteration, with derivatives by the implicit function theorem in both modes.

    Differentiable in `args` and in what `f` closes over, to any order; memory does not grow with the number of steps.
    The derivative is found by iteration too: it converges where that of x does.

    Args:
        f: a contraction near the solution: `f(x, *args)` has the tree, shapes and dtypes of `x0`.
        x0: where to start; a pytree of real floating arrays.
        *args: pytrees.
        tol: the iteration ends when no element of x changes by more than tol * (1 + the largest of x). Default: the
            resolution of the dtype to the power 3/4, 2e-12 for float64.
        max_steps: the largest number of steps.

    Returns:
        The fixed point, of the tree of `x0`.

    Raises:
        RuntimeError: not converged within `max_steps`, where that is known while the function runs; under `jit` and
            `vmap` the solution is nan. A derivative that does not converge is nan.
        TypeError: `f` is not callable, or changes the tree, shapes or dtypes.
        ValueError: `max_steps` or `tol` is negative.

    Example:
        >>> import numpy as np, fgrad
        >>> def root(a):
        ...     return fgrad.lax.fixed_point(lambda x, a: (x + a / x) / 2, 1.0, a)
        >>> print(root(2.0).round(6), fgrad.grad(root)(2.0).round(6))
        1.414214 0.353553
    """
    check_callable("fixed_point", f)
    if max_steps < 0 or (tol is not None and tol < 0):
        raise ValueError(f"fixed_point: max_steps and tol must not be negative, got {max_steps} and {tol}")
    leaves, treedef = leaves_of(x0, "x0 of fixed_point")
    for x in leaves:
        if type_of(x).dtype.kind != "f":
            raise TypeError(f"fixed_point: x0 must be real floating arrays, got {type_of(x)}")
    leaves = arrays(leaves)
    if not leaves:
        return x0
    least = tol if tol is not None else max(np.finfo(type_of(x).dtype).eps for x in leaves) ** 0.75

    def iterate(step: Function, x: Any) -> Any:
        return _iterated(step, x, least, max_steps)

    def solve_tangent(g: Function, y: Any) -> Any:
        def by_steps(matvec: Function, b: Any) -> Any:  # u = b + (u - matvec(u)): the same contraction
            step = lambda u: tree.map(lambda u, v, b: b + (u - v), u, matvec(u), b)  # noqa: E731
            return _or_nan(*iterate(step, b))

        return custom_linear_solve(g, y, by_steps, by_steps)

    def residual(x: Any) -> Any:
        return tree.map(lambda a, b: a - b, x, f(x, *args))

    def solve(_: Function, x: Any) -> Any:
        x, done = iterate(lambda x: f(x, *args), x)
        return _or_nan(x, done), done

    solution, done = custom_root(residual, tree.unflatten(treedef, leaves), solve, solve_tangent, has_aux=True)
    if not isinstance(done, Tracer) and not done:
        raise RuntimeError(
            f"fixed_point: not converged within max_steps={max_steps} to tol={least:.1e}; f may be no contraction near "
            "the solution"
        )
    return solution


def _iterated(step: Function, x: Any, tol: float, max_steps: int) -> tuple[Any, Any]:
    """Return the last of x, step(x), step(step(x)), …, and whether it changed little enough."""

    def change(x: Any, y: Any) -> Any:
        largest, size = 0.0, 0.0
        for a, b in zip(tree.leaves(x), tree.leaves(y), strict=True):
            if a.size:
                largest = np.maximum(largest, np.max(np.abs(a - b)).astype(np.float64))
                size = np.maximum(size, np.max(np.abs(b)).astype(np.float64))
        return largest - tol * (1 + size)

    def go_on(state: Any) -> Any:
        count, _, excess = state
        return (excess > 0) & (count < max_steps)

    def body(state: Any) -> Any:
        count, x, _ = state
        y = step(x)
        return count + 1, y, change(x, y)

    start = (np.asarray(0), x, np.asarray(np.inf))
    _, x, excess = while_loop(go_on, body, start)
    return x, excess <= 0


def _or_nan(x: Any, done: Any) -> Any:
    return tree.map(lambda leaf: select(done, leaf, np.asarray(np.nan, leaf.dtype)), x)

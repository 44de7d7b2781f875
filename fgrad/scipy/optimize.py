"""SciPy's solvers for functions of trees, fed with exact gradients, Jacobians and products with Hessians.

SciPy works on one vector of float64, and so do the functions given here, whatever the dtypes of `x0`: its tests of
convergence mean little in float32. The solution comes back in the tree and the dtypes of `x0`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import Tracer
from fgrad.numpy.arguments import as_array, cast
from fgrad.ops import shape as s
from fgrad.scipy.installed import scipys
from fgrad.scipy.solutions import solution
from fgrad.transforms.jacobian import hessian, hvp, jacfwd, jacrev
from fgrad.transforms.linearize import grad, value_and_grad, vjp
from fgrad.transforms.programs import has_tracers
from fgrad.transforms.pushforward import linearize

__all__ = ["least_squares", "minimize", "root"]

Function = Callable[..., Any]

# What SciPy's methods make use of; it warns if one is given a derivative that it does not use.
_WITHOUT_GRADIENT = {"nelder-mead", "powell", "cobyla", "cobyqa"}
_WITH_HESSIAN = {"dogleg", "trust-exact"}
_WITH_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_WITH_JACOBIAN = {"hybr", "lm"}

# ------------------------------------------------------------------------------------------- trees and vectors


class _Layout:
    """How a tree of arrays lies in SciPy's vector."""

    def __init__(self, function: str, x0: Any):
        if x0.__class__ is list and all(isinstance(x, (int, float, np.number)) for x in x0):
            x0 = np.asarray(x0)
        self.function = function
        self.treedef = tree.structure(x0)
        arrays = [_plain(function, "x0" + tree.keystr(path), x) for path, x in tree.leaves_with_path(x0)]
        self.shapes = [x.shape for x in arrays]
        self.dtypes = [x.dtype if x.dtype.kind == "f" else np.dtype(float) for x in arrays]
        if not sum(x.size for x in arrays):
            raise ValueError(f"{function}: x0 has no elements")
        self.start = _vector(arrays)

    def tree(self, vector: Any) -> Any:
        """Return a vector, plain or traced, as the tree, in the vector's dtype."""
        leaves, start = [], 0
        for shape in self.shapes:
            size = math.prod(shape)
            leaves.append(vector[start : start + size].reshape(shape))
            start += size
        return tree.unflatten(self.treedef, leaves)

    def solution(self, vector: Any) -> Any:
        """Return a vector as the tree, in the dtypes of `x0`; nothing is shared with a plain one."""
        if isinstance(vector, Tracer):
            leaves = [cast(x, dtype) for x, dtype in zip(tree.leaves(self.tree(vector)), self.dtypes, strict=True)]
        else:
            leaves = tree.leaves(self.tree(np.asarray(vector)))
            leaves = [np.array(x, dtype) for x, dtype in zip(leaves, self.dtypes, strict=True)]
        return tree.unflatten(self.treedef, leaves)

    def result(self, result: Any) -> Any:
        """Return a copy of SciPy's result with its `x` as the tree."""
        return type(result)(result, x=self.solution(result.x))

    def scalar(self, fun: Function) -> Function:
        """Return a function from the tree to a number as one of the vector."""
        return lambda vector, *args: fun(self.tree(vector), *args)

    def vectors(self, fun: Function) -> Function:
        """Return a function from the tree to a tree as one from vector to vector."""
        return lambda vector, *args, **kwargs: _vector(tree.leaves(fun(self.tree(vector), *args, **kwargs)))

    def callback(self, callback: Function | None) -> Function | None:
        """Return a callback of the tree as one of the vector, in either of the forms that SciPy tells by the name."""
        if callback is None:
            return None
        if set(inspect.signature(callback).parameters) == {"intermediate_result"}:
            return lambda intermediate_result: callback(intermediate_result=self.result(intermediate_result))
        return lambda vector, *rest: callback(self.solution(vector), *rest)

    def bounds(self, bounds: Any) -> Any:
        """Return a pair of trees, or of prefixes of the tree, as SciPy's bounds; those of SciPy as they are."""
        kind = scipys("optimize", self.function).Bounds
        if bounds is None or isinstance(bounds, kind):
            return bounds
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise TypeError(
                f"{self.function}: bounds must be a pair (lower, upper) of numbers or of trees like x0, or SciPy's "
                f"Bounds of the flat vector, got {bounds!r}"
            )
        lower, upper = bounds
        return kind(self._side("lower bound", lower, -np.inf), self._side("upper bound", upper, np.inf))

    def _side(self, name: str, bound: Any, free: float) -> Any:
        """Return one side of the bounds as a vector; where it is None, elements are free."""
        like = self.tree(self.start)
        leaves = tree.broadcast_prefix(bound, like, lambda x: x is None, f"{self.function}: {name}")
        return _vector(
            [np.broadcast_to(free if b is None else b, shape) for b, shape in zip(leaves, self.shapes, strict=True)]
        )


def _plain(function: str, name: str, x: Any) -> Any:
    """Return a leaf of `x0` as an array; TypeError if it is traced or not real."""
    if isinstance(x, Tracer):
        raise TypeError(
            f"{function}: {name} is traced, and SciPy's solvers take plain arrays; call {function} outside of "
            "transforms (a solution is differentiable by args, not by x0; fgrad.custom_jvp makes a rule of your own)"
        )
    x = np.asarray(x)
    if x.dtype.kind not in "iuf":
        raise TypeError(f"{function}: {name} must be real numbers, got {x.dtype}")
    return x


def _vector(leaves: Any) -> Any:
    """Return arrays, plain or traced, as one vector of float64."""
    flat = [s.reshape(x, shape=(x.size,)) for x in [cast(as_array(x), np.float64) for x in leaves]]
    return s.concatenate(*flat, axis=0)


# ------------------------------------------------------------------------------------------ derivatives for SciPy


def _value_and_gradient(fun: Function) -> Function:
    both = value_and_grad(fun)

    def numbers(vector: Any, *args: Any) -> tuple[float, Any]:
        value, gradient = both(vector, *args)
        return float(value), gradient

    return numbers


def _product(fun: Function) -> Function:
    """Return the product of the Hessian with a vector, in SciPy's order of arguments."""
    return lambda vector, t, *args: hvp(lambda v: fun(v, *args), (vector,), (np.asarray(t, np.float64),))


def _jacobian(fun: Function) -> Function:
    """Return the Jacobian of a function of vectors, in the mode that takes fewer passes."""
    modes = {True: jacrev(fun), False: jacfwd(fun)}
    short: list[bool] = []  # whether values are shorter than the argument, once that is known

    def matrix(vector: Any, *args: Any, **kwargs: Any) -> Any:
        if not short:
            short.append(fun(vector, *args, **kwargs).size < vector.size)
        return modes[short[0]](vector, *args, **kwargs)

    return matrix


def _operator(fun: Function) -> Function:
    """Return the Jacobian of a function of vectors as SciPy's LinearOperator: by products, never formed."""
    kind = scipys("sparse.linalg", "LinearOperator").LinearOperator

    def operator(vector: Any, *args: Any, **kwargs: Any) -> Any:
        def bound(v: Any) -> Any:
            return fun(v, *args, **kwargs)

        value, push = linearize(bound, vector)
        pull = vjp(bound, vector)[1]
        return kind(
            (value.size, vector.size),
            matvec=lambda t: push(np.ravel(t)),
            rmatvec=lambda ct: pull(np.ravel(ct))[0],
            dtype=np.float64,
        )

    return operator


def _constraint(layout: _Layout, constraint: Any, curved: bool) -> Any:
    """Return a constraint on the tree as SciPy takes it, with exact derivatives, second ones if `curved`.

    A linear one, of the vector, is returned as it is.
    """
    if isinstance(constraint, dict):
        fun = layout.vectors(constraint["fun"])
        return {**constraint, "fun": fun, "jac": _jacobian(fun)}
    kind = scipys("optimize", layout.function).NonlinearConstraint
    if not isinstance(constraint, kind):
        return constraint
    fun = layout.vectors(constraint.fun)
    second = {"hess": hessian(lambda vector, weights: (fun(vector) * weights).sum())} if curved else {}
    return kind(fun, constraint.lb, constraint.ub, _jacobian(fun), keep_feasible=constraint.keep_feasible, **second)


# ----------------------------------------------------------------------------------------------------- solvers


def _no_condition(name: str, what: str) -> TypeError:
    return TypeError(
        f"{name}: a solution with {what} cannot be differentiated by args, which are traced here; use "
        "fgrad.stop_gradient on them, or a rule of your own by fgrad.custom_jvp"
    )


def minimize(
    fun: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    method: Any = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Function | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Minimise a scalar function of a tree by `scipy.optimize.minimize`, with exact derivatives.

    The gradient goes to every method that uses one, Hessians to "dogleg" and "trust-exact", products with Hessians to
    "Newton-CG", "trust-ncg", "trust-krylov", "trust-constr" and to methods of one's own.

    Args:
        fun: `fun(x, *args)`, with a real scalar as its value, for x of the tree of `x0`, in float64.
        x0: where to start: a real array, a list of numbers (which is an array) or any other tree of arrays.
        args: further arguments of `fun`; without bounds and constraints the solution `x` is differentiable by them, in
            both modes and to any order, by the implicit function theorem. Under jit and vmap the result has `x` alone.
        method: a method of SciPy's by name (None: it chooses), or a callable as SciPy takes it.
        bounds: a pair (lower, upper), each a number, a tree like `x0` or a prefix of it, None where there is none; or
            `scipy.optimize.Bounds` of the flat vector.
        constraints: one or a sequence: dicts with "type" and "fun", `scipy.optimize.NonlinearConstraint`, whose
            functions take the tree and get exact derivatives; or `LinearConstraint` of the flat vector.
        tol, options: as SciPy takes them.
        callback: a function of the tree, or of `intermediate_result`.

    Returns:
        SciPy's `OptimizeResult`; `x` is a tree in the dtypes of `x0`, other attributes are over the flat vector.

    Raises:
        ImportError: SciPy is not installed.
        TypeError: `x0` is not of real numbers, or is traced; `fun` has no real scalar value; `args` are traced while
            there are bounds or constraints.
        ValueError: `x0` has no elements; bounds do not fit.

    Example:
        >>> import numpy as np
        >>> from fgrad.scipy.optimize import minimize
        >>> def misfit(p):
        ...     return np.sum((p["w"] * np.arange(3.0) + p["b"] - np.array([1.0, 3.0, 5.0])) ** 2)
        >>> x = minimize(misfit, {"w": 0.0, "b": 0.0}).x
        >>> print(x["w"].round(4), x["b"].round(4))
        2.0 1.0
    """
    layout = _Layout("minimize", x0)
    scalar = layout.scalar(fun)
    name = method.lower() if isinstance(method, str) else ""
    derivatives: dict[str, Any] = {}
    if name not in _WITHOUT_GRADIENT:
        scalar, derivatives["jac"] = _value_and_gradient(scalar), True
    if name in _WITH_HESSIAN:
        derivatives["hess"] = hessian(layout.scalar(fun))
    if name in _WITH_PRODUCTS or callable(method):
        derivatives["hessp"] = _product(layout.scalar(fun))
    if isinstance(constraints, dict) or not isinstance(constraints, Iterable):
        constraints = (constraints,)
    if has_tracers(tree.leaves(args)) and (bounds is not None or constraints):
        raise _no_condition("minimize", "bounds or constraints")

    def solve(*args: Any) -> Any:
        return scipys("optimize", "minimize").minimize(
            scalar,
            layout.start,
            args,
            method,
            bounds=layout.bounds(bounds),
            constraints=[_constraint(layout, c, name == "trust-constr") for c in constraints],
            tol=tol,
            callback=layout.callback(callback),
            options=options,
            **derivatives,
        )

    return layout.result(solution(solve, grad(layout.scalar(fun)), layout.start, args))


def root(
    fun: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    method: str = "hybr",
    *,
    tol: float | None = None,
    callback: Function | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find where a function from trees to trees is zero by `scipy.optimize.root`, with its exact Jacobian.

    Args:
        fun: `fun(x, *args)`, for x of the tree of `x0`, in float64; its value is a tree of as many numbers.
        x0: where to start: a real array, a list of numbers (which is an array) or any other tree of arrays.
        args: further arguments of `fun`; the solution `x` is differentiable by them, in both modes and to any order, by
            the implicit function theorem. Under jit and vmap the result has `x` alone.
        method: a method of SciPy's; "hybr" and "lm" use the Jacobian.
        tol, options: as SciPy takes them.
        callback: a function of the tree and the residuals, where the method has one.

    Returns:
        SciPy's `OptimizeResult`; `x` is a tree in the dtypes of `x0`, other attributes are over the flat vector.

    Raises:
        ImportError: SciPy is not installed.
        TypeError: `x0` is not of real numbers, or is traced.
        ValueError: `x0` has no elements.

    Example:
        >>> import numpy as np, fgrad
        >>> from fgrad.scipy.optimize import root
        >>> root(lambda x: (x[0] ** 2 - 2, x[0] * x[1] - 4), [1.0, 1.0]).x.round(4)
        array([1.4142, 2.8284])
        >>> print(fgrad.grad(lambda a: root(lambda x, a: x**3 - a, 1.0, (a,)).x)(8.0).round(4))
        0.0833
    """
    layout = _Layout("root", x0)
    vectors = layout.vectors(fun)
    derivatives = {"jac": _jacobian(vectors)} if method.lower() in _WITH_JACOBIAN else {}

    def solve(*args: Any) -> Any:
        return scipys("optimize", "root").root(
            vectors,
            layout.start,
            args,
            method,
            tol=tol,
            callback=layout.callback(callback),
            options=options,
            **derivatives,
        )

    return layout.result(solution(solve, vectors, layout.start, args))


def least_squares(
    fun: Function,
    x0: Any,
    bounds: Any = None,
    method: str = "trf",
    *,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Minimise the sum of squares of a function's values by `scipy.optimize.least_squares`, with its exact Jacobian.

    Args:
        fun: `fun(x, *args, **kwargs)`, for x of the tree of `x0`, in float64; its value is a tree of residuals.
        x0: where to start: a real array, a list of numbers (which is an array) or any other tree of arrays.
        bounds: a pair (lower, upper), each a number, a tree like `x0` or a prefix of it, None where there is none; or
            `scipy.optimize.Bounds` of the flat vector.
        method: "trf", "dogbox" or "lm".
        args, kwargs: further arguments of `fun`; without bounds and with the linear loss the solution `x` is
            differentiable by `args`, in both modes and to any order, by the implicit function theorem. Under jit and
            vmap the result has `x` alone.
        options: all others of SciPy's: `loss`, `f_scale`, `x_scale`, `ftol`, `max_nfev`, …. With `tr_solver="lsmr"`
            the Jacobian is never formed: SciPy gets products with it and with its transpose.

    Returns:
        SciPy's `OptimizeResult`; `x` is a tree in the dtypes of `x0`, other attributes are over the flat vector.

    Raises:
        ImportError: SciPy is not installed.
        TypeError: `x0` is not of real numbers, or is traced; `jac` is given.
        ValueError: `x0` has no elements; bounds do not fit.

    Example:
        >>> import numpy as np
        >>> from fgrad.scipy.optimize import least_squares
        >>> t = np.arange(5.0)
        >>> residuals = lambda p: p["size"] * np.exp(-p["rate"] * t) - 3 * np.exp(-0.5 * t)
        >>> x = least_squares(residuals, {"size": 1.0, "rate": 1.0}).x
        >>> print(x["size"].round(4), x["rate"].round(4))
        3.0 0.5
    """
    if "jac" in options:
        raise TypeError("least_squares: jac is computed from fun, exactly; leave it out")
    layout = _Layout("least_squares", x0)
    vectors = layout.vectors(fun)
    if bounds is not None:
        options["bounds"] = layout.bounds(bounds)
    if "callback" in options:
        options["callback"] = layout.callback(options["callback"])
    jacobian = _operator if options.get("tr_solver") == "lsmr" else _jacobian
    if has_tracers(tree.leaves(args)) and (bounds is not None or options.get("loss", "linear") != "linear"):
        raise _no_condition("least_squares", "bounds or a loss other than linear")

    def solve(*args: Any) -> Any:
        return scipys("optimize", "least_squares").least_squares(
            vectors,
            layout.start,
            jacobian(vectors),
            method=method,
            args=args,
            kwargs=kwargs or {},
            **options,
        )

    def half_squares(vector: Any, *args: Any) -> Any:
        return (vectors(vector, *args, **(kwargs or {})) ** 2).sum() / 2

    return layout.result(solution(solve, grad(half_squares), layout.start, args))

"""Conjugate gradients and BiCGSTAB for systems known by products alone, with implicit derivatives.

Systems are of vectors or trees. No step is differentiated: see `fgrad.lax.custom_linear_solve`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad import numpy as fnp
from fgrad import tree
from fgrad.core import type_of
from fgrad.flatten_util import ravel_pytree
from fgrad.lax import custom_linear_solve, while_loop
from fgrad.transforms.jacobian import linear_transpose

__all__ = ["bicgstab", "cg"]

Product = Callable[[Any], Any]


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """Solve A x = b by conjugate gradients, for Hermitian positive definite A.

    Differentiable in `b` and in what `A` closes over, in both modes and to any order, by solving again.

    Args:
        A: a square matrix, or a function that multiplies a vector or tree like `b` by it.
        b: the right-hand side: a vector or a tree of floating arrays.
        x0: where to start, of the tree and dtypes of `b`; zeros by default.
        tol, atol: the iteration ends when the norm of the residual is at most max(tol * norm(b), atol).
        maxiter: the largest number of steps; ten for each element by default. What is reached then is returned.
        M: a preconditioner, a Hermitian positive definite approximation of A's inverse, in the form of `A`.

    Returns:
        `(x, None)`, as `jax.scipy.sparse.linalg.cg`.

    Raises:
        TypeError: `A` or `M` is neither a matrix nor a function, or does not keep the tree and types of `b`.
        ValueError: the tree or shapes of `x0` are not those of `b`.

    Example:
        >>> import numpy as np, fgrad
        >>> from fgrad.scipy.sparse.linalg import cg
        >>> x, _ = cg(lambda x: np.array([2., 4.]) * x, np.array([1., 1.]))
        >>> x
        array([0.5 , 0.25])
    """
    return _solved("cg", _conjugate_gradients, A, b, x0, tol, atol, maxiter, M)


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """Solve A x = b by the stabilised method of biconjugate gradients, for any square A.

    Takes and returns what `cg` does, but that neither A nor M need be Hermitian. Source: van der Vorst (1992).

    Example:
        >>> import numpy as np, fgrad
        >>> from fgrad.scipy.sparse.linalg import bicgstab
        >>> x, _ = bicgstab(np.array([[2., 1.], [0., 4.]]), np.array([1., 1.]))
        >>> x.round(6)
        array([0.375, 0.25 ])
    """
    return _solved("bicgstab", _stabilised, A, b, x0, tol, atol, maxiter, M)


def _solved(name: str, method: Any, A: Any, b: Any, x0: Any, tol: float, atol: float, maxiter: Any, M: Any) -> Any:
    """Solve on vectors: `method(product, b, x0, limit, steps, precondition)` is one of the iterations below."""
    flat, unravel = ravel_pytree(b)
    start, _ = ravel_pytree(tree.map(fnp.zeros_like, b) if x0 is None else x0)
    if tree.structure(b) != tree.structure(b if x0 is None else x0) or start.shape != flat.shape:
        raise ValueError(f"{name}: x0 must have the tree and shapes of b")
    steps = 10 * type_of(flat).size if maxiter is None else maxiter
    product, precondition = (_product(name, what, f, unravel) for what, f in (("A", A), ("M", M)))
    transposed = (lambda v: v) if M is None else lambda v: linear_transpose(precondition, flat)(v)[0]

    def solve(matvec: Product, b: Any) -> Any:
        return method(matvec, b, start.astype(b.dtype), _limit(b, tol, atol), steps, precondition)

    def solve_transposed(vecmat: Product, ct: Any) -> Any:
        return method(vecmat, ct, fnp.zeros_like(ct), _limit(ct, tol, atol), steps, transposed)

    with np.errstate(divide="ignore", invalid="ignore"):  # of examples in a batch that are done before others
        return unravel(custom_linear_solve(product, flat, solve, solve_transposed)), None


def _product(name: str, what: str, A: Any, unravel: Product) -> Product:
    """Return a matrix, or a function of trees, as a function of vectors; None is the identity."""
    if A is None:
        return lambda v: v
    if callable(A):
        return lambda v: ravel_pytree(A(unravel(v)))[0]
    if len(getattr(A, "shape", ())) != 2 or A.shape[0] != A.shape[1]:
        raise TypeError(f"{name}: {what} must be a square matrix or a function, got {A!r}")
    return lambda v: A @ v


def _limit(b: Any, tol: float, atol: float) -> Any:
    """Return the square of the norm that the residual is to have."""
    return fnp.maximum(tol**2 * _square(b), atol**2)


def _square(x: Any) -> Any:
    return fnp.vdot(x, x).real


def _conjugate_gradients(product: Product, b: Any, x: Any, limit: Any, steps: int, precondition: Product) -> Any:
    def going(state: Any) -> Any:
        _, r, _, _, k = state
        return (_square(r) > limit) & (k < steps)

    def step(state: Any) -> Any:
        x, r, p, rz, k = state
        q = product(p)
        a = rz / fnp.vdot(p, q)
        r = r - a * q
        z = precondition(r)
        new = fnp.vdot(r, z)
        return x + a * p, r, z + new / rz * p, new, k + 1

    r = b - product(x)
    z = precondition(r)
    return while_loop(going, step, (x, r, z, fnp.vdot(r, z), 0))[0]


def _stabilised(product: Product, b: Any, x: Any, limit: Any, steps: int, precondition: Product) -> Any:
    """Iterate until the residual is small or a breakdown makes it nan."""
    one = np.ones((), b.dtype)

    def going(state: Any) -> Any:
        _, r, *_, k = state
        return (_square(r) > limit) & (k < steps)

    def step(state: Any) -> Any:
        x, r, p, q, rho, a, w, k = state
        new = fnp.vdot(shadow, r)
        p = r + new / rho * (a / w) * (p - w * q)
        p_hat = precondition(p)
        q = product(p_hat)
        a = new / fnp.vdot(shadow, q)
        s = r - a * q
        done = _square(s) <= limit  # half a step is enough
        s_hat = precondition(s)
        t = product(s_hat)
        w = fnp.where(done, one * 0, fnp.vdot(t, s) / fnp.where(done, one, fnp.vdot(t, t)))
        return x + a * p_hat + w * s_hat, s - w * t, p, q, new, a, w, k + 1

    shadow = b - product(x)
    zero = fnp.zeros_like(b)
    return while_loop(going, step, (x, shadow, zero, zero, one, one, one, 0))[0]

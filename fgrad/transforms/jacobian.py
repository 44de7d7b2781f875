"""Whole Jacobians by batching the two modes: `jacfwd`, `jacrev`, `hessian`; and `hvp`, `linear_transpose`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import ArrayType, state, type_of
from fgrad.source import function_label
from fgrad.transforms.jvp import jvp
from fgrad.transforms.linearize import (
    as_argnums,
    as_operand,
    beside,
    check_callable,
    check_cotangent,
    grad,
    in_order,
    leaf,
    positions,
    pull_back,
    result,
    vjp,
    zero_cotangent,
)
from fgrad.transforms.programs import under
from fgrad.transforms.transpose import TangentTracer, Transpose
from fgrad.transforms.vmap import vmap


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """Return, per leaf, the standard basis of all leaves together: arrays of shape (total size, *leaf.shape)."""
    kinds = [type_of(x) for x in leaves]
    total = sum(t.size for t in kinds)
    out, start = [], 0
    for x, t in zip(leaves, kinds, strict=True):
        block = np.zeros((total, t.size), t.dtype)
        block[start : start + t.size] = np.eye(t.size, dtype=t.dtype)
        out.append(beside(x, block.reshape((total, *t.shape))))
        start += t.size
    return out


def _chosen(fun: Callable[..., Any], args: Sequence[Any], kwargs: Any, argnums: int | Sequence[int]) -> Any:
    """Return `fun` as a function of the arguments in `argnums` alone, and those arguments."""
    numbers = positions(argnums, len(args))
    fixed = list(args)

    def of_chosen(*chosen: Any) -> Any:
        full = list(fixed)
        for i, x in zip(numbers, chosen, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    return of_chosen, tuple(args[i] for i in numbers)


def _check_kinds(name: str, leaves: Sequence[Any], holomorphic: bool, allow_int: bool, what: str) -> None:
    for x in leaves:
        kind = type_of(as_operand(x, f"an {what} of the function given to {name}"))
        code = kind.dtype.kind
        if holomorphic and code != "c":
            raise TypeError(f"{name} with holomorphic=True requires complex {what}s, got {kind}")
        if not holomorphic and code == "c":
            raise TypeError(f"{name} requires real-valued {what}s unless holomorphic=True, got {kind}")
        if not holomorphic and code not in "fV" and not allow_int:
            raise TypeError(f"{name} requires real- or complex-valued {what}s (a sub-dtype of np.inexact), got {kind}")


def _blocks(flat: Any, leaves: Sequence[Any], axis: int) -> list[Any]:
    """Split one axis, which runs over the elements of all leaves, into one array per leaf, in its shape."""
    out, start = [], 0
    for x in leaves:
        kind = type_of(x)
        index = (slice(None),) * axis + (slice(start, start + kind.size),)
        part = flat[index]
        out.append(part.reshape((*part.shape[:axis], *kind.shape, *part.shape[axis + 1 :])))
        start += kind.size
    return out


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `fun`, column by column, in forward mode.

    Args:
        fun: a function of arrays or pytrees.
        argnums: which positional arguments to differentiate; a sequence gives a tuple of Jacobians.
        has_aux: `fun` returns a pair `(out, aux)`; the result is `(jacobian, aux)`.
        holomorphic: promise that `fun` is holomorphic, from complex to complex.

    Returns:
        A function whose result has the tree of the output, with the tree of the argument(s) at each leaf, and arrays of
        shape `out.shape + arg.shape`.

    Raises:
        TypeError: an argument is not of a real (with holomorphic, complex) floating type.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.jacfwd(lambda x: x * x)(np.array([1., 2.]))
        array([[2., 0.],
               [0., 4.]])
    """
    check_callable("jacfwd", fun)
    argnums = as_argnums(argnums)

    @functools.wraps(fun, updated=())
    def jacobian_fun(*args: Any, **kwargs: Any) -> Any:
        chosen, primals = _chosen(fun, args, kwargs, argnums)
        leaves, treedef = tree.flatten(primals)
        _check_kinds("jacfwd", leaves, holomorphic, False, "input")
        aux: list[Any] = []

        def push(*ts: Any) -> Any:
            pushed = jvp(chosen, primals, tree.unflatten(treedef, list(ts)), has_aux=has_aux)
            aux[:] = [pushed[2]] if has_aux else []
            return pushed[1]

        columns = vmap(push, 0, -1)(*_basis(leaves)) if leaves else {}

        def spread(x: Any) -> Any:
            trees = tree.unflatten(treedef, _blocks(x, leaves, x.ndim - 1))
            return trees[0] if isinstance(argnums, int) else trees

        jacobian = tree.map(spread, columns)
        return (jacobian, aux[0]) if has_aux else jacobian

    return jacobian_fun


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `fun`, row by row, in reverse mode.

    Takes the arguments of `jacfwd`, and `allow_int` as `grad` does; the result is laid out as there.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.jacrev(lambda x: x * x)(np.array([1., 2.]))
        array([[2., 0.],
               [0., 4.]])
    """
    check_callable("jacrev", fun)
    argnums = as_argnums(argnums)

    @functools.wraps(fun, updated=())
    def jacobian_fun(*args: Any, **kwargs: Any) -> Any:
        chosen, primals = _chosen(fun, args, kwargs, argnums)
        _check_kinds("jacrev", tree.leaves(primals), holomorphic, allow_int, "input")
        out, pullback, *aux = vjp(chosen, *primals, has_aux=has_aux)
        leaves, out_tree = tree.flatten(out)
        _check_kinds("jacrev", leaves, holomorphic, False, "output")
        rows = vmap(lambda *cts: pullback(tree.unflatten(out_tree, list(cts))))(*_basis(leaves))
        flat, treedef = tree.flatten(rows[0] if isinstance(argnums, int) else rows)
        parts = [_blocks(x, leaves, 0) for x in flat]
        per_output = [tree.unflatten(treedef, [p[k] for p in parts]) for k in range(len(leaves))]
        jacobian = tree.unflatten(out_tree, per_output)
        return (jacobian, aux[0]) if has_aux else jacobian

    return jacobian_fun


def hessian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the Hessian of `fun`: forward mode over reverse mode.

    Takes the arguments of `jacfwd`; for a scalar function of an array of shape s the result has shape s + s.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1., 3.]))
        array([[6., 2.],
               [2., 0.]])
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def hvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Return the Hessian of a scalar function at `primals` times `tangents`, without forming the Hessian.

    Args:
        fun: a function with a real scalar output.
        primals: tuple of its arguments.
        tangents: tuple of the same trees, shapes and dtypes.

    Returns:
        The product: the tree of the argument, or a tuple if there are several.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.hvp(lambda x: (x ** 3).sum(), (np.array([1., 2.]),), (np.array([1., 0.]),))
        array([6., 0.])
    """
    check_callable("hvp", fun)
    product = jvp(grad(fun, tuple(range(len(primals)))), primals, tangents)[1]
    return product[0] if len(primals) == 1 else product


def _kind(x: Any) -> ArrayType:
    """Return the type of an array or of anything with shape and dtype."""
    return type_of(x if hasattr(x, "shape") and hasattr(x, "dtype") else as_operand(x, "a primal of linear_transpose"))


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[..., Any]:
    """Return the transpose of a function that is linear, as a function of cotangents.

    Args:
        fun: a linear function of arrays or pytrees.
        *primals: its arguments; only shapes and dtypes are used (`ShapeDtypeStruct`s will do).

    Returns:
        A function that takes a cotangent of the output and returns a tuple with one per argument.

    Raises:
        TypeError: `fun` is not linear, or its output does not depend on its arguments linearly.
        ValueError: (from the returned function) the cotangent does not fit the output.

    Example:
        >>> import numpy as np, fgrad
        >>> t = fgrad.linear_transpose(lambda x: 2 * x[::-1], np.zeros(3))
        >>> t(np.array([1., 2., 3.]))
        (array([6., 4., 2.]),)
    """
    check_callable("linear_transpose", fun)
    leaves, treedef = tree.flatten(primals)
    kinds = [_kind(x) for x in leaves]
    for kind in kinds:
        if kind.dtype.kind not in "fcV":
            raise TypeError(f"linear_transpose requires real- or complex-valued inputs, got {kind}")

    def transposed(ct: Any) -> tuple[Any, ...]:
        label = function_label("linear_transpose", fun)
        linear = Transpose(label, state.interpreter, itertools.count(1).__next__)
        roots = [leaf() for _ in kinds]
        inputs = [TangentTracer(linear, kind, root) for kind, root in zip(kinds, roots, strict=True)]
        out = under(linear, lambda: fun(*tree.unflatten(treedef, inputs)))
        outs, out_tree = tree.flatten(out)
        cts, ct_tree = tree.flatten(ct)
        if ct_tree != out_tree:
            raise ValueError(f"the cotangent given to a transpose must have the tree {out_tree}, got {ct_tree}")
        found: dict[Any, Any] = {}
        seen = set()
        for x, c in zip(outs, cts, strict=True):
            if not (x.__class__ is TangentTracer and x.interpreter is linear):
                raise TypeError(f"{linear.label}: an output does not depend on the inputs, so it is not linear in them")
            c = check_cotangent(c, x.type)
            seen.add(id(c))
            have = found.get(x.node)
            found[x.node] = c if have is None else have + c
        pull_back(in_order(found), found)
        flat = [
            result(found[r], seen) if r in found else zero_cotangent(kind) for r, kind in zip(roots, kinds, strict=True)
        ]
        return tree.unflatten(treedef, flat)  # type: ignore[no-any-return]

    return transposed

"""Derivatives without rules: central differences in float64, sharpened by the complex step where that is legal."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fgrad import tree
from fgrad.core import type_of
from fgrad.transforms.linearize import check_callable, zero_cotangent

COMPLEX_STEP = 1e-30


class Estimate(NamedTuple):
    """The derivative along a direction: leaves and their tree, and the relative error to expect."""

    leaves: list[np.ndarray[Any, Any]]
    treedef: Any
    error: float

    @property
    def value(self) -> Any:
        return tree.unflatten(self.treedef, self.leaves)


def numerical_jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], eps: float | None = None
) -> Any:
    """Return the derivative of `f` at `primals` along `tangents`, found by evaluating `f` at neighbouring points.

    Central differences in float64, whatever the dtype of the primals. Where `f` also takes complex arguments and the
    complex step agrees with the differences, that step is taken, which has no rounding to speak of (Squire and Trapp,
    SIAM Review 40, 1998).

    Args:
        f: a function of pytrees of arrays; it is called with plain float64 or complex128 arrays.
        primals: tuple or list of its arguments. Integers and bools are passed on as they are.
        tangents: tuple or list of the same tree; what stands for integers is ignored.
        eps: the step; the cube root of the output's rounding unit if None.

    Returns:
        A pytree like the output of `f`; of dtype float0 where that is of integers or bools.

    Raises:
        TypeError: `f` is not callable, or primals and tangents are not of the same tree.

    Example:
        >>> import numpy as np
        >>> from fgrad.check import numerical_jvp
        >>> float(numerical_jvp(np.sin, (0.0,), (2.0,)))
        2.0
    """
    return estimate(f, primals, tangents, eps).value


def estimate(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], eps: float | None = None
) -> Estimate:
    """Return what `numerical_jvp` returns, with the error to expect."""
    check_callable("numerical_jvp", f)
    leaves, treedef = tree.flatten(tuple(primals))
    directions, t_tree = tree.flatten(tuple(tangents))
    if treedef != t_tree:
        raise TypeError(f"primals and tangents must have the same tree, got {treedef} and {t_tree}")
    start = [widen(x) for x in leaves]
    moved = [is_inexact_type(x) for x in start]
    directions = [widen(t) if m else None for t, m in zip(directions, moved, strict=True)]

    def at(step: Any) -> tuple[list[Any], Any]:
        point = [x + step * t if m else x for x, t, m in zip(start, directions, moved, strict=True)]
        with np.errstate(all="ignore"):
            out, out_tree = tree.flatten(f(*tree.unflatten(treedef, point)))
        return [np.asarray(x) for x in out], out_tree

    central, out_tree, rounding = _central(at, eps)
    if not any(np.iscomplexobj(x) for x in start):
        sharp = _complex_step(at, central)
        if sharp is not None:
            return Estimate(sharp, out_tree, 1e-10)
    return Estimate(central, out_tree, 1000 * rounding ** (2 / 3) if eps is None else 1e-6)


def two_point(ahead: Sequence[Any], behind: Sequence[Any], step: Any) -> list[Any]:
    """Return `(ahead - behind) / (2 step)` in double precision for each pair of outputs, None for integers and bools.

    The central difference of values found a step ahead and a step behind, exact for polynomials of degree 2 (Fornberg,
    Mathematics of Computation 51, 1988, table 1).
    """
    return [
        (widen(p) - widen(m)) / (2 * step) if is_inexact_type(p) else None for p, m in zip(ahead, behind, strict=True)
    ]


def _central(at: Callable[[Any], tuple[list[Any], Any]], eps: float | None) -> tuple[list[Any], Any, float]:
    """Return differences over four points, the tree of the output and its rounding unit, to which the step is fitted.

    Differences over one and two steps are combined so that polynomials of degree 4 come out exact (Fornberg, as
    `two_point`): what is left is rounding, also near singularities.
    """
    rounding = float(np.finfo(np.float64).eps)
    step = eps or float(np.cbrt(rounding))
    ahead, out_tree = at(step)
    coarse = max([float(np.finfo(x.dtype).eps) for x in ahead if is_inexact_type(x)], default=rounding)
    if eps is None and coarse > rounding:
        rounding = coarse
        step = float(np.cbrt(rounding))
        ahead, _ = at(step)
    near = two_point(ahead, at(-step)[0], step)
    far = two_point(at(2 * step)[0], at(-2 * step)[0], 2 * step)
    out = [
        zero_cotangent(type_of(x)) if n is None else (4 * n - f) / 3 for x, n, f in zip(ahead, near, far, strict=True)
    ]
    return out, out_tree, rounding


def _complex_step(at: Callable[[Any], tuple[list[Any], Any]], central: list[Any]) -> list[Any] | None:
    """Return the derivative by a complex step, or None where that is not legal: it must agree with the differences."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            moved, _ = at(1j * COMPLEX_STEP)
        except (TypeError, ValueError, Warning):
            return None
    out = []
    for z, c in zip(moved, central, strict=True):
        if c.dtype.kind == "V":
            out.append(c)
            continue
        if z.dtype not in (np.complex128, np.float64) or c.dtype.kind == "c":
            return None
        t = z.imag / COMPLEX_STEP
        if not np.allclose(t, c, rtol=1e-5, atol=1e-6 * np.max(np.abs(c), initial=1)):
            return None
        out.append(t)
    return out


def is_inexact_type(x: Any) -> bool:
    """Return whether an array is of a real or complex floating type."""
    return type_of(x).dtype.kind in "fc"


def widen(x: Any) -> Any:
    """Return an array in double precision; integers and bools as they are."""
    kind = type_of(x).dtype.kind
    return np.asarray(x, {"f": np.float64, "c": np.complex128}.get(kind))

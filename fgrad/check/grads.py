"""`check_grads`: the derivatives of a function, forward and reverse, of any order, against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fgrad import tree
from fgrad.check.differences import estimate, is_inexact_type, numerical_jvp
from fgrad.core import type_of
from fgrad.transforms.jvp import jvp
from fgrad.transforms.linearize import check_callable, vjp, zero_cotangent

TOLERANCE = {64: 1e-6, 32: 2e-3, 16: 5e-2}
"""Absolute and relative tolerance, by bits of a real number."""

ENTRIES = 4096
"""How many entries are differentiated one by one to find the worst in a failed check of reverse mode."""


class _Check(NamedTuple):
    atol: float | None
    rtol: float | None
    eps: float | None
    rng: np.random.Generator


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of `f` at `args` against finite differences, up to `order`, in random directions.

    Order 2 checks the derivatives, in every mode, of the derivative functions of order 1 in every mode, and so on.

    Args:
        f: a function of pytrees of arrays.
        args: tuple or list of its arguments; integers and bools are not differentiated.
        order: highest order, at least 1.
        modes: "fwd" (jvp), "rev" (vjp) or both.
        atol, rtol: absolute and relative tolerance; by the narrowest dtype involved if None (1e-6 for float64).
        eps: the step of the differences, see `fgrad.check.numerical_jvp`.

    Raises:
        AssertionError: a derivative is wrong; the message has both numbers, the worst entry and its index.
        TypeError: `f` is not callable, or `args` is no tuple or list.
        ValueError: `order` or `modes` is none of the above.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.check_grads(lambda x, y: np.sin(x) * y, (np.array([1.0, 2.0]), 3.0), order=2)
    """
    check_callable("check_grads", f)
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"check_grads: args must be a tuple or list of arguments, got {type(args).__name__}")
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not modes or set(modes) - {"fwd", "rev"}:
        raise ValueError(f"check_grads: modes must be 'fwd', 'rev' or both, got {modes!r}")
    if order < 1:
        raise ValueError(f"check_grads: order must be at least 1, got {order}")
    check = _Check(atol, rtol, eps, np.random.default_rng(0))
    name = getattr(f, "__name__", None) or getattr(f, "name", None) or type(f).__name__
    _check(check, f, tuple(args), order, modes, name)


def _check(
    check: _Check, f: Callable[..., Any], args: tuple[Any, ...], order: int, modes: tuple[str, ...], name: str
) -> None:
    tangents = random_like(args, check.rng)
    for mode in modes:
        inner = (_check_forward if mode == "fwd" else _check_reverse)(check, f, args, tangents, name)
        if order > 1:
            _check(check, inner, args, order - 1, modes, f"{mode} of {name}")


def _check_forward(check: _Check, f: Callable[..., Any], args: Any, tangents: Any, name: str) -> Callable[..., Any]:
    """Check one pushed tangent entry by entry; return the function that pushes it."""
    _, pushed = jvp(f, args, tangents)
    numeric = estimate(f, args, tangents, check.eps)
    got = tree.leaves_with_path(pushed)
    for (path, a), b in zip(got, numeric.leaves, strict=True):
        where = worst(a, b, *_tolerances(check, args, pushed))
        if where is not None:
            raise AssertionError(_message("forward", name, f"output{tree.keystr(path)}", where, a, b))
    return lambda *xs: jvp(f, xs, cast_like(tangents, xs))[1]


def _check_reverse(check: _Check, f: Callable[..., Any], args: Any, tangents: Any, name: str) -> Callable[..., Any]:
    """Check one pulled cotangent, paired with a tangent; return the function that pulls it."""
    out, pull = vjp(f, *args)
    ct = random_like(out, check.rng)
    pulled = pull(ct)
    numeric = estimate(f, args, tangents, check.eps)
    atol, rtol = _tolerances(check, args, pulled)
    got, _ = pairing(pulled, tangents)
    want, scale = pairing(ct, numeric.value)
    if not abs(got - want) <= atol + rtol * scale:
        raise AssertionError(
            f"the reverse derivative of {name} is wrong: a random cotangent and tangent pair to {got!r}, finite "
            f"differences give {want!r}{_worst_entry(check, f, args, ct, pulled)}"
        )

    def pull_at(*xs: Any) -> Any:
        out, pull = vjp(f, *xs)
        return pull(cast_like(ct, out))

    return pull_at


def _worst_entry(check: _Check, f: Callable[..., Any], args: tuple[Any, ...], ct: Any, pulled: Any) -> str:
    """Return words on the entry of the gradient that is farthest from finite differences."""
    entries = [(abs(g - n), path, index, g, n) for path, index, g, n in _entries(check, f, args, ct, pulled) if g != n]
    if not entries:
        return ""
    _, path, index, g, n = max(entries, key=lambda e: np.inf if np.isnan(e[0]) else e[0])
    place = f"args{tree.keystr(path)}{list(index) or ''}"
    return f";\nworst entry: {place} has derivative {g!r}, finite differences give {n!r}"


def _entries(
    check: _Check, f: Callable[..., Any], args: tuple[Any, ...], ct: Any, pulled: Any
) -> Iterator[tuple[Any, tuple[int, ...], Any, Any]]:
    """Yield path, index, derivative and its numerical estimate for every entry of the arguments."""
    leaves, treedef = tree.flatten(args)
    still = [zero_cotangent(type_of(x)) for x in leaves]
    if sum(t.size for t in still) > ENTRIES:
        return

    def slope(k: int, index: tuple[int, ...], step: Any) -> float:
        t = still[k].astype(still[k].dtype)
        t[index] = step
        moved = tree.unflatten(treedef, [*still[:k], t, *still[k + 1 :]])
        return pairing(ct, numerical_jvp(f, args, moved, check.eps))[0]

    for k, (path, g) in enumerate(tree.leaves_with_path(pulled)):
        if not is_inexact_type(g):
            continue
        for index in np.ndindex(g.shape):
            n: Any = slope(k, index, 1)
            if g.dtype.kind == "c":  # bilinear pairing: the derivative is df/dx - i df/dy
                n = n - 1j * slope(k, index, 1j)
            yield path, index, g[index].item(), n


def _message(mode: str, name: str, what: str, index: tuple[int, ...], a: Any, b: Any) -> str:
    place = f"{what}{list(index) or ''}"
    return (
        f"the {mode} derivative of {name} is wrong, worst at {place}: "
        f"it is {a[index].item()!r}, finite differences give {b[index].item()!r}"
    )


def _tolerances(check: _Check, *trees: Any) -> tuple[float, float]:
    """Return absolute and relative tolerance for the narrowest dtype in `trees`."""
    default = tolerance([type_of(x).dtype for x in tree.leaves(trees)])
    return default if check.atol is None else check.atol, default if check.rtol is None else check.rtol


def tolerance(dtypes: Sequence[Any]) -> float:
    """Return the tolerance of finite differences for the narrowest floating dtype among `dtypes`."""
    return max([TOLERANCE[min(np.finfo(d).bits, 64)] for d in dtypes if d.kind in "fc"], default=TOLERANCE[64])


def worst(a: Any, b: Any, atol: float, rtol: float, equal_nan: bool = True) -> tuple[int, ...] | None:
    """Return the index where `a` and `b` differ most, or None if they agree within `atol + rtol * abs(b)`.

    inf agrees with inf, and NaN with NaN if `equal_nan`.
    """
    if not is_inexact_type(a) or not a.size:
        return None
    with np.errstate(all="ignore"):
        gap = np.abs(a - b) - (atol + rtol * np.abs(b))
    same = (a == b) | (np.isnan(a) & np.isnan(b)) if equal_nan else a == b
    gap = np.where(same, -np.inf, np.where(np.isnan(gap), np.inf, gap))
    index = np.unravel_index(np.argmax(gap), gap.shape)
    return None if gap[index] <= 0 else tuple(int(i) for i in index)


def random_like(x: Any, rng: np.random.Generator) -> Any:
    """Return a tangent or cotangent of a pytree, of order 1; of dtype float0 for integers and bools."""

    def draw(x: Any) -> Any:
        kind = type_of(x)
        if kind.dtype.kind == "f":
            return rng.standard_normal(kind.shape).astype(kind.dtype)
        if kind.dtype.kind == "c":
            return (rng.standard_normal(kind.shape) + 1j * rng.standard_normal(kind.shape)).astype(kind.dtype)
        return zero_cotangent(kind)

    return tree.map(lambda x: np.asarray(draw(x)), x)


def cast_like(ts: Any, xs: Any) -> Any:
    """Return tangents or cotangents in the dtypes of `xs`."""

    def cast(t: Any, x: Any) -> Any:
        dtype = type_of(x).dtype
        return t.astype(dtype) if is_inexact_type(t) and t.dtype != dtype else t

    return tree.map(cast, ts, xs)


def pairing(cts: Any, ts: Any) -> tuple[float, float]:
    """Return Re Σ ct·t over two pytrees, without a conjugate, and the root of the sum of squares of its terms."""
    total, squares = 0.0, 0.0
    for ct, t in zip(tree.leaves(cts), tree.leaves(ts), strict=True):
        if is_inexact_type(ct) and is_inexact_type(t):
            wide = np.complex128 if np.iscomplexobj(ct) or np.iscomplexobj(t) else np.float64
            terms = (np.asarray(ct, wide) * np.asarray(t, wide)).real
            total += float(terms.sum())
            squares += float((terms * terms).sum())
    return total, float(np.sqrt(squares))

"""Calls of plain Python from inside recorded functions: `pure_callback`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import ArrayType, Params, type_of
from fgrad.ops.custom import callback_call
from fgrad.transforms.jvp import Forward
from fgrad.transforms.linearize import Linearize, LinearTracer, as_operand, check_callable
from fgrad.transforms.structured import bind_down, rule, traced_mask
from fgrad.transforms.transpose import Transpose, not_linear
from fgrad.transforms.vmap import Batch, to_front

METHODS = ("sequential", "expand_dims", "broadcast_all", "legacy_vectorized")


def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, vmap_method: str | None = None, **kwargs: Any
) -> Any:
    """Call a function of plain NumPy arrays, also where values are traced: at the time the recorded function runs.

    For code that no transform can follow, such as other libraries. It has no derivative: give it one by `custom_jvp` or
    `custom_vjp`.

    Args:
        callback: a function of arrays (or trees of them) without side effects.
        result_shape_dtypes: the tree of its result, of anything with shape and dtype.
        *args, **kwargs: its arguments, pytrees of arrays.
        vmap_method: what `vmap` makes of it: "sequential" calls it for one example after the other; "expand_dims" and
            "broadcast_all" call it once with a leading axis in all arguments, in the former of size 1 where there is
            no batch; "legacy_vectorized" leaves out that axis. None refuses.

    Returns:
        The result, of the tree and types of `result_shape_dtypes`.

    Raises:
        TypeError: `callback` is not callable, or (when it runs) its result has another tree or dtype.
        ValueError: it is differentiated; there is no such `vmap_method`, or none where `vmap` needs one; (when it runs)
            its result has another shape.

    Example:
        >>> import numpy as np, fgrad
        >>> @fgrad.jit
        ... def f(x):
        ...     like = fgrad.ShapeDtypeStruct(x.shape, x.dtype)
        ...     return fgrad.pure_callback(lambda x: x[::-1], like, x) * 2
        >>> f(np.array([1., 2.]))
        array([4., 2.])
    """
    check_callable("pure_callback", callback)
    if vmap_method is not None and vmap_method not in METHODS:
        raise ValueError(f"pure_callback: vmap_method must be one of {', '.join(METHODS)} or None, got {vmap_method!r}")
    leaves, in_tree = tree.flatten((args, kwargs))
    leaves = [as_operand(x, "an argument of pure_callback") for x in leaves]
    likes, out_tree = tree.flatten(result_shape_dtypes)
    types = tuple([ArrayType(tuple(x.shape), x.dtype) for x in likes])

    def flat(types: Sequence[ArrayType], *xs: Any) -> tuple[Any, ...]:
        args, kwargs = tree.unflatten(in_tree, [np.asarray(x) for x in xs])
        outs, found = tree.flatten(callback(*args, **kwargs))
        if found != out_tree:
            raise TypeError(f"pure_callback: the result must have the tree {out_tree}, got {found}")
        return tuple([_checked(x, t) for x, t in zip(outs, types, strict=True)])

    outs = callback_call(*leaves, callback=_Typed(flat, types), types=types, how=vmap_method)
    return tree.unflatten(out_tree, outs)


class _Typed:
    """A flat function that is told which types its results are to have."""

    def __init__(self, fun: Callable[..., tuple[Any, ...]], types: Sequence[ArrayType]):
        self.fun = fun
        self.types = tuple(types)
        self.__name__ = "callback"

    def __call__(self, *xs: Any) -> tuple[Any, ...]:
        return self.fun(self.types, *xs)


def _checked(x: Any, kind: ArrayType) -> Any:
    """Return one result as an array; TypeError or ValueError if it is not what was announced."""
    x = np.asarray(x)
    if x.shape != kind.shape:
        raise ValueError(f"pure_callback: a result must have shape {kind.shape}, got {x.shape}")
    if x.dtype != kind.dtype:
        raise TypeError(f"pure_callback: a result must have dtype {kind.dtype}, got {x.dtype}")
    return np.array(x)


def _refused(label: str) -> ValueError:
    return ValueError(
        f"{label}: Pure callbacks do not support JVP. Please use `fgrad.custom_jvp` or `custom_vjp` around the "
        "function that calls back, or fgrad.stop_gradient on its arguments."
    )


@rule(callback_call, Linearize)
def _callback_linearize(tape: Linearize, args: Sequence[Any], params: Params) -> Any:
    if any(x.__class__ is LinearTracer and x.interpreter is tape for x in args):
        raise _refused(tape.label)
    return tape.pass_on(callback_call, args, params)


@rule(callback_call, Forward)
def _callback_forward(forward: Forward, args: Sequence[Any], params: Params) -> Any:
    pairs = [forward.split(x) for x in args]
    if any(t is not None for _, t in pairs):
        raise _refused(forward.label)
    return bind_down(forward, callback_call, [x for x, _ in pairs], params)


@rule(callback_call, Transpose)
def _callback_transpose(linear: Transpose, args: Sequence[Any], params: Params) -> Any:
    if any(traced_mask(linear, args)):
        raise not_linear(linear, callback_call)
    return linear.pass_on(callback_call, args, params)


@rule(callback_call, Batch)
def _callback_batch(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    pairs = [batch.split(x) for x in args]
    if all(a is None for _, a in pairs):
        return batch.pass_on(callback_call, args, params)
    callback, types, how = params["callback"], params["types"], params["how"]
    size = batch.size
    batched = tuple([ArrayType((size, *t.shape), t.dtype) for t in types])
    mask = [a is not None for _, a in pairs]
    if how is None:
        raise ValueError(
            f"{batch.label}: pure_callback needs to be told what vmap makes of it: vmap_method="
            f"{' or '.join(repr(m) for m in METHODS)}"
        )
    if how == "sequential":
        new: Callable[..., Any] = functools.partial(_one_by_one, callback, types, size, mask)
    else:
        new = _Typed(callback.fun if isinstance(callback, _Typed) else callback, batched)
    values = [_placed(x, a, size, how) for x, a in pairs]
    outs = bind_down(batch, callback_call, values, {"callback": new, "types": batched, "how": how})
    return batch.wrap(callback_call, outs, 0)


def _placed(x: Any, axis: int | None, size: int, how: str) -> Any:
    """Return an argument as the callback is to get it."""
    if axis is not None or how == "broadcast_all":
        return to_front(x, axis, size)
    return np.reshape(x, (1, *type_of(x).shape)) if how == "expand_dims" else x


def _one_by_one(
    callback: Callable[..., Any], types: Sequence[ArrayType], size: int, mask: Sequence[bool], *xs: Any
) -> tuple[Any, ...]:
    """Call for one example after the other and stack the results."""
    outs = [np.empty((size, *t.shape), t.dtype) for t in types]
    for k in range(size):
        for out, y in zip(outs, callback(*[x[k] if m else x for x, m in zip(xs, mask, strict=True)]), strict=True):
            out[k] = y
    return tuple(outs)

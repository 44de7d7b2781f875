"""`torch.func`: the core's transforms, of functions of tensors.

Inside a transformed function tensors hold traced values. Tensors that require grad, given or closed over, are recorded
below the transforms: what these compute can be differentiated by the tape.
"""

from __future__ import annotations

import contextlib
import functools

from fgrad.extend import grad as _grad
from fgrad.extend import jacfwd as _jacfwd
from fgrad.extend import jacrev as _jacrev
from fgrad.extend import jvp as _jvp
from fgrad.extend import linearize as _linearize
from fgrad.extend import state
from fgrad.extend import value_and_grad as _value_and_grad
from fgrad.extend import vjp as _vjp
from fgrad.extend import vmap as _vmap

from . import views
from .methods.random import drawing
from .methods.table import leaves, mapped
from .modes import mode, set_grad_enabled
from .tape import Bottom, Recorded, recorder_below
from .tensor import Tensor, wrap_value

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap"]


def _raw(x):
    """Return tensors as values of the core: traced by the tape's recorder if they require grad."""
    recorder = recorder_below(state.interpreter)

    def value(item):
        if not isinstance(item, Tensor):
            return item
        return recorder.lift(item) if recorder and mode.enabled and views.requires_grad(item) else item._data

    return mapped(value, x)


def _tensors(x):
    def tensor(item):
        if item is None or isinstance(item, (str, Tensor)):
            return item
        return item.tensor if isinstance(item, Recorded) else wrap_value(item)

    return mapped(tensor, x)


def _on_values(func, differentiated=True):
    """Return a function of tensors as one of the core's values; within what is differentiated grad mode is on."""

    @functools.wraps(func)
    def call(*args, **kwargs):
        with set_grad_enabled(differentiated or mode.enabled):
            return _raw(func(*_tensors(args), **kwargs))

    return call


def _recording():
    """Return the context of a recorder below all transforms, for what depends on tensors that require grad."""
    needed = mode.enabled and recorder_below(state.interpreter) is None
    return Bottom() if needed else contextlib.nullcontext()


def _run(fun, *args, recorder=None, **kwargs):
    """Apply a transformed function of the core's values to tensors."""
    with recorder or _recording():
        out = fun(*_raw(args), **kwargs)
    return _tensors(out)


def _transformed(transform):
    """Return a transform of the core as one of functions of tensors."""

    @functools.wraps(transform)
    def of(func, *options, **keywords):
        inner = transform(_on_values(func), *options, **keywords)

        @functools.wraps(func)
        def call(*args, **kwargs):
            return _run(inner, *args, **kwargs)

        return call

    return of


def _renamed(transform):
    """Return a transform of the core that takes torch's `argnums` and `has_aux`."""

    def named(func, argnums=0, has_aux=False):
        return transform(func, argnums=argnums, has_aux=has_aux)

    return named


grad = _transformed(_renamed(_grad))
jacrev = _transformed(_renamed(_jacrev))
jacfwd = _transformed(_renamed(_jacfwd))


def hessian(func, argnums=0):
    """Return the function that computes the Hessian of `func`, forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)


def grad_and_value(func, argnums=0, has_aux=False):
    """Return the function that computes the gradient of `func` and its value, in this order."""
    both = _transformed(_renamed(_value_and_grad))(func, argnums, has_aux)

    @functools.wraps(func)
    def call(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return call


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """Return `func` mapped over dimension `in_dims` of its arguments, results stacked along `out_dims`.

    Args:
        func: a function of tensors, or of tuples, lists and dicts of them.
        in_dims, out_dims: an int for all, or one for each (None: not mapped).
        randomness: "error" refuses random draws, "same" draws once for all, "different" draws for each.
        chunk_size: accepted; all is computed at once.

    Raises:
        ValueError: sizes differ, or arguments or results are no tensors.
        RuntimeError: a random draw with `randomness="error"`.

    Example:
        >>> import fgrad.compat as torch
        >>> torch.func.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
        tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    name = getattr(func, "__name__", repr(func))

    def checked(*args, **kwargs):
        with drawing(randomness):
            out = func(*args, **kwargs)
        for item in leaves(out):
            if not isinstance(item, Tensor):
                raise ValueError(
                    f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(item)}. Did you mean to set "
                    "out_dims= to None for output?"
                )
        return out

    inner = _vmap(_on_values(functools.wraps(func)(checked), differentiated=False), in_axes=in_dims, out_axes=out_dims)

    @functools.wraps(func)
    def call(*args, **kwargs):
        _check_mapped(name, in_dims, args)
        return _run(inner, *args, **kwargs)

    return call


def _check_mapped(name, in_dims, args):
    """Raise ValueError in torch's words unless all that is mapped are tensors of one size in the mapped dimension."""
    dims = tuple(in_dims) if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
    sizes = []
    for dim, arg in zip(dims, args):
        for item in leaves(arg) if isinstance(dim, int) else ():
            if not isinstance(item, Tensor):
                raise ValueError(
                    f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but the input is "
                    f"of type {type(item)}. We cannot vmap over non-Tensor arguments, please use None as the "
                    "respective in_dim"
                )
            if -item.ndim <= dim < item.ndim:
                sizes.append(item._data.shape[dim])
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )


def _with_linear(transform, func, primals, has_aux):
    """Return the results of a core transform that gives outputs, a linear function and maybe more."""
    recorder = _recording()
    with recorder:
        out, linear, *aux = transform(_on_values(func), *_raw(primals), has_aux=has_aux)
    return _tensors(out), functools.partial(_run, linear, recorder=recorder), _tensors(aux)


def vjp(func, *primals, has_aux=False):
    """Return `func(*primals)` and the function that pulls cotangents back."""
    out, pull, aux = _with_linear(_vjp, func, primals, has_aux)
    several = isinstance(out, tuple)

    def vjp_fn(*cotangents):
        return pull(cotangents if several and len(cotangents) > 1 else cotangents[0])

    return (out, vjp_fn, *aux)


def linearize(func, *primals):
    """Return `func(*primals)` and the function that pushes tangents forward there."""
    out, push, _ = _with_linear(_linearize, func, primals, False)
    return out, push


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """Return `func(*primals)` and its derivative along `tangents`; RuntimeError unless both are tuples of one form."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    return _run(lambda *both: _jvp(_on_values(func), *both, has_aux=has_aux), primals, tangents)

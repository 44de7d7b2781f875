"""`torch.func`: the core's transforms, of functions of tensors.

Inside a transformed function tensors hold traced values; what is recorded on the tape outside is not seen.
"""

from __future__ import annotations

import functools

from fgrad.extend import grad as _grad
from fgrad.extend import jacfwd as _jacfwd
from fgrad.extend import jacrev as _jacrev
from fgrad.extend import jvp as _jvp
from fgrad.extend import value_and_grad as _value_and_grad
from fgrad.extend import vjp as _vjp
from fgrad.extend import vmap as _vmap

from .methods.table import found_in, mapped
from .tensor import Tensor, wrap_value

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]


def _raw(x):
    return mapped(lambda item: item._data if isinstance(item, Tensor) else item, x)


def _tensors(x):
    return mapped(lambda item: item if item is None or isinstance(item, (str, Tensor)) else wrap_value(item), x)


def _on_values(func):
    """Return a function of tensors as one of the core's values."""

    @functools.wraps(func)
    def call(*args, **kwargs):
        return _raw(func(*_tensors(args), **kwargs))

    return call


def _transformed(transform):
    """Return a transform of the core as one of functions of tensors."""

    @functools.wraps(transform)
    def of(func, *options, **keywords):
        inner = transform(_on_values(func), *options, **keywords)

        @functools.wraps(func)
        def call(*args, **kwargs):
            _refuse_recorded(args)
            return _tensors(inner(*_raw(args), **kwargs))

        return call

    return of


def _refuse_recorded(args):
    """Raise RuntimeError for tensors that require grad: their history would be cut without a word."""
    if any(t.requires_grad for t in found_in(args)):
        raise RuntimeError(
            "torch.func transforms take tensors that do not require grad: pass x.detach(), or use torch.autograd"
        )


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
    """Return `func` mapped over dimension `in_dims` of its arguments, results stacked along `out_dims`."""
    return _transformed(lambda fun: _vmap(fun, in_axes=in_dims, out_axes=out_dims))(func)


def vjp(func, *primals, has_aux=False):
    """Return `func(*primals)` and the function that pulls cotangents back."""
    _refuse_recorded(primals)
    out, pull, *aux = _vjp(_on_values(func), *_raw(primals), has_aux=has_aux)
    given = isinstance(out, tuple)

    def vjp_fn(*cotangents):
        return_value = _tensors(pull(_raw(cotangents if given and len(cotangents) > 1 else cotangents[0])))
        return return_value

    return (_tensors(out), vjp_fn, *_tensors(aux))


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """Return `func(*primals)` and its derivative along `tangents`."""
    _refuse_recorded(primals)
    return _tensors(_jvp(_on_values(func), _raw(primals), _raw(tangents), has_aux=has_aux))

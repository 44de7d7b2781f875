"""NumPy's protocols on tensors: `np.sin(t)` and `np.concatenate([t, u])` record.

A function without a counterpart sees `t.numpy()`, with torch's error if `t` requires grad.
"""

from __future__ import annotations

import numpy as np

from fgrad.extend import function_table, ufunc_table

from ..tensor import Tensor, wrap
from .table import found_in, mapped, run


def _plain(x):
    return x.numpy() if isinstance(x, Tensor) else x


def _node(fun):
    return fun.__name__.capitalize() + "Backward0"


def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
    if method == "__call__" and ufunc in ufunc_table and not kwargs:
        with np.errstate(all="ignore"):
            return run(lambda *xs: ufunc(*xs), inputs, {}, _node(ufunc))
    inputs, kwargs = mapped(_plain, (inputs, kwargs))
    found = getattr(ufunc, method)(*inputs, **kwargs)
    return wrap(np.asarray(found)) if "out" not in kwargs and isinstance(found, (np.ndarray, np.generic)) else found


def __array_function__(self, func, types, args, kwargs):
    ours = getattr(func, "runs_on_tracers", False)  # tensors in, tensors out
    if ours or func in function_table and any(t.requires_grad for t in found_in((args, kwargs))):
        return run(func, args, kwargs, _node(func))
    return func(*mapped(_plain, tuple(args)), **mapped(_plain, dict(kwargs)))


Tensor.__array_ufunc__ = __array_ufunc__
Tensor.__array_function__ = __array_function__

"""Functions that apply a function of the user's: to every element, along an axis, over axes."""

from __future__ import annotations

import functools
import math
import re

import numpy as np

from fgrad.core import state
from fgrad.numpy.arguments import as_array, cast, counterpart, one_axis, promoted
from fgrad.ops import shape as s

__all__ = "apply_along_axis apply_over_axes vectorize".split()


@counterpart(np.apply_along_axis)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """Apply a function of vectors to every line along an axis; its result takes the axis' place."""
    x = as_array(arr)
    axis = one_axis(axis, x.ndim)
    lines = s.transpose(x, perm=(*[i for i in range(x.ndim) if i != axis], axis))
    lead = lines.shape[:-1]
    rows = [as_array(func1d(lines[i], *args, **kwargs)) for i in np.ndindex(*lead)]
    out = s.concatenate(*[s.reshape(row, shape=(1, *row.shape)) for row in promoted(*rows)], axis=0)
    out = s.reshape(out, shape=(*lead, *rows[0].shape))
    inner = out.ndim - len(lead)
    order = [*range(axis), *range(len(lead), len(lead) + inner), *range(axis, len(lead))]
    return s.transpose(out, perm=tuple(order))


@counterpart(np.apply_over_axes)
def apply_over_axes(func, a, axes):
    """Apply a reduction `func(a, axis)` over several axes in turn; reduced axes are kept at size 1."""
    x = as_array(a)
    for axis in np.atleast_1d(axes).tolist():
        axis = one_axis(axis, x.ndim)
        out = as_array(func(x, axis))
        x = out if out.ndim == x.ndim else s.reshape(out, shape=(*out.shape[:axis], 1, *out.shape[axis:]))
    return x


def vectorize(pyfunc=None, otypes=None, doc=None, excluded=None, cache=False, signature=None):
    """Return a function of arrays that applies a function of single elements to each, as NumPy's of that name.

    Under a transform `pyfunc` runs once, by `fgrad.vmap`: what it does must not depend on its arguments' values.

    Args:
        pyfunc: a function of numbers, or of arrays of the shapes that `signature` names; None to use as a decorator.
        otypes: the dtypes of the results, as letters or as a list.
        doc: the documentation of the returned function.
        excluded: positions and names of arguments that are passed on as they are.
        cache: taken for NumPy's sake; nothing is computed twice.
        signature: the axes that pyfunc takes and gives, such as "(n),(n)->()".

    Raises:
        ValueError: the signature is malformed, or does not fit the arguments.

    Example:
        >>> import fgrad, fgrad.numpy as fnp
        >>> from fgrad.lax import cond
        >>> ramp = fnp.vectorize(lambda x, slope: cond(x > 0, lambda: slope * x, lambda: 0.0 * x))
        >>> fgrad.grad(lambda x: ramp(x, 2.0).sum())(fnp.array([-1.0, 3.0]))
        array([0., 2.])
    """
    if pyfunc is None:
        return functools.partial(vectorize, otypes=otypes, doc=doc, excluded=excluded, cache=cache, signature=signature)
    numpys = np.vectorize(pyfunc, otypes, doc, excluded, cache, signature)
    fixed, axes = frozenset(excluded or ()), _core_axes(signature)

    @functools.wraps(pyfunc)
    def function(*args, **kwargs):
        if state.interpreter is None:
            return numpys(*args, **kwargs)
        names = [*range(len(args)), *kwargs]
        given = dict(zip(names, [*args, *kwargs.values()], strict=True))
        mapped = [name for name in names if name not in fixed]
        if axes is not None and len(axes) != len(mapped):
            raise ValueError(f"vectorize: the signature '{signature}' has {len(axes)} inputs, got {len(mapped)}")

        def of_mapped(*xs):
            full = given | dict(zip(mapped, xs, strict=True))
            return pyfunc(*[full[k] for k in range(len(args))], **{name: full[name] for name in kwargs})

        return _map_elements(of_mapped, [as_array(given[name]) for name in mapped], axes or (0,) * len(mapped), numpys)

    function.__doc__ = doc or pyfunc.__doc__
    return function


def _core_axes(signature):
    """Return how many axes of each input a signature such as "(m,n),()->(m)" names; None without one."""
    if signature is None:
        return None
    inputs = signature.partition("->")[0]
    return tuple([len(re.findall(r"\w+", group)) for group in re.findall(r"\(([^()]*)\)", inputs)])


def _map_elements(function, xs, axes, numpys):
    """Return a function of elements, applied to arrays of which the last `axes` belong to an element each."""
    from fgrad.transforms.vmap import vmap

    for k, (x, own) in enumerate(zip(xs, axes, strict=True)):
        if x.ndim < own:
            raise ValueError(f"vectorize: input {k} needs {own} axes by the signature, got shape {x.shape}")
    cores = [x.shape[x.ndim - own :] for x, own in zip(xs, axes, strict=True)]
    lead = np.broadcast_shapes(*[x.shape[: x.ndim - own] for x, own in zip(xs, axes, strict=True)])
    rows = (math.prod(lead),)
    flat = [s.reshape(s.broadcast(x, shape=lead + core), shape=rows + core) for x, core in zip(xs, cores, strict=True)]
    out = vmap(function)(*flat) if flat else function()
    single = not isinstance(out, tuple)
    results = [as_array(y) for y in ((out,) if single else out)]
    if numpys.otypes is not None:
        results = [cast(y, dtype) for y, dtype in zip(results, numpys.otypes, strict=True)]
    results = [s.reshape(y, shape=lead + y.shape[1:]) for y in results] if flat else results
    return results[0] if single else tuple(results)

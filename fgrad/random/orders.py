"""Random orders and choices."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fgrad.core import Tracer, type_of
from fgrad.numpy.arguments import as_array, cast, one_axis
from fgrad.numpy.sorting import searchsorted
from fgrad.ops import elementwise as e
from fgrad.ops import index as ix
from fgrad.ops import random as r
from fgrad.ops import reduce
from fgrad.ops import shape as s
from fgrad.ops import sort as so
from fgrad.ops.along import take_along
from fgrad.random.arguments import Shape, as_sizes, takes_key
from fgrad.random.draws import randint, standard_gumbel
from fgrad.random.keys import split


@takes_key
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """Return an array in random order along an axis, or a random permutation of the numbers below an integer.

    Args:
        key: a key.
        x: an array, or an integer n, which stands for arange(n).
        axis: the axis along which the parts of `x` change places.
        independent: order every vector along `axis` on its own.

    Raises:
        TypeError: key or x are of the wrong kind.
        ValueError: n is negative. AxisError: there is no such axis.

    Example:
        >>> import fgrad
        >>> fgrad.random.permutation(fgrad.random.key(1), 5)
        array([3, 2, 0, 1, 4])
    """
    x = _numbers_below(x, "permutation")
    axis = one_axis(axis, x.ndim)
    if independent or x.ndim == 1:
        return _shuffled(key, x, axis)
    return _taken(x, _shuffled(key, np.arange(x.shape[axis]), 0), axis)


def _numbers_below(x: Any, name: str) -> Any:
    """Return `x` as an array with axes; an integer n becomes arange(n)."""
    if not isinstance(x, Tracer) and np.ndim(x) == 0:
        n = operator.index(x)
        if n < 0:
            raise ValueError(f"random.{name}: the number of elements must not be negative, got {n}")
        return np.arange(n)
    x = as_array(x)
    if not x.ndim:
        raise TypeError(f"random.{name}: expected an array with axes or a Python int, got {x}")
    return x


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """Return `x` sorted by random words along an axis, so often that ties among the words do not matter."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(0xFFFFFFFF))
    for _ in range(rounds):
        key, drawing = split(key)
        order = so.argsort(r.random_bits(drawing, shape=x.shape, width=32), axis=axis)
        x = take_along(x, order, axis=axis)
    return x if rounds else s.copy(x)


def _taken(x: Any, i: Any, axis: int) -> Any:
    """Return the parts of `x` at indices of any shape, which stands where `axis` was."""
    out = ix.gather(x, s.reshape(i, shape=(1, *i.shape)), axes=(axis,))
    inner = i.ndim
    return s.transpose(out, perm=(*range(inner, inner + axis), *range(inner), *range(inner + axis, out.ndim)))


@takes_key
def choice(key: Any, a: Any, shape: Shape = (), replace: bool = True, p: Any = None, axis: int = 0) -> Any:
    """Return parts of an array, or numbers below an integer, chosen at random.

    Args:
        key: a key.
        a: an array, or an integer n, which stands for arange(n).
        shape: how many to choose: an int or a sequence of ints.
        replace: whether a part may be chosen again.
        p: (n,), the probabilities of the parts, up to a common factor; all alike if None.
        axis: the axis of `a` to choose along; in the result `shape` stands in its place.

    Raises:
        TypeError: key or a are of the wrong kind.
        ValueError: there are fewer parts than to be chosen without replacement, or `p` is of another length.

    Example:
        >>> import fgrad
        >>> fgrad.random.choice(fgrad.random.key(0), 10, (4,), replace=False)
        array([0, 1, 8, 5])
    """
    shape, a = as_sizes(shape, "choice"), _numbers_below(a, "choice")
    axis = one_axis(axis, a.ndim)
    n, count = a.shape[axis], math.prod(shape)
    if count and not n:
        raise ValueError("random.choice: there is nothing to choose from, a is empty")
    if not replace and count > n:
        raise ValueError(f"random.choice: cannot choose {count} of {n} without replacement")
    if p is not None:
        chosen = _weighted(key, as_array(p), n, shape, replace)
    elif replace:
        chosen = randint(key, shape, 0, n) if count else np.zeros(shape, int)
    else:
        chosen = s.reshape(permutation(key, n)[:count], shape=shape)
    return _taken(a, chosen, axis)


def _weighted(key: Any, p: Any, n: int, shape: tuple[int, ...], replace: bool) -> Any:
    """Return random indices below n: by inversion, or without replacement as the largest of perturbed logarithms."""
    if p.shape != (n,):
        raise ValueError(f"random.choice: p must have shape ({n},), got {type_of(p)}")
    p = p if p.dtype.kind == "f" else cast(p, np.float64)
    if replace:
        steps = reduce.cumsum(p, axis=0, reverse=False)
        u = r.random_uniform(key, shape=shape, dtype=p.dtype)
        return searchsorted(steps, e.mul(steps[-1], e.sub(1, u)))
    with np.errstate(divide="ignore"):  # what has probability 0 comes last
        weights = e.add(e.log(p), standard_gumbel(key, (n,), p.dtype))
    return s.reshape(so.top_k(weights, k=math.prod(shape))[1], shape=shape)


@takes_key
def categorical(key: Any, logits: Any, axis: int = -1, shape: Shape | None = None, replace: bool = True) -> Any:
    """Return random indices along an axis, with probabilities softmax(logits).

    Args:
        key: a key.
        logits: logarithms of the probabilities, up to a common term; -inf for what is never drawn.
        axis: the axis of the categories.
        shape: the shape of the result, whose last sizes are those of `logits` without `axis`; just these if None.
        replace: whether the draws of one row may agree; if not, they run over the leading axes of `shape`.

    Raises:
        TypeError: key or logits are of the wrong kind.
        ValueError: `shape` does not fit, or there are fewer categories than to be drawn without replacement.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.random.categorical(fgrad.random.key(0), np.log([0.1, 0.9]), shape=(5,))
        array([1, 0, 1, 1, 1])
    """
    logits = as_array(logits)
    if logits.dtype.kind != "f":
        logits = cast(logits, np.float64)
    axis = one_axis(axis, logits.ndim)
    batch = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    shape = batch if shape is None else as_sizes(shape, "categorical")
    extra = len(shape) - len(batch)
    if extra < 0 or shape[extra:] != batch:
        raise ValueError(f"random.categorical: shape must end in {batch}, for logits {type_of(logits)}; got {shape}")
    if replace:
        noise = standard_gumbel(key, (*shape[:extra], *logits.shape), logits.dtype)
        return reduce.argmax(e.add(noise, logits), axis=axis + extra)
    count = math.prod(shape[:extra])
    if count > logits.shape[axis]:
        raise ValueError(f"random.categorical: cannot draw {count} of {logits.shape[axis]} without replacement")
    noisy = s.move_axis(e.add(standard_gumbel(key, logits.shape, logits.dtype), logits), axis, logits.ndim - 1)
    return s.reshape(s.move_axis(so.top_k(noisy, k=count)[1], len(batch), 0), shape=shape)

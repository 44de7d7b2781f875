"""Draws of independent numbers from the usual distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fgrad.core import type_of
from fgrad.numpy.arguments import as_array, cast
from fgrad.ops import elementwise as e
from fgrad.ops import random as r
from fgrad.ops import shape as s
from fgrad.ops import special
from fgrad.random.arguments import Shape, as_sizes, dtype_of, fitted, floating, takes_key
from fgrad.random.keys import split


@takes_key
def bits(key: Any, shape: Shape = (), dtype: Any = np.uint64) -> Any:
    """Return random unsigned integers, every bit a fair coin.

    Args:
        key: a key.
        shape: an int or a sequence of ints.
        dtype: uint8, uint16, uint32 or uint64.

    Example:
        >>> import fgrad
        >>> fgrad.random.bits(fgrad.random.key(0), (3,), "uint8")
        array([167, 146,  40], dtype=uint8)
    """
    dtype = dtype_of(dtype, "bits", "u", "an unsigned integer type")
    return r.random_bits(key, shape=as_sizes(shape, "bits"), width=8 * dtype.itemsize)


@takes_key
def uniform(key: Any, shape: Shape = (), dtype: Any = float, minval: Any = 0.0, maxval: Any = 1.0) -> Any:
    """Return random numbers, uniform in [minval, maxval).

    Args:
        key: a key.
        shape: an int or a sequence of ints.
        dtype: float16, float32 or float64.
        minval, maxval: numbers or arrays that broadcast to `shape`; differentiable. The upper end is met only where
            minval + (maxval - minval) * u rounds to it.

    Raises:
        TypeError: key or dtype are of the wrong kind.
        ValueError: a bound does not broadcast to `shape`.

    Example:
        >>> import fgrad
        >>> fgrad.random.uniform(fgrad.random.key(42), (3,)).round(4)
        array([0.4267, 0.015 , 0.5741])
    """
    shape, dtype = as_sizes(shape, "uniform"), floating(dtype, "uniform")
    u = r.random_uniform(key, shape=shape, dtype=dtype)
    if minval.__class__ is float and maxval.__class__ is float and (minval, maxval) == (0, 1):
        return u
    low = fitted(minval, shape, dtype, "uniform: minval")
    high = fitted(maxval, shape, dtype, "uniform: maxval")
    return e.add(e.mul(u, e.sub(high, low)), low)


@takes_key
def normal(key: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Return random numbers from the standard normal distribution.

    Args:
        key: a key.
        shape: an int or a sequence of ints.
        dtype: float16, float32, float64, or a complex type for numbers of variance 1 with independent parts.

    Example:
        >>> import fgrad
        >>> fgrad.random.normal(fgrad.random.key(42), (3,)).round(4)
        array([-0.1847, -2.1698,  0.1869])
    """
    shape = as_sizes(shape, "normal")
    dtype = dtype_of(dtype, "normal", "fc", "a floating or complex type of at most 64 bits a part")
    if dtype.kind == "f":
        return r.random_normal(key, shape=shape, dtype=dtype)
    part = np.finfo(dtype).dtype
    real, imag = [r.random_normal(k, shape=shape, dtype=part) for k in split(key)]
    return (real + imag * dtype.type(1j)) / part.type(math.sqrt(2))


@takes_key
def randint(key: Any, shape: Shape, minval: Any, maxval: Any, dtype: Any = int) -> Any:
    """Return random integers, uniform in [minval, maxval).

    Args:
        key: a key.
        shape: an int or a sequence of ints.
        minval, maxval: integers, or integer arrays that broadcast to `shape`. Where arrays leave no number between
            them, minval is drawn.
        dtype: an integer type; it must hold minval and maxval - 1.

    Raises:
        TypeError: a bound or the dtype is not of an integer type.
        ValueError: bounds that are numbers do not fit into the dtype, or leave no number between them.

    Example:
        >>> import fgrad
        >>> fgrad.random.randint(fgrad.random.key(0), (5,), 0, 10)
        array([5, 1, 5, 7, 3])
    """
    shape, dtype = as_sizes(shape, "randint"), dtype_of(dtype, "randint", "iu", "an integer type")
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.int32)  # more bits than the range needs, to be fair
    width = 8 * wide.itemsize
    rows = shape or (1,)  # NumPy warns of overflow, which is meant here, where arrays have no axes
    high, low = [r.random_bits(k, shape=rows, width=width) for k in split(key)]
    first, span = _integer_range(minval, maxval, shape, dtype, wide)
    if span is None:  # all numbers there are
        offset = low
    else:  # (high * 2**width + low) mod span is nearly fair; 2**width is made of two halves
        half = e.rem(np.array([1 << width // 2], low.dtype), span)
        offset = e.add(e.mul(e.rem(high, span), e.rem(e.mul(half, half), span)), e.rem(low, span))
        offset = e.rem(offset, span)
    return s.reshape(cast(e.add(first, cast(offset, wide)), dtype), shape=shape)


def _integer_range(minval: Any, maxval: Any, shape: Any, dtype: Any, wide: Any) -> tuple[Any, Any]:
    """Return the first number of the range, of dtype `wide`, and how many there are, unsigned: arrays with axes.

    Instead of the second, None for all numbers of `wide`.
    """
    for name, bound in (("minval", minval), ("maxval", maxval)):
        if type_of(bound).dtype.kind not in "iu":
            raise TypeError(f"random.randint: {name} must be an integer, got {type_of(bound)}")
    unsigned = np.dtype(f"uint{8 * wide.itemsize}")
    if minval.__class__ is int and maxval.__class__ is int:
        info = np.iinfo(dtype)
        if not info.min <= minval < maxval <= info.max + 1:
            raise ValueError(
                f"random.randint: must have minval < maxval, both within {dtype} (maxval may be one past its end); got "
                f"minval={minval} and maxval={maxval}"
            )
        size = maxval - minval
        return np.array([minval], wide), np.array([size], unsigned) if size >> 8 * wide.itemsize == 0 else None
    low, high = fitted(minval, shape, wide, "randint: minval"), fitted(maxval, shape, wide, "randint: maxval")
    low, high = [s.reshape(x, shape=x.shape or (1,)) for x in (low, high)]
    return low, e.select(e.lt(low, high), cast(e.sub(high, low), unsigned), np.ones((), unsigned))


@takes_key
def bernoulli(key: Any, p: Any = 0.5, shape: Shape | None = None) -> Any:
    """Return random bools, True with probability `p`.

    Args:
        key: a key.
        p: numbers in [0, 1].
        shape: an int or a sequence of ints, to which `p` broadcasts; that of `p` if None.

    Example:
        >>> import fgrad
        >>> fgrad.random.bernoulli(fgrad.random.key(0), 0.3, (4,))
        array([False,  True, False, False])
    """
    p = as_array(p)
    p = p if p.dtype.kind == "f" else cast(p, np.float64)
    shape = p.shape if shape is None else as_sizes(shape, "bernoulli")
    p = fitted(p, shape, p.dtype, "bernoulli: p")
    return e.lt(r.random_uniform(key, shape=shape, dtype=p.dtype), p)


# ------------------------------------------------------------------------------------- draws by transformation


@takes_key
def exponential(key: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Return random numbers from the exponential distribution of mean 1.

    Takes the arguments of `normal`, real dtypes alone.

    Example:
        >>> import fgrad
        >>> fgrad.random.exponential(fgrad.random.key(42), (3,)).round(4)
        array([0.5564, 0.0151, 0.8537])
    """
    u = r.random_uniform(key, shape=as_sizes(shape, "exponential"), dtype=floating(dtype, "exponential"))
    return e.neg(e.log1p(e.neg(u)))


@takes_key
def gumbel(key: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Return random numbers from the standard Gumbel distribution, -log(-log(u)) for uniform u.

    Takes the arguments of `normal`, real dtypes alone.

    Example:
        >>> import fgrad
        >>> fgrad.random.gumbel(fgrad.random.key(42), (3,)).round(4)
        array([ 0.1606, -1.4349,  0.589 ])
    """
    return standard_gumbel(key, as_sizes(shape, "gumbel"), floating(dtype, "gumbel"))


def standard_gumbel(key: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return what `gumbel` does, of arguments that are known to be right."""
    u = r.random_uniform(key, shape=shape, dtype=dtype)
    return e.neg(e.log(e.neg(e.log(e.add(u, np.finfo(dtype).tiny)))))  # away from 0, whose logarithm is infinite


@takes_key
def laplace(key: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Return random numbers from the Laplace distribution of mean 0 and scale 1.

    Takes the arguments of `normal`, real dtypes alone.

    Example:
        >>> import fgrad
        >>> fgrad.random.laplace(fgrad.random.key(42), (3,)).round(4)
        array([ 0.1585,  3.5059, -0.1605])
    """
    shape, dtype = as_sizes(shape, "laplace"), floating(dtype, "laplace")
    u = _between(key, shape, dtype, np.finfo(dtype).epsneg - 1, 1)
    return e.mul(e.sign(u), e.log1p(e.neg(e.abs(u))))


def _between(key: Any, shape: tuple[int, ...], dtype: np.dtype[Any], low: Any, high: Any) -> Any:
    """Return uniform numbers between bounds, which are taken in `dtype`."""
    low, high = dtype.type(low), dtype.type(high)
    return e.add(e.mul(r.random_uniform(key, shape=shape, dtype=dtype), high - low), low)


@takes_key
def truncated_normal(key: Any, lower: Any, upper: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Return random numbers from the standard normal distribution, given that they lie between `lower` and `upper`.

    Args:
        key: a key.
        lower, upper: numbers or arrays; differentiable, by the draw's quantile.
        shape: an int or a sequence of ints to which the bounds broadcast; their common shape if None.
        dtype: float16, float32 or float64.

    Raises:
        TypeError: key or dtype are of the wrong kind.
        ValueError: a bound does not broadcast to `shape`.

    Example:
        >>> import fgrad
        >>> fgrad.random.truncated_normal(fgrad.random.key(42), -1.0, 1.0, (3,)).round(4)
        array([-0.1257, -0.9585,  0.1272])
    """
    dtype = floating(dtype, "truncated_normal")
    lower, upper = cast(as_array(lower), dtype), cast(as_array(upper), dtype)
    shape = np.broadcast_shapes(lower.shape, upper.shape) if shape is None else as_sizes(shape, "truncated_normal")
    lower = fitted(lower, shape, dtype, "truncated_normal: lower")
    upper = fitted(upper, shape, dtype, "truncated_normal: upper")
    root = dtype.type(math.sqrt(2))
    low, high = special.erf(e.div(lower, root)), special.erf(e.div(upper, root))
    u = r.random_uniform(key, shape=shape, dtype=dtype)
    x = e.mul(special.erfinv(e.add(e.mul(u, e.sub(high, low)), low)), root)
    inside = e.nextafter(lower, dtype.type(np.inf)), e.nextafter(upper, dtype.type(-np.inf))
    return e.clamp(x, *[s.stop_gradient(bound) for bound in inside])  # rounding may reach a bound

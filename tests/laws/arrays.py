"""Arrays to try primitives on: values that keep clear of kinks and ties, special values, and every memory layout."""

import numpy as np
from hypothesis import strategies as st

FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTS = ("int32", "int64", "uint8")
INEXACT = (*FLOATS, *COMPLEX)
EVERY = (*INEXACT, *INTS, "bool")

SHAPES = ((), (1,), (3,), (0,), (2, 3), (3, 1), (2, 0), (2, 1, 3))
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-8, -30.0, 1e4, np.inf, -np.inf, np.nan)

shapes = st.sampled_from(SHAPES)
axis_shapes = st.sampled_from([s for s in SHAPES if s])
seeds = st.integers(0, 2**32 - 1)


def domain_of(dtype, domain, ints):
    """Return the bounds to draw numbers of a dtype from."""
    lo, hi = ints if np.dtype(dtype).kind in "iu" else domain
    return (max(lo, 0), hi) if np.dtype(dtype).kind == "u" else (lo, hi)


def values(rng, shape, dtype, domain=(-2.0, 2.0), ints=(-4, 5), place=0):
    """Return an array of numbers between the bounds.

    Floating numbers are distinct points of a grid whose offset depends on `place`, the number of the input: no two
    inputs tie, and none falls on a multiple of 1/2, where rounding and choice have their kinks.
    """
    dtype = np.dtype(dtype)
    lo, hi = domain_of(dtype, domain, ints)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(lo, hi, shape), dtype)
    real = _grid(rng, shape, lo, hi, place)
    return np.asarray(real + 1j * _grid(rng, shape, lo, hi, place + 2) if dtype.kind == "c" else real, dtype)


def _grid(rng, shape, lo, hi, place):
    size = int(np.prod(shape))
    steps = max(64, 1 << size.bit_length())
    points = rng.permutation(steps)[:size] + (0.31, 0.53, 0.71, 0.17)[place % 4]
    return (lo + (hi - lo) * points / steps).reshape(shape)


def with_special(rng, x):
    """Return a floating array with some entries replaced by zeros, infinities, NaN and numbers at kinks."""
    if x.dtype.kind not in "fc":
        return x
    special = rng.choice(SPECIAL, x.shape)
    with np.errstate(all="ignore"):
        return np.where(rng.random(x.shape) < 0.4, special, x).astype(x.dtype)


def _backwards(x):
    return x[(slice(None, None, -1),) * x.ndim].copy()[(slice(None, None, -1),) * x.ndim]


def _every_other(x):
    out = np.zeros(tuple(2 * n for n in x.shape), x.dtype)
    view = out[(slice(None, None, 2),) * x.ndim]
    view[...] = x
    return view


def _read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "negative strides": _backwards,
    "gaps": _every_other,
    "read-only": _read_only,
}
layouts = st.sampled_from(sorted(LAYOUTS))


def laid_out(draw, x):
    """Return an array with the same values in a drawn memory layout."""
    return LAYOUTS[draw(layouts)](x) if x.ndim else x

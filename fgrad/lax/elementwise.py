"""`jax.lax`'s elementwise functions: those of `fgrad.numpy`, and the few that differ in meaning.

Where `jax.lax` wants equal shapes and dtypes, these broadcast and promote as NumPy does.
"""

# ruff: noqa: F401, F811 -- names are imported to be offered here; two are also parameters of jax's clamp

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from fgrad.numpy import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cbrt,
    ceil,
    clip,
    conj,
    cos,
    cosh,
    exp,
    exp2,
    expm1,
    floor,
    imag,
    log,
    log1p,
    nextafter,
    pow,
    real,
    reciprocal,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    where,
)
from fgrad.numpy import equal as eq
from fgrad.numpy import fmod as rem
from fgrad.numpy import greater as gt
from fgrad.numpy import greater_equal as ge
from fgrad.numpy import isfinite as is_finite
from fgrad.numpy import left_shift as shift_left
from fgrad.numpy import less as lt
from fgrad.numpy import less_equal as le
from fgrad.numpy import maximum as max
from fgrad.numpy import minimum as min
from fgrad.numpy import multiply as mul
from fgrad.numpy import negative as neg
from fgrad.numpy import not_equal as ne
from fgrad.numpy import right_shift as shift_right_arithmetic
from fgrad.numpy import subtract as sub
from fgrad.numpy.arguments import as_array, inexact
from fgrad.ops import complex as c
from fgrad.ops import elementwise as e

__all__ = """
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor cbrt ceil clamp complex
conj cos cosh div eq exp exp2 expm1 floor ge gt imag integer_pow is_finite le log log1p logistic lt max min mul ne neg
nextafter pow real reciprocal rem round RoundingMethod rsqrt select select_n shift_left shift_right_arithmetic sign
sin sinh sqrt square sub tan tanh
""".split()


class RoundingMethod(enum.IntEnum):
    """Where `round` takes numbers halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def div(x: Any, y: Any) -> Any:
    """Divide; integers are rounded towards zero.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.div(np.array([-7, 7]), 2), lax.div(np.array([1.]), 2.)
        (array([-3,  3]), array([0.5]))
    """
    x, y = as_array(x), as_array(y)
    if x.dtype.kind in "iu" and y.dtype.kind in "iu":
        return e.floor_divide(x - e.fmod(x, y), y)
    return e.div(x, y)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """Round to the nearest integers, those halfway as `rounding_method` says; the derivative is zero.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.round(np.array([0.5, 1.5, -2.5])), lax.round(np.array([2.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
        (array([ 1.,  2., -3.]), array([2.]))
    """
    x = as_array(x)
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return e.rint(x)
    whole = e.trunc(x)
    with np.errstate(invalid="ignore"):  # inf - inf
        halfway = e.abs(x - whole) >= 0.5
    return whole + where(halfway, e.sign(x), x.dtype.type(0))


def clamp(min: Any, x: Any, max: Any) -> Any:
    """Return x between `min` and `max`; at the bounds the derivative goes to x, outside to the bound.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.clamp(0., np.array([-1., 0.5, 2.]), 1.)
        array([0. , 0.5, 1. ])
    """
    return clip(x, min, max)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Return `on_true` where `pred` holds, else `on_false`.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.select(np.array([True, False]), np.array([1., 2.]), np.array([3., 4.]))
        array([1., 4.])
    """
    return where(pred, on_true, on_false)


def select_n(which: Any, *cases: Any) -> Any:
    """Return the elements of the case that `which`, bools or integers from 0, chooses: False is the first of two.

    Raises ValueError if there is no case, or more than two for bools.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.select_n(np.array([2, 0]), np.array([1, 2]), np.array([3, 4]), np.array([5, 6]))
        array([5, 2])
    """
    which = as_array(which)
    if not cases or (which.dtype.kind == "b" and len(cases) > 2):
        raise ValueError(f"select_n: `which` of dtype {which.dtype} cannot choose among {len(cases)} cases")
    out = as_array(cases[-1])
    for k in reversed(range(len(cases) - 1)):
        out = where(which == k, cases[k], out)
    return out


def rsqrt(x: Any) -> Any:
    """Compute 1 / sqrt(x).

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.rsqrt(np.array([1., 4.]))
        array([1. , 0.5])
    """
    return e.rsqrt(inexact(as_array(x)))


def logistic(x: Any) -> Any:
    """Compute 1 / (1 + exp(-x)).

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.logistic(np.array([0., np.inf]))
        array([0.5, 1. ])
    """
    return e.sigmoid(inexact(as_array(x)))


def integer_pow(x: Any, y: int) -> Any:
    """Raise to a power that is a Python int.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.integer_pow(np.array([2., 3.]), 3)
        array([ 8., 27.])
    """
    return as_array(x) ** int(y)


def complex(x: Any, y: Any) -> Any:
    """Return x + iy for real x and y.

    Example:
        >>> import numpy as np
        >>> from fgrad import lax
        >>> lax.complex(np.array([1.]), np.array([2.]))
        array([1.+2.j])
    """
    return c.complex(inexact(as_array(x)), inexact(as_array(y)))

"""Keys: made of seeds, of keys and of numbers."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fgrad.core import Tracer, type_of
from fgrad.numpy.arguments import as_array, cast
from fgrad.ops import elementwise as e
from fgrad.ops import random as r
from fgrad.ops import shape as s
from fgrad.random.arguments import Shape, as_sizes, takes_key


def key(seed: Any) -> Any:
    """Return the key that a seed stands for.

    Args:
        seed: an integer from -2**63 to 2**64 - 1, or a 0-d integer array, which may be traced.

    Returns:
        A key: uint32[2].

    Raises:
        TypeError: the seed is no integer.
        ValueError: it does not fit into 64 bits.

    Example:
        >>> import fgrad
        >>> fgrad.random.key(42)
        array([ 0, 42], dtype=uint32)
    """
    if isinstance(seed, Tracer) and seed.dtype.kind in "iu" and not seed.shape:
        seed = cast(as_array(seed), np.int64)
        return cast(s.stack([e.right_shift(seed, 32), seed]), np.uint32)
    try:
        seed = operator.index(seed)
    except TypeError:
        got = f"{seed!r} of type {type(seed).__name__}"
        raise TypeError(f"random.key: seed must be an integer, got {got}") from None
    if not -(1 << 63) <= seed < 1 << 64:
        raise ValueError(f"random.key: seed must fit into 64 bits, got {seed}")
    return np.array([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32)


PRNGKey = key


@takes_key
def split(key: Any, num: Shape = 2) -> Any:
    """Return new keys, independent of each other and of `key`, which is used up.

    Args:
        key: a key.
        num: how many, or a shape.

    Returns:
        Keys, uint32[num, 2]; unpack them, or draw from all at once by `vmap`.

    Example:
        >>> import fgrad
        >>> key, drawing = fgrad.random.split(fgrad.random.key(0))
        >>> key.dtype, key.shape
        (dtype('uint32'), (2,))
    """
    shape = as_sizes(num, "split")
    return r.random_fold(key, np.arange(math.prod(shape), dtype=np.uint32).reshape(shape))


@takes_key
def fold_in(key: Any, data: Any) -> Any:
    """Return the key made of a key and an integer, such as the number of a step or of a layer.

    Args:
        key: a key.
        data: an integer from 0 to 2**32 - 1, or a 0-d integer array, which may be traced.

    Raises:
        TypeError: `data` is no integer.
        ValueError: it is out of range. (A traced one counts modulo 2**32.)

    Example:
        >>> import fgrad
        >>> fgrad.random.fold_in(fgrad.random.key(42), 7)
        array([2547012911, 1371500959], dtype=uint32)
    """
    kind = type_of(data)
    if kind.dtype.kind not in "iu" or kind.shape:
        raise TypeError(f"random.fold_in: data must be an integer, got {kind}")
    if not isinstance(data, Tracer) and not 0 <= data < 1 << 32:
        raise ValueError(f"random.fold_in: data must be from 0 to 2**32 - 1, got {data}")
    return r.random_fold(key, cast(as_array(data), np.uint32))

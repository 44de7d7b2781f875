"""How the arguments of random functions are read: keys, shapes, dtypes and parameters of distributions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad.core import Tracer, type_of
from fgrad.numpy.arguments import as_array, as_shape, cast

Shape = int | Sequence[int]


def takes_key(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of a key check its key first."""
    name = function.__name__

    @functools.wraps(function)
    def checked(key: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(key, "dtype", None) != np.uint32 or key.shape != (2,):
            raise TypeError(_no_key(name, key))
        return function(key, *args, **kwargs)

    return checked


def _no_key(name: str, x: Any) -> str:
    try:
        got = f"{type_of(x)}" + ("" if np.shape(x) else f" ({x!r})")
    except TypeError:
        got = f"{x!r} of type {type(x).__name__}"
    message = f"random.{name}: key must be a key, uint32[2], as fgrad.random.key(seed) or split make it; got {got}"
    if isinstance(x, (np.ndarray, Tracer)) and x.dtype == np.uint32 and x.shape[-1:] == (2,):
        message += ".\nRemedy: for a draw from each of several keys, use fgrad.vmap"
    return message


def as_sizes(shape: Any, name: str) -> tuple[int, ...]:
    """Return a shape, an int or a sequence of ints, as a tuple; ValueError for negative sizes."""
    dims = as_shape(shape, f"random.{name}")
    if min(dims, default=0) < 0:
        raise ValueError(f"random.{name}: shape must hold no negative sizes, got {dims}")
    return dims


def dtype_of(dtype: Any, name: str, kinds: str, what: str) -> np.dtype[Any]:
    """Return a dtype of one of the given kinds, of at most 64 bits a part; TypeError if it is none."""
    dtype = np.dtype(dtype)
    if dtype.kind not in kinds or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise TypeError(f"random.{name}: dtype must be {what}, got {dtype}")
    return dtype


def floating(dtype: Any, name: str) -> np.dtype[Any]:
    """Return a real floating dtype; TypeError if it is none."""
    return dtype_of(dtype, name, "f", "float16, float32 or float64")


def fitted(x: Any, shape: tuple[int, ...], dtype: Any, argument: str) -> Any:
    """Return a parameter of a distribution as an array of `dtype`; ValueError if it does not broadcast to `shape`."""
    x = cast(as_array(x), dtype)
    try:
        fits = np.broadcast_shapes(x.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"random.{argument} must broadcast to the shape {shape} of the draw, got {type_of(x)}")
    return x

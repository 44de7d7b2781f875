"""Moving arrays between the host, a GPU and other libraries: `device_put` and `to_numpy`, on pytrees."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import PYTHON_SCALARS, Tracer
from fgrad.triton_kernels import interop


def device_put(x: Any, device: str | None = None) -> Any:
    """Return arrays on a device.

    Args:
        x: a pytree of arrays of NumPy, CuPy, torch, jax or any library with DLPack or the CUDA array interface, of
            numbers, and of traced values, which stay what they are.
        device: "cpu", "cuda" (the current one) or "cuda:1"; None is "cuda" where there is a GPU, else "cpu".

    Returns:
        The pytree with NumPy arrays on the host, CuPy arrays on a GPU. What lies there already is not copied: results
        share memory with it, and are read-only if it is.

    Raises:
        TypeError: a leaf is no array.
        ValueError: `device` is none of the above.
        ImportError: `device` is a GPU and CuPy is not installed.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.device_put({"w": [1.0, 2.0], "x": np.arange(3)}, "cpu")
        {'w': [array(1.), array(2.)], 'x': array([0, 1, 2])}
    """
    return tree.map(lambda leaf: leaf if isinstance(leaf, Tracer) else interop.put(_array(leaf), device), x)


def to_numpy(x: Any) -> Any:
    """Return arrays as NumPy's.

    Args:
        x: a pytree of arrays, as for `device_put`.

    Returns:
        The pytree with NumPy arrays: views where an array lies in host memory, copies of what lies on a GPU. bfloat16
        is `ml_dtypes.bfloat16`.

    Raises:
        TypeError: a leaf is no array, or a traced value.

    Example:
        >>> import fgrad
        >>> fgrad.to_numpy((1, 2.5))
        (array(1), array(2.5))
    """
    return tree.map(lambda leaf: interop.to_numpy(_array(leaf)), x)


def _array(leaf: Any) -> Any:
    """Return a number or a traced value as an array, the latter with the error that says why it is none."""
    return np.asarray(leaf) if leaf.__class__ in PYTHON_SCALARS or isinstance(leaf, (np.generic, Tracer)) else leaf

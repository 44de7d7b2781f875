"""Cosine transforms under SciPy's names, by way of Fourier transforms, which are those of `fgrad.numpy.fft`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fgrad.numpy import fft as transforms
from fgrad.numpy.arguments import as_array, inexact, many_axes, moved, one_axis
from fgrad.numpy.fft import *  # noqa: F403
from fgrad.ops.shape import pad

__all__ = ["dct", "dctn", "idct", "idctn", *transforms.__all__]


def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Return the cosine transform along an axis.

    Args:
        x: array.
        type: 2, yₖ = 2 Σ xᵢ cos(πk(2i + 1) / 2n); or 3, which is its inverse but for the factor 2n.
        n: the length to cut or pad x to; None for its own.
        axis: the axis.
        norm: "backward" (None) for that, "forward" to divide by 2n, "ortho" for an orthogonal transform.

    Raises:
        NotImplementedError: the type is another.
        ValueError: n is less than 1, or the norm is unknown.

    Example:
        >>> from fgrad.scipy.fft import dct
        >>> print(dct([1.0, 2.0, 4.0]).round(4))
        [14.     -5.1962  1.    ]
    """
    return _along("dct", x, type, n, axis, norm, forwards=True)


def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Return the inverse of `dct` of the same type; "backward" divides by 2n here, "forward" does not.

    Example:
        >>> from fgrad.scipy.fft import dct, idct
        >>> print(idct(dct([1.0, 2.0, 3.0])).round(9))
        [1. 2. 3.]
    """
    return _along("idct", x, type, n, axis, norm, forwards=False)


def dctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """Return the cosine transform along several axes, or all; `s` are the lengths.

    Example:
        >>> from fgrad.scipy.fft import dctn
        >>> print(dctn([[1.0, 2.0], [3.0, 5.0]]).round(4))
        [[ 44.      -8.4853]
         [-14.1421   2.    ]]
    """
    return _along_many("dctn", x, type, s, axes, norm, forwards=True)


def idctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """Return the inverse of `dctn`.

    Example:
        >>> from fgrad.scipy.fft import dctn, idctn
        >>> print(idctn(dctn([[1.0, 2.0], [3.0, 4.0]])).round(9))
        [[1. 2.]
         [3. 4.]]
    """
    return _along_many("idctn", x, type, s, axes, norm, forwards=False)


def _along_many(function: str, x: Any, type: int, s: Any, axes: Any, norm: str | None, forwards: bool) -> Any:
    x = as_array(x)
    if axes is None and s is not None:
        axes = range(x.ndim - len(s), x.ndim)
    axes = many_axes(axes, x.ndim) if axes is None or isinstance(axes, int) else [one_axis(a, x.ndim) for a in axes]
    for axis, n in zip(axes, s or [None] * len(axes), strict=True):
        x = _along(function, x, type, n, axis, norm, forwards)
    return x


def _along(function: str, x: Any, type: int, n: int | None, axis: int, norm: str | None, forwards: bool) -> Any:
    """Return one of the transforms along an axis: type 2 or its transpose, scaled."""
    if type not in (2, 3):
        raise NotImplementedError(f"{function}: types 2 and 3 are supported, got {type!r}")
    norms = {None: "backward", "backward": "backward", "ortho": "ortho", "forward": "forward"}
    if norm not in norms:
        raise ValueError(f"{function}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    x = inexact(as_array(x))
    axis = one_axis(axis, x.ndim)
    x = _resized(moved(x, axis, x.ndim - 1), n, function)
    transform = _second if (type == 2) == forwards else _third
    ortho, scaled = norms[norm] == "ortho", norms[norm] == ("forward" if forwards else "backward")
    if x.dtype.kind == "c":
        out = transform(x.real, ortho) + 1j * transform(x.imag, ortho)
    else:
        out = transform(x, ortho)
    return moved(out / (2 * x.shape[-1]) if scaled else out, x.ndim - 1, axis)


def _resized(x: Any, n: int | None, function: str) -> Any:
    """Return arrays cut, or padded by zeros, to length n along the last axis."""
    size = x.shape[-1]
    n = size if n is None else n
    if n < 1:
        raise ValueError(f"{function}: the number of data points must be at least 1, got {n}")
    if n <= size:
        return x[..., :n]
    return pad(x, np.zeros((), x.dtype), widths=(*[(0, 0, 0)] * (x.ndim - 1), (0, n - size, 0)))


def _turns(n: int, dtype: Any) -> Any:
    """Return exp(-iπk / 2n) for k < n, in the complex dtype that goes with a floating one."""
    return np.exp(-0.5j * math.pi * np.arange(n) / n).astype(np.result_type(dtype, np.complex64))


def _orthogonal(n: int, dtype: Any) -> Any:
    """Return the factors that make the transform of type 2 orthogonal."""
    return np.sqrt(np.where(np.arange(n) == 0, 0.25, 0.5) / n).astype(dtype)


def _second(x: Any, ortho: bool) -> Any:
    n = x.shape[-1]
    out = 2 * (transforms.fft(_resized(x, 2 * n, "dct"))[..., :n] * _turns(n, x.dtype)).real
    return out * _orthogonal(n, x.dtype) if ortho else out


def _third(x: Any, ortho: bool) -> Any:
    n = x.shape[-1]
    weights = _orthogonal(n, x.dtype) if ortho else np.where(np.arange(n) == 0, 0.5, 1).astype(x.dtype)
    return 4 * n * transforms.ifft(_resized(x * weights * _turns(n, x.dtype).conj(), 2 * n, "dct"))[..., :n].real

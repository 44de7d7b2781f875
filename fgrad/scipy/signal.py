"""Convolution and correlation of arrays of any number of dimensions, under SciPy's names."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from fgrad.numpy.arguments import as_array, cast, inexact, many_axes, moved, one_axis, promoted
from fgrad.ops.complex import conj
from fgrad.ops.contract import conv_general
from fgrad.ops.shape import concatenate, reverse

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "detrend", "fftconvolve"]

_MODES = ("full", "valid", "same")


def _operands(function: str, in1: Any, in2: Any, mode: str) -> list[Any]:
    """Return two arrays of as many dimensions and one dtype that can be multiplied and summed."""
    x, y = promoted(as_array(in1), as_array(in2))
    if x.ndim != y.ndim:
        raise ValueError(f"{function}: in1 and in2 should have the same dimensionality, got {x.ndim} and {y.ndim}")
    if mode not in _MODES:
        raise ValueError(f"{function}: mode must be 'full', 'valid' or 'same', got {mode!r}")
    if 0 in x.shape or 0 in y.shape:
        raise ValueError(f"{function}: in1 and in2 must not be empty, got shapes {x.shape} and {y.shape}")
    return [x, y] if x.dtype.kind in "iufcV" else [cast(x, np.int64), cast(y, np.int64)]


def _exchanged(function: str, x: Any, y: Any) -> bool:
    """Say whether y contains x in all dimensions, and not x y; ValueError if neither does ("valid")."""
    if all(m >= n for m, n in zip(x.shape, y.shape, strict=True)):
        return False
    if all(m <= n for m, n in zip(x.shape, y.shape, strict=True)):
        return True
    raise ValueError(
        f"{function}: for mode 'valid' one input must be at least as large as the other in every dimension, got "
        f"shapes {x.shape} and {y.shape}"
    )


def _flipped(x: Any) -> Any:
    return reverse(x, axes=tuple(range(x.ndim))) if x.ndim else x


def _slide(x: Any, window: Any, padding: list[tuple[int, int]]) -> Any:
    """Return the sums of products of a window with x, padded with zeros, at every place where it fits."""
    ones = (1,) * x.ndim
    out = conv_general(
        x.reshape((1, 1, *x.shape)),
        window.reshape((1, 1, *window.shape)),
        strides=ones,
        padding=tuple(padding),
        x_dilation=ones,
        w_dilation=ones,
        groups=1,
    )
    return out.reshape(out.shape[2:])


def _correlated(function: str, x: Any, window: Any, mode: str, late: bool = False) -> Any:
    """Correlate x with a window that is real or conjugated; `late` says which half of an even "same" is cut."""
    if x.ndim == 0:
        return x * window
    if mode == "valid" and _exchanged(function, x, window):
        return _slide(_flipped(window), _flipped(x), [(0, 0)] * x.ndim)
    padding = {
        "full": [(n - 1, n - 1) for n in window.shape],
        "same": [((n - late) // 2, (n - 1 + late) // 2) for n in window.shape],
        "valid": [(0, 0)] * x.ndim,
    }
    return _slide(x, window, padding[mode])


def _conjugate(x: Any) -> Any:
    return conj(x) if x.dtype.kind == "c" else x


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Convolve two arrays of the same number of dimensions.

    Args:
        in1: array.
        in2: array; both are promoted to one dtype.
        mode: "full", "same" (the middle part, in the shape of in1) or "valid" (what no padding enters, where one
            contains the other).
        method: accepted for SciPy's sake; sums are direct.

    Raises:
        ValueError: numbers of dimensions differ, an array is empty, the mode is unknown, or nothing is "valid".

    Example:
        >>> from fgrad.scipy.signal import convolve
        >>> convolve([1.0, 2.0, 3.0], [1.0, 10.0])
        array([ 1., 12., 23., 30.])
    """
    _check_method("convolve", method)
    x, y = _operands("convolve", in1, in2, mode)
    return _correlated("convolve", x, _flipped(y), mode)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Correlate two arrays of the same number of dimensions: convolve in1 with in2 conjugated and turned round.

    Takes the arguments of `convolve` and raises its errors.

    Example:
        >>> from fgrad.scipy.signal import correlate
        >>> correlate([1.0, 2.0, 3.0], [1.0, 10.0])
        array([10., 21., 32.,  3.])
    """
    _check_method("correlate", method)
    x, y = _operands("correlate", in1, in2, mode)
    return _correlated("correlate", x, _conjugate(y), mode)


def _check_method(function: str, method: str) -> None:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"{function}: method must be 'auto', 'direct' or 'fft', got {method!r}")


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """Convolve two matrices, with zeros around them.

    Args:
        in1, in2, mode: as `convolve` takes them.
        boundary, fillvalue: only "fill" and 0 are supported; pad by `fgrad.numpy.pad` for others.

    Raises:
        NotImplementedError: another boundary or fillvalue is asked for.
        ValueError: an array has not 2 dimensions, and as `convolve` does.

    Example:
        >>> from fgrad.scipy.signal import convolve2d
        >>> convolve2d([[1.0, 2.0], [3.0, 4.0]], [[1.0, 1.0]], "same")
        array([[1., 3.],
               [3., 7.]])
    """
    x, y = _planes("convolve2d", in1, in2, mode, boundary, fillvalue)
    return _correlated("convolve2d", x, _flipped(y), mode)


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """Correlate two matrices, with zeros around them.

    Takes the arguments of `convolve2d` and raises its errors.

    Example:
        >>> from fgrad.scipy.signal import correlate2d
        >>> correlate2d([[1.0, 2.0], [3.0, 4.0]], [[1.0, 1.0]], "valid")
        array([[3.],
               [7.]])
    """
    x, y = _planes("correlate2d", in1, in2, mode, boundary, fillvalue)
    return _correlated("correlate2d", x, _conjugate(y), mode, late=True)  # as SciPy's, unlike its correlate


def _planes(function: str, in1: Any, in2: Any, mode: str, boundary: str, fillvalue: float) -> list[Any]:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{function}: only boundary='fill' with fillvalue=0 is supported, got {boundary!r} and {fillvalue!r}; pad "
            "by fgrad.numpy.pad and use mode='valid'"
        )
    x, y = _operands(function, in1, in2, mode)
    if x.ndim != 2:
        raise ValueError(f"{function}: in1 and in2 should both be 2-D arrays, got {x.ndim} dimensions")
    return [x, y]


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """Convolve two arrays by way of Fourier transforms, which pays for long ones.

    Args:
        in1, in2, mode: as `convolve` takes them.
        axes: the axes to convolve along, an int or several; None for all. Along the others sizes broadcast.

    Raises:
        ValueError: as `convolve` does, and if sizes along other axes do not broadcast.

    Example:
        >>> from fgrad.scipy.signal import fftconvolve
        >>> print(fftconvolve([1.0, 2.0, 3.0], [1.0, 10.0]).round(9))
        [ 1. 12. 23. 30.]
    """
    from fgrad.numpy import fft  # loaded where it is used

    x, y = [inexact(v) for v in _operands("fftconvolve", in1, in2, mode)]
    along = many_axes(axes, x.ndim)
    if not along:
        return x * y
    if mode == "valid" and _exchanged("fftconvolve", x, y):
        x, y = y, x
    sizes = [x.shape[i] + y.shape[i] - 1 for i in along]
    forward, back = (fft.fftn, fft.ifftn) if "c" in (x.dtype.kind, y.dtype.kind) else (fft.rfftn, fft.irfftn)
    out = back(forward(x, sizes, along) * forward(y, sizes, along), sizes, along)
    wanted = {"full": sizes, "same": [x.shape[i] for i in along]}
    wanted["valid"] = [x.shape[i] - y.shape[i] + 1 for i in along]
    window = [slice(None)] * out.ndim
    for i, whole, size in zip(along, sizes, wanted[mode]):
        start = (whole - size) // 2
        window[i] = slice(start, start + size)
    return out[tuple(window)]


def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0) -> Any:
    """Take the mean, or the straight line of least squares, away from data along an axis.

    Args:
        data: array.
        axis: the axis.
        type: "linear" or "constant".
        bp: places at which new lines begin, an int or several.

    Raises:
        ValueError: the type is unknown, or a place lies outside of the data.

    Example:
        >>> from fgrad.scipy.signal import detrend
        >>> print(detrend([1.0, 2.0, 3.0, 5.0]).round(9))
        [ 0.2 -0.1 -0.4  0.3]
    """
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError(f"detrend: type must be 'linear' or 'constant', got {type!r}")
    x = inexact(as_array(data))
    axis = one_axis(axis, x.ndim)
    n = x.shape[axis]
    if type in ("constant", "c"):
        return x - x.mean(axis=axis, keepdims=True)
    ends = sorted({0, n, *np.atleast_1d(bp).tolist()})
    if ends[0] < 0 or ends[-1] > n:
        raise ValueError(f"detrend: breakpoints must lie within the data's {n} places, got {bp!r}")
    rest = moved(x, axis, x.ndim - 1)
    parts = [_without_line(rest[..., low:high]) for low, high in pairwise(ends)]
    return moved(concatenate(*parts, axis=x.ndim - 1), x.ndim - 1, axis)


def _without_line(x: Any) -> Any:
    """Return vectors less the straight lines that fit them best."""
    n = x.shape[-1]
    basis, _ = np.linalg.qr(np.stack([np.ones(n), np.arange(n)], axis=1))
    basis = basis.astype(x.dtype)
    return x - (x @ basis) @ basis.T

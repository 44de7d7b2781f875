"""`fgrad.numpy.fft`: discrete Fourier transforms, of any length, along any axes, in NumPy's normalisations."""

from __future__ import annotations

import math
import operator

import numpy as np

from fgrad.core import Tracer
from fgrad.numpy.arguments import as_array, counterpart, inexact, many_axes, one_axis, refuse
from fgrad.numpy.shaping import roll
from fgrad.ops import complex as cx
from fgrad.ops import elementwise as e
from fgrad.ops import fft as f
from fgrad.ops import shape as s

__all__ = """
    fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn
""".split()

# ------------------------------------------------------------------------------ lengths, axes, normalisation


def _resized(x, axis, n):
    """Return `x` cropped, or with zeros behind, to length n along an axis; ValueError if there is nothing left."""
    size = x.shape[axis]
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    if n == size:
        return x
    widths = tuple([(0, n - size, 0) if k == axis else (0, 0, 0) for k in range(x.ndim)])
    return s.pad(x, np.zeros((), x.dtype), widths=widths)


def _scaled(x, n, norm, inverse=False):
    """Return a transform over n points, of which the inverse carries 1/n, in another normalisation."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    if norm in (None, "backward"):
        return x
    factor = math.sqrt(n) if norm == "ortho" else n
    return e.mul(x, float(factor) if inverse else 1 / factor)


def _opposite(norm):
    """Return the normalisation of the transform in the other direction, of the same factor."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def _lengths(x, lengths, axes):
    """Return axes, as non-negative ints, and a length for each, as NumPy reads them."""
    if lengths is None:
        axes = range(x.ndim) if axes is None else axes
        lengths = [-1] * len(axes)
    elif axes is None:
        axes = range(-len(lengths), 0)
    if len(lengths) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    axes = tuple([one_axis(axis, x.ndim, "axes") for axis in axes])
    lengths = [-1 if n is None else operator.index(n) for n in lengths]
    return axes, [x.shape[axis] if n == -1 else n for n, axis in zip(lengths, axes, strict=True)]


def _operand(name, a, out):
    refuse(name, out=out)
    return inexact(as_array(a))


def _many(name, prim, a, lengths, axes, norm, out):
    """Return fftn or ifftn of an array."""
    x = _operand(name, a, out)
    axes, lengths = _lengths(x, lengths, axes)
    if not axes:
        return x
    for axis, n in zip(axes, lengths, strict=True):
        x = _resized(x, axis, n)
    return _scaled(prim(x, axes=axes), math.prod(lengths), norm, prim is f.ifft)


def _one(name, prim, a, n, axis, norm, out):
    """Return fft or ifft of an array along an axis."""
    return _many(name, prim, a, None if n is None else (n,), (axis,), norm, out)


# -------------------------------------------------------------------------------------------- complex signals


@counterpart(np.fft.fft)
def fft(a, n=None, axis=-1, norm=None, out=None):
    """Compute the discrete Fourier transform along an axis.

    Args:
        a: array, real or complex.
        n: length to crop or pad the axis to with zeros; its own if None.
        axis: the axis.
        norm: "backward" (None) for no factor, "ortho" for 1/sqrt(n), "forward" for 1/n.
        out: refused under a transform.

    Raises:
        ValueError: n is less than 1, or the normalisation unknown.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.fft.fft([1.0, 0.0, 0.0]).real
        array([1., 1., 1.])
    """
    return _one("fft", f.fft, a, n, axis, norm, out)


@counterpart(np.fft.ifft)
def ifft(a, n=None, axis=-1, norm=None, out=None):
    """Compute the inverse of `fft`, which carries the factor 1/n if `norm` is "backward"."""
    return _one("ifft", f.ifft, a, n, axis, norm, out)


@counterpart(np.fft.fftn)
def fftn(a, s=None, axes=None, norm=None, out=None):
    """Compute the Fourier transform along several axes, or all; `s` are the lengths, -1 for an axis's own."""
    return _many("fftn", f.fft, a, s, axes, norm, out)


@counterpart(np.fft.ifftn)
def ifftn(a, s=None, axes=None, norm=None, out=None):
    """Compute the inverse of `fftn`."""
    return _many("ifftn", f.ifft, a, s, axes, norm, out)


@counterpart(np.fft.fft2)
def fft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """Compute the Fourier transform along two axes."""
    return _many("fft2", f.fft, a, s, axes, norm, out)


@counterpart(np.fft.ifft2)
def ifft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """Compute the inverse of `fft2`."""
    return _many("ifft2", f.ifft, a, s, axes, norm, out)


# ----------------------------------------------------------------------------------------------- real signals


def _from_real(name, a, lengths, axes, norm, out):
    """Return rfftn of an array: half of the frequencies of the last of the axes."""
    x = _operand(name, a, out)
    if x.dtype.kind == "c":
        raise TypeError(f"{name} takes real arrays, got dtype {x.dtype}; use fft")
    axes, lengths = _lengths(x, lengths, axes)
    if not axes:
        raise ValueError(f"{name}: at least 1 axis must be transformed")
    for axis, n in zip(axes, lengths, strict=True):
        x = _resized(x, axis, n)
    x = f.rfft(x, axis=axes[-1])
    if axes[:-1]:
        x = f.fft(x, axes=axes[:-1])
    return _scaled(x, math.prod(lengths), norm)


def _to_real(name, a, lengths, axes, norm, out):
    """Return irfftn of an array: the length of the last axis is 2 (m - 1) for m frequencies, if not given."""
    x = _operand(name, a, out)
    own = lengths is None or lengths[-1] in (None, -1)
    axes, lengths = _lengths(x, lengths, axes)
    if not axes:
        raise ValueError(f"{name}: at least 1 axis must be transformed")
    if own:
        lengths[-1] = 2 * (x.shape[axes[-1]] - 1)
    for axis, n in zip(axes[:-1], lengths, strict=False):
        x = _resized(x, axis, n)
    if lengths[-1] < 1:
        raise ValueError(f"Invalid number of FFT data points ({lengths[-1]}) specified.")
    x = _resized(x, axes[-1], lengths[-1] // 2 + 1)
    if axes[:-1]:
        x = f.ifft(x, axes=axes[:-1])
    return _scaled(f.irfft(x, axis=axes[-1], n=lengths[-1]), math.prod(lengths), norm, inverse=True)


def _length(n):
    return None if n is None else (n,)


@counterpart(np.fft.rfft)
def rfft(a, n=None, axis=-1, norm=None, out=None):
    """Compute the Fourier transform of a real signal: the frequencies 0 to n // 2, which determine the others.

    Args:
        a: real array.
        n, axis, norm, out: as for `fft`.

    Raises:
        TypeError: `a` is complex.
        ValueError: n is less than 1, or the normalisation unknown.
    """
    return _from_real("rfft", a, _length(n), (axis,), norm, out)


@counterpart(np.fft.irfft)
def irfft(a, n=None, axis=-1, norm=None, out=None):
    """Compute the inverse of `rfft`; the length n of the result is 2 (m - 1) for m frequencies, if None."""
    return _to_real("irfft", a, _length(n), (axis,), norm, out)


@counterpart(np.fft.rfftn)
def rfftn(a, s=None, axes=None, norm=None, out=None):
    """Compute the Fourier transform of real signals along several axes; half the frequencies of the last remain."""
    return _from_real("rfftn", a, s, axes, norm, out)


@counterpart(np.fft.irfftn)
def irfftn(a, s=None, axes=None, norm=None, out=None):
    """Compute the inverse of `rfftn`."""
    return _to_real("irfftn", a, s, axes, norm, out)


@counterpart(np.fft.rfft2)
def rfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """Compute the Fourier transform of real signals along two axes."""
    return _from_real("rfft2", a, s, axes, norm, out)


@counterpart(np.fft.irfft2)
def irfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """Compute the inverse of `rfft2`."""
    return _to_real("irfft2", a, s, axes, norm, out)


def _conj(x):
    return cx.conj(x) if x.dtype.kind == "c" else x


@counterpart(np.fft.hfft)
def hfft(a, n=None, axis=-1, norm=None, out=None):
    """Compute the Fourier transform, which is real, of a signal of length n that equals its conjugate read backwards.

    `a` holds the half of it from time 0 on.
    """
    refuse("hfft", out=out)
    return _to_real("hfft", _conj(as_array(a)), _length(n), (axis,), _opposite(norm), None)


@counterpart(np.fft.ihfft)
def ihfft(a, n=None, axis=-1, norm=None, out=None):
    """Compute the inverse of `hfft`."""
    return _conj(_from_real("ihfft", a, _length(n), (axis,), _opposite(norm), out))


# ------------------------------------------------------------------------------------------------- frequencies


def _shifted(x, axes, sign):
    x = as_array(x)
    axes = range(x.ndim) if axes is None else axes
    axes = many_axes(axes if isinstance(axes, int) else tuple(axes), x.ndim)
    halves = [x.shape[axis] // 2 * sign for axis in axes]
    return roll(x, halves, axes)


@counterpart(np.fft.fftshift)
def fftshift(x, axes=None):
    """Move frequency 0 to the middle of the axes (all if None)."""
    return _shifted(x, axes, 1)


@counterpart(np.fft.ifftshift)
def ifftshift(x, axes=None):
    """Undo `fftshift`."""
    return _shifted(x, axes, -1)


def _frequencies(function, n, d, device, dtype):
    """Return NumPy's frequencies, for a spacing that may be traced, in a floating dtype."""
    traced = isinstance(d, Tracer)
    out = function(n, device=device) / d if traced else function(n, d, device=device)
    if dtype is None:
        return out
    if np.dtype(dtype).kind != "f":
        raise TypeError(f"{function.__name__}: dtype must be a real floating one, got {np.dtype(dtype)}")
    return out.astype(dtype)


def fftfreq(n, d=1.0, device=None, *, dtype=None):
    """Return the frequencies of `fft` for n samples that are `d` apart: [0, 1, ..., -2, -1] / (n d)."""
    return _frequencies(np.fft.fftfreq, n, d, device, dtype)


def rfftfreq(n, d=1.0, device=None, *, dtype=None):
    """Return the frequencies of `rfft` for n samples that are `d` apart: [0, 1, ..., n // 2] / (n d)."""
    return _frequencies(np.fft.rfftfreq, n, d, device, dtype)

"""Discrete Fourier transforms: fft and ifft along several axes, rfft and irfft along one.

They carry no normalisation but the 1/n of the inverse. Matrices of Fourier transforms are symmetric, so fft and ifft
are their own transposes (cotangents pair without a conjugate); the transposes of rfft and irfft are each other, but
for weights, since half of the frequencies stand for all.
"""

from __future__ import annotations

import numpy as np

from fgrad.core import ArrayType
from fgrad.kinds import linear
from fgrad.ops.complex import conj
from fgrad.ops.shape import cast


def _shift_axes(size, *, axes):
    return {"axes": tuple([a + 1 for a in axes])}


def _shift_axis(size, *, axis, **params):
    return {"axis": axis + 1, **params}


def _complex_of(x):
    return np.result_type(x.dtype, np.complex64)


def _real_of(x):
    return np.empty(0, np.result_type(x.dtype, np.float32)).real.dtype


def _full_type(x, *, axes):
    return ArrayType(x.shape, _complex_of(x))


def _resized(x, axis, n):
    return (*x.shape[:axis], n, *x.shape[axis + 1 :])


def _symmetric(name, doc):
    """Declare fft or ifft, which are their own transposes."""
    prim = linear(
        name,
        lambda x, *, axes: getattr(np.fft, name + "n")(x, axes=axes),  # found when called: NumPy loads np.fft late
        type=_full_type,
        transpose=lambda ct, x, *, axes: cast(prim(ct, axes=axes), dtype=x.dtype),
        shift=_shift_axes,
        gpu=f"fft.{name}",
        doc=doc,
    )
    return prim


fft = _symmetric("fft", "Fourier transform along each of the axes, of real or complex x.")
ifft = _symmetric("ifft", "The inverse of fft: with positive exponents, divided by the lengths.")


def _halves(n, ndim, axis, dtype):
    """Return weights of the frequencies of a real signal of length n: 1 for those that are their own mirror, else 1/2.

    They stand along `axis` of `ndim`.
    """
    weights = np.full(n // 2 + 1, 0.5, dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return weights.reshape((1,) * axis + (-1,) + (1,) * (ndim - axis - 1))


def _rfft_transpose(ct, x, *, axis):
    n = x.shape[axis]
    weights = _halves(n, x.ndim, axis, x.dtype)
    return irfft(conj(ct) * (weights * weights.dtype.type(n)), axis=axis, n=n)


rfft = linear(
    "rfft",
    lambda x, *, axis: np.fft.rfft(x, axis=axis),
    type=lambda x, *, axis: ArrayType(_resized(x, axis, x.shape[axis] // 2 + 1), _complex_of(x)),
    transpose=_rfft_transpose,
    shift=_shift_axis,
    gpu="fft.rfft",
    doc="Fourier transform of real x along an axis: the frequencies from 0 to n // 2, which determine the others.",
)


def _irfft_transpose(ct, x, *, axis, n):
    weights = _halves(n, x.ndim, axis, ct.dtype)
    return cast(conj(rfft(ct, axis=axis)) * (1 / (weights * weights.dtype.type(n))), dtype=x.dtype)


def _irfft_type(x, *, axis, n):
    if x.shape[axis] != n // 2 + 1:
        raise ValueError(f"irfft of length {n} takes {n // 2 + 1} frequencies along axis {axis}, got {x}")
    return ArrayType(_resized(x, axis, n), _real_of(x))


irfft = linear(
    "irfft",
    lambda x, *, axis, n: np.fft.irfft(x, n, axis),
    type=_irfft_type,
    transpose=_irfft_transpose,
    shift=_shift_axis,
    gpu="fft.irfft",
    doc="The inverse of rfft for real results of length n; what is imaginary in frequencies that are their own mirror "
    "is not read.",
)

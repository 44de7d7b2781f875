"""Complex parts, moduli and signs.

Cotangents pair bilinearly, without a conjugate: the cotangent 1 of `real` is 1, that of `imag` is -i. Triton has no
complex numbers, so these have no GPU expressions.
"""

from __future__ import annotations

import numpy as np

from fgrad.kinds import differential, elementwise, linear
from fgrad.ops.elementwise import select

_REAL = {"F": np.dtype(np.float32), "D": np.dtype(np.float64)}


def _part_type(x):
    return x.with_dtype(_REAL.get(x.dtype.char, x.dtype))


def _no_change(size):
    """The `shift` of a primitive without parameters."""
    return {}


real = linear(
    "real",
    lambda x: np.array(np.real(x)),
    type=_part_type,
    transpose=lambda ct, x: ct.astype(x.dtype),
    shift=_no_change,
    doc="The real part, in memory of its own.",
)
imag = linear(
    "imag",
    lambda x: np.array(np.imag(x)),
    type=_part_type,
    transpose=lambda ct, x: (ct * -1j if x.dtype.kind == "c" else ct * 0).astype(x.dtype),
    shift=_no_change,
    doc="The imaginary part, in memory of its own; 0 for real x.",
)
conj = linear(
    "conj",
    np.conjugate,
    type=lambda x: x.strong(),
    transpose=lambda ct: conj(ct),
    shift=_no_change,
    doc="The complex conjugate; x itself if real.",
)


def _complex(x, y):
    x, y = np.broadcast_arrays(x, y)
    out = np.empty(x.shape, np.result_type(x, y, np.complex64))
    out.real, out.imag = x, y
    return out


complex = elementwise("complex", _complex, d=(1, 1j), doc="x + iy of real x and y.")


complex_abs = differential(
    "complex_abs",
    np.abs,
    type=_part_type,
    jvp=lambda t, x: real(t * conj(complex_sign(x))),
    pull=lambda ct, x: ct * conj(complex_sign(x)),
    shift=_no_change,
    doc="|x|, with derivative 0 at 0.",
)


def _turn(t, x, out):
    """Return the part of `t` that turns x and does not stretch it, divided by |x|; 0 at x = 0."""
    zero = x == 0
    return select(zero, 0, t - out * real(conj(out) * t)) / complex_abs(select(zero, 1, x))


complex_sign = differential(
    "complex_sign",
    np.sign,
    type=lambda x: x.strong(),
    jvp=_turn,
    shift=_no_change,
    doc="x / |x|, with derivative 0 at 0.",
)

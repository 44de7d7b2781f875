"""Less common functions: differences, quadrature, statistics, counting, searching; the fft namespace."""

from __future__ import annotations

import types

import numpy as np

from .. import dtypes
from ..tensor import Tensor, normal_dim, wrap
from .reduce import mean
from .reduce import sum as total
from .table import FUNCTIONS, composed, define, without_derivative


def diff(input, n=1, dim=-1):
    return np.diff(input, n, dim)


def _panels(y, x, dx, dim):
    """Return the areas of the trapezoids between neighbours."""
    dim = normal_dim(dim, y.ndim)
    head = (slice(None),) * dim
    width = dx if x is None else np.diff(x, 1, dim if x.ndim > 1 else 0)
    if x is not None and x.ndim == 1:
        width = width.reshape([-1 if i == dim else 1 for i in range(y.ndim)])
    return (y[(*head, slice(1, None))] + y[(*head, slice(None, -1))]) * (width / 2)


def trapezoid(y, x=None, *, dx=1, dim=-1):
    return total(_panels(y, x, dx, dim), dim)


def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    return np.cumsum(_panels(y, x, dx, dim), dim)


def cov(input, *, correction=1):
    x = input.reshape((1, -1)) if input.ndim < 2 else input
    centered = x - mean(x, 1, True)
    out = np.matmul(centered, np.swapaxes(centered, 0, 1)) / (x.shape[1] - correction)
    return out.reshape(()) if input.ndim < 2 else out


def float_power(input, exponent):
    wide = np.complex128 if input.dtype.kind == "c" else np.float64
    return input.astype(wide) ** (exponent.astype(wide) if hasattr(exponent, "astype") else exponent)


def vander(x, N=None, *, increasing=False):
    count = x.shape[0] if N is None else N
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    return x[:, None] ** powers.astype(x.dtype)


for fun in (diff, cov, float_power):
    define(fun.__name__, composed(fun), inplace=fun is float_power)
define("trapezoid", composed(trapezoid), method=False, aliases=("trapz",))
define("cumulative_trapezoid", composed(cumulative_trapezoid), method=False)
define("vander", composed(vander), method=False)


def cartesian_prod(*tensors):
    grids = FUNCTIONS["meshgrid"](*tensors, indexing="ij")
    return grids[0].reshape(-1) if len(tensors) == 1 else FUNCTIONS["stack"]([g.reshape(-1) for g in grids], 1)


define("cartesian_prod", cartesian_prod, method=False, out=False)


# ------------------------------------------------------------------------------------------- counting and searching


def _integers(x):
    return wrap(x.astype(np.int64))


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    values, inverse, counts = np.unique(input._data, return_inverse=True, return_counts=True, axis=dim)
    shape = input._data.shape if dim is None else (-1,)
    found = [wrap(values), _integers(inverse.reshape(shape)), _integers(counts)]
    out = [f for f, wanted in zip(found, (True, return_inverse, return_counts)) if wanted]
    return out[0] if len(out) == 1 else tuple(out)


def bincount(input, weights=None, minlength=0):
    out = np.bincount(input._data, None if weights is None else weights._data, minlength)
    return wrap(out)


def histc(input, bins=100, min=0, max=0):
    span = (input._data.min(), input._data.max()) if min == max == 0 else (min, max)
    return wrap(np.histogram(input._data, bins, span)[0].astype(input._data.dtype))


def bucketize(input, boundaries, *, out_int32=False, right=False):
    return _integers(
        np.searchsorted(
            boundaries._data, input._data if isinstance(input, Tensor) else input, "right" if right else "left"
        )
    )


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None):
    return bucketize(input, sorted_sequence, right=right or side == "right")


for fun in (unique, bincount):
    define(fun.__name__, without_derivative(fun, fun.__name__), out=False)
define("histc", histc, out=False)
for fun in (bucketize, searchsorted):
    define(fun.__name__, fun, method=False, out=False)

# ------------------------------------------------------------------------------------------------------- transforms


def _fft(name):
    def fun(input, *args, dim=None, norm=None, **kwargs):
        keyword = "axes" if name.endswith(("n", "2", "shift")) else "axis"
        if dim is not None:
            kwargs[keyword] = dim
        if norm is not None:
            kwargs["norm"] = norm
        out = getattr(np.fft, name)(input, *args, **kwargs)
        single = input.dtype in (np.float32, np.complex64)
        return out.astype(np.complex64 if out.dtype.kind == "c" else np.float32) if single else out

    fun.__name__ = "fft_" + name
    return composed(fun)


FFT = types.SimpleNamespace(
    **{
        name: _fft(name)
        for name in (
            "fft ifft rfft irfft fft2 ifft2 fftn ifftn rfft2 irfft2 rfftn irfftn fftshift ifftshift hfft ihfft".split()
        )
    },
    fftfreq=lambda n, d=1.0: wrap(np.fft.fftfreq(n, d).astype(dtypes.default.real)),
    rfftfreq=lambda n, d=1.0: wrap(np.fft.rfftfreq(n, d).astype(dtypes.default.real)),
)

"""Layer norm and RMS norm over the last axis, group norm over groups of channels, and all their gradients.

Layer norm (Ba et al., 2016): y = (x - mean) rstd w + b with rstd = 1 / sqrt(var + eps). RMS norm (Zhang and Sennrich,
2019): y = x rstd w with rstd = 1 / sqrt(mean(x²) + eps). With g = ct w and n = (x - mean) rstd, of c columns:
dx = rstd (g - n mean(g n) - mean(g)), without the last term for RMS norm; dw = Σ ct n and db = Σ ct over rows.

The variance is that of differences from the mean, so that a large mean costs no digits. Weight and bias gradients are
partial sums of row chunks, added up by a second kernel: the same every time. While rows fit into registers one kernel
gives dx and the partial sums in one pass over x and ct; longer rows take a pass for dx and one for the sums.

Group norm (Wu and He, 2018) normalizes rows of (channels of a group) times (positions); weight and bias belong to
channels. To kernels it is a layer norm whose entry `at` takes the parameters of channel `at // spread`.
"""

import math
from functools import partial

import triton

from .layout import packed
from .norm_kernels import backward_kernel, channel_kernel, forward_kernel, one_pass_kernel, parameters_kernel
from .reduction import column_sums
from .runtime import as_rows, empty, launch, strides
from .tiling import (
    accumulator,
    accumulator_dtype,
    block_for,
    row_block,
    row_configurations,
    warps_around,
    warps_for,
)
from .tune import launch_fastest

# Rows that one program adds up, and how many at a time, for the gradients of weight and bias.
_ROWS_A_PROGRAM = 256
_ROWS_A_STEP = 8
# Longest row whose backward pass is one kernel, by the accumulator's bytes: with its cotangent, the weight and two
# partial sums it stays in registers.
_LONGEST_ONE_PASS = {4: 8192, 8: 2048}
# Elements that one program reads at a time to add up channels.
_CHANNEL_TILE = 1024
# Warps that one pass is shared by, which fill a large GPU, and programs at most, each of which leaves partial sums.
_WARPS = 4096
_MOST_PROGRAMS = 1024


def layer_norm_forward(x, weight=None, bias=None, *, eps=1e-5):
    """Normalize the last axis to mean 0 and variance 1, then scale and shift it.

    Args:
        x: (…, columns), floating, any strides.
        weight, bias: (columns,), or None for 1 and 0.
        eps: added to the variance.

    Returns:
        (out, mean, rstd): out like x; mean and rstd (rows,), float64 for float64 and else float32, for the gradient.

    Raises:
        ValueError: x has no axes, or weight or bias is not (columns,).

    >>> import numpy as np
    >>> layer_norm_forward(np.array([[1.0, 3.0]]), eps=0.0)[0]
    array([[-1.,  1.]])
    """
    return _forward(x, weight, bias, eps, centered=True)


def layer_norm_backward(ct, x, weight, bias, mean, rstd):
    """Return (dx, dweight, dbias) for a cotangent of the result of `layer_norm_forward`.

    Args:
        ct: like x, any strides.
        x, weight, bias: as given to the forward pass.
        mean, rstd: as it returned them.

    dweight is None where weight is, dbias where bias is.
    """
    return _backward(ct, x, weight, bias, mean, rstd)


def rms_norm_forward(x, weight=None, *, eps=1e-6):
    """Divide the last axis by its root mean square, then scale it.

    Args:
        x: (…, columns), floating, any strides.
        weight: (columns,), or None for 1.
        eps: added to the mean square.

    Returns:
        (out, rstd): out like x; rstd (rows,), float64 for float64 and else float32, for the gradient.

    Raises:
        ValueError: x has no axes, or weight is not (columns,).

    >>> import numpy as np
    >>> rms_norm_forward(np.array([[3.0, 4.0]]), eps=0.0)[0].round(4)
    array([[0.8485, 1.1314]])
    """
    out, _, rstd = _forward(x, weight, None, eps, centered=False)
    return out, rstd


def rms_norm_backward(ct, x, weight, rstd):
    """Return (dx, dweight) for a cotangent of the result of `rms_norm_forward`; dweight is None where weight is."""
    return _backward(ct, x, weight, None, None, rstd)[:2]


def group_norm_forward(x, weight=None, bias=None, *, groups=1, eps=1e-5):
    """Normalize each group of channels of each example to mean 0 and variance 1, then scale and shift its channels.

    Args:
        x: (examples, channels, …), floating, any strides.
        weight, bias: (channels,), or None for 1 and 0.
        groups: a divisor of the number of channels.
        eps: added to the variance.

    Returns:
        (out, mean, rstd): out like x; mean and rstd (examples * groups,), for the gradient.

    Raises:
        ValueError: x has no channels, groups do not divide them, or weight or bias is not (channels,).

    >>> import numpy as np
    >>> group_norm_forward(np.array([[1.0, 3.0, 5.0, 7.0]]), groups=2, eps=0.0)[0]
    array([[-1.,  1., -1.,  1.]])
    """
    rows = _grouped(x, groups)
    _check(x.shape[1], weight=weight, bias=bias)
    out, mean, rstd = _launch_forward(rows, weight, bias, eps, True, groups, math.prod(x.shape[2:]))
    return out.reshape(x.shape), mean, rstd


def group_norm_backward(ct, x, weight, bias, mean, rstd, *, groups=1):
    """Return (dx, dweight, dbias) for a cotangent of the result of `group_norm_forward`.

    Args:
        ct: like x, any strides.
        x, weight, bias, groups: as given to the forward pass.
        mean, rstd: as it returned them.

    dweight is None where weight is, dbias where bias is.
    """
    _check_cotangent(ct, x)
    mean, rstd = packed(mean), packed(rstd)
    spread = math.prod(x.shape[2:])
    dx = _launch_backward(_grouped(ct, groups), _grouped(x, groups), weight, mean, rstd, groups, spread)
    partials = _channel_sums(ct, x, weight, bias, mean, rstd, groups)
    return dx.reshape(x.shape), *_totals(partials, (weight, bias))


def _channel_sums(ct, x, weight, bias, mean, rstd, groups):
    examples, channels = x.shape[:2]
    mine, value = (array.reshape(examples, channels, math.prod(x.shape[2:])) for array in (ct, x))
    partials = _empty_partials(x, examples, channels, (weight, bias))
    block = block_for(value.shape[2], _CHANNEL_TILE)
    height = block_for(channels, _CHANNEL_TILE // block)
    if weight is not None or bias is not None:
        launch(
            channel_kernel,
            (examples * triton.cdiv(channels, height),),
            *(mine, value, mean, rstd, *partials, channels, value.shape[2], groups),
            *(*strides(mine), *strides(value)),
            ACCUMULATOR=accumulator(x.dtype),
            CHANNELS=height,
            BLOCK=block,
        )
    return partials


def _forward(x, weight, bias, eps, centered):
    flat = as_rows(x)
    _check(flat.shape[1], weight=weight, bias=bias)
    out, mean, rstd = _launch_forward(flat, weight, bias, eps, centered, None, None)
    return out.reshape(x.shape), mean, rstd


def _launch_forward(x, weight, bias, eps, centered, groups, spread):
    rows, columns = x.shape
    dtype = accumulator_dtype(x.dtype)
    out = empty(x, (rows, columns), x.dtype)
    mean = empty(x, (rows,), dtype) if centered else None
    rstd = empty(x, (rows,), dtype)
    launch_fastest(
        forward_kernel,
        (rows,),
        *(x, weight, bias, out, mean, rstd, columns, groups, spread),
        *(*strides(x), *_stride(weight), *_stride(bias)),
        configs=partial(row_configurations, columns),
        sizes=(rows, columns),
        EPS=float(eps),
        CENTERED=centered,
        ACCUMULATOR=accumulator(x.dtype),
    )
    return out, mean, rstd


def _backward(ct, x, weight, bias, mean, rstd):
    _check_cotangent(ct, x)
    mean, rstd = packed(mean), packed(rstd)
    flat_ct, flat = as_rows(ct), as_rows(x)
    if flat.shape[1] <= _LONGEST_ONE_PASS[accumulator_dtype(x.dtype).itemsize]:
        dx, partials = _launch_one_pass(flat_ct, flat, weight, bias, mean, rstd)
    else:
        dx = _launch_backward(flat_ct, flat, weight, mean, rstd, None, None)
        partials = _partial_sums(flat_ct, flat, weight, bias, mean, rstd)
    return dx.reshape(x.shape), *_totals(partials, (weight, bias))


def _launch_one_pass(ct, x, weight, bias, mean, rstd):
    rows, columns = x.shape
    dx = empty(x, (rows, columns), x.dtype)
    block = row_block(columns)
    span = max(1, triton.cdiv(rows, min(_MOST_PROGRAMS, _WARPS // warps_for(block))))
    programs = max(1, triton.cdiv(rows, span))
    partials = _empty_partials(x, programs, columns, (weight, bias))
    launch_fastest(
        one_pass_kernel,
        (programs,),
        *(ct, x, weight, mean, rstd, dx, *partials, rows, columns, span),
        *(*strides(ct), *strides(x), *_stride(weight)),
        configs=lambda: [{"num_warps": warps} for warps in warps_around(warps_for(block))],
        sizes=(rows, columns),
        CENTERED=mean is not None,
        ACCUMULATOR=accumulator(x.dtype),
        BLOCK=block,
    )
    return dx, partials


def _launch_backward(ct, x, weight, mean, rstd, groups, spread):
    rows, columns = x.shape
    dx = empty(x, (rows, columns), x.dtype)
    if columns:
        launch_fastest(
            backward_kernel,
            (rows,),
            *(ct, x, weight, mean, rstd, dx, columns, groups, spread),
            *(*strides(ct), *strides(x), *_stride(weight)),
            configs=partial(row_configurations, columns),
            sizes=(rows, columns),
            CENTERED=mean is not None,
            ACCUMULATOR=accumulator(x.dtype),
        )
    return dx


def _partial_sums(ct, x, weight, bias, mean, rstd):
    rows, columns = x.shape
    chunks = max(1, triton.cdiv(rows, _ROWS_A_PROGRAM))
    partials = _empty_partials(x, chunks, columns, (weight, bias))
    block = block_for(columns, 128)
    if any(partial is not None for partial in partials):
        launch(
            parameters_kernel,
            (chunks * triton.cdiv(columns, block),),
            *(ct, x, mean, rstd, *partials, rows, columns, *strides(ct), *strides(x)),
            CENTERED=mean is not None,
            ACCUMULATOR=accumulator(x.dtype),
            ROWS=_ROWS_A_PROGRAM,
            STEP=_ROWS_A_STEP,
            BLOCK=block,
        )
    return partials


def _empty_partials(x, chunks, columns, parameters):
    dtype = accumulator_dtype(x.dtype)
    return [None if parameter is None else empty(x, (chunks, columns), dtype) for parameter in parameters]


def _totals(partials, parameters):
    """Return the sums of partial sums in the parameters' dtypes, None where there is no parameter."""
    return [
        None if parameter is None else column_sums(partial, parameter.dtype)
        for partial, parameter in zip(partials, parameters)
    ]


def _grouped(x, groups):
    """Return x as rows, one a group of an example."""
    if x.ndim < 2 or groups < 1 or x.shape[1] % groups:
        raise ValueError(
            f"x: got shape {x.shape}, expected (examples, channels, …) with a multiple of {groups} channels"
        )
    return x.reshape(x.shape[0] * groups, x.shape[1] // groups * math.prod(x.shape[2:]))


def _check(columns, **arrays):
    for name, array in arrays.items():
        if array is not None and array.shape != (columns,):
            raise ValueError(f"{name}: got shape {array.shape}, expected {(columns,)}")


def _check_cotangent(ct, x):
    if ct.shape != x.shape:
        raise ValueError(f"ct: got shape {ct.shape}, expected {x.shape}")


def _stride(vector):
    return (None,) if vector is None else strides(vector)

"""GELU, SiLU and their gated forms (GEGLU, SwiGLU), elementwise.

GELU (Hendrycks and Gimpel, 2016): x Φ(x), with Φ by erf, or approximately x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2.
SiLU (Elfwing et al., 2018): x sigmoid(x). Gated forms (Shazeer, 2020): f(gate) times up.

A new activation is one `@triton.jit` function that returns its value and its slope, and one row in `ACTIVATIONS`.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .runtime import as_rows, empty, launch, strides
from .tiling import along, block_for, block_of_row, block_options

_LARGEST_BLOCK = 2048

_ROOT_HALF = tl.constexpr(0.7071067811865476)  # √(1/2)
_ROOT_2_OVER_PI = tl.constexpr(0.7978845608028654)  # √(2/π)
_ROOT_1_OVER_2PI = tl.constexpr(0.3989422804014327)  # √(1/(2π))


@triton.jit
def _gelu(x):
    below = 0.5 + 0.5 * tl.erf(x * _ROOT_HALF)
    # x times a density that underflows: 0, also where x is infinite.
    density = tl.exp(-0.5 * x * x) * _ROOT_1_OVER_2PI
    return x * below, below + tl.where(density == 0, 0.0, x * density)


@triton.jit
def _gelu_tanh(x):
    # Beyond 10 both tails are exact; clamping keeps x³ from overflowing.
    near = tl.where(x != x, x, tl.minimum(tl.maximum(x, -10.0), 10.0))
    t = libdevice.tanh(_ROOT_2_OVER_PI * (near + 0.044715 * near * near * near))
    inner = _ROOT_2_OVER_PI * (1 + 0.134145 * near * near)
    return 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * near * (1 - t * t) * inner


@triton.jit
def _silu(x):
    # By exp(-|x|), which never overflows.
    small = tl.exp(-tl.abs(x))
    sigmoid = tl.where(x >= 0, 1.0, small) / (1 + small)
    return x * sigmoid, sigmoid * (1 + x * (1 - sigmoid))


ACTIVATIONS = {"gelu": _gelu, "gelu_tanh": _gelu_tanh, "silu": _silu}


@triton.jit
def forward_kernel(
    gate,
    up,
    out,
    columns,
    gate_row,
    gate_column,
    up_row,
    up_column,
    FUNCTION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a block of a row: f(gate), times up where there is one."""
    row, at, mask = block_of_row(columns, BLOCK)
    x = tl.load(gate + row * gate_row + along(at, gate_column), mask=mask, other=0.0).to(ACCUMULATOR)
    value, _ = FUNCTION(x)
    if up is not None:
        value *= tl.load(up + row * up_row + along(at, up_column), mask=mask, other=0.0).to(ACCUMULATOR)
    tl.store(out + row * columns + at, value, mask=mask)


@triton.jit
def backward_kernel(
    ct,
    gate,
    up,
    dgate,
    dup,
    columns,
    ct_row,
    ct_column,
    gate_row,
    gate_column,
    up_row,
    up_column,
    FUNCTION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a block of a row: the value is computed again, not saved."""
    row, at, mask = block_of_row(columns, BLOCK)
    mine = tl.load(ct + row * ct_row + along(at, ct_column), mask=mask, other=0.0).to(ACCUMULATOR)
    x = tl.load(gate + row * gate_row + along(at, gate_column), mask=mask, other=0.0).to(ACCUMULATOR)
    value, slope = FUNCTION(x)
    if up is not None:
        tl.store(dup + row * columns + at, mine * value, mask=mask)
        mine *= tl.load(up + row * up_row + along(at, up_column), mask=mask, other=0.0).to(ACCUMULATOR)
    tl.store(dgate + row * columns + at, mine * slope, mask=mask)


def activation_forward(x, name, up=None):
    """Return an activation of x, times `up` where it is given.

    Args:
        x: any shape with at least one axis, floating, any strides.
        name: "gelu", "gelu_tanh" or "silu".
        up: like x, for the gated forms: GEGLU is ("gelu", up), SwiGLU ("silu", up).

    Raises:
        ValueError: an unknown name, or up of another shape.

    >>> import numpy as np
    >>> activation_forward(np.array([0.0, 1.0]), "silu", up=np.array([1.0, 2.0])).round(4)
    array([0.    , 1.4621])
    """
    function = _function(name)
    _check(x, up=up)
    gate, other = as_rows(x), None if up is None else as_rows(up)
    rows, columns = gate.shape
    out = empty(x, (rows, columns), x.dtype)
    block = block_for(columns, _LARGEST_BLOCK)
    launch(
        forward_kernel,
        (rows * triton.cdiv(columns, block),),
        *(gate, other, out, columns, *strides(gate), *_strides(other)),
        FUNCTION=function,
        **block_options(block, x.dtype),
    )
    return out.reshape(x.shape)


def activation_backward(ct, x, name, up=None):
    """Return (dx, dup) for a cotangent of `activation_forward(x, name, up)`; dup is None where up is."""
    function = _function(name)
    _check(x, up=up, ct=ct)
    mine, gate, other = as_rows(ct), as_rows(x), None if up is None else as_rows(up)
    rows, columns = gate.shape
    dgate = empty(x, (rows, columns), x.dtype)
    dup = None if up is None else empty(up, (rows, columns), up.dtype)
    block = block_for(columns, _LARGEST_BLOCK)
    launch(
        backward_kernel,
        (rows * triton.cdiv(columns, block),),
        *(mine, gate, other, dgate, dup, columns, *strides(mine), *strides(gate), *_strides(other)),
        FUNCTION=function,
        **block_options(block, x.dtype),
    )
    return dgate.reshape(x.shape), None if dup is None else dup.reshape(up.shape)


def _function(name):
    if name not in ACTIVATIONS:
        raise ValueError(f"name: got {name!r}, expected one of {sorted(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def _check(x, **others):
    for name, array in others.items():
        if array is not None and array.shape != x.shape:
            raise ValueError(f"{name}: got shape {array.shape}, expected {x.shape}")


def _strides(array):
    return (None, None) if array is None else strides(array)

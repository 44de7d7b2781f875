"""One step of AdamW or SGD in one pass over the parameters, and the norm of all gradients for clipping.

AdamW (Loshchilov and Hutter, 2019): m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g², and with the bias corrections
c1 = 1 - b1^step, c2 = 1 - b2^step: p = p - lr (wd p + (m / c1) / (√(v / c2) + eps)).
SGD: g = g + wd p, u = momentum u + g, p = p - lr u (or lr (g + momentum u), Nesterov's form).

State is float32 whatever the parameters are. Steps return new arrays and change none. The factor that clips gradients
stays on the device: nothing waits for it.
"""

import numpy as np
import triton
import triton.language as tl

from .runtime import empty, launch
from .tiling import block_for, block_of_row, row_of_program, warps_for

_LARGEST_BLOCK = 1024
_F32 = np.dtype(np.float32)


@triton.jit
def adamw_kernel(
    param,
    grad,
    first,
    second,
    scale,
    new_param,
    new_first,
    new_second,
    size,
    lr,
    keep1,
    add1,
    keep2,
    add2,
    correction1,
    correction2,
    eps,
    weight_decay,
    BLOCK: tl.constexpr,
):
    """One program a block of parameters; keep is b and add is 1 - b, rounded once each."""
    _, at, mask = block_of_row(size, BLOCK)
    p = tl.load(param + at, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
    if scale is not None:
        g *= tl.load(scale)
    m = keep1 * tl.load(first + at, mask=mask, other=0.0) + add1 * g
    v = keep2 * tl.load(second + at, mask=mask, other=0.0) + add2 * g * g
    change = weight_decay * p + (m / correction1) / (tl.sqrt(v / correction2) + eps)
    tl.store(new_param + at, p - lr * change, mask=mask)
    tl.store(new_first + at, m, mask=mask)
    tl.store(new_second + at, v, mask=mask)


@triton.jit
def sgd_kernel(
    param,
    grad,
    velocity,
    scale,
    new_param,
    new_velocity,
    size,
    lr,
    momentum,
    weight_decay,
    NESTEROV: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a block of parameters."""
    _, at, mask = block_of_row(size, BLOCK)
    p = tl.load(param + at, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
    if scale is not None:
        g *= tl.load(scale)
    g += weight_decay * p
    u = momentum * tl.load(velocity + at, mask=mask, other=0.0) + g
    if NESTEROV:
        g += momentum * u
    else:
        g = u
    tl.store(new_param + at, p - lr * g, mask=mask)
    tl.store(new_velocity + at, u, mask=mask)


@triton.jit
def squares_kernel(x, partial, size, BLOCK: tl.constexpr):
    """One program a block: the sum of its squares."""
    _, at, mask = block_of_row(size, BLOCK)
    value = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(partial + row_of_program(), tl.sum(value * value, 0))


@triton.jit
def clip_kernel(partials, sizes, norm, scale, limit, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """One program: the root of all partial sums, and the factor that brings it down to the limit."""
    total = tl.zeros((), tl.float32)
    for index in tl.static_range(COUNT):
        for start in range(0, sizes[index], BLOCK):
            at = start + tl.arange(0, BLOCK)
            total += tl.sum(tl.load(partials[index] + at, mask=at < sizes[index], other=0.0), 0)
    root = tl.sqrt(total)
    tl.store(norm, root)
    tl.store(scale, tl.where(root > limit, limit / root, 1.0))


def adamw_step(param, grad, first, second, step, *, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, scale=None):
    """Return (param, first, second) after a step of AdamW.

    Args:
        param, grad: any shape, float16, bfloat16 or float32.
        first, second: float32 of that shape; zeros before the first step.
        step: number of the step, from 1.
        lr, betas, eps, weight_decay: as in the formula above.
        scale: float32 of shape (1,) that gradients are multiplied by, as `clip_by_norm` returns it, or None.

    Raises:
        ValueError: shapes differ, or step is below 1.
        TypeError: an unsupported type.

    >>> import numpy as np
    >>> zeros = np.zeros(2, np.float32)
    >>> adamw_step(np.ones(2, np.float32), np.ones(2, np.float32), zeros, zeros, 1, lr=0.1, weight_decay=0.0)[0]
    array([0.9, 0.9], dtype=float32)
    """
    if step < 1:
        raise ValueError(f"step: got {step}, expected 1 or more")
    _check(param, grad=grad, first=first, second=second)
    new = empty(param, param.shape, param.dtype), empty(param, param.shape, _F32), empty(param, param.shape, _F32)
    one, two = betas
    numbers = (lr, one, 1 - one, two, 1 - two, 1 - one**step, 1 - two**step, eps, weight_decay)
    _launch(adamw_kernel, (param, grad, first, second, scale), new, numbers)
    return new


def sgd_step(param, grad, velocity, *, lr, momentum=0.0, weight_decay=0.0, nesterov=False, scale=None):
    """Return (param, velocity) after a step of gradient descent with momentum.

    Args:
        param, grad: any shape, float16, bfloat16 or float32.
        velocity: float32 of that shape; zeros before the first step.
        lr, momentum, weight_decay, nesterov: as in the formula above.
        scale: float32 of shape (1,) that gradients are multiplied by, as `clip_by_norm` returns it, or None.

    Raises:
        ValueError: shapes differ.
        TypeError: an unsupported type.

    >>> import numpy as np
    >>> sgd_step(np.ones(2, np.float32), np.ones(2, np.float32), np.zeros(2, np.float32), lr=0.5)[0]
    array([0.5, 0.5], dtype=float32)
    """
    _check(param, grad=grad, velocity=velocity)
    new = empty(param, param.shape, param.dtype), empty(param, param.shape, _F32)
    _launch(sgd_kernel, (param, grad, velocity, scale), new, (lr, momentum, weight_decay), NESTEROV=nesterov)
    return new


def clip_by_norm(grads, limit):
    """Return (norm, scale) of all gradients together: scale brings a norm above the limit down to it.

    Args:
        grads: a sequence of arrays.
        limit: the largest norm.

    Returns:
        Two float32 arrays of shape (1,), on the gradients' device; 0 and 1 where there are none.

    >>> import numpy as np
    >>> norm, scale = clip_by_norm([np.full(4, 3.0, np.float32), np.full(4, 4.0, np.float32)], 1.0)
    >>> norm, scale
    (array([10.], dtype=float32), array([0.1], dtype=float32))
    """
    grads = list(grads)
    if not grads:
        return np.zeros(1, _F32), np.ones(1, _F32)
    partials = []
    for grad in grads:
        flat = grad.reshape(-1)
        block = block_for(flat.size, _LARGEST_BLOCK)
        partial = empty(grad, (triton.cdiv(flat.size, block),), _F32)
        launch(squares_kernel, partial.shape, flat, partial, flat.size, BLOCK=block, num_warps=warps_for(block))
        partials.append(partial)
    norm, scale = empty(grads[0], (1,), _F32), empty(grads[0], (1,), _F32)
    sizes = tuple(partial.size for partial in partials)
    launch(clip_kernel, 1, tuple(partials), sizes, norm, scale, float(limit), COUNT=len(partials), BLOCK=1024)
    return norm, scale


def _launch(kernel, given, new, numbers, **fixed):
    """Run an elementwise kernel over packed copies or views of its inputs."""
    size = new[0].size
    block = block_for(size, _LARGEST_BLOCK)
    inputs = (array if array is None else array.reshape(-1) for array in given)
    launch(
        kernel,
        (triton.cdiv(size, block),),
        *(*inputs, *new, size, *map(float, numbers)),
        BLOCK=block,
        num_warps=warps_for(block),
        **fixed,
    )


def _check(param, **others):
    if param.dtype == np.float64 or param.dtype.kind not in "fV":
        raise TypeError(f"param: got {param.dtype}, expected float16, bfloat16 or float32")
    for name, array in others.items():
        if array.shape != param.shape:
            raise ValueError(f"{name}: got shape {array.shape}, expected {param.shape}")
        if name != "grad" and array.dtype != np.float32:
            raise TypeError(f"{name}: got {array.dtype}, expected float32")

"""Contractions: dot_general and conv_general. Both end in BLAS: dot of matrices, or matmul of stacks of them."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from fgrad.core import ArrayType, state, type_of
from fgrad.kinds import bilinear
from fgrad.ops.blas import ALONE, SMALL, one_thread
from fgrad.ops.shape import as_slices, inverse, move_axis, pad, padding_of, reverse

_HALF = "e"  # the code of float16, for which there is no BLAS and whose sums want single precision

# -------------------------------------------------------------------------------------------------- dot_general


class _Layout:  # plain classes here: every NamedTuple adds a fifth of a millisecond to the import
    """How operands become matrices: x (batch, free, contracted) and y (batch, contracted, free).

    `x_split` and `y_split` say where the last group begins; `matrices` that there is one axis in each.
    """

    __slots__ = ("x_perm", "y_perm", "batch", "x_split", "y_split", "matrices")

    def __init__(self, x_perm, y_perm, batch, x_split, y_split, matrices):
        self.x_perm = x_perm
        self.y_perm = y_perm
        self.batch = batch
        self.x_split = x_split
        self.y_split = y_split
        self.matrices = matrices


def _others(ndim, *taken):
    """Return the axes that none of the tuples contains."""
    return tuple([a for a in range(ndim) if not any(a in axes for axes in taken)])


@functools.lru_cache(maxsize=4096)
def _layout(x_ndim, y_ndim, contract, batch):
    pairs = sorted(zip(*contract, strict=True))  # in the order of x, so that neighbours merge without a copy
    xc = tuple([a for a, _ in pairs])
    yc = tuple([b for _, b in pairs])
    xb, yb = batch
    x_free, y_free = _others(x_ndim, xc, xb), _others(y_ndim, yc, yb)
    nb = len(xb)
    matrices = nb > 0 and len(x_free) == len(xc) == len(y_free) == 1
    x_perm, y_perm = _unless_identity((*xb, *x_free, *xc)), _unless_identity((*yb, *yc, *y_free))
    return _Layout(x_perm, y_perm, nb, nb + len(x_free), nb + len(yc), matrices)


class MatrixPlan:
    """How one dot_general becomes a product of matrices or vectors: transposes and shapes of operands and result."""

    __slots__ = ("x_perm", "y_perm", "x_shape", "y_shape", "out_shape")

    def __init__(self, x_perm, y_perm, x_shape, y_shape, out_shape):
        self.x_perm = x_perm
        self.y_perm = y_perm
        self.x_shape = x_shape
        self.y_shape = y_shape
        self.out_shape = out_shape


def matrix_plan(x_shape, y_shape, contract, batch):
    """Return the `MatrixPlan` for operands of these shapes; stacks of matrices where there are batch axes."""
    layout = _layout(len(x_shape), len(y_shape), contract, batch)
    xs = x_shape if layout.x_perm is None else tuple([x_shape[a] for a in layout.x_perm])
    ys = y_shape if layout.y_perm is None else tuple([y_shape[a] for a in layout.y_perm])
    nb, i, j = layout.batch, layout.x_split, layout.y_split
    lead, free_x, free_y = xs[:nb], xs[nb:i], ys[j:]
    stacked = nb > 0
    rows = (math.prod(free_x),) if free_x or stacked else ()
    columns = (math.prod(free_y),) if free_y or stacked else ()
    inner = math.prod(xs[i:])
    return MatrixPlan(
        layout.x_perm, layout.y_perm, (*lead, *rows, inner), (*lead, inner, *columns), (*lead, *rows, *columns)
    )


def _unless_identity(perm):
    """Return `perm`, or None if it changes nothing."""
    return None if perm == tuple(range(len(perm))) else perm


def _dot_general(x, y, *, contract, batch):
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.char == _HALF:
        wide = _dot_general(x.astype(np.float32), y.astype(np.float32), contract=contract, batch=batch)
        return wide.astype(np.float16)
    if x.ndim <= 2 and y.ndim <= 2 and len(contract[0]) == 1 and not batch[0]:
        x = x if contract[0][0] == x.ndim - 1 else x.T
        y = y.T if contract[1][0] else y
        return _product(x, y)
    layout = _layout(x.ndim, y.ndim, contract, batch)
    if layout.x_perm is not None:
        x = x.transpose(layout.x_perm)
    if layout.y_perm is not None:
        y = y.transpose(layout.y_perm)
    if layout.matrices:
        return np.matmul(_for_blas(x), _for_blas(y))
    return _as_matrices(x, y, layout)


def _as_matrices(x, y, layout):
    """Merge the free and the contracted axes of operands in the order of `layout`, and multiply."""
    nb, x_split, y_split = layout.batch, layout.x_split, layout.y_split
    lead, x_shape, y_shape = x.shape[:nb], x.shape, y.shape
    shape = x_shape[:x_split] + y_shape[y_split:]
    rows, inner = math.prod(x_shape[nb:x_split]), math.prod(x_shape[x_split:])
    x = x.reshape((*lead, rows, inner))
    y = y.reshape((*lead, inner, math.prod(y_shape[y_split:])))
    if x_split == len(x_shape):  # nothing is summed
        return np.multiply(x, y).reshape(shape)
    if not nb:
        return _product(x, y).reshape(shape)
    return np.matmul(_for_blas(x), _for_blas(y)).reshape(shape)


def _product(x, y):
    """Return the product of two matrices or vectors, on one thread if BLAS would divide too little among several."""
    if x.ndim == y.ndim == 2 and ALONE < x.size * y.shape[1] < SMALL:
        with one_thread():
            return x.dot(y)
    return x.dot(y)


def _for_blas(x):
    """Return a stack of matrices such that BLAS takes them; matmul is slow where rows and columns are both strided."""
    a, b = x.strides[-2:]
    size = x.itemsize
    m, n = x.shape[-2:]
    if (b == size and a >= n * size) or (a == size and b >= m * size):
        return x
    return np.ascontiguousarray(x)


def _dot_type(x, y, *, contract, batch):
    for name, (xs, ys) in (("contract", contract), ("batch", batch)):
        xn, yn = [x.shape[a] for a in xs], [y.shape[a] for a in ys]
        if xn != yn:
            raise ValueError(f"dot_general: {name}={(xs, ys)} pairs axes of lengths {xn} and {yn} of {x} and {y}")
    (xc, yc), (xb, yb) = contract, batch
    free = [x.shape[a] for a in (*xb, *_others(x.ndim, xc, xb))] + [y.shape[a] for a in _others(y.ndim, yc, yb)]
    return ArrayType(tuple(free), np.result_type(x.dtype, y.dtype))


@functools.lru_cache(maxsize=4096)
def _transposed(wrt, x_ndim, y_ndim, contract, batch):
    """Return contract, batch and final permutation of the product of `ct` with the other operand.

    It is dot_general(ct, y) for x and dot_general(x, ct) for y: so that for matrices no permutation is left.
    """
    (xc, yc), (xb, yb) = contract, batch
    nb = len(xb)
    x_free, y_free = _others(x_ndim, xc, xb), _others(y_ndim, yc, yb)
    examples = tuple(range(nb))
    ct_x = tuple(range(nb, nb + len(x_free)))
    ct_y = tuple(range(nb + len(x_free), nb + len(x_free) + len(y_free)))
    if wrt == "x":
        dims = (*xb, *x_free, *[a for _, a in sorted(zip(yc, xc, strict=True))])
        return (ct_y, y_free), (examples, yb), _unless_identity(inverse(dims))
    dims = (*yb, *[b for _, b in sorted(zip(xc, yc, strict=True))], *y_free)
    return (x_free, ct_x), (xb, examples), _unless_identity(inverse(dims))


_MATRICES = ((1,), (0,))  # the contraction of two matrices


def _matrices(ct, other, x, y, contract):
    """Return whether a pull is the product of two plain matrices, so that nothing need be looked up for it."""
    return (
        contract == _MATRICES
        and x.ndim == y.ndim == 2
        and ct.__class__ is other.__class__ is np.ndarray
        and state.interpreter is None
        and ct.dtype.char != _HALF
    )


def _pull_x(ct, x, y, *, contract, batch):
    if _matrices(ct, y, x, y, contract):
        return _product(ct, y.T)
    contract, batch, perm = _transposed("x", x.ndim, y.ndim, contract, batch)
    g = dot_general(ct, y, contract=contract, batch=batch)
    return g if perm is None else g.transpose(perm)


def _pull_y(ct, x, y, *, contract, batch):
    if _matrices(ct, x, x, y, contract):
        return _product(x.T, ct)
    contract, batch, perm = _transposed("y", x.ndim, y.ndim, contract, batch)
    g = dot_general(x, ct, contract=contract, batch=batch)
    return g if perm is None else g.transpose(perm)


def _past(axes, new):
    """Return `axes` as they are after an axis is put in at `new` (None: nowhere)."""
    return axes if new is None else tuple([a + (a >= new) for a in axes])


def _batch_dot_general(args, dims, size, *, contract, batch):
    x, y = args
    on_x, on_y = dims
    contract = _past(contract[0], on_x), _past(contract[1], on_y)
    xb, yb = _past(batch[0], on_x), _past(batch[1], on_y)
    if on_x is not None and on_y is not None:
        return dot_general(x, y, contract=contract, batch=((on_x, *xb), (on_y, *yb))), 0
    out = dot_general(x, y, contract=contract, batch=(xb, yb))
    x_free = _others(type_of(x).ndim, contract[0], xb)
    if on_x is not None:
        return out, len(xb) + x_free.index(on_x)
    return out, len(xb) + len(x_free) + _others(y.ndim, contract[1], yb).index(on_y)


dot_general = bilinear(
    "dot_general",
    _dot_general,
    type=_dot_type,
    transpose=(_pull_x, _pull_y),
    batch=_batch_dot_general,
    gpu="matmul.dot_general",
    doc="Sum of products over the axes `contract` of x and y, for each index of the axes `batch`; the result has the "
    "batch axes, then what is left of x, then what is left of y.",
)

# ------------------------------------------------------------------------------------------------- conv_general


class _Spatial:
    """One spatial axis of a convolution."""

    __slots__ = ("size", "kernel", "stride", "before", "after", "x_dilation", "w_dilation")

    def __init__(self, size, kernel, stride, before, after, x_dilation, w_dilation):
        self.size = size
        self.kernel = kernel
        self.stride = stride
        self.before = before
        self.after = after
        self.x_dilation = x_dilation
        self.w_dilation = w_dilation

    @property
    def x_dilated(self):
        return (self.size - 1) * self.x_dilation + 1 if self.size else 0

    @property
    def w_dilated(self):
        return (self.kernel - 1) * self.w_dilation + 1 if self.kernel else 0

    @property
    def out(self):
        return max(0, (self.before + self.x_dilated + self.after - self.w_dilated) // self.stride + 1)

    @property
    def out_dilated(self):
        return (self.out - 1) * self.stride + 1 if self.out else 0


def _spatial(x, w, strides, padding, x_dilation, w_dilation):
    lows, highs = zip(*padding, strict=True) if padding else ((), ())
    axes = zip(x.shape[2:], w.shape[2:], strides, lows, highs, x_dilation, w_dilation, strict=True)
    return [_Spatial(*axis) for axis in axes]


def _conv_type(x, w, *, strides, padding, x_dilation, w_dilation, groups):
    if x.ndim != w.ndim or x.ndim < 2 or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ValueError(
            f"conv_general wants x (N, C, ...) and w (O, C / groups, ...), groups={groups} dividing O, got {x} and {w}"
        )
    axes = _spatial(x, w, strides, padding, x_dilation, w_dilation)
    return ArrayType((x.shape[0], w.shape[0], *[a.out for a in axes]), np.result_type(x.dtype, w.dtype))


def _conv_general(x, w, *, strides, padding, x_dilation, w_dilation, groups):
    """Lay out every window of x as a row or column of a matrix, and multiply."""
    if x.dtype.char == _HALF:
        x, w = x.astype(np.float32), w.astype(np.float32)
        params = {"strides": strides, "padding": padding, "x_dilation": x_dilation, "w_dilation": w_dilation}
        return _conv_general(x, w, groups=groups, **params).astype(np.float16)
    axes = _spatial(x, w, strides, padding, x_dilation, w_dilation)
    if max(x_dilation, default=1) > 1 and max(strides) == 1:
        return _conv_dilated(x, w, axes, groups)
    widths = tuple([(lo, hi, d - 1) for (lo, hi), d in zip(padding, x_dilation, strict=True)])
    if any(any(width) for width in widths):
        x = pad.impl(x, 0, widths=((0, 0, 0), (0, 0, 0), *widths))
    windows = _windows(x, axes, groups)
    n, channels, rank = x.shape[0], w.shape[1], len(axes)
    kernel, out = w.shape[2:], tuple([a.out for a in axes])
    inner, places = channels * math.prod(kernel), math.prod(out)
    weights = w.reshape((groups, w.shape[0] // groups, inner))
    if math.prod(kernel) <= places:
        columns = windows.reshape((n, groups, inner, places))
        return np.matmul(weights, columns).reshape((n, w.shape[0], *out))
    order = (1, 0, *range(3 + rank, 3 + 2 * rank), *range(2, 3 + rank))  # long rows are quicker to copy than columns
    rows = windows.transpose(order).reshape((groups, n * places, inner))
    y = np.matmul(rows, weights.transpose((0, 2, 1)))
    return y.reshape((groups, n, places, weights.shape[1])).transpose((1, 0, 3, 2)).reshape((n, w.shape[0], *out))


def _windows(x, axes, groups):
    """Return a view of the padded `x` of shape (N, groups, channels, kernel..., out...)."""
    channels = x.shape[1] // groups
    by_example, by_channel, *steps = x.strides
    return as_strided(
        x,
        (x.shape[0], groups, channels, *[a.kernel for a in axes], *[a.out for a in axes]),
        (
            by_example,
            by_channel * channels,
            by_channel,
            *[step * a.w_dilation for step, a in zip(steps, axes, strict=True)],
            *[step * a.stride for step, a in zip(steps, axes, strict=True)],
        ),
        writeable=False,
    )


def _conv_dilated(x, w, axes, groups):
    """Convolve a dilated `x` with stride 1 and without its zeros: multiply, then add up what each tap gives."""
    n, space = x.shape[0], x.shape[2:]
    features, channels, *kernel = w.shape
    taps = math.prod(kernel)
    weights = w.reshape((groups, features // groups, channels, taps)).transpose((0, 1, 3, 2))
    weights = weights.reshape((groups, features // groups * taps, channels))
    parts = np.matmul(weights, x.reshape((n, groups, channels, math.prod(space))))
    parts = parts.reshape((n, features, *kernel, *space))
    out = np.zeros((n, features, *[a.out for a in axes]), x.dtype)
    for tap in np.ndindex(*kernel):
        befores = [a.before - k * a.w_dilation for a, k in zip(axes, tap, strict=True)]
        widths = tuple([(b, a.out - b - a.x_dilated, a.x_dilation - 1) for a, b in zip(axes, befores, strict=True)])
        _, target, source = padding_of(space, widths)
        out[(..., *as_slices(target))] += parts[(np.s_[:], np.s_[:], *tap, *as_slices(source))]
    return out


def _swapped(w, groups):
    """Return the kernel (O, C / groups, ...) with input and output features exchanged: (C, O / groups, ...)."""
    shape = w.shape
    w = w.reshape((groups, shape[0] // groups, *shape[1:]))
    w = w.transpose((0, 2, 1, *range(3, w.ndim)))
    return w.reshape((groups * shape[1], shape[0] // groups, *shape[2:]))


def _pull_conv_x(ct, x, w, *, strides, padding, x_dilation, w_dilation, groups):
    """Convolve the cotangent, dilated by the strides, with the kernel turned round."""
    axes = _spatial(x, w, strides, padding, x_dilation, w_dilation)
    befores = [a.w_dilated - 1 - a.before for a in axes]
    afters = [a.x_dilated + a.w_dilated - 1 - a.out_dilated - b for a, b in zip(axes, befores, strict=True)]
    return conv_general(
        ct,
        reverse(_swapped(w, groups), axes=tuple(range(2, x.ndim))),
        strides=x_dilation,
        padding=tuple(zip(befores, afters, strict=True)),
        x_dilation=strides,
        w_dilation=w_dilation,
        groups=groups,
    )


def _pull_conv_w(ct, x, w, *, strides, padding, x_dilation, w_dilation, groups):
    """Convolve x with the cotangent as kernel: examples are contracted, channels take their place."""
    axes = _spatial(x, w, strides, padding, x_dilation, w_dilation)
    afters = [a.out_dilated - a.x_dilated + a.w_dilated - a.before - 1 for a in axes]
    n, space = x.shape[0], x.shape[2:]
    channels = w.shape[1]
    examples = x.reshape((n, groups, channels, *space))
    examples = examples.transpose((2, 1, 0, *range(3, examples.ndim))).reshape((channels, groups * n, *space))
    g = conv_general(
        examples,
        move_axis(ct, 1, 0),
        strides=w_dilation,
        padding=tuple([(a.before, after) for a, after in zip(axes, afters, strict=True)]),
        x_dilation=x_dilation,
        w_dilation=strides,
        groups=groups,
    )
    return move_axis(g, 1, 0)


def _batch_conv_general(args, dims, size, *, groups, **params):
    """Fold the batch axis into the examples, the output features or the groups."""
    x, w = args
    on_x, on_w = dims
    if on_w is None:
        x = move_axis(x, on_x, 0)
        n = x.shape[1]
        out = conv_general(x.reshape((size * n, *x.shape[2:])), w, groups=groups, **params)
        return out.reshape((size, n, *out.shape[1:])), 0
    w = move_axis(w, on_w, 0)
    if on_x is None:
        return _more_features(x, w, groups, params), 0
    return _more_groups(move_axis(x, on_x, 1), w, groups, params), 1


def _more_features(x, w, groups, params):
    """Convolve `x` with every kernel of `w`, as one kernel with more features in each group."""
    size, features = w.shape[0], w.shape[1] // groups
    w = move_axis(w.reshape((size, groups, features, *w.shape[2:])), 0, 1)
    out = conv_general(x, w.reshape((groups * size * features, *w.shape[3:])), groups=groups, **params)
    out = move_axis(out.reshape((out.shape[0], groups, size, features, *out.shape[2:])), 2, 0)
    return out.reshape((size, out.shape[1], groups * features, *out.shape[4:]))


def _more_groups(x, w, groups, params):
    """Convolve each of the examples along axis 1 of `x` with the kernel of its own."""
    n, size, channels, *space = x.shape
    if not size:  # there is no convolution in 0 groups
        kind = _conv_type(
            ArrayType((n, channels, *space), x.dtype), ArrayType(w.shape[1:], w.dtype), groups=groups, **params
        )
        return np.zeros((n, 0, *kind.shape[1:]), kind.dtype)
    features = w.shape[1]
    x = x.reshape((n, size * channels, *space))
    out = conv_general(x, w.reshape((size * features, *w.shape[2:])), groups=size * groups, **params)
    return out.reshape((n, size, features, *out.shape[2:]))


conv_general = bilinear(
    "conv_general",
    _conv_general,
    type=_conv_type,
    transpose=(_pull_conv_x, _pull_conv_w),
    batch=_batch_conv_general,
    gpu="conv.conv_general",
    doc="Cross-correlation of x (N, C, spatial...) with kernels w (O, C / groups, spatial...) to (N, O, spatial...).",
)

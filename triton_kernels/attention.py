"""Attention without the matrix of scores: softmax(q kᵀ scale + bias) v, block by block, and its gradients.

Forward (Dao et al., 2022; Dao, 2023): blocks of keys pass by a block of queries, which keeps its largest score and sum.
Backward: scores are computed again; with p the probabilities, dp = ct vᵀ and delta = Σ ct out of a row,
ds = p (dp - delta), dq = ds k scale, dk = dsᵀ q scale, dv = pᵀ ct, dbias = ds. One kernel gives dq and dbias, one dk
and dv, each block written by one program, so that there are no atomics.

A mask says which keys a query sees: queries stand at the end of the keys, so query i is at position i + keys - queries;
`causal` hides keys behind the position, `window` keys `window` or more away. A query that sees no key gives zeros.
`softcap` c replaces a score s by c tanh(s / c), before the bias. Where there are fewer heads of keys, groups of query
heads share them. Dropout drops probabilities by the bits of `dropout.py`, each numbered by batch, head, query and key,
so that its mask is the same in every kernel and for every block size.

Ragged batches: sequences stand one after another in a single axis, and `starts` says where each begins.
"""

import itertools
import math

import numpy as np
import triton

from .attention_kernels import delta_kernel, dkv_kernel, dq_kernel, forward_kernel
from .dropout import seed_array
from .layout import packed
from .reduction import column_sums
from .runtime import empty, home_of, launch, strides, zeros
from .tiling import accumulator, accumulator_dtype
from .tune import launch_fastest


def attention_forward(
    q,
    k,
    v,
    bias=None,
    seed=None,
    q_starts=None,
    k_starts=None,
    *,
    causal=False,
    window=None,
    softcap=None,
    scale=None,
    rate=0.0,
    max_queries=None,
    max_keys=None,
    precision="ieee",
):
    """Return softmax(q kᵀ scale + bias) v over the keys that each query sees.

    Args:
        q: (batch, heads, queries, size), floating, any strides; ragged: (all queries, heads, size).
        k, v: (batch, key heads, keys, size), of q's type; heads is a multiple of key heads; ragged:
            (all keys, key heads, size).
        bias: what broadcasts to (batch, heads, queries, keys), floating, or None. Not for ragged batches.
        seed: integer, or an integer array of one element; wanted if rate is not 0.
        q_starts, k_starts: (batch + 1,) integers for ragged batches: sequence i has the rows from starts[i] up to
            starts[i + 1]. Rows of no sequence give zeros.
        causal: hide keys behind a query's position; the last query stands at the last key.
        window: hide keys this far away or farther; None for none.
        softcap: bound of the scores, or None.
        scale: factor of the scores; 1 / √size unless given.
        rate: probability of dropping a probability, in [0, 1).
        max_queries, max_keys: the longest sequences of a ragged batch; where None they are read from the starts, for
            which a device has to be waited for.
        precision: "ieee", "tf32" or "tf32x3", for float32 operands.

    Returns:
        (out, lse): out like q; lse (batch, heads, queries) or (heads, all queries), float64 for float64 and else
        float32, for the gradients.

    Raises:
        ValueError: shapes do not fit, or rate is out of range.
        TypeError: q, k and v differ in type, or a rate comes without a seed.

    >>> import numpy as np
    >>> q, k, v = np.zeros((1, 1, 1, 2)), np.zeros((1, 1, 2, 2)), np.arange(4.0).reshape(1, 1, 2, 2)
    >>> attention_forward(q, k, v)[0]
    array([[[[1., 2.]]]])
    """
    call = _Call(q, k, v, bias, seed, q_starts, k_starts, max_queries, max_keys, rate)
    options = _options(q, causal, window, softcap, scale, rate, precision)
    out, lse = call.new(q, call.q.shape, q.dtype), call.new(q, call.q.shape[:-1], accumulator_dtype(q.dtype))
    launch_fastest(
        forward_kernel,
        lambda named: call.query_programs(named["M"]),
        *(call.q, call.k, call.v, *call.extras, out, lse),
        *(*call.sizes, *map(strides, (call.q, call.k, call.v)), call.bias_steps, call.row_steps),
        **_tuned(call, options),
    )
    return call.outside(out), lse[0] if call.ragged else lse


def attention_backward(
    ct,
    q,
    k,
    v,
    out,
    lse,
    bias=None,
    seed=None,
    q_starts=None,
    k_starts=None,
    *,
    causal=False,
    window=None,
    softcap=None,
    scale=None,
    rate=0.0,
    max_queries=None,
    max_keys=None,
    precision="ieee",
):
    """Return (dq, dk, dv), and dbias after them if there is a bias, for a cotangent of `attention_forward`.

    Args:
        ct: like q, any strides.
        q, k, v, bias, seed, starts and the options: as given to the forward pass.
        out, lse: as it returned them.
    """
    call = _Call(q, k, v, bias, seed, q_starts, k_starts, max_queries, max_keys, rate)
    if ct.shape != q.shape:
        raise ValueError(f"ct: got shape {ct.shape}, expected {q.shape}")
    options = _options(q, causal, window, softcap, scale, rate, precision)
    mine, result, lse = call.inside(ct), packed(call.inside(out)), packed(lse)
    dtype = accumulator_dtype(q.dtype)
    delta = call.new(q, call.q.shape[:-1], dtype)
    dq, dk, dv = (call.new(x, x.shape, x.dtype) for x in (call.q, call.k, call.v))
    heads, _, longest_q, longest_k, size = call.sizes
    # Blocks that no query sees are not visited.
    dbias = None if bias is None else zeros(q, (*call.q.shape[:3], longest_k), dtype)
    query_programs = (call.query_programs(options["M"]),)
    launch(
        delta_kernel,
        query_programs,
        *(mine, result, call.extras[2], delta, heads, longest_q, size, strides(mine), call.row_steps),
        **{name: options[name] for name in ("ACCUMULATOR", "M", "D")},
    )
    given = (mine, call.q, call.k, call.v, *call.extras, lse, delta)
    steps = (*map(strides, (mine, call.q, call.k, call.v)), call.bias_steps, call.row_steps)
    launch_fastest(
        dq_kernel,
        lambda named: call.query_programs(named["M"]),
        *(*given, dq, dbias, *call.sizes, *steps),
        **_tuned(call, options),
    )
    launch_fastest(
        dkv_kernel,
        lambda named: call.key_programs(named["N"]),
        *(*given, dk, dv, *call.sizes, *steps, call.key_row_steps),
        # A program owns a block of keys here. It keeps two blocks of results: more queries at a time would spill.
        **_tuned(call, {**options, "M": min(options["M"], 32), "N": options["M"]}),
    )
    gradients = tuple(map(call.outside, (dq, dk, dv)))
    return gradients if bias is None else (*gradients, _sum_to(dbias, bias))


class _Call:
    """The arrays of one call as the kernels take them: (batch, heads, rows, size), a ragged batch as a batch of one."""

    def __init__(self, q, k, v, bias, seed, q_starts, k_starts, max_queries, max_keys, rate):
        self.ragged = q_starts is not None or k_starts is not None
        _check(q, k, v, bias, q_starts, k_starts)
        if not 0 <= rate < 1:
            raise ValueError(f"rate: got {rate}, expected a number in [0, 1)")
        self.q, self.k, self.v = (self.inside(x) for x in (q, k, v))
        batch, heads, queries, size = self.q.shape
        key_heads, keys = self.k.shape[1:3]
        if self.ragged:
            batch = q_starts.shape[0] - 1
            queries = _longest(q_starts) if max_queries is None else max_queries
            keys = _longest(k_starts) if max_keys is None else max_keys
        self.batch, self.key_heads = batch, key_heads
        self.sizes = (heads, heads // key_heads, queries, keys, size)
        self.bias_steps = _bias_steps(bias)
        self.extras = (bias, seed_array(seed, q) if rate else None, packed(q_starts), packed(k_starts))
        self.row_steps, self.key_row_steps = (_row_steps(x, self.ragged) for x in (self.q, self.k))

    def query_programs(self, block):
        """Return how many programs the blocks of queries take."""
        return self.batch * self.sizes[0] * triton.cdiv(self.sizes[2], block)

    def key_programs(self, block):
        """Return how many programs the blocks of keys take."""
        return self.batch * self.key_heads * triton.cdiv(self.sizes[3], block)

    def inside(self, x):
        """Return a user's array as the kernels take it; its batch then has step 0, for rows count through."""
        return x.transpose(1, 0, 2)[None] if self.ragged else x

    def outside(self, x):
        """Return a kernel's array as the user takes it."""
        return x[0].transpose(1, 0, 2) if self.ragged else x

    def new(self, like, shape, dtype):
        """Return an array for results; zeros if rows may belong to no sequence."""
        return zeros(like, shape, dtype) if self.ragged else empty(like, shape, dtype)


def _row_steps(x, ragged):
    _, heads, rows, _ = x.shape
    return (0, rows) if ragged else (heads * rows, rows)


def _longest(starts):
    return int(np.diff(home_of(starts).to_numpy(starts)).max(initial=0))


def _bias_steps(bias):
    """Return the strides of a bias of up to four axes, 0 along those that it is broadcast along."""
    if bias is None:
        return (0, 0, 0, None)
    steps = [0 if size == 1 else step for size, step in zip(bias.shape, strides(bias))]
    return (*[0] * (4 - bias.ndim), *steps)


def _sum_to(gradient, like):
    """Return a packed gradient summed over the axes along which `like` was broadcast, in its dtype."""
    lead = (1,) * (gradient.ndim - like.ndim) + like.shape
    for axis, size in enumerate(lead):
        if size == 1 and gradient.shape[axis] != 1:
            before, after = math.prod(gradient.shape[:axis]), math.prod(gradient.shape[axis + 1 :])
            kept_shape = (*gradient.shape[:axis], 1, *gradient.shape[axis + 1 :])
            moved = gradient.reshape(before, -1, after).swapaxes(0, 1).reshape(gradient.shape[axis], before * after)
            gradient = column_sums(moved, gradient.dtype).reshape(kept_shape)
    return gradient.reshape(like.shape).astype(like.dtype)


def _options(q, causal, window, softcap, scale, rate, precision):
    """Return compile-time values: what is computed, block sizes by type and head size, warps."""
    size = q.shape[-1]
    width = max(16, triton.next_power_of_2(max(1, size)))
    block = 64 if q.dtype.itemsize <= 2 and width <= 128 else 32
    if q.dtype.itemsize == 8 or width > 256:
        block = 16
    return {
        "SCALE": float(scale) if scale is not None else 1 / math.sqrt(max(1, size)),
        "CAUSAL": bool(causal),
        "WINDOW": int(window or 0),
        "SOFTCAP": float(softcap or 0),
        "RATE": float(rate),
        "PRECISION": precision,
        "ACCUMULATOR": accumulator(q.dtype),
        "M": block,
        "N": min(block, 2 * width),  # with more, heads of 16 spill and fewer programs fit
        "D": width,
        "num_warps": 8 if block * width >= 64 * 128 else 4,
        "num_stages": 2,
    }


_BLOCKS = ("M", "N", "num_warps", "num_stages")


def _tuned(call, options):
    """Return options with the blocks, warps and stages apart, as what is chosen for a size."""

    def configurations():
        rule = {name: options[name] for name in _BLOCKS}
        found = [rule]
        for (height, width), warps in itertools.product(((1, 1), (2, 1), (1, 2), (0.5, 1), (1, 0.5)), (1, 2)):
            m, n = int(rule["M"] * height), int(rule["N"] * width)
            config = {**rule, "M": m, "N": n, "num_warps": max(4, min(8, warps * rule["num_warps"]))}
            if min(m, n) >= 16 and config not in found:
                found.append(config)
        return found

    fixed = {name: value for name, value in options.items() if name not in _BLOCKS}
    heads, _, queries, keys, size = call.sizes
    return {"configs": configurations, "sizes": (call.batch * heads, queries, keys, size), **fixed}


def _check(q, k, v, bias, q_starts, k_starts):
    ragged = q_starts is not None or k_starts is not None
    axes, heads_axis = (3, 1) if ragged else (4, 1)
    fits = q.ndim == k.ndim == axes and k.shape == v.shape and k.shape[-1] == q.shape[-1]
    if not fits or not ragged and k.shape[0] != q.shape[0]:
        expected = (
            "(all queries, heads, size) and twice (all keys, key heads, size)"
            if ragged
            else "(batch, heads, queries, size) and twice (batch, key heads, keys, size)"
        )
        raise ValueError(f"q, k, v: got shapes {q.shape}, {k.shape}, {v.shape}, expected {expected}")
    if k.shape[heads_axis] == 0 or q.shape[heads_axis] % k.shape[heads_axis]:
        raise ValueError(f"q, k: got {q.shape[heads_axis]} and {k.shape[heads_axis]} heads, expected a multiple")
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"q, k, v: got {q.dtype}, {k.dtype}, {v.dtype}, expected one type")
    if ragged:
        _check_starts(bias, q_starts, k_starts)
    elif bias is not None:
        shape = (*q.shape[:3], k.shape[2])
        try:
            fits = np.broadcast_shapes(bias.shape, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"bias: got shape {bias.shape}, expected one that broadcasts to {shape}")


def _check_starts(bias, q_starts, k_starts):
    if bias is not None:
        raise ValueError("bias: got one with q_starts and k_starts; ragged batches take none")
    if q_starts is None or k_starts is None:
        raise ValueError("q_starts, k_starts: got one of them, expected both or none")
    if q_starts.ndim != 1 or q_starts.shape != k_starts.shape or q_starts.shape[0] < 1:
        raise ValueError(
            f"q_starts, k_starts: got shapes {q_starts.shape} and {k_starts.shape}, expected (batch + 1,) twice"
        )

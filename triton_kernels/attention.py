"""Attention without the matrix of scores: softmax(q kᵀ scale) v, block by block, and its gradients.

Forward (Dao et al., 2022; Dao, 2023): blocks of keys pass by a block of queries, which keeps its largest score and sum.
Backward: scores are computed again; with p the probabilities, dp = ct vᵀ and delta = Σ ct out of a row,
ds = p (dp - delta), dq = ds k scale, dk = dsᵀ q scale, dv = pᵀ ct. One kernel gives dq and one dk and dv, each block
written by one program, so that there are no atomics.

A mask says which keys a query sees: queries stand at the end of the keys, so query i is at position i + keys - queries;
`causal` hides keys behind the position, `window` keys `window` or more away. A query that sees no key gives zeros.
`softcap` c replaces a score s by c tanh(s / c). Where there are fewer heads of keys, groups of query heads share them.
"""

import math

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .runtime import empty, launch, strides
from .tiling import MINUS_INFINITY, accumulator, accumulator_dtype, along, finite_shift, row_of_program


@triton.jit
def _visible(query, key, queries, keys, CAUSAL: tl.constexpr, WINDOW: tl.constexpr):
    """Return which keys (along one axis) which queries (along the other) see; the one mask of all three kernels."""
    position = query + (keys - queries)
    seen = (query < queries) & (key < keys)
    if CAUSAL:
        seen = seen & (key <= position)
    if WINDOW:
        seen = seen & (position - key < WINDOW) & (key - position < WINDOW)
    return seen


@triton.jit
def _keys_seen(
    first_query, queries, keys, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, M: tl.constexpr, N: tl.constexpr
):
    """Return the range of keys a block of M queries may see, from a multiple of N."""
    first, last = 0, keys
    position = first_query + (keys - queries)
    if CAUSAL:
        last = tl.minimum(keys, position + M)
    if WINDOW:
        first = tl.maximum(position - WINDOW + 1, 0) // N * N
        last = tl.minimum(last, position + M + WINDOW - 1)
    return first, last


@triton.jit
def _queries_seeing(
    first_key, queries, keys, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, M: tl.constexpr, N: tl.constexpr
):
    """Return the range of queries that may see a block of N keys, from a multiple of M."""
    first, last = 0, queries
    level = first_key - (keys - queries)
    if CAUSAL:
        first = tl.maximum(level, 0) // M * M
    if WINDOW:
        first = tl.maximum(first, tl.maximum(level - WINDOW + 1, 0) // M * M)
        last = tl.minimum(queries, level + N + WINDOW - 1)
    return first, last


@triton.jit
def _load_block(pointer, index, size, stride, column, columns, column_stride):
    """Return the rows at `index` of a matrix; what lies outside is 0."""
    mask = (index < size)[:, None] & (column < columns)[None, :]
    offsets = index.to(tl.int64)[:, None] * stride + along(column, column_stride)[None, :]
    return tl.load(pointer + offsets, mask=mask, other=0.0)


@triton.jit
def _scores(a, b, scale, SOFTCAP: tl.constexpr, PRECISION: tl.constexpr, ACCUMULATOR: tl.constexpr):
    """Return the scores of rows a against rows b, and how they change with the products."""
    score = tl.dot(a, tl.trans(b), input_precision=PRECISION, out_dtype=ACCUMULATOR) * scale
    slope = scale
    if SOFTCAP > 0:
        bent = libdevice.tanh(score / SOFTCAP)
        score = bent * SOFTCAP
        slope = scale * (1 - bent * bent)
    return score, slope


@triton.jit
def forward_kernel(
    q,
    k,
    v,
    out,
    lse,
    heads,
    group,
    queries,
    keys,
    size,
    q_batch,
    q_head,
    q_row,
    q_column,
    k_batch,
    k_head,
    k_row,
    k_column,
    v_batch,
    v_head,
    v_row,
    v_column,
    SCALE: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFTCAP: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    D: tl.constexpr,
):
    """One program a block of queries of a head."""
    blocks = tl.cdiv(queries, M)
    program = row_of_program()
    head = program // blocks
    first_query = (program % blocks * M).to(tl.int32)
    query = first_query + tl.arange(0, M)
    column = tl.arange(0, D)
    q += head // heads * q_batch + head % heads * q_head
    k += head // heads * k_batch + head % heads // group * k_head
    v += head // heads * v_batch + head % heads // group * v_head
    mine = _load_block(q, query, queries, q_row, column, size, q_column)
    largest = tl.full((M,), MINUS_INFINITY, ACCUMULATOR)
    total = tl.zeros((M,), ACCUMULATOR)
    result = tl.zeros((M, D), ACCUMULATOR)
    scale = tl.full((), SCALE, ACCUMULATOR)
    first, last = _keys_seen(first_query, queries, keys, CAUSAL, WINDOW, M, N)
    for start in range(first, last, N):
        key = start + tl.arange(0, N)
        block = _load_block(k, key, keys, k_row, column, size, k_column)
        score, _ = _scores(mine, block, scale, SOFTCAP, PRECISION, ACCUMULATOR)
        score = tl.where(_visible(query[:, None], key[None, :], queries, keys, CAUSAL, WINDOW), score, MINUS_INFINITY)
        new_largest = tl.maximum(largest, tl.max(score, 1))
        shift = finite_shift(new_largest)
        weight = tl.exp(score - shift[:, None])
        kept = tl.exp(largest - shift)
        total = total * kept + tl.sum(weight, 1)
        values = _load_block(v, key, keys, v_row, column, size, v_column)
        result = result * kept[:, None]
        result = tl.dot(weight.to(values.dtype), values, result, input_precision=PRECISION, out_dtype=ACCUMULATOR)
        largest = new_largest
    result = tl.where(total[:, None] == 0, 0.0, result / total[:, None])
    row = head * queries + query
    mask = query < queries
    offsets = row[:, None] * size + column[None, :]
    tl.store(out + offsets, result, mask=mask[:, None] & (column < size)[None, :])
    tl.store(lse + row, finite_shift(largest) + tl.log(total), mask=mask)


@triton.jit
def delta_kernel(
    ct,
    out,
    delta,
    heads,
    queries,
    size,
    ct_batch,
    ct_head,
    ct_row,
    ct_column,
    ACCUMULATOR: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
):
    """One program a block of queries of a head: the sum of ct times out of each row."""
    blocks = tl.cdiv(queries, M)
    program = row_of_program()
    head = program // blocks
    query = (program % blocks * M).to(tl.int32) + tl.arange(0, M)
    column = tl.arange(0, D)
    ct += head // heads * ct_batch + head % heads * ct_head
    mine = _load_block(ct, query, queries, ct_row, column, size, ct_column).to(ACCUMULATOR)
    result = _load_block(out + head * queries * size, query, queries, size, column, size, None).to(ACCUMULATOR)
    tl.store(delta + head * queries + query, tl.sum(mine * result, 1), mask=query < queries)


@triton.jit
def dq_kernel(
    ct,
    q,
    k,
    v,
    lse,
    delta,
    dq,
    heads,
    group,
    queries,
    keys,
    size,
    ct_batch,
    ct_head,
    ct_row,
    ct_column,
    q_batch,
    q_head,
    q_row,
    q_column,
    k_batch,
    k_head,
    k_row,
    k_column,
    v_batch,
    v_head,
    v_row,
    v_column,
    SCALE: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFTCAP: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    D: tl.constexpr,
):
    """One program a block of queries of a head."""
    blocks = tl.cdiv(queries, M)
    program = row_of_program()
    head = program // blocks
    first_query = (program % blocks * M).to(tl.int32)
    query = first_query + tl.arange(0, M)
    column = tl.arange(0, D)
    ct += head // heads * ct_batch + head % heads * ct_head
    q += head // heads * q_batch + head % heads * q_head
    k += head // heads * k_batch + head % heads // group * k_head
    v += head // heads * v_batch + head % heads // group * v_head
    mine = _load_block(q, query, queries, q_row, column, size, q_column)
    cotangent = _load_block(ct, query, queries, ct_row, column, size, ct_column)
    row = head * queries + query
    shift = finite_shift(tl.load(lse + row, mask=query < queries, other=0.0))
    level = tl.load(delta + row, mask=query < queries, other=0.0)
    result = tl.zeros((M, D), ACCUMULATOR)
    scale = tl.full((), SCALE, ACCUMULATOR)
    first, last = _keys_seen(first_query, queries, keys, CAUSAL, WINDOW, M, N)
    for start in range(first, last, N):
        key = start + tl.arange(0, N)
        block = _load_block(k, key, keys, k_row, column, size, k_column)
        values = _load_block(v, key, keys, v_row, column, size, v_column)
        score, slope = _scores(mine, block, scale, SOFTCAP, PRECISION, ACCUMULATOR)
        seen = _visible(query[:, None], key[None, :], queries, keys, CAUSAL, WINDOW)
        weight = tl.where(seen, tl.exp(score - shift[:, None]), 0.0)
        change = tl.dot(cotangent, tl.trans(values), input_precision=PRECISION, out_dtype=ACCUMULATOR)
        change = weight * (change - level[:, None]) * slope
        result = tl.dot(change.to(block.dtype), block, result, input_precision=PRECISION, out_dtype=ACCUMULATOR)
    mask = (query < queries)[:, None] & (column < size)[None, :]
    tl.store(dq + row[:, None] * size + column[None, :], result, mask=mask)


@triton.jit
def dkv_kernel(
    ct,
    q,
    k,
    v,
    lse,
    delta,
    dk,
    dv,
    heads,
    group,
    queries,
    keys,
    size,
    ct_batch,
    ct_head,
    ct_row,
    ct_column,
    q_batch,
    q_head,
    q_row,
    q_column,
    k_batch,
    k_head,
    k_row,
    k_column,
    v_batch,
    v_head,
    v_row,
    v_column,
    SCALE: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFTCAP: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    D: tl.constexpr,
):
    """One program a block of keys of a head of keys: the queries of all heads in its group pass by."""
    blocks = tl.cdiv(keys, N)
    program = row_of_program()
    shared_head = program // blocks
    key_heads = heads // group
    batch = shared_head // key_heads
    first_key = (program % blocks * N).to(tl.int32)
    key = first_key + tl.arange(0, N)
    column = tl.arange(0, D)
    k += batch * k_batch + shared_head % key_heads * k_head
    v += batch * v_batch + shared_head % key_heads * v_head
    block = _load_block(k, key, keys, k_row, column, size, k_column)
    values = _load_block(v, key, keys, v_row, column, size, v_column)
    key_total = tl.zeros((N, D), ACCUMULATOR)
    value_total = tl.zeros((N, D), ACCUMULATOR)
    scale = tl.full((), SCALE, ACCUMULATOR)
    first, last = _queries_seeing(first_key, queries, keys, CAUSAL, WINDOW, M, N)
    for member in range(0, group):
        head = shared_head % key_heads * group + member
        q_here = q + batch * q_batch + head * q_head
        ct_here = ct + batch * ct_batch + head * ct_head
        for start in range(first, last, M):
            query = start + tl.arange(0, M)
            mine = _load_block(q_here, query, queries, q_row, column, size, q_column)
            cotangent = _load_block(ct_here, query, queries, ct_row, column, size, ct_column)
            row = (batch * heads + head) * queries + query
            shift = finite_shift(tl.load(lse + row, mask=query < queries, other=0.0))
            level = tl.load(delta + row, mask=query < queries, other=0.0)
            score, slope = _scores(block, mine, scale, SOFTCAP, PRECISION, ACCUMULATOR)
            seen = _visible(query[None, :], key[:, None], queries, keys, CAUSAL, WINDOW)
            weight = tl.where(seen, tl.exp(score - shift[None, :]), 0.0)
            value_total = tl.dot(
                weight.to(cotangent.dtype), cotangent, value_total, input_precision=PRECISION, out_dtype=ACCUMULATOR
            )
            change = tl.dot(values, tl.trans(cotangent), input_precision=PRECISION, out_dtype=ACCUMULATOR)
            change = weight * (change - level[None, :]) * slope
            key_total = tl.dot(change.to(mine.dtype), mine, key_total, input_precision=PRECISION, out_dtype=ACCUMULATOR)
    mask = (key < keys)[:, None] & (column < size)[None, :]
    offsets = (shared_head * keys + key)[:, None] * size + column[None, :]
    tl.store(dk + offsets, key_total, mask=mask)
    tl.store(dv + offsets, value_total, mask=mask)


def attention_forward(q, k, v, *, causal=False, window=None, softcap=None, scale=None, precision="ieee"):
    """Return softmax(q kᵀ scale) v over the keys that each query sees.

    Args:
        q: (batch, heads, queries, size), floating, any strides.
        k, v: (batch, key heads, keys, size), of q's type; heads is a multiple of key heads.
        causal: hide keys behind a query's position; the last query stands at the last key.
        window: hide keys this far away or farther; None for none.
        softcap: bound of the scores, or None.
        scale: factor of the scores; 1 / √size unless given.
        precision: "ieee", "tf32" or "tf32x3", for float32 operands.

    Returns:
        (out, lse): out like q; lse (batch, heads, queries), float64 for float64 and else float32, for the gradients.

    Raises:
        ValueError: shapes do not fit.
        TypeError: q, k and v differ in type.

    >>> import numpy as np
    >>> q, k, v = np.zeros((1, 1, 1, 2)), np.zeros((1, 1, 2, 2)), np.arange(4.0).reshape(1, 1, 2, 2)
    >>> attention_forward(q, k, v)[0]
    array([[[[1., 2.]]]])
    """
    _check(q, k, v)
    batch, heads, queries, size = q.shape
    options = _options(q, causal, window, softcap, scale, precision)
    out = empty(q, q.shape, q.dtype)
    lse = empty(q, (batch, heads, queries), accumulator_dtype(q.dtype))
    launch(
        forward_kernel,
        (batch * heads * triton.cdiv(queries, options["M"]),),
        *(q, k, v, out, lse, heads, heads // max(1, k.shape[1]), queries, k.shape[2], size),
        *(*strides(q), *strides(k), *strides(v)),
        **options,
    )
    return out, lse


def attention_backward(ct, q, k, v, out, lse, *, causal=False, window=None, softcap=None, scale=None, precision="ieee"):
    """Return (dq, dk, dv) for a cotangent of `attention_forward`.

    Args:
        ct: like q, any strides.
        q, k, v and the options: as given to the forward pass.
        out, lse: as it returned them.
    """
    _check(q, k, v)
    if ct.shape != q.shape:
        raise ValueError(f"ct: got shape {ct.shape}, expected {q.shape}")
    batch, heads, queries, size = q.shape
    key_heads, keys = k.shape[1:3]
    options = _options(q, causal, window, softcap, scale, precision)
    delta = empty(q, lse.shape, lse.dtype)
    dq, dk, dv = empty(q, q.shape, q.dtype), empty(k, k.shape, k.dtype), empty(v, v.shape, v.dtype)
    query_programs = (batch * heads * triton.cdiv(queries, options["M"]),)
    launch(
        delta_kernel,
        query_programs,
        *(ct, out, delta, heads, queries, size, *strides(ct)),
        ACCUMULATOR=options["ACCUMULATOR"],
        M=options["M"],
        D=options["D"],
    )
    sizes = (heads, heads // max(1, key_heads), queries, keys, size)
    steps = (*strides(ct), *strides(q), *strides(k), *strides(v))
    launch(dq_kernel, query_programs, *(ct, q, k, v, lse, delta, dq, *sizes, *steps), **options)
    key_programs = (batch * key_heads * triton.cdiv(keys, options["N"]),)
    launch(dkv_kernel, key_programs, *(ct, q, k, v, lse, delta, dk, dv, *sizes, *steps), **options)
    return dq, dk, dv


def _options(q, causal, window, softcap, scale, precision):
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
        "PRECISION": precision,
        "ACCUMULATOR": accumulator(q.dtype),
        "M": block,
        "N": block,
        "D": width,
        "num_warps": 8 if block * width >= 64 * 128 else 4,
        "num_stages": 2,
    }


def _check(q, k, v):
    if q.ndim != 4 or k.ndim != 4 or k.shape != v.shape or k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3]:
        raise ValueError(
            f"q, k, v: got shapes {q.shape}, {k.shape}, {v.shape}, expected (batch, heads, queries, size) and twice "
            "(batch, key heads, keys, size)"
        )
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise ValueError(f"q, k: got {q.shape[1]} and {k.shape[1]} heads, expected a multiple")
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"q, k, v: got {q.dtype}, {k.dtype}, {v.dtype}, expected one type")

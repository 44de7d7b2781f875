"""The kernels of attention: forward, and the gradients by queries and by keys. `attention.py` says what they compute.

`steps` are an array's strides by batch, head, row and column; `row_steps` number the rows of packed results by batch
and head. A ragged batch is one batch whose sequences follow one another: `starts` says where each begins, programs of
blocks beyond its end do nothing.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .dropout import kept
from .tiling import MINUS_INFINITY, along, finite_shift, row_of_program


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
def _block_of_head(heads, longest, BLOCK: tl.constexpr):
    """Return a program's batch, its head, and the first row of its block."""
    blocks = tl.cdiv(longest, BLOCK)
    program = row_of_program()
    place = program // blocks
    return place // heads, place % heads, (program % blocks * BLOCK).to(tl.int32)


@triton.jit
def _sequence(starts, batch, longest):
    """Return where a sequence begins in its axis, and its length; without `starts` it has the axis to itself."""
    if starts is None:
        return tl.zeros((), tl.int64), longest
    else:
        first = tl.load(starts + batch).to(tl.int64)
        return first, (tl.load(starts + batch + 1) - first).to(tl.int32)


@triton.jit
def _rows_of(pointer, steps, batch, head, first):
    """Return the pointer to the first row of a sequence; steps are those of batch, head, row and column."""
    return pointer + batch * steps[0] + head * steps[1] + first * steps[2]


@triton.jit
def _load_block(pointer, index, size, steps, column, columns):
    """Return the rows at `index` of a matrix; what lies outside is 0."""
    mask = (index < size)[:, None] & (column < columns)[None, :]
    offsets = index.to(tl.int64)[:, None] * steps[2] + along(column, steps[3])[None, :]
    return tl.load(pointer + offsets, mask=mask, other=0.0)


@triton.jit
def _scores(product, query, key, seen, bias, bias_steps, scale, SOFTCAP: tl.constexpr):
    """Return the scores of products of queries and keys, -inf where unseen, and how they change with the products."""
    score = product * scale
    slope = scale
    if SOFTCAP > 0:
        bent = libdevice.tanh(score / SOFTCAP)
        score = bent * SOFTCAP
        slope = scale * (1 - bent * bent)
    if bias is not None:
        offsets = query.to(tl.int64) * bias_steps[2] + along(key, bias_steps[3])
        score += tl.load(bias + offsets, mask=seen, other=0.0).to(score.dtype)
    return tl.where(seen, score, MINUS_INFINITY), slope


@triton.jit
def _number(place, query, key, longest_q, longest_k):
    """Return the numbers of scores; `place` numbers batch and head."""
    return (place * longest_q + query) * longest_k + key


@triton.jit
def _factors(seed, number, RATE: tl.constexpr, ACCUMULATOR: tl.constexpr):
    """Return what dropout multiplies probabilities by."""
    return tl.where(kept(seed, number, RATE), tl.full((), 1 / (1 - RATE), ACCUMULATOR), 0.0)


@triton.jit
def _changes(score, seen, change, shift, level, seed, number, RATE: tl.constexpr, ACCUMULATOR: tl.constexpr):
    """Return dropped probabilities and the gradient of scores.

    `change` are the products of cotangents and values, `shift` and `level` the lse and delta of the queries.
    """
    weight = tl.where(seen, tl.exp(score - shift), 0.0)
    dropped = weight
    if RATE > 0:
        factors = _factors(seed, number, RATE, ACCUMULATOR)
        dropped = weight * factors
        change *= factors
    return dropped, weight * (change - level)


@triton.jit
def forward_kernel(
    q,
    k,
    v,
    bias,
    seed,
    q_starts,
    k_starts,
    out,
    lse,
    heads,
    group,
    longest_q,
    longest_k,
    size,
    q_steps,
    k_steps,
    v_steps,
    bias_steps,
    row_steps,
    SCALE: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFTCAP: tl.constexpr,
    RATE: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    D: tl.constexpr,
):
    """One program a block of queries of a head."""
    batch, head, first_query = _block_of_head(heads, longest_q, M)
    q_first, queries = _sequence(q_starts, batch, longest_q)
    k_first, keys = _sequence(k_starts, batch, longest_k)
    query = first_query + tl.arange(0, M)
    column = tl.arange(0, D)
    q = _rows_of(q, q_steps, batch, head, q_first)
    k = _rows_of(k, k_steps, batch, head // group, k_first)
    v = _rows_of(v, v_steps, batch, head // group, k_first)
    if bias is not None:
        bias += batch * bias_steps[0] + head * bias_steps[1]
    mine = _load_block(q, query, queries, q_steps, column, size)
    largest = tl.full((M,), MINUS_INFINITY, ACCUMULATOR)
    total = tl.zeros((M,), ACCUMULATOR)
    result = tl.zeros((M, D), ACCUMULATOR)
    scale = tl.full((), SCALE, ACCUMULATOR)
    first, last = _keys_seen(first_query, queries, keys, CAUSAL, WINDOW, M, N)
    for start in range(first, last, N):
        key = start + tl.arange(0, N)
        block = _load_block(k, key, keys, k_steps, column, size)
        values = _load_block(v, key, keys, v_steps, column, size)
        seen = _visible(query[:, None], key[None, :], queries, keys, CAUSAL, WINDOW)
        product = tl.dot(mine, tl.trans(block), input_precision=PRECISION, out_dtype=ACCUMULATOR)
        score, _ = _scores(product, query[:, None], key[None, :], seen, bias, bias_steps, scale, SOFTCAP)
        new_largest = tl.maximum(largest, tl.max(score, 1))
        shift = finite_shift(new_largest)
        weight = tl.exp(score - shift[:, None])
        remaining = tl.exp(largest - shift)
        total = total * remaining + tl.sum(weight, 1)
        if RATE > 0:
            number = _number(batch * heads + head, query[:, None], key[None, :], longest_q, longest_k)
            weight *= _factors(seed, number, RATE, ACCUMULATOR)
        result = result * remaining[:, None]
        result = tl.dot(weight.to(values.dtype), values, result, input_precision=PRECISION, out_dtype=ACCUMULATOR)
        largest = new_largest
    result = tl.where(total[:, None] == 0, 0.0, result / total[:, None])
    row = batch * row_steps[0] + head * row_steps[1] + q_first + query
    mask = query < queries
    tl.store(out + row[:, None] * size + column[None, :], result, mask=mask[:, None] & (column < size)[None, :])
    tl.store(lse + row, finite_shift(largest) + tl.log(total), mask=mask)


@triton.jit
def delta_kernel(
    ct,
    out,
    q_starts,
    delta,
    heads,
    longest_q,
    size,
    ct_steps,
    row_steps,
    ACCUMULATOR: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
):
    """One program a block of queries of a head: the sum of ct times out of each row."""
    batch, head, first_query = _block_of_head(heads, longest_q, M)
    q_first, queries = _sequence(q_starts, batch, longest_q)
    query = first_query + tl.arange(0, M)
    column = tl.arange(0, D)
    ct = _rows_of(ct, ct_steps, batch, head, q_first)
    mine = _load_block(ct, query, queries, ct_steps, column, size).to(ACCUMULATOR)
    row = batch * row_steps[0] + head * row_steps[1] + q_first + query
    mask = query < queries
    here = mask[:, None] & (column < size)[None, :]
    result = tl.load(out + row[:, None] * size + column[None, :], mask=here, other=0.0).to(ACCUMULATOR)
    tl.store(delta + row, tl.sum(mine * result, 1), mask=mask)


@triton.jit
def dq_kernel(
    ct,
    q,
    k,
    v,
    bias,
    seed,
    q_starts,
    k_starts,
    lse,
    delta,
    dq,
    dbias,
    heads,
    group,
    longest_q,
    longest_k,
    size,
    ct_steps,
    q_steps,
    k_steps,
    v_steps,
    bias_steps,
    row_steps,
    SCALE: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFTCAP: tl.constexpr,
    RATE: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    D: tl.constexpr,
):
    """One program a block of queries of a head."""
    batch, head, first_query = _block_of_head(heads, longest_q, M)
    q_first, queries = _sequence(q_starts, batch, longest_q)
    k_first, keys = _sequence(k_starts, batch, longest_k)
    query = first_query + tl.arange(0, M)
    column = tl.arange(0, D)
    k = _rows_of(k, k_steps, batch, head // group, k_first)
    v = _rows_of(v, v_steps, batch, head // group, k_first)
    if bias is not None:
        bias += batch * bias_steps[0] + head * bias_steps[1]
    mine = _load_block(_rows_of(q, q_steps, batch, head, q_first), query, queries, q_steps, column, size)
    cotangent = _load_block(_rows_of(ct, ct_steps, batch, head, q_first), query, queries, ct_steps, column, size)
    row = batch * row_steps[0] + head * row_steps[1] + q_first + query
    shift = finite_shift(tl.load(lse + row, mask=query < queries, other=0.0))
    level = tl.load(delta + row, mask=query < queries, other=0.0)
    result = tl.zeros((M, D), ACCUMULATOR)
    scale = tl.full((), SCALE, ACCUMULATOR)
    first, last = _keys_seen(first_query, queries, keys, CAUSAL, WINDOW, M, N)
    for start in range(first, last, N):
        key = start + tl.arange(0, N)
        block = _load_block(k, key, keys, k_steps, column, size)
        values = _load_block(v, key, keys, v_steps, column, size)
        seen = _visible(query[:, None], key[None, :], queries, keys, CAUSAL, WINDOW)
        product = tl.dot(mine, tl.trans(block), input_precision=PRECISION, out_dtype=ACCUMULATOR)
        change = tl.dot(cotangent, tl.trans(values), input_precision=PRECISION, out_dtype=ACCUMULATOR)
        score, slope = _scores(product, query[:, None], key[None, :], seen, bias, bias_steps, scale, SOFTCAP)
        number = _number(batch * heads + head, query[:, None], key[None, :], longest_q, longest_k)
        _, change = _changes(score, seen, change, shift[:, None], level[:, None], seed, number, RATE, ACCUMULATOR)
        if dbias is not None:
            tl.store(dbias + number, change, mask=(query < queries)[:, None] & (key < keys)[None, :])
        change = (change * slope).to(block.dtype)
        result = tl.dot(change, block, result, input_precision=PRECISION, out_dtype=ACCUMULATOR)
    mask = (query < queries)[:, None] & (column < size)[None, :]
    tl.store(dq + row[:, None] * size + column[None, :], result, mask=mask)


@triton.jit
def dkv_kernel(
    ct,
    q,
    k,
    v,
    bias,
    seed,
    q_starts,
    k_starts,
    lse,
    delta,
    dk,
    dv,
    heads,
    group,
    longest_q,
    longest_k,
    size,
    ct_steps,
    q_steps,
    k_steps,
    v_steps,
    bias_steps,
    row_steps,
    key_row_steps,
    SCALE: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFTCAP: tl.constexpr,
    RATE: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    D: tl.constexpr,
):
    """One program a block of keys of a head of keys: the queries of all heads in its group pass by."""
    batch, shared_head, first_key = _block_of_head(heads // group, longest_k, N)
    q_first, queries = _sequence(q_starts, batch, longest_q)
    k_first, keys = _sequence(k_starts, batch, longest_k)
    key = first_key + tl.arange(0, N)
    column = tl.arange(0, D)
    block = _load_block(_rows_of(k, k_steps, batch, shared_head, k_first), key, keys, k_steps, column, size)
    values = _load_block(_rows_of(v, v_steps, batch, shared_head, k_first), key, keys, v_steps, column, size)
    key_total = tl.zeros((N, D), ACCUMULATOR)
    value_total = tl.zeros((N, D), ACCUMULATOR)
    scale = tl.full((), SCALE, ACCUMULATOR)
    first, last = _queries_seeing(first_key, queries, keys, CAUSAL, WINDOW, M, N)
    for member in range(0, group):
        head = shared_head * group + member
        q_here = _rows_of(q, q_steps, batch, head, q_first)
        ct_here = _rows_of(ct, ct_steps, batch, head, q_first)
        bias_here = bias
        if bias is not None:
            bias_here = bias + batch * bias_steps[0] + head * bias_steps[1]
        for start in range(first, last, M):
            query = start + tl.arange(0, M)
            mine = _load_block(q_here, query, queries, q_steps, column, size)
            cotangent = _load_block(ct_here, query, queries, ct_steps, column, size)
            row = batch * row_steps[0] + head * row_steps[1] + q_first + query
            shift = finite_shift(tl.load(lse + row, mask=query < queries, other=0.0))
            level = tl.load(delta + row, mask=query < queries, other=0.0)
            seen = _visible(query[None, :], key[:, None], queries, keys, CAUSAL, WINDOW)
            product = tl.dot(block, tl.trans(mine), input_precision=PRECISION, out_dtype=ACCUMULATOR)
            change = tl.dot(values, tl.trans(cotangent), input_precision=PRECISION, out_dtype=ACCUMULATOR)
            score, slope = _scores(product, query[None, :], key[:, None], seen, bias_here, bias_steps, scale, SOFTCAP)
            number = _number(batch * heads + head, query[None, :], key[:, None], longest_q, longest_k)
            dropped, change = _changes(
                score, seen, change, shift[None, :], level[None, :], seed, number, RATE, ACCUMULATOR
            )
            value_total = tl.dot(
                dropped.to(cotangent.dtype), cotangent, value_total, input_precision=PRECISION, out_dtype=ACCUMULATOR
            )
            change = (change * slope).to(mine.dtype)
            key_total = tl.dot(change, mine, key_total, input_precision=PRECISION, out_dtype=ACCUMULATOR)
    row = batch * key_row_steps[0] + shared_head * key_row_steps[1] + k_first + key
    mask = (key < keys)[:, None] & (column < size)[None, :]
    tl.store(dk + row[:, None] * size + column[None, :], key_total, mask=mask)
    tl.store(dv + row[:, None] * size + column[None, :], value_total, mask=mask)

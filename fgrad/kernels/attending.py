"""Attention: masks, grouped heads, bias, softcap, dropout, ragged batches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fgrad.kernels.elementwise import one_seed
from fgrad.kernels.pairs import like, wide, with_kernels
from fgrad.numpy.arguments import cast, expand_axis, known
from fgrad.ops import elementwise as e
from fgrad.ops import reduce as r
from fgrad.ops import shape as s
from fgrad.ops.kernels import philox_kept


def _log_totals(q: Any, k: Any, v: Any, bias: Any, seed: Any, q_starts: Any, k_starts: Any, **options: Any) -> Any:
    """Return the logarithms of the sums of exponentials of scores, as the kernels keep them."""
    q, k, _ = _whole(q, k, v, q_starts)
    seen, _ = _layout(q, k, q_starts, k_starts, options)
    total = r.logsumexp(_scores(q, k, bias, seen, options), axes=(4,))
    return (s.reshape(total, shape=q.shape[1:-1] if q_starts is not None else q.shape[:-1]),)


def _lengths(arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the longest sequences of a ragged batch, read from the starts where they are not given."""
    found = {}
    for option, starts in (("max_queries", arrays["q_starts"]), ("max_keys", arrays["k_starts"])):
        if starts is not None and options[option] is None:
            values = known(starts)
            if values is None:
                raise ValueError(f"attention: {option} must be given where the starts of sequences are traced")
            found[option] = int(np.diff(values).max(initial=0))
    return found


@with_kernels(
    "attention.attention",
    wrt=("q", "k", "v", "bias"),
    outputs=("out", "lse"),
    extras=_log_totals,
    prepare=_lengths,
    on_device=True,
)
def attention(
    q: Any,
    k: Any,
    v: Any,
    bias: Any = None,
    seed: Any = None,
    q_starts: Any = None,
    k_starts: Any = None,
    *,
    causal: bool = False,
    window: int | None = None,
    softcap: float | None = None,
    scale: float | None = None,
    rate: float = 0.0,
    max_queries: int | None = None,
    max_keys: int | None = None,
    precision: str = "ieee",
) -> Any:
    """Return softmax(q kᵀ scale + bias) v over the keys that each query sees; zeros where it sees none.

    Args:
        q: (batch, heads, queries, size), floating; ragged: (all queries, heads, size).
        k, v: (batch, key heads, keys, size), of q's type; groups of heads share a head of keys. Ragged: (all keys, key
            heads, size).
        bias: what broadcasts to (batch, heads, queries, keys), added to scores. Not for ragged batches.
        seed: an integer, or an integer array of one; wanted if rate is not 0.
        q_starts, k_starts: (batch + 1,) integers, for ragged batches: where each sequence starts, and the last ends.
        causal: hide keys behind a query's position; the last query stands at the last key.
        window: hide keys this far away or farther; None for none.
        softcap: c for scores bent by c tanh(s / c), or None.
        scale: factor of the products; 1 / √size if None.
        rate: probability of dropping a probability, in [0, 1).
        max_queries, max_keys: the longest sequences of a ragged batch; read from the starts if None, which must be
            known then.
        precision: of float32 products on a GPU, as in `matmul`.
        impl: "numpy" (by the whole matrix of scores) or "triton".

    Raises:
        ValueError: shapes do not fit, or rate is out of range.
        TypeError: q, k and v differ in type.

    Source: Dao et al., arXiv 2205.14135.

    Example:
        >>> import numpy as np, fgrad
        >>> q, k, v = np.zeros((1, 1, 1, 2)), np.zeros((1, 1, 2, 2)), np.arange(4.0).reshape(1, 1, 2, 2)
        >>> fgrad.kernels.attention(q, k, v)
        array([[[[1., 2.]]]])
    """
    options = {"causal": causal, "window": window, "softcap": softcap, "scale": scale}
    options |= {"max_queries": max_queries, "max_keys": max_keys}
    ragged = q_starts is not None
    _check(q, k, v, bias, seed, rate, (q_starts, k_starts))
    whole, keys, values = _whole(q, k, v, q_starts)
    seen, numbers = _layout(whole, keys, q_starts, k_starts, options)
    score = _scores(whole, keys, bias, seen, options)
    total = expand_axis(r.logsumexp(score, axes=(4,)), 4)
    weight = e.exp(e.sub(score, e.select(e.eq(total, -np.inf), 0.0, total)))
    if rate:
        kept = philox_kept(one_seed(seed, "attention"), numbers, rate=float(rate))
        weight = e.select(s.reshape(kept, shape=weight.shape), e.mul(weight, 1 / (1 - rate)), 0.0)
    out = s.reshape(weight @ wide(expand_axis(values, 2)), shape=whole.shape)
    out = like(out, q)
    return s.transpose(s.reshape(out, shape=whole.shape[1:]), perm=(1, 0, 2)) if ragged else out


def _whole(q: Any, k: Any, v: Any, starts: Any) -> tuple[Any, ...]:
    """Return q, k and v as (batch, heads, rows, size); a ragged batch as one of one."""
    if starts is None:
        return q, k, v
    return tuple([expand_axis(s.transpose(x, perm=(1, 0, 2)), 0) for x in (q, k, v)])


def _scores(q: Any, k: Any, bias: Any, seen: Any, options: dict[str, Any]) -> Any:
    """Return scores as (batch, key heads, group, queries, keys), -inf where a key is not seen."""
    batch, heads, queries, size = q.shape
    key_heads, keys = k.shape[1:3]
    shape = (batch, key_heads, heads // key_heads, queries, keys)
    scale = options["scale"]
    factor = 1 / math.sqrt(max(1, size)) if scale is None else scale
    grouped = s.reshape(wide(q), shape=(*shape[:4], size))
    score = e.mul(grouped @ s.transpose(expand_axis(wide(k), 2), perm=(0, 1, 2, 4, 3)), factor)
    cap = options["softcap"]
    if cap:
        score = e.mul(e.tanh(e.div(score, cap)), cap)
    if bias is not None:
        spread = s.broadcast(_four_axes(wide(bias)), shape=(batch, heads, queries, keys))
        score = e.add(score, s.reshape(spread, shape=shape))
    return e.select(seen, score, -np.inf)


def _four_axes(x: Any) -> Any:
    return s.reshape(x, shape=((1,) * (4 - x.ndim) + x.shape))


def _layout(q: Any, k: Any, q_starts: Any, k_starts: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return which keys are seen by which queries, and the numbers by which probabilities are dropped."""
    batch, heads, queries, _ = q.shape
    keys = k.shape[2]
    rows, columns = np.arange(queries)[:, None], np.arange(keys)[None, :]
    if q_starts is None:
        place = np.arange(batch * heads, dtype=np.int64).reshape(batch, heads, 1, 1)
        numbers = (place * queries + rows) * keys + columns
        return _visible(rows + (keys - queries) - columns, options), numbers
    mine, row, length = _places(q_starts, queries)
    theirs, column, key_length = _places(k_starts, keys)
    same = e.logical_and(e.eq(mine[:, None], theirs[None, :]), e.ge(mine, 0)[:, None])
    distance = e.sub(e.add(row, e.sub(_at(key_length, mine), _at(length, mine)))[:, None], column[None, :])
    head = np.arange(heads).reshape(heads, 1, 1)
    place = e.add(e.mul(mine[:, None], heads), head)
    numbers = e.add(
        e.mul(e.add(e.mul(place, options["max_queries"]), row[:, None]), options["max_keys"]), column[None, :]
    )
    return e.logical_and(same, _visible(distance, options)), expand_axis(numbers, 0)


def _places(starts: Any, size: int) -> tuple[Any, Any, Any]:
    """Return the sequence of each of `size` rows (-1 for none), its row there, and the lengths of the sequences."""
    starts = cast(starts, np.int64)
    rows = np.arange(size)
    begun = r.reduce_sum(cast(e.le(starts[:, None], rows[None, :]), np.int64), axes=(0,))
    inside = e.logical_and(e.gt(begun, 0), e.lt(begun, starts.shape[0]))
    mine = e.select(inside, e.sub(begun, 1), -1)
    return mine, e.sub(rows, _at(starts, mine)), e.sub(starts[1:], starts[:-1])


def _at(x: Any, index: Any) -> Any:
    """Return the entries of x at an index, 0 where that is negative."""
    if not x.shape[0]:
        return e.mul(index, 0)
    return e.select(e.lt(index, 0), 0, x[e.select(e.lt(index, 0), 0, index)])


def _visible(distance: Any, options: dict[str, Any]) -> Any:
    """Return which keys at a distance before a query's position it sees."""
    seen = e.eq(distance, distance)
    if options["causal"]:
        seen = e.logical_and(seen, e.ge(distance, 0))
    if options["window"]:
        seen = e.logical_and(seen, e.lt(e.abs(distance), options["window"]))
    return seen


def _check(q: Any, k: Any, v: Any, bias: Any, seed: Any, rate: float, starts: tuple[Any, Any]) -> None:
    ragged = starts[0] is not None
    axes = 3 if ragged else 4
    fits = q.ndim == k.ndim == axes and k.shape == v.shape and k.shape[-1] == q.shape[-1]
    if not fits or not ragged and q.shape[0] != k.shape[0]:
        raise ValueError(
            "attention: q, k and v must be (batch, heads, queries, size) and twice (batch, key heads, keys, size), or, "
            f"with starts, (rows, heads, size); got {q.shape}, {k.shape} and {v.shape}"
        )
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        raise ValueError(f"attention: q's heads must be a multiple of k's, got {q.shape[1]} and {k.shape[1]}")
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"attention: q, k and v must have one type, got {q.dtype}, {k.dtype} and {v.dtype}")
    if not 0 <= rate < 1 or rate and seed is None:
        raise ValueError(f"attention: rate must be in [0, 1), and come with a seed; got {rate} and seed {seed}")
    if (starts[0] is None) != (starts[1] is None) or ragged and bias is not None:
        raise ValueError("attention: q_starts and k_starts come together, and without a bias")

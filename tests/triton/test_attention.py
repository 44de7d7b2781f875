"""Attention against a NumPy reference: lengths, groups, masks, caps, types, strides, and what no query sees."""

import ml_dtypes
import numpy as np
import pytest

from fgrad.triton_kernels import check_call, check_kernel, compile_call, require_clean
from fgrad.triton_kernels.attention import attention_backward, attention_forward
from fgrad.triton_kernels.dropout import dropout_forward
from fgrad.triton_kernels.runtime import launching

pytestmark = pytest.mark.heavy

MASKS = {
    "plain": {},
    "causal": {"causal": True},
    "window": {"window": 3},
    "causal window": {"causal": True, "window": 4},
    "softcap": {"softcap": 1.5, "causal": True},
}
mask_parameter = pytest.mark.parametrize("options", MASKS.values(), ids=MASKS)


def draw(batch, heads, key_heads, queries, keys, size, dtype=np.float64):
    generator = np.random.default_rng(0)
    shapes = [(batch, heads, queries, size), (batch, key_heads, keys, size), (batch, key_heads, keys, size)]
    return tuple(generator.normal(size=shape).astype(dtype) for shape in (*shapes, shapes[0]))


def visible(queries, keys, causal, window):
    distance = np.arange(queries)[:, None] + keys - queries - np.arange(keys)
    seen = np.ones((queries, keys), bool)
    if causal:
        seen &= distance >= 0
    if window:
        seen &= np.abs(distance) < window
    return seen


def reference(q, k, v, ct, bias=None, keep=1.0, causal=False, window=None, softcap=None):
    """Return out, dq, dk, dv by the matrix of scores, and the gradient of a bias; `keep` multiplies probabilities."""
    group = q.shape[1] // k.shape[1]
    key, value = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scale = 1 / np.sqrt(q.shape[-1])
    score = q @ key.swapaxes(2, 3) * scale
    slope = scale
    if softcap:
        bent = np.tanh(score / softcap)
        score, slope = bent * softcap, scale * (1 - bent**2)
    if bias is not None:
        score = score + bias
    seen = visible(q.shape[2], k.shape[2], causal, window)
    weight = np.where(seen, np.exp(score), 0)
    total = weight.sum(-1, keepdims=True)
    weight = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    out = weight * keep @ value
    dscore = weight * (ct @ value.swapaxes(2, 3) * keep - (ct * out).sum(-1, keepdims=True))
    change = dscore * slope
    add = lambda x: x.reshape(k.shape[0], k.shape[1], group, *k.shape[2:]).sum(2)  # noqa: E731
    result = out, change @ key, add(change.swapaxes(2, 3) @ q), add((weight * keep).swapaxes(2, 3) @ ct)
    if bias is None:
        return result
    lead = (1,) * (4 - bias.ndim) + bias.shape
    axes = tuple(axis for axis, size in enumerate(lead) if size == 1)
    return *result, dscore.sum(axes, keepdims=True).reshape(bias.shape)


def run(q, k, v, ct, bias=None, **options):
    out, lse = attention_forward(q, k, v, bias, **options)
    return (out, *attention_backward(ct, q, k, v, out, lse, bias, **options))


def agree(results, expected):
    assert len(results) == len(expected)
    for one, other in zip(results, expected):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


@mask_parameter
@pytest.mark.parametrize(("queries", "keys"), [(1, 7), (5, 7), (7, 5), (33, 65)])
@pytest.mark.parametrize(("heads", "key_heads", "size"), [(2, 2, 16), (4, 2, 24), (4, 1, 16)])
def test_20_values_and_gradients_share_one_mask(options, queries, keys, heads, key_heads, size):
    arrays = draw(1, heads, key_heads, queries, keys, size)
    for result, expected in zip(run(*arrays, **options), reference(*arrays, **options)):
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-10)


@mask_parameter
@pytest.mark.parametrize("shape", [(2, 4, 5, 9), (1, 4, 1, 9), (5, 9), (9,), (1, 1), (2, 1, 5, 1)])
def test_biases_of_every_shape(options, shape):
    q, k, v, ct = draw(2, 4, 2, 5, 9, 16)
    bias = np.random.default_rng(3).normal(size=shape)
    agree(run(q, k, v, ct, bias, **options), reference(q, k, v, ct, bias, **options))


def test_a_bias_of_minus_infinity_hides_keys():
    q, k, v, ct = draw(1, 1, 1, 3, 5, 16)
    bias = np.zeros((3, 5))
    bias[0, 2:] = bias[1] = -np.inf
    out, dq, _, _, dbias = run(q, k, v, ct, bias)
    hidden = attention_forward(q[:, :, :1], k[:, :, :2], v[:, :, :2])[0]
    np.testing.assert_allclose(out[:, :, :1], hidden)
    for array in (out[:, :, 1], dq[:, :, 1], dbias[1]):
        np.testing.assert_array_equal(array, np.zeros_like(array))


@mask_parameter
def test_24_dropout_multiplies_probabilities_by_one_mask(options):
    q, k, v, ct = draw(2, 4, 2, 33, 40, 16)
    keep = dropout_forward(np.ones((2, 4, 33, 40)), 5, rate=0.25)
    assert abs((keep == 0).mean() - 0.25) < 0.02
    agree(run(q, k, v, ct, seed=5, rate=0.25, **options), reference(q, k, v, ct, keep=keep, **options))
    require_clean(check_call(attention_forward, *(x.astype(np.float32) for x in (q, k, v)), seed=5, rate=0.25))


@mask_parameter
def test_20_ragged_batches_are_their_sequences_one_by_one(options):
    lengths = [(3, 5), (0, 4), (20, 7), (1, 0), (17, 17)]
    q_starts, k_starts = (np.cumsum([0, *(pair[side] for pair in lengths)]) for side in (0, 1))
    q, k, v, ct = (x[0].transpose(1, 0, 2) for x in draw(1, 4, 2, q_starts[-1], k_starts[-1], 16))
    results = run(q, k, v, ct, q_starts=q_starts, k_starts=k_starts, **options)
    for i in range(len(lengths)):
        mine, theirs = slice(*q_starts[i : i + 2]), slice(*k_starts[i : i + 2])
        inside = [x[rows].transpose(1, 0, 2)[None] for x, rows in zip((q, k, v, ct), (mine, theirs, theirs, mine))]
        for result, expected, rows in zip(results, reference(*inside, **options), (mine, mine, theirs, theirs)):
            np.testing.assert_allclose(result[rows].transpose(1, 0, 2)[None], expected, rtol=1e-9, atol=1e-10)


def test_ragged_batches_leave_no_findings_and_rows_of_no_sequence_zero():
    q, k, v, ct = (x[0].transpose(1, 0, 2).astype(np.float32) for x in draw(1, 2, 1, 9, 11, 16))
    starts = {"q_starts": np.array([0, 4, 7]), "k_starts": np.array([0, 5, 8], np.int32)}
    out, lse = attention_forward(q, k, v, **starts, max_queries=5, max_keys=6)
    np.testing.assert_array_equal(out[7:], np.zeros((2, 2, 16)))
    require_clean(check_call(attention_forward, q, k, v, **starts))
    require_clean(check_call(attention_backward, ct, q, k, v, out, lse, **starts))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_narrow_types(dtype):
    arrays = draw(2, 2, 1, 40, 70, 32, dtype)
    exact = reference(*(x.astype(np.float64) for x in arrays), causal=True)
    for result, expected in zip(run(*arrays, causal=True), exact):
        assert result.dtype == dtype
        error = np.abs(result.astype(np.float64) - expected).max() / np.abs(expected).max()
        assert error < 4 * float(ml_dtypes.finfo(dtype).eps)


def test_gradients_equal_difference_quotients():
    q, k, v, ct = draw(1, 2, 1, 3, 4, 5)
    gradients = run(q, k, v, ct, causal=True, softcap=2.0)[1:]
    arrays = [q, k, v]
    for position, gradient in enumerate(gradients):
        direction = np.random.default_rng(5).normal(size=gradient.shape)
        values = []
        for sign in (1, -1):
            moved = list(arrays)
            moved[position] = arrays[position] + sign * 1e-6 * direction
            values.append((attention_forward(*moved, causal=True, softcap=2.0)[0] * ct).sum())
        np.testing.assert_allclose((values[0] - values[1]) / 2e-6, (gradient * direction).sum(), rtol=1e-7)


def test_08_queries_that_see_nothing_give_zeros():
    q, k, v, ct = draw(1, 1, 1, 7, 3, 16)
    out, dq, dk, dv = run(q, k, v, ct, causal=True)
    np.testing.assert_array_equal(out[0, 0, :4], np.zeros((4, 16)))
    np.testing.assert_array_equal(dq[0, 0, :4], np.zeros((4, 16)))
    assert all(np.isfinite(x).all() for x in (out, dq, dk, dv))


@mask_parameter
def test_09_13_14_no_races_no_undefined_values_all_written(options):
    q, k, v, ct = draw(1, 2, 1, 35, 50, 20, np.float32)
    out, lse = attention_forward(q, k, v, **options)
    require_clean(check_call(attention_forward, q, k, v, **options))
    require_clean(check_call(attention_backward, ct, q, k, v, out, lse, **options))


def test_03_04_05_views_broadcast_cotangents_and_repetition():
    q, k, v, _ = draw(2, 2, 2, 9, 11, 16)
    ct = np.broadcast_to(np.float64(0.5), q.shape)
    before = [x.tobytes() for x in (q, k, v)]
    packed = run(q, k, v, np.ascontiguousarray(ct))
    by_position = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in (q, k, v)]
    by_column = [np.ascontiguousarray(x.transpose(0, 1, 3, 2)).transpose(0, 1, 3, 2) for x in (q, k, v)]
    for arrays in ((q, k, v), by_position, by_column):
        for result, expected in zip(run(*arrays, ct), packed):
            np.testing.assert_array_equal(result, expected)
    assert before == [x.tobytes() for x in (q, k, v)]


def test_05_what_forward_kept_may_lie_anywhere():
    q, k, v, ct = draw(2, 2, 1, 9, 11, 16)
    out, lse = attention_forward(q, k, v)
    spread = [np.repeat(x, 2, axis=-1)[..., ::2] for x in (out, lse)]
    for one, other in zip(attention_backward(ct, q, k, v, *spread), attention_backward(ct, q, k, v, out, lse)):
        np.testing.assert_array_equal(one, other)


def test_01_offsets_beyond_int32():
    q = np.zeros((4, 8, 600_000, 128), np.float16)
    k = np.zeros((4, 8, 64, 128), np.float16)
    launches = []
    with launching(launches.append):
        out, lse = attention_forward(q, k, k)
        attention_backward(q, q, k, k, out, lse)
    for launch in launches[:3]:
        last = (np.atleast_1d(launch.grid)[0] - 1, 0, 0)
        require_clean(check_kernel(launch.kernel, launch.grid, *launch.args, programs=[last], **launch.meta))


@pytest.mark.parametrize(("queries", "keys"), [(0, 5), (4, 0)])
def test_17_no_queries_or_no_keys(queries, keys):
    arrays = draw(1, 2, 2, queries, keys, 16)
    for result, expected in zip(run(*arrays), reference(*arrays)):
        np.testing.assert_array_equal(result, expected)


def test_26_nan_reaches_its_query_and_no_other():
    q, k, v, _ = draw(1, 1, 1, 9, 9, 16)
    q[0, 0, 4, 2] = np.nan
    found = np.isnan(attention_forward(q, k, v)[0]).all(-1)[0, 0]
    np.testing.assert_array_equal(found, np.arange(9) == 4)


def test_25_large_scores_stay_finite():
    q, k, v, ct = (1e3 * x for x in draw(1, 1, 1, 9, 9, 16))
    for options in ({}, {"softcap": 30.0}):
        assert all(np.isfinite(x).all() for x in run(q, k, v, ct, **options))


@pytest.mark.parametrize(
    ("size", "target"),
    [
        pytest.param(64, "sm_90", marks=pytest.mark.heavy),
        *(
            pytest.param(size, target, marks=pytest.mark.slow)
            for size in (64, 128)
            for target in ("sm_80", "sm_100", "gfx942", "gfx950")
        ),
    ],
)
def test_18_19_fits_every_target(size, target):
    q, k, v, ct = (np.empty((1, 2, 256, size), ml_dtypes.bfloat16) for _ in range(4))
    lse = np.empty((1, 2, 256), np.float32)
    forward = compile_call(attention_forward, q, k, v, causal=True, targets=[target])
    backward = compile_call(attention_backward, ct, q, k, v, q, lse, causal=True, targets=[target])
    for name, report in {**forward, **backward}.items():
        assert report[target].problems == (), name
        if name != "delta_kernel":
            assert report[target].tensor_cores, name
    assert forward["forward_kernel"][target].spill_bytes == 0


def test_wrong_arguments_are_named():
    q, k, v, _ = draw(1, 4, 2, 3, 5, 8)
    with pytest.raises(ValueError, match=r"q, k, v: got shapes"):
        attention_forward(q[0], k, v)
    with pytest.raises(ValueError, match="got 3 and 2 heads"):
        attention_forward(q[:, :3], k, v)
    with pytest.raises(TypeError, match="got float64, float32, float64"):
        attention_forward(q, k.astype(np.float32), v)
    with pytest.raises(ValueError, match=r"bias: got shape \(3, 4\), expected one that broadcasts to \(1, 4, 3, 5\)"):
        attention_forward(q, k, v, np.zeros((3, 4)))
    with pytest.raises(TypeError, match="seed: got None"):
        attention_forward(q, k, v, rate=0.5)
    with pytest.raises(ValueError, match="rate: got 1"):
        attention_forward(q, k, v, seed=0, rate=1)
    starts = np.array([0, 3])
    rows = [x[0].transpose(1, 0, 2) for x in (q, k, v)]
    with pytest.raises(ValueError, match="got one of them, expected both"):
        attention_forward(*rows, q_starts=starts)
    with pytest.raises(ValueError, match="ragged batches take none"):
        attention_forward(*rows, np.zeros(1), q_starts=starts, k_starts=starts)

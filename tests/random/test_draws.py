"""What is drawn: distributions, edges, errors, and the same draw under every transform."""

import math
import time

import numpy as np
import pytest

import fgrad
from fgrad import random as r
from fgrad.ops.random import to_normal
from tests.random.draws import EVERY, WEIGHTS

FLOATS = ("float16", "float32", "float64")
every = pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY)


def same(x, y):
    assert x.dtype == y.dtype
    np.testing.assert_array_equal(x, y)


# ------------------------------------------------------------------------------------------- under transforms


@every
def test_jitted(draw):
    key = r.key(5)
    same(fgrad.jit(draw)(key), draw(key))


@every
def test_batched(draw):
    keys = r.split(r.key(5), 4)
    one_by_one = np.stack([draw(key) for key in keys])
    same(fgrad.vmap(draw)(keys), one_by_one)
    same(fgrad.vmap(draw, 1)(keys.T), one_by_one)
    same(fgrad.jit(fgrad.vmap(draw))(keys), one_by_one)
    same(fgrad.vmap(fgrad.vmap(draw))(keys.reshape(2, 2, 2)), one_by_one.reshape(2, 2, *one_by_one.shape[1:]))


@every
def test_same_key_for_all_examples(draw):
    key = r.key(5)
    x = np.arange(3.0)
    batched = fgrad.vmap(lambda x: (x, draw(key)))(x)[1]
    same(batched, np.stack([draw(key)] * 3))


@every
def test_inside_grad(draw):
    key = r.key(5)

    def f(x):
        drawn = draw(key)
        return x * float(np.sum(drawn.real.astype(float))), drawn

    slope, drawn = fgrad.grad(f, has_aux=True)(2.0)
    same(drawn, draw(key))
    assert slope == np.sum(draw(key).real.astype(float))


def test_keys_travel_through_loops():
    def step(key, _):
        key, drawing = r.split(key)
        return key, r.normal(drawing, (2,))

    key, draws = fgrad.lax.scan(step, r.key(0), None, length=4)
    want_key, want = r.key(0), []
    for _ in range(4):
        want_key, out = step(want_key, None)
        want.append(out)
    same(key, want_key)
    same(draws, np.stack(want))


# ---------------------------------------------------------------------------------------------- derivatives


def test_reparametrised_normal():
    key = r.key(3)
    z = r.normal(key, (4,))
    mean, scale = fgrad.grad(lambda m, s: (r.normal(key, (4,)) * s + m).sum(), (0, 1))(1.0, 2.0)
    np.testing.assert_allclose([mean, scale], [4, z.sum()])


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda low, high: r.uniform(r.key(0), (5,), minval=low, maxval=high), (-1.0, 2.5)),
        (
            lambda low, high: r.uniform(r.key(0), (2, 3), minval=low, maxval=high),
            (np.array([[0.0], [1]]), np.arange(4.0, 7)),
        ),
        (lambda low, high: r.truncated_normal(r.key(0), low, high, (6,)), (-0.5, 1.2)),
    ],
)
def test_bounds_have_derivatives(f, args):
    fgrad.check_grads(f, args, order=2)


# -------------------------------------------------------------------------------------------- distributions


def ks_distance(sample, cdf):
    """Return the Kolmogorov-Smirnov distance times √n: above 1.95 for one true sample in a thousand."""
    u = np.sort(cdf(np.sort(sample.astype(float), axis=None)))
    n = u.size
    return math.sqrt(n) * max((np.arange(1, n + 1) / n - u).max(), (u - np.arange(n) / n).max())


def phi(x):
    return 0.5 * np.array([math.erfc(-v / math.sqrt(2)) for v in x])


CONTINUOUS = {
    "uniform": (lambda k, n, d: r.uniform(k, n, d), lambda x: x),
    "uniform between": (lambda k, n, d: r.uniform(k, n, d, -3, 5), lambda x: (x + 3) / 8),
    "normal": (lambda k, n, d: r.normal(k, n, d), phi),
    "exponential": (lambda k, n, d: r.exponential(k, n, d), lambda x: -np.expm1(-x)),
    "gumbel": (lambda k, n, d: r.gumbel(k, n, d), lambda x: np.exp(-np.exp(-x))),
    "laplace": (
        lambda k, n, d: r.laplace(k, n, d),
        lambda x: np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2),
    ),
    "truncated": (
        lambda k, n, d: r.truncated_normal(k, -1, 2, n, d),
        lambda x: (phi(x) - phi([-1])) / (phi([2]) - phi([-1])),
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution(name, dtype):
    draw, cdf = CONTINUOUS[name]
    x = draw(r.key(11), (20_000,), dtype)
    assert x.dtype == dtype
    assert ks_distance(x, cdf) < 1.95


@pytest.mark.parametrize("name", CONTINUOUS)
def test_first_draws_of_split_keys_have_the_distribution(name):
    draw, cdf = CONTINUOUS[name]
    x = fgrad.vmap(lambda key: draw(key, (), float))(r.split(r.key(12), 20_000))
    assert ks_distance(x, cdf) < 1.95


def test_moments_of_the_normal():
    x = r.normal(r.key(13), (1_000_000,))
    moments = [np.mean(x**k) for k in (1, 2, 3, 4)]
    errors = np.sqrt(np.array([1, 2, 15, 96]) / x.size)  # standard deviations of the sample moments
    assert (np.abs(moments - np.array([0, 1, 0, 3])) < 4 * errors).all()
    assert np.abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4e-3


def test_streams_of_split_keys_are_uncorrelated():
    streams = fgrad.vmap(lambda key: r.normal(key, (1_000,)))(r.split(r.key(14), 50))
    correlation = np.corrcoef(streams)[np.triu_indices(50, 1)]
    assert np.abs(correlation).max() < 5 / math.sqrt(1_000)
    assert abs(np.mean(correlation**2) * 1_000 - 1) < 0.15


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_every_bit_is_a_fair_coin(dtype):
    n = 20_000
    x = r.bits(r.key(15), (n,), dtype)
    ones = np.unpackbits(x.view(np.uint8).reshape(n, -1), axis=1).sum(0)
    assert np.abs(ones - n / 2).max() < 4.5 * math.sqrt(n) / 2


def test_one_bit_of_the_key_changes_half_the_bits_drawn():
    key = r.key(16)
    plain = r.bits(key, (100,))
    for word in range(2):
        for bit in range(0, 32, 5):
            other = key.copy()
            other[word] ^= np.uint32(1 << bit)
            changed = np.unpackbits((plain ^ r.bits(other, (100,))).view(np.uint8)).mean()
            assert abs(changed - 0.5) < 4.5 * 0.5 / math.sqrt(6_400)


def chi_squared(counts, probabilities):
    """Return the chi-squared statistic in standard deviations above its mean."""
    want = counts.sum() * np.asarray(probabilities)
    freedom = len(want) - 1
    return (((counts - want) ** 2 / want).sum() - freedom) / math.sqrt(2 * freedom)


@pytest.mark.parametrize(
    ("draw", "probabilities"),
    [
        (lambda k, n: r.randint(k, n, 0, 7), [1 / 7] * 7),
        (lambda k, n: r.randint(k, n, 0, 7, "int8"), [1 / 7] * 7),
        (lambda k, n: r.choice(k, 7, n), [1 / 7] * 7),
        (lambda k, n: r.choice(k, 3, n, p=np.array([1.0, 2, 5])), [1 / 8, 2 / 8, 5 / 8]),
        (lambda k, n: r.categorical(k, np.log([0.1, 0.2, 0.7]), shape=n), [0.1, 0.2, 0.7]),
        (lambda k, n: r.bernoulli(k, 0.3, n).astype(int), [0.7, 0.3]),
        (lambda k, n: fgrad.vmap(lambda k: r.permutation(k, 5)[0])(r.split(k, n[0])), [1 / 5] * 5),
        (lambda k, n: fgrad.vmap(lambda k: r.permutation(k, 5)[4])(r.split(k, n[0])), [1 / 5] * 5),
    ],
)
def test_frequencies(draw, probabilities):
    counts = np.bincount(draw(r.key(17), (20_000,)), minlength=len(probabilities))
    assert chi_squared(counts, probabilities) < 4


# ---------------------------------------------------------------------------------------------------- edges


@pytest.mark.parametrize("dtype", FLOATS)
def test_unit_interval_is_half_open(dtype):
    x = r.uniform(r.key(18), (200_000,), dtype)
    assert x.min() >= 0
    assert x.max() < 1


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["normal", "exponential", "gumbel", "laplace"])
def test_draws_are_finite(name, dtype):
    x = getattr(r, name)(r.key(19), (200_000,), dtype)
    assert x.dtype == dtype
    assert np.isfinite(x).all()


def test_truncated_normal_stays_inside():
    x = r.truncated_normal(r.key(20), 1.0, 1.0 + 1e-6, (1_000,), "float32")
    assert ((x > 1) & (x < np.float32(1 + 1e-6))).all()


def test_quantiles_of_the_normal():
    q = np.array([-0.5 + 1e-15, -0.49, -0.1, 0.0, 0.1, 0.4999])
    got = q.copy()
    to_normal(got)
    np.testing.assert_allclose(phi(got), q + 0.5, rtol=1e-13, atol=1e-15)
    assert got[3] == 0


@pytest.mark.parametrize("name", ["bits", "uniform", "normal", "exponential", "gumbel", "laplace"])
@pytest.mark.parametrize("shape", [(), 0, (0, 3), (3, 0), (2, 3), [4]])
def test_shapes(name, shape):
    x = getattr(r, name)(r.key(0), shape)
    assert np.shape(x) == np.empty(shape).shape


def test_default_types():
    key = r.key(0)
    assert r.bits(key).dtype == np.uint64
    assert r.uniform(key).dtype == r.normal(key).dtype == np.float64
    assert r.randint(key, (), 0, 5).dtype == np.int64
    assert r.bernoulli(key).dtype == bool


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_integers_of_the_whole_range(dtype):
    info = np.iinfo(dtype)
    x = r.randint(r.key(0), (4_000,), int(info.min), int(info.max) + 1, dtype)
    assert x.dtype == dtype
    assert x.min() < info.min + (int(info.max) - int(info.min)) / 100
    assert x.max() > info.max - (int(info.max) - int(info.min)) / 100


def test_integers_of_one_value():
    assert (r.randint(r.key(0), (9,), 3, 4) == 3).all()
    assert (r.randint(r.key(0), (2,), np.array([3, 5]), np.array([1, 5])) == [3, 5]).all()


def test_permutation_keeps_the_elements():
    x = np.arange(1797)
    shuffled = r.permutation(r.key(0), x)
    assert (np.sort(shuffled) == x).all()
    assert (shuffled != x).mean() > 0.99
    rows = np.arange(12).reshape(4, 3)
    assert sorted(map(tuple, r.permutation(r.key(0), rows))) == sorted(map(tuple, rows))
    columns = r.permutation(r.key(0), rows, axis=1, independent=True)
    assert (np.sort(columns, axis=1) == rows).all()


@pytest.mark.parametrize("x", [0, 1, np.zeros((0, 2)), np.zeros((1, 2))])
def test_permutation_of_almost_nothing(x):
    out = r.permutation(r.key(0), x)
    assert out is not x
    np.testing.assert_array_equal(out, np.arange(x) if isinstance(x, int) else x)


def test_choice_without_replacement_repeats_nothing():
    chosen = r.choice(r.key(0), 10, (10,), replace=False)
    assert sorted(chosen) == list(range(10))
    weighted = r.choice(r.key(0), 4, (3,), replace=False, p=WEIGHTS)
    assert sorted(weighted) == [0, 1, 3]
    assert r.choice(r.key(0), np.zeros((0, 3)), (0,), axis=0).shape == (0, 3)


def test_categories_of_probability_zero_are_never_drawn():
    assert (r.categorical(r.key(0), np.array([-np.inf, 0.0]), shape=(10_000,)) == 1).all()
    assert 2 not in r.choice(r.key(0), 4, (10_000,), p=WEIGHTS)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda k: r.bits(k, (2,), "int32"),
            TypeError,
            "random.bits: dtype must be an unsigned integer type, got int32",
        ),
        (lambda k: r.uniform(k, (2,), int), TypeError, "random.uniform: dtype must be float16, float32 or float64"),
        (
            lambda k: r.uniform(k, (2,), minval=np.zeros(3)),
            ValueError,
            r"uniform: minval must broadcast to the shape \(2,\)",
        ),
        (lambda k: r.normal(k, (2,), "uint8"), TypeError, "random.normal: dtype must be a floating or complex type"),
        (lambda k: r.normal(k, (2, -1)), ValueError, "random.normal: shape must hold no negative sizes"),
        (lambda k: r.randint(k, (2,), 0.0, 3), TypeError, "random.randint: minval must be an integer, got float64"),
        (lambda k: r.randint(k, (2,), 3, 3), ValueError, "random.randint: must have minval < maxval"),
        (lambda k: r.randint(k, (2,), 0, 257, "uint8"), ValueError, "both within uint8"),
        (lambda k: r.bernoulli(k, np.zeros(3), (2,)), ValueError, "random.bernoulli: p must broadcast"),
        (lambda k: r.truncated_normal(k, 0, np.zeros(3), (2,)), ValueError, "random.truncated_normal: upper must"),
        (lambda k: r.permutation(k, -1), ValueError, "random.permutation: the number of elements must not be negative"),
        (lambda k: r.permutation(k, np.zeros(3), axis=1), np.exceptions.AxisError, "axis 1 is out of bounds"),
        (lambda k: r.permutation(k, 2.5), TypeError, "float"),
        (lambda k: r.choice(k, 0, (1,)), ValueError, "nothing to choose from"),
        (lambda k: r.choice(k, 3, (4,), replace=False), ValueError, "cannot choose 4 of 3"),
        (lambda k: r.choice(k, 3, (4,), p=np.ones(2)), ValueError, r"p must have shape \(3,\), got float64\[2\]"),
        (lambda k: r.categorical(k, np.zeros((2, 3)), shape=(3,)), ValueError, r"shape must end in \(2,\)"),
        (lambda k: r.categorical(k, np.zeros(3), shape=(4,), replace=False), ValueError, "cannot draw 4 of 3"),
    ],
)
def test_errors(call, error, said):
    with pytest.raises(error, match=said):
        call(r.key(0))


def test_speed(record_property):
    key = r.key(0)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        r.normal(key, (1_000_000,))
        seconds.append(time.perf_counter() - start)
    record_property("a million normal numbers", f"{min(seconds) * 1e3:.0f} ms (aim: 60 ms)")

"""Reductions and cumulative primitives where the laws do not look: ties, zeros, infinities, float16, emptiness."""

import math

import numpy as np
import pytest

import fgrad
from fgrad.core import type_of
from fgrad.ops import reduce as r

INF, NAN = math.inf, math.nan


def derivative(f, order):
    """Return the derivative of an order of a function of one array, reverse over reverse, summed between."""
    for _ in range(order):
        f = fgrad.grad(lambda x, f=f: f(x).sum())
    return f


# ----------------------------------------------------------------------------------------------------------- ties


@pytest.mark.parametrize("reduce", [r.reduce_max, r.reduce_min])
def test_ties_have_equal_shares(reduce):
    x = np.array([[1.0, 3, 3], [2, 2, 2]])
    pulled = fgrad.grad(lambda x: reduce(x, axes=(1,)).sum())(x)
    np.testing.assert_allclose(pulled.sum(axis=1), [1, 1])
    np.testing.assert_allclose(pulled[1], 1 / 3)
    assert fgrad.jvp(lambda x: reduce(x, axes=(0, 1)), (x,), (np.ones((2, 3)),))[1] == 1


def test_shares_of_many_ties_in_half_precision():
    x = np.ones(70_000, np.float16)
    gradient = fgrad.grad(lambda x: r.reduce_max(x, axes=(0,)))(x)
    assert gradient.dtype == np.float16
    np.testing.assert_allclose(gradient.sum(dtype=np.float64), 1, rtol=2e-3)
    pushed = fgrad.jvp(lambda x: r.reduce_max(x, axes=(0,)), (x,), (x,))[1]
    np.testing.assert_allclose(pushed, 1, rtol=2e-3)


@pytest.mark.parametrize("transform", [lambda f: f, fgrad.jit, fgrad.vmap], ids=["eager", "jit", "vmap"])
def test_ties_are_counted_alike_under_every_transform(transform):
    x = np.ones((2, 4), np.float16)
    gradient = transform(fgrad.grad(lambda x: r.reduce_max(x, axes=tuple(range(x.ndim)))))(x)
    np.testing.assert_array_equal(gradient, np.full((2, 4), 0.25 if transform is fgrad.vmap else 0.125))


def test_a_maximum_that_is_nan_has_no_slope():
    x = np.array([1.0, NAN, 3])
    assert math.isnan(r.reduce_max(x, axes=(0,)))
    np.testing.assert_array_equal(fgrad.grad(lambda x: r.reduce_max(x, axes=(0,)))(x), [0, 0, 0])


def test_what_is_not_extreme_has_no_effect():
    pulled = fgrad.grad(lambda x: np.sqrt(r.reduce_max(x, axes=(0,))))(np.array([-1.0, 0]))
    np.testing.assert_array_equal(pulled, [0, INF])
    pushed = fgrad.jvp(lambda x: r.reduce_max(x, axes=(0,)), (np.array([1.0, 2]),), (np.array([NAN, 1]),))[1]
    assert pushed == 1


@pytest.mark.parametrize(("cumulate", "sign"), [(r.cummax, 1), (r.cummin, -1)])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_extremes_give_their_slope_to_the_last_tie_met(cumulate, sign, reverse):
    x = sign * np.array([1.0, 3, 3, 2])
    want = [0, 2, 1, 1] if reverse else [1, 1, 2, 0]
    np.testing.assert_array_equal(fgrad.grad(lambda x: cumulate(x, axis=0, reverse=reverse).sum())(x), want)


# ------------------------------------------------------------------------------------------------- zeros in products


@pytest.mark.parametrize(
    ("x", "want"),
    [
        ([2.0, 3, 4], [12, 8, 6]),
        ([2.0, 0, 4], [0, 8, 0]),
        ([0.0, 0, 4], [0, 0, 0]),
        ([5.0], [1]),
        ([], []),
    ],
)
def test_slopes_of_products_are_products_of_the_others(x, want):
    x = np.array(x)
    np.testing.assert_array_equal(fgrad.grad(lambda x: r.reduce_prod(x, axes=(0,)))(x), want)


def test_higher_derivatives_of_products_with_zeros():
    def prod(x):
        return r.reduce_prod(x, axes=(0,))

    x = np.array([0.0, 0, 4])
    want = np.zeros((3, 3))
    want[0, 1] = want[1, 0] = 4
    np.testing.assert_array_equal(fgrad.hessian(prod)(x), want)
    third = fgrad.jacfwd(fgrad.hessian(prod))(x)
    assert third[0, 1, 2] == third[2, 1, 0] == 1
    assert np.count_nonzero(third) == 6


def test_products_over_several_axes():
    x = np.arange(24.0).reshape(2, 3, 4) - 5
    got = fgrad.grad(lambda x: r.reduce_prod(x, axes=(0, 2)).sum())(x)
    rows = x.transpose(1, 0, 2).reshape(3, 8)
    want = [[np.prod(np.delete(row, k)) for k in range(8)] for row in rows]
    np.testing.assert_allclose(got, np.array(want).reshape(3, 2, 4).transpose(1, 0, 2))
    np.testing.assert_array_equal(fgrad.grad(lambda x: r.reduce_prod(x, axes=()).sum())(x), np.ones(x.shape))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", [[2.0, 3, 4], [2.0, 0, 4], [0.0, 0, 4], [0.0, 0, 0]])
def test_jacobians_of_running_products_with_zeros(x, reverse):
    def cumprod(x):
        return r.cumprod(x, axis=0, reverse=reverse)

    x = np.array(x)
    want = np.zeros((3, 3))
    for k in range(3):
        members = range(k, 3) if reverse else range(k + 1)
        for i in members:
            want[k, i] = np.prod([x[j] for j in members if j != i])
    np.testing.assert_array_equal(fgrad.jacrev(cumprod)(x), want)
    np.testing.assert_array_equal(fgrad.jacfwd(cumprod)(x), want)


def test_second_derivatives_of_running_products_with_zeros():
    hessian = fgrad.hessian(lambda x: r.cumprod(x, axis=0, reverse=False)[2])(np.array([0.0, 0, 4]))
    np.testing.assert_array_equal(hessian, [[0, 4, 0], [4, 0, 0], [0, 0, 0]])


# -------------------------------------------------------------------------------------------------------- logsumexp


@pytest.mark.parametrize(
    ("x", "value", "slope"),
    [
        ([-INF, -INF], -INF, [0, 0]),
        ([-INF, 1.0], 1.0, [0, 1]),
        ([INF, 1.0], INF, [1, 0]),
        ([INF, -INF], INF, [1, 0]),
        ([1e4, 1e4], 1e4 + math.log(2), [0.5, 0.5]),
        ([-1e4, -1e4], -1e4 + math.log(2), [0.5, 0.5]),
        ([1e300, -1e300], 1e300, [1, 0]),
        ([NAN, 1.0], NAN, [NAN, NAN]),
        ([], -INF, []),
    ],
)
def test_logsumexp_at_infinities(x, value, slope):
    got, gradient = fgrad.value_and_grad(lambda x: r.logsumexp(x, axes=(0,)))(np.array(x))
    np.testing.assert_allclose(got, value)
    np.testing.assert_allclose(gradient, slope, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_masked_rows_have_no_derivatives(order):
    x = np.array([[-INF, -INF, -INF], [1, -INF, 2]])
    got = derivative(lambda x: r.logsumexp(x, axes=(1,)), order)(x)
    np.testing.assert_array_equal(got[0], 0)
    assert np.isfinite(got).all()


@pytest.mark.parametrize("reverse", [False, True])
def test_running_logsumexp_is_logsumexp_of_parts(reverse):
    def running(x):
        return r.cumlogsumexp(x, axis=0, reverse=reverse)

    x = np.array([-INF, 1, 2, -INF, 800, 3])
    for k in range(6):
        part = slice(k, 6) if reverse else slice(k + 1)
        value, gradient = fgrad.value_and_grad(lambda x, part=part: r.logsumexp(x[part], axes=(0,)))(x)
        np.testing.assert_allclose(running(x)[k], value)
        np.testing.assert_allclose(fgrad.jacrev(running)(x)[k], gradient, rtol=1e-12)
        np.testing.assert_allclose(fgrad.jacfwd(running)(x)[k], gradient, rtol=1e-12)


# -------------------------------------------------------------------------------------------------- half precision


def test_half_precision_accumulates_in_single():
    x = np.full(20_000, 0.1, np.float16)
    want = np.float16(x.astype(np.float64).sum())
    assert r.reduce_sum(x, axes=(0,)) == want
    assert r.reduce_sum(x.reshape(-1, 2), axes=(0,))[0] == np.float16(want / 2)
    np.testing.assert_allclose(r.cumsum(x, axis=0, reverse=True)[0], want, rtol=1e-3)
    assert r.logsumexp(np.zeros(20_000, np.float16), axes=(0,)) == np.float16(math.log(20_000))
    grown = np.full(1000, 1.001, np.float16)
    np.testing.assert_allclose(r.cumprod(grown, axis=0, reverse=False)[-1], np.float64(grown[0]) ** 1000, rtol=1e-3)


@pytest.mark.parametrize("lanes", [1, 40], ids=["numbers", "rows"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrence_is_the_same_by_numbers_and_by_rows(lanes, dtype, reverse):
    rng = np.random.default_rng(0)
    x, u = rng.uniform(-1, 1, (2, 50, lanes)).astype(dtype)
    out = r.recurrence(x, u, axis=0, reverse=reverse)
    assert out.dtype == dtype
    order = range(49, -1, -1) if reverse else range(50)
    want, s = np.empty((50, lanes), np.complex128), 0
    for k in order:
        want[k] = s = x[k] * s + u[k]
    np.testing.assert_allclose(out, want, rtol=20 * np.finfo(dtype).eps, atol=20 * np.finfo(dtype).eps)


def test_recurrence_starts_with_what_is_added():
    assert r.recurrence(np.array([INF, 2.0]), np.array([1.0, 1]), axis=0, reverse=False).tolist() == [1, 3]
    assert r.recurrence(np.zeros((0, 3)), np.zeros((0, 3)), axis=0, reverse=False).shape == (0, 3)


# ------------------------------------------------------------------------------------------------ empty and types


@pytest.mark.parametrize(("reduce", "name"), [(r.reduce_max, "maximum"), (r.reduce_min, "minimum")])
def test_extremes_of_nothing_are_refused_in_numpys_words(reduce, name):
    message = f"zero-size array to reduction operation {name} which has no identity"
    with pytest.raises(ValueError, match=message):
        reduce(np.zeros((2, 0)), axes=(1,))
    with pytest.raises(ValueError, match=message):
        fgrad.eval_shape(lambda x: reduce(x, axes=(1,)), np.zeros((2, 0)))
    assert reduce(np.zeros((2, 0)), axes=(0,)).shape == (0,)


@pytest.mark.parametrize(("reduce", "name"), [(r.argmax, "argmax"), (r.argmin, "argmin")])
def test_places_of_extremes_of_nothing_are_refused_in_numpys_words(reduce, name):
    message = f"attempt to get {name} of an empty sequence"
    with pytest.raises(ValueError, match=message):
        reduce(np.zeros((2, 0)), axis=1)
    with pytest.raises(ValueError, match=message):
        fgrad.eval_shape(lambda x: reduce(x, axis=1), np.zeros((2, 0)))


def test_reductions_over_no_axis_are_copies():
    x = np.arange(3.0)
    for f in (r.reduce_sum, r.reduce_prod, r.reduce_max, r.logsumexp):
        out = f(x, axes=())
        np.testing.assert_allclose(out, x)
        assert not np.shares_memory(out, x)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint64, np.float32])
def test_dtypes_are_kept(dtype):
    x = np.array([3, 1, 2], dtype)
    for f in (r.reduce_sum, r.reduce_prod, r.reduce_max):
        assert f(x, axes=(0,)).dtype == dtype
    for f in (r.cumsum, r.cumprod, r.cummax):
        assert f(x, axis=0, reverse=True).dtype == dtype
    assert type_of(r.argmax(x, axis=0)).dtype == np.intp

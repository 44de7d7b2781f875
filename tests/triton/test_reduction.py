"""What only reductions have: ties, NaN, rows of -inf, the running sum from the end."""

import numpy as np
import pytest

from fgrad.triton_kernels import check_call, require_clean
from fgrad.triton_kernels.reduction import argmax, argmin, column_sums, cumsum_forward, reduce_backward, reduce_forward
from fgrad.triton_kernels.runtime import launching


def test_entries_that_tie_for_the_maximum_share_its_cotangent():
    x = np.array([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]])
    gradient = reduce_backward(np.array([1.0, 2.0]), x, reduce_forward(x, "max"), "max")
    np.testing.assert_array_equal(gradient, [[0, 0.5, 0.5, 0], [0.5] * 4])


@pytest.mark.parametrize("columns", [9, 5000])
def test_26_nan_and_the_first_of_equals(columns):
    x = np.zeros((4, columns))
    x[0, [3, columns - 2]] = 1
    x[1, [5, columns - 1]] = np.nan
    x[2] = -np.inf
    x[3, -1] = np.inf
    np.testing.assert_array_equal(argmax(x), x.argmax(1))
    np.testing.assert_array_equal(reduce_forward(x, "max"), x.max(1))


def test_08_logsumexp_of_minus_infinity():
    x = np.full((2, 5), -np.inf)
    x[1, 2] = 4.0
    out = reduce_forward(x, "logsumexp")
    np.testing.assert_array_equal(out, [-np.inf, 4.0])
    np.testing.assert_array_equal(reduce_forward(np.array([[1.0, np.inf, 2.0]]), "logsumexp"), [np.inf])
    gradient = reduce_backward(np.ones(2), x, out, "logsumexp")
    np.testing.assert_array_equal(gradient, [[0] * 5, [0, 0, 1, 0, 0]])


@pytest.mark.parametrize("columns", [7, 5000])
def test_running_sums_from_the_end(columns):
    x = np.random.default_rng(0).normal(size=(2, columns))
    np.testing.assert_allclose(cumsum_forward(x, reverse=True), x[:, ::-1].cumsum(1)[:, ::-1], rtol=1e-9, atol=1e-11)


def test_leading_axes_and_rows_in_any_order_of_memory():
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    np.testing.assert_allclose(reduce_forward(x, "sum"), x.sum(-1))
    np.testing.assert_allclose(reduce_forward(x[0].T, "sum"), x[0].sum(0))


KINDS = {
    "sum": lambda x, axis: x.sum(axis),
    "mean": lambda x, axis: x.mean(axis),
    "max": lambda x, axis: x.max(axis),
    "logsumexp": lambda x, axis: np.log(np.exp(x).sum(axis)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), (2, 0), None, (0, 1, 2)])
def test_every_axis(kind, axis):
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    out = reduce_forward(x, kind, axis=axis)
    np.testing.assert_allclose(out, KINDS[kind](x, axis), rtol=1e-12)
    ct = np.random.default_rng(1).normal(size=out.shape)
    gradient = reduce_backward(ct, x, out, kind, axis=axis)
    direction, step = np.random.default_rng(2).normal(size=x.shape), 1e-6
    change = (KINDS[kind](x + step * direction, axis) - KINDS[kind](x - step * direction, axis)) / (2 * step)
    np.testing.assert_allclose((gradient * direction).sum(), (ct * change).sum(), rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_sums_along_every_axis(axis):
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    np.testing.assert_allclose(cumsum_forward(x, axis=axis), x.cumsum(axis))
    np.testing.assert_array_equal(argmax(x, axis=axis), x.argmax(axis))


def test_few_long_rows_are_cut_into_parts():
    x = np.random.default_rng(0).normal(size=(2, 40_000)).astype(np.float32)
    x[0, 30_000], x[1, 9000] = 9, np.nan
    launches = []
    with launching(launches.append):
        reduce_forward(x, "sum")
        argmax(x)
    assert [launch.grid for launch in launches] == [(10,), (2,), (10,), (2,)]
    np.testing.assert_array_equal(argmax(x), x.argmax(1))
    np.testing.assert_array_equal(argmax(x, axis=None), x.argmax())
    np.testing.assert_array_equal(np.isnan(reduce_forward(x, "max")), [False, True])
    assert reduce_forward(x, "max")[0] == 9
    require_clean(check_call(reduce_forward, x, "mean"))
    require_clean(check_call(argmax, x))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("place", [argmax, argmin])
def test_places_of_extremes_are_those_of_numpy(place, dtype):
    named = getattr(np, place.__name__)
    edge = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)
    rng = np.random.default_rng(0)
    for shape in ((7, 3), (40, 5), (3, 1), (2, 20_000), (4, 3, 2)):
        x = rng.choice(edge[: 3 + 2 * (shape[0] % 3)], shape).astype(dtype)
        for axis in (*range(len(shape)), None):
            np.testing.assert_array_equal(place(x, axis=axis), named(x, axis))
    for value in edge:
        np.testing.assert_array_equal(place(np.full((2, 9), value, dtype)), [0, 0])
    require_clean(check_call(place, x))
    assert place(np.empty((0, 3), dtype)).shape == (0,)


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_few_long_rows_are_cut_into_parts(reverse):
    x = np.random.default_rng(0).normal(size=(2, 20_000))
    turn = slice(None, None, -1 if reverse else 1)
    expected = x[:, turn].cumsum(1)[:, turn]
    np.testing.assert_allclose(cumsum_forward(x, reverse=reverse), expected, rtol=1e-9, atol=1e-10)
    require_clean(check_call(cumsum_forward, x.astype(np.float16), reverse=reverse))


def test_10_sums_of_columns_are_partial_sums_in_float32():
    x = np.ones((70_000, 3), np.float16)
    np.testing.assert_array_equal(column_sums(x[:1000], np.dtype(np.float32)), [1000] * 3)
    launches = []
    with launching(launches.append):
        column_sums(x, np.dtype(np.float16))
    assert [launch.grid for launch in launches] == [(274,), (2,), (1,)]
    assert [launch.args[1].dtype for launch in launches] == [np.float32, np.float32, np.float16]


def test_wrong_axes_are_named():
    with pytest.raises(ValueError, match=r"axis: got \(1,\), expected different axes of an array of shape \(2,\)"):
        reduce_forward(np.ones(2), "sum", axis=1)
    with pytest.raises(ValueError, match="expected entries along axis -1"):
        argmax(np.ones((2, 0)))


def test_unknown_kinds_are_named():
    with pytest.raises(ValueError, match="kind: got 'product'"):
        reduce_forward(np.ones((1, 2)), "product")

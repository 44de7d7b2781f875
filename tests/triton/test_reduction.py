"""What only reductions have: ties, NaN, rows of -inf, the running sum from the end."""

import numpy as np
import pytest

from fgrad.triton_kernels.reduction import argmax, cumsum_forward, reduce_backward, reduce_forward


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


def test_unknown_kinds_are_named():
    with pytest.raises(ValueError, match="kind: got 'product'"):
        reduce_forward(np.ones((1, 2)), "product")

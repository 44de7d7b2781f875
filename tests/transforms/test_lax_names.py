"""The elementary operations of `fgrad.lax`: edges and refusals. Values and derivatives are in the parity tests."""

import numpy as np
import pytest

import fgrad
from fgrad import lax

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("name", lax.__all__)
def test_every_name_is_there_and_says_what_it_does(name):
    assert getattr(lax, name).__doc__.strip()
    assert name in dir(lax)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'fgrad.lax' has no attribute 'sine'"):
        lax.sine  # noqa: B018


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (lambda: lax.div(-7, 2), -3),
        (lambda: lax.div(7.0, 2), 3.5),
        (lambda: lax.round([0.5, -0.5, np.nan, np.inf]), [1.0, -1.0, np.nan, np.inf]),
        (lambda: lax.clamp(0, [-1, 5], 3), [0, 3]),
        (lambda: lax.select_n(True, 1.0, 2.0), 2.0),
        (lambda: lax.select_n(0, 1.0), 1.0),
        (lambda: lax.rsqrt(4), 0.5),
        (lambda: lax.reduce_max(X[:, ::-1], (1,)), [2.0, 5.0]),
        (lambda: lax.reduce_sum(np.zeros((0, 2)), (0,)), [0.0, 0.0]),
        (lambda: lax.reduce_prod(np.zeros((2, 0)), (-1,)), [1.0, 1.0]),
        (lambda: lax.reduce_sum(np.ones(3, bool), ()), [True] * 3),
        (lambda: lax.cumsum(X, axis=-1, reverse=True), [[3, 3, 2], [12, 9, 5]]),
        (lambda: lax.cumsum(np.zeros(0)), np.zeros(0)),
        (lambda: lax.dynamic_slice(X, (5, -1), (1, 2)), [[4, 5]]),
        (lambda: lax.dynamic_slice(np.array(3.0), (), ()), 3.0),
        (lambda: lax.dynamic_slice(X, np.array([0, 1]), (2, 0)), np.zeros((2, 0))),
        (lambda: lax.dynamic_update_slice(X, [[9]], (0, 0)), [[9, 1, 2], [3, 4, 5]]),
        (lambda: lax.sort(np.zeros(0)), np.zeros(0)),
        (lambda: lax.top_k(X, 0)[0], np.zeros((2, 0))),
        (lambda: lax.collapse(X, -2), np.arange(6.0)),
        (lambda: lax.collapse(X, 1, 1), X[:, None]),
        (lambda: lax.iota(np.int8, 0), np.zeros(0)),
        (lambda: lax.dot_general(X, X, (((-1,), (-1,)), ((), ()))), X @ X.T),
        (lambda: lax.reduce(X, 0.0, lax.add, (0, 1)), 15.0),
        (lambda: lax.reduce(np.zeros((0, 2)), 1.0, lax.mul, (0,)), [1.0, 1.0]),
        (lambda: lax.reduce((X, X), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,))[1], [0.0, 4.0, 10.0]),
        (lambda: lax.reduce_window(X, 0.0, lax.add, (3, 1)), np.zeros((0, 3))),
        (lambda: lax.reduce_window(X, 0.0, lax.add, (2, 3)), [[15.0]]),
        (lambda: lax.conv(np.ones((1, 1, 0)), np.ones((1, 1, 1)), (1,), "SAME"), np.zeros((1, 1, 0))),
    ],
)
def test_edges(found, wanted):
    np.testing.assert_array_equal(found(), wanted)
    np.testing.assert_array_equal(fgrad.jit(lambda _: found())(0.0), wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float32"])
@pytest.mark.parametrize("name", ["reduce_sum", "reduce_prod", "reduce_max"])
def test_reductions_keep_the_dtype(name, dtype):
    for made in (lambda f: f, fgrad.jit):
        assert made(lambda x: getattr(lax, name)(x, (0,)))(np.ones(3, dtype)).dtype == dtype


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.select_n(True), ValueError, "cannot choose among 0 cases"),
        (lambda: lax.select_n(True, 1, 2, 3), ValueError, "bool cannot choose among 3 cases"),
        (lambda: lax.broadcast_in_dim(X, (2, 3), (0,)), ValueError, "one for each of the 2 axes"),
        (lambda: lax.broadcast_in_dim(X, (3, 2), (1, 0)), ValueError, "must be increasing"),
        (lambda: lax.split(X, (1, 3)), ValueError, r"sizes \(1, 3\) must add up to 2"),
        (lambda: lax.pad(X, 0.0, [(0, 0, 0)]), ValueError, "must have 2 entries"),
        (lambda: lax.index_in_dim(X, 2), IndexError, "index 2 is out of bounds for axis 0 with size 2"),
        (lambda: lax.dynamic_slice(X, (0,), (1, 1)), ValueError, "start_indices must be 2 integers"),
        (lambda: lax.dynamic_slice(X, (0, 0), (3, 1)), ValueError, "slice_sizes must fit an array of shape"),
        (lambda: lax.dynamic_update_slice(X, X[0], (0, 0)), ValueError, "update must fit"),
        (lambda: lax.sort((X, X), num_keys=3), ValueError, "num_keys must be between 1 and"),
        (lambda: lax.top_k(X, 4), ValueError, "k must be between 0 and"),
        (lambda: lax.reduce_sum(X, (2,)), np.exceptions.AxisError, "out of bounds"),
        (lambda: lax.conv(X, X, (1,), "FULL"), ValueError, "padding must be"),
        (lambda: lax.conv_transpose(X[None], X[None], (1,), "FULL"), ValueError, "padding must be"),
        (lambda: lax.reduce_window(X, 0.0, lax.add, (2,)), ValueError, "must have 2 entries"),
        (lambda: lax.conv_general_dilated(X, X, (), "VALID", batch_group_count=2), NotImplementedError, "must be 1"),
        (
            lambda: lax.conv_general_dilated(X[None], X[None], (1,), "SAME", (2,)),
            ValueError,
            "String padding is not implemented",
        ),
        (
            lambda: lax.conv_general_dilated(X[None], X[None], (1,), "SAME", dimension_numbers=("NHWC", "OIH", "NCH")),
            ValueError,
            "dimension_numbers must name 3 axes",
        ),
        (
            lambda: lax.conv_general_dilated(X[None], X[None], (1,), [(0, 0)] * 2),
            ValueError,
            "padding must have 1 pairs",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()

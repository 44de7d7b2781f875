"""Sorting primitives: ties, nan, several keys, and cotangents that follow the permutation."""

import numpy as np
import pytest

import fgrad
from fgrad.ops import sort as so

NAN = np.nan


def test_argsort_is_stable_and_puts_nan_last():
    x = np.array([2.0, NAN, 1.0, 2.0, -np.inf, 1.0, NAN])
    np.testing.assert_array_equal(so.argsort(x, axis=0), [4, 2, 5, 0, 3, 1, 6])


def test_argsort_compares_further_keys_where_the_first_ties():
    first, second = np.array([1, 0, 1, 0]), np.array([0.5, 2.0, -1.0, 2.0])
    np.testing.assert_array_equal(so.argsort(first, second, axis=0), [1, 3, 2, 0])
    np.testing.assert_array_equal(so.argsort(second, first, axis=0), [2, 0, 1, 3])


def test_argsort_along_an_axis_of_several_keys():
    keys = np.array([[1, 1], [0, 1]]), np.array([[2, 1], [5, 0]])
    np.testing.assert_array_equal(so.argsort(*keys, axis=0), [[1, 1], [0, 0]])
    np.testing.assert_array_equal(so.argsort(*keys, axis=1), [[1, 0], [0, 1]])


def test_argsort_of_traced_values_is_plain():
    def f(x):
        order = so.argsort(x, axis=0)
        assert isinstance(order, np.ndarray)
        return x[order[0]]

    np.testing.assert_array_equal(fgrad.grad(f)(np.array([3.0, 1.0])), [0, 1])


def test_cotangents_of_ties_follow_the_stable_order():
    x, weights = np.array([1.0, 0.0, 1.0, 0.0]), np.arange(4.0)
    np.testing.assert_array_equal(fgrad.grad(lambda x: (so.sort(x, axis=0) * weights).sum())(x), [2, 0, 3, 1])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sort_is_numpys_and_its_derivative_a_permutation(axis):
    x = np.random.default_rng(0).normal(size=(3, 4, 2))
    x[1, 2, 0] = NAN
    np.testing.assert_array_equal(so.sort(x, axis=axis), np.sort(x, axis=axis))
    t = np.random.default_rng(1).normal(size=x.shape)
    out, pushed = fgrad.jvp(lambda x: so.sort(x, axis=axis), (x,), (t,))
    order = np.argsort(x, axis=axis, kind="stable")
    np.testing.assert_array_equal(out, np.sort(x, axis=axis))
    np.testing.assert_array_equal(pushed, np.take_along_axis(t, order, axis=axis))


def test_sort_under_vmap_is_one_sort():
    x = np.random.default_rng(2).normal(size=(5, 3))
    np.testing.assert_array_equal(fgrad.vmap(lambda x: so.sort(x, axis=0), in_axes=1, out_axes=1)(x), np.sort(x, 0))
    assert "argsort" not in str(fgrad.make_ir(fgrad.vmap(lambda x: so.sort(x, axis=0)))(x))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2)])
def test_sorting_nothing(shape):
    x = np.zeros(shape)
    assert so.sort(x, axis=len(shape) - 1).shape == shape
    assert fgrad.grad(lambda x: so.sort(x, axis=0).sum())(x).shape == shape


@pytest.mark.parametrize("k", [0, 1, 3, 5])
def test_top_k_takes_the_first_of_equals_and_counts_nan_largest(k):
    values, order = so.top_k(np.array([[1.0, 3.0, 3.0, NAN, 1.0], [0.0, -0.0, 0.0, -1.0, 2.0]]), k=k)
    np.testing.assert_array_equal(values, np.array([[NAN, 3, 3, 1, 1], [2, 0, 0, 0, -1]])[:, :k])
    np.testing.assert_array_equal(order, np.array([[3, 1, 2, 0, 4], [4, 0, 1, 2, 3]])[:, :k])


def test_top_k_gives_cotangents_to_what_it_took():
    x = np.array([[1.0, 3.0, 2.0], [5.0, 4.0, 6.0]])

    def f(x):
        values, order = so.top_k(x, k=2)
        assert order.dtype == np.intp
        return (values * np.array([1.0, 10.0])).sum()

    np.testing.assert_array_equal(fgrad.grad(f)(x), [[0, 1, 10], [10, 0, 1]])

"""What only an embedding has: repeated indices, entries nobody asks for, indices that are no entry."""

import ml_dtypes
import numpy as np
import pytest

from fgrad.triton_kernels import check_call, require_clean
from fgrad.triton_kernels.embedding import (
    embedding_backward,
    embedding_forward,
    gather_backward,
    gather_forward,
    scatter_add_backward,
    scatter_add_forward,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_11_one_index_a_thousand_times(dtype):
    result = embedding_backward(np.ones((1000, 3), dtype), np.full(1000, 2), 4)
    np.testing.assert_array_equal(result.astype(np.float64), [[0] * 3, [0] * 3, [1000] * 3, [0] * 3])


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
def test_gradient_adds_up_repeated_indices(kind):
    generator = np.random.default_rng(0)
    index, ct = generator.integers(0, 9, (4, 25)).astype(kind), generator.normal(size=(4, 25, 7))
    expected = np.zeros((9, 7))
    np.add.at(expected, index, ct)
    np.testing.assert_allclose(embedding_backward(ct, index, 9), expected, rtol=1e-12)
    require_clean(check_call(embedding_backward, ct, index, 9))


def test_indices_of_any_shape_and_strides():
    table, index = np.arange(12.0).reshape(6, 2), np.array([[0, 5, 1], [2, 2, 4]])
    np.testing.assert_array_equal(embedding_forward(table, index), table[index])
    np.testing.assert_array_equal(embedding_forward(table, index.T[::-1]), table[index.T[::-1]])


def test_an_index_that_is_no_entry_gives_nan_and_adds_to_nothing():
    table, index = np.ones((3, 2)), np.array([0, -1, 3, 2])
    found = np.isnan(embedding_forward(table, index)).all(1)
    np.testing.assert_array_equal(found, [False, True, True, False])
    np.testing.assert_array_equal(embedding_backward(np.ones((4, 2)), index, 3), [[1, 1], [0, 0], [1, 1]])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (0,)])
def test_gather_and_scatter_add_along_every_axis(axis, shape):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4, 5))
    index = rng.integers(0, x.shape[axis], shape)
    out = gather_forward(x, index, axis=axis)
    np.testing.assert_array_equal(out, x.take(index, axis))
    ct, added = rng.normal(size=out.shape), np.zeros(x.shape)
    np.add.at(added, (slice(None),) * (axis % 3) + (index,), ct)
    np.testing.assert_allclose(gather_backward(ct, x, index, axis=axis), added, atol=1e-14)
    np.testing.assert_allclose(scatter_add_forward(x, index, ct, axis=axis), x + added, atol=1e-14)
    dx, dupdates = scatter_add_backward(x, index, axis=axis)
    np.testing.assert_array_equal(dx, x)
    np.testing.assert_array_equal(dupdates, out)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_11_scatter_add_sums_in_float32(dtype):
    result = scatter_add_forward(np.ones((2, 3), dtype), np.zeros(1000, int), np.ones((1000, 3), dtype))
    expected = np.array([[1001] * 3, [1] * 3]).astype(dtype)
    np.testing.assert_array_equal(result, expected)


def test_09_30_repeated_indices_leave_no_findings_and_the_same_bits():
    rng = np.random.default_rng(0)
    x, updates = (rng.normal(size=(n, 70)).astype(np.float32) for n in (9, 40))
    index = rng.integers(0, 4, 40)
    require_clean(check_call(scatter_add_forward, x, index, updates))
    assert scatter_add_forward(x, index, updates).tobytes() == scatter_add_forward(x, index, updates).tobytes()


def test_updates_at_no_entry_are_left_out():
    index = np.array([0, -1, 3])
    np.testing.assert_array_equal(scatter_add_forward(np.zeros(3), index, np.ones(3)), [1, 0, 0])
    np.testing.assert_array_equal(np.isnan(gather_forward(np.ones(3), index)), [False, True, True])


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="index: got float64, expected integers"):
        embedding_forward(np.ones((3, 2)), np.ones(2))
    with pytest.raises(ValueError, match=r"table: got shape \(3,\)"):
        embedding_forward(np.ones(3), np.ones(2, int))
    with pytest.raises(ValueError, match=r"ct: got shape \(3, 2\)"):
        embedding_backward(np.ones((3, 2)), np.ones(2, int), 4)
    with pytest.raises(ValueError, match=r"updates: got shape \(2,\), expected \(3,\)"):
        scatter_add_forward(np.ones(4), np.zeros(3, int), np.ones(2))
    with pytest.raises(TypeError, match="x, updates: got float64 and float32"):
        scatter_add_forward(np.ones(4), np.zeros(3, int), np.ones(3, np.float32))
    with pytest.raises(ValueError, match="axis: got 1"):
        gather_forward(np.ones(3), np.zeros(1, int), axis=1)

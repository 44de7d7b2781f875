"""What only dropout has: the mask depends on seed and element alone, and the rate of kept elements is right."""

import numpy as np
import pytest

from fgrad.triton_kernels import dropout
from fgrad.triton_kernels.dropout import dropout_backward, dropout_forward


def test_24_the_mask_does_not_depend_on_the_block(monkeypatch):
    x = np.ones((5, 300), np.float32)
    expected = dropout_forward(x, 3, rate=0.4)
    monkeypatch.setattr(dropout, "_LARGEST_BLOCK", 32)
    np.testing.assert_array_equal(dropout_forward(x, 3, rate=0.4), expected)


def test_24_forward_and_backward_drop_the_same_elements():
    x = np.random.default_rng(0).normal(size=(7, 33)).astype(np.float32)
    dropped = dropout_forward(x, 9, rate=0.25) == 0
    np.testing.assert_array_equal(dropout_backward(np.ones_like(x), 9, rate=0.25) == 0, dropped)
    assert dropped.any()


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.9])
def test_24_the_rate_is_met_within_four_deviations(rate):
    kept = (dropout_forward(np.ones(20_000, np.float32), 2, rate=rate) != 0).mean()
    assert abs(kept - (1 - rate)) <= 4 * np.sqrt(rate * (1 - rate) / 20_000)


def test_24_parts_of_an_array_continue_each_other_beyond_int32():
    start = 2**33
    whole = dropout_forward(np.ones(64, np.float32), 1, rate=0.5, offset=start)
    part = dropout_forward(np.ones(24, np.float32), 1, rate=0.5, offset=start + 40)
    np.testing.assert_array_equal(part, whole[40:])
    assert (whole != dropout_forward(np.ones(64, np.float32), 1, rate=0.5)).any()


def test_seeds_beyond_int32_differ():
    x = np.ones(64, np.float32)
    assert (dropout_forward(x, 1, rate=0.5) != dropout_forward(x, 1 + 2**40, rate=0.5)).any()


def test_a_rate_of_one_is_refused():
    with pytest.raises(ValueError, match="rate: got 1"):
        dropout_forward(np.ones(3), 0, rate=1)

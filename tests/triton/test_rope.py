"""What only a rotation has: it keeps lengths, one head is enough, and backward turns back."""

import numpy as np
import pytest

from fgrad.triton_kernels import check_call, require_clean
from fgrad.triton_kernels.rope import rope_backward, rope_forward


def draw(batch, length, heads, half):
    generator = np.random.default_rng(0)
    angles = generator.normal(size=(length, half))
    return generator.normal(size=(batch, length, heads, 2 * half)), np.cos(angles), np.sin(angles)


@pytest.mark.parametrize("heads", [1, 3, 8])
def test_23_rotation_keeps_lengths_and_backward_turns_back(heads):
    x, cos, sin = draw(2, 5, heads, 6)
    out = rope_forward(x, cos, sin)
    np.testing.assert_allclose(np.linalg.norm(out, axis=-1), np.linalg.norm(x, axis=-1))
    assert np.abs(out - x).max() > 0.1
    np.testing.assert_allclose(rope_backward(out, cos, sin), x)
    require_clean(check_call(rope_forward, x, cos, sin))


def test_heads_and_positions_in_any_order_of_memory():
    x, cos, sin = draw(2, 4, 3, 5)
    stored = np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(rope_forward(stored, cos, sin), rope_forward(x, cos, sin))


def test_wrong_arguments_are_named():
    x, cos, sin = draw(1, 4, 2, 3)
    with pytest.raises(ValueError, match=r"x: got shape \(1, 4, 2, 5\)"):
        rope_forward(x[..., :5], cos, sin)
    with pytest.raises(ValueError, match=r"sin: got shape \(4, 2\), expected \(4, 3\)"):
        rope_forward(x, cos, sin[:, :2])

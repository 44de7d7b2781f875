"""What only the fused product and cross-entropy has: chunks, and no matrix of logits or of their gradient."""

import ml_dtypes
import numpy as np
import pytest

from fgrad.triton_kernels import compile_call
from fgrad.triton_kernels.cross_entropy import cross_entropy_backward, cross_entropy_forward
from fgrad.triton_kernels.linear_cross_entropy import linear_cross_entropy_backward, linear_cross_entropy_forward
from fgrad.triton_kernels.runtime import interpret_launch, launching


def draw(rows, size, columns, dtype=np.float64):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, columns, rows)
    labels[::5] = -100
    hidden, weight = rng.normal(size=(rows, size)), rng.normal(size=(columns, size))
    return hidden.astype(dtype), weight.astype(dtype), labels, rng.normal(size=rows)


def both(ct, hidden, weight, labels, class_weight=None, **options):
    losses, lse = linear_cross_entropy_forward(hidden, weight, labels, class_weight, **options)
    return losses, *linear_cross_entropy_backward(ct, hidden, weight, labels, lse, class_weight, **options)


@pytest.mark.parametrize("chunk", [1, 4, 16, 100, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_change_nothing(chunk, weighted):
    hidden, weight, labels, ct = draw(18, 6, 11)
    classes = np.random.default_rng(2).uniform(0, 2, 11) if weighted else None
    options = {"label_smoothing": 0.1}
    logits = hidden @ weight.T
    losses, lse = cross_entropy_forward(logits, labels, classes, **options)
    change = cross_entropy_backward(ct, logits, labels, lse, classes, **options)
    found = both(ct, hidden, weight, labels, classes, chunk=chunk, **options)
    for one, other in zip(found, (losses, change @ weight, change.T @ hidden), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_no_array_is_as_large_as_the_logits():
    hidden, weight, labels, ct = draw(64, 4, 50, np.float32)
    made = []
    with launching(interpret_launch, made.append):
        both(ct.astype(np.float32), hidden, weight, labels, chunk=16)
    assert max(array.size for array in made) == 16 * 50


def test_07_every_row_ignored():
    hidden, weight, labels, ct = draw(5, 3, 4)
    losses, dhidden, dweight = both(ct, hidden, weight, np.full_like(labels, -100))
    for array in (losses, dhidden, dweight):
        np.testing.assert_array_equal(array, np.zeros_like(array))


def test_10_27_the_weight_gradient_is_added_up_in_float32():
    hidden, weight, labels, ct = draw(400, 4, 3, ml_dtypes.bfloat16)
    exact = both(ct, *(x.astype(np.float64) for x in (hidden, weight)), labels)[2]
    found = both(ct.astype(np.float32), hidden, weight, labels, chunk=64)[2]
    assert found.dtype == weight.dtype
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=2**-7, atol=0.01 * np.abs(exact).max())


def test_19_tf32_only_on_request():
    hidden, weight, labels, _ = draw(16, 16, 16, np.float32)
    for precision, used in (("ieee", False), ("tf32", True)):
        reports = compile_call(
            linear_cross_entropy_forward, hidden, weight, labels, precision=precision, targets=["sm_90"]
        )
        assert bool(reports["matmul_kernel"]["sm_90"].tensor_cores) is used


def test_wrong_arguments_are_named():
    hidden, weight, labels, ct = draw(5, 3, 4)
    with pytest.raises(ValueError, match=r"hidden, weight: got shapes \(5, 3\) and \(3, 4\)"):
        linear_cross_entropy_forward(hidden, weight.T, labels)
    with pytest.raises(ValueError, match="chunk: got 0"):
        linear_cross_entropy_forward(hidden, weight, labels, chunk=0)
    with pytest.raises(ValueError, match=r"ct: got shape \(4,\)"):
        linear_cross_entropy_backward(ct[:4], hidden, weight, labels, ct)

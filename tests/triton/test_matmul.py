"""What only products have: batches, transposed operands, bias and activation, precision."""

import ml_dtypes
import numpy as np
import pytest

from fgrad.triton_kernels import check_call, compile_call, require_clean
from fgrad.triton_kernels.activation import activation_backward, activation_forward
from fgrad.triton_kernels.matmul import linear_backward, linear_forward, matmul_backward, matmul_forward


def draw(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize(("rows", "columns", "inner"), [(1, 1, 1), (17, 33, 65), (130, 5, 3), (3, 200, 70)])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_batches_of_every_size(batch, rows, columns, inner):
    x, y = draw(*batch, rows, inner), draw(*batch, inner, columns, seed=1)
    np.testing.assert_allclose(matmul_forward(x, y), x @ y, rtol=1e-12, atol=1e-12)


def test_transposed_operands_are_read_in_place():
    x, y = draw(40, 30), draw(50, 40, seed=1)
    np.testing.assert_allclose(matmul_forward(x.T, y.T), x.T @ y.T, rtol=1e-12, atol=1e-12)
    require_clean(check_call(matmul_forward, x.T, y.T))


@pytest.mark.parametrize("activation", [None, "gelu", "silu"])
def test_bias_and_activation(activation):
    x, y, bias = draw(20, 30), draw(30, 10, seed=1), draw(10, seed=2)
    expected = x @ y + bias
    if activation:
        expected = activation_forward(expected, activation)
    np.testing.assert_allclose(linear_forward(x, y, bias, activation=activation)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_eight_bit_floats(dtype):
    x, y = draw(20, 40, dtype=dtype), draw(40, 10, dtype=dtype, seed=1)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    result = matmul_forward(x, y).astype(np.float64)
    np.testing.assert_allclose(result, exact, rtol=float(ml_dtypes.finfo(dtype).eps), atol=0.05)


@pytest.mark.parametrize("kinds", [("float8_e4m3fn", "float8_e4m3fn"), ("float8_e4m3fn", "float8_e5m2")])
def test_eight_bit_floats_have_wide_results_and_gradients_of_wide_cotangents(kinds):
    x, y = draw(20, 40, dtype=np.dtype(kinds[0])), draw(40, 10, dtype=np.dtype(kinds[1]), seed=1)
    ct = draw(20, 10, dtype=ml_dtypes.bfloat16, seed=2)
    wide_x, wide_y, wide_ct = (array.astype(np.float64) for array in (x, y, ct))
    np.testing.assert_allclose(matmul_forward(x, y, dtype=np.float32), wide_x @ wide_y, rtol=1e-5, atol=1e-5)
    for gradient, operand, exact in zip(
        matmul_backward(ct, x, y), (x, y), (wide_ct @ wide_y.T, wide_x.T @ wide_ct), strict=True
    ):
        assert gradient.dtype == operand.dtype
        eps = float(ml_dtypes.finfo(operand.dtype).eps)
        np.testing.assert_allclose(gradient.astype(np.float64), exact, rtol=eps, atol=0.05)
    require_clean(check_call(matmul_backward, ct, x, y))


@pytest.mark.heavy
def test_eight_bit_floats_use_tensor_cores():
    x = np.empty((512, 512), ml_dtypes.float8_e4m3fn)
    report = compile_call(matmul_forward, x, x, dtype=np.float32, targets=["sm_90"])["matmul_kernel"]["sm_90"]
    assert any("QGMMA" in name for name in report.tensor_cores)
    assert (report.spill_bytes, report.problems) == (0, ())


def test_10_long_sums_keep_their_digits():
    ones = np.ones((1, 4096), ml_dtypes.bfloat16)
    assert matmul_forward(ones, ones.T)[0, 0] == 4096


def test_19_tf32_only_on_request():
    x, y = draw(32, 64, dtype=np.float32), draw(64, 32, dtype=np.float32, seed=1)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    assert np.abs(matmul_forward(x, y) - exact).max() < 1e-4
    assert np.abs(matmul_forward(x, y, precision="tf32") - exact).max() > 1e-4
    used = {
        precision: compile_call(matmul_forward, x, y, precision=precision, targets=["sm_90"])["matmul_kernel"]["sm_90"]
        for precision in ("ieee", "tf32")
    }
    assert used["ieee"].tensor_cores == ()
    assert used["tf32"].tensor_cores != ()


@pytest.mark.heavy
@pytest.mark.parametrize(("target", "instruction"), [("sm_80", "HMMA"), ("sm_90", "HGMMA"), ("gfx942", "v_mfma")])
def test_large_products_use_tensor_cores_without_spills(target, instruction):
    x = np.empty((512, 512), ml_dtypes.bfloat16)
    report = compile_call(matmul_forward, x, x, targets=[target])["matmul_kernel"][target]
    assert any(name.startswith(instruction) for name in report.tensor_cores)
    assert (report.spill_bytes, report.problems, report.load_bits) == (0, (), 128)


def test_gradients_of_batches():
    x, y, ct = draw(2, 5, 7), draw(2, 7, 3, seed=1), draw(2, 5, 3, seed=2)
    dx, dy = matmul_backward(ct, x, y)
    np.testing.assert_allclose(dx, ct @ y.swapaxes(1, 2), rtol=1e-12)
    np.testing.assert_allclose(dy, x.swapaxes(1, 2) @ ct, rtol=1e-12)


@pytest.mark.parametrize("activation", [None, "gelu_tanh", "silu"])
@pytest.mark.parametrize("biased", [False, True])
def test_gradients_of_a_layer(activation, biased):
    x, y, ct = draw(2, 5, 7), draw(2, 7, 3, seed=1), draw(2, 5, 3, seed=2)
    bias = draw(3, seed=3) if biased else None
    _, before = linear_forward(x, y, bias, activation=activation)
    dx, dy, dbias = linear_backward(ct, x, y, bias, before, activation=activation)
    inner = ct if activation is None else activation_backward(ct, x @ y + (0 if bias is None else bias), activation)[0]
    np.testing.assert_allclose(dx, inner @ y.swapaxes(1, 2), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dy, x.swapaxes(1, 2) @ inner, rtol=1e-10, atol=1e-12)
    if biased:
        np.testing.assert_allclose(dbias, inner.sum((0, 1)), rtol=1e-10)
    else:
        assert dbias is None


def test_27_the_gradient_of_a_bias_is_added_up_in_float32():
    x, y, bias = (np.zeros(shape, ml_dtypes.bfloat16) for shape in ((1024, 16), (16, 3), (3,)))
    _, before = linear_forward(x, y, bias)
    dbias = linear_backward(np.ones((1024, 3), ml_dtypes.bfloat16), x, y, bias, before)[2]
    np.testing.assert_array_equal(dbias.astype(np.float64), [1024] * 3)  # bfloat16 alone would stop at 256


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "message"),
    [
        (draw(2, 3), draw(2, 3), {}, ValueError, r"x, y: got shapes \(2, 3\) and \(2, 3\)"),
        (draw(2, 3), draw(3, 2, dtype=np.float32), {}, TypeError, "x, y: got float64 and float32"),
        (draw(2, 3), draw(3, 2), {"bias": draw(3)}, ValueError, r"bias: got shape \(3,\), expected \(2,\)"),
        (draw(2, 3), draw(3, 2), {"activation": "relu"}, ValueError, "activation: got 'relu'"),
        (draw(2, 3), draw(3, 2), {"precision": "fast"}, ValueError, "precision: got 'fast'"),
    ],
)
def test_wrong_arguments_are_named(x, y, options, error, message):
    with pytest.raises(error, match=message):
        linear_forward(x, y, **options)

"""What only softmax and norms have: rows of -inf, constant rows, missing weights, axes in front."""

import ml_dtypes
import numpy as np
import pytest

from fgrad.triton_kernels import norm, softmax


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("columns", [7, 20_000])
def test_08_rows_and_blocks_of_minus_infinity(columns):
    x = draw(3, columns)
    x[0] = -np.inf
    x[1, : columns // 2] = -np.inf
    out = softmax.softmax_forward(x)
    np.testing.assert_array_equal(out[0], np.zeros(columns))
    np.testing.assert_allclose(out[1:].sum(1), 1)
    assert np.isfinite(softmax.softmax_backward(draw(3, columns, seed=1), out)).all()
    assert np.isneginf(softmax.log_softmax_forward(x)[0]).all()


def test_leading_axes_and_single_rows():
    x = draw(2, 3, 4, 5)
    expected = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    np.testing.assert_allclose(softmax.softmax_forward(x), expected, rtol=1e-12)
    np.testing.assert_allclose(softmax.softmax_forward(x[0, 0, 0]), expected[0, 0, 0], rtol=1e-12)
    swapped = x.swapaxes(0, 2)
    np.testing.assert_allclose(softmax.softmax_forward(swapped), expected.swapaxes(0, 2), rtol=1e-12)
    with pytest.raises(ValueError, match="at least one axis"):
        softmax.softmax_forward(np.array(1.0))


@pytest.mark.parametrize("columns", [6, 20_000])
def test_norms_without_weight_and_bias(columns):
    x, ct = draw(3, columns), draw(3, columns, seed=1)
    out, mean, rstd = norm.layer_norm_forward(x)
    np.testing.assert_allclose(out.mean(1), 0, atol=1e-12)
    np.testing.assert_allclose(out.var(1), 1, rtol=1e-4)
    dx, dweight, dbias = norm.layer_norm_backward(ct, x, None, None, mean, rstd)
    assert dweight is None
    assert dbias is None
    np.testing.assert_allclose(dx.sum(1), 0, atol=1e-9)
    out, rstd = norm.rms_norm_forward(x, eps=0.0)
    np.testing.assert_allclose((out**2).mean(1), 1, rtol=1e-12)
    dx, dweight = norm.rms_norm_backward(ct, x, None, rstd)
    assert dweight is None
    np.testing.assert_allclose((dx * x).sum(1), 0, atol=1e-9)


def test_05_statistics_may_lie_anywhere():
    x, ct, weight = draw(6, 9), draw(6, 9, seed=1), draw(9, seed=2)
    _, mean, rstd = norm.layer_norm_forward(x, weight, weight)
    spread = [np.repeat(array, 2)[::2] for array in (mean, rstd)]
    found, expected = (norm.layer_norm_backward(ct, x, weight, weight, *kept) for kept in (spread, (mean, rstd)))
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("layer", [True, False])
def test_one_pass_and_two_give_the_same_gradients(layer, monkeypatch):
    x, ct, weight, bias = draw(90, 9), draw(90, 9, seed=1), draw(9, seed=2), draw(9, seed=3)
    monkeypatch.setattr(norm, "_MOST_PROGRAMS", 20)
    if layer:
        _, mean, rstd = norm.layer_norm_forward(x, weight, bias)
        gradients = lambda: norm.layer_norm_backward(ct, x, weight, bias, mean, rstd)  # noqa: E731
    else:
        _, rstd = norm.rms_norm_forward(x, weight)
        gradients = lambda: norm.rms_norm_backward(ct, x, weight, rstd)  # noqa: E731
    one_pass = gradients()
    monkeypatch.setattr(norm, "_ROWS_A_PROGRAM", 32)
    monkeypatch.setattr(norm, "_LONGEST_ONE_PASS", {4: 0, 8: 0})
    for one, two in zip(one_pass, gradients(), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("shape", [(3, 6), (2, 6, 1), (2, 6, 5), (2, 6, 3, 7), (1, 4, 5000)])
@pytest.mark.parametrize("groups", [1, 2])
def test_groups_of_channels_of_every_shape(shape, groups):
    x, ct, weight, bias = draw(*shape), draw(*shape, seed=1), draw(shape[1], seed=2), draw(shape[1], seed=3)
    rows = lambda array: array.reshape(shape[0] * groups, -1)  # noqa: E731
    column = (shape[1], *(1,) * (len(shape) - 2))
    normal, mean, rstd = norm.layer_norm_forward(rows(x))
    out, *statistics = norm.group_norm_forward(x, weight, bias, groups=groups)
    np.testing.assert_allclose(
        out, normal.reshape(shape) * weight.reshape(column) + bias.reshape(column), rtol=1e-9, atol=1e-10
    )
    dx, dweight, dbias = norm.group_norm_backward(ct, x, weight, bias, *statistics, groups=groups)
    expected, _, _ = norm.layer_norm_backward(rows(ct * weight.reshape(column)), rows(x), None, None, mean, rstd)
    np.testing.assert_allclose(dx, expected.reshape(shape), rtol=1e-8, atol=1e-10)
    axes = (0, *range(2, len(shape)))
    np.testing.assert_allclose(dweight, (ct * normal.reshape(shape)).sum(axes), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(dbias, ct.sum(axes), rtol=1e-9, atol=1e-10)


def test_groups_that_do_not_divide_the_channels_are_named():
    with pytest.raises(ValueError, match=r"x: got shape \(2, 5\), expected .* a multiple of 2 channels"):
        norm.group_norm_forward(draw(2, 5), groups=2)
    with pytest.raises(ValueError, match=r"weight: got shape \(3,\), expected \(4,\)"):
        norm.group_norm_forward(draw(2, 4, 3), draw(3), groups=2)


@pytest.mark.parametrize("columns", [1, 3, 17, 127, 1536])
def test_12_padding_stays_out_of_the_variance(columns):
    x = (100 + draw(4, columns)).astype(np.float32)
    _, mean, rstd = norm.layer_norm_forward(x)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(1), rtol=1e-6)
    np.testing.assert_allclose(rstd, 1 / np.sqrt(wide.var(1) + 1e-5), rtol=1e-4)


def test_28_constant_rows_have_gradients_of_almost_zero():
    x = np.full((3, 17), 2.5, np.float32)
    out, mean, rstd = norm.layer_norm_forward(x)
    np.testing.assert_array_equal(out, np.zeros((3, 17)))
    dx, _, _ = norm.layer_norm_backward(np.ones((3, 17), np.float32), x, None, None, mean, rstd)
    np.testing.assert_allclose(dx, 0, atol=1e-3)


def test_10_27_weight_gradients_are_added_up_in_float32():
    rows = 600  # bfloat16 alone would stop at 256
    x = draw(rows, 3).astype(ml_dtypes.bfloat16)
    weight, bias = np.ones(3, ml_dtypes.bfloat16), np.zeros(3, ml_dtypes.bfloat16)
    _, mean, rstd = norm.layer_norm_forward(x, weight, bias)
    ones = np.ones((rows, 3), ml_dtypes.bfloat16)
    _, _, dbias = norm.layer_norm_backward(ones, x, weight, bias, mean, rstd)
    np.testing.assert_array_equal(dbias.astype(np.float64), [rows] * 3)
    assert dbias.dtype == weight.dtype


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"weight: got shape \(3,\), expected \(4,\)"):
        norm.layer_norm_forward(draw(2, 4), draw(3))
    with pytest.raises(ValueError, match=r"ct: got shape \(2, 3\), expected \(2, 4\)"):
        softmax.softmax_backward(draw(2, 3), draw(2, 4))

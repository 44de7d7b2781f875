"""Optimizer steps against the formulas in float64, over several steps, and clipping by the norm of all gradients."""

import ml_dtypes
import numpy as np
import pytest

from fgrad.triton_kernels import check_call, compile_call, require_clean
from fgrad.triton_kernels.optimizer import adamw_step, clip_by_norm, sgd_step

DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16]


def draw(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_adamw_follows_the_formula(dtype):
    param, first, second = draw(5, 300, dtype=dtype), np.zeros((5, 300), np.float32), np.zeros((5, 300), np.float32)
    for step in range(1, 4):
        grad = draw(5, 300, dtype=dtype, seed=step)
        p, m, v, g = (x.astype(np.float64) for x in (param, first, second, grad))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        exact = p - 1e-2 * (0.1 * p + (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8))
        param, first, second = adamw_step(param, grad, first, second, step, lr=1e-2, weight_decay=0.1)
        eps = float(ml_dtypes.finfo(dtype).eps)
        np.testing.assert_allclose(param.astype(np.float64), exact, rtol=eps, atol=2e-7)
        np.testing.assert_allclose(first, m, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(second, v, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_follows_the_formula(nesterov):
    param, velocity = draw(77), np.zeros(77, np.float32)
    for step in range(3):
        grad = draw(77, seed=step + 1)
        g = grad + 0.1 * param.astype(np.float64)
        u = 0.9 * velocity.astype(np.float64) + g
        exact = param - 0.05 * (g + 0.9 * u if nesterov else u)
        param, velocity = sgd_step(param, grad, velocity, lr=0.05, momentum=0.9, weight_decay=0.1, nesterov=nesterov)
        np.testing.assert_allclose(param, exact, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(velocity, u, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("limit", [0.5, 1e3])
def test_clipping_uses_all_gradients(limit):
    grads = [draw(5000), draw(3, 7, seed=1), draw(1, seed=2)]
    exact = np.sqrt(sum((grad.astype(np.float64) ** 2).sum() for grad in grads))
    norm, scale = clip_by_norm(grads, limit)
    np.testing.assert_allclose(norm, [exact], rtol=1e-5)
    np.testing.assert_allclose(scale, [min(1, limit / exact)], rtol=1e-5)
    scaled = sgd_step(np.zeros(5000, np.float32), grads[0], np.zeros(5000, np.float32), lr=1.0, scale=scale)[0]
    np.testing.assert_allclose(scaled, -scale * grads[0], rtol=1e-6)


def test_clipping_nothing_leaves_all_as_it_is():
    assert clip_by_norm([], 1.0) == (0, 1)


def test_no_findings_and_inputs_stay():
    param, grad, state = draw(4, 300), draw(4, 300, seed=1), np.zeros((4, 300), np.float32)
    before = param.tobytes()
    require_clean(check_call(adamw_step, param, grad, state, state, 1, lr=0.1))
    require_clean(check_call(sgd_step, param.T, grad.T, state.T, lr=0.1))
    require_clean(check_call(clip_by_norm, [param, grad], 1.0))
    adamw_step(param, grad, state, state, 1, lr=0.1)
    assert param.tobytes() == before


def test_empty_parameters():
    nothing = np.zeros(0, np.float32)
    assert all(x.shape == (0,) for x in adamw_step(nothing, nothing, nothing, nothing, 1, lr=0.1))


def test_steps_move_whole_vectors():
    param = np.empty(1 << 16, np.float32)
    report = compile_call(adamw_step, param, param, param, param, 1, lr=0.1, targets=["sm_90"])["adamw_kernel"]["sm_90"]
    assert (report.load_bits, report.store_bits, report.spill_bytes) == (128, 128, 0)


def test_wrong_arguments_are_named():
    x, state = draw(3), np.zeros(3, np.float32)
    with pytest.raises(TypeError, match="param: got float64"):
        sgd_step(x.astype(np.float64), x, state, lr=0.1)
    with pytest.raises(ValueError, match=r"grad: got shape \(2,\), expected \(3,\)"):
        sgd_step(x, draw(2), state, lr=0.1)
    with pytest.raises(TypeError, match="velocity: got float16, expected float32"):
        sgd_step(x, x, state.astype(np.float16), lr=0.1)
    with pytest.raises(ValueError, match="step: got 0"):
        adamw_step(x, x, state, state, 0, lr=0.1)

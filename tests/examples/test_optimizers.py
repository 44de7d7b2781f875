"""The optimisers in ten lines: against their formulas, on a bowl, and under jit."""

import numpy as np
import pytest

import fgrad


@pytest.fixture
def optimizers(examples_on_path):
    import optimizers

    return optimizers


PARAMS = {"w": np.array([1.0, -2.0]), "b": [np.array(3.0)]}


def bowl(params):
    return (params["w"] ** 2).sum() + 2 * params["b"][0] ** 2


def test_sgd_is_a_step_against_the_gradient(optimizers):
    params = optimizers.sgd(PARAMS, fgrad.grad(bowl)(PARAMS), 0.1)
    np.testing.assert_allclose(params["w"], [0.8, -1.6])
    np.testing.assert_allclose(params["b"][0], 1.8)


def test_momentum_sums_up_gradients(optimizers):
    gradients = {"w": np.ones(2), "b": [np.ones(())]}
    params, velocity = optimizers.momentum(PARAMS, gradients, optimizers.zeros_like(PARAMS), 0.1, decay=0.5)
    params, velocity = optimizers.momentum(params, gradients, velocity, 0.1, decay=0.5)
    np.testing.assert_allclose(velocity["w"], 1.5)
    np.testing.assert_allclose(params["w"], PARAMS["w"] - 0.1 - 0.15)


def test_the_first_step_of_adam_is_its_rate(optimizers):
    zeros = optimizers.zeros_like(PARAMS)
    params, state = optimizers.adam(PARAMS, fgrad.grad(bowl)(PARAMS), (0, zeros, zeros), rate=0.01)
    assert state[0] == 1
    np.testing.assert_allclose(params["w"], PARAMS["w"] - 0.01 * np.sign(PARAMS["w"]), rtol=1e-6)


def test_adam_reaches_the_bottom_also_jitted(optimizers):
    @fgrad.jit
    def step(params, state):
        return optimizers.adam(params, fgrad.grad(bowl)(params), state, rate=0.05)

    params, state = PARAMS, (0, optimizers.zeros_like(PARAMS), optimizers.zeros_like(PARAMS))
    for _ in range(500):
        params, state = step(params, state)
    assert bowl(params) < 1e-6
    assert state[0] == 500


@pytest.mark.parity
def test_adam_is_that_of_torch(optimizers):
    torch = pytest.importorskip("torch")
    theirs = torch.tensor(PARAMS["w"], requires_grad=True)
    optimizer = torch.optim.Adam([theirs], lr=0.05)
    params, state = PARAMS["w"], (0, np.zeros(2), np.zeros(2))
    for _ in range(20):
        optimizer.zero_grad()
        (theirs**4).sum().backward()
        optimizer.step()
        params, state = optimizers.adam(params, fgrad.grad(lambda w: (w**4).sum())(params), state, rate=0.05)
    np.testing.assert_allclose(params, theirs.detach().numpy(), rtol=1e-5)

"""Derivatives at kinks, ties and poles against jax's; where fgrad decided otherwise, both are as the list says."""

import numpy as np
import pytest

import fgrad
from tests.parity.jax_differences import CORNERS

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

SHARED = {
    "complex abs at 0": lambda m: m.grad(lambda z: m.numpy.abs(z))(0j),
    "max of ties": lambda m: m.grad(m.numpy.max)(np.array([2.0, 1.0, 2.0])),
    "ptp of ties": lambda m: m.grad(m.numpy.ptp)(np.array([1.0, 1.0, 2.0, 2.0])),
    "maximum of equals": lambda m: m.grad(m.numpy.maximum, (0, 1))(1.0, 1.0),
    "maximum of NaN": lambda m: m.grad(m.numpy.maximum, (0, 1))(np.nan, 1.0),
    "relu": lambda m: m.grad(m.nn.relu)(0.0),
    "relu6": lambda m: [m.grad(m.nn.relu6)(x) for x in (0.0, 6.0)],
    "hard_tanh": lambda m: [m.grad(m.nn.hard_tanh)(x) for x in (-1.0, 1.0)],
    "hard_sigmoid": lambda m: [m.grad(m.nn.hard_sigmoid)(x) for x in (-3.0, 3.0)],
    "leaky_relu, elu": lambda m: [m.grad(f)(0.0) for f in (m.nn.leaky_relu, m.nn.elu, m.nn.celu)],
    "poles": lambda m: [m.grad(f)(0.0) for f in (m.numpy.sqrt, m.numpy.cbrt, m.numpy.log)],
    "poles at 1": lambda m: [m.grad(m.numpy.arcsin)(1.0), m.grad(m.numpy.log1p)(-1.0)],
    "unguarded where": lambda m: m.grad(lambda x: m.numpy.where(x > 0, m.numpy.sqrt(x), 0.0))(0.0),
    "guarded where": lambda m: m.grad(lambda x: m.numpy.where(x > 0, m.numpy.sqrt(m.numpy.where(x > 0, x, 1.0)), 0.0))(
        0.0
    ),
    "sort of ties": lambda m: m.grad(lambda x: m.numpy.sum(m.numpy.sort(x) * np.arange(4.0)))(np.array([1.0, 0, 1, 0])),
    "median": lambda m: m.grad(m.numpy.median)(np.array([1.0, 4.0, 2.0, 9.0])),
    "small powers of 0": lambda m: [m.grad(m.grad(lambda x, p=p: x**p))(0.0) for p in (2, 2.0, 3)],
    "power 0 of 0": lambda m: m.grad(lambda x: x**0)(0.0),
    "powers of 0, by the exponent": lambda m: [m.grad(lambda y: m.numpy.power(0.0, y))(y) for y in (0.0, 2.0)],
    "negative bases": lambda m: m.grad(m.numpy.power, (0, 1))(-2.0, 3.0),
    "prod with a 0": lambda m: m.hessian(m.numpy.prod)(np.array([0.0, 2.0, 3.0])),
    "prod with two": lambda m: m.hessian(m.numpy.prod)(np.array([0.0, 0.0, 3.0])),
    "cumprod with zeros": lambda m: m.jacrev(m.numpy.cumprod)(np.array([2.0, 0.0, 3.0, 0.0])),
    "sinc to the third order": lambda m: [
        m.grad(m.numpy.sinc)(0.0),
        m.grad(m.grad(m.numpy.sinc))(0.0),
        m.grad(m.grad(m.grad(m.numpy.sinc)))(0.0),
    ],
    "tails": lambda m: [m.grad(f)(x) for f in (m.numpy.tanh, m.nn.sigmoid, m.nn.softplus) for x in (-1e3, 1e3)],
    "steps": lambda m: [m.grad(f)(0.5) for f in (m.numpy.sign, m.numpy.floor, m.numpy.ceil, m.numpy.round)],
    "variance of equals": lambda m: m.grad(m.numpy.var)(np.full(3, 2.0)),
    "largest norm": lambda m: m.grad(lambda x: m.numpy.linalg.norm(x, np.inf))(np.array([1.0, -1.0, 0.0])),
    "remainder": lambda m: m.grad(m.numpy.mod, (0, 1))(5.0, -3.0),
    "repeated positions add up": lambda m: m.grad(lambda x: m.numpy.sum(x[np.array([1, 1, 0])] ** 2))(np.arange(3.0)),
    "softmax of nothing": lambda m: m.nn.softmax(np.full(3, -np.inf)),
    "empty arrays": lambda m: [m.grad(m.numpy.sum)(np.zeros((0, 3))), m.numpy.mean(np.zeros(0))],
}


@pytest.mark.parametrize("name", SHARED)
def test_as_in_jax(name, jax):
    ours, theirs = (jax.tree.leaves(SHARED[name](m)) for m in (fgrad, jax))
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)


@pytest.mark.parametrize("corner", CORNERS, ids=lambda corner: corner.name)
def test_differs_as_written(corner, jax):
    gives(corner.ours, lambda: corner.program(fgrad))
    gives(corner.theirs, lambda: corner.program(jax))


def gives(expected, call):
    if isinstance(expected, type):
        with pytest.raises(expected):
            call()
    elif isinstance(expected, str):
        assert call() == expected
    else:
        np.testing.assert_allclose(call(), expected)

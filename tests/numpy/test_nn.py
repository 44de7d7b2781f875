"""`fgrad.nn`: values against their formulas, derivatives against finite differences, and at the kinks."""

import math

import numpy as np
import pytest

import fgrad
from fgrad import nn

X = np.array([-3.0, -1.5, -0.2, 0.3, 1.7, 2.9])
ROWS = np.array([[0.5, -1.0, 2.0, 0.25], [1.5, 3.0, -2.0, 0.1]])
MASK = np.array([[True, False, True, True], [False, True, True, False]])

FORMULAS = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "log_sigmoid": lambda x: -np.log1p(np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "soft_sign": lambda x: x / (1 + abs(x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "gelu": lambda x: x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "tanh": np.tanh,
    "glu": lambda x: x[..., :3] / (1 + np.exp(-x[..., 3:])),
    "logsumexp": lambda x: np.log(np.exp(x).sum()),
    "logmeanexp": lambda x: np.log(np.exp(x).mean()),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(),
    "log_softmax": lambda x: x - np.log(np.exp(x).sum()),
    "standardize": lambda x: (x - x.mean()) / np.sqrt(x.var() + 1e-5),
}


def test_every_function_has_a_formula():
    assert set(nn.__all__) == {*FORMULAS, "one_hot"}


@pytest.mark.parametrize("name", FORMULAS)
def test_function(name):
    f = getattr(nn, name)
    x = X + 0.013
    np.testing.assert_allclose(f(x), FORMULAS[name](x), rtol=1e-12)
    np.testing.assert_allclose(fgrad.jit(f)(x), f(x), rtol=1e-14)
    np.testing.assert_allclose(fgrad.vmap(f)(np.stack([x, x / 2])), [f(x), f(x / 2)], rtol=1e-14)
    fgrad.check_grads(f, (x,), 2)
    assert fgrad.jit(f)(x.astype(np.float32)).dtype == np.float32
    assert np.isfinite(fgrad.grad(lambda x: np.sum(f(x)))(np.array([-800.0, 800.0] * 3))).all()


def test_exact_gelu():
    want = [x * 0.5 * math.erfc(-x / math.sqrt(2)) for x in X]
    np.testing.assert_allclose(nn.gelu(X, approximate=False), want, rtol=1e-12)
    fgrad.check_grads(lambda x: nn.gelu(x, approximate=False), (X,), 2)


def test_kinks():
    for f in (nn.relu, nn.relu6):
        assert fgrad.grad(f)(0.0) == 0.0
    assert fgrad.grad(nn.relu6)(6.0) == 0.0
    assert fgrad.grad(nn.softplus)(0.0) == 0.5
    assert fgrad.grad(lambda x: np.sqrt(nn.relu(x)))(-1.0) == 0.0


@pytest.mark.parametrize("axis", [0, -1, (0, 1), None])
def test_normalised_exponentials(axis):
    out = nn.softmax(ROWS, axis)
    np.testing.assert_allclose(out.sum(axis=axis), 1.0)
    np.testing.assert_allclose(nn.log_softmax(ROWS, axis), np.log(out), rtol=1e-12)
    total = np.log(np.exp(ROWS).sum(axis=axis, keepdims=True))
    np.testing.assert_allclose(nn.logsumexp(ROWS, axis, keepdims=True), total)


def test_masks():
    np.testing.assert_allclose(nn.logsumexp(ROWS, 1, where=MASK), np.log((np.exp(ROWS) * MASK).sum(1)))
    np.testing.assert_allclose(nn.logmeanexp(ROWS, 1, where=MASK), np.log((np.exp(ROWS) * MASK).sum(1) / MASK.sum(1)))
    want = np.exp(ROWS) * MASK / (np.exp(ROWS) * MASK).sum(1, keepdims=True)
    np.testing.assert_allclose(nn.softmax(ROWS, where=MASK), want)
    np.testing.assert_allclose(np.exp(nn.log_softmax(ROWS, where=MASK)), want)
    assert nn.softmax(ROWS, where=np.zeros(4, bool)).tolist() == np.zeros((2, 4)).tolist()
    fgrad.check_grads(lambda x: nn.softmax(x, where=MASK), (ROWS,), 2)


def test_weighted_logsumexp():
    b = np.array([1.0, -0.5, 2.0, 0.0])
    total = (b * np.exp(ROWS)).sum(1)
    size, sign = nn.logsumexp(ROWS, 1, b=b, return_sign=True)
    np.testing.assert_allclose(size, np.log(abs(total)))
    np.testing.assert_array_equal(sign, np.sign(total))
    assert np.isnan(nn.logsumexp(np.zeros(2), b=np.array([1.0, -2.0])))
    assert nn.logsumexp(np.zeros(2), b=np.array([1.0, -1.0])) == -np.inf
    fgrad.check_grads(lambda x, b: nn.logsumexp(x, 1, b=b, return_sign=True)[0], (ROWS, b), 2)


def test_one_hot():
    assert nn.one_hot([1, 5, -1], 3).tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert nn.one_hot(2, 3, dtype=np.float32).dtype == np.float32
    assert nn.one_hot([[0, 1]], 2, axis=0).shape == (2, 1, 2)
    assert fgrad.vmap(lambda i: nn.one_hot(i, 2))(np.array([0, 1])).tolist() == np.eye(2).tolist()


def test_lists_and_integers():
    assert nn.sigmoid([0]).tolist() == [0.5]
    assert nn.relu([-1, 2]).tolist() == [0, 2]
    with pytest.raises(ValueError, match="even"):
        nn.glu(np.ones(3))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("where", [None, np.array([True, True, True])])
def test_shares_of_large_numbers_are_exact(dtype, where):
    """Where one unit in the last place of x is more than log(3)."""
    x = np.full(3, 4.0 / np.finfo(dtype).eps if dtype is not np.float16 else 30_000, dtype)
    np.testing.assert_allclose(nn.log_softmax(x, where=where), np.full(3, -np.log(3)), rtol=1e-3)
    np.testing.assert_allclose(nn.softmax(x, where=where), np.full(3, 1 / 3), rtol=1e-3)
    g = fgrad.grad(lambda x: nn.log_softmax(x, where=where)[0])(x)
    np.testing.assert_allclose(g, [2 / 3, -1 / 3, -1 / 3], rtol=2e-3)


def test_sums_of_many_halves_do_not_overflow():
    x = np.zeros(70_000, np.float16)
    assert np.all(nn.softmax(x) > 0) and np.all(nn.log_softmax(x) > -12)

"""Dtypes: traced values and Python scalars promote as they do in NumPy."""

import itertools

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.core import Tracer

NUMBERS = [True, 3, 2.5, 1 + 2j]
FUNCTIONS = {
    "add": lambda m, x: m.add(x, 1),
    "multiply": lambda m, x: m.multiply(x, x),
    "power": lambda m, x: m.power(x, 2),
    "square": lambda m, x: m.square(x),
    "negative": lambda m, x: m.negative(x + 0),
    "exp": lambda m, x: m.exp(x),
    "sum": lambda m, x: m.sum(x),
    "mean": lambda m, x: m.mean(x),
    "maximum": lambda m, x: m.maximum(x, 1),
    "where": lambda m, x: m.where(True, x, 0),
    "stack": lambda m, x: m.stack([x, x]),
    "reshape": lambda m, x: m.reshape(x, (1,)),
    "conjugate": lambda m, x: m.conjugate(x),
    "real": lambda m, x: m.real(x),
    "abs": lambda m, x: m.abs(x),
    "dot": lambda m, x: m.dot(x, x),
    "broadcast_to": lambda m, x: m.broadcast_to(x, (2,)),
    "cumsum": lambda m, x: m.cumsum(x),
    "operators": lambda m, x: x * 2 + x,
    "operators with float32": lambda m, x: np.float32(1) * x,
    "array of float32": lambda m, x: np.ones(2, np.float32) * (x * 2),
    "function, then float32": lambda m, x: np.ones(2, np.float32) * m.add(x, 0),
    "result_type": lambda m, x: m.zeros((), m.result_type(x, np.float32)),
}


def dtype_of(x):
    x = x.aval if isinstance(x, Tracer) else x
    return np.result_type(x) if not hasattr(x, "dtype") else x.dtype


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("x", NUMBERS, ids=str)
def test_python_scalars(name, x):
    """jit, vmap over one example and the value under grad have the dtype that NumPy gives for a Python scalar."""
    f = FUNCTIONS[name]
    if name == "real" and x is True:
        return  # numpy.real(True) is 1, the attribute of Python's bool
    want = np.asarray(f(np, x))
    assert np.asarray(f(fnp, x)).dtype == want.dtype
    got = fgrad.jit(lambda x: f(fnp, x))(x)
    assert np.asarray(got).dtype == want.dtype
    np.testing.assert_allclose(got, want)
    if isinstance(x, (float, complex)):
        out, _ = fgrad.vjp(lambda x: f(fnp, x), x)
        assert np.asarray(out).dtype == want.dtype


DTYPES = [bool, np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float32, np.float64, np.complex64]


@pytest.mark.parametrize("name", ["add", "maximum", "true_divide", "arctan2", "logaddexp", "equal", "power"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pairs_of_dtypes(name):
    ufunc, function = getattr(np, name), getattr(fnp, name)
    for a, b in itertools.product(DTYPES, DTYPES):
        x, y = np.ones(2, a), np.ones((1,), b)
        try:
            want = ufunc(x, y)
        except TypeError:
            with pytest.raises(TypeError):
                fgrad.jit(function)(x, y)
            continue
        got = fgrad.jit(function)(x, y)
        assert got.dtype == want.dtype, (a, b)


@pytest.mark.parametrize("join", [np.concatenate, np.stack, np.hstack])
def test_joined_dtypes(join):
    for a, b in itertools.product(DTYPES, DTYPES):
        x, y = np.ones(2, a), np.ones(2, b)
        assert fgrad.jit(lambda x, y: join([x, y]))(x, y).dtype == join([x, y]).dtype, (a, b)


@pytest.mark.parametrize("scalar", [2, 2.5, np.float32(2), np.float64(2), np.int8(2), 1j])
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64, np.complex64])
def test_arrays_with_scalars(dtype, scalar):
    x = np.ones(2, dtype)
    for f in (
        lambda x: x * scalar,
        lambda x: scalar + x,
        lambda x: fnp.multiply(x, scalar),
        lambda x: np.add(x, scalar),
    ):
        assert fgrad.jit(f)(x).dtype == f(x).dtype


def test_gradients_have_the_dtype_of_their_argument():
    for dtype in (np.float16, np.float32, np.float64):
        x = np.ones(3, dtype)
        assert fgrad.grad(lambda x: fnp.sum(fnp.tanh(x) * 2.0 * np.float64(3)))(x).dtype == dtype
        assert fgrad.grad(lambda x: fnp.mean(x.astype(np.float64)))(x).dtype == dtype

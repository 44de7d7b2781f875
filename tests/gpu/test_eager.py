"""Functions and transforms called without jit on arrays of a GPU: the stand-in's, which refuse what CuPy's do."""

import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
import fgrad.numpy as fnp
from tests.triton.standin.arrays import DeviceArray

X = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
ROWS = np.array([1, 1, 2])

FUNCTIONS = {
    "a ufunc of NumPy": lambda x: np.tanh(x).sum(),
    "a sum": lambda x: x.sum(),
    "a mean along an axis": lambda x: (x.mean(1) ** 2).sum(),
    "softmax": lambda x: (fgrad.nn.softmax(x) * x).sum(),
    "logsumexp": lambda x: fgrad.nn.logsumexp(x, axis=1).sum(),
    "a product of matrices": lambda x: (x @ x.T).mean(),
    "an extreme with ties": lambda x: fnp.max(x * 0 + 1, 0).sum() + fnp.max(x, 1).sum(),
    "rows by index": lambda x: (x[fnp.array(ROWS)] ** 2).sum(),
    "an order": lambda x: (fnp.sort(x, 1) * np.arange(5, dtype=np.float32)).sum(),
    "a running sum": lambda x: (fnp.cumsum(x, 1) ** 2).sum(),
    "an inverse": lambda x: fnp.linalg.inv(x.T @ x + np.eye(5, dtype=np.float32)).sum(),
    "a choice": lambda x: fnp.where(x > 0, x, 0.1 * x).sum(),
    "pieces": lambda x: (fnp.concatenate([x, x * 2]) ** 3).sum(),
    "a variance": lambda x: x.var(),
    "a product": lambda x: fnp.prod(x[0]),
    "a constant beside": lambda x: (x * X).sum() + X.sum(),
    "another shape": lambda x: (x.reshape(5, 6)[::2].T * 3).sum(),
    "a custom rule": lambda x: fgrad.nn.relu(x).sum(),
    "nothing that depends": lambda x: fgrad.stop_gradient(x).sum(),
}


def close(result, expected):
    assert type(result) is DeviceArray
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(fgrad.to_numpy(result), expected, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_are_those_of_the_host_and_stay_on_the_gpu(card, name):
    f = FUNCTIONS[name]
    there = fgrad.device_put(X, "cuda")
    for result, expected in zip(fgrad.value_and_grad(f)(there), fgrad.value_and_grad(f)(X), strict=True):
        close(result, expected)
    for result, expected in zip(fgrad.jvp(f, (there,), (there,)), fgrad.jvp(f, (X,), (X,)), strict=True):
        close(result, expected)
    close(
        fgrad.jvp(fgrad.grad(f), (there,), (there,))[1],
        fgrad.jvp(fgrad.grad(f), (X,), (X,))[1],
    )


def test_vjp_of_several_outputs(card):
    def f(x, y):
        return {"sum": x + y, "parts": (fnp.sin(x), y.sum())}

    there = fgrad.device_put((X, X[0]), "cuda")
    out, pull = fgrad.vjp(f, *there)
    expected, expected_pull = fgrad.vjp(f, X, X[0])
    fgrad.tree.map(close, out, expected)
    fgrad.tree.map(close, pull(out), expected_pull(expected))


def test_vmap_and_jacobians(card):
    there = fgrad.device_put(X, "cuda")
    close(fgrad.vmap(lambda row: fgrad.nn.softmax(row) * row)(there), fgrad.vmap(lambda r: fgrad.nn.softmax(r) * r)(X))
    close(fgrad.jacfwd(fnp.cumsum)(there[0]), fgrad.jacfwd(fnp.cumsum)(X[0]))
    close(fgrad.jacrev(fnp.cumsum)(there[0]), fgrad.jacrev(fnp.cumsum)(X[0]))


def test_later_writes_to_an_argument_do_not_reach_its_derivatives(card):
    there = fgrad.device_put(X, "cuda")
    _, pull = fgrad.vjp(lambda x: (x * x).sum(), there)
    there[...] = 0
    close(pull(np.float32(1))[0], 2 * X)


def test_results_share_no_memory(card):
    there = fgrad.device_put(X, "cuda")
    gradient = fgrad.grad(lambda x: x.sum())(there)
    gradient[0, 0] = 5
    assert gradient.host.sum() == X.size + 4


def test_arrays_of_other_devices_than_the_current_one(card):
    there = DeviceArray(X.copy(), number=1)
    gradient = fgrad.grad(lambda x: fgrad.nn.softmax(x).max())(there)
    assert gradient.number == 1


def test_errors_are_those_of_the_host(card):
    there = fgrad.device_put(X, "cuda")
    with pytest.raises(ValueError):
        fgrad.grad(lambda x: (x @ x).sum())(there)


def test_one_step_is_compiled_once_for_its_types(card):
    from fgrad.backend.gpu import eager

    there = fgrad.device_put(X, "cuda")
    close(fnp.argmax(there, 1) * np.int64(1), np.argmax(X, 1))
    step = fgrad.grad(lambda x: x.max())
    step(there)
    known = eager._single.cache_info().misses
    step(there)
    assert eager._single.cache_info().misses == known

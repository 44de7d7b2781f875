"""What emitters write computes what NumPy computes, also where values are not finite, and shares no memory."""

import numpy as np
import pytest

import fgrad
from fgrad.backend import emit
from fgrad.backend.cpu import Compiled


def compiled(f, *args):
    """Return a function compiled for arguments like these."""
    return Compiled(fgrad.make_ir(f)(*args).simplify())


@pytest.mark.parametrize("subscripts", ["bi,bj->bij", "i,j->ij", "ib,bj->bij", "abi,abjk->abijk"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_outer_products_are_exact(subscripts, dtype):
    sizes = dict(zip("abijk", (2, 3, 4, 5, 2), strict=True))
    rng = np.random.default_rng(0)
    x, y = [rng.standard_normal([sizes[c] for c in s]).astype(dtype) for s in subscripts.split("->")[0].split(",")]

    def f(x, y):
        product = np.einsum(subscripts, x * 2, y)
        return product, (product + 1).sum()

    out, total = compiled(f, x, y).compute(x, y)
    wanted = np.einsum(subscripts, x * 2, y)
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_allclose(total, (wanted + 1).sum(), rtol=1e-5)


@pytest.mark.parametrize("axes", [(0,), (2,), (0, 1), (1, 2), (0, 1, 2), (1,)])
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, emit._FEW + 1), (1, 1, 1)])
def test_sums_along_axes(axes, shape):
    x = np.random.default_rng(0).standard_normal(shape)
    out = compiled(lambda x: (x * 2).sum(axes) + 1, x).compute(x)[0]
    np.testing.assert_allclose(out, (x * 2).sum(axes) + 1, rtol=1e-13, atol=1e-12)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_sums_of_what_is_not_finite(axis, special):
    x = np.ones((3, 4))
    x[1, 2] = special
    out = compiled(lambda x: (x * 2).sum(axis) * 1.5, x).compute(x)[0]
    np.testing.assert_array_equal(out, (x * 2).sum(axis) * 1.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gates_that_are_returned_drop_nan_and_inf(dtype):
    x = np.array([1.0, -2.0, np.nan, np.inf, -0.0], dtype)
    mask = np.array([True, False, False, True, True])
    out = compiled(lambda x, m: np.where(m, x * 2, dtype(0)), x, mask).compute(x, mask)[0]
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, [2.0, 0.0, 0.0, np.inf, -0.0])


def test_a_definition_shares_its_work_with_its_derivative():
    x, labels = np.random.default_rng(0).standard_normal((6, 4)), np.arange(6) % 4
    both = fgrad.value_and_grad(lambda x, labels: fgrad.kernels.cross_entropy(x, labels).mean())
    run = compiled(both, x, labels)
    assert [eq.prim.name for eq in run.program.equations].count("logsumexp") == 1
    for found, wanted in zip(run.compute(x, labels), both(x, labels), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_results_of_tiles_are_given_away_once():
    x = np.random.default_rng(0).standard_normal((1000, 700))

    def f(x):
        y = np.tanh(np.tanh(x) * x)
        return y, y, y[:10]

    run = compiled(f, x)
    outs = [*run.compute(x), *run.compute(x)]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(outs) for b in outs[:i])
    for out in outs:
        np.testing.assert_allclose(out, f(x)[0][: len(out)], rtol=1e-15)


def test_large_constants_of_equal_elements_are_numbers():
    ones = np.ones((300, 300))
    run = compiled(lambda x: x * ones + np.zeros((300, 300)) * ones, np.zeros((300, 300)))
    assert [eq.prim.name for eq in run.program.equations] == ["add"]

"""Jacobians, Hessians and transposes: layout over trees, agreement of the modes, refusals."""

import numpy as np
import pytest

import fgrad

X = np.array([0.5, 1.0, 2.0])


@pytest.mark.parametrize("jacobian", [fgrad.jacfwd, fgrad.jacrev])
def test_layout_is_output_tree_of_input_trees(jacobian):
    def f(x, y):
        return {"p": x["a"] * y, "q": x["b"].sum()}

    x = {"a": X, "b": np.ones((2, 2))}
    out = jacobian(f, (0, 1))(x, np.float64(3.0))
    assert out["p"][0]["a"].shape == (3, 3) and out["p"][0]["b"].shape == (3, 2, 2)
    assert out["q"][0]["b"].shape == (2, 2) and out["q"][1].shape == ()
    np.testing.assert_array_equal(out["p"][0]["a"], 3 * np.eye(3))
    np.testing.assert_array_equal(out["p"][1], X)


def test_modes_agree_under_jit_and_with_aux():
    def f(x):
        return np.sin(x[:, None] * x), "aux"

    forward, note = fgrad.jacfwd(f, has_aux=True)(X)
    reverse, _ = fgrad.jacrev(f, has_aux=True)(X)
    np.testing.assert_allclose(forward, reverse)
    assert note == "aux"
    np.testing.assert_allclose(fgrad.jit(fgrad.jacfwd(lambda x: f(x)[0]))(X), forward)


def test_hessian_and_hvp():
    def f(x):
        return (x**3).sum() * x[0]

    hessian = fgrad.hessian(f)(X)
    np.testing.assert_allclose(hessian, hessian.T)
    v = np.array([1.0, -1.0, 2.0])
    np.testing.assert_allclose(fgrad.hvp(f, (X,), (v,)), hessian @ v)
    np.testing.assert_allclose(fgrad.jit(fgrad.hessian(f))(X), hessian)


def test_third_order():
    third = fgrad.jacfwd(fgrad.hessian(lambda x: (x**4).sum()))(X)
    expected = np.zeros((3, 3, 3))
    expected[range(3), range(3), range(3)] = 24 * X
    np.testing.assert_allclose(third, expected)


def test_kinds_are_checked():
    with pytest.raises(TypeError, match="jacfwd requires real-valued inputs unless holomorphic"):
        fgrad.jacfwd(lambda z: z)(np.ones(2, complex))
    with pytest.raises(TypeError, match="jacrev requires real-valued outputs"):
        fgrad.jacrev(lambda x: x * 1j)(X)
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        fgrad.jacfwd(lambda i: i)(np.arange(3))
    z = np.array([1 + 1j, 2.0])
    np.testing.assert_allclose(fgrad.jacfwd(lambda z: z * z, holomorphic=True)(z), np.diag(2 * z))
    np.testing.assert_allclose(fgrad.jacrev(lambda z: z * z, holomorphic=True)(z), np.diag(2 * z))


def test_linear_transpose():
    transposed = fgrad.linear_transpose(lambda x: 3 * x[::-1], fgrad.ShapeDtypeStruct((3,), np.float64))
    np.testing.assert_array_equal(transposed(X)[0], 3 * X[::-1])
    for f in (lambda x: x * x, lambda x: x + 1.0, np.sin, lambda x: np.ones(3)):
        with pytest.raises(TypeError, match="not linear"):
            fgrad.linear_transpose(f, X)(X)
    with pytest.raises(ValueError, match="shape and dtype"):
        transposed(np.ones(2))

"""vmap: axes as prefixes, sizes, names, nesting; vmap(f) = stack of f."""

import numpy as np
import pytest

import fgrad
from fgrad.errors import TracerBoolConversionError

X = np.arange(6.0).reshape(2, 3)


def test_axes_in_and_out():
    np.testing.assert_array_equal(fgrad.vmap(lambda x: x.sum())(X), X.sum(1))
    np.testing.assert_array_equal(fgrad.vmap(lambda x: x * 2, 1, 1)(X), X * 2)
    np.testing.assert_array_equal(fgrad.vmap(lambda x: x * 2, -1, -1)(X), X * 2)
    np.testing.assert_array_equal(fgrad.vmap(lambda x, y: x * y, (0, None))(X, X[0]), X * X[0])
    np.testing.assert_array_equal(fgrad.vmap(lambda x: np.outer(x, x), 0, 2)(X)[:, :, 1], np.outer(X[1], X[1]))


def test_prefixes_keywords_and_sizes():
    out = fgrad.vmap(lambda d, *, z: d["a"] * d["b"] + z, ({"a": 0, "b": None},))({"a": X, "b": 2.0}, z=X)
    np.testing.assert_array_equal(out, 3 * X)
    np.testing.assert_array_equal(fgrad.vmap(lambda: np.ones(2), axis_size=3)(), np.ones((3, 2)))
    assert fgrad.vmap(lambda x: (x, 1.0), out_axes=(0, None))(X)[1] == 1.0
    assert fgrad.vmap(lambda x: x * 2)(np.zeros((0, 3))).shape == (0, 3)


def test_errors_name_axes_and_paths():
    with pytest.raises(
        ValueError, match=r"(?s)inconsistent sizes.*0 of argument x of.*size 2.*argument y\['a'\].*size 3"
    ):
        fgrad.vmap(lambda x, y: x)(X, {"a": X.T})
    with pytest.raises(ValueError, match=r"(?s)argument 1 of type.*argument k of type"):
        fgrad.vmap(lambda *xs, k: xs)(X, X, k=X.T)
    with pytest.raises(ValueError, match="at least one mapped argument"):
        fgrad.vmap(lambda x: x, None)(X)
    with pytest.raises(ValueError, match="one entry per positional argument"):
        fgrad.vmap(lambda x: x, (0, 0))(X)
    with pytest.raises(ValueError, match="axis 2 of an argument"):
        fgrad.vmap(lambda x: x, 2)(X)
    with pytest.raises(ValueError, match="out_axes is None"):
        fgrad.vmap(lambda x: x, out_axes=None)(X)
    with pytest.raises(ValueError, match=r"vmap in_axes\[0\]"):
        fgrad.vmap(lambda x: x, ([0, 0],))((X, X))
    with pytest.raises(TracerBoolConversionError, match="(?s)vmap of.*where"):
        fgrad.vmap(lambda x: x if x.sum() > 0 else -x)(X)


def test_nesting_and_closures():
    double = fgrad.vmap(lambda y: fgrad.vmap(lambda x: x @ y)(X))(X)
    np.testing.assert_allclose(double, X @ X.T)
    per_example = fgrad.vmap(fgrad.grad(lambda x: (x**3).sum()))(X)
    np.testing.assert_allclose(per_example, 3 * X**2)
    hessians = fgrad.vmap(fgrad.hessian(lambda x: (x**3).sum()))(X)
    np.testing.assert_allclose(hessians, [np.diag(6 * row) for row in X])
    np.testing.assert_allclose(fgrad.grad(lambda y: fgrad.vmap(lambda x: x @ y)(X).sum())(X[0]), X.sum(0))


def test_collectives_and_their_derivatives():
    lax = fgrad.lax
    x = np.arange(3.0)
    named = lambda f: fgrad.vmap(f, axis_name="i")(x)  # noqa: E731
    np.testing.assert_array_equal(named(fgrad.grad(lambda v: lax.psum(v, "i") ** 2)), [18, 18, 18])
    np.testing.assert_array_equal(named(lambda v: lax.pmean(v, "i")), [1, 1, 1])
    np.testing.assert_array_equal(named(lambda v: lax.pmax(v, "i") - lax.pmin(v, "i")), [2, 2, 2])
    np.testing.assert_array_equal(named(lambda v: lax.all_gather(v, "i")), np.tile(x, (3, 1)))
    np.testing.assert_array_equal(named(lambda v: v * 0 + lax.axis_index("i")), x)
    np.testing.assert_array_equal(named(lambda v: v * 0 + lax.axis_size("i")), [3, 3, 3])
    np.testing.assert_array_equal(named(lambda v: lax.ppermute(v, "i", [(0, 1), (1, 2)])), [0, 0, 1])
    weights = np.array([1.0, 10.0, 100.0])
    gathered = named(fgrad.grad(lambda v: (lax.all_gather(v, "i") * weights).sum()))
    np.testing.assert_array_equal(gathered, 3 * weights)
    np.testing.assert_array_equal(fgrad.jit(lambda x: named(fgrad.jit(lambda v: lax.psum(v, "i"))))(x), [3, 3, 3])
    with pytest.raises(NameError, match="unbound axis name: 'j'"):
        named(lambda v: lax.psum(v, "j"))


def test_two_named_axes():
    out = fgrad.vmap(
        fgrad.vmap(lambda x: fgrad.lax.psum(x, ("i", "j")) + fgrad.lax.psum(x, "j"), axis_name="j"), axis_name="i"
    )(X)
    np.testing.assert_array_equal(out, X.sum() + np.broadcast_to(X.sum(1, keepdims=True), X.shape))
    exchanged = fgrad.vmap(lambda x: fgrad.lax.all_to_all(x, "i", 0, 0), axis_name="i")(np.arange(4.0).reshape(2, 2))
    np.testing.assert_array_equal(exchanged, [[0, 2], [1, 3]])
    parts = fgrad.vmap(lambda x: fgrad.lax.psum_scatter(x, "i"), axis_name="i")(np.arange(4.0).reshape(2, 2))
    np.testing.assert_array_equal(parts, [2, 4])

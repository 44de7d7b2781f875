"""`fgrad.numpy.vectorize`: NumPy's results, and derivatives, under every transform."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp

X = np.array([[0.5, -1.0, 2.0], [1.5, 3.0, -2.0]])
Y = np.array([1.0, 2.0, 4.0])

CASES = {
    "elements": (lambda m: m.vectorize(lambda a, b: a * b + 1.0), (X, Y)),
    "several results": (lambda m: m.vectorize(lambda a: (a * 2.0, a * a)), (X,)),
    "otypes": (lambda m: m.vectorize(lambda a: a * 2.0, otypes=[np.float32]), (X,)),
    "signature": (lambda m: m.vectorize(lambda v, a: v * a, signature="(n),()->(n)"), (X, np.array([2.0, 3.0]))),
    "of vectors": (lambda m: m.vectorize(m.dot, signature="(n),(n)->()"), (X, Y)),
    "excluded": (lambda m: m.vectorize(lambda a, p: a**p, excluded={1}), (X, 2)),
    "numbers": (lambda m: m.vectorize(lambda a, b: a * b), (2.0, 3.0)),
    "keywords": (lambda m: lambda x, y: m.vectorize(lambda a, b: a - b)(x, b=y), (X, Y)),
    "decorator": (lambda m: m.vectorize(otypes=[float])(lambda a: a * a), (X,)),
}


@pytest.mark.parametrize("name", CASES)
def test_vectorize(name):
    make, args = CASES[name]
    want = make(np)(*args)
    traced = [k for k, x in enumerate(args) if not isinstance(x, int)]

    def f(*xs):
        full = list(args)
        for k, x in zip(traced, xs, strict=True):
            full[k] = x
        return make(fnp)(*full)

    points = [args[k] for k in traced]
    for got in (f(*points), fgrad.jit(f)(*points)):
        for g, w in zip(fgrad.tree.leaves(got), fgrad.tree.leaves(want), strict=True):
            assert g.dtype == w.dtype
            np.testing.assert_allclose(g, w)
    stacked = fgrad.vmap(f)(*[np.stack([x, x]) for x in points])
    np.testing.assert_allclose(fgrad.tree.leaves(stacked)[0][1], fgrad.tree.leaves(want)[0])
    if name != "otypes":
        fgrad.check_grads(f, points, 2)


def test_vectorize_refuses():
    with pytest.raises(ValueError, match="has 2 inputs, got 1"):
        fgrad.jit(fnp.vectorize(fnp.dot, signature="(n),(n)->()"))(Y)
    with pytest.raises(ValueError, match="input 0 needs 1 axes"):
        fgrad.jit(fnp.vectorize(fnp.sum, signature="(n)->()"))(1.0)
    with pytest.raises(fgrad.errors.TracerBoolConversionError):
        fgrad.grad(lambda x: fnp.vectorize(lambda a: a if a > 0 else 0.0)(x).sum())(Y)
    assert fnp.vectorize(lambda a: a if a > 0 else 0.0)(X).shape == X.shape
    with pytest.raises(fgrad.errors.TracerArrayConversionError):  # NumPy's class asks for the values
        fgrad.grad(lambda x: np.vectorize(lambda a: a * 2.0)(x).sum())(Y)

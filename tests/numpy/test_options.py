"""NumPy's keyword options and ufunc methods: honoured on traced values, or refused by name; never passed over."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp

X = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
MASK = np.array([[True, False, True], [True, True, False]])

REFUSED = {
    "out of a ufunc": (lambda x: np.tanh(x, out=np.zeros((2, 3))), "out"),
    "positional out": (lambda x: fnp.tanh(x, np.zeros((2, 3))), "out"),
    "where of a ufunc": (lambda x: np.exp(x, where=MASK), "where"),
    "where of a binary ufunc": (lambda x: fnp.add(x, 1.0, where=MASK), "where"),
    "casting": (lambda x: fnp.add(x, x, casting="unsafe"), "casting"),
    "order": (lambda x: np.sin(x, order="F"), "order"),
    "unknown option": (lambda x: fnp.sin(x, colour="red"), "colour"),
    "out of a reduction": (lambda x: np.sum(x, out=np.zeros(())), "out"),
    "out of mean": (lambda x: fnp.mean(x, out=np.zeros(())), "out"),
    "out of concatenate": (lambda x: np.concatenate([x, x], out=np.zeros((4, 3))), "out"),
    "out of dot": (lambda x: np.dot(x, x.T, out=np.zeros((2, 2))), "out"),
    "out of matmul": (lambda x: np.matmul(x, x.T, out=np.zeros((2, 2))), "out"),
    "axes of matmul": (lambda x: np.matmul(x, x.T, axes=[(0, 1)] * 3), "axes"),
    "out of cumsum": (lambda x: np.cumsum(x, out=np.zeros(6)), "out"),
    "out of clip": (lambda x: np.clip(x, 0, 1, out=np.zeros((2, 3))), "out"),
    "out of einsum": (lambda x: np.einsum("ij->i", x, out=np.zeros(2)), "out"),
    "order of sort": (lambda x: fnp.sort(x, order="f0"), "order"),
    "weights of quantile": (lambda x: np.quantile(x, 0.5, weights=X, method="inverted_cdf"), "weights"),
    "ufunc.at": (lambda x: np.add.at(x, 0, 1.0), "add.at"),
    "reduceat": (lambda x: np.add.reduceat(x, [0, 1]), "add.reduceat"),
    "no counterpart": (lambda x: np.busday_count(x, x), "busday_count"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("transform", [fgrad.grad, fgrad.jit, fgrad.vmap])
def test_refused_by_name(name, transform):
    f, word = REFUSED[name]
    with pytest.raises(TypeError, match=word):
        transform(lambda x: fnp.sum(f(x) * 1.0))(X)


HONOURED = {
    "dtype of a ufunc": lambda m, x: m.add(x, 1, dtype=np.float32),
    "dtype of sin": lambda m, x: m.sin(x, dtype=np.float32),
    "default options": lambda m, x: m.add(x, x, out=None, where=True, casting="same_kind", order="K", subok=True),
    "where of sum": lambda m, x: m.sum(x, axis=0, where=MASK),
    "initial of sum": lambda m, x: m.sum(x, initial=2.0, keepdims=True),
    "where of prod": lambda m, x: m.prod(x, where=MASK, initial=2.0),
    "where of max": lambda m, x: m.max(x, axis=1, where=MASK, initial=-9.0),
    "where of mean": lambda m, x: m.mean(x, axis=1, where=MASK, keepdims=True),
    "where of std": lambda m, x: m.std(x, where=MASK, ddof=1),
    "where of any": lambda m, x: m.any(x > 2, axis=0, where=MASK),
    "mean of var": lambda m, x: m.var(x, axis=1, mean=m.mean(x, axis=1, keepdims=True)),
    "dtype of cumsum": lambda m, x: m.cumsum(x, dtype=np.float32),
    "dtype of concatenate": lambda m, x: m.concatenate([x, x], dtype=np.float32),
    "axis None": lambda m, x: m.concatenate([x, x], axis=None),
}


@pytest.mark.parametrize("name", HONOURED)
def test_honoured(name):
    f = HONOURED[name]
    want = f(np, X)
    for module in (fnp, np):
        got = fgrad.jit(lambda x, module=module: f(module, x))(X)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)


METHODS = {
    "add.reduce": lambda x: np.add.reduce(x),
    "add.reduce all": lambda x: np.add.reduce(x, axis=None, keepdims=True),
    "multiply.reduce": lambda x: np.multiply.reduce(x, axis=1),
    "maximum.reduce": lambda x: np.maximum.reduce(x, 1),
    "minimum.reduce": lambda x: np.minimum.reduce(x, initial=-0.9),
    "logical_or.reduce": lambda x: np.logical_or.reduce(x > 2, axis=1),
    "logical_and.reduce": lambda x: np.logical_and.reduce(x > -5),
    "logaddexp.reduce": lambda x: np.logaddexp.reduce(x, axis=1),
    "add.reduce dtype": lambda x: np.add.reduce(x, dtype=np.float32),
    "add.accumulate": lambda x: np.add.accumulate(x),
    "multiply.accumulate": lambda x: np.multiply.accumulate(x, axis=1),
    "maximum.accumulate": lambda x: np.maximum.accumulate(x, 1),
    "minimum.accumulate": lambda x: np.minimum.accumulate(x),
    "logaddexp.accumulate": lambda x: np.logaddexp.accumulate(x, axis=1),
    "multiply.outer": lambda x: np.multiply.outer(x, x[0]),
    "subtract.outer": lambda x: np.subtract.outer(np.arange(2.0), x),
    "power.outer": lambda x: np.power.outer(x * x, [1.0, 2.0]),
}


@pytest.mark.parametrize("name", METHODS)
def test_ufunc_methods(name):
    f = METHODS[name]
    want = f(X)
    got = fgrad.jit(f)(X)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-6)
    if want.dtype == np.float64:
        fgrad.check_grads(f, (X,), 2)


def test_lists_are_arrays():
    x = np.array([1.0, 2.0])

    def f(x):
        total = fnp.sum([x[0], x[1] * 2]) + fnp.dot([1.0, 2.0], x) + np.sum(fnp.stack([x, [3.0, 4.0]]))
        return total + fnp.tanh([x[0], 0.5])[0] + fnp.add([[x[0], 1.0]], [x[1], 2])[0, 0] + fnp.mean([[x[0]], [x[1]]])

    np.testing.assert_allclose(fgrad.grad(f)(x), [4.5 + 1 - np.tanh(1.0) ** 2 + 1, 6.5], atol=1.1)
    fgrad.check_grads(f, (x,), 2)


def test_sizes_given_under_jit():
    x = np.array([0.0, 3.0, 0.0, 4.0, 5.0])
    run = lambda f: [np.asarray(y).tolist() for y in fgrad.jit(lambda x: list(f(x)))(x)]  # noqa: E731
    assert run(lambda x: fnp.nonzero(x, size=4)) == [[1, 3, 4, 0]]
    assert run(lambda x: fnp.nonzero(x, size=4, fill_value=-1)) == [[1, 3, 4, -1]]
    assert run(lambda x: fnp.where(x > 3, size=2)) == [[3, 4]]
    assert run(lambda x: fnp.nonzero(x.reshape(5, 1), size=3)) == [[1, 3, 4], [0, 0, 0]]
    assert run(lambda x: [fnp.argwhere(x, size=2)]) == [[[1], [3]]]
    assert run(lambda x: [fnp.flatnonzero(x, size=1)]) == [[1]]
    assert run(lambda x: [fnp.bincount(x.astype(int), length=5)]) == [[2, 0, 0, 1, 1]]
    assert run(lambda x: [fnp.repeat(x, x.astype(int), total_repeat_length=9)]) == [[3.0] * 3 + [4.0] * 4 + [5.0] * 2]
    assert fnp.unique([3, 1, 3], size=4, fill_value=-1).tolist() == [1, 3, -1, -1]
    assert [v.tolist() for v in fnp.unique([3, 1, 3], return_counts=True, size=3)] == [[1, 3, 1], [1, 2, 0]]


def test_fill_mode_of_take():
    x = np.array([1.0, 2.0])
    assert fnp.take(x, [1, 5], mode="fill", fill_value=0.0).tolist() == [2.0, 0.0]
    g = fgrad.grad(lambda x: fnp.sum(fnp.take(x, [1, 5, 1], mode="fill", fill_value=0.0)))
    assert g(x).tolist() == [0.0, 2.0]


def test_axes_are_checked():
    for transform in (fgrad.grad, fgrad.jit):
        with pytest.raises(np.exceptions.AxisError, match="axis 5 is out of bounds"):
            transform(lambda x: fnp.sum(x, axis=5))(X)
        with pytest.raises(ValueError, match=r"repeated|duplicate"):
            transform(lambda x: fnp.sum(x, axis=(0, 0)))(X)
        with pytest.raises(TypeError):
            transform(lambda x: fnp.argmax(x, axis=0.5))(X)
        with pytest.raises(np.exceptions.AxisError):
            transform(lambda x: fnp.concatenate([x, x], axis=2))(X)


ERRORS = [
    (lambda m, x: m.reshape(x, (4, 4)), ValueError),
    (lambda m, x: m.reshape(x, (-1, -1)), ValueError),
    (lambda m, x: m.squeeze(x, 0), ValueError),
    (lambda m, x: m.transpose(x, (0,)), ValueError),
    (lambda m, x: m.concatenate([]), ValueError),
    (lambda m, x: m.concatenate([x, x[0]]), ValueError),
    (lambda m, x: m.concatenate([x, x[:, :1]]), ValueError),
    (lambda m, x: m.concatenate([x[0, 0]]), ValueError),
    (lambda m, x: m.stack([x, x.T]), ValueError),
    (lambda m, x: m.broadcast_to(x, (2, 4)), ValueError),
    (lambda m, x: m.split(x, 4), ValueError),
    (lambda m, x: m.matmul(x, x), ValueError),
    (lambda m, x: m.matmul(x, 2.0), ValueError),
    (lambda m, x: m.dot(x, x), ValueError),
    (lambda m, x: m.inner(x, x.T), ValueError),
    (lambda m, x: m.tensordot(x, x, 1), ValueError),
    (lambda m, x: m.einsum("ij,jk", x, x), ValueError),
    (lambda m, x: m.einsum("i", x), ValueError),
    (lambda m, x: m.einsum("ij->k", x), ValueError),
    (lambda m, x: m.add(x, x.T), ValueError),
    (lambda m, x: m.where(x > 0, x), ValueError),
    (lambda m, x: m.power(m.arange(3), -1), ValueError),
    (lambda m, x: m.quantile(x, 1.5), ValueError),
    (lambda m, x: m.quantile(x, 0.5, method="best"), ValueError),
    (lambda m, x: m.pad(x, 1, mode="fancy"), ValueError),
    (lambda m, x: m.pad(x, -1), ValueError),
    (lambda m, x: m.diff(x, -1), ValueError),
    (lambda m, x: m.convolve(x, x), ValueError),
    (lambda m, x: m.interp(0.5, [1, 2], [1, 2, 3]), ValueError),
    (lambda m, x: m.select([x > 0], [x, x]), ValueError),
    (lambda m, x: m.take(x, [7], axis=0), IndexError),
    (lambda m, x: m.take_along_axis(x, m.arange(3), 1), ValueError),
    (lambda m, x: m.linalg.norm(x, "nix"), ValueError),
    (lambda m, x: m.linalg.matrix_power(x, 2), np.linalg.LinAlgError),
    (lambda m, x: m.cross(x, m.ones(4)), ValueError),
    (lambda m, x: m.negative(x > 0), TypeError),
    (lambda m, x: m.subtract(x > 0, x > 0), TypeError),
    (lambda m, x: m.floor(x + 1j), TypeError),
    (lambda m, x: m.bitwise_and(x, 1), TypeError),
    (lambda m, x: m.fmax(x), TypeError),
    (lambda m, x: m.sum(x, axis=(0, 2)), np.exceptions.AxisError),
]


@pytest.mark.parametrize("k", range(len(ERRORS)))
def test_errors_are_numpys(k):
    f, kind = ERRORS[k]
    with pytest.raises(kind):
        f(np, X)
    for transform in (lambda f: f, fgrad.jit, fgrad.grad):
        with pytest.raises(kind):
            transform(lambda x: f(fnp, x))(X)


@pytest.mark.parametrize("transform", [lambda f: f, fgrad.jit], ids=["eager", "jit"])
def test_descending(transform):
    x = np.array([1.0, 3.0, 1.0, 2.0])
    assert transform(lambda x: fnp.sort(x, descending=True))(x).tolist() == [3.0, 2.0, 1.0, 1.0]
    assert transform(lambda x: fnp.argsort(x, descending=True))(x).tolist() == [1, 3, 0, 2]
    assert transform(lambda x: fnp.argsort(x.reshape(2, 2), axis=0, descending=True))(x).tolist() == [[0, 0], [1, 1]]


def test_the_array_api_standards_options():
    for f in (fnp.zeros, fnp.ones, fnp.empty, fnp.eye, fnp.arange, lambda n, device: fnp.full(n, 1.0, device=device)):
        assert len(f(3, device="cpu")) == 3
        with pytest.raises(ValueError, match=r"[Dd]evice"):
            f(3, device="gpu")
    for f in (fnp.zeros_like, fnp.ones_like, fnp.empty_like, lambda x, device: fnp.full_like(x, 2, device=device)):
        assert f(X, device="cpu").shape == X.shape
        with pytest.raises(ValueError, match="device"):
            f(X, device="gpu")
    assert fnp.__array_api_version__ == "2024.12"
    if hasattr(np, "__array_namespace_info__"):
        assert fnp.__array_namespace_info__().default_dtypes()["real floating"] == np.float64


def test_joining_by_index():
    x = np.array([1.0, 2.0])
    f = lambda m, x: [m.r_[x, 0.5, 1:4, x], m.c_[x, x * 2], m.c_[np.ones((2, 2)), x], m.r_[x.reshape(1, 2), [[3, 4]]]]  # noqa: E731
    for got, want in zip(fgrad.jit(lambda x: f(fnp, x))(x), f(np, x), strict=True):
        np.testing.assert_array_equal(got, want)
    assert fnp.r_[1:3, 0].tolist() == [1, 2, 0]
    with pytest.raises(TypeError, match="directives"):
        fgrad.jit(lambda x: fnp.r_["r", x])(x)


def test_roots():
    for p in ([1.0, -6.0, 11.0, -6.0], [0.0, 2.0, -3.0, 0.0], [1.0, 0.0, 4.0], [3.0], [0.0, 0.0]):
        found = []
        fgrad.vjp(lambda p, found=found: found.append(fnp.roots(p)), np.array(p))
        got = found[0].concrete() if isinstance(found[0], fgrad.core.Tracer) else found[0]
        np.testing.assert_allclose(np.sort_complex(got), np.sort_complex(np.roots(p)), atol=1e-12)
    fgrad.check_grads(lambda p: np.sum(np.abs(fnp.roots(p)) ** 3), (np.array([1.0, -6.0, 11.0, -5.0]),), 2, rtol=1e-4)
    with pytest.raises(fgrad.errors.NonConcreteBooleanIndexError):
        fgrad.jit(fnp.roots)(np.array([1.0, 2.0]))

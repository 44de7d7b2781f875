"""Sparse derivatives are the dense ones, and their patterns have an entry wherever those are other than zero."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import fgrad
import fgrad.numpy as fnp
from fgrad import lax

X = np.array([0.3, 1.2, -0.7, 0.9, 2.1, -1.3])
ORDER = np.array([3, 1, 4, 0, 5, 2, 2])


def ragged(x):
    return np.convolve(np.sin(x), np.array([1.0, 0.0, -2.0]))


def masked(x):
    return np.where(x > 0, x**2, x[::-1])


def scattered(x):
    return fnp.at(np.zeros(8))[ORDER].add(x[ORDER] * x[0])


def looked_up(x):
    return x[np.argsort(x)] * x


def of_rows(x):
    m = x.reshape(3, 2)
    return np.linalg.solve(np.array([[2.0, 1.0], [0.0, 1.0]]), m.T) * m.sum(axis=1)


def scanned(x):
    return lax.scan(lambda c, v: (c * v, c + v), x[0], x[1:])[1]


def looped(x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, fnp.roll(s[1], 1) * s[1]), (0, x))[1]


def bounded(x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 0.5 * x), (0, x), max_steps=4)[1]


def branched(x):
    return lax.cond(x[0] > 0, lambda x: x[:3] * x[3:], lambda x: x[:3] ** 2, x)


def batched(x):
    return fgrad.vmap(lambda a, b: a * b + np.array([0.0, 1.0]) * a)(x[:3], x[3:])


def with_own_rule(x):
    one = fgrad.custom_jvp(lambda x: np.round(x))
    one.defjvps(lambda t, ans, x: t)
    return one(x) * x[::-1]


def with_own_pullback(x):
    one = fgrad.custom_vjp(lambda x: x**2)
    one.defvjp(lambda x: (x**2, x), lambda x, ct: (2 * x * ct,))
    return one(x)


def stopped(x):
    return fgrad.stop_gradient(x[::-1]) * x


FUNCTIONS = [
    ragged, masked, scattered, looked_up, of_rows, scanned, looped, bounded, branched, batched, with_own_rule,
    with_own_pullback, stopped, fgrad.jit(masked), fgrad.checkpoint(ragged), np.cumsum, np.sort, np.fft.ifft,
    lambda x: np.diff(x, 2), lambda x: x, lambda x: x[2], lambda x: x[:0], lambda x: np.ones(3), lambda x: x.sum(),
    lambda x: np.outer(x, x), lambda x: np.array([[1.0, 0, 0], [0, 2, 3]]) @ x.reshape(3, 2), lambda x: x > 0,
    lambda x: np.abs(np.fft.fft(x.reshape(2, 3))), lambda x: np.prod(x.reshape(3, 2), axis=0), lambda x: np.argmax(x),
    lambda x: np.einsum("ij,ik->jk", x.reshape(2, 3), np.arange(4.0).reshape(2, 2)), lambda x: np.tile(x, 2)[1:],
]  # fmt: skip


def dense(jacobian, size):
    """Return a dense Jacobian as a matrix; an integer output has none."""
    return np.zeros((np.size(jacobian) // size, size)) if jacobian.dtype == fgrad.float0 else jacobian.reshape(-1, size)


@pytest.mark.parametrize("fun", FUNCTIONS[:11] + FUNCTIONS[12:], ids=lambda f: getattr(f, "__name__", "f"))
def test_jacobian_is_the_dense_one(fun):
    if fun is np.fft.ifft:
        fun = lambda x: np.fft.ifft(x).real  # noqa: E731
    found = fgrad.sparse_jacobian(fun, check=True)(X)
    assert isinstance(found, scipy.sparse.csr_array)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.toarray(), dense(fgrad.jacfwd(fun)(X), 6), atol=1e-13)


@pytest.mark.parametrize("fun", [f for f in FUNCTIONS if f is not looped], ids=lambda f: getattr(f, "__name__", "f"))
def test_hessian_is_the_dense_one(fun):
    def energy(x):
        out = fun(x)
        return np.sum(out.real**2 * x[1]) if out.dtype.kind in "fc" else np.sum(x**2)

    found = fgrad.sparse_hessian(energy, check=True)(X)
    np.testing.assert_allclose(found.toarray(), fgrad.hessian(energy)(X), atol=1e-12)
    assert (found != found.T).nnz == 0


PIECES = {
    "shift": lambda a, b, k: np.roll(a, k),
    "part": lambda a, b, k: np.concatenate([a[k:] * 2, b[:k]]),
    "mul": lambda a, b, k: a * b,
    "div": lambda a, b, k: a / (1 + b * b),
    "sin": lambda a, b, k: np.sin(a),
    "take": lambda a, b, k: a[(np.arange(a.size) * k) % a.size],
    "where": lambda a, b, k: np.where(np.arange(a.size) % (k + 1) == 0, a, b),
    "at": lambda a, b, k: fnp.at(a)[k % a.size].add(b[0]),
    "mean": lambda a, b, k: a - b.reshape(-1, 2).sum(axis=1).repeat(2),
    "max": lambda a, b, k: np.maximum(a, b + 0.01 * k),
    "sort": lambda a, b, k: np.concatenate([np.sort(a[:3]), a[3:]]),
    "matmul": lambda a, b, k: (np.diag([1.0, 0.0, 3.0]) @ a.reshape(3, 2)).ravel() + b,
}


@pytest.mark.heavy
@given(
    st.lists(st.tuples(st.sampled_from(sorted(PIECES)), st.integers(0, 5), st.integers(0, 5)), max_size=8), st.data()
)
@settings(max_examples=max(10, settings().max_examples // 5), deadline=None)
def test_of_random_programs(steps, data):
    def fun(x):
        values = [x, np.cos(x)]
        for name, k, back in steps:
            values.append(PIECES[name](values[-1], values[-1 - back % len(values)], k))
        return values[-1]

    jacobian = fgrad.sparse_jacobian(fun, check=True)
    np.testing.assert_allclose(jacobian(X).toarray(), fgrad.jacrev(fun)(X), atol=1e-9)
    energy = lambda x: (fun(x) ** 2 * np.arange(6.0)).sum()  # noqa: E731
    hessian = fgrad.sparse_hessian(energy, check=True, chunk=data.draw(st.sampled_from([None, 1, 2])))
    np.testing.assert_allclose(hessian(X).toarray(), fgrad.hessian(energy)(X), rtol=1e-8, atol=1e-8)


# ------------------------------------------------------------------------------------------ patterns and colors


@pytest.mark.parametrize(
    ("fun", "entries", "colors"),
    [
        (lambda x: x**2, 60, 1),
        (lambda x: x[1:] - x[:-1], 118, 2),
        (lambda x: np.convolve(x, np.ones(5), "valid"), 280, 5),
        (lambda x: x.sum(keepdims=True), 60, 1),
        (lambda x: x * x[0], 119, 2),
        (lambda x: np.concatenate([x.sum(keepdims=True), x]), 120, 2),
        (lambda x: np.concatenate([x.sum(keepdims=True), x * x[0]]), 179, 3),
        (lambda x: np.linalg.inv(x.reshape(15, 2, 2)), 240, 4),
        (lambda x: np.cumsum(x.reshape(20, 3), axis=1), 180, 3),
        (lambda x: (x > 0) * 1.0, 0, 0),
        (lambda x: x.reshape(6, 10).T[::-1], 60, 1),
        (lambda x: x[:0], 0, 0),
    ],
)
def test_entries_and_colors_of_a_jacobian(fun, entries, colors):
    prepared = fgrad.sparse_jacobian(fun).prepare(np.linspace(1, 2, 60) ** 2)
    assert (prepared.pattern.nnz, prepared.colors) == (entries, colors)


@pytest.mark.parametrize(
    ("fun", "entries", "colors"),
    [
        (lambda x: (x**3).sum(), 60, 1),
        (lambda x: (x * 2).sum(), 0, 0),
        (lambda x: ((x[1:] - x[:-1]) ** 2).sum(), 178, 3),
        (lambda x: (x[0] * x[1:] ** 2).sum(), 177, 2),
        (lambda x: np.log(np.exp(x.reshape(20, 3)).sum(axis=1)).sum(), 180, 3),
        (lambda x: lax.scan(lambda c, v: (v, c * v), x[0], x[1:])[1].sum(), 118, 2),
    ],
)
def test_entries_and_colors_of_a_hessian(fun, entries, colors):
    prepared = fgrad.sparse_hessian(fun).prepare(np.ones(60))
    assert (prepared.pattern.nnz, prepared.colors) == (entries, colors)


def test_five_point_stencil_needs_few_colors():
    def energy(u):
        return (np.diff(u, axis=0) ** 4).sum() + (np.diff(u, axis=1) ** 4).sum()

    prepared = fgrad.sparse_hessian(energy).prepare(np.zeros((20, 20)))
    assert prepared.pattern.nnz == 400 + 4 * 380
    assert prepared.colors <= 8


def test_what_is_prepared_is_used_again():
    calls = []

    def fun(x, order):
        calls.append(1)
        return x[order] ** 2

    jacobian = fgrad.sparse_jacobian(fun)
    order = np.array([2, 0, 1])
    for x in (np.ones(3), np.arange(3.0)):
        np.testing.assert_array_equal(jacobian(x, order).toarray(), 2 * np.diag(x)[order])
    assert len(calls) == 1
    assert jacobian.prepare(np.zeros(3), order.copy()) is jacobian.prepare(np.ones(3), order)
    np.testing.assert_array_equal(jacobian(np.ones(3), order[::-1].copy()).toarray(), 2 * np.eye(3)[order[::-1]])
    assert len(calls) == 2
    assert repr(jacobian.prepare(np.ones(3), order)) == "<sparse_jacobian, 3 by 3: 3 entries in 1 passes>"


def test_what_is_kept_is_bounded():
    jacobian = fgrad.sparse_jacobian(lambda x, k: x * k)
    for k in range(70):
        assert jacobian(np.ones(1), k).toarray() == k
    assert len(jacobian._prepared) == 64


def test_runs_in_many_threads():
    jacobian = fgrad.sparse_jacobian(ragged)
    points = [X + k for k in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(jacobian, points))
    for x, J in zip(points, found, strict=True):
        np.testing.assert_allclose(J.toarray(), fgrad.jacrev(ragged)(x), atol=1e-14)


def test_a_rule_that_is_no_derivative_is_found_out():
    twist = fgrad.custom_jvp(lambda x: x.sum())
    twist.defjvps(lambda t, ans, x: (t * x[::-1] * np.arange(6.0)).sum())
    with pytest.raises(ValueError, match="the pattern misses entries"):
        fgrad.sparse_hessian(twist, check=True)(X)


def test_results_share_no_memory():
    jacobian = fgrad.sparse_jacobian(lambda x: x**2)
    first = jacobian(np.ones(3))
    first.data[:] = first.indices[:] = first.indptr[:] = 0
    np.testing.assert_array_equal(jacobian(np.ones(3)).toarray(), 2 * np.eye(3))


# ------------------------------------------------------------------------------------------- arguments and types


def test_of_trees_and_several_arguments():
    def fun(p, y, *, scale):
        return {"a": p["w"] * y * scale, "b": p["b"] + p["w"][0]}

    p, y = {"b": 0.5, "w": np.array([1.0, 2.0])}, np.array([3.0, 4.0])
    found = fgrad.sparse_jacobian(fun, (0, 1))(p, y, scale=2)
    np.testing.assert_array_equal(
        found.toarray(), [[0, 6, 0, 2, 0], [0, 0, 8, 0, 4], [1, 1, 0, 0, 0]]
    )  # columns: p["b"], p["w"], y
    found = fgrad.sparse_jacobian(fun, -1)(p, y, scale=2)
    np.testing.assert_array_equal(found.toarray(), [[2, 0], [0, 4], [0, 0]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_keeps_the_dtype(dtype):
    x = X.astype(dtype)
    for found in (fgrad.sparse_jacobian(masked, check=True)(x), fgrad.sparse_hessian(lambda x: (x**3).sum())(x)):
        assert found.dtype == ("float32" if dtype == "float16" else dtype)  # SciPy has no float16


@pytest.mark.parametrize("x", [2.0, np.array(2.0), np.zeros(0), np.zeros((2, 0)), np.array([2.0])])
def test_of_numbers_and_nothing(x):
    n = np.size(x)
    np.testing.assert_array_equal(fgrad.sparse_jacobian(lambda x: x * x)(x).toarray(), np.diag(2 * np.ravel(x)))
    np.testing.assert_array_equal(fgrad.sparse_hessian(lambda x: np.sum(x * x))(x).toarray(), 2 * np.eye(n))


def test_infinite_and_undefined_entries_stay_where_they_are():
    found = fgrad.sparse_jacobian(lambda x: np.sqrt(x) * np.array([1.0, np.nan, 1.0]), check=True)(
        np.array([0.0, 1, 4])
    )
    np.testing.assert_array_equal(found.toarray(), [[np.inf, 0, 0], [0, np.nan, 0], [0, 0, 0.25]])


def test_takes_strided_and_read_only_arrays():
    x = np.arange(12.0)[::-2]
    x.flags.writeable = False
    np.testing.assert_allclose(fgrad.sparse_jacobian(ragged)(x).toarray(), fgrad.jacrev(ragged)(x))


# ------------------------------------------------------------------------------------------------ the user's pattern


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_array, scipy.sparse.csc_matrix])
def test_takes_a_pattern(form):
    pattern = form(np.eye(6) + np.eye(6, k=1))
    fun = lambda x: x**2 + np.linalg.norm(x * 0)  # noqa: E731
    found = fgrad.sparse_jacobian(fun, sparsity=pattern, check=True)
    np.testing.assert_allclose(found(X).toarray(), np.diag(2 * X))
    assert found.prepare(X).pattern.nnz == 11


def test_a_triangle_is_enough_of_a_hessians_pattern():
    fun = lambda x: (x[1:] * x[:-1] ** 2).sum()  # noqa: E731
    found = fgrad.sparse_hessian(fun, sparsity=np.eye(6) + np.eye(6, k=-1), check=True)
    np.testing.assert_allclose(found(X).toarray(), fgrad.hessian(fun)(X))


def test_a_wrong_pattern_is_found_out():
    for derivative, fun in ((fgrad.sparse_jacobian, np.cumsum), (fgrad.sparse_hessian, lambda x: x.sum() ** 2)):
        with pytest.raises(ValueError, match="the pattern misses entries in"):
            derivative(fun, sparsity=np.eye(6), check=True)(X)


def test_a_pattern_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"sparsity must have shape \(6, 6\), got \(5, 6\)"):
        fgrad.sparse_jacobian(np.sin, sparsity=np.ones((5, 6)))(X)


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fgrad.sparse_jacobian(3), TypeError, "expects a function"),
        (lambda: fgrad.sparse_jacobian(np.sin, chunk=0), ValueError, "chunk must be at least 1, got 0"),
        (lambda: fgrad.sparse_jacobian(np.sin)(np.arange(3)), TypeError, "requires real floating arguments"),
        (lambda: fgrad.sparse_jacobian(np.sin)(np.ones(3) + 1j), TypeError, "requires real floating arguments"),
        (lambda: fgrad.sparse_jacobian(np.fft.fft)(X), TypeError, "requires real-valued outputs"),
        (lambda: fgrad.sparse_hessian(np.sin)(X), TypeError, "scalar"),
        (lambda: fgrad.sparse_jacobian(lambda x, s: x)(X, {1}), TypeError, r"or hashable, got \{1\}"),
        (
            lambda: fgrad.sparse_jacobian(lambda x: x if x[0] > 0 else -x)(X),
            fgrad.errors.TracerBoolConversionError,
            "the truth of",
        ),
        (lambda: fgrad.jit(fgrad.sparse_jacobian(np.sin))(X), TypeError, "outside of transforms"),
        (
            lambda: fgrad.grad(lambda y: fgrad.sparse_jacobian(lambda x: x * y)(X).sum())(1.0),
            TypeError,
            "closes over a value traced by grad",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_what_is_not_sparse_is_refused_before_memory_runs_out():
    with pytest.raises(
        ValueError, match=r"not sparse: at primitive 'cumsum' \(.*test_sparse.py:\d+.*\) each of 100000"
    ):
        fgrad.sparse_jacobian(lambda x: np.cumsum(x) ** 2)(np.ones(100_000))


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match=r"fgrad.sparse_hessian returns SciPy's.*pip install 'fgrad\[scipy\]'"):
        fgrad.sparse_hessian(np.sum)(X)


@pytest.mark.heavy
def test_a_banded_hessian_of_size_100000():
    n = 100_000

    def energy(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    x = np.linspace(-1, 1, n)
    hessian = fgrad.sparse_hessian(energy)
    found = hessian(x)
    assert hessian.prepare(x).colors == 3
    v = np.sin(np.arange(n))
    np.testing.assert_allclose(found @ v, fgrad.hvp(energy, (x,), (v,)), rtol=1e-10, atol=1e-8)

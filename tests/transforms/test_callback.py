"""Plain Python called from recorded functions."""

import numpy as np
import pytest

import fgrad
from fgrad import lax

X = np.array([3.0, 1.0, 2.0])


def like(x):
    return fgrad.ShapeDtypeStruct(np.shape(x), x.dtype)


def in_order(x, **options):
    return fgrad.pure_callback(np.sort, like(x), x, **options)


@fgrad.custom_jvp
def doubled(x):
    return fgrad.pure_callback(lambda x: np.asarray(2.0 * x), like(x), x, vmap_method="sequential")


doubled.defjvps(lambda t, ans, x: 2 * t)


def test_runs_on_plain_arrays_under_jit():
    seen = []

    def callback(x):
        seen.append(type(x))
        return np.sort(x)

    f = fgrad.jit(lambda x: fgrad.pure_callback(callback, like(x), x) + 1)
    for _ in range(2):
        np.testing.assert_array_equal(f(X), [2.0, 3.0, 4.0])
    assert seen == [np.ndarray] * 2
    np.testing.assert_array_equal(in_order(X), [1.0, 2.0, 3.0])


def test_takes_and_gives_trees():
    def callback(p, *, k):
        return {"sum": p["a"] + p["b"], "many": (p["a"] * k,)}

    def f(a):
        shapes = {"sum": like(a), "many": (like(a),)}
        return fgrad.pure_callback(callback, shapes, {"a": a, "b": 1.0}, k=2)

    found = fgrad.jit(f)(X)
    np.testing.assert_array_equal(found["sum"], X + 1)
    np.testing.assert_array_equal(found["many"][0], X * 2)


@pytest.mark.parametrize("how", ["sequential", "expand_dims", "broadcast_all", "legacy_vectorized"])
@pytest.mark.parametrize("made", [lambda f: f, fgrad.jit])
def test_batches(how, made):
    many = np.stack([X, -X])
    shapes = []

    def callback(x, y):
        shapes.append((x.shape, y.shape))
        return np.sort(x) + y

    f = lambda x, y: fgrad.pure_callback(callback, like(x), x, y, vmap_method=how)  # noqa: E731
    found = made(fgrad.vmap(f, (0, None)))(many, np.ones(3))
    np.testing.assert_array_equal(found, np.sort(many, axis=1) + 1)
    wanted = {
        "sequential": [((3,), (3,))] * 2,
        "expand_dims": [((2, 3), (1, 3))],
        "broadcast_all": [((2, 3), (2, 3))],
        "legacy_vectorized": [((2, 3), (3,))],
    }
    assert shapes == wanted[how]


def test_batches_of_batches():
    many = np.arange(12.0).reshape(2, 2, 3)[:, :, ::-1]
    for how in ("sequential", "expand_dims"):
        nested = fgrad.vmap(fgrad.vmap(lambda x, how=how: in_order(x, vmap_method=how)))
        np.testing.assert_array_equal(nested(many), np.sort(many, axis=-1))


def test_a_rule_gives_it_a_derivative():
    total = lambda x: (doubled(x) ** 2).sum()  # noqa: E731
    for made in (fgrad.grad, lambda f: fgrad.jit(fgrad.grad(f)), lambda f: fgrad.grad(fgrad.jit(f))):
        np.testing.assert_array_equal(made(total)(X), 8 * X)
    np.testing.assert_array_equal(fgrad.hessian(total)(X), 8 * np.eye(3))
    np.testing.assert_array_equal(fgrad.vmap(fgrad.grad(lambda x: doubled(x) ** 2))(X), 8 * X)


def test_in_loops():
    f = fgrad.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: doubled(x), x))
    np.testing.assert_array_equal(f(X), 8 * X)
    np.testing.assert_array_equal(fgrad.grad(lambda x: f(x).sum())(X), 8 * np.ones(3))


def test_is_not_differentiated_without_a_rule():
    for made in (fgrad.grad, lambda f: lambda x: fgrad.jvp(f, (x,), (x,)), lambda f: fgrad.grad(fgrad.jit(f))):
        with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
            made(lambda x: in_order(x).sum())(X)
    stopped = fgrad.grad(lambda x: (x * in_order(fgrad.stop_gradient(x))).sum())(X)
    np.testing.assert_array_equal(stopped, np.sort(X))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fgrad.pure_callback(3, like(X), X), TypeError, "pure_callback expects a function"),
        (lambda: in_order(X, vmap_method="all"), ValueError, "vmap_method must be one of"),
        (lambda: fgrad.vmap(in_order)(X[None]), ValueError, "needs to be told what vmap makes of it"),
        (lambda: fgrad.pure_callback(lambda x: x[:1], like(X), X), ValueError, r"must have shape \(3,\), got \(1,\)"),
        (lambda: fgrad.pure_callback(lambda x: x > 0, like(X), X), TypeError, "must have dtype float64, got bool"),
        (lambda: fgrad.pure_callback(lambda x: (x, x), like(X), X), TypeError, "must have the tree"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_results_share_no_memory():
    kept = np.ones(3)
    found = fgrad.pure_callback(lambda x: kept, like(X), X)
    found[:] = 7
    assert kept.sum() == 3

"""What vjp and linearize return are pytrees of the arrays they saved: they cross jit, vmap and custom rules."""

import gc
import weakref

import numpy as np

import fgrad

X = np.array([0.5, -1.5, 2.0])


def f(x):
    return (np.sin(x) * x).sum()


def slope(x):
    return np.cos(x) * x + np.sin(x)


apply = fgrad.jit(lambda pull, ct: pull(ct)[0])


def test_into_jit():
    np.testing.assert_allclose(apply(fgrad.vjp(f, X)[1], 2.0), 2 * slope(X))


def test_into_jit_again_without_recording():
    apply.clear_cache()
    for k in range(1, 4):
        np.testing.assert_allclose(apply(fgrad.vjp(f, k * X)[1], 1.0), slope(k * X))
    assert apply.cache_info().misses == 1


def test_out_of_jit():
    both = fgrad.jit(lambda x: fgrad.vjp(f, x))
    for k in (1, 2):
        out, pull = both(k * X)
        np.testing.assert_allclose(out, f(k * X))
        np.testing.assert_allclose(pull(1.0)[0], slope(k * X))


def test_linear_functions_cross_jit():
    _, push = fgrad.jit(lambda x: fgrad.linearize(f, x))(X)
    np.testing.assert_allclose(push(X), slope(X) @ X)
    np.testing.assert_allclose(fgrad.jit(lambda push, t: push(t))(push, X), slope(X) @ X)


def test_pullbacks_of_many_examples():
    xs = np.stack([X, 2 * X])
    _, pulls = fgrad.vmap(lambda x: fgrad.vjp(f, x))(xs)
    np.testing.assert_allclose(fgrad.vmap(lambda pull: pull(1.0)[0])(pulls), slope(xs))


def test_pullback_as_residual():
    own = fgrad.custom_vjp(lambda x: f(x))
    own.defvjp(lambda x: fgrad.vjp(f, x), lambda pull, ct: pull(ct))
    for g in (
        fgrad.grad(own),
        fgrad.jit(fgrad.grad(own)),
        fgrad.grad(fgrad.jit(own)),
        fgrad.grad(fgrad.checkpoint(own)),
    ):
        np.testing.assert_allclose(g(X), slope(X))
    np.testing.assert_allclose(fgrad.vmap(fgrad.grad(own))(X[None]), slope(X)[None])


def test_leaves_are_what_is_saved_and_can_be_replaced():
    _, pull = fgrad.vjp(np.exp, X)
    np.testing.assert_array_equal(fgrad.tree.leaves(pull), [np.exp(X)])
    halved = fgrad.tree.map(lambda saved: saved / 2, pull)
    np.testing.assert_allclose(halved(X)[0], X * np.exp(X) / 2)
    np.testing.assert_allclose(pull(X)[0], X * np.exp(X))


def test_structures_hold_no_arrays():
    _, pull = fgrad.vjp(np.exp, X)
    (saved,) = fgrad.tree.leaves(pull)
    ref = weakref.ref(saved)
    structure = fgrad.tree.structure(pull)
    del pull, saved
    gc.collect()
    assert ref() is None
    assert structure == fgrad.tree.structure(fgrad.vjp(np.exp, 2 * X)[1])
    assert structure != fgrad.tree.structure(fgrad.vjp(np.sin, X)[1])

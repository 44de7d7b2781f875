"""Iterative solvers find the solution, and differentiate as the dense solver does."""

import numpy as np
import pytest

import fgrad
from fgrad.scipy.sparse.linalg import bicgstab, cg

RANDOM = np.random.default_rng(0)
G = RANDOM.standard_normal((6, 6))
SYMMETRIC = G @ G.T + 6 * np.eye(6)
GENERAL = G + 6 * np.eye(6)
B = RANDOM.standard_normal(6)
CASES = [pytest.param(cg, SYMMETRIC, id="cg"), pytest.param(bicgstab, GENERAL, id="bicgstab")]


def tight(method, a, b, **options):
    return method(a, b, tol=1e-13, **options)[0]


@pytest.mark.parametrize(("method", "a"), CASES)
def test_solves(method, a):
    exact = np.linalg.solve(a, B)
    jacobi = 1 / np.diag(a)
    for options in ({}, {"x0": B}, {"M": lambda r: jacobi * r}, {"M": np.diag(jacobi)}, {"x0": exact}):
        np.testing.assert_allclose(tight(method, a, B, **options), exact, rtol=1e-9)
        np.testing.assert_allclose(fgrad.jit(lambda b, o=options: tight(method, a, b, **o))(B), exact, rtol=1e-9)
    np.testing.assert_array_equal(method(a, 0 * B)[0], 0 * B)
    assert method(a, B)[1] is None
    many = fgrad.vmap(lambda b: tight(method, a, b))(np.stack([B, 2 * B, 0 * B]))
    np.testing.assert_allclose(many, np.stack([exact, 2 * exact, 0 * exact]), rtol=1e-9)


@pytest.mark.parametrize("made", [fgrad.jacfwd, fgrad.jacrev, fgrad.hessian], ids=lambda f: f.__name__)
@pytest.mark.parametrize(("method", "a"), CASES)
def test_derivatives(method, a, made):
    scaled = lambda s: s[:, None] * a * s  # noqa: E731
    s = np.linspace(0.9, 1.1, 6)
    ours = lambda s, b: tight(method, scaled(s), b, M=lambda r: r / np.diag(a))  # noqa: E731
    exact = lambda s, b: np.linalg.solve(scaled(s), b)  # noqa: E731
    found, wanted = (fgrad.tree.leaves(made(f, (0, 1))(s, B)) for f in (ours, exact))
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)


def test_systems_of_trees():
    def product(x):
        return {"u": 3 * x["u"] + x["v"], "v": 2 * x["v"] + x["u"]}

    b = {"u": np.array([1.0, 2.0]), "v": np.zeros(2)}
    x = tight(cg, product, b)
    back = product(x)
    np.testing.assert_allclose(back["u"], b["u"], rtol=1e-12)
    np.testing.assert_allclose(back["v"], 0, atol=1e-12)
    by_u = fgrad.grad(lambda u: tight(cg, product, {"u": u, "v": b["v"]})["v"].sum())(b["u"])
    np.testing.assert_allclose(by_u, [-0.2, -0.2], rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize(("method", "a"), CASES)
def test_keeps_dtypes(method, a, dtype):
    a, b = a.astype(dtype), B.astype(dtype)
    if dtype == "complex128":
        a = a + 0.5j * (G - G.T)
    x = method(a, b, tol=1e-6)[0]
    assert x.dtype == dtype
    np.testing.assert_allclose(a @ x, b, atol=1e-4)


def test_stops_after_so_many_steps():
    x, _ = cg(SYMMETRIC, B, maxiter=1)
    assert 0 < np.linalg.norm(SYMMETRIC @ x - B) < np.linalg.norm(B)
    np.testing.assert_array_equal(cg(SYMMETRIC, B, maxiter=0)[0], 0 * B)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cg(B, B), TypeError, "cg: A must be a square matrix or a function"),
        (lambda: cg(SYMMETRIC, B, M=3.0), TypeError, "cg: M must be a square matrix or a function"),
        (lambda: cg(SYMMETRIC, B, B[:2]), ValueError, "x0 must have the tree and shapes of b"),
        (lambda: cg(lambda x: x[:2], B), TypeError, "matvec: the carry must keep its shapes"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parity
@pytest.mark.parametrize(("name", "a"), [("cg", SYMMETRIC), ("bicgstab", GENERAL)])
def test_as_in_jax(name, a):
    jax = pytest.importorskip("jax")
    import jax.scipy.sparse.linalg as theirs

    import fgrad.scipy.sparse.linalg as ours

    with jax.enable_x64(True):
        run = lambda m, a, b: getattr(m, name)(a, b, tol=1e-12)[0]  # noqa: E731
        np.testing.assert_allclose(run(ours, a, B), run(theirs, a, B), rtol=1e-8)
        wanted = jax.jacrev(lambda b: run(theirs, a, b))(B)
        np.testing.assert_allclose(fgrad.jacrev(lambda b: run(ours, a, b))(B), wanted, rtol=1e-8, atol=1e-10)

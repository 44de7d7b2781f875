"""Solutions differentiate by the implicit function theorem: as the closed form does, under every transform."""

import numpy as np
import pytest

import fgrad
from fgrad import lax
from fgrad.check import check_grads

A = np.array([[3.0, 1.0], [0.5, 2.0]])
B = np.array([1.0, 2.0])


def by_matrix(matvec, b):
    return np.linalg.solve(fgrad.jacobian(matvec, holomorphic=b.dtype.kind == "c")(b), b)


def solved(a, b):
    return lax.custom_linear_solve(lambda x: a @ x, b, by_matrix, by_matrix)


def newton(f, x):
    def step(x):
        return x - f(x) / fgrad.jvp(f, (x,), (np.ones_like(x),))[1]

    return lax.while_loop(lambda x: np.any(np.abs(f(x)) > 1e-13), step, x)


def cube_root(a):
    return lax.custom_root(lambda x: x**3 - a, np.ones_like(a), newton, lambda g, y: y / g(np.ones_like(y)))


def cosine(a):
    return lax.fixed_point(lambda x: np.cos(a * x), 1.0)


SOLUTIONS = {
    "linear": (solved, np.linalg.solve, (A, B)),
    "root": (cube_root, np.cbrt, (np.array([1.0, 8.0, 2.0]),)),
    "fixed point": (
        lambda a: lax.fixed_point(lambda x, a: (x + a / x) / 2, np.ones(3), a),
        np.sqrt,
        (np.array([1.0, 4.0, 2.0]),),
    ),
}
TRANSFORMS = {
    "value": lambda f, n: f,
    "forward": lambda f, n: fgrad.jacfwd(f, n),
    "reverse": lambda f, n: fgrad.jacrev(f, n),
    "forward of forward": lambda f, n: fgrad.jacfwd(fgrad.jacfwd(f, n), n),
    "forward of reverse": lambda f, n: fgrad.jacfwd(fgrad.jacrev(f, n), n),
    "reverse of forward": lambda f, n: fgrad.jacrev(fgrad.jacfwd(f, n), n),
    "reverse of reverse": lambda f, n: fgrad.jacrev(fgrad.jacrev(f, n), n),
    "jit": lambda f, n: fgrad.jit(f),
    "reverse of jit": lambda f, n: fgrad.jacrev(fgrad.jit(f), n),
    "jit of reverse": lambda f, n: fgrad.jit(fgrad.jacrev(f, n)),
    "jit of hessian": lambda f, n: fgrad.jit(fgrad.hessian(f, n)),
    "checkpoint": lambda f, n: fgrad.jacrev(fgrad.checkpoint(f), n),
}


@pytest.mark.parametrize("how", TRANSFORMS)
@pytest.mark.parametrize("what", SOLUTIONS)
def test_derivatives_are_those_of_the_closed_form(what, how):
    ours, exact, args = SOLUTIONS[what]
    numbers = tuple(range(len(args)))
    found, wanted = (fgrad.tree.leaves(TRANSFORMS[how](f, numbers)(*args)) for f in (ours, exact))
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("mode", ["value", "forward", "reverse"])
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_systems_under_vmap(axes, mode):
    args = [np.stack([x, 2 * x, x + 0.1]) if a == 0 else x for x, a in zip((A, B), axes, strict=True)]
    made = {
        "value": lambda f: f,
        "forward": lambda f: fgrad.jacfwd(f, (0, 1)),
        "reverse": lambda f: fgrad.jacrev(f, (0, 1)),
    }
    found, wanted = (fgrad.vmap(made[mode](f), axes)(*args) for f in (solved, np.linalg.solve))
    fgrad.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-12), found, wanted)


@pytest.mark.parametrize("fun", [cube_root, lambda a: lax.fixed_point(lambda x: (x + a / x) / 2, 1.0)])
def test_roots_under_vmap(fun):
    a = np.array([0.5, 1.0, 9.0])
    for made in (fun, fgrad.grad(fun), fgrad.grad(fgrad.grad(fun)), fgrad.jit(fgrad.grad(fun))):
        np.testing.assert_allclose(fgrad.vmap(made)(a), [made(x) for x in a], rtol=1e-9)


def test_what_the_solver_does_is_not_differentiated():
    def with_noise(a):
        return lax.custom_root(lambda x: x - a, 0.0, lambda f, x: x - f(x) + 0 * a**2, lambda g, y: y / g(1.0))

    assert fgrad.grad(with_noise)(3.0) == 1.0

    def scaled(a, c):
        return lax.custom_linear_solve(lambda x: a * x, 6.0, lambda m, b: b / m(1.0) + 0 * c, symmetric=True)

    assert fgrad.grad(scaled, (0, 1))(2.0, 1.0) == (-1.5, 0.0)
    assert fgrad.jvp(lambda c: scaled(2.0, c), (1.0,), (1.0,)) == (3.0, 0.0)


def test_systems_of_trees():
    def solve(matvec, b):
        return {"u": b["u"] / matvec({"u": 1.0, "v": np.zeros(2)})["u"], "v": b["v"] / 3.0}

    def fun(a, b):
        return lax.custom_linear_solve(lambda x: {"u": a * x["u"], "v": 3.0 * x["v"]}, b, solve, symmetric=True)

    b = {"u": 2.0, "v": np.array([3.0, 6.0])}
    check_grads(fun, (4.0, b), order=2)
    by_u = fgrad.grad(lambda u: fun(4.0, {"u": u, "v": b["v"]})["u"])
    assert by_u(2.0) == 0.25


def test_roots_of_trees_with_aux():
    def solve(f, x):
        return {"p": x["p"] - f(x)["p"], "q": x["q"] - f(x)["q"]}, 7

    def fun(a):
        return lax.custom_root(
            lambda x: {"p": x["p"] - a, "q": x["q"] - a**2 * np.ones(2)},
            {"p": 0.0, "q": np.zeros(2)},
            solve,
            lambda g, y: y,
            has_aux=True,
        )

    (x, steps), (t, _) = fgrad.jvp(fun, (3.0,), (1.0,))
    assert (x["p"], steps, t["p"], t["q"].tolist()) == (3.0, 7, 1.0, [6.0, 6.0])
    assert fgrad.grad(lambda a: fun(a)[0]["q"].sum())(3.0) == 12.0


def test_systems_with_aux():
    def fun(a, b):
        return lax.custom_linear_solve(
            lambda x: a * x, b, lambda m, b: (b / m(1.0), {"steps": 3, "size": b * 2}), symmetric=True, has_aux=True
        )

    x, aux = fun(2.0, 6.0)
    assert (x, aux["steps"], aux["size"]) == (3.0, 3, 12.0)
    assert fgrad.grad(lambda a: fun(a, 6.0)[0])(2.0) == -1.5
    assert fgrad.grad(lambda b: fun(2.0, b)[1]["size"])(6.0) == 0.0
    out, tangent = fgrad.jvp(lambda b: fun(2.0, b)[0], (6.0,), (1.0,))
    assert (out, tangent) == (3.0, 0.5)


def test_the_transpose_is_solved_for_the_transpose():
    seen = []

    def note(name):
        def solve(matvec, b):
            seen.append((name, fgrad.jacobian(matvec)(b).shape))
            return by_matrix(matvec, b)

        return solve

    upper = np.array([[2.0, 1.0], [0.0, 1.0]])
    fun = lambda b: lax.custom_linear_solve(lambda x: upper @ x, b, note("direct"), note("transpose"))  # noqa: E731
    np.testing.assert_allclose(fgrad.vjp(fun, B)[1](B)[0], np.linalg.solve(upper.T, B))
    assert {name for name, _ in seen} == {"direct", "transpose"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_keeps_dtypes(dtype):
    a, b = A.astype(dtype), B.astype(dtype)
    assert solved(a, b).dtype == dtype
    assert fgrad.jacrev(solved)(a, b).dtype == dtype
    x = lax.fixed_point(lambda x: np.cos(x), b)
    assert x.dtype == dtype
    np.testing.assert_allclose(x, 0.7390851332151607, rtol=1e-5 if dtype == "float32" else 1e-11)


def test_complex_systems():
    a, b = A + 1j * A.T, B - 0.5j
    found, wanted = (fgrad.jacrev(f, (0, 1), holomorphic=True)(a, b) for f in (solved, np.linalg.solve))
    fgrad.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-12), found, wanted)


def test_systems_of_nothing():
    empty = np.zeros(0)
    fun = lambda b: lax.custom_linear_solve(lambda x: x, b, lambda m, b: b, symmetric=True)  # noqa: E731
    assert fun(empty).shape == fgrad.vjp(fun, empty)[1](empty)[0].shape == (0,)
    assert lax.fixed_point(lambda x: x, empty).shape == (0,)
    assert lax.fixed_point(lambda x: x, ()) == ()


def test_inside_loops_and_branches():
    def fun(a):
        return lax.scan(lambda c, _: (cube_root(c * a), cube_root(c)), a, None, length=3)

    exact = lambda a: lax.scan(lambda c, _: (np.cbrt(c * a), np.cbrt(c)), a, None, length=3)  # noqa: E731
    found, wanted = (fgrad.jacrev(f)(2.0) for f in (fun, exact))
    np.testing.assert_allclose(np.hstack(found), np.hstack(wanted), rtol=1e-10)
    branched = lambda a: lax.cond(a > 0, lambda a: solved(A * a, B).sum(), lambda a: a, a)  # noqa: E731
    np.testing.assert_allclose(fgrad.jit(fgrad.grad(branched))(2.0), -np.linalg.solve(A, B).sum() / 4)


def test_a_loop_that_does_not_settle():
    def fun(a):
        return lax.fixed_point(lambda x: a * x + 1, 1.0, max_steps=50)

    with pytest.raises(RuntimeError, match="fixed_point: not converged within max_steps=50"):
        fun(2.0)
    with pytest.raises(RuntimeError, match="not converged"):
        fgrad.grad(fun)(2.0)
    assert np.isnan(fgrad.jit(fun)(2.0))
    np.testing.assert_allclose(fgrad.vmap(fun)(np.array([0.5, 2.0])), [2.0, np.nan])
    with pytest.raises(RuntimeError, match="not converged within max_steps=0"):
        lax.fixed_point(lambda x: x, 1.0, max_steps=0)
    with pytest.raises(RuntimeError, match="not converged"):
        lax.fixed_point(lambda x: x * np.nan, 1.0)


def test_a_fixed_point_holds_memory_for_one_step():
    steps = []

    def f(x, a):
        steps.append(1)
        return np.cos(a * x)

    fgrad.grad(lambda a: lax.fixed_point(f, 1.0, a))(1.0)
    assert len(steps) < 10  # recorded a few times, and then run as Programs


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.custom_linear_solve(3, B, by_matrix), TypeError, "custom_linear_solve expects a function"),
        (lambda: lax.custom_linear_solve(lambda x: x[:1], B, by_matrix), TypeError, "matvec.*must keep its shapes"),
        (lambda: lax.custom_linear_solve(lambda x: (x, x), B, by_matrix), TypeError, "matvec.*must keep its tree"),
        (lambda: lax.custom_linear_solve(lambda x: x, B, lambda m, b: b[0]), TypeError, "solve.*must keep its shapes"),
        (
            lambda: lax.custom_linear_solve(lambda x: x, B, lambda m, b: b, has_aux=True),
            TypeError,
            r"must return a pair \(x, aux\)",
        ),
        (
            lambda: fgrad.vjp(lambda b: lax.custom_linear_solve(lambda x: A @ x, b, by_matrix), B)[1](B),
            TypeError,
            "transpose_solve required for backwards mode",
        ),
        (
            lambda: lax.custom_linear_solve(lambda x: x**2, B, lambda m, b: b, lambda m, b: b),
            TypeError,
            "not linear",
        ),
        (lambda: lax.custom_root(lambda x: x[:1], B, newton, newton), TypeError, "f: the carry must keep its shapes"),
        (lambda: lax.fixed_point(lambda x: x, 1), TypeError, "x0 must be real floating arrays, got int64"),
        (lambda: lax.fixed_point(lambda x: x, 1.0, tol=-1.0), ValueError, "must not be negative"),
        (lambda: lax.fixed_point(lambda x: x > 0, 1.0), TypeError, "must keep its shapes and dtypes"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()

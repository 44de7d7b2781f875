"""scan, cond, switch, while_loop, fori_loop and map: equal to their Python loops under every transform."""

import numpy as np
import pytest

import fgrad
from fgrad import lax

X = np.array([0.5, 1.0, 1.5])


def same_under_all_transforms(f, reference, x, reverse=True):
    """Check values and derivatives of `f` against `reference` eagerly, jitted and vmapped."""
    for wrap in (lambda g: g, fgrad.jit):
        np.testing.assert_allclose(wrap(f)(x), reference(x))
        np.testing.assert_allclose(wrap(fgrad.jacfwd(f))(x), fgrad.jacfwd(reference)(x))
        _, push = fgrad.linearize(wrap(f), x)
        np.testing.assert_allclose(push(np.ones_like(x)), fgrad.jvp(reference, (x,), (np.ones_like(x),))[1])
        if reverse:
            np.testing.assert_allclose(wrap(fgrad.jacrev(f))(x), fgrad.jacrev(reference)(x))
            np.testing.assert_allclose(wrap(fgrad.hessian(f))(x), fgrad.hessian(reference)(x), atol=1e-12)
    batch = np.stack([x, 2 * x, -x])
    np.testing.assert_allclose(fgrad.vmap(f)(batch), np.stack([reference(b) for b in batch]))
    if reverse:
        np.testing.assert_allclose(fgrad.vmap(fgrad.jacrev(f))(batch), [fgrad.jacrev(reference)(b) for b in batch])
        np.testing.assert_allclose(
            fgrad.jacrev(fgrad.vmap(f))(batch), fgrad.jacrev(lambda b: np.stack([reference(r) for r in b]))(batch)
        )


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_with_closure_carry_and_outputs(reverse):
    def by_scan(x):
        carry, ys = lax.scan(lambda c, v: (c * v + np.sin(x[0] * c), c * v), x[1], x, reverse=reverse)
        return np.concatenate([ys, carry.reshape(1)])

    def by_hand(x):
        c, ys = x[1], []
        order = range(2, -1, -1) if reverse else range(3)
        for i in order:
            ys.append(c * x[i])
            c = c * x[i] + np.sin(x[0] * c)
        return np.stack([*(ys[::-1] if reverse else ys), c])

    same_under_all_transforms(by_scan, by_hand, X)


def test_scan_of_pytrees_lengths_and_promotion():
    carry, ys = lax.scan(lambda c, x: ({"n": c["n"] + 1}, (x["a"], c["n"])), {"n": 0}, {"a": X})
    assert carry["n"] == 3 and ys[1].tolist() == [0, 1, 2]
    assert lax.scan(lambda c, _: (c * 2, None), 1, None, length=5)[0] == 32
    carry, ys = lax.scan(lambda c, x: (c + x, c), 0.0, np.zeros((0, 2)).sum(1))
    assert carry == 0 and ys.shape == (0,)
    carry, _ = lax.scan(lambda c, x: (c + x, None), 0, X.astype(np.float32))  # an int carry takes the step's dtype
    assert carry.dtype == np.float64 or carry.dtype == np.float32


def test_scan_errors():
    with pytest.raises(ValueError, match=r"one number of steps.*\[2, 3\]"):
        lax.scan(lambda c, x: (c, x), 0.0, (X, X[:2]))
    with pytest.raises(ValueError, match="one number of steps"):
        lax.scan(lambda c, x: (c, x), 0.0, None)
    with pytest.raises(TypeError, match=r"(?s)keep its shapes and dtypes.*float64\[\].*float64\[3\]"):
        lax.scan(lambda c, x: (c * X, x), np.array(1.0), X)
    with pytest.raises(TypeError, match="keep its tree"):
        lax.scan(lambda c, x: ((c, c), x), np.array(1.0), X)
    with pytest.raises(TypeError, match="pair"):
        lax.scan(lambda c, x: c, np.array(1.0), X)
    with pytest.raises(TypeError, match="expects a function"):
        lax.scan(3, 0.0, X)


def test_cond_takes_one_branch():
    def by_cond(x):
        return lax.cond(x.sum() > 0, lambda v: v * v * x[0], lambda v: np.sin(v), x)

    def by_hand(x):
        return x * x * x[0] if x.sum() > 0 else np.sin(x)

    same_under_all_transforms(by_cond, by_hand, X)
    same_under_all_transforms(by_cond, by_hand, -X)
    assert fgrad.grad(lambda x: lax.cond(x > 0, np.sqrt, lambda x: x, x))(-1.0) == 1.0
    assert fgrad.jit(fgrad.grad(lambda x: lax.cond(x > 0, np.sqrt, lambda x: x, x)))(-1.0) == 1.0


def test_cond_forms_and_errors():
    assert lax.cond(True, 2.0, lambda x: x, 3.0, lambda x: -x) == 2.0  # the old operand-first form
    assert lax.cond(0, lambda: 1.0, lambda: 2.0) == 2.0
    with pytest.raises(TypeError, match="bool or number scalar"):
        lax.cond(None, lambda: 1, lambda: 2)
    with pytest.raises(TypeError, match="bool or number scalar"):
        lax.cond(X > 0, lambda: 1, lambda: 2)
    with pytest.raises(TypeError, match="(?s)same shapes and dtypes.*int64.*float64"):
        lax.cond(True, lambda: 1.0, lambda: 1)
    with pytest.raises(TypeError, match="same tree"):
        lax.cond(True, lambda: (1.0,), lambda: 1.0)


def test_switch_clamps():
    branches = [np.sin, np.cos, lambda x: x * x]
    for index, expected in ((-5, np.sin(X)), (1, np.cos(X)), (9, X * X)):
        np.testing.assert_allclose(lax.switch(index, branches, X), expected)
        np.testing.assert_allclose(fgrad.jit(lambda i: lax.switch(i, branches, X))(index), expected)
    np.testing.assert_allclose(
        fgrad.vmap(lambda i, x: lax.switch(i, branches, x))(np.array([0, 1, 2]), X),
        [np.sin(X[0]), np.cos(X[1]), X[2] ** 2],
    )
    np.testing.assert_allclose(
        fgrad.vmap(fgrad.grad(lambda x, i: lax.switch(i, branches, x)))(X, np.array([0, 1, 2])),
        [np.cos(X[0]), -np.sin(X[1]), 2 * X[2]],
    )
    assert lax.switch(0, [lambda: 7])() == 7 if callable(lax.switch(0, [lambda: 7])) else True
    with pytest.raises(ValueError, match="at least one branch"):
        lax.switch(0, [])
    with pytest.raises(TypeError, match="integer scalar"):
        lax.switch(0.5, branches, X)


def test_while_loop_forward_and_vmapped():
    def by_while(x):
        return lax.while_loop(lambda s: (s * s).sum() < 100.0, lambda s: s * (1.5 + x[0] * x[0]), x)

    def by_hand(x):
        s = x
        while (s * s).sum() < 100.0:
            s = s * (1.5 + x[0] * x[0])
        return s

    same_under_all_transforms(by_while, by_hand, X, reverse=False)
    with pytest.raises(ValueError, match="(?s)reverse mode.*bound.*fori_loop"):
        fgrad.grad(lambda x: by_while(x).sum())(X)
    with pytest.raises(TypeError, match="bool scalar"):
        lax.while_loop(lambda s: s, lambda s: s, X)


def test_fori_loop():
    def by_fori(x):
        return lax.fori_loop(1, 4, lambda i, s: s * x[0] + i, x)

    def by_hand(x):
        s = x
        for i in range(1, 4):
            s = s * x[0] + i
        return s

    same_under_all_transforms(by_fori, by_hand, X)
    np.testing.assert_array_equal(lax.fori_loop(4, 1, lambda i, s: s * 0, X), X)
    np.testing.assert_array_equal(fgrad.jit(lambda n: lax.fori_loop(0, n, lambda i, s: s * 2, X))(3), 8 * X)
    with pytest.raises(TypeError, match="integer scalars"):
        lax.fori_loop(0.0, 3, lambda i, s: s, X)


def test_map_one_by_one_and_in_batches():
    same_under_all_transforms(lambda x: lax.map(lambda v: v * v * x[0], x), lambda x: x * x * x[0], X)
    for size in (1, 2, 3, 5):
        np.testing.assert_array_equal(lax.map(lambda v: v * v, X, batch_size=size), X * X)


def test_disable_jit_runs_bodies_in_python():
    seen = []
    with fgrad.disable_jit():
        carry, ys = lax.scan(lambda c, x: (seen.append(type(c)) or c + x, c), 0.0, X)
        assert lax.while_loop(lambda s: s < 10, lambda s: s * 2, 1.0) == 16.0
        assert lax.cond(True, lambda: 1.0, lambda: 2.0) == 1.0
    assert carry == 3.0 and all(issubclass(t, float) for t in seen)
    np.testing.assert_array_equal(ys, [0.0, 0.5, 1.5])


def test_residuals_that_do_not_change_are_not_stacked():
    w = np.ones((50, 50))
    program = fgrad.make_ir(
        fgrad.grad(lambda w: lax.scan(lambda c, x: (np.tanh(w @ c), None), w[0], None, length=9)[0].sum())
    )(w)
    forward = next(eq for eq in program.equations if eq.prim.name == "scan")
    stacked = [v.type.shape for v in forward.outputs if v.type.shape[:1] == (9,)]
    assert stacked and all(np.prod(shape) <= 9 * 50 for shape in stacked)


@pytest.mark.parametrize("max_steps", [6, 7, 9, 20])
def test_while_loop_with_a_bound_has_reverse_mode(max_steps):
    def bounded(x):
        return lax.while_loop(
            lambda s: (s * s).sum() < 100.0, lambda s: s * (1.5 + x[0] * x[0]), x, max_steps=max_steps
        )

    def by_hand(x):
        s = x
        while (s * s).sum() < 100.0:
            s = s * (1.5 + x[0] * x[0])
        return s

    same_under_all_transforms(bounded, by_hand, X)


def test_a_bound_that_is_too_small_is_loud():
    def f(x):
        return lax.while_loop(lambda s: s < 100.0, lambda s: 2 * s, x, max_steps=3)

    with pytest.raises(ValueError, match="still holds after max_steps=3"):
        f(1.0)
    with pytest.raises(ValueError, match="still holds after max_steps=3"):
        fgrad.grad(f)(1.0)
    assert np.isnan(fgrad.jit(f)(1.0)) and np.isnan(fgrad.jit(fgrad.grad(f))(1.0))
    with pytest.raises(ValueError, match="must not be negative"):
        lax.while_loop(lambda s: s < 1, lambda s: s, 0.0, max_steps=-1)
    assert lax.while_loop(lambda s: s < 1, lambda s: s, 2.0, max_steps=0) == 2.0


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n, reverse):
    x = np.linspace(0.5, 2.0, 2 * n).reshape(2, n)
    order = slice(None, None, -1 if reverse else 1)
    expected = np.cumprod(x[:, order], axis=1)[:, order]
    np.testing.assert_allclose(lax.associative_scan(np.multiply, x, reverse=reverse, axis=-1), expected)
    product = lambda x: lax.associative_scan(np.multiply, x, reverse, 1)  # noqa: E731
    reference = lambda x: np.cumprod(x[:, order], axis=1)[:, order]  # noqa: E731
    np.testing.assert_allclose(fgrad.jit(fgrad.jacrev(product))(x), fgrad.jacrev(reference)(x))


def test_associative_scan_of_trees_that_do_not_commute():
    def compose(f, g):  # x -> a x + b, g after f
        return {"a": f["a"] * g["a"], "b": g["a"] * f["b"] + g["b"]}

    a, b = np.array([2.0, 3.0, 0.5, -1.0, 4.0]), np.arange(5.0)
    out = lax.associative_scan(compose, {"a": a, "b": b})
    x, states = 1.0, []
    for k in range(5):
        x = a[k] * x + b[k]
        states.append(x)
    np.testing.assert_allclose(out["a"] * 1.0 + out["b"], states)
    backwards = lax.associative_scan(compose, {"a": a, "b": b}, reverse=True)  # as if the elements stood in that order
    turned = lax.associative_scan(compose, {"a": a[::-1], "b": b[::-1]})
    np.testing.assert_allclose(backwards["b"], turned["b"][::-1])
    with pytest.raises(ValueError, match=r"sizes \[3, 5\]"):
        lax.associative_scan(compose, {"a": a, "b": b[:3]})
    with pytest.raises(ValueError, match="axis 1 is out of range"):
        lax.associative_scan(np.add, a, axis=1)

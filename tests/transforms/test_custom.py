"""custom_jvp, custom_vjp, custom_gradient: the rule is used everywhere, and wrong rules are named."""

import numpy as np
import pytest

import fgrad
from fgrad.errors import UnexpectedTracerError

X = np.array([0.5, 1.0, 1.5])


@fgrad.custom_jvp
def scaled(x):
    return np.sin(x)


@scaled.defjvp
def _scaled_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return scaled(x), t * 7.0 * x


@fgrad.custom_vjp
def product(x, y):
    return np.sin(x) * y


product.defvjp(lambda x, y: (product(x, y), (x, y)), lambda res, ct: (ct * 5.0 * res[0], ct * res[1]))


def test_outside_transforms_the_function_is_called():
    np.testing.assert_array_equal(scaled(X), np.sin(X))
    assert product(2.0, 3.0) == np.sin(2.0) * 3.0


def test_custom_jvp_under_all_transforms():
    total = lambda x: scaled(x).sum()  # noqa: E731
    for gradient in (
        fgrad.grad(total),
        fgrad.jit(fgrad.grad(total)),
        fgrad.grad(fgrad.jit(total)),
        fgrad.grad(fgrad.checkpoint(total)),
        fgrad.vmap(fgrad.grad(scaled)),
        fgrad.grad(lambda x: fgrad.vmap(scaled)(x).sum()),
        fgrad.grad(lambda x: fgrad.jit(fgrad.vmap(fgrad.jit(scaled)))(x).sum()),
        fgrad.grad(lambda x: fgrad.lax.map(scaled, x).sum()),
        lambda x: fgrad.jvp(scaled, (x,), (np.ones(3),))[1],
        lambda x: fgrad.linearize(scaled, x)[1](np.ones(3)),
        lambda x: np.diag(fgrad.jacfwd(scaled)(x)),
    ):
        np.testing.assert_allclose(gradient(X), 7 * X)
    assert fgrad.grad(fgrad.grad(scaled))(2.0) == 7.0
    assert fgrad.grad(fgrad.grad(fgrad.jit(scaled)))(2.0) == 7.0


def test_custom_vjp_under_all_transforms():
    total = lambda x: product(x, x).sum()  # noqa: E731
    for gradient in (
        fgrad.grad(total),
        fgrad.jit(fgrad.grad(total)),
        fgrad.grad(fgrad.jit(total)),
        fgrad.grad(fgrad.checkpoint(total)),
        fgrad.vmap(fgrad.grad(lambda x: product(x, x))),
        fgrad.grad(lambda x: fgrad.vmap(product)(x, x).sum()),
        fgrad.grad(lambda x: fgrad.lax.map(lambda v: product(v, v), x).sum()),
        lambda x: fgrad.jvp(lambda v: product(v, v), (x,), (np.ones(3),))[1],
        lambda x: fgrad.linearize(lambda v: product(v, v), x)[1](np.ones(3)),
    ):
        np.testing.assert_allclose(gradient(X), 6 * X)
    np.testing.assert_allclose(fgrad.grad(lambda y: fgrad.vmap(product, (0, None))(X, y).sum())(2.0), 6.0)
    assert fgrad.grad(fgrad.grad(lambda x: product(x, x)))(2.0) == 6.0


def test_nondiff_arguments_keywords_and_defaults():
    @fgrad.custom_vjp
    def apply(x, y=2.0):
        return x * y

    apply.defvjp(lambda x, y=2.0: (x * y, y), lambda y, ct: (ct * y * 10, None))
    assert fgrad.grad(apply)(3.0) == 20.0
    assert fgrad.grad(lambda x: apply(y=3.0, x=x))(1.0) == 30.0
    assert fgrad.grad(apply, 1)(3.0, 4.0) == 0.0

    power = fgrad.custom_jvp(lambda f, x: f(x), nondiff_argnums=(0,))
    power.defjvp(lambda f, primals, tangents: (f(primals[0]), 3 * tangents[0]))
    assert fgrad.grad(lambda x: power(np.exp, x))(1.0) == 3.0


def test_defjvps_and_pytrees():
    @fgrad.custom_jvp
    def f(d, y):
        return {"out": d["a"] * y}

    f.defjvps(lambda t, ans, d, y: {"out": t["a"] * 100.0}, None)
    gradient = fgrad.grad(lambda a: f({"a": a}, 2.0)["out"])(3.0)
    assert gradient == 100.0


def test_residuals_may_be_anything():
    @fgrad.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(
        lambda x: (x * 2, {"name": "tag", "x": x, "n": 3}),
        lambda res, ct: [ct * res["n"]] if res["name"] == "tag" else 0,
    )
    assert fgrad.grad(f)(1.0) == 3.0
    assert fgrad.jit(fgrad.grad(f))(1.0) == 3.0


def test_custom_gradient():
    @fgrad.custom_gradient
    def square(x):
        return x * x, lambda ct: 10.0 * ct * x

    for gradient in (fgrad.grad(square), fgrad.jit(fgrad.grad(square)), fgrad.grad(fgrad.jit(square))):
        assert gradient(3.0) == 30.0
    np.testing.assert_allclose(fgrad.vmap(fgrad.grad(square))(X), 10 * X)


def test_forward_mode_needs_a_linear_pullback():
    @fgrad.custom_vjp
    def clipped(x):
        return x * 1.0

    clipped.defvjp(lambda x: (x * 1.0, None), lambda res, ct: (np.tanh(ct),))
    np.testing.assert_allclose(fgrad.grad(lambda x: (clipped(x) * 5).sum())(X), np.tanh(5.0) * np.ones(3))
    with pytest.raises(TypeError, match="(?s)linear in the cotangent.*custom_jvp"):
        fgrad.jvp(clipped, (X,), (X,))


def test_missing_and_wrong_rules_are_named():
    bare = fgrad.custom_jvp(lambda x: x)
    with pytest.raises(AttributeError, match="no JVP defined"):
        fgrad.grad(bare)(1.0)
    with pytest.raises(AttributeError, match="no VJP defined"):
        fgrad.grad(fgrad.custom_vjp(lambda x: x))(1.0)

    wrong = fgrad.custom_jvp(lambda x: x * 2)
    wrong.defjvp(lambda p, t: (p[0] * 2, (t[0], t[0])))
    with pytest.raises(TypeError, match="tangent with the tree of the output"):
        fgrad.grad(wrong)(1.0)
    wrong.defjvp(lambda p, t: (p[0] * 2, t[0].sum()))
    with pytest.raises(TypeError, match=r"type of the output.*float64\[3\]"):
        fgrad.grad(lambda x: wrong(x).sum())(X)

    short = fgrad.custom_vjp(lambda x, y: x * y)
    short.defvjp(lambda x, y: (x * y, None), lambda res, ct: (ct,))
    with pytest.raises(TypeError, match="each of 2 arguments, got 1"):
        fgrad.grad(short)(1.0, 2.0)
    shaped = fgrad.custom_vjp(lambda x: x.sum())
    shaped.defvjp(lambda x: (x.sum(), None), lambda res, ct: (ct,))
    with pytest.raises(ValueError, match=r"output of the backward function.*float64\[3\]"):
        fgrad.grad(shaped)(X)


def test_closing_over_what_is_differentiated_raises():
    def f(x):
        inner = fgrad.custom_vjp(lambda y: y * x)
        inner.defvjp(lambda y: (y * x, None), lambda res, ct: (ct,))
        return inner(x)

    with pytest.raises(UnexpectedTracerError):
        fgrad.grad(f)(1.0)

    def allowed(x):  # closing over a jit tracer, differentiated inside
        inner = fgrad.custom_vjp(lambda y: y * x)
        inner.defvjp(lambda y: (y * x, None), lambda res, ct: (ct * x,))
        return fgrad.grad(inner)(2.0)

    assert fgrad.jit(allowed)(3.0) == 3.0
    assert fgrad.vmap(allowed)(X).tolist() == X.tolist()


def test_a_rule_may_return_its_residual_and_stay_private():
    f = fgrad.custom_vjp(lambda x: x * 1.0)
    f.defvjp(lambda x: (x * 1.0, x), lambda x, ct: (x,))
    _, pull = fgrad.vjp(f, X)
    first = pull(np.ones(3))[0]
    first[:] = 99
    np.testing.assert_array_equal(pull(np.ones(3))[0], X)

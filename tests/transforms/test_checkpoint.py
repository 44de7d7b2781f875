"""checkpoint: same values and derivatives, fewer saved values, as the policy says."""

import numpy as np
import pytest

import fgrad
from fgrad import checkpoint_policies as policies

X = np.array([0.5, 1.0, 1.5])


def body(x):
    y = fgrad.checkpoint_name(np.sin(x), "inner")
    return np.sin(np.tanh(y) * x)


ALL = {
    "default": None,
    "everything": policies.everything_saveable,
    "nothing": policies.nothing_saveable,
    "dots": policies.dots_saveable,
    "names": policies.save_only_these_names("inner"),
    "but": policies.save_anything_except_these_names("inner"),
}


@pytest.mark.parametrize("policy", ALL.values(), ids=ALL.keys())
def test_same_derivatives(policy):
    f = fgrad.checkpoint(body, policy=policy)
    total, plain = (lambda g: lambda x: g(x).sum())(f), lambda x: body(x).sum()
    np.testing.assert_array_equal(f(X), body(X))
    np.testing.assert_allclose(fgrad.grad(total)(X), fgrad.grad(plain)(X))
    np.testing.assert_allclose(fgrad.jit(fgrad.grad(total))(X), fgrad.grad(plain)(X))
    np.testing.assert_allclose(fgrad.grad(fgrad.jit(total))(X), fgrad.grad(plain)(X))
    np.testing.assert_allclose(fgrad.hessian(total)(X), fgrad.hessian(plain)(X), atol=1e-12)
    np.testing.assert_allclose(fgrad.jvp(f, (X,), (X,))[1], fgrad.jvp(body, (X,), (X,))[1])
    np.testing.assert_allclose(fgrad.vmap(fgrad.grad(f))(X), fgrad.vmap(fgrad.grad(body))(X))
    np.testing.assert_allclose(fgrad.linearize(f, X)[1](X), fgrad.jvp(body, (X,), (X,))[1])
    looped = lambda x: fgrad.lax.scan(lambda c, v: (f(c) * v, None), x[0], x)[0]  # noqa: E731
    reference = lambda x: fgrad.lax.scan(lambda c, v: (body(c) * v, None), x[0], x)[0]  # noqa: E731
    np.testing.assert_allclose(fgrad.grad(looped)(X), fgrad.grad(reference)(X))


def saved_count(policy):
    _, pull = fgrad.vjp(fgrad.checkpoint(body, policy=policy), X)
    return sum(len(node.saved) for node in pull._order)


def test_policies_decide_what_is_kept():
    assert saved_count(None) == saved_count(policies.nothing_saveable) == 1  # the argument alone
    assert saved_count(policies.save_only_these_names("inner")) == 2
    assert saved_count(policies.everything_saveable) > saved_count(policies.save_only_these_names("inner"))


def test_closures_trees_and_statics():
    def loss(w):
        return fgrad.checkpoint(lambda d, n: {"y": np.sin(d["x"] * w) ** n}, static_argnums=1)({"x": X}, 2)["y"].sum()

    np.testing.assert_allclose(fgrad.grad(loss)(2.0), fgrad.grad(lambda w: (np.sin(X * w) ** 2).sum())(2.0))
    with pytest.raises(TypeError, match="expects a function"):
        fgrad.checkpoint(3)


@pytest.mark.parametrize("shape", [(50, 40), (600, 400)])  # straight-line code, and tiles
def test_jit_computes_again_what_a_checkpoint_does_not_keep(shape):
    def block(x):
        for k in range(4):
            x = np.tanh(x) * (1 + 0.1 * k)
        return x

    def loss(f, x):
        return f(f(f(x))).sum()

    x = np.random.default_rng(0).normal(size=shape)
    plain = fgrad.jit(fgrad.grad(lambda x: loss(block, x)))
    again = fgrad.jit(fgrad.grad(lambda x: loss(fgrad.checkpoint(block), x)))
    np.testing.assert_array_equal(again(x), plain(x))
    counts = [sum(eq.prim.name == "tanh" for eq in f.lower(x).simplified.equations) for f in (plain, again)]
    assert counts == [12, 20]  # nobody asks for the value, so the last block runs in the backward pass alone
    held = [f.lower(x).arena_bytes for f in (plain, again)]
    assert held[1] < 0.75 * held[0]

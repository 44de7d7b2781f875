"""Any nesting of any transforms, to third order, gives what the mathematics gives.

The programs are sums of W_k exp(s_k B x). Every transform of such a function, derivatives included, is such a function
again, so the right answer to any nesting is known in closed form.
"""

import functools
import itertools

import numpy as np
import pytest

import fgrad
import fgrad.numpy

RNG = np.random.default_rng(0)
B = RNG.uniform(-1, 1, (4, 3))
W = RNG.uniform(-1, 1, (3, 4))
V = RNG.uniform(-1, 1, 3)
C = RNG.uniform(-1, 1, 3)
X = np.array([0.3, -0.7, 0.5])


class Exponentials:
    """Sum of W_k exp(s_k B x), as pairs (W_k, s_k): the reference."""

    def __init__(self, *terms):
        self.terms = terms

    def __call__(self, x):
        return sum(w @ np.exp(s * B @ x) for w, s in self.terms)

    def pushed(self, v):
        return Exponentials(*[(w * (s * B @ v), s) for w, s in self.terms])

    def pulled(self, c):
        return Exponentials(*[(B.T * (s * (c @ w)), s) for w, s in self.terms])

    def halved(self):
        """Return f(x) + f(x / 2)."""
        return Exponentials(*self.terms, *[(w, s / 2) for w, s in self.terms])


def program(x):
    return (W * np.exp(B @ x)).sum(axis=1)


def scanned(x):
    """The program, one row of B after another."""
    step = lambda total, row: (total + row[0] * np.exp(row[1] @ x), None)  # noqa: E731
    return fgrad.lax.scan(step, np.zeros(3), (W.T, B))[0]


def looped(x):
    row = lambda k, a: fgrad.numpy.take(a, k, axis=0)  # noqa: E731
    body = lambda k, total: total + row(k, W.T) * np.exp(row(k, B) @ x)  # noqa: E731
    return fgrad.lax.fori_loop(0, 4, body, np.zeros(3))


def branched(x):
    return fgrad.lax.cond(x[0] < 10, program, lambda x: x * x, x)


PROGRAMS = {"straight": program, "scan": scanned, "fori_loop": looped, "cond": branched}


def total(f):
    return lambda x: f(x).sum()


def with_own_jvp(f):
    own = fgrad.custom_jvp(lambda x: f(x))
    own.defjvp(lambda primals, tangents: fgrad.jvp(f, primals, tangents))
    return own


def with_own_vjp(f):
    own = fgrad.custom_vjp(lambda x: f(x))
    own.defvjp(lambda x: (f(x), x), lambda x, ct: fgrad.vjp(f, x)[1](ct))
    return own


def same(f):
    return f


def ones(f):
    return f.pulled(np.ones(3))


# name -> (the transform as a map of functions R³ → R³, the same map of the reference)
TRANSFORMS = {
    "grad": (lambda f: fgrad.grad(total(f)), ones),
    "value_and_grad": (lambda f: lambda x: fgrad.value_and_grad(total(f))(x)[1], ones),
    "vjp": (lambda f: lambda x: fgrad.vjp(f, x)[1](C)[0], lambda f: f.pulled(C)),
    "jvp": (lambda f: lambda x: fgrad.jvp(f, (x,), (V,))[1], lambda f: f.pushed(V)),
    "linearize": (lambda f: lambda x: fgrad.linearize(f, x)[1](V), lambda f: f.pushed(V)),
    "linear_transpose": (
        lambda f: lambda x: fgrad.linear_transpose(lambda t: fgrad.jvp(f, (x,), (t,))[1], x)(C)[0],
        lambda f: f.pulled(C),
    ),
    "jacfwd": (lambda f: lambda x: fgrad.jacfwd(f)(x) @ V, lambda f: f.pushed(V)),
    "jacrev": (lambda f: lambda x: C @ fgrad.jacrev(f)(x), lambda f: f.pulled(C)),
    "hvp": (
        lambda f: lambda x: fgrad.hvp(lambda y: (C * f(y)).sum(), (x,), (V,)),
        lambda f: f.pulled(C).pushed(V),
    ),
    "vmap": (lambda f: lambda x: fgrad.vmap(f)(np.stack([x, x / 2])).sum(axis=0), Exponentials.halved),
    "vmap last": (
        lambda f: lambda x: fgrad.vmap(f, in_axes=-1, out_axes=1)(np.stack([x, x / 2], axis=1)).sum(axis=1),
        Exponentials.halved,
    ),
    "jit": (fgrad.jit, same),
    "checkpoint": (fgrad.checkpoint, same),
    "custom_jvp": (with_own_jvp, same),
    "custom_vjp": (with_own_vjp, same),
}


def apply(names, f, which):
    """Apply transforms, the last name innermost."""
    return functools.reduce(lambda g, name: TRANSFORMS[name][which](g), reversed(names), f)


def check(names, start=program):
    want = apply(names, Exponentials((W, 1.0)), 1)(X)
    got = apply(names, start, 0)(X)
    assert isinstance(got, np.ndarray)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12, err_msg=" of ".join(names))


@pytest.mark.parametrize("start", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_one(name, start):
    check((name,), start)


@pytest.mark.parametrize("pair", list(itertools.product(TRANSFORMS, repeat=2)), ids=" of ".join)
def test_pair(pair):
    check(pair)


@pytest.mark.heavy
@pytest.mark.parametrize("start", [scanned, looped, branched], ids=lambda f: f.__name__)
@pytest.mark.parametrize("pair", list(itertools.product(TRANSFORMS, repeat=2)), ids=" of ".join)
def test_pair_on_control_flow(pair, start):
    check(pair, start)


@pytest.mark.heavy
@pytest.mark.parametrize("pair", list(itertools.product(TRANSFORMS, repeat=2)), ids=" of ".join)
def test_triples(pair):
    for name in TRANSFORMS:
        check((*pair, name))


def by_scan(step):
    return lambda x: fgrad.lax.scan(lambda c, _: (step(c), None), x, None, length=3)[0]


@pytest.mark.parametrize(
    "f",
    [
        by_scan(lambda c: c * c),
        by_scan(lambda c: c + 1.0),
        lambda x: fgrad.lax.scan(lambda c, _: (c + x, None), np.ones(3), None, length=3)[0],
        lambda x: fgrad.lax.cond(x.sum() < 0, lambda y: y, lambda y: 2 * y, x),
    ],
    ids="square affine offset predicate".split(),
)
def test_control_flow_that_is_not_linear_is_not_transposed(f):
    with pytest.raises(TypeError, match="not linear|traced"):
        fgrad.linear_transpose(f, X)(V)


def test_every_branch_must_be_linear():
    f = lambda p: fgrad.linear_transpose(lambda x: fgrad.lax.cond(p, lambda y: y, lambda y: y * y, x), X)(V)  # noqa: E731
    np.testing.assert_allclose(f(True)[0], V)
    with pytest.raises(TypeError, match="not linear"):
        fgrad.jit(f)(True)


def test_control_flow_that_is_linear_is_transposed():
    f = by_scan(lambda c: 2.0 * c + c[::-1])
    np.testing.assert_allclose(fgrad.linear_transpose(f, X)(V)[0], f(V))  # the step is symmetric
    g = lambda p: fgrad.linear_transpose(  # noqa: E731
        lambda x: fgrad.lax.cond(p, lambda y: 2 * y, lambda y: 3 * y[::-1], x), X
    )(V)[0]
    np.testing.assert_allclose(fgrad.jit(g)(False), 3 * V[::-1])
    np.testing.assert_allclose(g(True), 2 * V)

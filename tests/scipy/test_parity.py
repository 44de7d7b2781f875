"""`fgrad.scipy` against `jax.scipy`: the same names, signatures, values and derivatives."""

import importlib
import inspect

import numpy as np
import pytest

import fgrad
from fgrad.scipy import signal, special, stats
from tests.scipy.samples import CONTINUOUS, DISCRETE, ONE, TWO

pytestmark = pytest.mark.parity


NOT_IN_JAX = {
    *"j0 j1 y0 y1 k0 k1 psi rgamma log_expit erfcinv erfi exprel huber pseudo_huber".split(),
    *"lognorm weibull_min halfnorm halfcauchy rayleigh invgamma f skewnorm".split(),
}
ROUGH = {"beta", "betaln"}  # JAX's derivative, of its own formula for large arguments, is good to 1e-7


@pytest.fixture(scope="module")
def jax():
    module = pytest.importorskip("jax")
    for name in ("stats", "signal", "special"):
        importlib.import_module(f"jax.scipy.{name}")
    module.config.update("jax_disable_most_optimizations", True)  # compiles fast rather than to fast code
    with module.enable_x64(True):
        yield module
    module.config.update("jax_disable_most_optimizations", False)


def test_what_jax_lacks(jax):
    assert {n for n in [*ONE, *TWO] if not hasattr(jax.scipy.special, n)} <= NOT_IN_JAX
    assert not [n for n in NOT_IN_JAX if hasattr(jax.scipy.special, n) or hasattr(jax.scipy.stats, n)]


def derivative(library, f, args):
    """Return values of a function, and the gradient of their sum by all arguments."""
    places = tuple(range(len(args)))
    return f(*args), library.grad(lambda *xs: f(*xs).sum(), places)(*args)


def same(got, want, rtol=1e-8):
    for g, w in zip(fgrad.tree.leaves(got), fgrad.tree.leaves(want), strict=True):
        np.testing.assert_allclose(g, np.asarray(w), rtol=rtol, atol=1e-10)


@pytest.mark.parametrize("name", [n for n in [*ONE, *TWO] if n not in NOT_IN_JAX])
def test_special(jax, name):
    args = TWO[name] if name in TWO else (ONE[name],)
    pair = derivative(fgrad, getattr(special, name), args), derivative(jax, getattr(jax.scipy.special, name), args)
    if name == "spence":  # jax's derivative is NaN at 1.7
        pair = [(value, [np.delete(slope, 2) for slope in slopes]) for value, slopes in pair]
    same(*pair, rtol=1e-6 if name in ROUGH else 1e-8)


def inside(name):
    """Return points within the support, on whose edge and beyond JAX's derivatives are NaN."""
    if name in CONTINUOUS:
        return np.array([0.3, 0.6, 0.9]) if name in ("beta", "uniform") else np.array([1.2, 1.4, 3.1])
    return np.arange(1, 2 if name == "bernoulli" else 5)


@pytest.mark.parametrize("name", [n for n in [*CONTINUOUS, *DISCRETE] if n not in NOT_IN_JAX])
def test_densities(jax, name):
    points, function = inside(name), "logpdf" if name in CONTINUOUS else "logpmf"
    shapes = {**CONTINUOUS, **DISCRETE}[name]

    def of(library):
        return getattr(getattr(library, name), function)

    pair = [lambda *shapes, f=f: f(points, *shapes) for f in (of(stats), of(jax.scipy.stats))]
    same(pair[0](*shapes), pair[1](*shapes))
    if shapes:
        same(derivative(fgrad, pair[0], shapes), derivative(jax, pair[1], shapes))


@pytest.mark.parametrize("name", signal.__all__)
def test_signal_has_the_same_arguments(jax, name):
    theirs = inspect.signature(getattr(jax.scipy.signal, name)).parameters
    ours = inspect.signature(getattr(signal, name)).parameters
    assert [n for n in theirs if n not in ("precision", "overwrite_data")] == list(ours)

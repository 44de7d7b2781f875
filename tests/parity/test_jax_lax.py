"""The elementary operations of `fgrad.lax` against those of `jax.lax`: values, derivatives in both modes, batches."""

import functools

import numpy as np
import pytest

import fgrad
from fgrad import lax, tree
from tests.parity.jax_lax_rows import ROWS

pytestmark = pytest.mark.parity

CASES = [pytest.param(*case, id=f"{name}-{k}") for name, cases in ROWS.items() for k, case in enumerate(cases)]

# jax gives no derivative here at all
WITHOUT = {"igamma", "igammac", "zeta", "betainc", "nextafter", "polygamma"}


def same(ours, theirs):
    ours, theirs = tree.leaves(ours), tree.leaves(tuple(theirs) if isinstance(theirs, list) else theirs)
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        tolerance = 1e-6 if x.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=1e-12)


def inexact(args):
    return [k for k, x in enumerate(args) if x.dtype.kind == "f"]


def outputs(fun, m, args, ks, xs):
    """Return the floating outputs, of some inputs, as they are."""
    full = list(args)
    for k, x in zip(ks, xs, strict=True):
        full[k] = x
    return [y for y in tree.leaves(fun(m, *full)) if y.dtype.kind == "f"]


@pytest.mark.parametrize(("fun", "args"), CASES)
def test_values(fun, args, jax):
    wanted = fun(jax.lax, *args)
    for ours in (functools.partial(fun, lax), fgrad.jit(functools.partial(fun, lax))):
        same(ours(*args), wanted)


@pytest.mark.parametrize(("fun", "args"), CASES)
def test_derivatives(fun, args, jax, request):
    ks = inexact(args)
    ours, theirs = (functools.partial(lambda m, *xs: outputs(fun, m, args, ks, xs), m) for m in (lax, jax.lax))
    if not ks or not theirs(*[args[k] for k in ks]) or request.node.callspec.id.rpartition("-")[0] in WITHOUT:
        return
    xs = tuple(args[k] for k in ks)
    with_respect = tuple(range(len(ks)))
    wanted = jax.jit(jax.jacrev(theirs, with_respect))(*xs)
    same(fgrad.jacrev(ours, with_respect)(*xs), wanted)
    like = lambda x, y: np.asarray(x, y.dtype)  # noqa: E731 (forward mode gives the output's dtype, reverse the input's)
    same(tree.map(like, fgrad.jacfwd(ours, with_respect)(*xs), tree.map(np.asarray, wanted)), wanted)


@pytest.mark.parametrize(("fun", "args"), CASES)
def test_batches(fun, args, jax):
    if not args:
        return
    many = [np.stack([x, x]) for x in args]
    same(fgrad.vmap(functools.partial(fun, lax))(*many), jax.vmap(functools.partial(fun, jax.lax))(*many))

"""Draws have jax's dtypes and shapes by default, alone, jitted and mapped; their numbers are in tests/random."""

import numpy as np
import pytest

import fgrad

pytestmark = pytest.mark.parity

TABLE = np.arange(12.0).reshape(4, 3)

# How each name is called on a module and a key. Keys themselves are compared as raw data: PRNGKey makes those.
DRAWS = {
    "PRNGKey": lambda r, key: r.PRNGKey(3),
    "key": lambda r, key: key,
    "split": lambda r, key: r.split(key),
    "fold_in": lambda r, key: r.fold_in(key, 2),
    "bernoulli": lambda r, key: r.bernoulli(key),
    "bits": lambda r, key: r.bits(key, (2,)),
    "categorical": lambda r, key: r.categorical(key, TABLE),
    "choice": lambda r, key: r.choice(key, 5, (3,)),
    "permutation": lambda r, key: r.permutation(key, TABLE),
    "randint": lambda r, key: r.randint(key, (2, 3), 0, 9),
    "truncated_normal": lambda r, key: r.truncated_normal(key, -1.0, 1.0, (2,)),
    **{
        name: lambda r, key, name=name: (getattr(r, name)(key), getattr(r, name)(key, (2, 3)))
        for name in ("exponential", "gumbel", "laplace", "normal", "uniform")
    },
}


def types(jax, x):
    return [(np.shape(y), np.asarray(y).dtype) for y in jax.tree.leaves(x)]


@pytest.mark.parametrize("name", DRAWS)
def test_types_are_those_of_jax(name, jax):
    ours, theirs = [types(jax, everywhere(m, DRAWS[name])) for m in (fgrad, jax)]
    assert ours == theirs


def everywhere(m, draw):
    def f(key):
        return draw(m.random, key)

    keys = m.random.split(m.random.PRNGKey(1), 4)
    return f(keys[0]), m.jit(f)(keys[0]), m.vmap(f)(keys)


def test_every_name_is_compared():
    assert set(fgrad.random.__all__) == set(DRAWS)

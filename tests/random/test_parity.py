"""Equal keys draw what `jax.random` draws."""

import numpy as np
import pytest

from fgrad import random as r
from tests.random.draws import LOGITS, WEIGHTS

pytestmark = pytest.mark.parity


@pytest.fixture(scope="module")
def jr():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield jax.random


TABLE = np.arange(24.0).reshape(4, 6)

EXACT = {
    "key": lambda m, k: m.key_data(m.key(-7)) if hasattr(m, "key_data") else m.key(-7),
    "split": lambda m, k: m.split(k, (2, 3)),
    "fold_in": lambda m, k: m.fold_in(k, 9),
    **{f"bits {d}": lambda m, k, d=d: m.bits(k, (3, 40), d) for d in ("uint8", "uint16", "uint32", "uint64")},
    **{f"uniform {d}": lambda m, k, d=d: m.uniform(k, (200,), d) for d in ("float16", "float32", "float64")},
    "bernoulli": lambda m, k: m.bernoulli(k, 0.3, (200,)),
    "randint": lambda m, k: m.randint(k, (200,), -5, 10),
    "randint, wide": lambda m, k: m.randint(k, (200,), 0, 2**62 + 5),
    "randint, uint8": lambda m, k: m.randint(k, (200,), 0, 256, "uint8"),
    "randint, int32": lambda m, k: m.randint(k, (), -10, 7, "int32"),
    "randint, arrays": lambda m, k: m.randint(k, (2,), np.array([0, 5]), np.array([9, 5])),
    "permutation": lambda m, k: m.permutation(k, 1797),
    **{f"permutation along {a}": lambda m, k, a=a: m.permutation(k, TABLE, a) for a in (0, 1)},
    **{f"independent along {a}": lambda m, k, a=a: m.permutation(k, TABLE, a, independent=True) for a in (0, 1)},
    "choice": lambda m, k: m.choice(k, TABLE, (2, 3), axis=1),
    "choice of rows": lambda m, k: m.choice(k, TABLE, (2,), False),
    "choice by weight": lambda m, k: m.choice(k, TABLE, (9,), True, WEIGHTS),
    "choice by weight of rows": lambda m, k: m.choice(k, TABLE, (3,), False, WEIGHTS),
    "categorical": lambda m, k: m.categorical(k, LOGITS),
    "categorical of rows": lambda m, k: m.categorical(k, LOGITS, 0, (5, 3)),
    "categorical without replacement": lambda m, k: m.categorical(k, LOGITS, 1, (2, 2), False),
}


@pytest.mark.parametrize("seed", [0, 42])
@pytest.mark.parametrize("name", EXACT)
def test_same_numbers(name, seed, jr):
    draw = EXACT[name]
    ours, theirs = draw(r, r.key(seed)), np.asarray(draw(jr, jr.PRNGKey(seed)))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["normal", "exponential", "gumbel", "laplace", "uniform", "truncated_normal"])
def test_same_to_the_last_digits(name, dtype, jr):
    options = {"uniform": {"minval": -1, "maxval": 3.3}, "truncated_normal": {"lower": -1, "upper": 2}}.get(name, {})
    ours = getattr(r, name)(r.key(42), shape=(2_000,), dtype=dtype, **options)
    theirs = np.asarray(getattr(jr, name)(jr.PRNGKey(42), shape=(2_000,), dtype=dtype, **options))
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(
        ours, theirs, **({"rtol": 2e-5, "atol": 2e-6} if dtype == "float32" else {"rtol": 1e-12})
    )


def test_complex_normals(jr):
    np.testing.assert_allclose(r.normal(r.key(1), (50,), complex), np.asarray(jr.normal(jr.PRNGKey(1), (50,), complex)))

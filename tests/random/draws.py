"""Every public draw as a function of its key, for tests that hold of all of them."""

import numpy as np

from fgrad import random as r

LOGITS = np.array([[0.1, -0.4, 2.0], [-np.inf, 0.0, 0.3]])
WEIGHTS = np.array([0.1, 0.2, 0.0, 0.7])

EVERY = {
    "split": lambda key: r.split(key, 3),
    "fold_in": lambda key: r.fold_in(key, 7),
    "bits": lambda key: r.bits(key, (3,)),
    "bits of 8": lambda key: r.bits(key, (2, 3), "uint8"),
    "uniform": lambda key: r.uniform(key, (3,)),
    "uniform between": lambda key: r.uniform(key, (2, 3), "float32", -1, np.array([1.0, 2.0, 3.0])),
    "normal": lambda key: r.normal(key, (3,)),
    "normal of float16": lambda key: r.normal(key, (), "float16"),
    "normal, complex": lambda key: r.normal(key, (3,), complex),
    "bernoulli": lambda key: r.bernoulli(key, np.array([0.2, 0.5])),
    "randint": lambda key: r.randint(key, (4,), -3, 9),
    "randint, one": lambda key: r.randint(key, (), 0, 2**40),
    "randint between arrays": lambda key: r.randint(key, (2,), np.array([0, -4]), np.array([5, 9]), "int8"),
    "exponential": lambda key: r.exponential(key, (3,)),
    "gumbel": lambda key: r.gumbel(key, (3,), "float32"),
    "laplace": lambda key: r.laplace(key, (3,)),
    "truncated_normal": lambda key: r.truncated_normal(key, -1.0, np.array([0.5, 2.0])),
    "permutation": lambda key: r.permutation(key, 7),
    "permutation of rows": lambda key: r.permutation(key, np.arange(12.0).reshape(3, 4), axis=1),
    "permutation, independent": lambda key: r.permutation(key, np.arange(12.0).reshape(3, 4), 0, True),
    "choice": lambda key: r.choice(key, 5, (2, 2)),
    "choice without replacement": lambda key: r.choice(key, np.arange(12.0).reshape(3, 4), (2,), False, axis=1),
    "choice by weight": lambda key: r.choice(key, 4, (3,), p=WEIGHTS),
    "choice by weight without replacement": lambda key: r.choice(key, 4, (3,), False, WEIGHTS),
    "categorical": lambda key: r.categorical(key, LOGITS),
    "categorical of rows": lambda key: r.categorical(key, LOGITS, 0, (2, 3)),
    "categorical without replacement": lambda key: r.categorical(key, LOGITS, shape=(2, 2), replace=False),
}

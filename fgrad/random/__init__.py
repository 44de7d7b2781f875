"""Random numbers from keys: the same draw eager, jitted and batched, and the same as `jax.random`'s for the same key.

A key is an array, uint32[2]. It is used once: for one draw, or to make further keys by `split` or `fold_in`, which are
what to draw from then on. Drawing twice from one key gives the same numbers twice.

    >>> import fgrad
    >>> key, drawing = fgrad.random.split(fgrad.random.key(0))
    >>> fgrad.random.normal(drawing, (3,)).round(4)
    array([-1.4009,  1.4321,  0.6248])

Draws are constants under differentiation. Parameters of a distribution (`minval`, `lower`, …) may be traced and have
derivatives where the draw moves with them; normal(key) * scale + mean is a sample that moves with scale and mean.
Numbers made of bits by exact operations (bits, keys, integers, permutations) are the same on every platform, the others
to the last few digits.
"""

from fgrad.random.draws import (
    bernoulli,
    bits,
    exponential,
    gumbel,
    laplace,
    normal,
    randint,
    truncated_normal,
    uniform,
)
from fgrad.random.keys import PRNGKey, fold_in, key, split
from fgrad.random.orders import categorical, choice, permutation

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "choice",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "laplace",
    "normal",
    "permutation",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
]

"""Densities and probabilities of distributions under SciPy's names, with derivatives by points and parameters.

Example:
    >>> import numpy as np, fgrad
    >>> from fgrad.scipy import stats
    >>> data = np.array([1.0, 2.0, 6.0])
    >>> fgrad.grad(lambda mean: stats.norm.logpdf(data, mean, 2.0).sum())(1.0)
    array(1.5)
"""

from fgrad.scipy.stats import dirichlet, multinomial, multivariate_normal
from fgrad.scipy.stats.continuous import (
    beta,
    cauchy,
    chi2,
    expon,
    gamma,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    lognorm,
    norm,
    pareto,
    t,
    uniform,
    vonmises,
)
from fgrad.scipy.stats.discrete import bernoulli, betabinom, binom, geom, nbinom, poisson
from fgrad.scipy.stats.more_continuous import (
    f,
    gennorm,
    halfcauchy,
    halfnorm,
    invgamma,
    rayleigh,
    skewnorm,
    truncnorm,
    weibull_min,
    wrapcauchy,
)

__all__ = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "f",
    "gamma",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "halfcauchy",
    "halfnorm",
    "invgamma",
    "laplace",
    "logistic",
    "lognorm",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rayleigh",
    "skewnorm",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "weibull_min",
    "wrapcauchy",
]

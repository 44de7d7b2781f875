"""What distributions have in common: locations and scales, supports, and what follows from a few formulas.

A family is given by formulas for its standard form, of a point z and the shape parameters, that hold on its support.
As SciPy's, the functions give -inf, 0 or 1 outside of it, and NaN for parameters that are out of range. There the
derivative is 0.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad.ops import elementwise as e
from fgrad.scipy.functions import reals

Formula = Callable[..., Any]

# What each function gives below and above the support.
_BEYOND = {
    "logpdf": (-math.inf, -math.inf),
    "pdf": (0, 0),
    "logpmf": (-math.inf, -math.inf),
    "pmf": (0, 0),
    "cdf": (0, 1),
    "sf": (1, 0),
    "logcdf": (-math.inf, 0),
    "logsf": (0, -math.inf),
}


def _log(formula: Formula, complement: Formula) -> Formula:
    """Return the logarithm of a probability, of small ones as of those near 1."""

    def logarithm(*args: Any) -> Any:
        value = formula(*args)
        never = e.eq(value, 0)  # the logarithm is -inf there, and its derivative 0
        size = e.select(never, -math.inf, e.log(e.select(never, 1, value)))
        return e.select(e.lt(value, 0.5), size, e.log1p(-complement(*args)))

    return logarithm


def _exp(formula: Formula) -> Formula:
    return lambda *args: e.exp(formula(*args))


def _mirrored(formula: Formula) -> Formula:
    return lambda q, *shapes: formula(1 - q, *shapes)


# Where a family has no formula for the first, it is made of the others.
_DERIVED = (
    ("pdf", _exp, "logpdf"),
    ("pmf", _exp, "logpmf"),
    ("logcdf", _log, "cdf", "sf"),
    ("logsf", _log, "sf", "cdf"),
    ("isf", _mirrored, "ppf"),
)


def _positive(*shapes: Any) -> list[Any]:
    return [e.gt(x, 0) for x in shapes]


class Family:
    """A family of distributions: its formulas, and how its parameters are named.

    The support is a pair of bounds, which may depend on the shapes; then `inside` gives a point between them.
    `valid` lists conditions that the shape parameters meet; by default they are positive.
    """

    def __init__(
        self,
        name: str,
        shapes: str,
        doc: str,
        support: tuple[Any, Any] = (-math.inf, math.inf),
        valid: Formula = _positive,
        inside: Formula | None = None,
        **formulas: Formula,
    ):
        self.__doc__ = doc
        self._name = name
        self._support = support
        self._valid = valid
        self._inside = inside
        self._formulas = formulas
        for derived, rule, *given in _DERIVED:
            if derived not in formulas and given[0] in formulas:
                formulas[derived] = rule(*[formulas[name] for name in given])
        self._shapes = shapes.split()
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self._signature = inspect.Signature(
            [inspect.Parameter(n, kind) for n in self._shapes]
            + [inspect.Parameter(n, kind, default=value) for n, value in self._MOVED]
        )

    _MOVED: tuple[tuple[str, int], ...] = ()
    """The parameters that every member has besides its shapes, and their defaults."""

    def __repr__(self) -> str:
        return f"<fgrad.scipy.stats.{self._name}{self._signature}>"

    def _arguments(self, function: str, x: Any, args: Any, kwargs: Any) -> tuple[Any, list[Any], dict[str, Any]]:
        """Return the point, the shape parameters and the others that are given, as real operands."""
        if function not in self._formulas:
            raise NotImplementedError(f"{self._name}.{function} has no closed form here")
        try:
            given = self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{self._name}.{function}: {error}") from None
        x, *values = reals(x, *given.values())
        named = dict(zip(given, values, strict=True))
        return x, [named.pop(n) for n in self._shapes], named

    def _evaluate(self, function: str, z: Any, shapes: list[Any], moved: dict[str, Any], whole: bool) -> Any:
        """Return a function of the standard form at z, with its values beyond the support and for wrong parameters."""
        low, high = self._support
        endless = high == math.inf
        low, high = [bound(*shapes) if callable(bound) else bound for bound in (low, high)]
        bounded = self._support[0] != -math.inf
        if bounded:
            below, above = e.lt(z, low), e.ge(z, high) if endless else e.gt(z, high)
            outside = e.logical_or(below, above)
            if whole and function in ("pmf", "logpmf"):
                outside = e.logical_or(outside, e.gt(z, e.floor(z)))
            stand_in = self._inside(*shapes) if self._inside else low + (0 if whole else 0.5)
            z = e.select(outside, stand_in, z)
        with np.errstate(all="ignore"):  # limits are inf and NaN, as SciPy gives them, without a warning
            value = self._formulas[function](z, *shapes)
            if "scale" in moved and function in ("pdf", "logpdf"):
                value = value / moved["scale"] if function == "pdf" else value - e.log(moved["scale"])
        if bounded:
            at_low, at_high = _BEYOND[function]
            value = e.select(outside, at_low, value)
            value = value if at_low == at_high else e.select(above, at_high, value)
        return self._or_nan(value, shapes, moved)

    def _or_nan(self, value: Any, shapes: list[Any], moved: dict[str, Any]) -> Any:
        """Return the value, NaN where the parameters are out of range."""
        for condition in self._valid(*shapes) + _positive(*[x for n, x in moved.items() if n == "scale"]):
            value = e.select(condition, value, math.nan)
        return value


class Continuous(Family):
    """A family of densities of z = (x - loc) / scale. All functions take x (or q), the shapes, loc and scale."""

    _MOVED = (("loc", 0), ("scale", 1))

    def _at(self, function: str, x: Any, args: Any, kwargs: Any) -> Any:
        x, shapes, moved = self._arguments(function, x, args, kwargs)
        z = x - moved["loc"] if "loc" in moved else x
        z = e.div(z, moved["scale"]) if "scale" in moved else z
        return self._evaluate(function, z, shapes, moved, whole=False)

    def _quantile(self, function: str, q: Any, args: Any, kwargs: Any) -> Any:
        q, shapes, moved = self._arguments(function, q, args, kwargs)
        within = e.logical_and(e.ge(q, 0), e.le(q, 1))
        with np.errstate(all="ignore"):
            z = self._formulas[function](e.select(within, q, 0.5), *shapes)
            z = z * moved["scale"] if "scale" in moved else z
            z = z + moved["loc"] if "loc" in moved else z
        return self._or_nan(e.select(within, z, math.nan), shapes, moved)

    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the logarithm of the density at x.

        Example:
            >>> from fgrad.scipy.stats import norm
            >>> print(norm.logpdf([0.0, 1.0], loc=1.0, scale=2.0).round(4))
            [-1.7371 -1.6121]
        """
        return self._at("logpdf", x, args, kwargs)

    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the density at x.

        Example:
            >>> from fgrad.scipy.stats import expon
            >>> print(expon.pdf([-1.0, 0.0, 1.0]).round(4))
            [0.     1.     0.3679]
        """
        return self._at("pdf", x, args, kwargs)

    def cdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the probability of at most x.

        Example:
            >>> from fgrad.scipy.stats import uniform
            >>> print(uniform.cdf([1.0, 2.5, 9.0], 2.0, 4.0))
            [0.    0.125 1.   ]
        """
        return self._at("cdf", x, args, kwargs)

    def sf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the probability of more than x.

        Example:
            >>> from fgrad.scipy.stats import logistic
            >>> print(logistic.sf(2.0).round(4))
            0.1192
        """
        return self._at("sf", x, args, kwargs)

    def logcdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the logarithm of the probability of at most x.

        Example:
            >>> from fgrad.scipy.stats import norm
            >>> print(norm.logcdf(-40.0).round(4))
            -804.6084
        """
        return self._at("logcdf", x, args, kwargs)

    def logsf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the logarithm of the probability of more than x.

        Example:
            >>> from fgrad.scipy.stats import pareto
            >>> print(pareto.logsf(100.0, 2.0).round(4))
            -9.2103
        """
        return self._at("logsf", x, args, kwargs)

    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the point below which the probability is q.

        Example:
            >>> from fgrad.scipy.stats import cauchy
            >>> print(cauchy.ppf([0.5, 0.75]).round(4))
            [0. 1.]
        """
        return self._quantile("ppf", q, args, kwargs)

    def isf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the point above which the probability is q.

        Example:
            >>> from fgrad.scipy.stats import expon
            >>> print(expon.isf(0.25).round(4))
            1.3863
        """
        return self._quantile("isf", q, args, kwargs)


class Discrete(Family):
    """A family of probabilities of whole numbers k - loc. All functions take k, the shapes and loc."""

    _MOVED = (("loc", 0),)

    def _at(self, function: str, k: Any, args: Any, kwargs: Any) -> Any:
        k, shapes, moved = self._arguments(function, k, args, kwargs)
        z = k - moved["loc"] if "loc" in moved else k
        if function not in ("pmf", "logpmf"):
            z = e.floor(z)
        return self._evaluate(function, z, shapes, moved, whole=True)

    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the logarithm of the probability of k.

        Example:
            >>> from fgrad.scipy.stats import poisson
            >>> print(poisson.logpmf([0, 1, 2], 1.0).round(4))
            [-1.     -1.     -1.6931]
        """
        return self._at("logpmf", k, args, kwargs)

    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the probability of k.

        Example:
            >>> from fgrad.scipy.stats import binom
            >>> print(binom.pmf([0, 1, 2, 3], 2, 0.5).round(4))
            [0.25 0.5  0.25 0.  ]
        """
        return self._at("pmf", k, args, kwargs)

    def cdf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the probability of at most k.

        Example:
            >>> from fgrad.scipy.stats import geom
            >>> print(geom.cdf([0, 1, 2], 0.5))
            [0.   0.5  0.75]
        """
        return self._at("cdf", k, args, kwargs)

    def sf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the probability of more than k.

        Example:
            >>> from fgrad.scipy.stats import bernoulli
            >>> print(bernoulli.sf([-1, 0, 1], 0.25))
            [1.   0.25 0.  ]
        """
        return self._at("sf", k, args, kwargs)

    def logcdf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the logarithm of the probability of at most k.

        Example:
            >>> from fgrad.scipy.stats import geom
            >>> print(geom.logcdf([1, 60], 0.5).round(4))
            [-0.6931 -0.    ]
        """
        return self._at("logcdf", k, args, kwargs)

    def logsf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the logarithm of the probability of more than k.

        Example:
            >>> from fgrad.scipy.stats import poisson
            >>> print(poisson.logsf([0, 40], 1.0).round(4))
            [  -0.4587 -115.0101]
        """
        return self._at("logsf", k, args, kwargs)

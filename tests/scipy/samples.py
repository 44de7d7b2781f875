"""What to try each public function of `fgrad.scipy` on: one place for its tests, parity with jax and docs/parity.md.

`TABLES` has rows of `tests.numpy.samples.Case` for every name; arrays in them are traced, lists are not.
"""

import numpy as np

import fgrad.scipy
from tests.numpy import linalg_samples
from tests.numpy.samples import call, floats

POSITIVE = np.array([0.3, 0.9, 1.7, 4.4, 12.5])
REAL = np.array([-2.3, -0.6, 0.2, 1.4, 5.7])
UNIT = np.array([0.02, 0.3, 0.55, 0.8, 0.99])
SECOND = np.array([1.2, 0.4, 3.1, 2.5, 0.7])
ORDERS = np.array([2.0, 3, 2, 5, 4])

# The arguments that are differentiated; those before them are held constant, since SciPy's values are all there is.
ONE = {
    **dict.fromkeys("exp1 j0 j1 y0 y1 k0 k1 gammasgn digamma psi spence".split(), POSITIVE),
    **dict.fromkeys("gammaln loggamma gamma rgamma digamma psi factorial".split(), POSITIVE),
    **dict.fromkeys("erf erfc erfcx dawsn ndtr log_ndtr expit log_expit i0 i1 i0e i1e expi erfi exprel".split(), REAL),
    **dict.fromkeys("erfinv erfcinv ndtri logit entr".split(), UNIT),
}
TWO = {
    **dict.fromkeys(
        "beta betaln poch xlogy xlog1py rel_entr kl_div owens_t boxcox boxcox1p".split(), (POSITIVE, SECOND)
    ),
    "comb": (POSITIVE + 3, SECOND),
    **dict.fromkeys(("huber", "pseudo_huber"), (SECOND, REAL)),
}
PAIRS = {"sici": POSITIVE, "fresnel": REAL}  # two results
HELD = {
    **dict.fromkeys("gammainc gammaincc zeta jv jn yv yn iv ive kv".split(), (ORDERS, POSITIVE)),
    **dict.fromkeys(("gammaincinv", "gammainccinv"), (SECOND, UNIT)),
    **dict.fromkeys(("betainc", "betaincinv"), (POSITIVE, SECOND, UNIT)),
    "expn": (ORDERS, POSITIVE),
    "hyp0f1": (SECOND, REAL),
    "hyp1f1": (POSITIVE, SECOND, REAL),
    "hyp2f1": (SECOND, POSITIVE, SECOND + 1, UNIT - 0.5),
}
BY_PARAMETER = {
    *"gammainc gammaincc gammaincinv gammainccinv betainc betaincinv".split()
}  # these have first derivatives by what others hold constant

# Shape parameters of distributions, and what they have.
CONTINUOUS = {
    "norm": (),
    "lognorm": (0.7,),
    "t": (4.5,),
    "cauchy": (),
    "laplace": (),
    "logistic": (),
    "gumbel_r": (),
    "gumbel_l": (),
    "vonmises": (1.7,),
    "expon": (),
    "gamma": (2.4,),
    "chi2": (3.3,),
    "pareto": (2.2,),
    "beta": (1.8, 2.6),
    "uniform": (),
    "truncnorm": (-0.7, 2.4),
    "gennorm": (1.4,),
    "wrapcauchy": (0.4,),
    "weibull_min": (1.7,),
    "halfnorm": (),
    "halfcauchy": (),
    "rayleigh": (),
    "invgamma": (2.3,),
    "f": (3.5, 5.2),
    "skewnorm": (0.8,),
}
DISCRETE = {
    "bernoulli": (0.3,),
    "binom": (5.0, 0.3),
    "betabinom": (5.0, 1.5, 2.5),
    "nbinom": (3.5, 0.4),
    "geom": (0.3,),
    "poisson": (2.3,),
}
WITHOUT_QUANTILES = {"vonmises", "skewnorm"}
ONLY_DENSITIES = {"vonmises", "betabinom"}
DENSITIES = {"logpdf", "pdf", "logpmf", "pmf"}
FUNCTIONS = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf")
INSIDE = np.array([1.25, 1.5, 1.9])


def functions_of(name):
    """Return the names of the functions that a distribution of one variable has."""
    if name in DISCRETE:
        return ("logpmf", "pmf") if name in ONLY_DENSITIES else ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf")
    if name in ONLY_DENSITIES:
        return ("logpdf", "pdf")
    return FUNCTIONS[:6] if name in WITHOUT_QUANTILES else FUNCTIONS


def of_distribution(name, function):
    """Return the case of a distribution's function: points and parameters, shapes held where derivatives end."""
    if name in DISCRETE:
        points = np.arange(1, 2 if name == "bernoulli" else 5)
        return call(points, *map(np.asarray, DISCRETE[name]))
    points = np.array([0.3, 0.5, 0.8]) if function in ("ppf", "isf") else INSIDE
    return call(points, *map(np.asarray, CONTINUOUS[name]), loc=0.0, scale=np.array(2.3))


MATRIX = 3 * np.eye(3) + floats(3, 3)
POSITIVE_MATRIX = MATRIX @ MATRIX.T
TURNING = np.array([[0.5, -2.0, 0.3], [1.5, 0.4, 0.1], [0.2, 0.3, 3.0]])  # has complex eigenvalues
T = floats(2, 3)
P3, UP3 = np.array([0.2, 0.5, 0.3]), np.array([0.3, 1.1, 1.9])

SPECIAL = {
    **{name: [call(x)] for name, x in ONE.items()},
    **{name: [call(*xs)] for name, xs in TWO.items()},
    **{name: [call(*([x.tolist() for x in xs[:-1]]), xs[-1])] for name, xs in HELD.items()},
    **{name: [call(*HELD[name])] for name in BY_PARAMETER},
    **{name: [call(x)] for name, x in PAIRS.items()},
    **{name: [call(T), call(T, axis=1)] for name in ("logsumexp", "softmax", "log_softmax")},
    "polygamma": [call(2, POSITIVE)],
    "multigammaln": [call(POSITIVE + 2, 2)],
}
STATS = {
    **{f"{name}.{f}": [of_distribution(name, f)] for name in CONTINUOUS | DISCRETE for f in functions_of(name)},
    **{f"dirichlet.{f}": [call(P3, POSITIVE[:3])] for f in ("logpdf", "pdf")},
    **{f"multinomial.{f}": [call(np.array([1, 2, 2]), 5, P3)] for f in ("logpmf", "pmf")},
    **{f"multivariate_normal.{f}": [call(T, POSITIVE[:3], POSITIVE_MATRIX)] for f in ("logpdf", "pdf")},
    "multivariate_normal.entropy": [call(None, POSITIVE_MATRIX)],
}
LINALG = {
    **{name: [call(MATRIX)] for name in ("det", "inv", "expm", "lu")},
    **{name: [call(POSITIVE_MATRIX)] for name in ("cholesky", "cho_factor")},
    **{name: [call(MATRIX)] for name in ("qr", "svd", "svdvals", "lu_factor", "circulant")},
    **{name: [call(MATRIX), call(TURNING)] for name in ("eig", "eigvals")},
    **{name: [call(POSITIVE_MATRIX), call(MATRIX + MATRIX.T, POSITIVE_MATRIX)] for name in ("eigh", "eigvalsh")},
    **{name: [call(POSITIVE_MATRIX)] for name in ("sqrtm", "polar")},
    "eigh_tridiagonal": [call(T[0], T[1][:2])],
    "solve_sylvester": [call(MATRIX, POSITIVE_MATRIX, T.T @ T)],
    "lu_solve": [call((MATRIX, [1, 1, 2]), T[0])],
    "hankel": [call(T[0], T[1])],
    "cho_solve": [call((np.tril(MATRIX), True), T[0])],
    "expm_frechet": [call(MATRIX, MATRIX.T)],
    **{name: [call(MATRIX, T[0]), call(MATRIX, T.T)] for name in ("solve", "solve_triangular")},
    "block_diag": [call(MATRIX, T)],
    "toeplitz": [call(T[0], T[1])],
}
SIGNAL = {
    **{name: [call(T[0], T[1][:2]), call(MATRIX, T, mode="valid")] for name in ("convolve", "correlate")},
    **{name: [call(MATRIX, T)] for name in ("convolve2d", "correlate2d")},
    "fftconvolve": [call(MATRIX, T), call(MATRIX, T[:1], "same", axes=1)],
    "detrend": [call(MATRIX), call(MATRIX, 0, "constant")],
}
FFT = {
    **{name: [call(T), call(T, 3, axis=0)] for name in ("dct", "idct")},
    **{name: [call(T), call(T, 3, (4, 2), norm="ortho")] for name in ("dctn", "idctn")},
    **{name: linalg_samples.FFT[name] for name in fgrad.scipy.fft.__all__ if name in linalg_samples.FFT},
}
INTEGRATE = {
    **{name: [call(T, T[:1].cumsum(1) + 4.0), call(T, axis=0)] for name in ("trapezoid", "cumulative_trapezoid")},
    "simpson": [call(MATRIX, UP3), call(np.concatenate([T, T], 1), axis=1)],
}
NDIMAGE = {
    "map_coordinates": [call(MATRIX, np.array([[0.4, 1.3], [1.6, 0.2]])), call(MATRIX, np.array([[0.4], [2.6]]))]
}
TABLES = {
    "special": SPECIAL,
    "stats": STATS,
    "linalg": LINALG,
    "signal": SIGNAL,
    "fft": FFT,
    "integrate": INTEGRATE,
    "ndimage": NDIMAGE,
    "sparse.linalg": {name: [call(POSITIVE_MATRIX, T[0], tol=1e-12)] for name in ("cg", "bicgstab")},
}

"""`fgrad.scipy.stats`: values against SciPy's, derivatives against finite differences, under vmap and jit."""

import numpy as np
import pytest
import scipy.stats

import fgrad
from fgrad.scipy import stats
from tests.scipy.samples import CONTINUOUS, DISCRETE, ONLY_DENSITIES, WITHOUT_QUANTILES

X = np.array([-2.1, -0.4, 0.2, 0.7, 1.3, 3.6])
Q = np.array([0.01, 0.3, 0.45, 0.6, 0.999])
FUNCTIONS = ["logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"]

FIRST_BY_SHAPES = {
    "t",
    "gamma",
    "chi2",
    "beta",
    "invgamma",
    "f",
    "gennorm",
}  # for want of second ones of incomplete integrals
OPEN = {"nbinom", "geom", "poisson"}
FIRST_BY_COUNT = {"binom", "nbinom"}
MULTIVARIATE = {"dirichlet", "multinomial", "multivariate_normal"}
K = np.arange(-1, 8)


def test_every_distribution_is_here():
    assert {*CONTINUOUS, *DISCRETE, *MULTIVARIATE} == set(stats.__all__)


def continuous(functions):
    for name in CONTINUOUS:
        for function in functions:
            if name not in ONLY_DENSITIES or function in ("logpdf", "pdf"):
                yield name, function


# --------------------------------------------------------------------------------------------------- continuous


@pytest.mark.parametrize(("name", "function"), list(continuous(FUNCTIONS)))
def test_continuous_values(name, function):
    ours, scipys = getattr(getattr(stats, name), function), getattr(getattr(scipy.stats, name), function)
    for args in (CONTINUOUS[name], (*CONTINUOUS[name], 0.1), (*CONTINUOUS[name], 0.1, 1.6)):
        want = scipys(X, *args)
        np.testing.assert_allclose(ours(X, *args), want, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(fgrad.jit(ours)(X, *args), want, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(fgrad.vmap(lambda x, args=args: ours(x, *args))(X), want, rtol=1e-10, atol=1e-14)
    assert ours(X.astype(np.float32), *args).dtype == np.float32
    assert fgrad.jit(ours)(X.astype(np.float32), *[np.float32(a) for a in args]).dtype == np.float32


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "function"), list(continuous(FUNCTIONS)))
def test_continuous_derivatives(name, function):
    f, shapes = getattr(getattr(stats, name), function), CONTINUOUS[name]
    inside = np.array([1.25, 1.5, 1.9])
    if name in FIRST_BY_SHAPES and function not in ("logpdf", "pdf"):
        fgrad.check_grads(lambda x, loc, scale: f(x, *shapes, loc, scale), (inside, 0.2, 2.3), 2)
        fgrad.check_grads(lambda *shapes: f(inside / 2, *shapes), shapes, 1)
        with pytest.raises(NotImplementedError, match="hold .* constant"):
            fgrad.grad(fgrad.grad(f, 1), 1)(1.5, *shapes)
    else:
        loc = {"pareto": -1.5}.get(name, 0.2)
        fgrad.check_grads(lambda x, scale, *shapes: f(x, *shapes, loc, scale), (inside, 2.3, *shapes), 2)


@pytest.mark.heavy
@pytest.mark.parametrize("function", ["ppf", "isf"])
@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n not in WITHOUT_QUANTILES])
def test_quantiles(name, function):
    f, shapes = getattr(getattr(stats, name), function), CONTINUOUS[name]
    want = getattr(getattr(scipy.stats, name), function)(Q, *shapes, 0.1, 1.6)
    np.testing.assert_allclose(f(Q, *shapes, 0.1, 1.6), want, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fgrad.jit(f)(Q, *shapes, 0.1, 1.6), want, rtol=1e-9, atol=1e-12)
    assert np.isnan(f([-0.1, 1.1], *shapes)).all()
    fgrad.check_grads(lambda q: f(q, *shapes, 0.1, 1.6), (Q[1:4],), 2, rtol=1e-5)
    fgrad.check_grads(lambda *shapes: f(Q[1:4], *shapes, 0.1, 1.6), shapes, 1, rtol=1e-5)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", ["expon", "gamma", "beta", "uniform", "pareto", "chi2", "lognorm", "weibull_min"])
def test_edges_of_supports(name, function):
    f, shapes = getattr(getattr(stats, name), function), CONTINUOUS[name]
    x = np.array([-np.inf, -1.0, 0.0, 1.0, 50.0, np.inf, np.nan])
    with np.errstate(invalid="ignore"):
        want = getattr(getattr(scipy.stats, name), function)(x, *shapes)
    if function in ("pdf", "logpdf"):  # at infinity, where SciPy subtracts infinities
        want[-2] = {"pdf": 0, "logpdf": -np.inf}[function]
    np.testing.assert_allclose(f(x, *shapes), want, rtol=1e-6)
    assert fgrad.grad(f)(-1.0, *shapes) == 0


@pytest.mark.heavy
@pytest.mark.parametrize("bounds", [(8.0, np.inf), (-np.inf, -7.0), (-np.inf, np.inf), (-1.0, 1e-3), (30.0, 30.5)])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_truncated_far_out_and_at_its_ends(function, bounds):
    f, scipys = getattr(stats.truncnorm, function), getattr(scipy.stats.truncnorm, function)
    low, high = np.clip(bounds, -40, 40)
    x = (
        np.linspace(low, high, 7)[1:-1]
        if high - low < 3
        else np.array([low, high]).clip(-9, 9).mean() + 0.3 * np.arange(3)
    )
    np.testing.assert_allclose(f(x, *bounds), scipys(x, *bounds), rtol=1e-8)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(f([-50.0, 50.0], *bounds), scipys([-50.0, 50.0], *bounds), rtol=1e-8)
    slopes = fgrad.grad(lambda x, a, b: f(x, a, b).sum(), (0, 1, 2))(x, *bounds)
    assert all(np.isfinite(slope).all() for slope in slopes)


def test_a_truncated_distribution_at_its_ends():
    slopes = [fgrad.grad(f)(x, -1.0, 2.0) for f in (stats.truncnorm.cdf, stats.truncnorm.sf) for x in (-1.0, 2.0)]
    ends = stats.truncnorm.pdf([-1.0, 2.0], -1.0, 2.0)
    np.testing.assert_allclose(slopes, [*ends, *-ends])


def test_parameters_out_of_range_give_nan():
    for name, shapes in CONTINUOUS.items():
        f = getattr(stats, name).logpdf
        assert np.isnan(f(0.5, *shapes, 0.0, -1.0))
        assert np.isnan(fgrad.jit(f)(0.5, *shapes, 0.0, -1.0))
        if shapes and name != "skewnorm":
            assert np.isnan(f(0.5, *[-s for s in shapes]))


def test_a_fit_by_maximum_likelihood():
    data = scipy.stats.gamma.rvs(3.0, scale=0.5, size=2000, random_state=0)

    def loss(p):
        return -stats.gamma.logpdf(data, p["a"], scale=np.exp(p["log_scale"])).mean()

    found = fgrad.scipy.optimize.minimize(
        loss, {"a": 1.0, "log_scale": 0.0}, bounds=({"a": 0.1, "log_scale": None}, None)
    )
    a, _, scale = scipy.stats.gamma.fit(data, floc=0)
    np.testing.assert_allclose([found.x["a"], np.exp(found.x["log_scale"])], [a, scale], rtol=1e-3)


# ----------------------------------------------------------------------------------------------------- discrete


def discrete():
    for name in DISCRETE:
        for function in ("logpmf", "pmf") if name == "betabinom" else ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf"):
            yield name, function


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "function"), list(discrete()))
def test_discrete(name, function):
    f, scipys, shapes = getattr(getattr(stats, name), function), getattr(scipy.stats, name), DISCRETE[name]
    k = np.concatenate([K, K + 0.5])
    for args in (shapes, (*shapes, 1)):
        want = getattr(scipys, function)(k, *args)
        np.testing.assert_allclose(f(k, *args), want, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(fgrad.jit(f)(k, *args), want, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(fgrad.vmap(lambda k, args=args: f(k, *args))(k), want, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(f(K.astype(np.int32), *shapes), getattr(scipys, function)(K, *shapes), rtol=1e-10)
    inside = np.arange(1, 2 if name == "bernoulli" else 5)
    if name == "bernoulli" and function in ("logcdf", "logsf"):  # 0 and -inf at 1, whatever p
        inside = np.zeros(1)
    if name in FIRST_BY_COUNT and function not in ("logpmf", "pmf"):
        fgrad.check_grads(lambda *shapes: f(inside, *shapes), shapes, 1)
        fgrad.check_grads(lambda p: f(inside, shapes[0], p), shapes[1:], 2)
    else:
        fgrad.check_grads(lambda *shapes: f(inside, *shapes), shapes, 2)
    beyond = np.array([-1.0] if name in OPEN else [-1.0, 9.0])
    assert not fgrad.jacrev(lambda p: f(beyond, *shapes[:-1], p))(shapes[-1]).any()


def test_probabilities_of_certain_outcomes():
    for name in ("bernoulli", "binom", "geom", "nbinom"):
        before = DISCRETE[name][:-1]
        for p in (1.0, 1.5, -0.5):
            want = getattr(scipy.stats, name).pmf(K, *before, p)
            np.testing.assert_allclose(getattr(stats, name).pmf(K, *before, p), want, atol=1e-14)


# ------------------------------------------------------------------------------------------------- multivariate

COV = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.8]])
VECTORS = np.array([[[0.5, -1.0, 2.0], [1.5, 3.0, -2.0]], [[0.1, 0.2, 0.3], [-1.0, 0.0, 1.0]]])
MEAN = np.array([0.3, -0.2, 1.0])


@pytest.mark.parametrize("function", ["logpdf", "pdf"])
@pytest.mark.parametrize(
    "cov", [1.0, 2.5, np.array([1.0, 2.0, 3.0]), COV], ids=["default", "number", "vector", "matrix"]
)
@pytest.mark.parametrize("x", [VECTORS[0, 0], VECTORS])
def test_multivariate_normal(x, cov, function):
    f = getattr(stats.multivariate_normal, function)
    want = getattr(scipy.stats.multivariate_normal, function)(x, MEAN, cov)
    np.testing.assert_allclose(f(x, MEAN, cov), want, rtol=1e-11)
    np.testing.assert_allclose(fgrad.jit(f)(x, MEAN, cov), want, rtol=1e-11)
    np.testing.assert_allclose(f(x.astype(np.float32), MEAN.astype(np.float32), np.float32(cov)), want, rtol=1e-4)
    fgrad.check_grads(f, (x, MEAN, cov), 2)


def test_multivariate_normal_of_many_covariances():
    covs = np.stack([COV, COV + np.eye(3)])
    want = [[scipy.stats.multivariate_normal.logpdf(x, MEAN, c) for x, c in zip(xs, covs)] for xs in VECTORS]
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(VECTORS, MEAN, covs), want, rtol=1e-12)
    mapped = fgrad.vmap(stats.multivariate_normal.logpdf, (0, None, 0))(VECTORS[:, 0], MEAN, covs)
    np.testing.assert_allclose(
        mapped, [scipy.stats.multivariate_normal.logpdf(x, MEAN, c) for x, c in zip(VECTORS[:, 0], covs)]
    )
    fgrad.check_grads(stats.multivariate_normal.logpdf, (VECTORS, MEAN, covs), 2)


def test_multivariate_normal_of_numbers():
    x = np.array([0.5, 1.0, -2.0])
    want = scipy.stats.multivariate_normal.logpdf(x, 0.5, 2.0)
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(x[:, None], 0.5, 2.0), want)
    assert stats.multivariate_normal.logpdf(0.5) == pytest.approx(scipy.stats.norm.logpdf(0.5))
    want = scipy.stats.multivariate_normal.entropy(MEAN, COV)
    assert stats.multivariate_normal.entropy(MEAN, COV) == pytest.approx(want)
    fgrad.check_grads(lambda c: stats.multivariate_normal.entropy(MEAN, c), (COV,), 2)


def test_multivariate_normal_of_singular_covariances():
    f, scipys = stats.multivariate_normal.logpdf, scipy.stats.multivariate_normal.logpdf
    spread = np.array([[1.0, 0.5], [0.3, 2.0], [-0.7, 0.2]])
    flat, on = spread @ spread.T, MEAN + np.array([[0.4, -1.0], [2.0, 0.3]]) @ spread.T
    for cov in (COV, flat, np.diag([1.0, 0.0, 2.0])):
        for x in (on, VECTORS):
            want = scipys(x, MEAN, cov, allow_singular=True)
            np.testing.assert_allclose(f(x, MEAN, cov, True), want, rtol=1e-9)
            np.testing.assert_allclose(fgrad.jit(lambda *args: f(*args, True))(x, MEAN, cov), want, rtol=1e-9)
    fgrad.check_grads(lambda x, c: f(x, MEAN, c @ c.T + COV, True), (VECTORS, spread), 2, rtol=1e-4)

    # The density of a spread that moves within its rank: points and covariance move together.
    def moved(spread):
        points = MEAN + np.array([[0.4, -1.0], [2.0, 0.3]]) @ spread.T
        return f(points, MEAN, spread @ spread.T, True)

    fgrad.check_grads(moved, (spread,), 1, rtol=1e-4)


def test_multivariate_normal_refuses():
    with pytest.raises(ValueError, match=r"cov must be of shape \(..., 3, 3\), got \(2, 2\)"):
        stats.multivariate_normal.logpdf(MEAN, MEAN, np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        stats.multivariate_normal.logpdf(MEAN, MEAN, -COV)


def test_dirichlet():
    alpha, x = np.array([1.5, 2.0, 0.7]), np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]])
    for function in ("logpdf", "pdf"):
        f, scipys = getattr(stats.dirichlet, function), getattr(scipy.stats.dirichlet, function)
        np.testing.assert_allclose(f(x, alpha), scipys(x, alpha), rtol=1e-12)
        np.testing.assert_allclose(f(x[:-1], alpha), scipys(x[:-1], alpha), rtol=1e-12)
        np.testing.assert_allclose(fgrad.jit(f)(x, alpha), scipys(x, alpha), rtol=1e-12)
        np.testing.assert_allclose(fgrad.vmap(f, (1, None))(x, alpha), scipys(x, alpha), rtol=1e-12)
        fgrad.check_grads(lambda alpha, f=f: f(x, alpha), (alpha,), 2)
        fgrad.check_grads(f, (x[:-1], alpha), 2)
    assert stats.dirichlet.logpdf([0.5, 0.6, 0.1], alpha) == -np.inf
    assert np.isnan(stats.dirichlet.logpdf(x[:, 0], -alpha))
    with pytest.raises(ValueError, match="dirichlet"):
        stats.dirichlet.logpdf([0.5], alpha)


def test_multinomial():
    x, p = np.array([[1, 2, 2], [0, 5, 0], [1, 1, 1], [-1, 3, 3]]), np.array([0.2, 0.5, 0.3])
    for function in ("logpmf", "pmf"):
        f, want = getattr(stats.multinomial, function), getattr(scipy.stats.multinomial, function)(x, 5, p)
        np.testing.assert_allclose(f(x, 5, p), want, rtol=1e-12)
        np.testing.assert_allclose(fgrad.jit(f)(x, 5, p), want, rtol=1e-12)
        np.testing.assert_allclose(fgrad.vmap(lambda x, f=f: f(x, 5, p))(x), want, rtol=1e-12)
        fgrad.check_grads(lambda p, f=f: f(x[:2], 5, p), (p,), 2)
        assert not fgrad.jacrev(lambda p, f=f: f(x[2:], 5, p))(p).any()


# -------------------------------------------------------------------------------------------------------- errors


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"gamma.logpdf: missing a required argument: 'a'"):
        stats.gamma.logpdf(1.0)
    with pytest.raises(TypeError, match=r"norm.cdf: too many positional arguments"):
        stats.norm.cdf(1.0, 2.0, 3.0, 4.0)
    with pytest.raises(NotImplementedError, match=r"vonmises.cdf has no closed form here"):
        stats.vonmises.cdf(0.5, 1.0)
    assert repr(stats.beta) == "<fgrad.scipy.stats.beta(a, b, loc=0, scale=1)>"

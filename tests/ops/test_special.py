"""Special functions against independent values: libm's, closed forms, functional equations, quadrature, SciPy's."""

import math

import numpy as np
import pytest

import fgrad
from fgrad.ops import special as s

EPS = np.finfo(np.float64).eps
INF, NAN = math.inf, math.nan


def spread(low, high, count=400):
    return np.random.default_rng(0).uniform(low, high, count)


def assert_close(got, want, ulps=8):
    np.testing.assert_allclose(got, want, rtol=ulps * EPS, atol=0)


# --------------------------------------------------------------------------------------------------- error functions


@pytest.mark.parametrize(("low", "high"), [(-7, 7), (-1e-3, 1e-3), (-1e-300, 1e-300)])
def test_erf_is_libms(low, high):
    x = spread(low, high)
    assert_close(s.erf(x), [math.erf(v) for v in x])


@pytest.mark.parametrize(("low", "high"), [(-7, 0.5), (0.5, 6), (6, 26), (26, 27.5)])
def test_erfc_is_libms(low, high):
    x = spread(low, high)
    tiny = 1e-320  # where the last bits are lost
    np.testing.assert_allclose(s.erfc(x), [math.erfc(v) for v in x], rtol=8 * EPS, atol=tiny)


def test_erfinv_undoes_erf():
    y = np.concatenate([spread(-0.99, 0.99), 10.0 ** spread(-300, -1)])
    x = s.erfinv(y)
    condition = np.abs(y * np.sqrt(np.pi) / 2 * np.exp(x * x) / x)  # of x as a function of y
    error = np.abs(np.array([math.erf(v) for v in x]) - y) / np.abs(y) * condition
    assert error.max() < 8 * EPS


def test_erfinv_near_its_poles():
    q = 10.0 ** spread(-15.9, -1)
    x = s.erfinv(1 - q)
    q = 1 - (1 - q)
    error = np.abs(np.array([math.erfc(v) for v in x]) / q - 1) / (2 * x * x)
    assert error.max() < 8 * EPS
    np.testing.assert_array_equal(s.erfinv(-(1 - q)), -s.erfinv(1 - q))


@pytest.mark.parametrize(
    ("f", "points"),
    [
        (s.erf, {INF: 1, -INF: -1, 0.0: 0, NAN: NAN}),
        (s.erfc, {INF: 0, -INF: 2, 0.0: 1, 30.0: 0, NAN: NAN}),
        (s.erfinv, {1.0: INF, -1.0: -INF, 0.0: 0, 1.5: NAN, NAN: NAN}),
        (s.lgamma, {0.0: INF, 1.0: 0, 2.0: 0, -1.0: INF, -7.0: INF, INF: INF, -INF: INF, 1e306: INF, NAN: NAN}),
        (s.digamma, {0.0: -INF, -1.0: NAN, INF: INF, -INF: NAN, NAN: NAN}),
        (lambda x: s.polygamma(x, n=1), {0.0: INF, -1.0: INF, INF: 0, NAN: NAN, 1e308: 1e-308}),
        (s.sinc, {0.0: 1, NAN: NAN}),
    ],
    ids="erf erfc erfinv lgamma digamma trigamma sinc".split(),
)
def test_values_at_edges(f, points):
    np.testing.assert_array_equal(f(np.array(list(points))), np.array(list(points.values()), float))


# --------------------------------------------------------------------------------------------------- gamma functions


@pytest.mark.parametrize(("low", "high"), [(1e-300, 1), (0.9, 1.1), (1.9, 2.1), (1, 4), (3.9, 40), (1e3, 1e300)])
def test_lgamma_is_pythons(low, high):
    x = spread(low, high)
    np.testing.assert_allclose(s.lgamma(x), [math.lgamma(v) for v in x], rtol=10 * EPS, atol=10 * EPS)


EULER = 0.5772156649015328606
ZETA = {2: math.pi**2 / 6, 3: 1.2020569031595942854, 4: math.pi**4 / 90, 5: 1.0369277551433699263, 6: math.pi**6 / 945}


def test_lgamma_is_accurate_at_its_roots():
    for root, rest in ((1, np.zeros_like), (2, np.log1p)):
        x = root + spread(-1e-3, 1e-3)
        d = x - root  # what rounding left of it
        series = -EULER * d + sum(z * (-d) ** k / k for k, z in ZETA.items())
        assert_close(s.lgamma(x), series + rest(d))


def test_lgamma_of_negative_numbers_is_pythons():
    x = spread(-30, 0)
    np.testing.assert_allclose(s.lgamma(x), [math.lgamma(v) for v in x], rtol=20 * EPS, atol=100 * EPS)


def test_digamma_has_known_values():
    x = np.array([1, 2, 0.5, 0.25, -0.5, 10])
    half = -EULER - 2 * math.log(2)
    quarter = -EULER - math.pi / 2 - 3 * math.log(2)
    tenth = -EULER + sum(1 / k for k in range(1, 10))
    want = [-EULER, 1 - EULER, half, quarter, half + 2, tenth]
    np.testing.assert_allclose(s.digamma(x), want, rtol=8 * EPS, atol=4 * EPS)


def test_digamma_is_accurate_at_its_root():
    root, rest = 1.4616321449683622, 9.5499954299656977e-17
    slope = s.polygamma(np.array(root), n=1)
    assert_close(s.digamma(np.array(root)), -rest * slope)
    assert_close(s.digamma(np.array(root + 1e-8)), ((root + 1e-8) - root - rest) * slope, ulps=1e8)


@pytest.mark.parametrize(("low", "high"), [(0.01, 4), (3, 50), (-10, -0.01)])
def test_digamma_and_lgamma_satisfy_their_recurrences(low, high):
    x = np.round(spread(low, high) * 1024) / 1024 + 1 / 4096  # so that x + 1 is exact
    np.testing.assert_allclose(s.digamma(x + 1), s.digamma(x) + 1 / x, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(s.lgamma(x + 1), s.lgamma(x) + np.log(np.abs(x)), rtol=1e-13, atol=1e-13)


def test_polygamma_has_known_values():
    assert_close(s.polygamma(np.array([1, 0.5, -0.5]), n=1), [math.pi**2 / 6, math.pi**2 / 2, math.pi**2 / 2 + 4])
    assert_close(s.polygamma(np.array([1, 0.5]), n=2), [-2 * ZETA[3], -14 * ZETA[3]])
    assert_close(s.polygamma(np.array([1, 0.5]), n=3), [math.pi**4 / 15, math.pi**4])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize(("low", "high"), [(0.01, 4), (3, 50), (-10, -0.01)])
def test_polygamma_satisfies_its_recurrence(n, low, high):
    x = np.round(spread(low, high) * 1024) / 1024 + 1 / 4096
    step = (-1) ** n * math.factorial(n) / x ** (n + 1)
    a, b = s.polygamma(x + 1, n=n), s.polygamma(x, n=n)
    np.testing.assert_array_less(np.abs(a - b - step), 60 * EPS * (np.abs(a) + np.abs(b) + np.abs(step)))


def test_derivatives_of_lgamma_chain_to_polygamma():
    x = np.array([0.3, 1.5, 7.0, -2.5])
    first = fgrad.grad(lambda x: s.lgamma(x).sum())
    np.testing.assert_array_equal(first(x), s.digamma(x))
    second = fgrad.grad(lambda x: first(x).sum())
    np.testing.assert_array_equal(second(x), s.polygamma(x, n=1))
    np.testing.assert_array_equal(fgrad.grad(lambda x: second(x).sum())(x), s.polygamma(x, n=2))


# ------------------------------------------------------------------------------------------------------------- sinc


@pytest.mark.parametrize("order", range(7))
def test_derivatives_of_sinc_are_its_integral(order):
    x = np.concatenate([spread(-4, 4), 10.0 ** spread(-9, 0), [0]])
    u, weight = np.polynomial.legendre.leggauss(30)
    u, weight = (u + 1) / 2, weight / 2
    sine, cosine = np.sin(np.pi * x[:, None] * u), np.cos(np.pi * x[:, None] * u)
    wave = (cosine, -sine, -cosine, sine)[order % 4]
    want = (weight * u**order * wave).sum(axis=1)
    np.testing.assert_allclose(s.sinc_derivative(x, order=order) / np.pi**order, want, rtol=0, atol=5e-15)


def test_sinc_at_zero_to_fourth_order():
    f, want = s.sinc, [1, 0, -(math.pi**2) / 3, 0, math.pi**4 / 5]
    for value in want:
        np.testing.assert_allclose(f(0.0), value, rtol=1e-15)
        f = fgrad.grad(f)


def test_sinc_of_complex_numbers():
    z = np.array([0.3 + 1j, 2 - 1j])
    np.testing.assert_allclose(s.sinc(z), np.sin(np.pi * z) / (np.pi * z))


# ------------------------------------------------------------------------------------------------- dtypes and SciPy

ALL = [s.erf, s.erfc, s.erfinv, s.lgamma, s.digamma, s.sinc, lambda x: s.polygamma(x, n=2)]


@pytest.mark.parametrize("f", ALL)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_narrow_dtypes_are_rounded_double_precision(f, dtype):
    x = np.array([0.125, 0.5, 0.875], dtype)
    assert f(x).dtype == dtype
    np.testing.assert_array_equal(f(x), f(x.astype(np.float64)).astype(dtype))
    gradient = fgrad.grad(lambda x: f(x).sum())(x)
    assert gradient.dtype == dtype


@pytest.mark.parametrize("f", ALL)
def test_shapes_and_numbers(f):
    assert f(np.ones((0, 2))).shape == (0, 2)
    assert np.shape(f(0.5)) == ()
    assert f(1).dtype == np.float64
    x = np.full((2, 3, 2), 0.25)[:, ::2]
    np.testing.assert_array_equal(f(x), np.full((2, 2, 2), f(0.25)))


@pytest.mark.parametrize("f", [f for f in ALL if f is not s.sinc])
def test_complex_numbers_are_refused(f):
    with pytest.raises(TypeError, match="for real x only, got x of dtype complex128"):
        f(np.array([1j]))


@pytest.mark.parametrize("f", [s.erf, s.erfc])
def test_slopes_of_error_functions_far_out_are_zero(f):
    for order in (1, 2):
        f = fgrad.grad(f)
        assert [float(f(x)) for x in (-1e200, -50.0, 50.0, 1e200)] == [0, 0, 0, 0], order


@pytest.mark.parity
def test_values_are_scipys():
    sp = pytest.importorskip("scipy.special", reason="SciPy is the oracle here")
    wide, positive, inside = spread(-30, 30), 10.0 ** spread(-5, 5), spread(-1, 1)
    np.testing.assert_allclose(s.erf(wide), sp.erf(wide), rtol=1e-14)
    np.testing.assert_allclose(s.erfc(wide), sp.erfc(wide), rtol=1e-13, atol=1e-305)  # SciPy's loses 250 roundings
    np.testing.assert_allclose(s.erfinv(inside), sp.erfinv(inside), rtol=1e-14)
    np.testing.assert_allclose(s.lgamma(wide), sp.gammaln(wide), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(s.digamma(wide), sp.digamma(wide), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(s.sinc(wide), np.sinc(wide), rtol=1e-13, atol=1e-15)
    for n in range(1, 6):
        np.testing.assert_allclose(s.polygamma(positive, n=n), sp.polygamma(n, positive), rtol=1e-13)

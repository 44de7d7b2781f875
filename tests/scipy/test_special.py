"""`fgrad.scipy.special`: values against SciPy's, derivatives against finite differences, under vmap and jit."""

import numpy as np
import pytest
import scipy.special

import fgrad
from fgrad.scipy import special
from tests.scipy.samples import BY_PARAMETER, HELD, ONE, PAIRS, POSITIVE, SECOND, TWO

EVERY = {**{name: (x,) for name, x in ONE.items()}, **TWO, **HELD}
ALONG = {"logsumexp", "softmax", "log_softmax"}
OTHERS = {"polygamma", "multigammaln"}


def test_every_function_is_here():
    assert {*EVERY, *PAIRS, *ALONG, *OTHERS} == set(special.__all__)


@pytest.mark.parametrize("name", EVERY)
def test_values(name):
    ours, scipys, args = getattr(special, name), getattr(scipy.special, name), EVERY[name]
    np.testing.assert_allclose(ours(*args), scipys(*args), rtol=1e-11)
    np.testing.assert_allclose(fgrad.jit(ours)(*args), scipys(*args), rtol=1e-11)
    np.testing.assert_allclose(fgrad.vmap(ours)(*args), scipys(*args), rtol=1e-11)
    narrow = [x.astype(np.float32) for x in args]
    out = ours(*narrow)
    assert out.dtype == fgrad.jit(ours)(*narrow).dtype == np.float32
    np.testing.assert_allclose(out, scipys(*[x.astype(float) for x in narrow]), rtol=5e-5)


@pytest.mark.parametrize("name", EVERY)
def test_scalars_and_lists(name):
    ours, args = getattr(special, name), EVERY[name]
    scalars = [x[2].item() for x in args]
    assert ours(*scalars).dtype == fgrad.jit(ours)(*scalars).dtype == np.float64
    np.testing.assert_array_equal(ours(*[x.tolist() for x in args]), ours(*args))


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_derivatives(name):
    fgrad.check_grads(getattr(special, name), EVERY[name], 2)
    fgrad.check_grads(fgrad.jit(getattr(special, name)), EVERY[name], 1)


@pytest.mark.parametrize("name", HELD)
def test_derivatives_by_the_last_argument(name):
    *held, x = HELD[name]
    fgrad.check_grads(lambda x: getattr(special, name)(*held, x), (x,), 2)


@pytest.mark.parametrize("name", sorted({*HELD} - BY_PARAMETER))
def test_other_derivatives_are_refused(name):
    f, args = getattr(special, name), HELD[name]
    with pytest.raises(NotImplementedError, match="has no derivative in closed form by"):
        fgrad.grad(lambda x: f(x, *args[1:]).sum())(args[0])


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_by_its_parameter(name):
    f = getattr(special, name)
    a, x = np.meshgrid([0.05, 0.7, 3.0, 20.0, 300.0], [0.01, 0.8, 4.0, 25.0, 290.0, 2000.0])
    fgrad.check_grads(f, (a, x), 1, rtol=1e-5)
    slope = fgrad.grad(lambda a, x: f(a, x).sum())
    fgrad.check_grads(lambda x: slope(a, x), (x,), 1, atol=1e-5, rtol=1e-5)
    np.testing.assert_array_equal(slope(np.array([2.0, 2.0]), np.array([0.0, np.inf])), 0)
    assert np.isnan(slope(np.array([-2.0]), np.array([1.0]))).all()


def test_incomplete_beta_by_its_parameters():
    a, b, x = np.meshgrid([0.05, 0.7, 3.0, 60.0], [0.3, 2.0, 25.0], [1e-3, 0.3, 0.8, 0.999])
    fgrad.check_grads(special.betainc, (a, b, x), 1, rtol=1e-5)
    slopes = fgrad.grad(lambda a, b, x: special.betainc(a, b, x).sum(), (0, 1))
    fgrad.check_grads(lambda x: slopes(a, b, x), (x,), 1, atol=1e-5, rtol=1e-5)
    at_ends = slopes(np.array([2.0, 2.0]), np.array([3.0, 3.0]), np.array([0.0, 1.0]))
    np.testing.assert_array_equal(at_ends, 0)
    assert np.isnan(slopes(np.array([-2.0]), np.array([3.0]), np.array([0.5]))).all()


# Computed with 40 digits.
BETAINC_BY_A = {
    (0.3, 2.0, 0.2): -0.7377892478013716,
    (300.0, 50.0, 0.9): -0.0003473549187128344,
    (2000.0, 2000.0, 0.5): -0.006308488422544553,
    (0.05, 300.0, 0.01): -0.015416231264671428,
    (50.0, 0.3, 0.9999): -0.0013639430264657786,
    (2.5, 2.5, 0.7): -0.10626791628042526,
}


def test_incomplete_beta_by_its_parameters_to_many_digits():
    points = np.array(list(BETAINC_BY_A)).T
    slope = fgrad.grad(lambda a, b, x: special.betainc(a, b, x).sum())(*points)
    np.testing.assert_allclose(slope, list(BETAINC_BY_A.values()), rtol=1e-11)


@pytest.mark.parametrize("name", sorted(BY_PARAMETER))
def test_by_parameters(name):
    f, args = getattr(special, name), HELD[name]
    fgrad.check_grads(f, args, 1, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="by a; hold a constant"):
        fgrad.grad(fgrad.grad(lambda a: f(a, *[x[1] for x in args[1:]])))(2.0)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name):
    ours, x = getattr(special, name), PAIRS[name]
    for got in (ours(x), fgrad.jit(ours)(x), fgrad.vmap(ours)(x)):
        np.testing.assert_allclose(got, getattr(scipy.special, name)(x), rtol=1e-12)
    fgrad.check_grads(ours, (x,), 2)


def test_removable_singularities():
    assert fgrad.grad(special.spence)(1.0) == -1
    assert fgrad.grad(fgrad.grad(special.spence))(1.0) == pytest.approx(0.5)
    assert fgrad.grad(special.exprel)(0.0) == 0.5
    assert fgrad.grad(fgrad.grad(special.exprel))(0.0) == pytest.approx(1 / 3)
    assert fgrad.grad(special.boxcox, 1)(2.0, 0.0) == pytest.approx(np.log(2.0) ** 2 / 2)
    for f, point in ((special.spence, 1.0), (special.exprel, 0.0)):
        near = point + np.array([-0.011, -0.009, -1e-3, -1e-7, 1e-9, 9.9e-4, 0.0101])
        fgrad.check_grads(f, (near,), 2, rtol=1e-5)
    assert special.comb(np.array([3.0, 5.0]), np.array([4.0, -1.0])).tolist() == [0.0, 0.0]


# ------------------------------------------------------------------------------------------------------- corners


def test_gamma_at_and_between_its_poles():
    x = np.array([-3.5, -2.5, -1.2, -0.5])
    for name in ("gamma", "rgamma", "gammaln", "digamma", "gammasgn"):
        np.testing.assert_allclose(getattr(special, name)(x), getattr(scipy.special, name)(x), rtol=1e-12)
        fgrad.check_grads(getattr(special, name), (x,), 2, rtol=1e-5)
    poles = np.array([0.0, -1.0, -2.0, -3.0])
    np.testing.assert_array_equal(special.rgamma(poles), 0)
    slope = fgrad.vmap(fgrad.grad(special.rgamma))(poles)
    np.testing.assert_allclose(slope, [1, -1, 2, -6], rtol=1e-12)  # (-1)ⁿ n!
    fgrad.check_grads(special.rgamma, (poles,), 2, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(special.beta(x, 0.7), scipy.special.beta(x, 0.7), rtol=1e-12)


def test_factorials_are_exact():
    np.testing.assert_array_equal(special.factorial(np.arange(-2, 18)), scipy.special.factorial(np.arange(-2, 18)))
    assert special.gamma(0.0) == np.inf


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_polygamma(n):
    np.testing.assert_allclose(special.polygamma(n, POSITIVE), scipy.special.polygamma(n, POSITIVE), rtol=1e-11)
    fgrad.check_grads(lambda x: special.polygamma(n, x), (POSITIVE,), 2)


def test_polygamma_of_several_orders():
    n = np.array([[0], [3], [1]])
    np.testing.assert_allclose(special.polygamma(n, POSITIVE), scipy.special.polygamma(n, POSITIVE), rtol=1e-11)
    assert special.polygamma([2, 2], 1.0).shape == (2,)
    fgrad.check_grads(lambda x: special.polygamma(n, x), (POSITIVE,), 1)
    with pytest.raises(TypeError, match="whole"):
        special.polygamma(0.5, 1.0)
    with pytest.raises(TypeError, match="known"):
        fgrad.jit(special.polygamma)(1, 2.0)
    with pytest.raises(ValueError, match="negative"):
        special.polygamma(-1, 2.0)


def test_multigammaln():
    for d in (1, 2, 5):
        np.testing.assert_allclose(special.multigammaln(POSITIVE + 2, d), scipy.special.multigammaln(POSITIVE + 2, d))
        fgrad.check_grads(lambda a, d=d: special.multigammaln(a, d), (POSITIVE + 2,), 2)


def test_zeta_of_one_argument_is_riemanns():
    x = np.array([-2.5, 0.0, 0.5, 3.0])
    np.testing.assert_allclose(special.zeta(x), scipy.special.zeta(x), rtol=1e-13)
    with pytest.raises(NotImplementedError, match="zeta"):
        fgrad.grad(special.zeta)(2.0)


def test_far_tails():
    assert special.log_ndtr(-1e5) == pytest.approx(scipy.special.log_ndtr(-1e5))
    assert fgrad.grad(special.log_ndtr)(-1e3) == pytest.approx(1e3, rel=1e-5)
    assert fgrad.grad(special.log_ndtr)(50.0) == 0
    assert special.expit(-1000.0) == 0
    assert fgrad.grad(special.log_expit)(-1000.0) == 1


def test_entropies_at_the_edge():
    p, q = np.array([0.0, 0.0, 1.0, -1.0, np.nan]), np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    for name in ("rel_entr", "kl_div"):
        np.testing.assert_array_equal(getattr(special, name)(p, q), getattr(scipy.special, name)(p, q))
    np.testing.assert_array_equal(special.entr(p), scipy.special.entr(p))
    assert fgrad.grad(special.rel_entr, 1)(0.0, 1.0) == 0
    assert np.isfinite(fgrad.grad(lambda p: special.rel_entr(p, q[:2]).sum())(p[:2])).all()
    with np.errstate(divide="ignore"):  # these warn as NumPy's logarithm does
        np.testing.assert_array_equal(special.xlogy(p, q), scipy.special.xlogy(p, q))
        assert special.logit(0.0) == -np.inf


@pytest.mark.parametrize("name", sorted(ALONG))
@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_along_axes(name, axis):
    x = np.array([[0.5, -1.0, 2.0], [1.5, 3.0, -2.0]])
    ours, scipys = getattr(special, name), getattr(scipy.special, name)
    np.testing.assert_allclose(ours(x, axis=axis), scipys(x, axis=axis), rtol=1e-12)
    np.testing.assert_allclose(fgrad.jit(lambda x: ours(x, axis=axis))(x), scipys(x, axis=axis), rtol=1e-12)
    fgrad.check_grads(lambda x: ours(x, axis=axis), (x,), 2)


# -------------------------------------------------------------------------------------------------------- errors


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"gammainc: missing a required argument: 'x'"):
        special.gammainc(1.0)
    with pytest.raises(TypeError, match="real"):
        special.i0(1j)
    np.testing.assert_array_equal(special.xlogy(y=SECOND, x=POSITIVE), special.xlogy(POSITIVE, SECOND))


def test_without_scipy(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("importlib.import_module", absent)
    assert special.ndtr(0.0) == 0.5
    with pytest.raises(ImportError, match=r"fgrad\.scipy\.special\.i0 .* pip install 'fgrad\[scipy\]'"):
        special.i0(1.0)

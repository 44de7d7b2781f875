"""Derivatives at kinks, ties, zeros and infinities: FUNCTIONAL_API's section 0, and 6 where that is silent."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import grad

ZEROS = np.zeros(3)


def summed(f):
    return grad(lambda x: fnp.sum(f(x)))


def test_at_zero():
    assert summed(fnp.abs)(np.array([0.0, -0.0, -2.0])).tolist() == [0.0, 0.0, -1.0]
    assert grad(fnp.linalg.norm)(ZEROS).tolist() == [0.0] * 3
    assert grad(lambda x: fnp.linalg.norm(x, 3))(ZEROS).tolist() == [0.0] * 3
    assert grad(fnp.std)(np.full(3, 2.0)).tolist() == [0.0] * 3
    assert fgrad.hessian(fnp.linalg.norm)(ZEROS).tolist() == np.zeros((3, 3)).tolist()
    assert grad(lambda x: fnp.arctan2(x[0], x[1]))(ZEROS[:2]).tolist() == [0.0, 0.0]
    assert grad(lambda x: fnp.hypot(x[0], x[1]))(ZEROS[:2]).tolist() == [0.0, 0.0]
    assert grad(fnp.sqrt)(0.0) == np.inf
    assert grad(fnp.sinc)(0.0) == 0.0
    assert np.isclose(grad(grad(fnp.sinc))(0.0), -(np.pi**2) / 3)
    assert grad(lambda z: fnp.abs(z))(0j) == 0


@pytest.mark.parametrize("power", [0, 0.0, np.array(0.0), 2, 2.0, np.array(2.0), 1, 3])
def test_powers_of_zero(power):
    first = grad(lambda x: fnp.power(x, power))
    assert first(0.0) == (1.0 if power == 1 else 0.0)
    assert grad(first)(0.0) == (2.0 if power == 2 else 0.0)


def test_ties_share():
    assert grad(fnp.max)(np.array([2.0, 1.0, 2.0])).tolist() == [0.5, 0.0, 0.5]
    assert grad(fnp.min)(np.ones(4)).tolist() == [0.25] * 4
    assert grad(lambda x: fnp.maximum(x, 1.0))(1.0) == 0.5
    many = np.ones(70_000, np.float16)
    assert np.isclose(grad(fnp.max)(many).astype(float).sum(), 1.0, rtol=1e-2)
    assert grad(fnp.median)(np.array([1.0, 4.0, 2.0, 9.0])).tolist() == [0.0, 0.5, 0.5, 0.0]


def test_clip_at_its_bounds():
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    assert summed(lambda x: fnp.clip(x, -1.0, 1.0))(x).tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]
    assert summed(lambda x: fnp.clip(x, None, 1.0))(x).tolist() == [1.0, 1.0, 1.0, 1.0, 0.0]
    assert summed(lambda x: fnp.clip(x, min=-1.0))(x).tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert grad(lambda low: fnp.sum(fnp.clip(x, low, 1.0)))(-1.0) == 1.0


def test_a_guarded_where_is_exact():
    def f(x):
        safe = fnp.where(x > 0, x, 1.0)
        return fnp.sum(fnp.where(x > 0, fnp.sqrt(safe), 0.0))

    assert grad(f)(np.array([-1.0, 0.0, 4.0])).tolist() == [0.0, 0.0, 0.25]


def test_products_with_zeros():
    assert grad(fnp.prod)(np.array([2.0, 0.0, 3.0])).tolist() == [0.0, 6.0, 0.0]
    assert grad(fnp.prod)(np.array([0.0, 0.0, 3.0])).tolist() == [0.0, 0.0, 0.0]
    assert grad(lambda x: fnp.cumprod(x)[-1])(np.array([2.0, 0.0, 3.0])).tolist() == [0.0, 6.0, 0.0]


def test_logarithms_of_nothing():
    nothing = np.full(2, -np.inf)
    assert grad(lambda x: fnp.logaddexp(x[0], x[1]))(nothing).tolist() == [0.0, 0.0]
    assert grad(fgrad.nn.logsumexp)(nothing).tolist() == [0.0, 0.0]
    assert fgrad.nn.softmax(nothing, where=np.array([False, False])).tolist() == [0.0, 0.0]


def test_nan_functions_ignore_nan_in_derivatives():
    x = np.array([1.0, np.nan, 3.0])
    assert grad(fnp.nansum)(x).tolist() == [1.0, 0.0, 1.0]
    assert grad(fnp.nanmean)(x).tolist() == [0.5, 0.0, 0.5]
    assert grad(fnp.nanmax)(x).tolist() == [0.0, 0.0, 1.0]
    assert np.isfinite(grad(fnp.nanstd)(x)).all()
    assert grad(fnp.nanmedian)(x).tolist() == [0.5, 0.0, 0.5]
    assert grad(lambda x: fnp.sum(fnp.nan_to_num(x)))(x).tolist() == [1.0, 0.0, 1.0]


def test_sorted_values_carry_their_derivatives():
    x = np.array([3.0, 1.0, 2.0])
    assert grad(lambda x: fnp.sort(x) @ np.array([1.0, 10.0, 100.0]))(x).tolist() == [100.0, 1.0, 10.0]
    assert grad(lambda x: fnp.sum(x[fnp.argsort(x)[:2]]))(x).tolist() == [0.0, 1.0, 1.0]


def test_constants_have_no_derivative():
    for f in (fnp.floor, fnp.sign, fnp.rint, fnp.round, fnp.spacing, lambda x: fnp.astype(x, int) * 1.0):
        assert summed(f)(np.array([0.4, -1.6])).tolist() == [0.0, 0.0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_empty_arrays():
    empty = np.zeros((0, 2))
    assert grad(fnp.sum)(empty).shape == (0, 2)
    assert fgrad.jit(fnp.prod)(empty) == 1
    assert np.isnan(fgrad.jit(fnp.mean)(empty))
    for f in (fnp.max, fnp.min, fnp.argmax):
        with pytest.raises(ValueError, match=r"empty|zero-size"):
            fgrad.jit(f)(empty)
    assert fgrad.jit(lambda x: fnp.max(x, initial=-1.0))(empty) == -1.0

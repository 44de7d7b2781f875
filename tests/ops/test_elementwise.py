"""Elementwise and complex primitives where the laws do not look: kinks, ties, poles, far out, Python numbers."""

import math

import numpy as np
import pytest

import fgrad
from fgrad.ops import complex as c
from fgrad.ops import elementwise as e

INF, NAN = math.inf, math.nan


def derivative(f, order, argnum=0):
    """Return the derivative of `f` of an order by one of its arguments, reverse over reverse."""
    for _ in range(order):
        f = fgrad.grad(f, argnum)
    return f


def forward(f, order):
    """Return the derivative of a function of one number of an order, forward over forward."""
    if order == 0:
        return f
    return lambda x: fgrad.jvp(forward(f, order - 1), (x,), (np.ones_like(x),))[1]


def slopes(f, *args):
    """Return the derivatives of `f` by each of its arguments, as floats."""
    return [float(g) for g in fgrad.grad(f, tuple(range(len(args))))(*args)]


# -------------------------------------------------------------------------------------------------- kinks and ties


@np.errstate(all="ignore")
@pytest.mark.parametrize(
    ("f", "x", "want"),
    [
        (e.abs, 0.0, 0.0),
        (e.abs, -0.0, 0.0),
        (e.relu, 0.0, 0.0),
        (e.relu, NAN, 0.0),
        (e.sign, 0.0, 0.0),
        (e.floor, 1.0, 0.0),
        (e.ceil, 1.0, 0.0),
        (e.trunc, 1.0, 0.0),
        (e.rint, 0.5, 0.0),
        (e.sqrt, 0.0, INF),
        (e.cbrt, 0.0, INF),
        (e.rsqrt, 0.0, -INF),
        (e.log, 0.0, INF),
        (e.log1p, -1.0, INF),
        (lambda x: e.copysign(x, -1.0), 0.0, 0.0),
        (lambda x: e.copysign(x, -1.0), 2.0, -1.0),
        (lambda x: e.max(x, x), 1.0, 1.0),
        (lambda x: e.max(x, 1.0), 1.0, 0.5),
        (lambda x: e.min(x, 1.0), 1.0, 0.5),
        (lambda x: e.max(x, 1.0), NAN, 0.0),
        (lambda x: e.heaviside(x, 0.5), 0.0, 0.0),
        (lambda h: e.heaviside(0.0, h), 0.5, 1.0),
        (lambda h: e.heaviside(1.0, h), 0.5, 0.0),
    ],
)
def test_slopes_at_kinks(f, x, want):
    assert fgrad.grad(f)(x) == want
    assert fgrad.jvp(f, (x,), (1.0,))[1] == want


@pytest.mark.parametrize(
    ("x", "lo", "hi", "value", "want"),
    [
        (0.5, 0.0, 1.0, 0.5, [1, 0, 0]),
        (0.0, 0.0, 1.0, 0.0, [1, 0, 0]),
        (1.0, 0.0, 1.0, 1.0, [1, 0, 0]),
        (-1.0, 0.0, 1.0, 0.0, [0, 1, 0]),
        (2.0, 0.0, 1.0, 1.0, [0, 0, 1]),
        (0.5, 0.5, 0.5, 0.5, [1, 0, 0]),
        (0.5, 2.0, 1.0, 1.0, [0, 0, 1]),
        (NAN, 0.0, 1.0, NAN, [0, 0, 0]),
    ],
)
def test_clamp_gives_its_slope_to_one_argument(x, lo, hi, value, want):
    np.testing.assert_equal(float(e.clamp(x, lo, hi)), value)
    assert slopes(e.clamp, x, lo, hi) == want


@pytest.mark.parametrize(
    ("f", "args", "want"),
    [
        (e.hypot, (0.0, 0.0), [0, 0]),
        (e.hypot, (3e200, 4e200), [0.6, 0.8]),
        (e.hypot, (INF, 1.0), [NAN, 0]),
        (e.atan2, (0.0, 0.0), [0, 0]),
        (e.atan2, (0.0, 2.0), [0.5, 0]),
        (e.atan2, (1e-200, 0.0), [0, -1e200]),
        (e.atan2, (3e200, 4e200), [1.6e-201, -1.2e-201]),
        (e.logaddexp, (-INF, -INF), [0, 0]),
        (e.logaddexp, (-INF, 1.0), [0, 1]),
        (e.logaddexp, (INF, 1.0), [1, 0]),
        (e.logaddexp, (INF, INF), [0.5, 0.5]),
        (e.logaddexp, (1e300, -1e300), [1, 0]),
        (e.logaddexp2, (-INF, -INF), [0, 0]),
        (e.logaddexp2, (3.0, 3.0), [0.5, 0.5]),
        (e.xlogy, (0.0, 0.0), [-INF, 0]),
        (e.xlogy, (0.0, 2.0), [math.log(2), 0]),
        (e.xlog1py, (0.0, -1.0), [-INF, 0]),
        (e.rem, (-3.5, 2.0), [1, 2]),
        (e.fmod, (-3.5, 2.0), [1, 1]),
        (e.fmod, (0.3 * 3, 0.3), [1, -2]),
        (e.exp_sub, (-INF, -INF), [0, 0]),
        (e.exp_sub, (INF, INF), [1, -1]),
        (e.exp_sub, (1.0, INF), [0, 0]),
    ],
)
def test_slopes_of_two_arguments_at_edges(f, args, want):
    np.testing.assert_allclose(slopes(f, *args), want, rtol=1e-15)


def hessian(f, *args):
    return np.array(fgrad.hessian(f, (0, 1))(*args), dtype=float)


def test_second_derivatives_at_edges():
    np.testing.assert_allclose(hessian(e.hypot, 0.0, 0.0), np.zeros((2, 2)))
    np.testing.assert_allclose(hessian(e.hypot, 3.0, 4.0), np.array([[16, -12], [-12, 9]]) / 125)
    np.testing.assert_allclose(hessian(e.atan2, 0.0, 0.0), np.zeros((2, 2)))
    np.testing.assert_allclose(hessian(e.logaddexp, 2.0, 2.0), [[0.25, -0.25], [-0.25, 0.25]])
    np.testing.assert_allclose(hessian(e.logaddexp, -INF, -INF), np.zeros((2, 2)))
    np.testing.assert_allclose(hessian(e.xlogy, 0.0, 2.0), [[0, 0.5], [0.5, 0]])
    np.testing.assert_allclose(hessian(e.max, 1.0, 1.0), np.zeros((2, 2)))


# ------------------------------------------------------------------------------------- masks gate, never multiply


@pytest.mark.parametrize("order", [1, 2, 3])
def test_what_a_mask_leaves_out_has_no_effect(order):
    assert derivative(lambda x: e.sqrt(e.relu(x)), order)(-1.0) == 0
    assert derivative(lambda x: e.select(x > 0, e.log(e.select(x > 0, x, 1.0)), 0.0), order)(0.0) == 0
    assert derivative(lambda x: e.sqrt(e.clamp(x, 0.0, 1.0)), order)(-1.0) == 0
    assert derivative(lambda x: e.sqrt(e.max(x, 0.0)), order)(-1.0) == 0


def test_a_select_does_not_save_what_runs_before_it():
    assert math.isnan(fgrad.grad(lambda x: e.select(x > 0, e.sqrt(x), 0.0))(0.0))


# ----------------------------------------------------------------------------------------------------------- pow


@pytest.mark.parametrize("derivative", [derivative, forward], ids=["reverse", "forward"])
@pytest.mark.parametrize("exponent", [int, float, np.asarray, np.float64], ids="int float array strong".split())
@pytest.mark.parametrize(
    ("x", "y", "want"),
    [
        (0.0, 0, [1, 0, 0, 0]),
        (0.0, 1, [0, 1, 0, 0]),
        (0.0, 2, [0, 0, 2, 0]),
        (0.0, 3, [0, 0, 0, 6]),
        (0.0, 4, [0, 0, 0, 0]),
        (-0.0, 2, [0, 0, 2, 0]),
        (-2.0, 3, [-8, 12, -12, 6]),
        (-2.0, 2, [4, -4, 2, 0]),
        (-2.0, 0, [1, 0, 0, 0]),
        (-2.0, -1, [-0.5, -0.25, -0.25, -0.375]),
        (3.0, 2, [9, 6, 2, 0]),
    ],
)
def test_powers_of_whole_exponents_to_third_order(derivative, exponent, x, y, want):
    y = exponent(y)
    got = [derivative(lambda x: e.pow(x, y), order)(np.asarray(x)) for order in range(4)]
    np.testing.assert_allclose(np.array(got, float), want)


@np.errstate(all="ignore")
@pytest.mark.parametrize(
    ("x", "y", "by_x", "by_y"),
    [
        (0.0, 2.0, 0.0, 0.0),
        (0.0, 0.5, INF, 0.0),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, -1.0, -INF, -INF),
        (2.0, 0.0, 0.0, math.log(2)),
        (-2.0, 3.0, 12.0, NAN),
    ],
)
def test_slopes_of_pow(x, y, by_x, by_y):
    np.testing.assert_equal(slopes(e.pow, x, y), [by_x, by_y])
    np.testing.assert_equal(slopes(e.pow, np.array(x), np.array(y)), [by_x, by_y])


def test_mixed_second_derivatives_of_pow():
    mixed = fgrad.grad(fgrad.grad(e.pow, 0), 1)
    assert mixed(2.0, 0.0) == 0.5
    assert mixed(0.0, 0.0) == 0
    assert mixed(0.0, 2.0) == 0
    np.testing.assert_allclose(mixed(2.0, 3.0), 4 + 12 * math.log(2))
    np.testing.assert_allclose(derivative(e.pow, 2, argnum=1)(0.0, 2.0), 0)


@np.errstate(all="ignore")
def test_powers_of_python_numbers_stay_real():
    assert math.isnan(fgrad.value_and_grad(lambda x: x**0.5)(-8.0)[0])
    assert e.pow(-8.0, 1 / 3).__class__ is float
    assert e.pow(-8.0 + 0j, 0.5).__class__ is complex
    assert e.pow(10.0, 400) == INF
    assert e.pow(0.0, -1) == INF


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_narrow_integer_exponents(dtype):
    y = np.array([0, 0, 3], dtype)
    gradient = fgrad.grad(lambda x: e.pow(x, y).sum())(np.array([0.0, 1e3, 2.0], np.float32))
    np.testing.assert_array_equal(gradient, [0, 0, 12])


def test_exponents_that_are_bools():
    y = np.array([True, False, True])
    gradient = fgrad.grad(lambda x: e.pow(x, y).sum())(np.array([0, 3, 2], np.float16))
    assert gradient.dtype == np.float16
    np.testing.assert_array_equal(gradient, [1, 0, 1])


# ---------------------------------------------------------------------------------------------------- far out


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("f", [e.tanh, e.sigmoid, e.softplus, e.log_sigmoid, e.atan, e.exp, e.asinh])
def test_derivatives_far_out_are_finite_numbers(f, order):
    for x in (-1e4, -800.0, -100.0, 100.0, 700.0):
        got, pushed = derivative(f, order)(x), forward(f, order)(np.asarray(x))
        assert not math.isnan(got)
        np.testing.assert_allclose(got, pushed, rtol=1e-12)


def test_slopes_far_out():
    assert [float(fgrad.grad(e.sigmoid)(x)) for x in (-800.0, 800.0)] == [0, 0]
    assert [float(fgrad.grad(e.softplus)(x)) for x in (-800.0, 800.0)] == [0, 1]
    np.testing.assert_allclose(fgrad.grad(e.log_sigmoid)(-800.0), 1)
    np.testing.assert_allclose(fgrad.grad(e.softplus)(-40.0), math.exp(-40), rtol=1e-14)
    np.testing.assert_allclose(e.sigmoid(-40.0), math.exp(-40), rtol=1e-14)
    np.testing.assert_allclose(e.log_sigmoid(np.array([-INF, INF])), [-INF, 0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_values_far_out_do_not_warn(dtype):
    x = np.array([-INF, -1e4, -100, 0, 100, 1e4, INF], dtype)
    for f in (e.sigmoid, e.softplus, e.log_sigmoid, e.relu):
        assert f(x).dtype == dtype
        assert not np.isnan(f(x)).any()


def test_inverse_hyperbolic_slopes_in_half_precision():
    x = np.float16(300)
    np.testing.assert_allclose(fgrad.grad(e.asinh)(x), np.float16(1 / 300), rtol=1e-3)
    np.testing.assert_allclose(fgrad.grad(e.acosh)(x), np.float16(1 / 300), rtol=1e-3)


# -------------------------------------------------------------------------------------------- dtypes and numbers


@pytest.mark.parametrize(
    "f", [e.add, e.mul, e.div, e.pow, e.atan2, e.hypot, e.logaddexp, e.xlogy, e.xlog1py, e.max, e.rem]
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_number_beside_an_array_does_not_widen_the_gradient(f, dtype):
    x = np.array([0.5, 2.0], dtype)
    for fun in (lambda x: f(x, 2.0).sum(), lambda x: f(2.0, x).sum(), lambda x: f(0.0, x).sum()):
        assert fgrad.grad(fun)(x).dtype == dtype
        out, pushed = fgrad.jvp(fun, (x,), (np.ones(2, dtype),))
        assert out.dtype == pushed.dtype == dtype


@pytest.mark.parametrize("f", [e.add, e.sub, e.mul, e.div, e.pow, e.rem])
def test_operators_on_python_numbers_give_python_numbers(f):
    assert f(3.0, 2).__class__ is float
    seen = []
    fgrad.grad(lambda x: seen.append(f(x, 2).weak_type) or f(x, 2))(3.0)
    assert seen == [True]


@np.errstate(all="ignore")
@pytest.mark.parametrize("f", [e.div, e.floor_divide, e.rem, e.fmod])
def test_python_numbers_divided_by_zero_are_numpys(f):
    np.testing.assert_equal(float(f(1.0, 0.0)), float(f(np.float64(1), np.float64(0))))


@np.errstate(all="ignore")
def test_slopes_at_poles_of_python_numbers_are_infinite():
    assert fgrad.grad(lambda x: 1 / x)(0.0) == -INF
    assert fgrad.jvp(e.log, (0.0,), (1.0,))[1] == INF
    assert fgrad.jvp(e.log2, (0.0,), (1.0,))[1] == INF
    assert fgrad.jvp(e.atanh, (1.0,), (1.0,))[1] == INF


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int64])
@pytest.mark.parametrize("f", [e.sigmoid, e.softplus, e.log_sigmoid, e.rsqrt, e.exp, e.sqrt, e.sin, e.tanh])
def test_integers_have_values(f, dtype):
    x = np.array([0, 1], dtype)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(f(x), f(x.astype(np.float64)), rtol=1e-3)


def test_integers_keep_their_dtype_where_no_fraction_arises():
    x = np.array([-3, 2], np.int16)
    for f in (e.relu, e.abs, e.neg, e.square, lambda x: e.clamp(x, -1, 1), lambda x: e.max(x, 0)):
        assert f(x).dtype == np.int16


def test_xlogy_computes_in_the_dtype_of_its_result():
    y = np.float32(1.1)
    assert e.xlogy(np.float64(1), y) == np.log(np.float64(y))
    assert e.xlogy(2, 3) == 2 * math.log(3)
    assert math.isnan(e.xlogy(0.0, NAN))
    assert fgrad.grad(e.xlogy)(np.float64(1), y) == np.log(np.float64(y))


# -------------------------------------------------------------------------------------------------------- complex

Z = np.array([3 + 4j, -1 - 2j, 0.5j])


def test_parts_pair_without_a_conjugate():
    ones = np.ones(3)
    np.testing.assert_array_equal(fgrad.vjp(c.real, Z)[1](ones)[0], ones)
    np.testing.assert_array_equal(fgrad.vjp(c.imag, Z)[1](ones)[0], -1j * ones)
    np.testing.assert_array_equal(fgrad.vjp(c.conj, Z)[1](Z)[0], Z.conj())
    x, y = fgrad.vjp(c.complex, Z.real.copy(), Z.imag.copy())[1](Z)
    np.testing.assert_array_equal(x, Z.real)
    np.testing.assert_array_equal(y, -Z.imag)


def test_modulus_and_sign():
    np.testing.assert_allclose(fgrad.grad(c.complex_abs)(3 + 4j), 0.6 - 0.8j)
    assert fgrad.grad(c.complex_abs)(0j) == 0
    assert fgrad.grad(lambda z: c.real(c.complex_sign(z)))(0j) == 0
    assert c.complex_sign(0j) == 0
    np.testing.assert_allclose(fgrad.grad(lambda z: c.complex_abs(z) ** 2)(3 + 4j), 6 - 8j)
    tangent = fgrad.jvp(c.complex_sign, (Z,), (Z,))[1]
    np.testing.assert_allclose(tangent, 0, atol=1e-16)  # stretching does not turn


@pytest.mark.parametrize("f", "exp log sin cos tan sinh cosh tanh sqrt asinh acosh asin acos atan reciprocal".split())
def test_holomorphic_functions_have_complex_derivatives(f):
    f = getattr(e, f)
    z, h = 0.7 - 1.3j, 1e-6
    numeric = (f(z + h) - f(z - h)) / (2 * h)
    np.testing.assert_allclose(fgrad.grad(f, holomorphic=True)(z), numeric, rtol=1e-8)
    z = -z  # on the other side of every cut
    numeric = (f(z + h) - f(z - h)) / (2 * h)
    np.testing.assert_allclose(fgrad.grad(f, holomorphic=True)(z), numeric, rtol=1e-8)


def test_complex_powers():
    np.testing.assert_allclose(fgrad.grad(lambda z: z**2, holomorphic=True)(1 + 2j), 2 + 4j)
    np.testing.assert_allclose(fgrad.grad(lambda y: e.pow(1j, y), holomorphic=True)(2 + 0j), -0.5j * np.pi)
    np.testing.assert_allclose(fgrad.grad(lambda y: e.pow(-2.0, y), holomorphic=True)(2 + 0j), 4 * np.log(-2 + 0j))
    assert fgrad.grad(lambda z: z**0, holomorphic=True)(0j) == 0


def test_a_real_argument_of_a_complex_function_has_a_real_gradient():
    gradient = fgrad.grad(lambda x: c.real(x * Z * 1j).sum())(np.ones(3))
    assert gradient.dtype == np.float64
    np.testing.assert_array_equal(gradient, -Z.imag)


def test_complex_parts_keep_infinities_apart():
    assert c.complex(1.0, INF) == complex(1.0, INF)
    z = c.complex(np.float32(1), np.zeros(2, np.float32))
    assert z.dtype == np.complex64
    assert z.shape == (2,)


def test_parts_of_real_arrays():
    x = np.arange(3.0)
    for f, want in ((c.real, x), (c.imag, 0 * x), (c.conj, x)):
        assert not np.shares_memory(f(x), x)
        np.testing.assert_array_equal(f(x), want)
    np.testing.assert_array_equal(fgrad.grad(lambda x: c.imag(x).sum())(x), np.zeros(3))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_gates_of_large_arrays_choose(dtype, step):
    # Past some size a gate is made of bits and not by `where`: what is not chosen has no effect all the same.
    x = np.random.default_rng(0).standard_normal(4000).astype(dtype)
    ct = np.resize(np.array([1, -0.0, INF, -INF, NAN, 3], dtype), 4000)[::step]
    x = x[::step]
    out, pull = fgrad.vjp(e.relu, x)
    (found,) = pull(ct)
    np.testing.assert_array_equal(out, np.where(x > 0, x, 0))
    np.testing.assert_array_equal(found, np.where(x > 0, ct, np.zeros((), dtype)))
    assert found.dtype == dtype

"""Traced values keep to their transform: no perturbation confusion, no leaks, no silent conversions."""

import operator
import threading

import numpy as np
import pytest

import fgrad
from fgrad.core import state
from fgrad.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

X = np.array([0.5, -1.5, 2.0])
ONE = np.array(1.0)


# ------------------------------------------------------------------------------------- perturbation confusion


def derivative_by_jvp(f):
    return lambda x: fgrad.jvp(f, (x,), (np.ones_like(np.asarray(1.0)),))[1]


def derivative_by_linearize(f):
    return lambda x: fgrad.linearize(f, x)[1](np.asarray(1.0))


def derivative_by_vjp(f):
    return lambda x: fgrad.vjp(f, x)[1](np.asarray(1.0))[0]


DERIVATIVES = {
    "grad": fgrad.grad,
    "jvp": derivative_by_jvp,
    "linearize": derivative_by_linearize,
    "vjp": derivative_by_vjp,
    "jacfwd": fgrad.jacfwd,
    "jacrev": fgrad.jacrev,
}
each_derivative = pytest.mark.parametrize("d", DERIVATIVES.values(), ids=DERIVATIVES)
each_inner = pytest.mark.parametrize("inner", DERIVATIVES.values(), ids=DERIVATIVES)


@each_derivative
@each_inner
def test_inner_constant_is_not_perturbed(d, inner):
    """d/dx (x · d/dy (x + y)) = 1: the classic of Siskind and Pearlmutter, IFL 2005."""
    f = lambda x: x * inner(lambda y: x + y)(ONE)  # noqa: E731
    np.testing.assert_allclose(d(f)(np.array(2.0)), 1.0)


@each_derivative
@each_inner
def test_closed_over_variable_is_differentiated_once(d, inner):
    """d/dx (d/dy (x² y³) at y = x) = d/dx (3 x⁴)."""
    f = lambda x: inner(lambda y: x * x * y * y * y)(x)  # noqa: E731
    np.testing.assert_allclose(d(f)(np.array(2.0)), 12 * 8.0)


@each_derivative
def test_three_levels(d):
    f = lambda x: d(lambda y: d(lambda z: x * y * z * z)(y) * x)(x)  # noqa: E731
    np.testing.assert_allclose(d(f)(np.array(1.5)), 12 * 1.5**2)  # inner: 2xyz at z=y: 2xy²; ·x: 2x²y²; by y: 4x²y


def test_pullback_applied_inside_another_transform():
    _, pull = fgrad.vjp(lambda x: x * x, X)
    np.testing.assert_allclose(fgrad.grad(lambda ct: (pull(ct)[0] ** 2).sum())(X), 8 * X**3)


def test_pullback_that_closes_over_an_outer_variable():
    def f(x):
        _, pull = fgrad.vjp(lambda y: y * x, x)
        return pull(x)[0].sum()

    np.testing.assert_allclose(fgrad.grad(f)(X), 2 * X)


def test_transform_of_a_function_that_ignores_its_argument():
    np.testing.assert_allclose(fgrad.grad(lambda x: fgrad.grad(lambda y: (x * x).sum())(X).sum())(X), 0 * X)


# --------------------------------------------------------------------------------------------------- leaks


def leak(transform):
    """Return a value traced by a transform that has ended."""
    kept = []

    def f(x):
        kept.append(x * 2)
        return x.sum()

    transform(f)(X)
    return kept[0]


TRANSFORMS = {
    "grad": fgrad.grad,
    "jvp": lambda f: lambda x: fgrad.jvp(f, (x,), (x,)),
    "vjp": lambda f: lambda x: fgrad.vjp(f, x),
    "linearize": lambda f: lambda x: fgrad.linearize(f, x),
    "vmap": lambda f: lambda x: fgrad.vmap(f)(np.stack([x, x])),
    "jit": fgrad.jit,
    "checkpoint": lambda f: fgrad.grad(fgrad.checkpoint(f)),
}
each_transform = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)


@each_transform
@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: -x,
        lambda x: np.sin(x),
        lambda x: X * x,
        lambda x: x.sum(),
        lambda x: x[0],
        lambda x: np.concatenate([x, x]),
    ],
    ids="add rsub neg ufunc array-times sum getitem function".split(),
)
def test_leaked_values_raise(transform, use):
    with pytest.raises(UnexpectedTracerError, match=r"leaked: it was used at .*test_tracers.py"):
        use(leak(transform))


@each_transform
def test_leaked_values_raise_inside_another_transform(transform):
    x = leak(transform)
    with pytest.raises(UnexpectedTracerError, match="leaked"):
        fgrad.grad(lambda y: (x * y).sum())(X)
    with pytest.raises(UnexpectedTracerError, match="leaked"):
        fgrad.jit(lambda y: (x * y).sum())(X)


def test_values_do_not_cross_threads():
    errors = []

    def f(x):
        def work():
            try:
                x * 2
            except UnexpectedTracerError as error:
                errors.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x.sum()

    fgrad.grad(f)(X)
    assert "another thread" in errors[0]


def test_threads_have_their_own_transforms():
    wrong = []

    def work(k):
        for _ in range(50):
            g = fgrad.grad(lambda x: (k * x * x).sum())(X)
            if not np.array_equal(g, 2 * k * X):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@each_transform
def test_state_is_restored_after_an_error(transform):
    def f(x):
        raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        transform(f)(X)
    assert state.interpreter is None
    assert isinstance(np.sin(X), np.ndarray)
    np.testing.assert_allclose(fgrad.grad(lambda x: (x * x).sum())(X), 2 * X)


# ----------------------------------------------------------------------------------- control flow, conversions


def test_values_under_grad_steer_python():
    def f(x):
        if x > 0:
            return x * x
        while x < 2:
            x = x + 1
        return -x * [1.0, 3.0][int(x) - 1]

    assert fgrad.grad(f)(2.0) == 4
    assert fgrad.grad(f)(-1.5) == -3
    assert fgrad.jvp(f, (-1.5,), (1.0,))[1] == -3


@pytest.mark.parametrize("transform", [fgrad.jit, fgrad.vmap], ids=["jit", "vmap"])
@pytest.mark.parametrize(
    ("use", "error", "remedy"),
    [
        (lambda x: x if x.sum() > 0 else -x, TracerBoolConversionError, "cond"),
        (lambda x: [x for _ in range(x.sum().astype(int))], TracerIntegerConversionError, "fori_loop"),
        (lambda x: float(x.sum()), ConcretizationTypeError, "stop_gradient"),
        (lambda x: x.sum().item(), ConcretizationTypeError, "stop_gradient"),
        (lambda x: np.asarray(x), TracerArrayConversionError, "fgrad.numpy"),
    ],
    ids="if range float item asarray".split(),
)
def test_unknown_values_do_not_steer_python(transform, use, error, remedy):
    with pytest.raises(error, match=r"test_tracers.py:\d+") as raised:
        transform(use)(np.stack([X, X]))
    assert remedy in str(raised.value)


@pytest.mark.parametrize(
    "use", [lambda x: float(x[0]), lambda x: x[0].item(), lambda x: x.tolist()[0]], ids="float item tolist".split()
)
def test_values_are_not_cut_silently_under_grad(use):
    with pytest.raises(ConcretizationTypeError, match="cut the derivative silently"):
        fgrad.grad(lambda x: x.sum() * use(x))(X)


def test_assignment_and_out_name_the_remedy():
    def assign(x):
        x[0] = 1.0
        return x.sum()

    def into(x):
        return np.multiply(x, x, out=np.empty(3)).sum()

    def in_place(x):
        y = np.ones(3)
        y += x
        return y.sum()

    with pytest.raises(TypeError, match=r"x\.at\[index\]\.set"):
        fgrad.grad(assign)(X)
    for f in (into, in_place):
        with pytest.raises(TypeError, match=r"existing array.*test_tracers.py"):
            fgrad.grad(f)(X)


@pytest.mark.parametrize("value", [2.0, 0.6, np.array(2.0), np.float32(1.5)])
def test_a_float_is_no_index(value):
    """Python would otherwise truncate it; NumPy 2.0 asks for it before it lets an array be raised to a traced power."""
    base = np.array([0.5, 3.0])
    slope = fgrad.grad(lambda x: (base**x).sum())(value)
    np.testing.assert_allclose(slope, (base**value * np.log(base)).sum(), rtol=1e-6)
    for use in (operator.index, lambda x: [1, 2, 3][x], range):
        with pytest.raises(TypeError):
            fgrad.grad(lambda x, use=use: x * (use(x) is None))(value)

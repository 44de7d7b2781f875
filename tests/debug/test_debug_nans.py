"""`debug_nans`: the primitive, the line and the operands of the first NaN or infinity, under every transform."""

import inspect
import threading

import numpy as np
import pytest

import fgrad
import fgrad.compat as torch
import fgrad.numpy as fnp
from fgrad import lax
from fgrad.core import TABLE
from fgrad.debug import MOVING
from fgrad.errors import NonFiniteError
from fgrad.transforms.linearize import Linearize, tapes

X = np.array([1.0, 4.0, 0.0])
SIGNED = np.array([1.0, -4.0, 2.0])


def root(x):
    return np.sqrt(x)  # LINE of root


def log(x):
    return np.log(x)  # LINE of log


def loss(x):
    return (root(x) * 0).sum()


def step(carry, x):
    return carry - 1.0, log(carry)


def root_step(carry, x):
    return carry - 1.0, root(carry) * 0


def line(name):
    """Return `file:line` of the line of this file that is marked with the name of a function."""
    text = inspect.getsource(inspect.getmodule(line)).splitlines()
    return f"{__file__}:{1 + next(k for k, code in enumerate(text) if code.endswith(f'# LINE of {name}'))}"


def found(run, **wanted):
    with pytest.raises(NonFiniteError) as info, fgrad.debug_nans(**wanted):
        run()
    return str(info.value)


FORWARD = {
    "eager": lambda: fnp.log(SIGNED),
    "grad": lambda: fgrad.grad(lambda x: log(x).sum())(SIGNED),
    "vjp": lambda: fgrad.vjp(log, SIGNED),
    "jvp": lambda: fgrad.jvp(log, (SIGNED,), (SIGNED,)),
    "linearize": lambda: fgrad.linearize(log, SIGNED),
    "vmap": lambda: fgrad.vmap(log)(SIGNED),
    "jit": lambda: fgrad.jit(log)(SIGNED),
    "jit of jit": lambda: fgrad.jit(lambda x: fgrad.jit(log)(x) + 1)(SIGNED),
    "grad of jit": lambda: fgrad.grad(fgrad.jit(lambda x: log(x).sum()))(SIGNED),
    "vmap of jit": lambda: fgrad.vmap(fgrad.jit(log))(SIGNED),
    "jit of vmap": lambda: fgrad.jit(fgrad.vmap(log))(SIGNED),
    "hessian": lambda: fgrad.hessian(lambda x: log(x).sum())(SIGNED),
    "checkpoint": lambda: fgrad.grad(lambda x: fgrad.checkpoint(log)(x).sum())(SIGNED),
    "vmap of cond": lambda: fgrad.vmap(lambda x: lax.cond(x < 9, log, lambda x: x, x))(SIGNED),
}


@pytest.mark.parametrize("run", FORWARD.values(), ids=FORWARD)
def test_forward(run):
    message = found(run)
    assert "invalid value (nan) encountered in 'log' at " in message
    assert "out[1] = nan, from x[1] = -4.0" in message
    if run is not FORWARD["eager"]:
        assert line("log") in message


LOOPS = {
    "scan": lambda: lax.scan(step, 2.5, np.arange(5.0)),
    "scan under jit": lambda: fgrad.jit(lambda c: lax.scan(step, c, np.arange(5.0)))(2.5),
    "while": lambda: lax.while_loop(lambda c: c[0] > -3, lambda c: (c[0] - 1, log(c[0])), (2.5, 0.0)),
    "fori": lambda: lax.fori_loop(0, 5, lambda i, c: c + log(2.5 - i), 0.0),
    "cond": lambda: lax.cond(True, log, lambda x: x, -0.5),
    "grad of scan": lambda: fgrad.grad(lambda c: lax.scan(step, c, np.arange(5.0))[1].sum())(2.5),
}


@pytest.mark.parametrize("run", LOOPS.values(), ids=LOOPS)
def test_loops_stop_at_the_step(run):
    message = found(run)
    assert "encountered in 'log' at " + line("log") in message
    assert "x = -0.5" in message or "x[] = -0.5" in message


BACKWARD = {
    "grad": lambda: fgrad.grad(loss)(X),
    "vjp": lambda: fgrad.vjp(root, X)[1](np.zeros(3)),
    "jvp": lambda: fgrad.jvp(root, (X,), (np.zeros(3),)),
    "linearize": lambda: fgrad.linearize(root, X)[1](np.zeros(3)),
    "jacrev": lambda: fgrad.jacrev(loss)(X),
    "vmap of grad": lambda: fgrad.vmap(fgrad.grad(lambda x: root(x) * 0))(X),
    "grad of vmap": lambda: fgrad.grad(lambda x: (fgrad.vmap(root)(x) * 0).sum())(X),
    "jit of grad": lambda: fgrad.jit(fgrad.grad(loss))(X),
    "grad of jit": lambda: fgrad.grad(fgrad.jit(loss))(X),
    "checkpoint": lambda: fgrad.grad(fgrad.checkpoint(loss))(X),
    "grad of scan": lambda: fgrad.grad(lambda c: lax.scan(root_step, c, np.arange(4.0))[1].sum())(3.0),
    "jit of grad of scan": lambda: fgrad.jit(fgrad.grad(lambda c: lax.scan(root_step, c, np.arange(4.0))[1].sum()))(
        3.0
    ),
    "grad of cond": lambda: fgrad.grad(lambda x: lax.cond(x.sum() > 0, loss, lambda x: x.sum(), x))(X),
    "second order": lambda: fgrad.grad(lambda x: fgrad.grad(loss)(x).sum())(X),
}


@pytest.mark.parametrize("run", BACKWARD.values(), ids=BACKWARD)
def test_backward_names_the_forward_line(run):
    message = found(run)
    assert "derivative of 'sqrt'" in message
    assert line("root") in message
    assert "nan, from " in message and "0.0" in message


def test_tangents_under_vmap_name_the_line():
    assert line("root") in found(lambda: fgrad.jacfwd(lambda x: root(x * 0))(X))


def test_a_cached_recording_does_not_hide_the_line():
    f = fgrad.jit(loss)
    fgrad.grad(f)(X)
    assert line("root") in found(lambda: fgrad.grad(f)(X))
    assert np.isnan(fgrad.grad(f)(X)).any()


def test_words_of_a_gradient():
    message = found(lambda: fgrad.grad(loss)(X))
    assert message == (
        f"invalid value (nan) encountered in the derivative of 'sqrt' at {line('root')}: "
        "the cotangent of x[2] = nan, from ct[2] = 0.0, out[2] = 0.0"
    )


def test_operands_of_another_shape():
    message = found(lambda: fnp.sum(np.array([[1.0, np.inf], [-np.inf, 0.0]])))
    assert "out = nan, from x[0, 1] = inf" in message
    message = found(lambda: fnp.matmul(np.array([[np.inf, 1.0]]), np.zeros((2, 1))))
    assert "out[0, 0] = nan" in message and "x[0, 0] = inf, y: float64[2,1], all finite" in message


def test_a_nan_from_outside_is_said_to_be_one():
    message = found(lambda: fnp.exp(np.array([1.0, np.nan])))
    assert "x[1] = nan was there before: it came in from outside" in message
    message = found(lambda: fgrad.vjp(lambda x: x * 2, 1.0)[1](np.nan))
    assert "ct = nan was there before" in message


def test_data_with_gaps_may_be_moved_and_masked():
    gaps = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, 6.0]])
    with fgrad.debug_nans():
        assert fnp.nanmean(gaps.T) == 15 / 4
        assert fnp.nanmedian(gaps) == 4.0
        assert fnp.where(fnp.isnan(gaps), 0.0, gaps)[:, ::-1].sum() == 15
        np.testing.assert_array_equal(fgrad.grad(lambda x: fnp.nansum(x * 2))(np.ones(3)), [2, 2, 2])
    assert "encountered in 'mul'" in found(lambda: fnp.multiply(fnp.reshape(gaps, (3, 2)), 2.0))
    TABLE.complete()
    assert set(MOVING) <= set(TABLE)


def test_infinities():
    with fgrad.debug_nans(), np.errstate(over="ignore"):
        assert np.isinf(fnp.exp(1e9))
    assert "invalid value (inf) encountered in 'exp'" in found(lambda: fnp.exp(1e9), inf=True)
    message = found(lambda: fgrad.grad(lambda x: root(x).sum())(X), inf=True)
    assert "invalid value (inf)" in message and "out[2] = 0.0" in message
    with fgrad.debug_nans(nan=False, inf=True), np.errstate(invalid="ignore"):
        assert np.isnan(fnp.log(-1.0))
        masked = fnp.where(X > 0, X, -np.inf)  # an infinity that is meant
        assert fnp.max(masked) == 4.0
    with pytest.raises(ValueError, match="nothing to watch for"):
        fgrad.debug_nans(nan=False)


def test_a_nan_behind_an_infinity_that_is_meant():
    mixed = np.array([np.inf, -1.0])
    with np.errstate(all="ignore"):
        assert "invalid value (nan) encountered in 'log'" in found(lambda: fnp.log(mixed), inf=True)


def test_complex_half_and_integers():
    assert "'log'" in found(lambda: fnp.log(np.array(-1.0, np.float16)))
    assert "'mul'" in found(lambda: fnp.multiply(np.array(complex(np.inf, 0)), np.array(0j)))
    with fgrad.debug_nans(inf=True):
        assert fnp.add(1, np.arange(3)).tolist() == [1, 2, 3]
        assert fnp.sum(np.zeros((0, 3))) == 0


def test_numpy_on_plain_arrays():
    message = found(lambda: np.log(SIGNED))
    assert "in a NumPy function at " in message and "`message = found(lambda: np.log(SIGNED))`" in message
    assert "(inf)" in found(lambda: np.ones(3) / np.zeros(3), inf=True)
    with fgrad.debug_nans(), np.errstate(all="ignore"):
        assert np.isnan(np.log(-1.0))


def test_custom_rules():
    @fgrad.custom_vjp
    def twice(x):
        return x * 2

    twice.defvjp(lambda x: (x * 2, None), lambda residual, ct: (ct * np.nan,))
    assert "derivative of 'custom_vjp_call'" in found(lambda: fgrad.grad(twice)(1.0))
    halved = fgrad.custom_jvp(lambda x: log(x) / 2)
    halved.defjvp(lambda primals, tangents: (halved(*primals), tangents[0] / 2))
    message = found(lambda: fgrad.grad(halved)(-1.0))
    assert "in a NumPy function" in message and line("log") in message, "the rule calls NumPy on plain values"


def test_tensors():
    x = torch.tensor([-1.0, 4.0], requires_grad=True)
    assert "'sqrt'" in found(x.sqrt)
    with fgrad.debug_nans():
        (x * x).sum().backward()
    assert x.grad.tolist() == [-2.0, 8.0]


def test_as_a_decorator_and_nested():
    @fgrad.debug_nans()
    def train(x):
        with fgrad.debug_nans(inf=True):
            assert fgrad.jit(lambda x: x + 1)(x) == 3
        return fnp.log(x)

    assert train(2.0) == np.log(2.0)
    with pytest.raises(NonFiniteError):
        train(np.nan)


def test_nothing_is_left_behind():
    f = fgrad.jit(lambda x: np.tanh(x).sum())
    before = f(X), fgrad.grad(f)(X)
    errors = np.geterr(), np.geterrcall()
    with pytest.raises(ZeroDivisionError), fgrad.debug_nans():
        raise ZeroDivisionError
    assert tapes.reverse is Linearize
    assert (np.geterr(), np.geterrcall()) == errors
    assert fgrad.core.state.interpreter is None
    assert f(X) == before[0]
    np.testing.assert_array_equal(fgrad.grad(f)(X), before[1])
    assert f.cache_info().misses == 1, "runs as compiled again"


def test_results_are_those_without_it():
    def f(x, y):
        h = lax.scan(lambda c, v: (np.tanh(c * y + v), c.sum()), x, np.ones((3, 3)))
        return h[0].sum() + h[1].max()

    args = X, np.array([0.3, -0.2, 0.5])
    plain = fgrad.value_and_grad(f, (0, 1))(*args), fgrad.jvp(f, args, args), fgrad.jit(fgrad.hessian(f))(*args)
    with fgrad.debug_nans(inf=True):
        watched = fgrad.value_and_grad(f, (0, 1))(*args), fgrad.jvp(f, args, args), fgrad.jit(fgrad.hessian(f))(*args)
    for a, b in zip(fgrad.tree.leaves(plain), fgrad.tree.leaves(watched), strict=True):
        assert type(a) is type(b) and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_holds_for_its_thread_alone():
    out = []
    with fgrad.debug_nans():
        thread = threading.Thread(target=lambda: out.append(np.isnan(fgrad.grad(loss)(X)).any()))
        thread.start()
        thread.join()
    assert out == [True]


def test_a_pullback_that_outlives_the_hunt_is_plain():
    with fgrad.debug_nans():
        _, pull = fgrad.vjp(root, X)
    assert np.isnan(pull(np.zeros(3))[0][2])


def test_inside_a_traced_function_there_is_nothing_to_see():
    def f(x):
        with fgrad.debug_nans():
            return np.log(x)

    assert np.isnan(fgrad.jit(f)(-1.0))
    with pytest.raises(NonFiniteError):
        fgrad.grad(f)(-1.0)

"""Transforms and jitted functions run in many threads at once, and in a forked child, as they do in one thread."""

import threading

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import lax
from tests.threads import at_once, in_child, needs_fork, while_forking, with_threads

X = np.linspace(0.1, 1.7, 12).reshape(3, 4)


def smooth(x):
    return fnp.sum(fnp.sin(x) * fnp.exp(-x) + fnp.tanh(x @ x.T).sum())


def looped(x):
    return lax.scan(lambda c, row: (c * fnp.cos(row).sum(), c), 1.0, x)[0]


def custom(x):
    @fgrad.custom_vjp
    def f(x):
        return fnp.sum(x**3)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (3 * x**2 * ct,))
    return f(x)


SHARED = fgrad.jit(smooth)
WORK = {
    "grad": lambda x: fgrad.grad(smooth)(x),
    "grad of a shared jitted function": lambda x: fgrad.grad(SHARED)(x),
    "jit of grad": lambda x: fgrad.jit(fgrad.grad(smooth))(x),
    "jvp": lambda x: fgrad.jvp(smooth, (x,), (x,))[1],
    "hessian": lambda x: fgrad.hessian(smooth)(x),
    "vmap of grad": lambda x: fgrad.vmap(fgrad.grad(lambda row: fnp.sum(row**3)))(x),
    "grad of scan": lambda x: fgrad.grad(looped)(x),
    "jit of grad of scan": lambda x: fgrad.jit(fgrad.grad(looped))(x),
    "checkpoint": lambda x: fgrad.grad(fgrad.checkpoint(smooth))(x),
    "custom rule": lambda x: fgrad.grad(custom)(x),
    "linalg": lambda x: fgrad.grad(lambda x: fnp.linalg.slogdet(x @ x.T + np.eye(3))[1])(x),
    "NumPy's functions": lambda x: fgrad.grad(lambda x: np.sum(np.sort(x, axis=1)[:, 0] ** 2))(x),
    "special functions": lambda x: fgrad.grad(lambda x: fgrad.scipy.special.i0(x).sum())(x),
}


def test_all_transforms_at_once():
    wanted = {name: work(X) for name, work in WORK.items()}

    def job(first):
        names = [*WORK][first:] + [*WORK][:first]  # each thread does something else at a time
        for name in names * 3:
            np.testing.assert_array_equal(WORK[name](X), wanted[name], err_msg=name)

    at_once(*[lambda k=k: job(k) for k in range(8)])


def test_a_function_called_first_by_many_threads():
    for _ in range(5):
        traces = []

        @fgrad.jit
        def f(x, traces=traces):
            traces.append(x.shape)
            return fnp.sum(fnp.sin(x) * x)

        sizes = [3, 4, 3, 5, 4, 3, 5, 3]
        at_once(*[lambda n=n: np.testing.assert_allclose(f(np.ones(n)), n * np.sin(1.0)) for n in sizes * 2])
        assert set(traces) == {(3,), (4,), (5,)}
        assert f.cache_info().currsize == 3


def test_one_pullback_in_many_threads():
    out, pull = fgrad.vjp(lambda x: fnp.sin(x) @ x.T, X)
    (want,) = pull(out)
    at_once(*[lambda: np.testing.assert_array_equal(pull(out)[0], want)] * 8)


def test_each_thread_has_settings_of_its_own():
    entered, leave = threading.Event(), threading.Event()

    def disabled():
        with fgrad.disable_jit():
            entered.set()
            leave.wait(10)

    def enabled():
        entered.wait(10)
        seen = []
        fgrad.jit(lambda x: seen.append(type(x)) or x)(1.0)
        leave.set()
        assert seen == [fgrad.program.ProgramTracer]

    at_once(disabled, enabled)


LARGE = np.linspace(0.0, 1.0, 2_000_000)


@fgrad.jit
def on_all_cores(x):
    y = fnp.sin(x) * x
    return fnp.sum(fnp.exp(-y) * y + fnp.sqrt(y + 1.0))


@pytest.mark.heavy
def test_large_arrays_in_many_threads():
    slope = fgrad.jit(fgrad.grad(on_all_cores))
    want = on_all_cores(LARGE), slope(LARGE)

    def job():
        for _ in range(3):
            np.testing.assert_array_equal(on_all_cores(LARGE), want[0])
            np.testing.assert_array_equal(slope(LARGE), want[1])

    at_once(*[job] * 4)


# ------------------------------------------------------------------------------------------------------- forks


@needs_fork
@with_threads
def test_a_forked_child_works():
    wanted = {name: work(X) for name, work in WORK.items()}

    def job():
        for name, work in WORK.items():
            np.testing.assert_array_equal(work(X), wanted[name])

    assert in_child(job)
    assert in_child(lambda: at_once(*[job] * 4))
    job()


@needs_fork
@with_threads
@pytest.mark.heavy
def test_a_forked_child_works_after_the_worker_threads_started():
    want = on_all_cores(LARGE)
    product = fgrad.jit(lambda x: fnp.sum(x @ x.T))
    square = np.ones((400, 400))
    product(square)

    def job():
        np.testing.assert_array_equal(on_all_cores(LARGE), want)
        assert product(square) == 400.0**3

    assert in_child(job)
    job()


@needs_fork
@with_threads
def test_forks_while_other_threads_are_at_work():
    want = fgrad.grad(smooth)(X)

    def busy():
        fgrad.jit(lambda x: fnp.sum(x @ x.T))(X)  # takes the locks of caches and of BLAS

    while_forking(busy, lambda: np.testing.assert_array_equal(fgrad.jit(fgrad.grad(smooth))(X), want))


@needs_fork
def test_a_child_forked_inside_a_transform_goes_on():
    outcomes = []

    def f(x):
        y = x * x
        outcomes.append(in_child(lambda: np.testing.assert_array_equal(fgrad.grad(fnp.sin)(0.0), 1.0)))
        return fnp.sum(y)

    np.testing.assert_array_equal(fgrad.grad(f)(X), 2 * X)
    assert outcomes == [True]

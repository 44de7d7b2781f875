"""Long programs and the price of short ones: no recursion over graph or program length, and few calls per gradient."""

import gc
import sys
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest

import fgrad

N = 100_000
HOME = str(Path(fgrad.__file__).parent)
X = np.array([1.0, 2.0])


def chain(n):
    """Return a function that multiplies by 1 - 1/n, n times."""

    def f(x):
        for _ in range(n):
            x = x * (1 - 1 / n)
        return x

    return f


def sum_of(f):
    return lambda x: f(x).sum()


TRANSFORMS = {
    "grad": lambda f: fgrad.grad(sum_of(f))(X),
    "vjp": lambda f: fgrad.vjp(f, X)[1](np.ones(2))[0],
    "jvp": lambda f: fgrad.jvp(f, (X,), (np.ones(2),))[1],
    "linearize": lambda f: fgrad.linearize(f, X)[1](np.ones(2)),
    "linear_transpose": lambda f: fgrad.linear_transpose(f, X)(np.ones(2))[0],
    "vmap": lambda f: fgrad.vmap(fgrad.grad(f))(X),
    "second order": lambda f: fgrad.grad(lambda x: fgrad.grad(lambda y: f(y * y).sum() / 2)(x).sum())(X),
}
RECORDED = {
    "grad of jit": lambda f: fgrad.grad(fgrad.jit(sum_of(f)))(X),
    "jit of grad": lambda f: fgrad.jit(fgrad.grad(sum_of(f)))(X),
    "grad of checkpoint": lambda f: fgrad.grad(fgrad.checkpoint(sum_of(f)))(X),
    "vmap of jit": lambda f: fgrad.vmap(fgrad.jit(fgrad.grad(f)))(X),
}


@pytest.mark.heavy
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_long_chains(transform):
    np.testing.assert_allclose(transform(chain(N)), [(1 - 1 / N) ** N] * 2, rtol=1e-9)


@pytest.mark.heavy
@pytest.mark.parametrize("n", [N // 10, pytest.param(N, marks=pytest.mark.slow)])
@pytest.mark.parametrize("transform", RECORDED.values(), ids=RECORDED)
def test_long_programs(transform, n):
    np.testing.assert_allclose(transform(chain(n)), [(1 - 1 / n) ** n] * 2, rtol=1e-9)


@pytest.mark.heavy
def test_long_sums_of_one_value():
    """A node with as many children as the chain is long."""

    def f(x):
        total = 0.0
        for _ in range(N):
            total = total + x
        return total.sum()

    np.testing.assert_allclose(fgrad.grad(f)(X), [N, N])


@pytest.mark.heavy
def test_long_chains_are_freed_without_the_collector(no_collector):
    start = len(gc.get_objects())
    _, pull = fgrad.vjp(chain(N), X)
    assert len(gc.get_objects()) > start + N
    del pull
    assert len(gc.get_objects()) < start + 100, "the tape outlives its pullback"


def test_gradients_leave_no_garbage(no_collector):
    """A steady state: what a gradient makes is freed by reference counts alone."""
    f = fgrad.grad(lambda x: np.tanh(x * x).sum())
    f(X)
    before = len(gc.get_objects())
    for _ in range(100):
        f(X)
    assert len(gc.get_objects()) <= before + 2


def test_forward_values_are_freed_as_soon_as_nobody_needs_them():
    """A sum saves nothing, so a chain of them holds one array at a time."""
    alive = []

    def f(x):
        for _ in range(20):
            x = x + 1.0
            alive.append(weakref.ref(x.value))
            assert sum(ref() is not None for ref in alive) <= 2
        return x.sum()

    fgrad.grad(f)(np.ones(1000))
    assert len(alive) == 20


# ------------------------------------------------------------------------------------------- files and calls


def entered(f, *args):
    """Return the Python functions of ours that a call of `f` enters, in order."""
    calls = []

    def profile(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith((HOME, "<fgrad")):
            calls.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(profile)
    try:
        f(*args)
    finally:
        sys.setprofile(None)
    return calls


def test_files_and_calls_of_a_gradient(record_property):
    f = fgrad.grad(lambda x: np.sum(np.tanh(x * x)))
    f(X)  # plans are made once
    calls = entered(f, X)
    files = {Path(name).name for name, _ in calls if not name.startswith("<")}
    record_property("files and calls of grad(sum(tanh(x*x)))", f"{len(files)}, {len(calls)}")
    assert len(files) <= 5, files
    assert len(calls) <= 60, calls


def test_a_gradient_lets_go_of_saved_values_on_its_way():
    """Gradients take the place of what has been used: forty arrays at the peak, of the sixty there are in sum."""

    def f(weights, x):
        for w in weights:
            x = np.tanh(x * w)
        return x.sum()

    size = 100_000
    x, weights = np.ones(size), [np.ones(size) for _ in range(20)]
    fgrad.grad(f)(weights, x)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    fgrad.grad(f)(weights, x)
    peak = (tracemalloc.get_traced_memory()[1] - before) / x.nbytes
    tracemalloc.stop()
    assert peak < 46, peak

"""Every public function of `fgrad.numpy` and `fgrad.nn` against jax's: value, dtype, both derivatives, vmap."""

import numpy as np
import pytest

import fgrad
from fgrad import tree
from tests.numpy import linalg_samples, samples
from tests.parity import jax_differences
from tests.parity.jax_rows import PASSES, Row, measure

pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning"),  # where NumPy warns
]

FUNCTIONS = [
    pytest.param(place, name, cases, id=f"{place}.{name}")
    for place, table in (
        ("numpy", samples.TABLE),
        ("numpy.linalg", linalg_samples.LINALG),
        ("numpy.fft", linalg_samples.FFT),
        ("nn", samples.NN),
    )
    for name, cases in table.items()
]


def find(module, place, name):
    for part in (*place.split("."), name):
        module = getattr(module, part, None)
    return module


@pytest.mark.parametrize(("place", "name", "cases"), FUNCTIONS)
def test_as_in_jax(place, name, cases, jax):
    ours, theirs = find(fgrad, place, name), find(jax, place, name)
    if theirs is None:
        assert hasattr(np, name), f"{place}.{name} is neither jax's nor NumPy's"
        return
    for k, case in enumerate(cases):
        got = measure(Row(fgrad, ours, case))
        want = measure(Row(jax, taking_lists(theirs), case), jax.jit)
        assert differences(got, want) == jax_differences.expected(name, case), f"{name}, row {k}: {case}"


def taking_lists(function):
    """Return a function of jax that takes lists of numbers for arrays, as fgrad's do."""

    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError:
            args, kwargs = tree.map(as_array, (args, kwargs), is_leaf=is_list_of_numbers)
            return function(*args, **kwargs)

    return call


def as_array(x):
    return np.array(x) if is_list_of_numbers(x) else x


def is_list_of_numbers(x):
    return isinstance(x, list) and all(isinstance(v, (int, float)) for v in x)


def differences(got, want):
    """Return in words what differs between two results of `measure`."""
    if isinstance(want["value"], Exception):
        assert not isinstance(got["value"], Exception)
        return {"refused"}
    found = {name: compare(got[name], want[name]) for name in PASSES if name in got}
    words = found["value"] | (found.get("mapped", set()) & {"dtype"})
    if (found.get("pulled", set()) | found.get("pushed", set())) - {"dtype"}:
        words |= {"derivative"}
    if not words and found.get("mapped"):
        words |= {"batch"}
    return words


def compare(got, want):
    """Return what differs between two lists of arrays: number, shape, dtype or value; or that one is refused."""
    if isinstance(want, Exception) or isinstance(got, Exception):
        return set() if type(got) is type(want) else {"refused"}
    if len(got) != len(want):
        return {"value"}
    return set().union(*(compare_arrays(np.asarray(x), np.asarray(y)) for x, y in zip(got, want, strict=True)))


def compare_arrays(x, y):
    if x.shape != y.shape:
        return {"shape"}
    words = set() if x.dtype == y.dtype else {"dtype"}
    if x.dtype.kind not in "biufc":
        return words | (set() if (x == y).all() else {"value"})
    tolerance = max([1e-9] + [30 * float(np.finfo(v.dtype).eps) for v in (x, y) if v.dtype.kind in "fc"])
    return words | (set() if np.allclose(x, y, tolerance, tolerance, equal_nan=True) else {"value"})


@pytest.mark.parametrize("difference", jax_differences.ROWS, ids=lambda d: d.names.replace(" ", ","))
def test_listed_differences_have_rows(difference):
    """An entry of the list that no row shows would never be checked."""
    cases = linalg_samples.LINALG | linalg_samples.FFT | samples.TABLE | samples.NN
    assert all(any(map(difference.when, cases[name])) for name in difference.names.split())


def test_every_activation_has_a_row():
    assert set(samples.NN) == set(fgrad.nn.__all__)

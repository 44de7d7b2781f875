"""Every primitive on arrays of a GPU's stand-in: the values and pulls of the host, and all results there."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
from fgrad.core import PYTHON_SCALARS
from fgrad.transforms.linearize import float0
from tests.laws import families  # noqa: F401  (enters its strategies)
from tests.laws.strategies import ROWS, WITHOUT_LAWS, cases
from tests.triton.standin.arrays import DeviceArray

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")]

ON_THE_HOST = {"random_bits", "random_uniform", "random_normal", "random_fold"}
"""Draws: keys are numbers of the host, and so is what is drawn from them."""

PRIMITIVES = [prim for prim in ROWS if prim.name not in WITHOUT_LAWS and prim.name not in ON_THE_HOST]


def put(x):
    return x if x.__class__ in PYTHON_SCALARS else fgrad.device_put(np.array(x), "cuda")


def assert_there(there, here):
    """Raise AssertionError unless a result is on the GPU and what it is on the host."""
    here = np.asarray(here)
    assert type(there) is DeviceArray
    assert (there.shape, there.dtype) == (here.shape, here.dtype)
    tolerance = 1e-2 if here.dtype.itemsize <= 2 else 1e-4
    np.testing.assert_allclose(there.host, here, rtol=tolerance, atol=tolerance)


def results(prim, out):
    return out if prim.multiple else (out,)


def is_odd(x):
    """Say whether an argument is complex and not finite: products of such have no agreed parts."""
    return x.__class__ not in PYTHON_SCALARS and x.dtype.kind == "c" and not np.isfinite(x).all()


@pytest.mark.parametrize("prim", PRIMITIVES, ids=lambda prim: prim.name)
def test_a_primitive_computes_there(card, prim):
    @settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def holds(data):
        args, params = data.draw(cases(prim, False))
        if all(x.__class__ in PYTHON_SCALARS for x in args) or any(map(is_odd, args)):
            return
        with np.errstate(all="ignore"):
            here = results(prim, prim(*args, **params))
            there = results(prim, prim(*map(put, args), **params))
            for x, y in zip(there, here, strict=True):
                assert_there(x, y)

    holds()


@pytest.mark.parametrize("prim", [p for p in PRIMITIVES if p.make_plan and p.kind != "constant"], ids=lambda p: p.name)
def test_a_primitive_is_pulled_there(card, prim):
    @settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def holds(data):
        args, params = data.draw(cases(prim, True))
        chosen = [k for k, x in enumerate(args) if x.__class__ not in PYTHON_SCALARS and x.dtype.kind in "fcV"]
        if not chosen:
            return

        def pulled(given):
            def f(*xs):
                full = list(given)
                for k, x in zip(chosen, xs, strict=True):
                    full[k] = x
                return prim(*full, **params)

            out, pull = fgrad.vjp(f, *[given[k] for k in chosen])
            return pull(fgrad.tree.map(lambda x: x if x.dtype.kind in "fcV" else np.zeros(x.shape, float0), out))

        with np.errstate(all="ignore"):
            for x, y in zip(pulled(list(map(put, args))), pulled(list(args)), strict=True):
                assert_there(x, y)

    holds()

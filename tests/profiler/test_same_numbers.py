"""A profiler changes nothing: every primitive, its derivatives and every program for torch give the same under it."""

import contextlib
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fgrad
import fgrad.compat as compat
from fgrad.check import LAWS
from tests.compat.programs import PROGRAMS, split
from tests.laws import families  # noqa: F401  (enters its strategies)
from tests.laws.strategies import ROWS, WITHOUT_LAWS, cases
from tests.parity.both import data

DIFFERENTIABLE = [prim for prim in ROWS if LAWS["adjoint"].applies(prim) and prim.name not in WITHOUT_LAWS]


def pulled(prim, args, params):
    """Return value and cotangents of a primitive by its floating inputs."""
    wrt = [i for i, x in enumerate(args) if np.asarray(x).dtype.kind in "fc"]

    def fun(*xs):
        given = list(args)
        for i, x in zip(wrt, xs, strict=True):
            given[i] = x
        return prim(*given, **params)

    out, pull = fgrad.vjp(fun, *[args[i] for i in wrt])
    return fgrad.tree.leaves((out, pull(fgrad.tree.map(cotangent, out))))


def cotangent(out):
    """Return ones like an output, or nothing for one without derivative."""
    return np.ones_like(out) if out.dtype.kind in "fc" else np.zeros(out.shape, fgrad.float0)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("prim", DIFFERENTIABLE, ids=lambda prim: prim.name)
def test_of_primitives(prim):
    @settings(max_examples=4)
    @given(st.data())
    def holds(data):
        args, params = data.draw(cases(prim, True))
        plain = pulled(prim, args, params)
        with fgrad.profile():
            observed = pulled(prim, args, params)
        for x, y in zip(plain, observed, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape and x.__class__ is y.__class__
            np.testing.assert_array_equal(x, y)

    holds()


@pytest.mark.heavy
@pytest.mark.parametrize("memory", [False, True], ids=["plain", "memory"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_of_programs_for_torch(name, memory):
    kind, phrase, text = split(PROGRAMS[name])
    env = {"torch": compat, "np": np, "data": data, "show": lambda x: None, "warnings": warnings}
    expected = pytest.raises(kind) if kind else contextlib.nullcontext()
    profiler = compat.autograd.profiler.profile(record_shapes=True, profile_memory=memory)
    with warnings.catch_warnings(), compat.as_torch(), expected as caught, profiler:
        warnings.simplefilter("ignore")
        exec(compile(text, "<program>", "exec"), env)
    if kind:
        assert phrase in str(caught.value)
    assert profiler.function_events.unattributed_ns >= 0

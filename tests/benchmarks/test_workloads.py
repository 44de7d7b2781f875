"""Every library that the suite measures gives the reference values; ours here, the others as parity tests."""

import functools

import pytest

from benchmarks import reference
from benchmarks.libraries import LIBRARIES, OWN
from benchmarks.workloads import WORKLOADS, chain, large_step

pytestmark = pytest.mark.heavy

SMALLER = {"W5": large_step(batch=8), "W12": chain(1000, "W12")}
"""In place of what takes long."""

CHECKED = {w.key: SMALLER.get(w.key, w) for w in WORKLOADS if w.kind != "forward"}


def pairs(names):
    """Return (library, key) for all workloads that a library does."""
    return [(n, key) for key, w in CHECKED.items() for n in names if getattr(LIBRARIES[n], w.kind, None)]


@functools.cache
def wanted(key):
    return reference.expected(CHECKED[key])


def check(name, key):
    library, workload = LIBRARIES[name](), CHECKED[key]
    reference.check(workload, library.numpy(library.prepare(workload)()), wanted(key), name)


@pytest.mark.parametrize(("name", "key"), pairs(OWN))
def test_ours_give_the_reference_values(name, key):
    check(name, key)


@pytest.mark.parity
@pytest.mark.parametrize(("name", "key"), pairs(["jax jit", "torch", "HIPS autograd"]))
@pytest.mark.filterwarnings("ignore")  # the libraries' own
def test_peers_give_the_reference_values(name, key):
    check(name, key)


@pytest.mark.parametrize("name", OWN)
def test_a_second_call_gives_what_the_first_gave(name):
    library = LIBRARIES[name]()
    what = WORKLOADS[1]
    run = library.prepare(what)
    run()
    reference.check(what, library.numpy(run()), reference.expected(what), name)


def test_a_wrong_gradient_is_noticed():
    what = WORKLOADS[1]
    result = LIBRARIES["fgrad eager"]().prepare(what)()
    with pytest.raises(AssertionError, match="W2a by nobody"):
        reference.check(what, result * 1.001, reference.expected(what), "nobody")

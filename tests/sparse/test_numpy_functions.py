"""Functions of `fgrad.numpy` on the samples of their tests: sparse derivatives are the dense ones."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import tree
from tests.numpy.samples import TABLE

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def function_of(name):
    """Return a function of the samples by its name."""
    for module in (fnp, fgrad.nn):
        found = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not None:
            return found
    raise LookupError(name)


def vector(out):
    """Return the real floating results as one vector."""
    parts = [fnp.ravel(x) for x in tree.leaves(out) if getattr(x, "dtype", np.dtype(int)).kind == "f"]
    return fnp.concatenate(parts) if parts else np.zeros(0)


def of_vector(name, case):
    """Return a sample as a function of one vector, with the vector; None if it has no real floating argument."""
    leaves, treedef = tree.flatten((tuple(case.args), case.kwargs))
    places = [k for k, x in enumerate(leaves) if isinstance(x, np.ndarray) and x.dtype == np.float64 and x.size]
    if not places:
        return None
    ends = np.cumsum([leaves[k].size for k in places])[:-1].tolist()
    called = function_of(name)

    def fun(v):
        full = list(leaves)
        for k, part in zip(places, np.split(v, ends), strict=True):
            full[k] = part.reshape(leaves[k].shape)
        args, kwargs = tree.unflatten(treedef, full)
        return vector(called(*args, **kwargs))

    return fun, np.concatenate([leaves[k].ravel() for k in places])


@pytest.mark.parametrize("name", TABLE)
def test_jacobians(name):
    for case in TABLE[name][:3]:
        found = of_vector(name, case) if case.smooth and not case.known else None
        if found is None:
            continue
        fun, x = found
        try:
            wanted = np.reshape(fgrad.jacfwd(fun)(x), (-1, x.size))
        except np.linalg.LinAlgError:  # a derivative that does not exist, as its own tests say
            continue
        np.testing.assert_allclose(fgrad.sparse_jacobian(fun, check=True)(x).toarray(), wanted, rtol=1e-8, atol=1e-10)

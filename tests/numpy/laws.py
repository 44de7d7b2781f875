"""How the laws read a case: which leaves are traced, and how two results are compared."""

import numpy as np

from fgrad import tree


def is_array(x):
    return isinstance(x, np.ndarray)


class Call:
    """A function of the arrays of a case alone; everything else in it is fixed."""

    def __init__(self, function, case):
        leaves, self.treedef = tree.flatten((case.args, case.kwargs))
        self.function = function
        self.leaves = leaves
        self.places = [k for k, x in enumerate(leaves) if is_array(x)]
        self.arrays = [leaves[k] for k in self.places]
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *arrays):
        leaves = list(self.leaves)
        for k, x in zip(self.places, arrays, strict=True):
            leaves[k] = x
        args, kwargs = tree.unflatten(self.treedef, leaves)
        return self.function(*args, **kwargs)


def outputs(x):
    """Return a result as a list of arrays; lists, tuples and named tuples of arrays are taken apart."""
    if isinstance(x, (list, tuple)):
        return [y for item in x for y in outputs(item)]
    return [x]


def assert_same(got, want, rtol=1e-12):
    """Assert that results have the same values, shapes and dtypes."""
    got, want = outputs(got), outputs(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        if isinstance(w, (str, type, np.dtype)):
            assert g == w
            continue
        g, w = np.asarray(g), np.asarray(w)
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        np.testing.assert_allclose(g, w, rtol=_tolerance(w.dtype, rtol), atol=_tolerance(w.dtype, rtol))


def _tolerance(dtype, rtol):
    if dtype.kind not in "fc":
        return 0
    return max(rtol, 8 * float(np.finfo(dtype).eps))

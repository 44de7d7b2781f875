"""One row of the samples, done by fgrad or by jax: value, pullback, push and batch, by the same text."""

import zlib

import numpy as np

from fgrad import tree
from tests.numpy.laws import outputs

PASSES = ("value", "pulled", "pushed", "mapped")


class Row:
    """A call as a function of its arrays alone, with arguments for every pass."""

    def __init__(self, m, function, case):
        leaves, self.treedef = tree.flatten((case.args, case.kwargs))
        self.m, self.function, self.leaves = m, function, leaves
        self.places = [k for k, x in enumerate(leaves) if isinstance(x, np.ndarray)]
        self.arrays = [leaves[k] for k in self.places]
        self.stacks = [np.stack([x, _neighbour(x)]) for x in self.arrays]
        self.floats = [k for k, x in enumerate(self.arrays) if x.dtype.kind in "fc"]
        passes = ["value"]
        passes += ["pulled", "pushed"] if case.smooth and self.floats else []
        passes += ["mapped"] if case.batched and self.arrays else []
        self.passes = passes

    def run(self, *passes):
        """Return the results of some passes, a list of arrays each."""
        return [getattr(self, name)() for name in passes]

    def __call__(self, *arrays):
        full = list(self.leaves)
        for k, x in zip(self.places, arrays, strict=True):
            full[k] = x
        args, kwargs = tree.unflatten(self.treedef, full)
        return outputs(self.function(*args, **kwargs))

    def _smooth(self, *points):
        """Return the outputs that have derivatives, as a function of the arrays that do."""
        full = list(self.arrays)
        for k, x in zip(self.floats, points, strict=True):
            full[k] = x
        return [y for y in self(*full) if np.issubdtype(y.dtype, np.inexact)]

    def value(self):
        return self(*self.arrays)

    def pulled(self):
        out, pull = self.m.vjp(self._smooth, *[self.arrays[k] for k in self.floats])
        return list(pull([_seed(y) for y in out]))

    def pushed(self):
        points = tuple(self.arrays[k] for k in self.floats)
        return self.m.jvp(self._smooth, points, tuple(map(_seed, points)))[1]

    def mapped(self):
        return self.m.vmap(self)(*self.stacks)


def measure(row, jit=None):
    """Return by pass a list of arrays, or the exception it raised; all passes in one compiled program if that goes."""
    if jit is not None:
        found = _attempt(lambda: jit(lambda: row.run(*row.passes))())
        if not isinstance(found, Exception):
            return dict(zip(row.passes, found, strict=True))
    found = {name: _attempt(lambda name=name: row.run(name)[0]) for name in row.passes}
    return found


def _attempt(f):
    try:
        return f()
    except Exception as error:
        return error


def _neighbour(x):
    """Return another element of a batch: floats of the same order and near, integers in another order."""
    if x.dtype.kind in "fc":
        return x * x.dtype.type(1.03)
    return x[::-1] if x.ndim else x


def _seed(x):
    """Return numbers of the type of `x`, always the same for a shape."""
    draw = np.random.default_rng(zlib.crc32(str(x.shape).encode())).uniform
    z = draw(0.5, 1.5, x.shape)
    return np.asarray(z + 1j * draw(0.5, 1.5, x.shape) if x.dtype.kind == "c" else z).astype(x.dtype)

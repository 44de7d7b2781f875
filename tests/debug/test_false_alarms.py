"""No function raises under `debug_nans` where its value and derivatives are finite: none makes a NaN on its way."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.check.grads import random_like
from tests.numpy.laws import Call, outputs
from tests.numpy.linalg_samples import FFT, LINALG
from tests.numpy.samples import TABLE

DIFFERENCES = {"isclose"}  # takes inf - inf, and data with NaN, on its way to False
ROWS = [
    pytest.param(getattr(module, name), rows, id=name)
    for table, module in ((TABLE, fnp), (LINALG, fnp.linalg), (FFT, fnp.fft))
    for name, rows in table.items()
    if name not in DIFFERENCES
]


def ways(call, case):
    """Yield the ways to run a case that give finite numbers."""
    yield lambda: call(*call.arrays)
    if case.smooth and call.arrays and all(a.dtype.kind == "f" for a in call.arrays):
        ones = tuple(np.ones_like(a) for a in call.arrays)
        yield lambda: fgrad.jvp(call, tuple(call.arrays), ones)
        yield lambda: pulled(call)
        if not case.known:
            yield lambda: fgrad.jit(pulled, static_argnums=0)(call)


def pulled(call):
    out, pull = fgrad.vjp(call, *call.arrays)
    return pull(random_like(out, np.random.default_rng(0)))


def finite(x):
    arrays = [np.asarray(y) for y in outputs(fgrad.tree.leaves(x))]
    return all(np.isfinite(y).all() for y in arrays if y.dtype.kind in "fc")


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("function", "rows"), ROWS)
def test_finite_results_raise_nothing(function, rows):
    for case in rows:
        for run in ways(Call(function, case), case):
            if finite(run()):
                with fgrad.debug_nans():
                    run()

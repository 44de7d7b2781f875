"""The array API standard's special cases hold eagerly, under jit, vmap and grad, in float64 and float32."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from tests.numpy import special_cases, standard

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # where NumPy warns

NAMES = {"nan": np.nan, "inf": np.inf, "pi": np.pi, "c": complex}
TABLES = {
    "real": special_cases.REAL,
    "pairs": special_cases.PAIRS,
    "complex": special_cases.COMPLEX,
    "as NumPy": special_cases.AS_NUMPY,
    "reductions": special_cases.REDUCTIONS,
}


def rows(kind):
    """Return the cases of each function of a table: points by argument, and values."""
    found = {}
    for name, inputs, value in special_cases.cases(TABLES[kind]):
        points, values = found.setdefault(name, ([], []))
        points.append(eval(f"({inputs},)", NAMES))
        values.append(eval(value, NAMES))
    return [pytest.param(name, points, values, id=name) for name, (points, values) in found.items()]


ROWS = [row for kind in ("real", "pairs", "complex", "as NumPy") for row in rows(kind)]
WAYS = {
    "eager": lambda f: f,
    "jit": fgrad.jit,
    "vmap": fgrad.vmap,
    "vjp": lambda f: lambda *xs: fgrad.vjp(lambda *ys: f(*ys), *xs)[0],
}


@pytest.mark.parametrize("dtype", ["double", "single"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "points", "values"), ROWS)
def test_elementwise(name, points, values, way, dtype):
    columns = [narrow(np.array(column), dtype) for column in zip(*points, strict=True)]
    same(WAYS[way](getattr(fnp, name))(*columns), narrow(np.array(values), dtype))


@pytest.mark.parametrize("way", sorted(WAYS.keys() - {"vmap"}))
@pytest.mark.parametrize(("name", "points", "values"), rows("reductions"))
def test_reductions(name, points, values, way):
    for (point,), value in zip(points, values, strict=True):
        same(WAYS[way](getattr(fnp, name))(np.array(point)), np.array(value))


def narrow(x, dtype):
    return x.astype({"f": np.float32, "c": np.complex64}.get(x.dtype.kind, x.dtype)) if dtype == "single" else x


def same(got, want):
    """Assert equal values, NaN where NaN is wanted and signs of zeros included, to a rounding for the rest."""
    got = np.asarray(got)
    assert got.dtype.kind == want.dtype.kind or want.dtype.kind == "i"
    for part in ("real", "imag") if want.dtype.kind == "c" else ("real",):
        g, w = getattr(got, part), getattr(want, part)
        np.testing.assert_allclose(g, w, rtol=1e-6 if g.dtype.itemsize < 8 else 1e-15)
        if w.dtype.kind == "f":
            zeros = w == 0
            np.testing.assert_array_equal(np.signbit(g[zeros]), np.signbit(w[zeros]))


WITHOUT = ("bitwise_", "real", "imag", "positive", "less_equal", "greater", "clip")  # the standard lists no case


def test_every_elementwise_function_is_here():
    ours = {name for text in TABLES.values() for name, *_ in special_cases.cases(text)}
    elementwise = set(standard.signatures(standard.MAIN.partition("arange")[0]))
    assert not {name for name in elementwise - ours if not name.startswith(WITHOUT)}

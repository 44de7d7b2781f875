"""The law "Triton expression = implementation": every elementwise primitive, on the twin, at edge values."""

import itertools

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
from fgrad.backend.gpu.expressions import is_float
from fgrad.backend.gpu.fusion import Step
from fgrad.backend.gpu.program import GpuProgram
from fgrad.core import TABLE
from fgrad.triton_kernels import compile_call

FLOATS = (0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2.5, 3, 1e-3, -7.25, 20, -100, 1e4, np.inf, -np.inf, np.nan)
DTYPES = [np.dtype(t) for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.uint8, np.bool_)]
MORE_DTYPES = [np.dtype(t) for t in (np.int8, np.int16, np.uint16, np.uint32, np.int64, np.uint64)]
TOLERANCE = {"float32": 2e-6, "float64": 1e-14, "float16": 2e-3, "bfloat16": 1.6e-2}

CALLS = {
    "nextafter": {"float16", "bfloat16", "int8", "uint8", "bool"},  # would be the neighbour in float32
    "pow": {"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"},  # negative ones raise
    "exp_sub": {"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"},  # wraps around
    "floor_divide": {"bool"},
    "rem": {"bool"},
    "fmod": {"bool"},
}
"""Where a primitive is left to the array library."""

WITH_PARAMETERS = ("cast", "to_integer", "philox_kept")
"""What has tests of its own, among random programs and in `test_programs`."""


def _elementwise():
    for name, prim in TABLE.items():
        text = prim.gpu or ""
        kernel = text.partition(".")[0]
        written_out = not kernel.isidentifier() or kernel in ("tl", "libdevice", "x")
        if prim.kind in ("elementwise", "constant") and text and written_out and name not in WITH_PARAMETERS:
            yield name


NAMES = list(_elementwise())


def edge_values(dtype):
    if dtype.kind == "b":
        return (False, True)
    if is_float(dtype):
        return FLOATS
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return sorted({0, 1, 2, 3, 7, 63, most, most - 1, least, least + 1, *((-1, -2, -7) if least else ())})


def operands(name, dtype):
    """Return the arrays of all combinations of edge values, or of many."""
    count = len(TABLE[name].inputs)
    dtypes = {"select": [np.dtype(bool), dtype, dtype], "ldexp": [dtype, np.dtype(np.int32)]}.get(name, [dtype] * count)
    grid = list(itertools.product(*[edge_values(d) for d in dtypes]))
    if name == "reciprocal" and not is_float(dtype):
        grid.remove((0,))  # undefined in C, and so in NumPy
    if len(grid) > 600:
        grid = [grid[k] for k in np.random.default_rng(0).choice(len(grid), 600, replace=False)]
    with np.errstate(over="ignore"):
        return [np.array(column, d) for column, d in zip(zip(*grid, strict=True), dtypes, strict=True)]


def wanted(name, arrays):
    """Return what NumPy gives, None for what it refuses."""
    try:
        return np.asarray(TABLE[name].impl(*arrays))
    except (TypeError, ValueError):
        return None


def check(name, dtypes):
    for dtype in dtypes:
        arrays = operands(name, dtype)
        with np.errstate(all="ignore"):
            want = wanted(name, arrays)
            if want is None:
                continue
            compiled = GpuProgram(fgrad.make_ir(lambda *xs: TABLE[name](*xs))(*arrays).simplify())
            called = any(isinstance(part, Step) for part in compiled.plan.parts)
            assert called == (dtype.name in CALLS.get(name, ())), dtype
            (got,) = compiled.compute(*arrays)
        assert got.dtype == want.dtype
        if not is_float(want.dtype):
            np.testing.assert_array_equal(got, want)
            continue
        rtol = TOLERANCE[want.dtype.name]
        wide, expected = got.astype(np.float64), want.astype(np.float64)
        np.testing.assert_allclose(wide, expected, rtol=rtol, atol=rtol / 10, err_msg=f"{name} of {dtype}")


@pytest.mark.heavy
@pytest.mark.parametrize("name", NAMES)
def test_expression_is_implementation(name):
    check(name, DTYPES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_expression_is_implementation_in_other_types(name):
    check(name, MORE_DTYPES)


def test_law_covers_the_table():
    assert len(NAMES) > 80


TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_expression_compiles(name):
    for dtype in map(np.dtype, (np.float32, np.int32)):
        arrays = operands(name, dtype)
        with np.errstate(all="ignore"):
            if wanted(name, arrays) is None:
                continue
            compiled = GpuProgram(fgrad.make_ir(lambda *xs: TABLE[name](*xs))(*arrays).simplify())
            for reports in compile_call(compiled.compute, *arrays, targets=TARGETS).values():
                for report in reports.values():
                    assert not report.problems
                    assert report.spill_bytes == 0 or dtype != np.float32  # float64's sines keep a table on the stack

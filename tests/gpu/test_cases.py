"""Programs that people run become few kernels that move few bytes; the page that says so is right."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
from fgrad import tree
from fgrad.backend.gpu.program import GpuProgram
from tests.gpu import cases

TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")


@pytest.mark.heavy
@pytest.mark.parametrize("name", cases.CASES)
def test_the_page_has_the_counts(name):
    found = cases.counts(*cases.CASES[name]())
    assert found.ratio <= cases.MOST_MOVED.get(name, 1.3)
    assert cases.row(name, found) in cases.PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.heavy
@pytest.mark.parametrize("name", cases.CASES)
def test_kernels_give_what_numpy_gives(name):
    function, *args = cases.CASES[name]()
    leaves = tree.leaves(args)
    results = GpuProgram(fgrad.make_ir(function)(*args).simplify()).compute(*leaves)
    is_half = leaves[0].dtype.itemsize == 2
    if is_half:  # of which NumPy rounds every step of a sum
        args = [x.astype(np.float64) for x in args]
    for result, want in zip(results, tree.leaves(function(*args)), strict=True):
        assert is_half or result.dtype == want.dtype
        tolerance = 2e-2 if is_half else 1e-3
        scale = max(0.1, np.abs(want).max())
        np.testing.assert_allclose(result.astype(want.dtype), want, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.heavy
@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_16384_do_not_spill(target):
    x, row = np.empty((256, 16384), np.float32), np.empty(16384, np.float32)
    for function, args in ((fgrad.nn.softmax, (x,)), (cases.norm_gelu, (x, row, row))):
        for part in fgrad.jit(function).lower(*args, target=target).parts:
            assert (part.report.spill_bytes, part.report.problems) == (0, ())


@pytest.mark.heavy
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("width", [1024, 8192, 16384])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_backward_is_one_kernel_that_does_not_spill(target, width, dtype):
    x, row = np.empty((256, width), dtype), np.empty(width, dtype)
    low = fgrad.jit(cases.norm_gelu_half_backward).lower(x, x, row, row, target=target)
    assert sum(part.moved >= 3 * x.nbytes for part in low.parts) == 1
    assert [(part.report.spill_bytes, part.report.problems) for part in low.parts] == [(0, ())] * len(low.parts)

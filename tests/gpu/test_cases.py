"""Programs that people run become few kernels that move few bytes; the page that says so is right."""

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
    assert found.ratio <= 1.3
    assert cases.row(name, found) in cases.PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.heavy
@pytest.mark.parametrize("name", cases.CASES)
def test_kernels_give_what_numpy_gives(name):
    function, *args = cases.CASES[name]()
    program = fgrad.make_ir(function)(*args).simplify()
    leaves = tree.leaves(args)
    for result, want in zip(GpuProgram(program).compute(*leaves), program.compute(*leaves), strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-3, atol=1e-4 * max(1, np.abs(want).max()))


@pytest.mark.heavy
@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_16384_do_not_spill(target):
    x, row = np.empty((256, 16384), np.float32), np.empty(16384, np.float32)
    for function, args in ((fgrad.nn.softmax, (x,)), (cases.norm_gelu, (x, row, row))):
        for part in fgrad.jit(function).lower(*args, target=target).parts:
            assert (part.report.spill_bytes, part.report.problems) == (0, ())


@pytest.mark.heavy
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("width", [1024, 16384])
def test_backward_does_not_spill(target, width):
    x, row = np.empty((256, width), np.float32), np.empty(width, np.float32)
    low = fgrad.jit(cases.norm_gelu_backward).lower(x, x, row, row, target=target)
    assert [(part.report.spill_bytes, part.report.problems) for part in low.parts] == [(0, ())] * len(low.parts)

"""Each detector of the checker finds a planted defect, says where it is, and is silent on the mended kernel."""

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl

from fgrad.triton_kernels import Finding, KernelDefect, check_call, check_kernel, require_clean
from fgrad.triton_kernels.runtime import empty, launch
from fgrad.triton_kernels.tiling import fill_kernel


def only(findings):
    """Return the single finding."""
    assert len(findings) == 1, [str(finding) for finding in findings]
    return findings[0]


@triton.jit
def scale(x, out, n, row_stride, WIDE: tl.constexpr, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if WIDE:
        row = row.to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < (n if MASKED else BLOCK)
    value = tl.load(x + row * row_stride + at, mask=mask, other=0.0)
    tl.store(out + row * row_stride + at, value * 2, mask=mask)


def test_a_clean_kernel_has_no_findings_and_leaves_its_arguments():
    x, out = np.ones((4, 10), np.float32), np.full((4, 10), 7, np.float32)
    assert check_kernel(scale, 4, x, out, 10, 10, WIDE=True, MASKED=True, BLOCK=16, outputs=["out"]) == []
    assert (x == 1).all()
    assert (out == 7).all()


def test_bounds():
    x, out = np.ones(10, np.float32), np.empty(10, np.float32)
    findings = check_kernel(scale, 1, x, out, 10, 10, WIDE=True, MASKED=False, BLOCK=16)
    assert [(finding.kind, finding.argument, finding.index) for finding in findings] == [
        ("bounds", "x", 10),
        ("bounds", "out", 10),
    ]
    assert findings[0].program == (0, 0, 0)
    assert findings[0].source.rpartition(":")[0].endswith("test_check.py")
    assert "shape (10,)" in findings[0].message


def test_bounds_between_the_rows_of_a_view():
    base = np.ones((4, 20), np.float32)
    out = np.empty((4, 20), np.float32)
    finding = only(check_kernel(scale, 4, base[:, :12], out, 12, 20, WIDE=True, MASKED=False, BLOCK=16))
    assert (finding.kind, finding.argument, finding.index) == ("bounds", "x", 12)


@pytest.mark.parametrize(("wide", "kinds"), [(False, {"bounds", "overflow"}), (True, set())])
def test_offsets_beyond_int32_on_an_array_of_billions(wide, kinds):
    x, out = np.zeros((2, 70_000, 40_000), np.float16)
    meta = {"WIDE": wide, "MASKED": True, "BLOCK": 64}
    findings = check_kernel(scale, 70_000, x, out, 64, 40_000, programs=[(69_999, 0, 0)], **meta)
    assert {finding.kind for finding in findings} == kinds


def test_int32_overflow_without_an_array():
    def run(overflow):
        out = np.zeros(8, np.float32)
        return check_kernel(wrapping, 2, out, 2**31 - 1, overflow=overflow)

    assert only(run(True)).kind == "overflow"
    assert run(False) == []


@triton.jit
def wrapping(out, step):
    tl.store(out + ((tl.program_id(0) + 1) * step & 7), 1.0)


@triton.jit
def column_sums(x, out, rows, columns, ATOMIC: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + tl.program_id(0).to(tl.int64) * columns + at, mask=mask, other=0.0)
    if ATOMIC:
        tl.atomic_add(out + at, value, mask=mask)
    else:
        tl.store(out + at, tl.load(out + at, mask=mask, other=0.0) + value, mask=mask)


def test_two_programs_that_write_one_element_race():
    x, out = np.ones((3, 5), np.float32), np.zeros(5, np.float32)
    finding = only(check_kernel(column_sums, 3, x, out, 3, 5, ATOMIC=False, BLOCK=8))
    assert (finding.kind, finding.argument, finding.index) == ("race", "out", 0)
    assert "(0, 0, 0)" in finding.message
    assert "(1, 0, 0)" in finding.message
    assert check_kernel(column_sums, 3, x, out, 3, 5, ATOMIC=True, BLOCK=8) == []


@triton.jit
def shift(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at + 1, mask=at + 1 < n, other=0.0)
    tl.store(out + at, value, mask=at < n)


def test_a_program_that_reads_what_another_writes_races():
    x, out = np.ones(16, np.float32), np.empty(16, np.float32)
    assert check_kernel(shift, 4, x, out, 16, BLOCK=4) == []
    finding = only(check_kernel(shift, 4, x, x, 16, BLOCK=4))
    assert finding.kind == "race"
    assert "loads" in finding.message


def test_views_of_one_memory_race_too():
    base = np.ones(17, np.float32)
    assert only(check_kernel(shift, 4, base[1:], base[:16], 16, BLOCK=4)).kind == "race"


@triton.jit
def atomic_then_load(total, out):
    tl.atomic_add(total, 1.0)
    tl.store(out + tl.program_id(0), tl.load(total))


def test_a_plain_load_races_with_an_atomic():
    finding = only(check_kernel(atomic_then_load, 2, np.zeros(1, np.float32), np.empty(2, np.float32)))
    assert (finding.kind, finding.argument) == ("race", "total")


@triton.jit
def scatter(index, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + tl.load(index + at), at)


def test_lanes_of_one_store_that_disagree():
    out = np.zeros(4, np.int32)
    assert check_kernel(scatter, 1, np.int32([0, 1, 2, 3]), out, BLOCK=4) == []
    finding = only(check_kernel(scatter, 1, np.int32([0, 1, 1, 3]), out, BLOCK=4))
    assert (finding.kind, finding.argument, finding.index) == ("lanes", "out", 1)


@triton.jit
def row_sum(x, out, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if OTHER:
        value = tl.load(x + at, mask=at < n, other=0.0)
    else:
        value = tl.load(x + at, mask=at < n)
    tl.store(out, tl.sum(value, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_a_masked_load_without_other_that_reaches_a_result(dtype):
    x, out = np.ones(5, dtype), np.empty(1, dtype)
    assert check_kernel(row_sum, 1, x, out, 5, OTHER=True, BLOCK=8) == []
    finding = only(check_kernel(row_sum, 1, x, out, 5, OTHER=False, BLOCK=8, overflow=False))
    assert (finding.kind, finding.argument, finding.index) == ("undefined", "out", 0)
    assert finding.program == (0, 0, 0)
    assert finding.source.rpartition(":")[0].endswith("test_check.py")


@triton.jit
def row_extreme(x, out, n, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out, tl.max(value, 0) if LARGEST else tl.min(value, 0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.int8])
@pytest.mark.parametrize("largest", [True, False])
def test_an_undefined_value_that_is_the_largest_or_the_least(dtype, largest):
    x, out = np.arange(-30, 31, 12).astype(dtype), np.empty(1, dtype)
    assert only(check_kernel(row_extreme, 1, x, out, 6, LARGEST=largest, BLOCK=8)).kind == "undefined"


@triton.jit
def sum_over_mask(x, out, n, SQUARES: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    if SQUARES:
        gap = value - tl.sum(value, 0) / n
        tl.store(out, tl.sum(gap * gap, 0))
    else:
        tl.store(out, tl.sum(value * (at < n), 0))


@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, ml_dtypes.bfloat16])
def test_undefined_values_that_are_squared_or_multiplied_by_zero(dtype, squares):
    x, out = np.ones(20, dtype), np.empty(1, dtype)
    assert only(check_kernel(sum_over_mask, 1, x, out, 20, SQUARES=squares, BLOCK=1024)).kind == "undefined"


def test_a_store_to_what_is_read_only():
    out = np.zeros(8, np.float32)
    out.flags.writeable = False
    finding = only(check_kernel(fill_kernel, 1, out, 8, 1.0, BLOCK=8))
    assert (finding.kind, finding.argument, finding.message) == ("bounds", "out", "store is read-only")
    with pytest.raises(ValueError, match="outputs: out is read-only"):
        check_kernel(fill_kernel, 1, out, 8, 1.0, BLOCK=8, outputs=["out"])


def test_what_is_asked_for_in_vain_is_refused():
    out = np.zeros(8, np.float32)
    with pytest.raises(ValueError, match="outputs: got oot, value, expected names out of out"):
        check_kernel(fill_kernel, 1, out, 8, 1.0, BLOCK=8, outputs=["oot", "value"])
    with pytest.raises(ValueError, match=r"programs: got \(1, 0, 0\), expected three indices inside the grid"):
        check_kernel(fill_kernel, 1, out, 8, 1.0, BLOCK=8, programs=[(1, 0, 0)])
    with pytest.raises(TypeError, match=r"grid: got 1\.5, expected one to three integers"):
        check_kernel(fill_kernel, 1.5, out, 8, 1.0, BLOCK=8)
    assert check_kernel(fill_kernel, np.int64(1), out, 8, 1.0, BLOCK=8, outputs=["out"]) == []


def test_a_masked_load_without_other_that_is_dropped_is_clean():
    x, out = np.ones(5, np.float32), np.empty(5, np.float32)
    assert check_kernel(copy_masked, 1, x, out, 5, BLOCK=8, outputs=["out"]) == []


@triton.jit
def copy_masked(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def accumulate(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(out + at, mask=mask, other=0.0) + tl.load(x + at, mask=mask, other=0.0), mask=mask)


def test_an_output_that_is_read_before_it_is_written():
    x, out = np.ones(5, np.float32), np.zeros(5, np.float32)
    finding = only(check_kernel(accumulate, 1, x, out, 5, BLOCK=8, outputs=["out"]))
    assert (finding.kind, finding.argument) == ("undefined", "out")
    assert check_kernel(accumulate, 1, x, out, 5, BLOCK=8) == []


def test_an_output_that_is_not_written_in_full():
    out = np.zeros((3, 4), np.float32)
    finding = only(check_kernel(fill_kernel, 1, out, 12, 1.0, BLOCK=8, outputs=["out"]))
    assert (finding.kind, finding.argument, finding.index) == ("unwritten", "out", 8)
    assert "4 of 12" in finding.message


def test_resources():
    out = np.zeros(8, np.float32)
    meta = {"BLOCK": 8, "targets": ["sm_90", "gfx942"]}
    assert check_kernel(fill_kernel, 1, out, 8, 1.0, num_warps=16, **meta) == []
    findings = check_kernel(fill_kernel, 1, out, 8, 1.0, num_warps=32, **meta)
    assert only(findings) == Finding("resources", "gfx942: 2048 threads, the limit is 1024")


@triton.jit
def asserting(x):
    tl.device_assert(tl.load(x) > 0, "not positive")


def test_failed_assertions_are_findings():
    assert check_kernel(asserting, 1, np.ones(1, np.float32)) == []
    finding = only(check_kernel(asserting, 1, np.zeros(1, np.float32)))
    assert (finding.kind, finding.message) == ("assertion", "not positive")


def half_filled(x, size):
    """Fill a part of a new array."""
    out = empty(x, x.shape, x.dtype)
    launch(fill_kernel, 1, out, size, 1.0, BLOCK=16)
    return out


def test_check_call_holds_new_arrays_to_be_written_in_full():
    x = np.zeros(10, np.float32)
    assert check_call(half_filled, x, 10) == []
    assert only(check_call(half_filled, x, 9)).kind == "unwritten"


def test_require_clean_raises_with_every_finding():
    require_clean([])
    with pytest.raises(KernelDefect, match=r"unwritten out\[9\].*1 of 10"):
        require_clean(check_call(half_filled, np.zeros(10, np.float32), 9))

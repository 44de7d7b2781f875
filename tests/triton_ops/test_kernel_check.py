"""`op.check()`: a table for a right pair, and for each planted mistake the row that finds it."""

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl

import fgrad
from fgrad.kernel_check import KernelCheckError
from fgrad.triton_kernels import cross_entropy as pair
from fgrad.triton_kernels.runtime import empty, launch

pytestmark = pytest.mark.heavy  # most of it compiles

TARGETS = ("sm_90", "gfx942")


@triton.jit
def square(x, out, n, SLIP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + at, value * value, mask=at < n + SLIP)


@triton.jit
def square_backward(ct, x, dx, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(
        dx + at, FACTOR * tl.load(ct + at, mask=mask, other=0.0) * tl.load(x + at, mask=mask, other=0.0), mask=mask
    )


def run(kernel, *arrays, warps=4, **constants):
    out = empty(arrays[0], arrays[0].shape, arrays[0].dtype)
    launch(kernel, triton.cdiv(out.size, 16), *arrays, out, out.size, BLOCK=16, num_warps=warps, **constants)
    return out


def squared(reference=lambda x: x * x, batch="loop", slip=0, factor=2.0, warps=4, result=lambda x: x):
    return fgrad.kernel_op(
        lambda x: result(run(square, x, SLIP=slip, warps=warps)),
        lambda ct, x: result(run(square_backward, ct, x, FACTOR=factor)),
        reference,
        name="squared",
        batch=batch,
    )


X = np.linspace(-1, 2, 21, dtype=np.float32).reshape(3, 7)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32, np.float64])
def test_a_right_pair_passes(dtype, capsys):
    report = squared().check(X.astype(dtype), targets=TARGETS)
    assert report.ok
    assert capsys.readouterr().out == f"{report}\n"
    lines = str(report).splitlines()
    assert lines[0] == "squared: ok"
    assert len(lines) == 1 + len(report.rows)
    rows = {row.what: row.found for row in report.rows}
    assert rows["gradient by x"] == "21 of 21 entries are those of finite differences"
    assert rows["memory, races, overflow of forward"] == "1 launches, nothing found"
    assert "registers, 0 bytes spilled" in rows["square_backward on gfx942"]


def test_entries_are_sampled_and_all_targets_are_compiled():
    report = squared().check(np.linspace(0, 1, 300))
    rows = {row.what: row.found for row in report.rows}
    assert rows["gradient by x"].startswith("256 of 300 entries")
    assert sum(" on " in what for what in rows) == 10


def overwritten(x):
    """Write over an input; return it as the result."""
    x *= x
    return x


MISTAKES = {
    "a wrong value": ({"reference": lambda x: x * x + 1e-4}, "value of out"),
    "a wrong type": ({"reference": lambda x: (x * x).astype(np.float64)}, "value of out"),
    "a wrong gradient": ({"factor": 1.99}, "gradient by x"),
    "an access out of bounds": ({"slip": 1}, "memory, races, overflow of forward"),
    "a batch taken for rows": ({"batch": "leading", "result": lambda x: x + 0.01 * (x.ndim == 3)}, "vmap of forward"),
    "too many threads": ({"warps": 32}, "square on gfx942"),
}


@pytest.mark.parametrize(("options", "row"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_fails_its_row(options, row):
    op = squared(**options)
    with pytest.raises(KernelCheckError, match=f"{row} failed") as caught:
        op.check(X, targets=TARGETS)
    assert row in [failed.what for failed in caught.value.report.failed]
    assert f"FAIL  {row}" in str(caught.value)


def test_a_wrong_gradient_shows_in_narrow_types():
    for dtype in (ml_dtypes.bfloat16, np.float16):
        with pytest.raises(KernelCheckError, match="gradient by x failed"):
            squared(factor=1.5).check(X.astype(dtype), targets=())


def test_an_input_that_is_written_over_is_named():
    op = fgrad.kernel_op(overwritten, lambda ct, x: 2 * ct * x, lambda x: x * x)
    with pytest.raises(KernelCheckError, match="changed: x"):
        op.check(X.copy(), targets=())


def test_a_missing_result_is_a_row():
    op = fgrad.kernel_op(lambda x: x + 0, lambda ct: (ct, ct), lambda x: (x, x), name="broken")
    with pytest.raises(KernelCheckError) as caught:
        op.check(X, targets=())
    found = [row.found for row in caught.value.report.failed]
    assert "forward returns 1 arrays, the reference 2" in found[0]
    assert "backward returns 2 arrays for the 1 inputs in wrt" in found[1]


def test_only_arrays_of_the_host_are_checked():
    with pytest.raises(TypeError, match=r"squared\.check: x must be a NumPy array, got list"):
        squared().check([1.0])


def test_a_pair_of_the_library_passes():
    op = fgrad.kernel_op(
        lambda logits, labels: pair.cross_entropy_forward(logits, labels),
        lambda ct, logits, labels, lse: pair.cross_entropy_backward(ct, logits, labels, lse),
        lambda logits, labels: (fgrad.kernels.cross_entropy(logits, labels), fgrad.nn.logsumexp(logits, axis=1)),
        name="cross_entropy",
        outputs=("losses", "lse"),
    )
    logits, labels = np.random.default_rng(0).normal(size=(4, 9)).astype(np.float32), np.array([0, 8, -100, 3])
    report = op.check(logits, labels, targets=("sm_90",))
    assert {"value of losses", "value of lse", "gradient by logits"} <= {row.what for row in report.rows}

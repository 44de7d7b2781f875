"""Programs cut into generated Triton kernels give what NumPy gives: interpreted by the twin, forward and gradient."""

import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
import fgrad.numpy as fnp
from fgrad.backend.gpu import fusion
from fgrad.backend.gpu.fusion import Step
from fgrad.backend.gpu.program import GpuProgram
from fgrad.triton_kernels.traffic import traffic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 100)).astype(np.float32)
B = RNG.normal(size=100).astype(np.float32)
CUBE = RNG.normal(size=(4, 5, 6)).astype(np.float32)
FEW = RNG.normal(size=(3, 40000)).astype(np.float32)


def program_of(f, *args):
    return fgrad.make_ir(f)(*args).simplify()


def compare(f, *args, rtol=2e-5):
    """Run a function's Program on the twin and on NumPy; return what it was cut into."""
    program = program_of(f, *args)
    compiled = GpuProgram(program)
    got, want = compiled.compute(*args), program.compute(*args)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
    return compiled.plan


def energy(x, b):
    return (fgrad.nn.gelu(fgrad.nn.standardize(x) * b) ** 2).sum()


ONE_KERNEL = {
    "elementwise": (lambda x, b: fnp.tanh(x) * 2 + 1, X, B),
    "softmax": (lambda x, b: fgrad.nn.softmax(x + b), X, B),
    "logsumexp": (lambda x, b: fgrad.nn.logsumexp(x * b, axis=-1), X, B),
    "sum of all": (lambda x, b: ((x - b) ** 2).sum(), X, B),
    "maximum of all": (lambda x, b: (x - b).max(), X, B),
    "reductions at three depths, and over the rows": (fgrad.grad(energy, (0, 1)), X, B),
    "broadcasts along any axis": (lambda x, y: x * y[:, :1, :1] + y[0], CUBE, CUBE),
    "views": (lambda x, y: x.T * 2 + y[::1, :, :].T, CUBE, CUBE),
    "reshaped inside": (lambda x, y: fnp.where(x > 0, x, y).reshape(20, 6).sum(1), CUBE, CUBE),
    "integers and bools": (lambda x, y: (x.astype(np.int64) * 3 + 1 > 2) & (y < 0), CUBE, CUBE),
}


@pytest.mark.parametrize("case", ONE_KERNEL)
def test_one_kernel(case):
    plan = compare(*ONE_KERNEL[case], rtol=1e-4)
    assert len(plan.kernels) == 1
    assert all(part.kind == "view" for part in plan.parts if isinstance(part, Step))


def test_long_rows_in_steps_are_one_kernel(monkeypatch):
    monkeypatch.setattr(fusion, "FEW_ROWS", 0)
    assert len(compare(lambda x: fgrad.nn.softmax(x) + x, FEW, rtol=1e-4).kernels) == 1
    x = FEW.astype(np.float64)
    plan = compare(fgrad.grad(lambda x: (fgrad.nn.standardize(x) ** 3).sum()), x, rtol=1e-11)
    assert len(plan.kernels) == 1


def test_few_long_rows_are_shared_by_programs():
    plan = compare(lambda x: x.sum(1), FEW, rtol=1e-3)
    assert [kernel.domain.shares for kernel in plan.kernels] == [5]
    compiled = GpuProgram(program_of(lambda x: fgrad.nn.softmax(x) + 1, FEW))
    first, second, last = compiled.sources
    assert {first.programs, second.programs, last.programs} == {3 * 5}
    assert sum(launch.moved for launch in traffic(compiled.compute, FEW)) < 4.01 * FEW.nbytes
    compare(lambda x: (x.sum(0), x.max(1), x.sum(), x * x.min(1, keepdims=True)), FEW, rtol=1e-3)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.bool_])
def test_reductions_of_few_long_rows(name, dtype):
    x = (FEW * 8).astype(np.int8).astype(dtype) if name != "prod" else (1 + FEW / 1000).astype(dtype)
    x[1, 30000] = np.nan if np.dtype(dtype).kind == "f" else 0
    compiled = GpuProgram(program_of(lambda x: getattr(fnp, name)(x, axis=1), x))
    assert compiled.sources[0].parts == [5]
    got, want = compiled.compute(x)[0], getattr(np, name)(x, axis=1)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=2e-2 if dtype is np.float16 else 1e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int16, np.bool_])
def test_sums_over_long_rows_are_added_up_in_memory(dtype):
    x = RNG.integers(0, 3, size=(40, 9001)).astype(dtype)

    def reductions(x):
        return x.sum(0), x.max(0), x.max(1), (x > 1).any(0), (x > 0).sum(), x.min()

    compiled = GpuProgram(program_of(reductions, x))
    assert "PART" in compiled.sources[0].constexprs
    for got, want in zip(compiled.compute(x), reductions(x), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-3)


def test_half_precision_is_computed_in_float32():
    x = X.astype(np.float16)
    got = GpuProgram(program_of(fgrad.nn.softmax, x)).compute(x)[0]
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, fgrad.nn.softmax(x.astype(np.float32)), rtol=1e-3)


def test_products_are_calls_between_kernels():
    def loss(w, v):
        return (fnp.tanh(X @ w) @ v).sum()

    w, v = RNG.normal(size=(100, 8)).astype(np.float32), RNG.normal(size=(8, 3)).astype(np.float32)
    plan = compare(fgrad.grad(loss, (0, 1)), w, v, rtol=1e-4)
    calls = [part.equation.prim.name for part in plan.parts if isinstance(part, Step) and part.kind == "call"]
    assert set(calls) == {"dot_general", "fused_product"}


def test_places_of_extremes_are_library_kernels():
    compiled = GpuProgram(program_of(lambda x: (x.argmax(1), x.argmin(1), x.argmin()), X))
    assert not compiled.leaves_the_gpu()
    for got, want in zip(compiled.compute(X), (X.argmax(1), X.argmin(1), X.argmin()), strict=True):
        np.testing.assert_array_equal(got, want)


def test_reductions_over_middle_axes():
    plan = compare(lambda x: (fgrad.nn.softmax(x, axis=1), x.sum(1), x.max((0, 2)), x.prod(1), x.min(0)), CUBE)
    assert not any(isinstance(part, Step) for part in plan.parts)
    assert len(compare(lambda x: fgrad.nn.standardize(x, axis=1) * 2, CUBE).kernels) == 1
    long = RNG.normal(size=(2, 500, 3)).astype(np.float32)
    assert len(compare(lambda x: fgrad.nn.softmax(x, axis=1), long).kernels) == 1


def test_sums_of_many_programs_parts():
    x = RNG.normal(size=(3000, 64)).astype(np.float16)
    plan = compare(lambda x: (x.sum(), (x * 2).max(0), x.min(), (x > 9).any()), x, rtol=1e-2)
    assert len(plan.kernels) == 1


def test_dropout_draws_inside_the_kernel_and_reads_no_numbers():
    x, seed = X[:, :64], np.array(7)
    program = program_of(lambda x, seed: fgrad.kernels.dropout(fnp.tanh(x), seed, rate=0.3), x, seed)
    compiled = GpuProgram(program)
    np.testing.assert_allclose(compiled.compute(x, seed)[0], program.compute(x, seed)[0], rtol=1e-5)
    (launch,) = traffic(compiled.compute, x, seed)
    assert launch.moved == 2 * x.nbytes + seed.nbytes


def test_kernels_have_a_bounded_number_of_arrays():
    xs = [np.full((8, 8), k, np.float32) for k in range(60)]
    plan = compare(lambda *xs: [x - 0.1 * fnp.tanh(x) for x in xs], *xs)
    assert [len(kernel.loads) for kernel in plan.kernels] == [24, 24, 12]


def test_values_are_computed_again_where_that_moves_less():
    def loss(w, b):
        return ((fgrad.nn.gelu(X * b) @ w) ** 2).sum()

    w = RNG.normal(size=(100, 8)).astype(np.float32)
    plan = compare(fgrad.grad(loss, (0, 1)), w, B, rtol=1e-3)
    first, *_, last = (kernel for kernel in plan.kernels if any(eq.prim.name == "tanh" for eq in kernel.equations))
    assert first is not last
    assert len(first.stores) == 1


def test_sums_mask_only_what_is_not_zero_beyond_the_end():
    squares = GpuProgram(program_of(lambda x: (x * x).sum(1), X)).sources[0].text.rpartition("def ")[2]
    shifted = GpuProgram(program_of(lambda x: (x + 1).sum(1), X)).sources[0].text.rpartition("def ")[2]
    assert "tl.where" not in squares
    assert "tl.where(mask" in shifted


def test_products_add_biases_and_residuals_before_they_store():
    w, row = RNG.normal(size=(100, 100)).astype(np.float32), B
    plan = compare(lambda x, w, b: (x @ w + b + x).sum(1), X, w, row, rtol=1e-4)
    steps = [part.equation for part in plan.parts if isinstance(part, Step)]
    assert [eq.prim.name for eq in steps] == ["fused_product"]
    assert len(steps[0].inputs) == 4
    compare(lambda x, w, b: (x @ w, x @ w + b), X, w, row, rtol=1e-4)
    compare(lambda x, w: x @ w + w.T[:6], X, w, rtol=1e-4)


def test_results_are_arrays_of_their_own():
    x = X.copy()
    a, b, c = GpuProgram(program_of(lambda x: (x, x * 1.0, x.T), x)).compute(x)
    for out in (a, b, c):
        assert not np.shares_memory(out, x)


def test_lowering_needs_no_gpu():
    low = fgrad.jit(fgrad.grad(energy, (0, 1))).lower(
        np.ones((512, 1024), np.float32), np.ones(1024, np.float32), target="sm_90"
    )
    first, _ = low.parts
    assert first.report.spill_bytes == 0
    assert first.report.load_bits == 128
    assert low.moved <= 1.3 * low.least
    assert {"H100", "H200"} == set(low.projections)
    assert "projection, not measured" in str(low)
    assert "tl.store" in first.text
    with pytest.raises(ValueError, match="target: got 'sm_1'"):
        fgrad.jit(energy).lower(X, B, target="sm_1")

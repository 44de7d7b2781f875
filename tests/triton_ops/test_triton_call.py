"""`triton_call`: one launch as an operation, alone, under transforms and on tensors."""

import math

import numpy as np
import pytest
import triton
import triton.language as tl

import fgrad
import fgrad.compat as torch
from fgrad.triton_kernels import check_call
from fgrad.triton_kernels.runtime import launching


@triton.jit
def scale(x, out, size, factor, BLOCK: tl.constexpr = 4):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    tl.store(out + at, factor * tl.load(x + at, mask=mask, other=0.0), mask=mask)


@triton.jit
def add_twice(x, y, total, difference, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a, b = tl.load(x + at, mask=mask, other=0.0), tl.load(y + at, mask=mask, other=0.0)
    tl.store(total + at, a + b, mask=mask)
    tl.store(difference + at, a - b, mask=mask)


@triton.jit
def count(index, counts, size, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < size
    tl.atomic_add(counts + tl.load(index + at, mask=mask, other=0), 1, mask=mask)


@triton.jit
def increment(_, out, size, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(out + at, mask=at < size, other=0.0) + 1, mask=at < size)


@triton.autotune([triton.Config({"BLOCK": 2}), triton.Config({"BLOCK": 8}, num_warps=1)], key=["size"])
@triton.jit
def tuned(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < size, other=0.0), mask=at < size)


def scaled(x, factor=3.0, batch="loop"):
    """Return factor * x, computed by blocks of 4."""

    def grid(named):
        return triton.cdiv(named["size"], named["BLOCK"])

    return fgrad.triton_call(scale, x, out_shape=x, grid=grid, batch=batch, size=math.prod(x.shape), factor=factor)


X = np.arange(12, dtype=np.float32).reshape(2, 6)


def test_eager():
    out = scaled(X)
    np.testing.assert_array_equal(out, 3 * X)
    assert out.dtype == np.float32
    assert not np.may_share_memory(out, X)


@pytest.mark.parametrize("x", [X.T, X[:, ::2], X[::-1], X[:0], X[0, 0], np.asfortranarray(X)])
def test_layouts_and_sizes(x):
    x = np.asarray(x)
    out = scaled(x)
    np.testing.assert_array_equal(out, 3 * x)
    assert out.shape == x.shape


def test_several_results():
    call = {"grid": 1, "size": 3, "BLOCK": 4}
    total, difference = fgrad.triton_call(
        add_twice, X[0, :3], [1.0, 2, 3], out_shape=(X[0, :3], fgrad.ShapeDtypeStruct((3,), "float64")), **call
    )
    assert total.dtype == np.float32
    np.testing.assert_array_equal(total, [1, 3, 5])
    np.testing.assert_array_equal(difference, [-1, -1, -1])


def test_results_that_begin_as_zeros():
    index = np.array([0, 2, 2, 1, 2])
    kind = fgrad.ShapeDtypeStruct((4,), "int32")
    counts = fgrad.triton_call(count, index, out_shape=kind, grid=1, zeroed_outputs=(0,), size=5, BLOCK=8)
    np.testing.assert_array_equal(counts, [1, 1, 3, 0])


def incremented(x, **options):
    return fgrad.triton_call(
        increment, x, out_shape=x, grid=1, input_output_aliases={0: 0}, size=x.size, BLOCK=8, **options
    )


def test_a_result_that_begins_as_a_copy_of_an_argument():
    x = np.arange(5.0)
    np.testing.assert_array_equal(incremented(x), x + 1)
    np.testing.assert_array_equal(x, np.arange(5.0))
    np.testing.assert_array_equal(fgrad.jit(incremented)(x), x + 1)


@pytest.mark.parametrize("batch", ["loop", "grid"])
def test_vmap(batch):
    xs = np.arange(30, dtype=np.float64).reshape(5, 6)
    np.testing.assert_array_equal(fgrad.vmap(lambda x: scaled(x, batch=batch))(xs), 3 * xs)
    np.testing.assert_array_equal(fgrad.vmap(lambda x: scaled(x, batch=batch), 1, 1)(xs), 3 * xs)
    np.testing.assert_array_equal(fgrad.vmap(lambda x: incremented(x, batch=batch))(xs), xs + 1)
    np.testing.assert_array_equal(fgrad.jit(fgrad.vmap(lambda x: scaled(x, batch=batch)))(xs), 3 * xs)
    assert fgrad.vmap(lambda x: scaled(x, batch=batch))(xs[:0]).shape == (0, 6)


@pytest.mark.parametrize("batch", ["loop", "grid"])
def test_vmap_of_vmap_with_arguments_batched_apart(batch):
    x, y = np.arange(6.0).reshape(2, 3), 10 * np.arange(12.0).reshape(4, 3)

    def both(a, b):
        return fgrad.triton_call(add_twice, a, b, out_shape=(a, b), grid=1, batch=batch, size=3, BLOCK=4)

    total, difference = fgrad.vmap(fgrad.vmap(both, (None, 0)), (0, None))(x, y)
    np.testing.assert_array_equal(total, x[:, None] + y)
    np.testing.assert_array_equal(difference, x[:, None] - y)


def test_a_batch_along_the_grid_is_one_launch():
    launches = []
    with launching(launches.append):
        fgrad.vmap(lambda x: scaled(x, batch="grid"))(np.zeros((5, 6), np.float32))
    assert [launch.grid for launch in launches] == [(2, 1, 5)]
    assert check_call(fgrad.vmap(lambda x: scaled(x, batch="grid")), np.zeros((5, 6), np.float32)) == []


def test_batches_beyond_the_third_axis_are_cut():
    launches = []
    with launching(launches.append):
        fgrad.vmap(lambda x: scaled(x, batch="grid"))(np.zeros((65_600, 1), np.float32))
    assert [launch.grid[2] for launch in launches] == [65_535, 65]


def test_a_grid_of_three_axes_has_no_room_for_a_batch():
    def call(x):
        return fgrad.triton_call(scale, x, out_shape=x, grid=(1, 1, 2), batch="grid", size=1, factor=1.0)

    with pytest.raises(ValueError, match=r"leaves none for a batch, got \(1, 1, 2\)"):
        fgrad.vmap(call)(np.zeros((2, 1)))


def test_jit_records_one_equation():
    x = X + 1
    np.testing.assert_array_equal(fgrad.jit(lambda x: scaled(x + 1).sum())(X), (3 * x).sum())
    assert "triton_call[call=scale[grid=grid]]" in str(fgrad.make_ir(scaled)(X))


def test_tuned_kernels_run_with_their_first_configuration():
    np.testing.assert_array_equal(
        fgrad.triton_call(tuned, X, out_shape=X, grid=lambda named: triton.cdiv(12, named["BLOCK"]), size=12), 2 * X
    )


@pytest.mark.parametrize(
    "transform",
    [fgrad.grad, fgrad.jit, lambda f: lambda x: fgrad.jvp(f, (x,), (x,)), fgrad.hessian],
    ids=["grad", "jit", "jvp", "hessian"],
)
def test_derivatives_are_refused(transform):
    with pytest.raises(NotImplementedError, match=r"triton_call has no derivative.*fgrad\.kernel_op"):
        transform(lambda x: fgrad.grad(lambda y: scaled(y).sum())(x).sum())(X)


def test_a_cut_derivative_passes():
    np.testing.assert_array_equal(fgrad.grad(lambda x: (x * scaled(fgrad.stop_gradient(x))).sum())(X), 3 * X)


def test_tensors():
    out = scaled(torch.tensor(X))
    assert isinstance(out, torch.Tensor)
    np.testing.assert_array_equal(out.numpy(), 3 * X)
    with pytest.raises(NotImplementedError, match="has no derivative"):
        scaled(torch.tensor(X, requires_grad=True))


def test_a_traced_number_has_no_value_to_pass():
    def f(x, factor):
        return fgrad.triton_call(scale, x, factor, out_shape=x, grid=1, size=4)

    with pytest.raises(TypeError, match=r"traced number .* cannot be passed by value.*static_argnums"):
        fgrad.jit(f)(X, 2.0)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"batch": "rows"}, ValueError, "batch must be one of loop, grid, got 'rows'"),
        ({"input_output_aliases": {1: 0}}, ValueError, "names argument 1, which is no array"),
        ({"input_output_aliases": {0: 1}}, ValueError, "names output 1 of 1"),
        ({"input_output_aliases": {0: 0}, "out_shape": X[0]}, ValueError, r"float32\[2,6\] cannot become output 0"),
        ({"blocks": 3}, TypeError, "the kernel has no argument 'blocks'"),
        ({"grid": (1, 1, 1, 1)}, ValueError, "one to three sizes"),
        ({"factor": np.float32(2)}, TypeError, "call .item()"),
        ({"out_shape": 3}, TypeError, "out_shape must have shape and dtype"),
    ],
)
def test_errors(options, error, said):
    with pytest.raises(error, match=said):
        fgrad.triton_call(scale, X, **{"out_shape": X, "grid": 1, "size": 12, "factor": 1.0, **options})


def test_kernels_of_one_name_are_batched_apart():
    x = np.arange(6.0).reshape(2, 3)
    outs = []
    for kernel in (first(), second()):

        def call(row, kernel=kernel):
            return fgrad.triton_call(kernel, row, out_shape=row, grid=1, batch="grid", size=3, BLOCK=4)

        outs.append(fgrad.vmap(call)(x))
    np.testing.assert_array_equal(outs[0], x + 1)
    np.testing.assert_array_equal(outs[1], x + 2)


def first():
    @triton.jit
    def shifted(x, out, size, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < size, other=0.0) + 1, mask=at < size)

    return shifted


def second():
    @triton.jit
    def shifted(x, out, size, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < size, other=0.0) + 2, mask=at < size)

    return shifted

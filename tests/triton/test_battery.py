"""Every rule of the kernel battery on every kernel family. The numbers are those of the list in docs/kernels.md."""

import ml_dtypes
import numpy as np
import pytest

from fgrad.triton_kernels import check_call, check_kernel, compile_call, require_clean, toolchain
from fgrad.triton_kernels.runtime import launching
from fgrad.triton_kernels.signature import bind
from fgrad.triton_kernels.twin import interpret
from tests.triton.families import FAMILIES

pytestmark = pytest.mark.heavy

family_parameter = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
dtype_parameter = pytest.mark.parametrize(
    ("family", "dtype"),
    [
        pytest.param(family, dtype, id=f"{np.dtype(dtype).name}-{family.name}")
        for family in FAMILIES
        for dtype in family.dtypes
    ],
)


def rng():
    return np.random.default_rng(0)


def epsilon(dtype):
    return float(ml_dtypes.finfo(dtype).eps)


def close(result, expected, dtype, tolerance):
    """Compare up to the rounding of a dtype, relative to the largest value."""
    expected = np.asarray(expected, np.float64)
    scale = max(1.0, np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    np.testing.assert_allclose(
        np.asarray(result).astype(np.float64), expected, rtol=0, atol=tolerance * epsilon(dtype) * scale
    )


def cotangent(family, arrays, dtype=np.float64):
    """Draw a cotangent of a family's result; no two entries agree."""
    return np.random.default_rng(1).normal(size=family.reference(*arrays).shape).astype(dtype)


def wide(arrays):
    """Return the arrays with floats in float64."""
    return tuple(x if np.issubdtype(x.dtype, np.integer) else x.astype(np.float64) for x in arrays)


def difference_quotient(family, arrays, ct, position):
    """Return the reference's gradient by central differences in float64 (error about 1e-9)."""
    x = arrays[position]
    gradient = np.empty(x.shape)
    step = 1e-5
    for index in np.ndindex(x.shape):
        values = []
        for sign in (1, -1):
            moved = x.copy()
            moved[index] += sign * step
            values.append((family.reference(*arrays[:position], moved, *arrays[position + 1 :]) * ct).sum())
        gradient[index] = (values[0] - values[1]) / (2 * step)
    return gradient


def views(x):
    """Return arrays equal to x that lie differently in memory."""
    spread = np.zeros(tuple(2 * size + 1 for size in x.shape), x.dtype)
    sliced = spread[tuple(slice(1, 2 * size, 2) for size in x.shape)]
    sliced[...] = x
    backwards = np.ascontiguousarray(x[::-1])[::-1]
    offset = np.zeros(x.size + 1, x.dtype)[1:].reshape(x.shape)
    offset[...] = x
    return {"transposed": np.ascontiguousarray(x.T).T, "sliced": sliced, "backwards": backwards, "offset": offset}


def variant(launch):
    """Return what tells the compiled forms of a launch apart."""
    bound = bind(toolchain.parameters(launch.kernel), launch.args, launch.meta, toolchain.LAUNCH_OPTIONS)
    options = {name: value for name, value in launch.meta.items() if name in toolchain.LAUNCH_OPTIONS}
    return str((launch.kernel.__name__, *bound.types.items(), *bound.constexprs.items(), *options.items()))


def record(function, *arrays):
    """Return the launches a function makes, without running them, and the result it would fill in."""
    launches = []
    with launching(launches.append):
        result = function(*arrays)
    return launches, result


@dtype_parameter
def test_values_equal_the_reference(family, dtype):
    for rows, columns in family.sizes:
        arrays = family.inputs(rng(), dtype, rows, columns)
        close(family.forward(*arrays), family.reference(*wide(arrays)), dtype, family.tolerance)


@family_parameter
def test_gradients_equal_difference_quotients(family):
    """6: per-row cotangents are used whole; 12: padding enters nothing (odd sizes)."""
    for rows, columns in [size for size in family.sizes if np.prod(size) <= 300]:
        arrays = family.inputs(rng(), np.float64, rows, columns)
        ct = cotangent(family, arrays)
        gradients = family.backward(ct, *arrays)
        for position, gradient in zip(family.differentiable, gradients):
            assert gradient.shape == arrays[position].shape
            expected = difference_quotient(family, arrays, ct, position)
            np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)


@dtype_parameter
def test_gradients_of_narrow_types_equal_float64(family, dtype):
    """10: sums run in float32."""
    for rows, columns in family.sizes:
        arrays = family.inputs(rng(), dtype, rows, columns)
        ct = cotangent(family, wide(arrays), dtype)
        expected = family.backward(ct.astype(np.float64), *wide(arrays))
        for position, gradient, exact in zip(family.differentiable, family.backward(ct, *arrays), expected):
            assert gradient.dtype == arrays[position].dtype
            close(gradient, exact, dtype, family.tolerance)


@family_parameter
def test_01_offsets_beyond_int32(family):
    arrays = family.huge(np.float16)
    forward, result = record(family.forward, *arrays)
    backward, _ = record(family.backward, np.broadcast_to(np.float16(0), result.shape), *arrays)
    for launch in forward + backward:
        last = tuple(size - 1 for size in (*np.atleast_1d(launch.grid), 1, 1)[:3])
        require_clean(check_kernel(launch.kernel, launch.grid, *launch.args, programs=[last], **launch.meta))


@pytest.mark.heavy
@family_parameter
def test_02_rows_wider_than_a_block(family):
    for columns in family.wide:
        arrays = family.inputs(rng(), np.float32, 2, columns)
        close(family.forward(*arrays), family.reference(*wide(arrays)), np.float32, 16 * family.tolerance)
        ct = cotangent(family, wide(arrays), np.float32)
        expected = family.backward(ct.astype(np.float64), *wide(arrays))
        for gradient, exact in zip(family.backward(ct, *arrays), expected):
            close(gradient, exact, np.float32, 16 * family.tolerance)


@family_parameter
def test_03_backward_twice_gives_the_same_and_changes_nothing(family):
    arrays = family.inputs(rng(), np.float32, 4, 17)
    ct = cotangent(family, wide(arrays), np.float32)
    before = [x.tobytes() for x in (ct, *arrays)]
    first, second = family.backward(ct, *arrays), family.backward(ct, *arrays)
    for one, two in zip(first, second):
        np.testing.assert_array_equal(one, two)
        assert not any(np.may_share_memory(one, x) for x in (ct, *arrays))
    assert before == [x.tobytes() for x in (ct, *arrays)]


@family_parameter
def test_04_a_broadcast_cotangent(family):
    arrays = family.inputs(rng(), np.float32, 4, 17)
    ct = np.broadcast_to(np.float32(0.7), family.reference(*wide(arrays)).shape)
    require_clean(check_call(family.backward, ct, *arrays))
    for spread, packed in zip(family.backward(ct, *arrays), family.backward(np.ascontiguousarray(ct), *arrays)):
        np.testing.assert_array_equal(spread, packed)


@family_parameter
def test_05_views_of_every_argument(family):
    arrays = family.inputs(rng(), np.float32, 5, 19)
    ct = cotangent(family, wide(arrays), np.float32)
    result, gradients = family.forward(*arrays), family.backward(ct, *arrays)
    for position, x in enumerate((ct, *arrays)):
        for name, view in views(x).items():
            moved = [view if other == position else y for other, y in enumerate((ct, *arrays))]
            np.testing.assert_array_equal(family.forward(*moved[1:]), result, err_msg=name)
            for gradient, expected in zip(family.backward(*moved), gradients):
                np.testing.assert_array_equal(gradient, expected, err_msg=name)


@dtype_parameter
def test_09_13_14_no_races_no_undefined_values_all_written(family, dtype):
    for rows, columns in ((3, 5), (4, 17), (2, 130)):
        arrays = family.inputs(rng(), dtype, rows, columns)
        require_clean(check_call(family.forward, *arrays))
        require_clean(check_call(family.backward, cotangent(family, wide(arrays), dtype), *arrays))


@family_parameter
def test_16_grids_grow_along_the_first_axis_alone(family):
    arrays = family.huge(np.float16)
    forward, result = record(family.forward, *arrays)
    backward, _ = record(family.backward, np.broadcast_to(np.float16(0), result.shape), *arrays)
    for launch in forward + backward:
        sizes = np.atleast_1d(launch.grid)
        assert (sizes[1:] <= 65_535).all()
        assert sizes[0] < 2**31


@family_parameter
@pytest.mark.parametrize(("rows", "columns"), [(0, 7), (3, 0), (0, 0)])
def test_17_no_elements(family, rows, columns):
    arrays = family.inputs(rng(), np.float32, rows, columns)
    if family.name == "argmax" and rows:
        with pytest.raises(ValueError, match="expected entries along axis"):
            family.forward(*arrays)
        return
    result = family.forward(*arrays)
    assert result.shape[:1] == (rows,)
    gradients = family.backward(np.zeros_like(result), *arrays)
    for position, gradient in zip(family.differentiable, gradients):
        assert gradient.shape == arrays[position].shape


@pytest.mark.heavy
@family_parameter
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_18_fits_every_target_without_spills(family, target):
    arrays = family.inputs(rng(), ml_dtypes.bfloat16, 2, 65_536)
    ct = cotangent(family, wide(arrays), ml_dtypes.bfloat16)
    for reports in (
        compile_call(family.forward, *arrays, targets=[target]),
        compile_call(family.backward, ct, *arrays, targets=[target]),
    ):
        for report in reports.values():
            assert report[target].problems == ()
            assert report[target].spill_bytes == 0


@pytest.mark.heavy
@pytest.mark.parametrize("family", [f for f in FAMILIES if f.products], ids=lambda family: family.name)
def test_19_float32_products_use_no_tensor_cores_unless_asked(family):
    arrays = family.inputs(rng(), np.float32, 16, 16)  # large float32 products take long to compile
    ct = cotangent(family, wide(arrays), np.float32)
    for reports in (
        compile_call(family.forward, *arrays, targets=["sm_90"]),
        compile_call(family.backward, ct, *arrays, targets=["sm_90"]),
    ):
        assert all(report["sm_90"].tensor_cores == () for report in reports.values())


@pytest.mark.slow
@family_parameter
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "gfx942", "gfx950"])
@pytest.mark.parametrize("columns", [1, 3, 16, 1000, 131_072, 262_144])
def test_02_18_21_every_size_builds_for_every_target(family, target, columns):
    for dtype in family.dtypes:
        arrays = family.inputs(rng(), dtype, 2, columns)
        ct = cotangent(family, wide(arrays), dtype)
        for reports in (
            compile_call(family.forward, *arrays, targets=[target]),
            compile_call(family.backward, ct, *arrays, targets=[target]),
        ):
            for report in reports.values():
                assert report[target].problems == ()
                assert report[target].spill_bytes == 0


@family_parameter
def test_21_sizes_make_no_variants(family):
    """Sizes of one block and one alignment share every kernel: integers are no compile-time values."""
    seen = set()
    for columns in (17, 19, 21):
        arrays = family.inputs(rng(), np.float32, 3, columns)
        forward, result = record(family.forward, *arrays)
        backward, _ = record(family.backward, np.zeros(result.shape, np.float32), *arrays)
        seen |= {(number, variant(launch)) for number, launch in enumerate(forward + backward)}
    assert len(seen) == len(forward + backward), seen


@family_parameter
@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_25_large_values_stay_finite(family, scale):
    arrays = family.inputs(rng(), np.float32, 3, 17)
    arrays = tuple(x if np.issubdtype(x.dtype, np.integer) else np.sign(x) * np.float32(scale) for x in arrays)
    assert np.isfinite(family.forward(*arrays)).all()
    for gradient in family.backward(cotangent(family, wide(arrays), np.float32), *arrays):
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.keeps_rows_apart], ids=lambda family: family.name)
def test_26_nan_reaches_its_row_and_no_other(family):
    arrays = family.inputs(rng(), np.float32, 4, 17)
    arrays[0][2, 5 if family.reduces_rows else slice(None)] = np.nan
    result = np.isnan(family.forward(*arrays)).reshape(4, -1)
    results = [result]
    if not family.linear:
        results.append(np.isnan(family.backward(cotangent(family, wide(arrays), np.float32), *arrays)[0]))
    for found in results:
        assert found[2].all() if family.reduces_rows else found[2].any()
        assert not found[[0, 1, 3]].any()


@family_parameter
def test_28_constant_rows_have_finite_gradients(family):
    arrays = family.inputs(rng(), np.float32, 3, 17)
    arrays[0][...] = 2.5
    for gradient in family.backward(cotangent(family, wide(arrays), np.float32), *arrays):
        assert np.isfinite(gradient).all()


@family_parameter
def test_30_the_same_inputs_give_the_same_bits(family):
    arrays = family.inputs(rng(), ml_dtypes.bfloat16, 3, 130)
    first, second = family.forward(*arrays), family.forward(*arrays)
    assert first.tobytes() == second.tobytes()
    ct = cotangent(family, wide(arrays), ml_dtypes.bfloat16)
    for one, two in zip(family.backward(ct, *arrays), family.backward(ct, *arrays)):
        assert one.tobytes() == two.tobytes()


def test_interpretation_reaches_the_kernel_that_is_launched():
    """A launch that is recorded can be run afterwards, so what the battery records is what runs."""
    family = FAMILIES[0]
    arrays = family.inputs(rng(), np.float32, 3, 5)
    (launch,), _ = record(family.forward, *arrays)
    interpret(launch.kernel, launch.grid, *launch.args, **launch.meta)
    close(launch.args[3], family.reference(*wide(arrays)), np.float32, family.tolerance)

"""Launching: homes of arrays, and the path to the GPU against a stand-in for the driver library."""

import ctypes

import numpy as np
import pytest
import triton
import triton.language as tl

from fgrad.triton_kernels import cross_entropy, native
from fgrad.triton_kernels.driver import CudaError, Driver
from fgrad.triton_kernels.runtime import empty, launch, launching, strides, zeros
from fgrad.triton_kernels.tiling import fill_kernel
from tests.triton import standin


@triton.jit
def everything(x, pair, out, whole, large, real, flag, absent, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = (
        tl.load(x + at, mask=at < whole, other=0.0) * real + tl.load(pair[0] + pair[1]) + (large // 2).to(tl.float32)
    )
    if flag:
        value += 1
    tl.store(out + at, value, mask=at < whole)


@triton.jit
def staged(x, y, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at), input_precision="ieee"))


@triton.jit
def described(x, out, rows, columns, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + at, source.load([0, 0]))


def expect_parameters(driver, count):
    ctypes.c_int.in_dll(driver.library, "parameter_count").value = count


def on_device(shape, dtype=np.float32, number=0):
    return standin.DeviceArray(np.zeros(shape, dtype), number)


def test_every_kind_of_parameter_arrives(driver, record):
    x, y, out = on_device(64), on_device(64), on_device(64)
    expect_parameters(driver, 10)
    launch(everything, (3, 2), x, (y, 5), out, 60, 2**40, 1.5, True, None, BLOCK=32, num_warps=2)
    assert list(record.grid) == [3, 2, 1]
    assert list(record.block) == [64, 1, 1]
    assert record.stream == standin.Arrays.handle
    parameters = list(record.parameters)
    pointers = [array.host.ctypes.data for array in (x, y, out)]
    assert [parameters[0], parameters[1], parameters[3]] == pointers
    low = [parameter & 0xFFFFFFFF for parameter in parameters]
    assert low[2] == 5
    assert low[4] == 60
    assert parameters[5] == 2**40
    assert np.uint32(low[6]).view(np.float32) == 1.5
    assert parameters[7] & 0xFF == 1
    assert parameters[8:10] == [0, 0]


def test_a_plan_is_made_once_for_a_kind_of_arguments(record):
    out = on_device(64)
    for size in (3, 5, 7):
        launch(fill_kernel, 1, out, size, 2.0, BLOCK=64)
    assert (record.launches, record.loads) == (3, 1)
    launch(fill_kernel, 1, out, 16, 2.0, BLOCK=64)
    launch(fill_kernel, 1, standin.DeviceArray(np.zeros(65, np.float32)[1:]), 16, 2.0, BLOCK=64)
    launch(fill_kernel, 1, out, 16, 2.0, BLOCK=32)
    assert (record.launches, record.loads) == (6, 4)


def test_a_grid_may_be_a_function_and_an_empty_one_runs_nothing(record):
    out = on_device(64)
    launch(fill_kernel, lambda named: (triton.cdiv(named["size"], named["BLOCK"]),), out, 40, 2.0, BLOCK=16)
    assert list(record.grid) == [3, 1, 1]
    launch(fill_kernel, (0, 4), out, 40, 2.0, BLOCK=16)
    assert record.launches == 1


def test_large_shared_memory_is_asked_for(record):
    launch(staged, 1, *(on_device((128, 128), np.float16) for _ in range(3)), SIZE=128, num_warps=8)
    assert record.shared > 48 << 10
    assert record.largest_shared == record.shared


def test_kernels_that_describe_tensors_get_scratch_memory(driver, record):
    expect_parameters(driver, 6)
    launch(described, 4, on_device((16, 16)), on_device((16, 16)), 16, 16, BLOCK=16)
    assert record.parameters[4] != 0
    assert record.parameters[5] == 0


def test_22_the_device_of_the_arrays_is_current_at_the_launch_and_not_after(record):
    for number in (1, 0, 2):
        launch(fill_kernel, 1, on_device(8, number=number), 8, 1.0, BLOCK=8)
        assert record.launched_on == number
        assert record.device == 0


def test_22_arrays_of_several_devices_or_homes_are_refused(record):
    with pytest.raises(ValueError, match="on one device, got 0 and 1"):
        launch(staged, 1, on_device(4), on_device(4, number=1), on_device(4), SIZE=2)
    with pytest.raises(
        TypeError, match=r"in one place, got numpy\.ndarray and tests\.triton\.standin\.arrays\.DeviceArray"
    ):
        launch(staged, 1, on_device(4), np.zeros(4, np.float32), on_device(4), SIZE=2)
    assert record.launches == 0


def test_what_is_no_array_is_refused():
    with pytest.raises(TypeError, match=r"NumPy and CuPy arrays, got builtins\.object"):
        launch(fill_kernel, 1, object(), 1, 1.0, BLOCK=1)


@pytest.mark.parametrize(
    ("out", "size", "said"),
    [
        (np.zeros(4, complex), 4, "argument 'out': a kernel has no type for arrays of complex128"),
        (np.zeros(4, "U3"), 4, "argument 'out': a kernel has no type for arrays of <U3"),
        (np.zeros(4, ">f4"), 4, "argument 'out': got byte-swapped '>f4'"),
        (np.zeros(4, "f4"), np.int64(4), r"argument 'size': got a NumPy scalar \(int64\).*call \.item\(\)"),
        (np.zeros(4, "f4"), 2**64, "argument 'size': 18446744073709551616 does not fit in 64 bits"),
        (np.zeros(4, "f4"), "4", "argument 'size': got str, expected an array, a Python number or None"),
    ],
)
@pytest.mark.parametrize("place", ["host", "device"])
def test_22_arguments_of_wrong_types_are_named(place, out, size, said, record):
    with pytest.raises(TypeError, match=said):
        launch(fill_kernel, 1, out if place == "host" else standin.DeviceArray(out), size, 1.0, BLOCK=4)
    assert record.launches == 0


def test_22_host_arrays_are_no_arguments_of_a_gpu_launch(record):
    for take in (native.Argument, native.activate):
        with pytest.raises(TypeError, match=r"kernel\[grid\] needs arrays on a GPU, got numpy\.ndarray"):
            take(np.zeros(3))


def test_a_failing_driver_raises_with_its_text(driver, record):
    failing = ctypes.c_int.in_dll(driver.library, "failing")
    failing.value = 1
    try:
        with pytest.raises(CudaError, match=r"cuModuleLoadData: out of memory \(2\)"):
            launch(fill_kernel, 1, on_device(8), 8, 3.0, BLOCK=8)
    finally:
        failing.value = 0
    launch(fill_kernel, 1, on_device(8), 8, 3.0, BLOCK=8)
    assert record.launches == 1


def test_a_missing_driver_is_named():
    with pytest.raises(CudaError, match="no CUDA driver"):
        Driver("libnothing.so.1")


def test_functions_over_kernels_run_on_devices_unchanged(record):
    logits, labels = on_device((6, 100)), on_device(6, np.int64)
    losses, lse = cross_entropy.cross_entropy_forward(logits, labels)
    assert list(record.grid) == [6, 1, 1]
    gradient = cross_entropy.cross_entropy_backward(losses, logits, labels, lse)
    assert isinstance(gradient, standin.DeviceArray)
    assert record.launches == 2


def test_launches_can_be_taken_over_and_new_arrays_watched():
    launches, arrays = [], []
    x = np.zeros(4, np.float32)
    with launching(launches.append, allocated=arrays.append):
        out = empty(x, (4,), x.dtype)
        launch(fill_kernel, 1, out, 4, 1.0, BLOCK=4)
    assert arrays[0] is out
    assert launches[0].kernel is fill_kernel
    assert not zeros(x, (4,), x.dtype).any()


def test_strides_mark_packed_rows():
    x = np.zeros((3, 4), np.float32)
    assert strides(x) == (4, None)
    assert strides(x.T) == (1, 4)
    assert strides(x[:, ::2]) == (4, 2)
    assert strides(np.float32(1) + np.zeros(())) == ()


def test_host_cost_of_a_launch(record, record_property):
    import timeit

    out = on_device(64)
    seconds = min(timeit.repeat(lambda: launch(fill_kernel, 1, out, 64, 2.0, BLOCK=64), number=2000, repeat=5)) / 2000
    record_property("host cost of a launch, 3 arguments", f"{seconds * 1e6:.1f} µs (aim: 8 µs)")

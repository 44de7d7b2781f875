"""Arrays in and out: of NumPy, of other libraries on the host, and of devices, against the stand-in driver."""

import gc
import importlib.util
import weakref

import ml_dtypes
import numpy as np
import pytest

import fgrad
from fgrad.triton_kernels import interop
from fgrad.triton_kernels.runtime import launch
from fgrad.triton_kernels.tiling import fill_kernel
from tests.triton import standin


class Foreign:
    """An array of another library on the host, which speaks DLPack alone."""

    def __init__(self, array):
        self._mine = array

    def __dlpack__(self, **options):
        return interop.to_dlpack(self._mine).__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0


class OnDevice:
    """An array of another library on a device, which speaks the CUDA array interface alone."""

    def __init__(self, array):
        self._mine = array

    @property
    def __cuda_array_interface__(self):
        return self._mine.__array_interface__


def strided(dtype):
    return np.arange(24, dtype=dtype).reshape(4, 6)[:, ::2].T


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_host_arrays_of_others_are_views(dtype):
    mine = strided(dtype)
    view = fgrad.to_numpy(Foreign(mine))
    assert isinstance(view, np.ndarray)
    assert (view.dtype, view.shape, view.strides) == (mine.dtype, mine.shape, mine.strides)
    np.testing.assert_array_equal(view, mine)
    view[0, 0] = 9
    assert mine[0, 0] == 9


def test_memory_lives_as_long_as_its_views():
    mine = np.arange(3, dtype=ml_dtypes.bfloat16)
    alive = weakref.ref(mine)
    view = fgrad.to_numpy(Foreign(mine))
    del mine
    gc.collect()
    assert view.tolist() == [0, 1, 2]
    assert alive() is not None
    del view
    gc.collect()
    assert alive() is None


def test_numpy_arrays_stay_what_they_are():
    x = strided(np.float64)
    x.flags.writeable = False
    assert fgrad.to_numpy(x) is x
    assert fgrad.device_put(x, "cpu") is x
    assert not fgrad.to_numpy(Foreign(x)).flags.writeable


def test_a_read_only_array_of_a_type_numpy_does_not_export_is_refused():
    x = np.zeros(2, ml_dtypes.bfloat16)
    x.flags.writeable = False
    with pytest.raises(BufferError, match="readonly"):
        interop.to_dlpack(x).__dlpack__()


def test_trees_numbers_and_traced_values():
    moved = fgrad.device_put({"a": [1, 2.5], "b": np.float32(3)}, "cpu")
    assert [x.dtype.name for x in fgrad.tree.leaves(moved)] == ["int64", "float64", "float32"]
    np.testing.assert_array_equal(fgrad.grad(lambda x: fgrad.device_put(x).sum())(np.ones(2)), [1, 1])
    with pytest.raises(fgrad.errors.TracerArrayConversionError):
        fgrad.grad(lambda x: fgrad.to_numpy(x).sum())(np.ones(2))


@pytest.mark.parametrize("device", ["tpu", "cuda:", "cuda:x", "cpu:1", 3])
def test_unknown_devices_are_refused(device):
    with pytest.raises(ValueError, match=f"device must be .*, got {device!r}"):
        fgrad.device_put(np.ones(2), device)


def test_what_is_no_array_is_refused():
    with pytest.raises(TypeError, match=r"kernels run on arrays, got builtins\.str"):
        fgrad.to_numpy("abc")


def test_a_device_of_another_kind_is_named():
    class Metal(Foreign):
        def __dlpack_device__(self):
            return 8, 0

    with pytest.raises(TypeError, match="Metal: kernels run on the host and on CUDA, got DLPack's 8"):
        interop.own(Metal(np.ones(2)))


def test_without_cupy_the_remedy_is_named():
    if importlib.util.find_spec("cupy"):
        pytest.skip("CuPy is installed")
    with pytest.raises(ImportError, match=r"pip install 'fgrad\[cuda13\]'"):
        fgrad.device_put(np.ones(2), "cuda")
    assert fgrad.device_put(np.ones(2)).tolist() == [1, 1]


def test_to_a_device_and_back(record):
    x = strided(np.float32)
    there = fgrad.device_put(x)
    assert isinstance(there, standin.DeviceArray)
    assert fgrad.device_put(there, "cuda") is there
    back = fgrad.to_numpy(there)
    np.testing.assert_array_equal(back, x)
    assert not np.may_share_memory(back, x)


def test_to_another_device(record):
    there = fgrad.device_put(np.ones(3), "cuda:1")
    assert there.number == 1
    assert fgrad.device_put(there, "gpu:2").number == 2
    assert record.device == 0


def test_arrays_on_a_device_are_views(record):
    x = strided(np.float32)
    x.flags.writeable = False
    mine = interop.own(OnDevice(x))
    assert mine.pointer == x.ctypes.data
    assert mine.host.strides == x.strides
    assert not mine.host.flags.writeable


def test_kernels_take_arrays_of_others(record):
    x = np.zeros(6, np.float32)
    launch(fill_kernel, 1, Foreign(x), 6, 2.0, BLOCK=8)
    assert x.tolist() == [2] * 6
    launch(fill_kernel, 1, OnDevice(x), 6, 2.0, BLOCK=8)
    assert record.launches == 1


@pytest.mark.parity
@pytest.mark.parametrize("name", ["float32", "bfloat16", "int32", "bool"])
def test_torch(name):
    torch = pytest.importorskip("torch")
    theirs = torch.arange(6).reshape(2, 3).to(getattr(torch, name)).T
    mine = fgrad.to_numpy(theirs)
    assert mine.dtype.name == name
    assert mine.astype(float).tolist() == theirs.to(torch.float64).tolist()
    back = torch.from_dlpack(interop.to_dlpack(mine))
    assert back.dtype == theirs.dtype
    assert back.data_ptr() == theirs.data_ptr()
    assert back.stride() == theirs.stride()


@pytest.mark.parity
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_jax(name):
    jnp = pytest.importorskip("jax.numpy")
    mine = fgrad.to_numpy(jnp.arange(3, dtype=name))
    assert mine.dtype.name == name
    assert mine.astype(float).tolist() == [0, 1, 2]

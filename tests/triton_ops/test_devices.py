"""Operations made of kernels on arrays of a device, on the stand-in whose launches compute: results stay there."""

import numpy as np
import pytest
import triton
import triton.language as tl

import fgrad
from fgrad.triton_kernels.runtime import _HOMES
from tests.triton import standin


@triton.jit
def cube(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + at, value * value * value, mask=at < n)


@triton.jit
def cube_backward(ct, x, dx, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value, g = tl.load(x + at, mask=at < n, other=0.0), tl.load(ct + at, mask=at < n, other=0.0)
    tl.store(dx + at, 3 * g * value * value, mask=at < n)


def run(kernel, *arrays):
    x = arrays[-1]
    return fgrad.triton_call(
        kernel, *arrays, out_shape=x, grid=triton.cdiv(x.size, 64), batch="grid", n=x.size, BLOCK=64
    )


cubed = fgrad.kernel_op(
    lambda x: run(cube, x), lambda ct, x: run(cube_backward, ct, x), lambda x: x**3, name="cubed", batch="grid"
)
X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def device(driver, record, monkeypatch):
    """Let the stand-in's launches compute; return what it records."""
    monkeypatch.setitem(_HOMES, standin.DeviceArray, standin.InterpretingHome(standin.Arrays(driver), driver))
    return record


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (cubed, X**3),
        (lambda x: fgrad.vjp(cubed, x)[1](x)[0], 3 * X**3),
        (fgrad.grad(lambda x: cubed(x).sum()), 3 * X**2),
        (fgrad.vmap(cubed), X**3),
        (fgrad.vmap(fgrad.grad(lambda x: cubed(x).sum())), 3 * X**2),
        (lambda x: run(cube, x[:, ::2]), X[:, ::2] ** 3),
    ],
    ids=["value", "vjp", "grad", "vmap", "vmap of grad", "strided"],
)
def test_results_stay_on_the_device(function, want, device):
    out = function(fgrad.device_put(X, "cuda"))
    assert isinstance(out, standin.DeviceArray)
    np.testing.assert_array_equal(fgrad.to_numpy(out), want)
    assert device.launches > 0


def test_on_the_device_of_the_array(device):
    out = cubed(fgrad.device_put(X, "cuda:2"))
    assert (out.number, device.launched_on, device.device) == (2, 2, 0)


class Foreign:
    """An array of another library, which speaks DLPack alone."""

    def __init__(self, array):
        self._mine = array

    def __dlpack__(self, **options):
        return self._mine.__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0


def test_arrays_of_other_libraries_are_taken():
    np.testing.assert_array_equal(cubed(Foreign(X)), X**3)
    np.testing.assert_array_equal(fgrad.triton_call(cube, Foreign(X), out_shape=X, grid=1, n=X.size, BLOCK=16), X**3)


@pytest.mark.parity
def test_torch_tensors_are_taken():
    torch = pytest.importorskip("torch")
    out = cubed(torch.tensor(X).to(torch.bfloat16))
    assert out.dtype.name == "bfloat16"
    np.testing.assert_array_equal(out.astype(np.float32)[0], [0, 1, 8, 27])

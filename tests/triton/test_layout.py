"""What only copies have: every rank, every order of axes, types without arithmetic, and whole lines moved."""

import ml_dtypes
import numpy as np
import pytest

from fgrad.triton_kernels import check_call, compile_call, require_clean
from fgrad.triton_kernels.layout import copy_forward, transpose_backward, transpose_forward

SHAPES = [(), (1,), (5,), (0, 3), (3, 0), (70, 130), (1, 65, 1), (2, 3, 70), (2, 3, 4, 5, 6)]


@pytest.mark.parametrize("shape", SHAPES)
def test_copies_of_every_rank(shape):
    x = np.random.default_rng(0).normal(size=shape)
    for view in (x, x.T, x[::-1] if x.ndim else x, np.broadcast_to(x, (3, *shape))):
        copy = copy_forward(view)
        np.testing.assert_array_equal(copy, view)
        assert copy.flags.c_contiguous
        assert not np.may_share_memory(copy, view)
    require_clean(check_call(copy_forward, x.T))


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (-1, 0, 1), None])
def test_every_order_of_axes_and_back(axes):
    x = np.random.default_rng(0).normal(size=(3, 70, 5))
    out = transpose_forward(x, axes=axes)
    np.testing.assert_array_equal(out, x.transpose(axes))
    np.testing.assert_array_equal(transpose_backward(out, axes=axes), x)


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.int8, np.int64]
)
def test_every_type(dtype):
    x = np.arange(-40, 40).reshape(8, 10).astype(dtype)
    np.testing.assert_array_equal(transpose_forward(x), x.T)


def test_lines_are_moved_whole():
    x = np.empty((4096, 4096), np.float32)
    for function, array in ((transpose_forward, x), (copy_forward, x[:, :2048])):
        report = compile_call(function, array, targets=["sm_90"])["copy_kernel"]["sm_90"]
        assert (report.load_bits, report.store_bits, report.spill_bytes) == (128, 128, 0)


def test_axes_are_named_once():
    with pytest.raises(ValueError, match=r"axes: got \(0, 0\)"):
        transpose_forward(np.ones((2, 3)), axes=(0, 0))

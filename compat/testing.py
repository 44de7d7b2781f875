"""`torch.testing`."""

from __future__ import annotations

import numpy as np

from . import devices
from .tensor import Tensor

_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def assert_close(
    actual,
    expected,
    *,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_dtype=True,
    check_device=True,
    check_stride=False,
    msg=None,
):
    """Raise AssertionError unless two tensors (or sequences or mappings of them) are close.

    Args:
        actual, expected: tensors, numbers, or sequences or mappings of them.
        rtol, atol: tolerances; by default those of the dtype.
        equal_nan: let NaN equal NaN.
        check_dtype, check_device: whether dtypes and devices have to agree.
        msg: text to show in place of torch's.
    """
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_dtype": check_dtype, "msg": msg}
    options["check_device"] = check_device
    if isinstance(expected, dict):
        assert set(actual) == set(expected), msg or "The keys of the mappings do not match"
        for key in expected:
            assert_close(actual[key], expected[key], **options)
        return
    if isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected), (
            msg or f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
        )
        for a, b in zip(actual, expected):
            assert_close(a, b, **options)
        return
    if (
        check_device
        and isinstance(actual, Tensor)
        and isinstance(expected, Tensor)
        and actual.device != expected.device
    ):
        raise AssertionError(
            msg or f"The values for attribute 'device' do not match: {actual.device} != {expected.device}."
        )
    del options["check_device"]
    _assert_arrays(_array(actual), _array(expected), **options)


def _array(x):
    return devices.on_host(x._data) if isinstance(x, Tensor) else np.asarray(x)


def _assert_arrays(a, b, rtol, atol, equal_nan, check_dtype, msg):
    if a.shape != b.shape:
        raise AssertionError(msg or f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}.")
    if check_dtype and a.dtype != b.dtype:
        raise AssertionError(
            msg or f"The values for attribute 'dtype' do not match: torch.{a.dtype} != torch.{b.dtype}."
        )
    usual = _TOLERANCES.get(b.dtype.name, (0, 0))
    rtol = usual[0] if rtol is None else rtol
    atol = usual[1] if atol is None else atol
    close = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if not close.all():
        wrong = int((~close).sum())
        raise AssertionError(
            msg
            or "Tensor-likes are not close!\n\n"
            f"Mismatched elements: {wrong} / {close.size} ({100 * wrong / close.size:.1f}%)"
        )

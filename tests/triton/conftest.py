"""What the tests of the kernels share: a stand-in for a GPU, and the reason to skip where Triton has no wheel."""

import ctypes
import importlib.util

import pytest


class _NeedsTriton(pytest.Module):
    def collect(self):
        pytest.skip("Triton is not installed: its wheels exist for Linux alone, see the extra fgrad[triton]")


def pytest_pycollect_makemodule(module_path, parent):
    """Report every file of this folder as skipped where Triton cannot be imported."""
    if importlib.util.find_spec("triton") is None:
        return _NeedsTriton.from_parent(parent, path=module_path)
    return None


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """Return the stand-in for the driver library."""
    from fgrad.triton_kernels.driver import Driver
    from tests.triton import standin

    if standin.compiler() is None:
        pytest.skip("the stand-in for the CUDA driver needs a C compiler")
    return Driver(str(standin.build(tmp_path_factory.mktemp("standin"))))


@pytest.fixture
def record(driver, monkeypatch):
    """Run stand-in arrays' kernels on the stand-in driver; return what it records."""
    from fgrad.triton_kernels.cuda import CudaHome
    from fgrad.triton_kernels.runtime import _HOMES, register_home
    from tests.triton import standin

    monkeypatch.setitem(_HOMES, standin.DeviceArray, None)
    register_home(standin.DeviceArray, CudaHome(standin.Arrays(driver), driver))
    found = standin.Record.in_dll(driver.library, "record")
    ctypes.memset(ctypes.byref(found), 0, ctypes.sizeof(found))
    ctypes.c_int.in_dll(driver.library, "parameter_count").value = 0
    return found

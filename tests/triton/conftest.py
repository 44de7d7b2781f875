"""What the tests of the kernels share: the reason they are skipped where Triton has no wheel."""

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

"""A stand-in for a GPU whose launches are interpreted as well."""

import importlib.util

import pytest

if importlib.util.find_spec("triton"):
    from tests.triton.conftest import driver, record  # noqa: F401  (fixtures)


@pytest.fixture
def card(driver, record, monkeypatch):
    """Let the stand-in be what "cuda" means; return what its driver records."""
    from fgrad.triton_kernels.runtime import _HOMES
    from tests.triton import standin

    monkeypatch.setitem(_HOMES, standin.DeviceArray, standin.InterpretingHome(standin.Arrays(driver), driver))
    return record

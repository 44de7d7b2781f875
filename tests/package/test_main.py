"""`python -m fgrad`: everything a bug report needs, whatever is missing or broken."""

import importlib.util
import os
import platform
import subprocess
import sys
import types

import numpy as np
import pytest

from fgrad import __main__ as main


def facts():
    return dict(main.report())


def test_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "fgrad"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == len(facts())
    assert lines[2].split() == ["numpy", np.__version__]


def test_names_versions_machine_and_blas():
    found = facts()
    assert platform.python_version() in found["python"]
    assert found["cores"] == str(os.cpu_count())
    assert platform.machine() in found["system"]
    assert found["BLAS"] != "unknown"
    assert {"scipy", "ml_dtypes", "triton", "cupy", "GPU", "BLAS threads", "cpu (NumPy)"} <= set(found)


def test_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(main, "found", lambda module: False)
    monkeypatch.setattr(main, "version", lambda *names: None)
    found = facts()
    assert found["triton"] == "not installed"
    assert found["GPU"].startswith("none: CuPy is not installed")
    assert "fgrad[triton]" in found["Triton kernels, interpreted"]
    assert "threadpoolctl" in found["BLAS threads"]


@pytest.fixture
def cupy(monkeypatch):
    """Put a stand-in for CuPy where the report looks for it."""
    module = types.ModuleType("cupy")
    module.__spec__ = importlib.util.spec_from_loader("cupy", None)
    runtime = types.SimpleNamespace(
        getDeviceCount=lambda: 1, getDeviceProperties=lambda device: {"name": b"Example card"}
    )
    module.cuda = types.SimpleNamespace(runtime=runtime)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def test_names_the_card(cupy):
    assert facts()["GPU"] == "Example card"


def test_a_broken_cupy_is_reported_not_raised(cupy):
    def fail():
        raise RuntimeError("driver is too old")

    cupy.cuda.runtime.getDeviceCount = fail
    assert "RuntimeError: driver is too old" in facts()["GPU"]


def test_thread_variables_are_shown(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert facts()["OMP_NUM_THREADS"] == "3"

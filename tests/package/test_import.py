"""`import fgrad` is light: it loads NumPy and itself."""

import os
import subprocess
import sys

import pytest

HEAVY = {"triton", "cupy", "scipy", "torch", "jax", "ml_dtypes", "matplotlib", "fgrad.triton_kernels", "fgrad.compat"}


def python(code, **environment):
    """Run code in a fresh interpreter and return what it prints."""
    env = os.environ | environment
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env).stdout


@pytest.mark.parametrize("name", ["fgrad", "fgrad.numpy", "fgrad.lax", "fgrad.random"])
def test_loads_nothing_heavy(name):
    loaded = set(python(f"import sys, {name}; print(*sys.modules)").split())
    assert "numpy" in loaded
    assert not HEAVY & loaded


LATER = (
    "backend.cpu",
    "check",
    "config",
    "kernel_pair",
    "kernels",
    "lax",
    "nn",
    "numpy.fft",
    "numpy.linalg",
    "ops.fft",
    "ops.linalg",
    "random",
    "scipy",
)


def test_loads_the_rest_when_it_is_asked_for():
    loaded = python("import sys, fgrad; print(*sys.modules)").split()
    assert not {f"fgrad.{name}" for name in LATER} & set(loaded)
    code = "import fgrad, types; fgrad.kernels, fgrad.nn, fgrad.random, fgrad.config, fgrad.scipy; "
    assert python(code + "print(callable(fgrad.check_grads), callable(fgrad.kernel_op))").split() == ["True", "True"]
    assert python("import fgrad; print(sorted(set(fgrad.__all__) - {n for n in dir(fgrad)}))").strip() == "[]"


def test_cost_beyond_numpy(record_property, tmp_path):
    code = "import time, numpy; t = time.process_time(); import fgrad; print(time.process_time() - t)"
    # Bytecode is kept for the test even where the user turned it off: what counts is every import but the first.
    keep = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    seconds = min(float(python(code, **keep)) for _ in range(5))
    record_property("import fgrad, beyond numpy", f"{seconds * 1e3:.1f} ms (aim: 20 ms)")

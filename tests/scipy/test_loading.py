"""`fgrad.scipy` is loaded when asked for, and SciPy itself when it is needed."""

import subprocess
import sys

import pytest


def python(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()


def test_fgrad_alone_loads_neither():
    loaded = python("import sys, fgrad; print(*sys.modules)")
    assert not {"scipy", "fgrad.scipy"} & set(loaded)


def test_the_attribute_loads_the_package_without_scipy():
    loaded = python("import sys, fgrad; fgrad.scipy.optimize; print(*sys.modules)")
    assert "fgrad.scipy.optimize" in loaded
    assert "scipy" not in loaded


def test_other_attributes_are_missing_as_ever():
    import fgrad

    with pytest.raises(AttributeError, match="module 'fgrad' has no attribute 'spicy'"):
        fgrad.spicy  # noqa: B018

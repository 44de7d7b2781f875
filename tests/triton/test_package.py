"""The package imports without Triton, and says what is missing at the first use."""

import subprocess
import sys

import pytest

import fgrad.triton_kernels

WITHOUT_TRITON = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "triton":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import fgrad.triton_kernels as kernels
try:
    kernels.interpret
except ImportError as error:
    print(error)
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_the_package_loads_no_triton():
    assert run("import sys, fgrad.triton_kernels; print('triton' in sys.modules)") == "False"


def test_the_first_use_without_triton_says_what_to_install():
    assert run(WITHOUT_TRITON).startswith("fgrad.triton_kernels.interpret needs Triton: pip install 'fgrad[triton]'")


@pytest.mark.parametrize("name", fgrad.triton_kernels.__all__)
def test_every_public_name_exists(name):
    assert getattr(fgrad.triton_kernels, name) is not None
    assert name in dir(fgrad.triton_kernels)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = fgrad.triton_kernels.nothing

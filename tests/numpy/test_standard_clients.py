"""SciPy, array-api-extra and scikit-learn differentiate through fgrad, by the array API standard alone."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = Path(__file__).with_name("standard_clients.py")
NAMES = re.findall(r'^    "([\w.]+)": ', CLIENTS.read_text(), re.MULTILINE)

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("standard clients")]


@pytest.fixture(scope="module")
def outcomes():
    code = f"import runpy; runpy.run_path({str(CLIENTS)!r}, run_name='__main__')"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return dict(line.split("\t") for line in printed.splitlines())


def test_all_calls_are_made(outcomes):
    assert list(outcomes) == NAMES
    assert {name.partition(".")[0] for name in NAMES} == {"scipy", "array_api_extra", "sklearn"}


@pytest.mark.parametrize("name", NAMES)
def test_differentiates(outcomes, name):
    assert outcomes[name] == "ok"

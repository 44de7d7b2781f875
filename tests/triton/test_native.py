"""Triton's own launcher and tuner run on our arrays without torch, against the stand-in driver library."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.triton import standin

HEADERS = Path(sysconfig.get_paths()["include"]) / "Python.h"


@pytest.mark.heavy
def test_launch_tune_and_describe(tmp_path):
    if standin.compiler() is None or not HEADERS.exists():
        pytest.skip("Triton builds its launcher with a C compiler and Python's headers")
    library = standin.build(tmp_path)
    environment = {
        **os.environ,
        "STANDIN": str(library),
        "TRITON_LIBCUDA_PATH": str(tmp_path),
        "LD_LIBRARY_PATH": str(tmp_path),
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    command = [sys.executable, "-m", "tests.triton.standin.native"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "native launches arrive", done.stderr

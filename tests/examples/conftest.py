"""Examples are run as their reader runs them: their folder is on the path, and nothing needs a screen."""

import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module", autouse=True)
def examples_on_path():
    sys.path.insert(0, str(EXAMPLES))
    yield EXAMPLES
    sys.path.remove(str(EXAMPLES))

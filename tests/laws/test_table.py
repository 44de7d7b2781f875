"""Every row of the table has a strategy, or a written reason for having none, and a line in the docs."""

import subprocess
import sys
from pathlib import Path

import pytest

from fgrad.check.table import describe
from tests.laws import families  # noqa: F401  (enters its strategies)
from tests.laws.strategies import BY_NAME, CARE, ROWS, WITHOUT_LAWS, cases

ROOT = Path(__file__).parents[2]
NAMES = {prim.name for prim in ROWS}


@pytest.mark.parametrize("prim", [p for p in ROWS if p.name not in WITHOUT_LAWS], ids=lambda p: p.name)
def test_every_primitive_has_a_strategy(prim):
    cases(prim)


@pytest.mark.parametrize("prim", ROWS, ids=lambda p: p.name)
def test_every_primitive_says_what_it_computes(prim):
    assert describe(prim).strip()


def test_strategies_are_of_primitives_that_exist():
    assert not (set(CARE) | set(BY_NAME) | set(WITHOUT_LAWS)) - NAMES


@pytest.mark.parametrize("name", sorted(WITHOUT_LAWS))
def test_the_tests_that_stand_in_for_laws_exist(name):
    path = WITHOUT_LAWS[name].rpartition(": ")[2].rpartition(" ")[2]
    assert (ROOT / path).is_file()


def test_the_page_of_primitives_is_the_table():
    printed = subprocess.run(
        [sys.executable, "-m", "fgrad.check", "--table"], capture_output=True, text=True, check=True
    )
    page = (ROOT / "docs" / "ops.md").read_text()
    assert page == printed.stdout, "docs/ops.md is out of date: python -m fgrad.check --table > docs/ops.md"

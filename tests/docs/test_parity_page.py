"""docs/parity.md is what the code does, and names every public function and every name of NumPy's that is missing."""

from pathlib import Path

import numpy as np
import pytest

import fgrad.numpy as fnp
import fgrad.scipy
from tests.docs import parity_page
from tests.docs.numpys_absent import ABSENT
from tests.numpy.test_parity import functions
from tests.scipy.samples import CONTINUOUS, DISCRETE, TABLES

PAGE = Path(__file__).parents[2] / "docs" / "parity.md"


@pytest.mark.heavy
def test_the_page_is_what_the_code_does():
    assert PAGE.read_text() == parity_page.page(), "python -m tests.docs.parity_page > docs/parity.md"


def test_every_function_has_a_row():
    for place, (module, table) in parity_page.PLACES.items():
        if place.startswith("fgrad.numpy"):
            public = functions(module) & set(getattr(module, "__all__", vars(module)))
            assert public == set(table), place
    for name in sorted(set(TABLES) - {"stats"}):
        assert set(TABLES[name]) == set(parity_page.find(fgrad.scipy, name).__all__), name


def test_every_function_of_a_distribution_has_a_row():
    for name in (*CONTINUOUS, *DISCRETE):
        family = getattr(fgrad.scipy.stats, name)
        there = {f for f in dir(family) if not f.startswith("_") and f in family._formulas}
        assert there == {n.partition(".")[2] for n in TABLES["stats"] if n.startswith(f"{name}.")}, name
    assert {n.partition(".")[0] for n in TABLES["stats"]} == set(fgrad.scipy.stats.__all__)


def test_every_absent_name_has_a_reason():
    absent = {name for names in ABSENT.values() for name in names.split()}
    assert {name for name in np.__all__ if not name.startswith("_")} - set(dir(fnp)) <= absent | {"__version__"}
    assert not absent & set(dir(fnp))

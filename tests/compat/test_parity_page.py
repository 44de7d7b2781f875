"""docs/torch-parity.md is what the tests say: nothing fails, nothing is untested, what is missing has a reason."""

from pathlib import Path

import pytest

from tests.compat.parity_page import FAILS, MISSING, UNTESTED, note, page, states

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("parity page")]  # one process runs the programs
PAGE = Path(__file__).parents[2] / "docs" / "torch-parity.md"


@pytest.mark.parametrize("wanted", [FAILS, UNTESTED])
def test_no_name_is_in_this_state(wanted):
    assert not [f"{space}: {name}" for space, names in states().items() for name in names if names[name] == wanted]


def test_what_is_missing_has_a_reason():
    missing = [(space, name) for space, names in states().items() for name in names if names[name] == MISSING]
    assert not [f"{space}: {name}" for space, name in missing if not note(space, name)]


def test_the_page_is_what_the_tests_say():
    assert PAGE.read_text() == page(), "out of date: python -m tests.compat.parity_page > docs/torch-parity.md"

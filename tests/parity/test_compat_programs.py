"""The programs of tests/compat, run with torch as well: the same things shown, the same errors."""

import pytest

from tests.compat.programs import PROGRAMS, split
from tests.parity.both import same

pytestmark = pytest.mark.parity


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    kind, phrase, text = split(PROGRAMS[name])
    want, got = same(text, phrase)
    if kind is not None:
        assert isinstance(want.error, kind), f"torch ends in {want.error!r}"
        assert isinstance(got.error, kind), f"compat ends in {got.error!r}"

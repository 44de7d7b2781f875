"""Every primitive obeys every law: the table × the laws, on drawn inputs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fgrad.check import LAWS
from tests.laws import families  # noqa: F401  (enters its strategies)
from tests.laws.strategies import ROWS, WITHOUT_LAWS, cases

QUICK = {"type_rule", "push", "adjoint"}  # what `make check` has time for
EXAMPLES = max(4, settings().max_examples // 10)

pytestmark = pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")


def pairs():
    for prim in ROWS:
        for name, law in LAWS.items():
            if law.applies(prim) and prim.name not in WITHOUT_LAWS:
                yield pytest.param(
                    prim, law, id=f"{prim.name}-{name}", marks=() if name in QUICK else pytest.mark.heavy
                )


@pytest.mark.parametrize(("prim", "law"), list(pairs()))
def test_law(prim, law):
    @settings(max_examples=EXAMPLES, report_multiple_bugs=False)
    @given(st.data())
    def holds(data):
        args, params = data.draw(cases(prim, law.smooth))
        law.check(prim, *args, **params)

    holds()

"""No kernel does worse than docs/kernel-report.md says."""

import pytest

from fgrad.triton_kernels import toolchain
from tests.triton import report
from tests.triton.families import FAMILIES

FAST = ("sm_90", "gfx942")  # those that the battery compiles as well
MAKE = "run `python -m tests.triton.report > docs/kernel-report.md` and look at the difference"


@pytest.fixture(scope="module")
def page():
    if not toolchain.version.startswith(report.version() + "."):
        pytest.skip(f"the page was made with Triton {report.version()}, this is {toolchain.version}")
    return report.recorded()


def hold(family, targets, page):
    """Compare a family's kernels with the page: spills, narrower loads, fewer programs at once, far more registers."""
    for key, reports in report.measured(family, targets).items():
        row = page.get((family.name, *key))
        assert row, f"{key} of {family.name} is not on the page: {MAKE}"
        for target in targets:
            registers, load, occupancy, spilled = report.figures(row[target])
            found = reports[target]
            place = f"{key} of {family.name} on {target}: {report.cell(found)}, the page has {row[target]}; {MAKE}"
            assert found.problems == (), place
            assert found.spill_bytes <= spilled, place
            assert found.load_bits >= load, place
            assert round(100 * found.occupancy) >= occupancy, place
            assert found.registers <= 1.1 * registers + 2, place


@pytest.mark.heavy
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_no_kernel_does_worse_than_the_page_says(family, page):
    hold(family, FAST, page)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_nor_on_the_other_targets(family, page):
    hold(family, tuple({*report.LIMITS} - {*FAST}), page)


@pytest.mark.slow
def test_the_page_lists_no_family_that_is_gone(page):
    assert {name for name, _, _ in page} <= {family.name for family in FAMILIES}


@pytest.mark.parametrize(
    ("text", "figures"),
    [("26 · 64 · 128 · 100 %", (26, 128, 100, 0)), ("255 · 0 · 32 · 13 % **176**", (255, 32, 13, 176))],
)
def test_cells_are_read_as_they_are_written(text, figures):
    assert report.figures(text) == figures

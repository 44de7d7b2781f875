"""Writes docs/kernel-report.md: `python -m tests.triton.report > docs/kernel-report.md`.

What every kernel of every family needs on every target, compiled without a GPU for the inputs of the battery's widest
rows. `test_report.py` holds the kernels to it.
"""

import re
from pathlib import Path

import ml_dtypes
import numpy as np

from fgrad.triton_kernels import compile_call, toolchain
from fgrad.triton_kernels.compile import LIMITS
from tests.triton.families import FAMILIES

PAGE = Path(__file__).parents[2] / "docs/kernel-report.md"
ROWS, COLUMNS = 2, 65_536

HEAD = """\
# What the kernels need

For each kernel and target: registers of a thread · bytes of shared memory of a program · widest load in bits ·
occupancy, and **spilled** bytes, where there are any, in bold. Types are bfloat16, rows have {columns:,} elements, the
compiler is Triton {version}. Made without a GPU by `python -m tests.triton.report > docs/kernel-report.md`; a test
fails when a kernel does worse than is written here.

| family | pass | kernel | {targets} |
| --- | --- | --- | {rules} |
"""


def measured(family, targets):
    """Return {(pass, kernel): {target: Report}} of a family's two passes; what forward runs is not listed again."""
    arrays = family.inputs(np.random.default_rng(0), ml_dtypes.bfloat16, ROWS, COLUMNS)
    wide = [x if np.issubdtype(x.dtype, np.integer) else x.astype(np.float64) for x in arrays]
    ct = np.zeros(family.reference(*wide).shape, ml_dtypes.bfloat16)
    forward = compile_call(family.forward, *arrays, targets=targets)
    gradient = compile_call(family.backward, ct, *arrays, targets=targets)
    found = {("forward", kernel): reports for kernel, reports in forward.items()}
    return found | {("gradient", kernel): reports for kernel, reports in gradient.items() if kernel not in forward}


def cell(report):
    """Return a report's figures as they stand in the table."""
    spilled = f" **{report.spill_bytes}**" if report.spill_bytes else ""
    return (
        f"{report.registers} · {report.shared_bytes} · {report.load_bits} · {report.occupancy:.0%}".replace("%", " %")
        + spilled
    )


def figures(text):
    """Return (registers, load bits, occupancy in percent, spilled bytes) of a cell."""
    form = r"(\d+) · \d+ · (\d+) · (\d+) %(?: \*\*(\d+)\*\*)?"
    return tuple(map(int, re.fullmatch(form, text).groups(default="0")))


def recorded():
    """Return {(family, pass, kernel): {target: cell}} of the page."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    header, _, *rows = rows
    return {tuple(row[:3]): dict(zip(header[3:], row[3:], strict=True)) for row in rows}


def version():
    """Return the release of Triton that the page was made with."""
    return re.search(r"Triton (\d+\.\d+)", PAGE.read_text())[1]


def main():
    """Print the page."""
    targets = " | ".join(LIMITS)
    release = ".".join(toolchain.version.split(".")[:2])
    print(
        HEAD.format(columns=COLUMNS, version=release, targets=targets, rules=" | ".join("---" for _ in LIMITS)), end=""
    )
    for family in FAMILIES:
        for (name, kernel), reports in measured(family, tuple(LIMITS)).items():
            cells = " | ".join(cell(reports[target]) for target in LIMITS)
            print(f"| {family.name} | {name} | {kernel} | {cells} |")


if __name__ == "__main__":
    main()

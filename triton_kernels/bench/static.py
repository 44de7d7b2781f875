"""What can be said of a case without a GPU: its machine code on a target, and the time at the data sheet's ceilings."""

from __future__ import annotations

import numpy as np

from ..cards import CARDS, projected
from ..compile import compile_call
from .cases import outline


def measured(case, dtype, rows, columns, targets):
    """Return a row of the report for each target: the worst of the case's kernels, and what it moves and does."""
    work = case.make(np.random.default_rng(0), dtype, rows, columns)
    with np.errstate(all="ignore"):  # what nothing has computed is converted on the host
        kernels = compile_call(work.function, *outline(work.prepare, *work.args), targets=targets)
    return [_row(case, dtype, rows, columns, target, work, kernels) for target in targets]


def _row(case, dtype, rows, columns, target, work, kernels):
    reports = [found[target] for found in kernels.values()]
    card, ceilings = next(((name, card) for name, card in CARDS.items() if card.target == target), (None, None))
    row = {
        "case": case.name,
        "dtype": np.dtype(dtype).name,
        "rows": rows,
        "columns": columns,
        "target": target,
        "kernels": len(reports),
        "registers": max(report.registers for report in reports),
        "spills": max(report.spill_bytes for report in reports),
        "load bits": min([report.load_bits for report in reports if report.load_bits], default=0),
        "occupancy": min(report.occupancy for report in reports),
        "problems": "; ".join(problem for report in reports for problem in report.problems),
        "bytes": work.moved,
        "flops": work.flops,
    }
    if card:
        seconds = projected(ceilings, work.moved, work.flops, np.dtype(dtype).name, case.products)
        row["projected µs"] = round(1e6 * seconds, 2)
    return row

"""Run the suite: `python -m benchmarks`, or with `--quick` the short workloads in less than a minute."""

import argparse
import os
import pathlib
import sys
from typing import NamedTuple

from rich.console import Console
from tqdm import tqdm

from benchmarks import reference, report, sparse, start, targets
from benchmarks.first_call import first_calls
from benchmarks.libraries import LIBRARIES, installed
from benchmarks.measure import FULL, QUICK, interleaved
from benchmarks.scaling import SCALES, measure
from benchmarks.workloads import WORKLOADS

SLOW = ("W5", "W12")
"""What a quick run leaves out."""

BLAS_CHOICES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Variables that choose kernels which may not fit the machine."""


class Found(NamedTuple):
    """What a run found: tables, seconds by workload, curves, and what became of targets."""

    sheets: list
    results: list
    curves: list
    outcomes: list


def without_blas_choices():
    """Start anew if the environment chooses kernels of BLAS: they are read when NumPy is loaded."""
    chosen = [name for name in BLAS_CHOICES if os.environ.pop(name, None) is not None]
    if chosen:
        os.execv(sys.executable, sys.orig_argv)


def checked(workload, libraries, say):
    """Return the calls of a workload by library, each compared with the reference first."""
    runs = {}
    wanted = None if workload.kind == "forward" else reference.expected(workload)
    for name, library in libraries.items():
        run = library.prepare(workload)
        if run is None:
            continue
        try:
            result = run()
            if wanted is not None:
                reference.check(workload, library.numpy(result), wanted, name)
        except Exception as error:  # a library may fail in any way: it is left out of the row, which is said
            say(f"{workload.key}: {name} is left out: {type(error).__name__}: {error}")
            continue
        runs[name] = run
    return runs


def measured(workloads, libraries, effort):
    """Return the tables of workloads alone."""
    results = []
    for workload in tqdm(workloads, desc="workloads", leave=False):
        runs = checked(workload, libraries, tqdm.write)
        results.append((workload, interleaved(runs, effort)))
    outcomes = [o for workload, seconds in results for o in targets.of_rounds(workload.key, seconds)]
    return Found([report.times_sheet(results)], results, [], outcomes)


def first_called(found, libraries, quick):
    """Add the first calls."""
    jits = {name: libraries[name] for name in ("fgrad jit", "jax jit") if name in libraries}
    workloads = [w for w in WORKLOADS if w.key in targets.FIRST_CALL and not (quick and w.key == "W10")]
    calls = first_calls(jits, workloads, rounds=1 if quick else 5)
    found.sheets.append(report.first_call_sheet(calls))
    found.outcomes.extend(targets.of_first_calls(calls))


def started_and_scaled(found, libraries):
    """Add W13, the memory of W12, and the curves."""
    starts = start.starts(libraries, rounds=7)
    nbytes = start.memory([name for name in libraries if name not in ("fgrad jit", "jax jit")])
    found.outcomes.extend([*targets.of_starts(starts), *targets.of_memory(nbytes)])
    effort = FULL._replace(row=3.0, least=3)
    found.curves.extend(measure(scale, libraries, effort) for scale in tqdm(SCALES, desc="scaling", leave=False))
    found.curves.extend(sparse.curves(effort))
    found.sheets.extend([report.start_sheet(starts), report.memory_sheet(nbytes), report.scaling_sheet(found.curves)])


def suite(options, libraries):
    """Return what the command line asks for."""
    if options.only:
        return measured([w for w in WORKLOADS if w.key in options.only], libraries, FULL)
    chosen = [w for w in WORKLOADS if not (options.quick and w.key in SLOW)]
    found = measured(chosen, libraries, QUICK if options.quick else FULL)
    first_called(found, libraries, options.quick)
    if not options.quick:
        started_and_scaled(found, libraries)
    return found


def main():
    """Measure what the command line asks for and show it."""
    without_blas_choices()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out what is slow, and measure less")
    parser.add_argument("--only", nargs="+", metavar="KEY", help="these workloads and nothing beside them")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"), help="folder for the plot")
    options = parser.parse_args()
    lines = report.conditions()
    libraries, missing = installed(options.libraries)
    for name, reason in missing.items():
        print(f"{name} is left out: {reason}")
    found = suite(options, libraries)
    print("\n".join(lines), end="\n\n")
    console = Console(width=max(120, Console().width))  # the table of times needs it
    for sheet in [*found.sheets, report.targets_sheet(found.outcomes)]:
        print(report.as_markdown(sheet)) if options.markdown else console.print(report.as_rich(sheet))
    path = options.out / "benchmarks.png"
    report.plot(found.results, found.curves, path)
    print(f"plot: {path}")


if __name__ == "__main__":
    main()

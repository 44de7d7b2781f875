"""`python -m fgrad.triton_kernels.bench`: kernels by sizes and types, timed on a GPU, or looked at without one."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import sys
from itertools import product
from pathlib import Path

import numpy as np

from ..interop import has_gpu
from ..runtime import gpu_home, home_of
from ..tune import tuning
from . import cases, device, report, static
from .check import require_right

SIZES = "4096x1024,4096x4096,4096x16384"
TARGETS = "sm_80,sm_90,sm_100,gfx942"


def parsed(arguments):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(prog="python -m fgrad.triton_kernels.bench", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose names contain one of these, separated by commas")
    parser.add_argument("--kernel", action="append", default=[], help='one of your own: "module:name"; may be repeated')
    parser.add_argument("--sizes", default=SIZES, help="rows x columns, separated by commas")
    parser.add_argument("--dtypes", default="bfloat16,float32")
    parser.add_argument("--targets", default=TARGETS, help="what is compiled for, without a GPU")
    parser.add_argument("--static", action="store_true", help="do not time, even if there is a GPU")
    parser.add_argument("--list", action="store_true", help="print the names of the cases, and stop")
    parser.add_argument("--tune", action="store_true", help="on a GPU, tune what was not tuned before, then time it")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--replay", action="store_true", help="time a replayed CUDA graph as well")
    parser.add_argument("--out", help="write the figures to a .json or .csv file")
    parser.add_argument("--plot", help="draw the share of the ceiling against the size, as .png or .svg")
    parser.add_argument("--compare", help="an earlier .json file: exit with 1 if something got worse")
    return parser.parse_args(arguments)


def chosen(options):
    """Return the cases that the options name.

    Raises:
        SystemExit: none is of that name.
    """
    if options.kernel:
        return [case for path in options.kernel for case in cases.found(path)]
    words = [word for word in options.only.split(",") if word]
    everything = [*cases.CASES, *cases.found(cases.GENERATED)]
    found = [case for case in everything if not words or any(word in case.name for word in words)]
    if not found:
        sys.exit(f"--only {options.only}: no case is called so; there are {', '.join(c.name for c in everything)}")
    return found


def dtype_of(name):
    """Return the dtype of a name, those of ml_dtypes included."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def progress(items):
    """Return items, with a bar on a terminal where tqdm is installed."""
    if importlib.util.find_spec("tqdm") is None:
        return items
    from tqdm import tqdm

    return tqdm(items, disable=not sys.stderr.isatty(), leave=False)


def measure(options, home=None):
    """Return the rows of figures; `home` is that of the GPU, None without one."""
    sizes = [tuple(map(int, size.split("x"))) for size in options.sizes.split(",")]
    dtypes = [dtype_of(name) for name in options.dtypes.split(",")]
    work = [(case, *rest) for case, *rest in product(chosen(options), dtypes, sizes) if case.takes(rest[0])]
    if home is None:
        for case, dtype in {(case.name, str(dtype)): (case, dtype) for case, dtype, _ in work}.values():
            require_right(case, dtype, home_of(np.empty(0)))
        targets = options.targets.split(",")
        return [row for case, dtype, size in progress(work) for row in static.measured(case, dtype, *size, targets)]
    with tuning() if options.tune else contextlib.nullcontext():
        ceilings = device.Ceilings(home, options.repeats)
        return [
            device.timed(case, dtype, *size, home, ceilings, options.repeats, options.replay)
            for case, dtype, size in progress(work)
        ]


def main(arguments=None):
    """Run the benchmark; return the exit status."""
    options = parsed(arguments)
    if options.list:
        print(*[case.name for case in chosen(options)], sep="\n")
        return 0
    timing = not options.static and has_gpu()
    if options.tune and not timing:
        sys.exit("--tune: there is no GPU to time on")
    rows = measure(options, gpu_home() if timing else None)
    if not timing:
        print("No times: this is what the compiler says; projections are data sheets' ceilings, not measurements.\n")
    print(report.table(rows))
    if options.out:
        report.save(rows, options.out)
    if options.plot:
        report.draw(rows, options.plot)
    worse = report.regressions(rows, json.loads(Path(options.compare).read_text())) if options.compare else []
    if worse:
        print(f"\n{len(worse)} regressions", *worse, sep="\n  ")
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())

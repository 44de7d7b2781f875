"""Part of `make gpu`: programs of `tests.gpu.cases` on a card, beside NumPy, `python -m tests.gpu.card`."""

import sys

import numpy as np

import fgrad
from fgrad import tree
from fgrad.backend.gpu.program import gpu_program
from tests.gpu.cases import CASES

RUNS = 5


def differences(name, there):
    """Run a case on the device that `there` brings arrays to; return its largest difference, and what is wrong."""
    function, *args = CASES[name]()
    program = fgrad.make_ir(function)(*args).simplify()
    wanted = program.compute(*tree.leaves(args))
    compiled = gpu_program(program)
    given = [there(x) for x in tree.leaves(args)]
    runs = [fgrad.to_numpy(compiled.compute(*given)) for _ in range(RUNS)]
    wrong = [] if len({b"".join(x.tobytes() for x in run) for run in runs}) == 1 else [f"{name}: {RUNS} runs differ"]
    if not compiled.leaves_the_gpu():
        runs.append(fgrad.to_numpy(compiled.replayed(given).compute(*given)))
    worst = max(
        float(np.abs(x - want).max() / max(1, np.abs(want).max()))
        for run in runs
        for x, want in zip(run, wanted, strict=True)
    )
    return worst, wrong + ([f"{name}: {worst:.1e} off"] if not worst < 1e-3 else [])


def main(there, names=tuple(CASES)):
    """Print how far each case is from NumPy's result; return the exit status."""
    failed = []
    for name in names:
        worst, wrong = differences(name, there)
        print(f"{name:48}{worst:10.1e}", flush=True)
        failed += wrong
    print(f"\n{len(failed)} failures", *failed, sep="\n  ")
    return int(bool(failed))


if __name__ == "__main__":
    try:
        import cupy
    except ModuleNotFoundError:
        sys.exit("this needs a GPU and CuPy: pip install 'fgrad[cuda13]'")
    sys.exit(main(cupy.asarray))

"""Part of `make gpu`: programs of `tests.gpu.cases` on a card, beside NumPy, `python -m tests.gpu.card`.

The named programs and, at both widths of rows that tests compile for, those that reduce rows: right, the same bits in
every run, replayed, and tuned, with what tuning gains and the share of the card's own copy that the bytes come to.
"""

import sys

import numpy as np

import fgrad
from fgrad import tree
from fgrad.backend.gpu.program import gpu_program
from fgrad.triton_kernels import tuning
from fgrad.triton_kernels.bench.device import Ceilings
from fgrad.triton_kernels.runtime import home_of
from fgrad.triton_kernels.timing import measured
from tests.gpu.cases import CASES, norm_gelu, norm_gelu_backward
from tests.triton.gpu import remembering_nothing

RUNS = 5
WIDTHS = (1024, 16384)
ELEMENTS = 1 << 24
MOST_TUNED = 4  # kernels of a program that is tuned: each takes seconds, and the whole has some minutes


def programs(elements=ELEMENTS):
    """Return what is run, by name: functions that return a function and its arguments."""
    named = dict(CASES)
    for width in WIDTHS:
        rows = max(1, elements // width)
        named |= {
            f"softmax, {width:,} wide": lambda n=rows, m=width: (fgrad.nn.softmax, _drawn(n, m)),
            f"layer norm and GELU, {width:,} wide": lambda n=rows, m=width: (
                norm_gelu,
                *(_drawn(n, m), _drawn(m), _drawn(m)),
            ),
            f"layer norm and GELU, backward, {width:,} wide": lambda n=rows, m=width: (
                norm_gelu_backward,
                *(_drawn(n, m), _drawn(n, m), _drawn(m), _drawn(m)),
            ),
        }
    return named


def _drawn(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32)


def differences(name, case, there):
    """Run a case on the device that `there` brings arrays to.

    Returns:
        (largest difference, what is wrong, (milliseconds by the rule, tuned, bytes it moves at least)).
    """
    function, *args = case()
    program = fgrad.make_ir(function)(*args).simplify()
    wanted = program.compute(*tree.leaves(args))
    compiled = gpu_program(program)
    given = [there(x) for x in tree.leaves(args)]

    def compute():
        return fgrad.to_numpy(compiled.compute(*given))

    runs = [compute() for _ in range(RUNS)]
    wrong = [] if len({_bits(run) for run in runs}) == 1 else [f"{name}: {RUNS} runs differ"]
    if not compiled.leaves_the_gpu():
        runs.append(fgrad.to_numpy(compiled.replayed(given).compute(*given)))
    home, call = home_of(given[0]), lambda: compiled.compute(*given)
    before = measured(home, call, RUNS, lambda: home.flush(given[0])).median
    with tuning(len(compiled.sources) <= MOST_TUNED):
        tuned = [compute() for _ in range(RUNS)]
    wrong += [] if len({_bits(run) for run in tuned}) == 1 else [f"{name}: {RUNS} runs differ, tuned"]
    after = measured(home, call, RUNS, lambda: home.flush(given[0])).median
    worst = max(_off(x, want) for run in [*runs, *tuned] for x, want in zip(run, wanted, strict=True))
    least = min([x.dtype.itemsize for x in wanted if x.dtype.kind not in "biu"], default=4)
    wrong += [f"{name}: {worst:.1e} off"] if not worst < (1e-3 if least >= 4 else 3e-2) else []
    moved = sum(x.nbytes for x in [*tree.leaves(args), *wanted])
    return worst, wrong, (before, after, moved)


def _off(x, want):
    """Return the largest difference, relative to the largest value; infinity where a result is NaN."""
    x, want = x.astype(np.float64), want.astype(np.float64)
    return float(np.nan_to_num(np.abs(x - want), nan=np.inf).max() / max(1, np.abs(want).max()))


def _bits(run):
    return b"".join(x.tobytes() for x in run)


def main(there, cases=None):
    """Print how far each of the cases, `programs()` if None, is from NumPy's, and how fast; return the exit status."""
    failed = []
    copy = Ceilings(home_of(there(np.zeros(1, np.float32))), RUNS).copy
    print(f"{'':56}{'off':>10}{'rule, ms':>10}{'tuned, ms':>10}{'of copy':>9}")
    with remembering_nothing():
        for name, case in (cases or programs()).items():
            worst, wrong, (before, after, moved) = differences(name, case, there)
            print(f"{name:56}{worst:10.1e}{before:10.3f}{after:10.3f}{moved / after * 1e3 / copy:9.0%}", flush=True)
            failed += wrong
    print(f"\n{len(failed)} failures", *failed, sep="\n  ")
    return int(bool(failed))


if __name__ == "__main__":
    try:
        import cupy
    except ModuleNotFoundError:
        sys.exit("this needs a GPU and CuPy: pip install 'fgrad[cuda13]'")
    sys.exit(main(cupy.asarray))

"""`make gpu`: the battery on a card, `python -m tests.triton.gpu`.

Every kernel family with the inputs of the battery, beside the twin: the largest difference in units of the result's
last place at its largest value. Then whether twenty runs give the same bits, whether every way to launch works, how
much of the card's own copy and product every family reaches (each input read once and each output written once, the
second-level cache emptied before every run), and what tuning gains. Some minutes in all.
"""

import contextlib
import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

import fgrad
from fgrad.triton_kernels import compile_call, native, toolchain, tuning
from fgrad.triton_kernels.bench import __main__ as bench
from fgrad.triton_kernels.bench import check, device, static
from fgrad.triton_kernels.bench.cases import CASES
from fgrad.triton_kernels.compile import LIMITS
from fgrad.triton_kernels.runtime import home_of, launch
from tests.triton.families import FAMILIES

REPEATS = 20
LAYOUTS = {
    "transposed": lambda put, x: put(np.ascontiguousarray(x.T)).T,
    "sliced": lambda put, x: put(_spread(x))[_odd(x)],
    "backwards": lambda put, x: put(np.ascontiguousarray(x[::-1]))[::-1],
    "offset": lambda put, x: put(np.concatenate([np.zeros(1, x.dtype), x.ravel()]))[1:].reshape(x.shape),
}


@dataclass(frozen=True)
class Sizes:
    """How large what is timed is: arrays of twice the second-level cache of a large card, and square products."""

    rows: int = 8192
    columns: int = 8192
    square: int = 4096


# --------------------------------------------------------------------------------------------- beside the twin


def _spread(x):
    """Return a larger array that holds x at its odd positions."""
    spread = np.zeros(tuple(2 * size + 1 for size in x.shape), x.dtype)
    spread[_odd(x)] = x
    return spread


def _odd(x):
    return tuple(slice(1, 2 * size, 2) for size in x.shape)


def cases(family, dtype):
    """Yield (name, arrays, cotangent, layout of each, factor of the tolerance): the battery's inputs.

    Empty and wide arrays and other layouts in one type only: every case is compiled.
    """
    single = dtype in (np.float32, family.dtypes[0] if np.float32 not in family.dtypes else None)
    none = ((0, 7),) if family.name == "argmax" else ((0, 7), (3, 0))  # of no columns there is no largest
    for rows, columns in (*family.sizes, *((*none, (2, family.wide[-1])) if single else ())):
        arrays = family.inputs(np.random.default_rng(0), dtype, rows, columns)
        yield f"{rows}x{columns}", arrays, _cotangent(family, arrays, dtype), None, 16 if columns > 1000 else 1
    if not single:
        return
    arrays = family.inputs(np.random.default_rng(0), dtype, 5, 19)
    ct = _cotangent(family, arrays, dtype)
    for layout in LAYOUTS:
        yield layout, arrays, ct, layout, 1


def _cotangent(family, arrays, dtype):
    """Draw a cotangent as the battery does."""
    return np.random.default_rng(1).normal(size=family.forward(*arrays).shape).astype(dtype)


def results(family, ct, arrays):
    """Return the family's result and gradients."""
    return family.forward(*arrays), family.backward(ct, *arrays)


def compare(home, family, dtype):
    """Return (largest differences of result and gradients, where, number of cases, those beyond their tolerance)."""
    worst, where, count, failed = [0.0, 0.0], "", 0, []
    for name, arrays, ct, layout, factor in cases(family, dtype):
        place = LAYOUTS[layout] if layout else lambda put, x: put(x)
        here = results(family, place(lambda x: x, ct), [place(lambda x: x, x) for x in arrays])
        there = results(family, place(home.from_numpy, ct), [place(home.from_numpy, x) for x in arrays])
        off = [
            max([difference(home.to_numpy(x), y) for x, y in zip(_listed(a), _listed(b))], default=0.0)
            for a, b in zip(there, here)
        ]
        count += 1
        if max(off) > max(worst):
            where = name
        worst = [max(pair) for pair in zip(worst, off)]
        if not max(off) <= 2 * factor * family.tolerance:
            failed.append(f"{family.name}, {np.dtype(dtype).name}, {name}: {max(off):.3g} units off")
    return worst, where, count, failed


def _listed(x):
    return list(x) if isinstance(x, (tuple, list)) else [x]


def difference(result, expected):
    """Return the largest difference in units of the last place at the largest value; NaN and inf must agree."""
    if not expected.size:
        return 0.0
    wide, result = expected.astype(np.float64), result.astype(np.float64)
    finite = np.isfinite(wide)
    if not (np.isfinite(result[finite]).all() and np.array_equal(wide[~finite], result[~finite], equal_nan=True)):
        return np.inf
    if expected.dtype.kind in "iub":
        return 0.0 if np.array_equal(wide, result) else np.inf
    unit = float(ml_dtypes.finfo(expected.dtype).eps) * max(np.abs(wide[finite]).max(initial=0), 1e-30)
    return float(np.abs(result[finite] - wide[finite]).max(initial=0) / unit)


def warm(families, target, processes, sizes):
    """Compile for a target what will be launched, in several processes, into the cache they share."""
    if target not in LIMITS or not processes:
        return
    jobs = [(_compile, family.name, number, target) for family in families for number in range(len(family.dtypes))]
    jobs += [(_compile_case, *job, target) for job in _shapes(families, sizes)]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(*job) for job in jobs]:
            done.result()


def _compile(name, number, target):
    family = next(family for family in FAMILIES if family.name == name)
    for _, arrays, ct, layout, _ in cases(family, family.dtypes[number]):
        place = LAYOUTS[layout] if layout else lambda put, x: put(x)
        moved = [place(lambda x: x, x) for x in (ct, *arrays)]
        compile_call(results, family, moved[0], moved[1:], targets=[target])


def _shapes(families, sizes):
    """Yield what is compiled of the cases that are timed: their own columns, few rows, and what is checked first."""
    for case, dtype, rows, columns in timed_cases(families, sizes):
        yield case.name, dtype.name, min(rows, 256), columns
        yield case.name, dtype.name, check.ROWS, check.COLUMNS


def _compile_case(name, dtype, rows, columns, target):
    case = next(case for case in CASES if case.name == name)
    static.measured(case, bench.dtype_of(dtype), rows, columns, [target])


def agreement(home, families):
    """Print the largest differences from the twin; return what is beyond its tolerance."""
    print(f"{'family':34}{'type':10}{'cases':>6}{'forward':>10}{'gradient':>10}  worst   (units in the last place)")
    failed = []
    for family in families:
        for dtype in family.dtypes:
            (forward, gradient), where, count, beyond = compare(home, family, dtype)
            kind = np.dtype(dtype).name
            print(f"{family.name:34}{kind:10}{count:6}{forward:10.3g}{gradient:10.3g}  {where}", flush=True)
            failed += beyond
    return failed


def determinism(home, families):
    """Run every family twenty times; return those whose bits change."""
    failed = []
    for family in families:
        arrays = family.inputs(np.random.default_rng(0), family.dtypes[-1], 300, 130)
        ct = home.from_numpy(_cotangent(family, arrays, family.dtypes[-1]))
        there = [home.from_numpy(x) for x in arrays]
        runs = {_bits(home, results(family, ct, there)) for _ in range(REPEATS)}
        if len(runs) > 1:
            failed.append(f"{family.name}: {len(runs)} different results in {REPEATS} runs")
    print(f"\n{REPEATS} runs with equal bits: {len(families) - len(failed)} of {len(families)} families")
    return failed


def _bits(home, outcome):
    return b"".join(home.to_numpy(x).tobytes() for part in outcome for x in _listed(part))


# ---------------------------------------------------------------------------------------------- ways to launch


@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 512}, num_warps=8)], key=["n"])
@triton.jit
def accumulate(x, out, n, BLOCK: tl.constexpr):
    """Add x to out."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(out + at, mask=mask, other=0.0) + tl.load(x + at, mask=mask, other=0.0), mask=mask)


@triton.jit
def described(x, out, rows, columns, BLOCK: tl.constexpr):
    """Copy a block through a tensor descriptor made on the device."""
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + at, source.load([0, 0]))


def _programs(named):
    return (triton.cdiv(named["n"], named["BLOCK"]),)


def launched_by_tuner(home, x, out):
    """Tune an accumulating kernel through `launch`: out becomes x."""
    launch(accumulate, _programs, x, out, 1000)


def launched_with_descriptor(home, x, out):
    """Copy through a descriptor, which needs scratch memory."""
    launch(described, 1, x, out, 16, 16, BLOCK=16)


def launched_by_triton(home, x, out):
    """Launch with Triton's own launcher."""
    native.activate(x)
    accumulate.fn[(8,)](native.Argument(x), native.Argument(out), 1000, BLOCK=128)


def launched_as_operation(home, x, out):
    """Launch through `triton_call`, under `vmap`, with the batch in the grid."""

    def doubled(row):
        return fgrad.triton_call(
            accumulate.fn, row, out_shape=row, grid=1, zeroed_outputs=(0,), batch="grid", n=100, BLOCK=128
        )

    out[...] = fgrad.vmap(doubled)(x.reshape(10, 100)).reshape(1000)


WAYS = (launched_by_tuner, launched_with_descriptor, launched_by_triton, launched_as_operation)


def launching_ways(home, ways):
    """Launch in every way there is; return those that do not give the same."""
    failed = []
    for way in ways:
        size = 256 if way is launched_with_descriptor else 1000
        x = np.random.default_rng(0).normal(size=size).astype(np.float32)
        out = home.from_numpy(np.zeros(size, np.float32))
        way(home, home.from_numpy(x), out)
        if not np.array_equal(home.to_numpy(out), x):
            failed.append(f"{way.__name__}: {way.__doc__} It did not")
    print(f"ways to launch that work: {len(ways) - len(failed)} of {len(ways)}")
    return failed


# ---------------------------------------------------------------------------------------------------- the roofline


def timed_cases(families, sizes):
    """Return what is timed of families: (case of the benchmark, narrowest type, rows, columns)."""
    narrowest = {family.name: np.dtype(family.dtypes[-1]) for family in families}
    found = [(case, narrowest.get(case.name.removesuffix(", gradient"))) for case in CASES]
    return [
        (case, dtype, *((sizes.square, sizes.square) if case.products else (sizes.rows, sizes.columns)))
        for case, dtype in found
        if dtype is not None
    ]


def roofline(home, families, sizes):
    """Print how fast everything is, and which share of the card's own copy or product that is; return what fails."""
    ceilings, failed = device.Ceilings(home, REPEATS), []
    product = ceilings.product(np.dtype(np.float16))
    print(f"\nthe card's own copy {ceilings.copy / 1e9:.0f} GB/s, its own product {product / 1e12:.1f} TFLOP/s")
    print(f"{'':44}{'ms':>9}{'20 %':>9}{'80 %':>9}{'GB/s':>9}{'TFLOP/s':>9}{'share':>8}")
    for case, dtype, rows, columns in timed_cases(families, sizes):
        try:
            row = device.timed(case, dtype, rows, columns, home, ceilings, REPEATS)
        except (AssertionError, ValueError, RuntimeError, MemoryError) as error:
            failed.append(f"{case.name}: {error}")
            continue
        times = f"{row['ms']:9.3f}{row['ms 20%']:9.3f}{row['ms 80%']:9.3f}"
        share = row.get("of product", row["of copy"])
        print(f"{case.name:44}{times}{row['GB/s']:9.0f}{row['TFLOP/s']:9.1f}{share:8.0%}", flush=True)
    return failed


TUNED = ("softmax", "layer_norm, gradient", "matmul", "attention")


def tuned(home, families, sizes):
    """Tune some cases, and print what that gained; return those that tuning broke."""
    ceilings, failed = device.Ceilings(home, REPEATS), []
    print(f"\n{'tuned':44}{'ms':>9}{'rule, ms':>9}")
    with remembering_nothing() as folder:
        for case, *what in timed_cases(families, sizes):
            if case.name not in TUNED:
                continue
            try:
                before = device.timed(case, *what, home, ceilings, REPEATS)["ms"]
                with tuning():
                    after = device.timed(case, *what, home, ceilings, REPEATS)["ms"]
            except (AssertionError, ValueError, RuntimeError, MemoryError) as error:
                failed.append(f"{case.name}, tuned: {error}")
                continue
            print(f"{case.name:44}{after:9.3f}{before:9.3f}", flush=True)
        if not any(Path(folder).glob("*.json")):
            failed.append("tuning: nothing was remembered")
    return failed


@contextlib.contextmanager
def remembering_nothing():
    """Let choices be kept in an empty folder for a while, which is given, so that every run tunes."""
    before = os.environ.get("FGRAD_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FGRAD_CACHE_DIR"] = folder
        try:
            yield folder
        finally:
            os.environ.pop("FGRAD_CACHE_DIR")
            if before is not None:
                os.environ["FGRAD_CACHE_DIR"] = before


# ---------------------------------------------------------------------------------------------------------- all of it


def main(from_numpy, card, families=FAMILIES, sizes=None, ways=WAYS, processes=0):
    """Run everything on the home of the arrays that `from_numpy` makes; return the exit status."""
    home = home_of(from_numpy(np.zeros(1, np.float32)))
    target = home.driver.target(home.current_device())
    print(f"{card}, {target}, Triton {toolchain.version}, NumPy {np.__version__}\n", flush=True)
    sizes = sizes or Sizes()
    warm(families, target, processes, sizes)
    failed = [*agreement(home, families), *determinism(home, families), *launching_ways(home, ways)]
    failed += [*roofline(home, families, sizes), *tuned(home, families, sizes)]
    print(f"\n{len(failed)} failures", *failed, sep="\n  ")
    return int(bool(failed))


if __name__ == "__main__":
    try:
        import cupy
    except ModuleNotFoundError:
        sys.exit("this needs a GPU and CuPy: pip install 'fgrad[cuda13]'")
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    sys.exit(main(cupy.asarray, f"{name}, CuPy {cupy.__version__}", processes=os.cpu_count()))

"""`make gpu`: the battery on a card, `python -m tests.triton.gpu`.

Every kernel family with the inputs of the battery, beside the twin: the largest difference in units of the result's
last place at its largest value. Then whether twenty runs give the same bits, whether every way to launch works, and how
much of the card's own copy and product each family reaches: each input read once and each output written once, the
second-level cache emptied before every run.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

import fgrad
from fgrad.triton_kernels import attention, compile_call, matmul, native, toolchain
from fgrad.triton_kernels.compile import LIMITS
from fgrad.triton_kernels.runtime import home_of, launch
from fgrad.triton_kernels.timing import benchmark
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
    """How large what is timed is; every array exceeds four times the second-level cache of a large card."""

    rows: int = 16_384
    columns: int = 8192
    square: int = 4096
    sequence: int = 4096
    flush: int = 256 << 20


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
    for rows, columns in (*family.sizes, *(((0, 7), (3, 0), (2, family.wide[-1])) if single else ())):
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
    if not np.array_equal(wide[~finite], result[~finite], equal_nan=True):
        return np.inf
    unit = float(ml_dtypes.finfo(expected.dtype).eps) * max(np.abs(wide[finite]).max(initial=0), 1e-30)
    return float(np.abs(result[finite] - wide[finite]).max(initial=0) / unit)


def warm(families, target, processes):
    """Compile for a target what `agreement` will launch, in several processes, into the cache they share."""
    if target not in LIMITS or not processes:
        return
    jobs = [(family.name, number, target) for family in families for number in range(len(family.dtypes))]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_compile, jobs))


def _compile(job):
    name, number, target = job
    family = next(family for family in FAMILIES if family.name == name)
    for _, arrays, ct, layout, _ in cases(family, family.dtypes[number]):
        place = LAYOUTS[layout] if layout else lambda put, x: put(x)
        moved = [place(lambda x: x, x) for x in (ct, *arrays)]
        compile_call(results, family, moved[0], moved[1:], targets=[target])


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


@dataclass(frozen=True)
class Timed:
    """A call to be timed, and the bytes it must move and the operations it must do."""

    name: str
    call: Callable
    nbytes: float = 0
    flops: float = 0


def timed_families(home, families, sizes):
    """Yield what is timed of each family: its two passes, in its narrowest type."""
    for family in families:
        if family.name in ("matmul", "linear") or family.name.startswith("attention"):
            continue  # not bound by memory; timed apart
        arrays = family.inputs(np.random.default_rng(0), family.dtypes[-1], sizes.rows, sizes.columns)
        there = [home.from_numpy(x) for x in arrays]
        result = family.forward(*there)
        read = sum(x.nbytes for x in arrays)
        written = sum(arrays[at].nbytes for at in family.differentiable)
        yield Timed(family.name, lambda f=family, a=there: f.forward(*a), read + result.nbytes)
        if written:
            yield Timed(
                f"{family.name}, gradient",
                lambda f=family, a=there, r=result: f.backward(r, *a),
                read + result.nbytes + written,
            )


def timed_products(home, sizes):
    """Yield products and attention, by the operations they do."""

    def drawn(*shape):
        return home.from_numpy(np.random.default_rng(0).normal(size=shape).astype(np.float16))

    n, length, width = sizes.square, sizes.sequence, 128
    x, y = drawn(n, n), drawn(n, n)
    yield Timed("the card's own product", lambda: x @ y, flops=2 * n**3)
    yield Timed("matmul", lambda: matmul.matmul_forward(x, y), flops=2 * n**3)
    q, k, v = (drawn(1, 16, length, width) for _ in range(3))
    out, lse = attention.attention_forward(q, k, v)
    work = 4 * 16 * length**2 * width
    yield Timed("attention", lambda: attention.attention_forward(q, k, v), flops=work)
    yield Timed("attention, gradient", lambda: attention.attention_backward(out, q, k, v, out, lse), flops=2.5 * work)


def roofline(home, families, sizes):
    """Print how fast everything is, and which share of the card's own copy or product that is."""
    block = home.from_numpy(np.ones((sizes.rows, sizes.columns), np.float32))
    copy = Timed("the card's own copy", block.copy, 2 * block.nbytes)
    print(f"\n{'':44}{'ms':>9}{'20 %':>9}{'80 %':>9}{'GB/s':>9}{'TFLOP/s':>9}{'share':>8}")
    for table in ((copy, *timed_families(home, families, sizes)), timed_products(home, sizes)):
        ceiling = None  # the first of each table is what the others are held against
        for timed in table:
            timing = benchmark(
                lambda anchor, call=timed.call: call(), block, repeats=REPEATS, flushed_bytes=sizes.flush
            )
            rate = timing.rate(timed.nbytes / 1e9 or timed.flops / 1e12)
            ceiling = ceiling or rate
            figures = f"{rate:9.0f}{'':9}" if timed.nbytes else f"{'':9}{rate:9.1f}"
            times = f"{timing.median:9.3f}{timing.low:9.3f}{timing.high:9.3f}"
            print(f"{timed.name:44}{times}{figures}{rate / ceiling:8.0%}", flush=True)


# ---------------------------------------------------------------------------------------------------------- all of it


def main(from_numpy, card, families=FAMILIES, sizes=None, ways=WAYS, processes=0):
    """Run everything on the home of the arrays that `from_numpy` makes; return the exit status."""
    home = home_of(from_numpy(np.zeros(1, np.float32)))
    target = home.driver.target(home.current_device())
    print(f"{card}, {target}, Triton {toolchain.version}, NumPy {np.__version__}\n", flush=True)
    warm(families, target, processes)
    failed = [*agreement(home, families), *determinism(home, families), *launching_ways(home, ways)]
    roofline(home, families, sizes or Sizes())
    print(f"\n{len(failed)} failures", *failed, sep="\n  ")
    return int(bool(failed))


if __name__ == "__main__":
    try:
        import cupy
    except ModuleNotFoundError:
        sys.exit("this needs a GPU and CuPy: pip install 'fgrad[cuda13]'")
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    sys.exit(main(cupy.asarray, f"{name}, CuPy {cupy.__version__}", processes=os.cpu_count()))

"""What no peer has, and how it grows: sparse Hessians by colors, and reverse mode through a bounded `while_loop`.

`python -m benchmarks.sparse` prints the table and draws `out/sparse.png`. jax stands beside it with what comes nearest:
Hessians of which the user knows pattern and colors, dense Hessians, and a scan of as many steps.
"""

import argparse
import pathlib
import tracemalloc

import numpy as np
from rich.console import Console

import fgrad
from benchmarks import report
from benchmarks.measure import FULL, interleaved
from benchmarks.scaling import Curve, Scale

EFFORT = FULL._replace(row=4.0, least=3)


def rosenbrock(np):
    """Return Rosenbrock's function in the names of a module; its Hessian has three diagonals."""
    return lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def _peers():
    """Return jax with 64-bit types, or None if it is not installed."""
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    return jax


def _waiting(run):
    """Return a call that waits until jax is done."""
    return lambda: run().block_until_ready()


def sparse_hessians(n):
    """Return what is measured of a Hessian of n by n entries with three diagonals."""
    fun, x = rosenbrock(np), np.linspace(-1, 1, n)
    hessian = fgrad.sparse_hessian(fun)
    hessian(x)
    runs = {
        "fgrad: pattern and colors": lambda: fgrad.sparse_hessian(fun).prepare(x),
        "fgrad: a Hessian": lambda: hessian(x),
    }
    jax = _peers()
    if jax is not None:
        seeds = jax.numpy.asarray(np.arange(n) % 3 == np.arange(3)[:, None], float)
        by_jax = rosenbrock(jax.numpy)

        @jax.jit
        def products(x):  # three diagonals lie in three products; SciPy's array is not made
            product = lambda t: jax.jvp(jax.grad(by_jax), (x,), (t,))[1]  # noqa: E731
            return jax.vmap(product)(seeds)

        runs["jax: colors given"] = _waiting(lambda: products(x))
    return runs


def dense_hessians(n):
    """Return what is measured of a small Hessian, the dense ones beside the sparse one."""
    fun, x = rosenbrock(np), np.linspace(-1, 1, n)
    sparse, dense = fgrad.sparse_hessian(fun), fgrad.jit(fgrad.hessian(fun))
    runs = {"fgrad: sparse": lambda: sparse(x), "fgrad: dense": lambda: dense(x)}
    jax = _peers()
    if jax is not None:
        by_jax = jax.jit(jax.hessian(rosenbrock(jax.numpy)))
        runs["jax: dense"] = _waiting(lambda: by_jax(x))
    return runs


def loops(n):
    """Return what is measured of a gradient through n steps of a state of 1,000 numbers."""
    x = np.linspace(0, 1, 1000)

    def step(np):
        return lambda x: x + 0.01 * np.sin(x * x)

    def bounded(x):
        done = lambda state: state[0] < n  # noqa: E731
        advance = lambda state: (state[0] + 1, step(np)(state[1]))  # noqa: E731
        return fgrad.lax.while_loop(done, advance, (0, x), max_steps=n)[1].sum()

    def scanned(m, np):
        return lambda x: m.lax.scan(lambda x, _: (step(np)(x), None), x, None, length=n)[0].sum()

    gradients = [fgrad.jit(fgrad.grad(f)) for f in (bounded, scanned(fgrad, np))]
    runs = {"fgrad: while_loop": lambda: gradients[0](x), "fgrad: scan": lambda: gradients[1](x)}
    jax = _peers()
    if jax is not None:
        by_jax = jax.jit(jax.grad(scanned(jax, jax.numpy)))
        runs["jax: scan"] = _waiting(lambda: by_jax(x))
    return runs


SCALES = [
    (Scale("Hessian with three diagonals", "n", sparse_hessians, (1_000, 10_000, 100_000, 1_000_000), ()), True),
    (Scale("The same, dense beside it", "n", dense_hessians, (100, 300, 1_000, 3_000), ()), False),
    (Scale("Gradient through a loop", "steps", loops, (64, 256, 1_024, 4_096), ()), True),
]
"""Scales, and whether peaks of memory are worth a curve."""


def peak(run):
    """Return the most bytes that Python and NumPy come to hold during a call."""
    tracemalloc.start()
    run()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most - before


def curves(effort=EFFORT, scales=SCALES):
    """Return a curve for each of the scales."""
    found = []
    for scale, with_memory in scales:
        seconds, nbytes = {}, {}
        for size in scale.sizes:
            runs = scale.make(size)
            for name, times in interleaved(runs, effort).items():
                seconds.setdefault(name, []).append(float(np.median(times)))
            for name, run in runs.items():
                if with_memory and name.startswith("fgrad"):
                    nbytes.setdefault(name, []).append(peak(run))
        found.append(Curve(scale, seconds, nbytes))
    return found


def main():
    """Measure, print the table and draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"), help="folder for the plot")
    options = parser.parse_args()
    print("\n".join(report.conditions()), end="\n\n")
    found = curves()
    sheet = report.scaling_sheet(found)
    print(report.as_markdown(sheet)) if options.markdown else Console(width=140).print(report.as_rich(sheet))
    path = options.out / "sparse.png"
    report.plot([], found, path)
    print(f"plot: {path}")


if __name__ == "__main__":
    main()

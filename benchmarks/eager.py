"""What an eager gradient costs: `grad` of a chain of 20 operations on 8 elements, in microseconds an operation.

Rounds of all libraries are interleaved and ratios are taken within a round, so that a busy machine slows all alike.
A library that is not installed is left out.
"""

import argparse
import importlib
import statistics
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

import fgrad
import fgrad.numpy as fnp

OPERATIONS = 20
CALLS = 10  # of each library in a round


def chain(m):
    """Return a function of 20 operations, written in the names of module `m`, and a sum."""

    def f(x):
        for _ in range(OPERATIONS // 2):
            x = m.sin(x) * 1.1
        return m.sum(x)

    return f


def gradients():
    """Return the gradient of the chain in every library that is installed, by name."""
    found = {"fgrad": fgrad.grad(chain(fnp)), "fgrad, through numpy's names": fgrad.grad(chain(np))}
    try:
        autograd = importlib.import_module("autograd")
    except ImportError:
        return found
    return {**found, "HIPS autograd": autograd.grad(chain(importlib.import_module("autograd.numpy")))}


def measure(functions, x, rounds):
    """Return the seconds a call took in each round, by name."""
    seconds = {name: [] for name in functions}
    for f in functions.values():
        f(x)
    for _ in tqdm(range(rounds), unit="round", leave=False):
        for name, f in functions.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                f(x)
            seconds[name].append((time.perf_counter() - start) / CALLS)
    return seconds


def main():
    """Measure, as the command line says, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    x = np.linspace(0.1, 0.8, 8)
    functions = gradients()
    values = [f(x) for f in functions.values()]
    for value in values:
        np.testing.assert_allclose(value, values[0], rtol=1e-12)
    seconds = measure(functions, x, rounds)
    first = seconds["fgrad"]
    table = Table(title=f"grad of {OPERATIONS} operations on {x.size} elements, forward and backward")
    for heading in ("library", "µs an operation", "time against fgrad"):
        table.add_column(heading, justify="left" if heading == "library" else "right")
    for name, found in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(found, first, strict=True))
        table.add_row(name, f"{statistics.median(found) / OPERATIONS * 1e6:.2f}", f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()

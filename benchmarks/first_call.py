"""What the first call of a jitted function costs: recording and compiling, in a process that has done so before."""

import statistics
import sys

from benchmarks.measure import seconds_of


def first_calls(libraries, workloads, rounds):
    """Return the median seconds of first calls, by key of workload and library; each round jits anew."""
    found = {w.key: {name: [] for name in libraries} for w in workloads}
    for _ in range(rounds):
        for w in workloads:
            for name, library in libraries.items():
                if "jax" in sys.modules:
                    sys.modules["jax"].clear_caches()
                found[w.key][name].append(seconds_of(library.prepare(w)))
    return {key: {name: statistics.median(s) for name, s in row.items()} for key, row in found.items()}

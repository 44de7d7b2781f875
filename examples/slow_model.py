"""A model that is slow for no good reason: the profiler says where, and the repair is two lines.

The gravity of many bodies, summed in a Python loop, then at once, then compiled. Draws a flame graph of each.
"""

import time

import numpy as np
import plots

import fgrad

BODIES = 300


def energy_by_loop(x, masses):
    """Return the potential energy, body by body."""
    total = 0.0
    for i in range(1, BODIES):
        with fgrad.record_function("one body"):
            distance = np.sqrt(((x[:i] - x[i]) ** 2).sum(axis=1))
            total = total - (masses[i] * masses[:i] / distance).sum()
    return total


def energy_at_once(x, masses):
    """Return the same from one array of all distances."""
    first, second = np.triu_indices(BODIES, 1)
    distance = np.sqrt(((x[first] - x[second]) ** 2).sum(axis=1))
    return -(masses[first] * masses[second] / distance).sum()


def seconds(function, *args, rounds=5):
    """Return the best time of some calls."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - start)
    return min(times)


def main(out):
    """Profile the slow one, print where its time goes, and compare."""
    rng = np.random.default_rng(0)
    x, masses = rng.normal(size=(BODIES, 3)), rng.uniform(1, 2, BODIES)
    ways = {
        "a loop": fgrad.grad(energy_by_loop),
        "at once": fgrad.grad(energy_at_once),
        "at once, compiled": fgrad.jit(fgrad.grad(energy_at_once)),
    }
    with fgrad.profile() as prof:
        forces = ways["a loop"](x, masses)
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=6))
    prof.flamegraph(out / "slow_model.svg")
    print(f"flame graph: {out / 'slow_model.svg'}")

    print("forces by            time    operations")
    rows = {}
    for name, way in ways.items():
        assert np.allclose(way(x, masses), forces)
        with fgrad.profile() as prof:
            way(x, masses)
        rows[name] = seconds(way, x, masses), len(prof.function_events)
        print(f"{name:18s} {1000 * rows[name][0]:6.2f} ms   {rows[name][1]:8,d}")
    return rows


if __name__ == "__main__":
    plots.run(main, __doc__)

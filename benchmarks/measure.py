"""Taking times on a busy machine: all libraries in turn, round after round, and ratios within a round.

What slows one library down slows the others of the same round alike, so the median of paired ratios holds where
absolute times do not.
"""

import gc
import statistics
import time
from typing import NamedTuple


class Effort(NamedTuple):
    """How long to measure: seconds of one sample, seconds of a row, and the fewest and most rounds.

    Before each sample the threads of other libraries get `pause` seconds to fall asleep: those of OpenBLAS and OpenMP
    wait for more work in loops, and took up to ten times the time of what ran beside them. Then the library runs for
    `warm` seconds untimed, for its own threads and the cores are asleep by now as well.
    """

    sample: float
    row: float
    least: int
    most: int
    pause: float
    warm: float


FULL = Effort(sample=10e-3, row=20.0, least=5, most=30, pause=0.05, warm=0.05)
QUICK = Effort(sample=2e-3, row=1.0, least=3, most=15, pause=0.03, warm=0.02)


def seconds_of(run, calls=1):
    """Return the seconds that a call takes, on average over calls in a row."""
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def calls_for(run, effort):
    """Return how many calls make up a sample; they also warm everything up."""
    calls = 1
    while (taken := seconds_of(run, calls) * calls) < effort.sample:
        calls = max(2 * calls, int(calls * effort.sample / max(taken, 1e-9)))
    return calls


def settle(run, effort):
    """Let the threads of others fall asleep, then run for a while untimed, at least once."""
    time.sleep(effort.pause)
    end = time.perf_counter() + effort.warm
    run()
    while time.perf_counter() < end:
        run()


def interleaved(runs, effort):
    """Return the seconds a call took in each round, by name; each round starts with another library."""
    calls = {name: calls_for(run, effort) for name, run in runs.items()}
    seconds = {name: [] for name in runs}
    order = list(runs)
    gc.collect()
    gc.freeze()  # what the libraries brought along is not walked while one of them makes garbage
    start = time.perf_counter()
    rounds = 0
    while rounds < effort.least or (rounds < effort.most and time.perf_counter() - start < effort.row):
        for name in order:
            settle(runs[name], effort)
            seconds[name].append(seconds_of(runs[name], calls[name]))
        order.append(order.pop(0))
        rounds += 1
    gc.unfreeze()
    return seconds


def ratio(ours, theirs):
    """Return the median over rounds of our time divided by theirs."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))

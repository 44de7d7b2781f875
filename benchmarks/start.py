"""W13: from the start of a process to the first gradient; and what a process needs in memory for W12.

The parent starts `python -c` with one of the functions `child…` below, which print one line of JSON. They import
nothing before NumPy and the library that would count.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BARE = "NumPy alone"


def child(name, started):
    """Print the seconds since `started` after NumPy, after the import of a library, and after the gradient of W3."""
    import numpy as np

    times = [time.monotonic() - started, None, None]
    features = np.frombuffer(sys.stdin.buffer.read(569 * 30 * 8)).reshape(569, 30)
    signs = np.frombuffer(sys.stdin.buffer.read())
    from benchmarks.libraries import LIBRARIES
    from benchmarks.workloads import logistic

    if name != BARE:
        prepared = time.monotonic()
        library = LIBRARIES[name]()
        imported = time.monotonic()
        run = library.prepare(logistic()._replace(arguments=lambda: (np.full(30, 0.1), features, signs)))
        run()
        times[1:] = imported - prepared, time.monotonic() - imported
    print(json.dumps([*times, time.monotonic() - started]))


def child_memory(name, operations):
    """Print the bytes by which the most memory in use grows in a forward and backward pass of the chain."""
    from benchmarks.libraries import LIBRARIES
    from benchmarks.workloads import chain

    library = LIBRARIES[name]()
    library.prepare(chain(10))()
    run = library.prepare(chain(operations))
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _status("VmRSS")
    run()
    print(json.dumps(_status("VmHWM") - before))


def _status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(field + ":")))


def _run(call, data=b""):
    command = [sys.executable, "-c", f"from benchmarks.start import *; {call}"]
    env = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, cwd=ROOT, env=env, input=data, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def starts(names, rounds):
    """Return the medians of (NumPy imported, library imported, first gradient, in all), by library, and of NumPy."""
    from benchmarks.workloads import logistic

    _, features, signs = logistic().arguments()
    data = features.tobytes() + signs.tobytes()
    found = {name: [] for name in (BARE, *names)}
    for k in range(rounds + 1):
        for name in found:
            times = _run(f"child({name!r}, {time.monotonic()!r})", data)
            if k:  # the first round writes bytecode, as installing does
                found[name].append(times)
    return {name: [_median(column) for column in zip(*rows, strict=True)] for name, rows in found.items()}


def _median(values):
    return None if None in values else statistics.median(values)


def memory(names, operations=100_000):
    """Return the bytes that the chain of W12 needs, by library; nothing where the system does not say."""
    if not Path("/proc/self/clear_refs").exists():
        return {}
    return {name: _run(f"child_memory({name!r}, {operations})") for name in names}

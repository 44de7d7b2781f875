"""Picks the fastest configuration of a `@triton.autotune` kernel.

Each is timed on copies of the launch's arrays, so that kernels that accumulate or work in place may be tuned as they
are: the first call does what later calls do. What is found is kept on disk.
"""

import threading
from dataclasses import replace

from . import toolchain
from .runtime import Launch
from .signature import array_of
from .store import remembered

_REPEATS = 20


class Tuner:
    """Replaces tuned kernels by their fastest configuration.

    Args:
        execute: runs a launch.
        elapsed: the milliseconds that a call takes.
        place: what launches run on, such as "sm_90"; results are kept for each.
    """

    def __init__(self, execute, elapsed, place):
        self.execute = execute
        self.elapsed = elapsed
        self.place = place
        self.chosen = {}
        self.lock = threading.Lock()

    def resolve(self, launch):
        """Return a launch of the kernel under all tuners and heuristics, with the options they add.

        Raises:
            NotImplementedError: a configuration has a hook of its own.
            ValueError: no configuration runs.
        """

        def choose(tuner, named):
            return self._choose(tuner, named, launch)

        kernel, meta = toolchain.untuned(launch.kernel, launch.args, launch.meta, choose)
        return Launch(kernel, launch.grid, launch.args, meta)

    def _choose(self, tuner, named, launch):
        """Return the fastest configuration for the values that the tuner's key names, and the arrays' types."""
        kinds = tuple(str(value.dtype) for value in named.values() if hasattr(value, "dtype"))
        key = id(tuner), tuple(named.get(name) for name in tuner.keys), kinds
        with self.lock:
            if key not in self.chosen:
                configs = toolchain.configurations(tuner, named)
                inner = replace(launch, kernel=tuner.fn)
                known = f"{toolchain.source_key(tuner)}-{self.place}-{configs}-{key[1:]}"
                best = 0 if len(configs) == 1 else remembered(known, lambda: self._fastest(inner, configs))
                self.chosen[key] = tuner, configs[best]  # the tuner is kept, so that no other takes its identity
            return self.chosen[key][1]

    def _fastest(self, launch, configs):
        scratch = replace(launch, args=tuple([_copied(value) for value in launch.args]))
        failures, times = [], []
        for config in configs:
            trial = replace(scratch, meta={**config, **launch.meta})
            try:
                self.execute(trial)  # compiles
            except (ValueError, RuntimeError) as error:
                failures.append(f"{config}: {error}")
                times.append(float("inf"))
                continue
            runs = sorted(self.elapsed(lambda trial=trial: self.execute(trial)) for _ in range(_REPEATS))
            times.append(runs[_REPEATS // 2])
        if len(failures) == len(configs):
            raise ValueError("no configuration of the kernel runs:\n" + "\n".join(failures))
        return min(range(len(configs)), key=times.__getitem__)


def _copied(value):
    if isinstance(value, tuple):
        return tuple(map(_copied, value))
    return array_of(value).copy() if hasattr(value, "dtype") else value

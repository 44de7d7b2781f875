"""Picks the fastest configuration of a kernel: its block sizes, warps and stages.

Kernels under `@triton.autotune` are tuned at their first launch for a key. Kernels of this library, and generated ones,
follow a rule, and are tuned where somebody asks for it (`tuning`); what was found is used from then on, by whoever
launches them. Each configuration is timed on copies of the launch's arrays, so that kernels that accumulate or work in
place may be tuned as they are: the first call does what later calls do. What is found is kept on disk.
"""

import contextlib
import threading
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from . import toolchain
from .runtime import _HOMES, Launch, _executor, launch
from .signature import array_of
from .store import recalled, remembered
from .timing import measured

REPEATS = 20

_tuning = ContextVar("tuning", default=False)


@contextlib.contextmanager
def tuning(on=True):
    """Tune, within the block and in this thread, every kernel that is launched on a GPU and was not tuned before.

    The first launch of a kernel for types, and sizes up to the next powers of two, takes seconds: configurations are
    compiled and timed. On NumPy arrays nothing is timed, and nothing changes.

    >>> import numpy as np
    >>> from fgrad.triton_kernels import softmax, tuning
    >>> with tuning():
    ...     softmax.softmax_forward(np.zeros((1, 2), np.float32))
    array([[0.5, 0.5]], dtype=float32)
    """
    token = _tuning.set(on)
    try:
        yield
    finally:
        _tuning.reset(token)


def launch_fastest(kernel, grid, *args, configs, sizes, name=None, **meta):
    """Launch a kernel in the way that was found fastest on its card, else by the rule; see `runtime.launch`.

    Args:
        kernel, grid, *args, **meta: a launch but for what a configuration adds; a grid that depends on that is a
            function of it.
        configs: a function that returns the configurations, dicts of arguments and compile options; the first is the
            rule. They may change a result by rounding alone, and are equal for sizes between the same powers of two.
        sizes: how much work it is: rows and columns, or what decides which configuration is best.
        name: what names the kernel on disk: a hash of what it does. That of its source if None.
    """
    tuner = tuner_of(args)
    if tuner is None or 0 in sizes:
        config = configs()[0]
    else:
        config = tuner.pick(Launch(kernel, grid, args, meta), configs, sizes, name).config
    launch(kernel, grid(config) if callable(grid) else grid, *args, **{**config, **meta})


def tuner_of(args):
    """Return the tuner of the card that arguments lie on; None on the host, and where launches are only looked at."""
    first = next((x for x in args if type(x) in _HOMES), None)
    home = _HOMES.get(type(first))
    if first is None or _executor.get() or not hasattr(home, "tuner"):
        return None
    return home.tuner(home.device(first))


def is_final(choice):
    """Say whether a choice stands: it was timed, or nothing is tuned now."""
    return choice.timed or not _tuning.get()


class Choice(NamedTuple):
    """A configuration, whether it was timed, and the kernel, kept so that no other takes its identity."""

    config: dict
    timed: bool
    kernel: Any


class Tuner:
    """Finds the fastest configurations for one card.

    Args:
        execute: runs a launch.
        elapsed: the milliseconds that a call takes.
        place: what launches run on, such as "sm_90"; results are kept for each.
        copied: returns a copy of an array that has its strides; see `strided_copy`.
        flush: empties the caches of the device that an array lies on.
    """

    def __init__(self, execute, elapsed, place, copied=None, flush=lambda array: None):
        self.execute = execute
        self.elapsed = elapsed
        self.place = place
        self.copied = copied or (lambda array: strided_copy(np, array))
        self.flush = flush
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
                known = f"{toolchain.source_key(tuner)}-{self._where()}-{configs}-{key[1:]}"
                best = 0 if len(configs) == 1 else self._remembered(known, inner, configs)
                self.chosen[key] = Choice(configs[best], True, tuner)
            return self.chosen[key].config

    def pick(self, launch, configs, sizes, name=None):
        """Return the choice for a launch: the fastest known, timed now if `tuning` is on; else the first.

        Args: as `launch_fastest` has them.
        """
        classes = tuple([(size - 1).bit_length() for size in sizes])
        kinds = tuple([x.dtype if hasattr(x, "dtype") else x is None for x in launch.args])
        key = name or id(launch.kernel), classes, kinds, tuple(launch.meta.items())
        found = self.chosen.get(key)
        if found is None or not is_final(found):
            with self.lock:
                found = self.chosen.get(key)
                if found is None or not is_final(found):
                    found = self.chosen[key] = self._picked(launch, configs(), classes, [str(x) for x in kinds], name)
        return found

    def _picked(self, launch, configs, classes, kinds, name):
        name = name or toolchain.source_key(launch.kernel)
        known = f"{name}-{self._where()}-{configs}-{classes}-{kinds}-{sorted(map(repr, launch.meta.items()))}"
        if len(configs) == 1:
            best = 0
        elif _tuning.get():
            best = self._remembered(known, launch, configs)
        else:
            best = recalled(known, _index_into(configs))
        return Choice(configs[best or 0], best is not None, launch.kernel)

    def _remembered(self, known, launch, configs):
        return remembered(known, lambda: self._fastest(launch, configs), _index_into(configs))

    def _where(self):
        return f"{self.place}-{toolchain.version}"

    def _fastest(self, launch, configs):
        scratch = replace(launch, args=tuple([self._copied(value) for value in launch.args]))
        anchor = next((value for value in scratch.args if hasattr(value, "dtype")), None)
        failures, times = [], []
        for config in configs:
            trial = replace(scratch, meta={**config, **launch.meta})
            try:
                timing = measured(self, lambda: self.execute(trial), REPEATS, lambda: self.flush(anchor))  # noqa: B023
                times.append(timing.median)
            except (ValueError, RuntimeError) as error:
                failures.append(f"{config}: {error}")
                times.append(float("inf"))
        if len(failures) == len(configs):
            raise ValueError("no configuration of the kernel runs:\n" + "\n".join(failures))
        return min(range(len(configs)), key=times.__getitem__)

    def _copied(self, value):
        if isinstance(value, tuple):
            return tuple(map(self._copied, value))
        return self.copied(array_of(value)) if hasattr(value, "dtype") else value


def _index_into(configs):
    return lambda value: type(value) is int and 0 <= value < len(configs)


def strided_copy(module, array):
    """Return a copy of an array of an array module that has the same strides, which a kernel may have been told."""
    steps = [(size - 1) * stride for size, stride in zip(array.shape, array.strides)]
    if not array.size or array.flags.c_contiguous:
        return array.copy()
    before, after = (sum(step for step in steps if step * sign > 0) * sign for sign in (-1, 1))
    flat = module.zeros((before + after) // array.itemsize + 1, array.dtype)
    start = flat[before // array.itemsize :]
    out = module.lib.stride_tricks.as_strided(start, array.shape, array.strides)
    out[...] = array
    return out

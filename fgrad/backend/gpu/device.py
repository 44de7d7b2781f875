"""Where a jitted function runs: arguments brought to a device, and its Program run as kernels there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad.backend.gpu.program import gpu_program
from fgrad.core import PYTHON_SCALARS, on_gpu
from fgrad.program import Program


class OnDevice:
    """A Program that runs as kernels.

    Args:
        program: simplified.
        device: "cuda" or "cuda:1", where arguments are brought and results stay; "twin", to interpret the kernels on
            NumPy arrays; None to stay where the arguments are, among them an array on a GPU.
        fast_math, replay, tune: see `fgrad.jit`.
        brought: see `fgrad.placement.Placed`.
    """

    def __init__(
        self,
        program: Program,
        device: str | None,
        fast_math: bool = False,
        replay: bool = False,
        tune: bool = False,
        brought: dict[int, tuple[Any, Any]] | None = None,
    ):
        self.brought = brought or {}
        self.replay = replay
        self.tune = tune
        self.gpu = gpu_program(program, fast_math)
        self.program = self.gpu.program
        self.label = program.label
        self.device = device

    def compute(self, *leaves: Any) -> list[Any]:
        """Return the outputs.

        Raises:
            ImportError: a GPU is asked for and CuPy is not installed.
            RuntimeError: a GPU is asked for and there is none.
        """
        if self.device is None:
            return self._computed(leaves)
        bring = _to_host if self.device == "twin" else _to_gpu(self.device)
        given = [x if x.__class__ in PYTHON_SCALARS else self._there(x, bring) for x in leaves]
        if all(x.__class__ in PYTHON_SCALARS for x in given):  # then nothing says where
            given = [bring(np.asarray(x)) for x in given]
        return [bring(x) for x in self._computed(given)]

    def _there(self, x: Any, bring: Callable[[Any], Any]) -> Any:
        """Return an argument on the device; a constant's copy is kept."""
        mine, copy = self.brought.get(id(x), (None, None))
        if mine is not x:
            return bring(x)
        copy = bring(copy)
        self.brought[id(x)] = x, copy
        return copy

    def _computed(self, leaves: Sequence[Any]) -> list[Any]:
        if self.tune:
            from fgrad.triton_kernels.tune import tuning

            with tuning():
                return self._launched(leaves)
        return self._launched(leaves)

    def _launched(self, leaves: Sequence[Any]) -> list[Any]:
        if self.replay and any(map(on_gpu, leaves)):
            return self.gpu.replayed(leaves).compute(*leaves)
        return self.gpu.compute(*leaves)


def compute(program: Program, *leaves: Any) -> list[Any]:
    """Return the outputs of a Program on the device that it is placed on, else on that of an argument."""
    placed = program.placed
    if placed is None:
        return gpu_program(program).compute(*leaves)
    at = OnDevice(program, placed.device, placed.fast_math, tune=placed.tune, brought=placed.brought)
    return at.compute(*leaves)


def _to_host(x: Any) -> Any:
    from fgrad.triton_kernels import interop

    return interop.to_numpy(x)


def _to_gpu(device: str) -> Callable[[Any], Any]:
    from fgrad.triton_kernels import interop
    from fgrad.triton_kernels.runtime import gpu_home

    gpu_home()  # says what to install
    if not interop.has_gpu():
        raise RuntimeError(
            f'jit: device="{device}" needs a GPU, and there is none; device="twin" interprets the kernels on this CPU'
        )
    return lambda x: interop.put(x, device)

"""Times of a case on a GPU: by events, the second-level cache emptied before each run; and beside other libraries."""

from __future__ import annotations

import importlib
import importlib.util

import numpy as np

from ..timing import benchmark, measured
from .check import require_right

_CEILING_BYTES = 1 << 30
_SQUARE = 8192


class Ceilings:
    """What the card itself reaches: a copy in bytes a second, and its library's product by type."""

    def __init__(self, home, repeats=20):
        self.home = home
        self.repeats = repeats
        block = home.from_numpy(np.ones(_CEILING_BYTES // 8, np.float32))
        self.copy = benchmark(lambda x: x.copy(), block, repeats=repeats).rate(2 * block.nbytes)
        self.products = {}

    def product(self, dtype):
        """Return the operations a second of the card's own matrix product."""
        name = np.dtype(dtype).name
        if name not in self.products:
            x = self.home.from_numpy(
                np.random.default_rng(0).standard_normal((_SQUARE, _SQUARE), np.float32).astype(dtype)
            )
            self.products[name] = benchmark(lambda x: x @ x, x, repeats=self.repeats).rate(2 * _SQUARE**3)
        return self.products[name]


def timed(case, dtype, rows, columns, home, ceilings, repeats=20, replay=False):
    """Return a row of the report: times in milliseconds, rates, and shares of the card's own ceilings.

    Raises:
        AssertionError: the case computes something else than it should.
        ValueError: an argument holds nothing but zeros.
    """
    require_right(case, dtype, home)
    work = case.make(np.random.default_rng(0), dtype, rows, columns)
    args = [home.from_numpy(x) for x in work.args]
    given = work.prepare(*args)

    def call(*args):
        return work.function(*given)

    timing = benchmark(call, *args, repeats=repeats)
    row = {
        "case": case.name,
        "dtype": np.dtype(dtype).name,
        "rows": rows,
        "columns": columns,
        "ms": timing.median,
        "ms 20%": timing.low,
        "ms 80%": timing.high,
        "bytes": work.moved,
        "flops": work.flops,
        "GB/s": timing.rate(work.moved) / 1e9,
        "of copy": timing.rate(work.moved) / ceilings.copy,
        "TFLOP/s": timing.rate(work.flops) / 1e12,
    }
    if case.products:
        row["of product"] = timing.rate(work.flops) / ceilings.product(dtype)
    if replay:
        graph = home.capture(call)
        row["replayed ms"] = measured(home, graph, repeats).median
    for name, other in peers(case).items():
        tensors = [other.tensor(x) for x in args]
        row[f"× {name}"] = measured(home, lambda f=other, t=tensors: f(*t), repeats).median / timing.median
    return row


def peers(case):
    """Return what else computes a case on this machine, by name: torch, compiled by torch, Liger."""
    texts = {name: text for name, text in case.peers.items() if importlib.util.find_spec(_PACKAGES[name])}
    if not texts or not Peer.usable():
        return {}
    found = {name: Peer(text) for name, text in texts.items()}
    if "torch" in found:
        found["torch.compile"] = Peer(case.peers["torch"], compiled=True)
    return found


_PACKAGES = {"torch": "torch", "liger": "liger_kernel"}


class Peer:
    """A function of another library, given as text."""

    def __init__(self, text, compiled=False):
        import torch

        names = {"torch": torch}
        if "liger_kernel" in text:
            importlib.import_module("liger_kernel.transformers.functional")
            names["liger_kernel"] = importlib.import_module("liger_kernel")
        function = eval(text, names)
        self.function = torch.compile(function) if compiled else function

    def __call__(self, *tensors):
        return self.function(*tensors)

    @staticmethod
    def tensor(array):
        """Return an array on a GPU as torch's, without a copy."""
        import torch

        return torch.from_dlpack(array)

    @staticmethod
    def usable():
        """Return whether torch sees a GPU."""
        import torch

        return torch.cuda.is_available()

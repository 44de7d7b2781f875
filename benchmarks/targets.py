"""The targets: what part of a peer's time fgrad may take. "best" is the fastest peer of the row.

They are printed beside the figures and decide nothing.
"""

from typing import NamedTuple

from benchmarks.libraries import OWN
from benchmarks.measure import ratio


class Target(NamedTuple):
    """At most `most` of the time of `peer`, and `stretch` if all goes well."""

    ours: str
    peer: str
    most: float
    stretch: float | None = None


TARGETS = {
    "W1": [Target("fgrad jit", "best", 0.25, 0.2), Target("fgrad eager", "torch", 0.10, 0.05)],
    "W2a": [Target("fgrad jit", "best", 0.35, 0.2)],
    "W2b": [Target("fgrad jit", "best", 0.5, 0.35)],
    "W3": [Target("fgrad jit", "best", 0.5, 0.4)],
    "W4": [Target("fgrad jit", "best", 1.0, 0.75), Target("fgrad.compat", "torch", 0.8, 0.6)],
    "W5": [Target("fgrad jit", "best", 1.15, 0.97), Target("fgrad jit", "torch", 1.0)],
    "W6a": [Target("fgrad jit", "torch", 0.8), Target("fgrad jit", "jax jit", 1.4)],
    "W6b": [Target("fgrad jit", "best", 1.2, 0.85)],
    "W7": [Target("fgrad jit", "best", 0.7, 0.5)],
    "W8": [Target("fgrad jit", "jax jit", 0.5, 0.35)],
    "W9": [Target("fgrad jit", "best", 0.9, 0.6)],
    "W10": [Target("fgrad jit", "best", 1.1, 0.8)],
    "W11": [Target("fgrad.compat", "torch", 0.4, 0.28)],
    "W12": [Target("fgrad.compat", "torch", 0.4)],
}

FIRST_CALL = {"W1": 0.02, "W2a": 0.02, "W3": 0.02, "W4": 0.02, "W10": 0.05}
"""The first jitted call, as a part of jax's."""

START = {"imported": 20e-3, "first gradient": 3e-3, "in all": 115e-3}
"""Seconds of W13: the import beyond NumPy's, the first gradient, and from the start of the process."""

MEMORY = 0.5
"""Of W12, as a part of torch's."""


class Outcome(NamedTuple):
    """What became of a target: of which workload, what was held against it, and the ratio or the seconds found."""

    key: str
    what: str
    found: float
    most: float
    stretch: float | None = None
    unit: str = ""

    @property
    def met(self):
        return self.found <= self.most


def of_rounds(key, seconds):
    """Return the outcomes of a workload, from seconds by library and round, where the peers are there."""
    found = []
    for target in TARGETS.get(key, ()):
        peers = [n for n in seconds if n not in OWN] if target.peer == "best" else [target.peer]
        if target.ours not in seconds or not peers or not set(peers) <= set(seconds):
            continue
        ratios = {peer: ratio(seconds[target.ours], seconds[peer]) for peer in peers}
        peer = max(ratios, key=ratios.get)
        what = f"{target.ours} ÷ {peer}" + (" (best)" if target.peer == "best" else "")
        found.append(Outcome(key, what, ratios[peer], target.most, target.stretch))
    return found


def of_first_calls(calls):
    """Return the outcomes of first calls, from seconds by workload and library."""
    pairs = {key: row for key, row in calls.items() if {"fgrad jit", "jax jit"} <= set(row)}
    what = "first call, fgrad jit ÷ jax jit"
    return [Outcome(key, what, row["fgrad jit"] / row["jax jit"], FIRST_CALL[key]) for key, row in pairs.items()]


def of_starts(starts):
    """Return the outcomes of W13 for our functional libraries, from seconds by library."""
    return [
        Outcome("W13", f"{name}, {what}", found, most, unit="s")
        for name in ("fgrad jit", "fgrad eager")
        if name in starts
        for (what, most), found in zip(START.items(), starts[name][1:], strict=True)
    ]


def of_memory(nbytes):
    """Return the outcome of W12's memory, from bytes by library."""
    if not {"fgrad.compat", "torch"} <= set(nbytes):
        return []
    return [Outcome("W12", "memory, fgrad.compat ÷ torch", nbytes["fgrad.compat"] / nbytes["torch"], MEMORY)]

"""Probes: entry points that are exchanged for observed ones while a profiler is at work, and put back after it.

Primitives are seen by an interpreter. What is no primitive (a call of a jitted function, code generation, a node of a
backward pass, a function of tensors) has no test in its path for a profiler that is hardly ever there: its attribute
is exchanged instead, so that it costs nothing when no profiler is at work. Layers that have such entry points name a
module in `fgrad.core.probe_providers`; its function `probes()` gives `(owner, name, observed)` for each.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fgrad import forks
from fgrad.core import probe_providers

_lock = forks.lock()
_users = 0
_originals: list[tuple[Any, str, Any]] = []


def install() -> None:
    """Exchange all entry points, unless another profiler has done it."""
    global _users
    with _lock:
        if not _users:
            modules = [import_module(name) for name in ("fgrad.profiler.functional", *probe_providers)]
            probes = [probe for module in modules for probe in module.probes()]
            _originals.extend([(owner, name, vars(owner)[name]) for owner, name, _ in probes])  # all or none
            for owner, name, observed in probes:
                setattr(owner, name, observed)
        _users += 1


def uninstall() -> None:
    """Put all entry points back, unless another profiler needs the observed ones."""
    global _users
    with _lock:
        _users -= 1
        if not _users:
            while _originals:
                owner, name, original = _originals.pop()
                setattr(owner, name, original)

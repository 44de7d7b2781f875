"""Locks that a forked child finds free: one that another thread held at the fork would never be released there."""

from __future__ import annotations

import os
import threading
from typing import Any


def lock() -> Any:
    """Return a re-entrant lock that is taken for the time of a fork, so that parent and child find it free.

    For locks that live as long as the process: the hooks cannot be taken back.
    """
    new = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=new.acquire, after_in_parent=new.release, after_in_child=new.release)
    return new

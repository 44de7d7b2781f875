"""How many threads BLAS may use for a product, or while a plan of many runs.

OpenBLAS with several threads is slower than with one on small products. The setting belongs to the whole process, so
those that want one thread are counted under a lock: the first sets it, the last out restores it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad import forks

ALONE = 2**18
"""OpenBLAS itself stays on one thread for products of fewer multiplications than this."""

SMALL = 2**22
"""A single product of fewer multiplications than this gains little from several threads, and loses much where other
processes keep the cores busy: threads of OpenBLAS wait for each other in loops."""

FEW = 2**26
"""Where a plan has products of fewer multiplications than this alone, it is faster on one thread."""


class _Blas:
    """The library's own setter and getter, looked up once; absent if NumPy came with another BLAS.

    `users` are the ids of those inside, `before` is what the last of them restores (0 if there is nothing to restore).
    """

    def __init__(self) -> None:
        self.lock = forks.lock()
        self.users: set[int] = set()
        self.before = 0
        self.set: Callable[[int], Any] | None = None
        self.get: Callable[[], int] | None = None
        self.looked = False

    def look(self) -> None:
        """Find the functions in the library that NumPy has loaded."""
        import ctypes  # slow to import, and needed by plans with products alone

        self.looked = True
        folder = os.path.join(os.path.dirname(os.path.dirname(np.__file__)), "numpy.libs")
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if "openblas" not in name:
                continue
            try:
                library = ctypes.CDLL(os.path.join(folder, name))
            except OSError:
                continue
            for prefix, suffix in (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", "")):
                setter = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
                getter = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
                if setter is not None and getter is not None:
                    self.set, self.get = setter, getter
                    return

    def restore(self) -> None:
        """Set what was set before anybody was inside."""
        if self.before > 1 and self.set is not None:
            self.set(self.before)
        self.before = 0

    def forget_users(self) -> None:
        """Restore the setting in a forked child, where the threads that asked for one thread are gone."""
        self.users.clear()
        self.restore()


_blas = _Blas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.forget_users)


class one_thread:
    """Context manager, for one use: BLAS uses one thread while anybody is inside.

    A signal's exception (KeyboardInterrupt) may come between any two steps, before the first one of `__exit__` too. So
    each step may be done again, and the last reference does what was left undone.
    """

    __slots__ = ("inside",)

    def __init__(self) -> None:
        self.inside = False

    def __enter__(self) -> None:
        try:
            with _blas.lock:
                if not _blas.looked:
                    _blas.look()
                self.inside = True
                _blas.users.add(id(self))
                if not _blas.before and _blas.set is not None and _blas.get is not None:
                    _blas.before = _blas.get()
                    if _blas.before != 1:
                        _blas.set(1)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        with _blas.lock:
            _blas.users.discard(id(self))
            if not _blas.users:
                _blas.restore()
            self.inside = False

    def __del__(self) -> None:
        if self.inside:
            self.__exit__()

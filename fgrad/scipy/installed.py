"""Where SciPy itself is imported: when it is needed, and with a way out if it is missing."""

from __future__ import annotations

import importlib
from types import ModuleType


def scipys(module: str, function: str) -> ModuleType:
    """Return a module of SciPy for one of our functions; ImportError names the extra if SciPy is not installed."""
    try:
        return importlib.import_module(f"scipy.{module}")
    except ImportError as error:
        raise ImportError(
            f"fgrad.scipy.{module}.{function} computes with SciPy, which cannot be imported: pip install 'fgrad[scipy]'"
        ) from error

"""NumPy without its warnings at singular points, which torch does not give, at a tenth of the price of `np.errstate`.

NumPy looks the setting up in the current `contextvars.Context`. Each thread keeps a context in which it is off and runs
single operations there. What may call a user's function must not run so: it would see that context's variables.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np


class _Here(threading.local):
    """The context of this thread, made when it is first needed."""

    def __init__(self) -> None:
        self.context = contextvars.Context()
        self.context.run(np.seterr, all="ignore")


_here = _Here()


def quietly(fun: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """Return `fun(*args, **params)`, computed without NumPy's warnings."""
    try:
        return _here.context.run(fun, *args, **params)
    except RuntimeError as error:
        if "cannot enter context" not in str(error):
            raise
    with np.errstate(all="ignore"):  # a finalizer that computes, run in the middle of another operation
        return fun(*args, **params)

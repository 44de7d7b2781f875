"""Where the user's code is: what messages and recorded equations point to."""

from __future__ import annotations

import os
import sys
from typing import Any


def user_frame() -> Any:
    """Return the innermost frame outside fgrad and NumPy, or None."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        ours = module.startswith(("fgrad.", "numpy.")) or module in ("fgrad", "numpy")
        if not ours and not frame.f_code.co_filename.startswith("<fgrad"):
            return frame
        frame = frame.f_back  # type: ignore[assignment]
    return None


def user_line() -> str:
    """Return `file:line` of the innermost call from outside fgrad."""
    frame = user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "an unknown line"


def function_label(transform: str, fun: Any) -> str:
    """Return what a transform does, for example `grad of loss (model.py:12)`."""
    inner = fun
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    place = f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})" if code else ""
    return f"{transform} of {getattr(fun, '__name__', None) or type(fun).__name__}{place}"

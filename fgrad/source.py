"""Where the user's code is: what messages and recorded equations point to."""

from __future__ import annotations

import os
import sys
import threading
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


class _Behalf(threading.local):
    line: str | None = None


_behalf = _Behalf()


class on_behalf_of:
    """Context: what is done inside belongs to a line that ran before, which `user_line` gives here."""

    def __init__(self, line: str):
        self.line = line

    def __enter__(self) -> None:
        self.before = _behalf.line
        _behalf.line = self.line

    def __exit__(self, *exc: object) -> None:
        _behalf.line = self.before


def user_line() -> str:
    """Return `file:line` of the innermost call from outside fgrad, or the line that the work at hand belongs to."""
    if _behalf.line is not None:
        return _behalf.line
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

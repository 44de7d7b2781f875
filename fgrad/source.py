"""Where the user's code is: what messages and recorded equations point to, and the names users give to its parts."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable
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
    scopes: tuple[str, ...] = ()


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
    """Return `file:line` of the innermost call from outside fgrad, or the line that the work at hand belongs to.

    Inside `named_scope` the names follow.
    """
    if _behalf.line is not None:
        return _behalf.line
    frame = user_frame()
    line = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "an unknown line"
    return f"{line}{_IN_SCOPE}{'/'.join(_behalf.scopes)}" if _behalf.scopes else line


_IN_SCOPE = " in scope "


def scope_of(line: str) -> str:
    """Return the names of scopes in what `user_line` gave, or nothing."""
    return line.partition(_IN_SCOPE)[2]


def place_of(line: str) -> str:
    """Return the `file:line` in what `user_line` gave."""
    return line.partition(_IN_SCOPE)[0]


class named_scope(contextlib.ContextDecorator):
    """Give a name to what is done inside: Programs show it beside equations, and messages after the line.

    Scopes nest; works as a decorator too.

    Example:
        >>> import numpy as np, fgrad
        >>> def f(x):
        ...     with fgrad.named_scope("layer"):
        ...         return np.sin(x)
        >>> print(fgrad.make_ir(f)(1.0))
        program make_ir of f...(a: float64[]...)
          b: float64[] = sin a  # layer
          return b
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"named_scope: the name must be a string, got {name!r} of type {type(name).__name__}")
        self.name = name

    def __enter__(self) -> named_scope:
        _behalf.scopes = (*_behalf.scopes, self.name)
        return self

    def __exit__(self, *exc: object) -> None:
        _behalf.scopes = _behalf.scopes[:-1]


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """Return `fun` with all that it does in a scope named `name`, by default its own name.

    Example:
        >>> import numpy as np, fgrad
        >>> float(fgrad.named_call(np.sin, name="wave")(0.0))
        0.0
    """
    if not callable(fun):
        raise TypeError(
            f"named_call expects a function as its first argument, got {fun!r} of type {type(fun).__name__}"
        )
    scope = name if name is not None else getattr(fun, "__name__", type(fun).__name__)

    def call(*args: Any, **kwargs: Any) -> Any:
        with named_scope(scope):
            return fun(*args, **kwargs)

    return functools.update_wrapper(call, fun, updated=())


def function_label(transform: str, fun: Any) -> str:
    """Return what a transform does, for example `grad of loss (model.py:12)`."""
    inner = fun
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    place = f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})" if code else ""
    return f"{transform} of {getattr(fun, '__name__', None) or type(fun).__name__}{place}"

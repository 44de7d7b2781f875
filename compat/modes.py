"""Grad modes: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`; thread-local, contexts and decorators.

Owns the flag that says whether operations are recorded. Must not import the tape.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from typing import Any


class _Mode(threading.local):
    """`enabled`: operations are recorded. `packing`: the pairs of saved-tensor hooks at work, or None.

    `inference`: inside `inference_mode`.
    """

    enabled = True
    packing: Any = None
    inference = False


mode = _Mode()


def is_grad_enabled():
    """Return whether operations are being recorded in this thread."""
    return mode.enabled


class _GradMode:
    """A context that sets the grad mode, and a decorator that runs a function (or a generator's body) in it."""

    def __init__(self, enabled):
        self.enabled = enabled

    def clone(self):
        """Return a fresh context of the same kind, so that a decorated function may recurse."""
        return type(self)()

    def __enter__(self):
        self.previous = mode.enabled
        mode.enabled = self.enabled and not mode.inference

    def __exit__(self, *exc):
        mode.enabled = self.previous

    def __call__(self, fun):
        if inspect.isclass(fun):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            fun.__init__ = self(fun.__init__)
            return fun
        return _decorate(self.clone, fun)


def _decorate(context, fun):
    """Return `fun` with its body run inside `context()`; generators and coroutines keep the mode to their own body."""
    if inspect.isgeneratorfunction(fun):

        @functools.wraps(fun)
        def generator(*args, **kwargs):
            return (yield from _within(context, fun(*args, **kwargs)))

        return generator
    if inspect.iscoroutinefunction(fun):

        @functools.wraps(fun)
        async def coroutine(*args, **kwargs):
            with context():
                return await fun(*args, **kwargs)

        return coroutine

    @functools.wraps(fun)
    def function(*args, **kwargs):
        with context():
            return fun(*args, **kwargs)

    return function


def _within(context, generator):
    """Run a generator with the mode set only while its own body runs, through send, throw and close."""
    resume, argument = generator.send, None
    while True:
        with context():
            try:
                item = resume(argument)
            except StopIteration as stop:
                return stop.value
        try:
            argument = yield item
            resume = generator.send
        except GeneratorExit:
            with context():
                generator.close()
            raise
        except BaseException as error:
            resume, argument = generator.throw, error


class _Plain(_GradMode):
    """A mode without arguments, which may decorate without parentheses."""

    def __new__(cls, fun=None):
        self = super().__new__(cls)
        if fun is None:
            return self
        self.__init__()
        return self(fun)

    def __init__(self, fun=None):
        super().__init__(self.setting)


class no_grad(_Plain):
    """Record nothing inside: results have `requires_grad=False`. Thread-local; also a decorator.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.tensor([1.], requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    setting = False


class enable_grad(_Plain):
    """Record inside, also within `no_grad`. Thread-local; also a decorator.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.tensor([1.], requires_grad=True)
        >>> with torch.no_grad(), torch.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    setting = True


class set_grad_enabled(_GradMode):
    """Set recording on or off at once; as a context, put the previous mode back at its end.

    Example:
        >>> import fgrad.compat as torch
        >>> with torch.set_grad_enabled(False):
        ...     torch.is_grad_enabled()
        False
    """

    def __init__(self, mode):
        if not isinstance(mode, (bool, int)):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        super().__init__(bool(mode))
        self._set()

    def _set(self):
        self.previous = mode.enabled
        mode.enabled = self.enabled and not mode.inference

    def clone(self):
        """Return a fresh context with the same setting."""
        return set_grad_enabled(self.enabled)

    def __enter__(self):
        mode.enabled = self.enabled and not mode.inference

    def __call__(self, fun):
        mode.enabled = self.previous  # as a decorator it acts when the function is called, not before
        return super().__call__(fun)

    def __str__(self):
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.enabled})"

    __repr__ = __str__


class inference_mode(_GradMode):
    """Record nothing inside, and make inference tensors, which no recorded operation may save.

    Nothing inside records, whatever `enable_grad` says; `inference_mode(False)` ends that for its block.

    Example:
        >>> import fgrad.compat as torch
        >>> with torch.inference_mode():
        ...     x = torch.ones(2)
        >>> x.is_inference(), (x + 1).is_inference()
        (True, False)
    """

    def __new__(cls, mode=True):
        self = super().__new__(cls)
        if callable(mode):
            self.__init__()
            return self(mode)
        return self

    def __init__(self, mode=True):
        self.inference = bool(mode)

    def clone(self):
        """Return a fresh context with the same setting."""
        return inference_mode(self.inference)

    def __enter__(self):
        self.previous = mode.enabled, mode.inference
        mode.inference = self.inference
        mode.enabled = not self.inference

    def __exit__(self, *exc):
        mode.enabled, mode.inference = self.previous


def is_inference_mode_enabled():
    """Return whether this thread is inside `inference_mode`."""
    return mode.inference

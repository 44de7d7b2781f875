"""How functions of `fgrad.scipy` read their arguments, and how those that need a line of code each are made."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad.numpy.arguments import as_array, cast, operand, promotes_as

Function = Callable[..., Any]


def reals(*xs: Any) -> list[Any]:
    """Return array-likes as arrays of their common floating dtype: float64 for integers, Python scalars give way."""
    operands = [operand(x) for x in xs]
    dtype = np.result_type(*[promotes_as(x) for x in operands])
    if dtype.kind not in "fcV":
        dtype = np.dtype(np.float64)
    return [cast(as_array(x), dtype) for x in operands]


def real(x: Any) -> Any:
    """Return an array-like as a floating array."""
    return reals(x)[0]


_PROMPT = ">" * 3  # spelt out it would look like an example of this module
_DOC = """{summary}

    Args:
        {arguments}: arrays or numbers, which broadcast.

    Example:
        {prompt} from fgrad.scipy.{module} import {name}
        {prompt} print({example}.round(4))
        {shows}
    """


def elementwise_function(
    module: str, name: str, arguments: str, definition: Function, summary: str, example: str, shows: str
) -> Function:
    """Return the public function of real array-likes that a definition in primitives gives.

    Args:
        module, name: where users find it.
        arguments: their names, separated by blanks.
        definition: a function of as many operands.
        summary: the first line of its documentation.
        example, shows: a call, and what it prints with four digits.
    """
    names = arguments.split()
    signature = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(names):
            try:
                args = signature.bind(*args, **kwargs).args
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from None
        return definition(*reals(*args))

    function.__name__ = function.__qualname__ = name
    function.__module__ = f"fgrad.scipy.{module}"
    function.__signature__ = signature  # type: ignore[attr-defined]
    texts = {"summary": summary, "module": module, "name": name, "example": example, "shows": shows}
    function.__doc__ = _DOC.format(arguments=", ".join(names), prompt=_PROMPT, **texts)
    return function

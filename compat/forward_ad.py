"""`torch.autograd.forward_ad`: tangents carried beside values, within a level.

A dual tensor holds a value traced by the core's forward interpreter, which is the current one while the level lasts.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from fgrad.extend import Forward

from .tape import place_of
from .tensor import Tensor, wrap, wrap_value

_levels = []


class UnpackedDualTensor(NamedTuple):
    """A primal and its tangent; the tangent is None if there is none."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level():
    """Start a level and return its number; RuntimeError inside another."""
    if _levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.append(Forward("forward_ad"))
    _levels[-1].__enter__()
    return len(_levels) - 1


def exit_dual_level(*, level=None):
    """End the level: tangents made in it are gone. RuntimeError if there is none."""
    if not _levels:
        raise RuntimeError("Trying to exit a forward AD level but no level is active")
    _levels.pop().__exit__(None, None, None)


@contextlib.contextmanager
def dual_level():
    """Carry tangents inside.

    Example:
        >>> import fgrad.compat as torch
        >>> import fgrad.compat.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor(3.), torch.tensor(1.))
        ...     fwAD.unpack_dual(x * x).tangent
        tensor(6.)
    """
    level = enter_dual_level()
    try:
        yield level
    finally:
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """Return `tensor` with a tangent; RuntimeError outside a level or if the two do not fit."""
    if not _levels:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    return wrap(_levels[-1].wrap(tensor._data, tangent._data), place_of(tensor))


def unpack_dual(tensor, *, level=None):
    """Return the primal and the tangent of a tensor; the tangent is None outside a level."""
    if not _levels:
        return UnpackedDualTensor(tensor, None)
    value, tangent = _levels[-1].split(tensor._data)
    return UnpackedDualTensor(wrap_value(value, place_of(tensor)), None if tangent is None else wrap_value(tangent))

"""NumPy's methods and properties on traced values: each calls the function of this package that has its name."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad import numpy as fnp
from fgrad.core import Tracer
from fgrad.errors import TracerArrayConversionError
from fgrad.numpy.arguments import as_array, cast
from fgrad.numpy.indexing import getitem
from fgrad.numpy.updating import at
from fgrad.source import user_line

_SAME = """
    all any argmax argmin argpartition argsort choose clip cumprod cumsum diagonal dot max mean min
    nonzero partition prod ravel repeat round searchsorted squeeze std sum swapaxes take trace var
"""
"""Methods that are the function of the same name with the array as first argument."""


def _method(name: str) -> Callable[..., Any]:
    """Return the method that calls the function `name`."""
    function = getattr(fnp, name)

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = function.__doc__
    return method


def _given(args: tuple[Any, ...]) -> Any:
    """Return what was given as `f(1, 2)` or `f((1, 2))`."""
    return args[0] if len(args) == 1 else args


def reshape(self: Tracer, /, *shape: Any, order: str | None = None, copy: bool | None = None) -> Any:
    """Return the array in another shape, given as one tuple or as several ints."""
    return fnp.reshape(self, _given(shape), order, copy=copy)


def transpose(self: Tracer, /, *axes: Any) -> Any:
    """Return the array with its axes permuted, or in opposite order."""
    axes = _given(axes) if axes else None
    return fnp.transpose(self, (axes,) if isinstance(axes, int) else axes)


def flatten(self: Tracer, order: str = "C") -> Any:
    """Return the elements along one axis."""
    return fnp.ravel(self, order)


def astype(
    self: Tracer, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    """Return the array in another dtype."""
    x = as_array(self)
    if not np.can_cast(x.dtype, dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {x.dtype!r} to {np.dtype(dtype)!r} according to the rule '{casting}'"
        )
    return cast(x, dtype)


def conj(self: Tracer) -> Any:
    """Return the complex conjugate; the array itself if it is real."""
    return fnp.conjugate(self) if self.dtype.kind == "c" else self


def compress(self: Tracer, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """Return slices along an axis (or elements when flattened) where a vector of known conditions holds."""
    return fnp.compress(condition, self, axis, out)


def view(self: Tracer, dtype: Any = None, type: Any = None) -> Any:
    """Return the array itself; reading its bytes as another dtype has no derivative and is refused."""
    if (dtype is None or np.dtype(dtype) == self.dtype) and type is None:
        return self
    raise TypeError(f"view: a traced value ({self.type}) cannot be read as {dtype}; astype converts values")


def copy(self: Tracer, order: str = "C") -> Any:
    """Return an array of the same values."""
    return fnp.copy(self)


def sort(self: Tracer, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """Refuse to sort in place: `fgrad.numpy.sort(x)` returns sorted values."""
    raise TypeError(
        f"x.sort() sorts in place, which a traced value ({self.type}) does not support, at {user_line()}."
        "\nRemedy: x = fgrad.numpy.sort(x)."
    )


def fill(self: Tracer, value: Any) -> Any:
    """Refuse to fill in place."""
    raise TypeError(f"x.fill() writes in place, which a traced value ({self.type}) does not support, at {user_line()}.")


def _to_device(self: Tracer, device: Any, /, *, stream: Any = None) -> Any:
    if device != self.device:
        raise ValueError(f"to_device: only {self.device!r} is available here, got {device!r}")
    return self


def _array_namespace(self: Tracer, /, *, api_version: str | None = None) -> Any:
    if api_version not in (None, *_VERSIONS):
        raise ValueError(
            f"the array API standard of version {api_version!r} is not supported; {', '.join(_VERSIONS)} are"
        )
    return fnp


_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""The versions of the array API standard whose functions `fgrad.numpy` has."""


def _matmul(self: Tracer, other: Any) -> Any:
    return fnp.matmul(self, other) if _operand_like(other) else NotImplemented


def _rmatmul(self: Tracer, other: Any) -> Any:
    return fnp.matmul(other, self) if _operand_like(other) else NotImplemented


def _operand_like(x: Any) -> bool:
    return isinstance(x, (Tracer, np.ndarray, np.generic, list, tuple, bool, int, float, complex))


def _round(self: Tracer, digits: Any = None) -> Any:
    return fnp.round(self, 0 if digits is None else operator.index(digits))


def _dlpack(self: Tracer, **kwargs: Any) -> Any:
    raise TracerArrayConversionError(f"a traced value ({self.type}) has no memory to share, at {user_line()}.")


def _bytes(self: Tracer, *args: Any, **kwargs: Any) -> Any:
    raise TracerArrayConversionError(f"a traced value ({self.type}) has no bytes to give, at {user_line()}.")


def install() -> None:
    """Attach methods, properties and operators to traced values, over the plain ones of the floor below."""
    for name in _SAME.split():
        setattr(Tracer, name, _method(name))
    own = (reshape, transpose, flatten, astype, conj, compress, view, copy, sort, fill)
    for method in own:
        setattr(Tracer, method.__name__, method)
    Tracer.conjugate = conj  # type: ignore[attr-defined]
    properties = {
        "T": fnp.transpose,
        "mT": fnp.matrix_transpose,
        "real": fnp.real,
        "imag": fnp.imag,
        "at": at,
        "flat": fnp.ravel,
        "device": lambda self: "cpu",
    }
    for name, function in properties.items():
        setattr(Tracer, name, property(function, doc=function.__doc__))
    special = {
        "__getitem__": getitem,
        "__matmul__": _matmul,
        "__rmatmul__": _rmatmul,
        "__abs__": fnp.absolute,
        "__round__": _round,
        "__array_namespace__": _array_namespace,
        "__dlpack__": _dlpack,
        "__dlpack_device__": _dlpack,
        "tobytes": _bytes,
        "to_device": _to_device,
    }
    for name, function in special.items():
        setattr(Tracer, name, function)

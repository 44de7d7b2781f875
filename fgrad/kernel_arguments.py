"""What functions over kernels take: arrays of the host or of a device, traced values, and tensors of layers above.

A tensor takes a call over through NumPy's protocol `__array_function__`. Its layer knows by the mark
`runs_on_tracers` that the function may run on what it traces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad.core import Tracer
from fgrad.numpy.arguments import as_array


def as_kernel_array(x: Any) -> Any:
    """Return an array that primitives take: traced values as they are, a view of another library's array, or NumPy's.

    What lies on a device stays there.
    """
    if not isinstance(x, (np.ndarray, Tracer)) and (hasattr(x, "__dlpack__") or hasattr(x, "__cuda_array_interface__")):
        from fgrad.triton_kernels.interop import own

        return own(x)
    return as_array(x)


def beside(x: Any, others: Sequence[Any]) -> Any:
    """Return a host array on the device of the others, such as a cotangent that a transform made; else `x` itself."""
    if isinstance(x, np.ndarray):
        for other in others:
            if hasattr(other, "__cuda_array_interface__"):
                from fgrad.triton_kernels.runtime import home_of

                home = home_of(other)
                with home.on_device(home.device(other)):
                    return home.from_numpy(x)
    return x


def owner_of(xs: Sequence[Any]) -> Any:
    """Return the first value that belongs to a layer above the primitives, such as a tensor of compat; None if none."""
    for x in xs:
        if not isinstance(x, (np.ndarray, Tracer)) and _is_tensor(type(x)):
            return x
    return None


def hand_over(owner: Any, function: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Return what the layer of `owner` makes of a call; TypeError if it knows nothing of such functions."""
    out = owner.__array_function__(function, (type(owner),), tuple(args), options)
    if out is NotImplemented:
        kind = type(owner)
        raise TypeError(f"{function.__name__}: expected arrays, got {kind.__module__}.{kind.__name__}")
    return out


def _is_tensor(kind: type) -> bool:
    """Return whether values of a class take functions of NumPy and are no arrays of a GPU, or stand above those."""
    if not hasattr(kind, "__array_function__"):
        return False
    above = getattr(kind, "__array_priority__", 0) >= Tracer.__array_priority__
    return above or not hasattr(kind, "__cuda_array_interface__")

"""Arrays of other libraries as ours, and ours as NumPy's: by DLPack, then by the CUDA array interface, without a copy.

Host arrays become NumPy's, arrays on a GPU those of its home. Types, strides and read-only marks survive.
"""

import numpy as np

from .dlpack import Exported, from_dlpack
from .runtime import _HOMES, gpu_home, home_of

__all__ = ["own", "put", "to_dlpack", "to_numpy"]

_HOST = (1, 3, 11)  # DLPack's numbers for CPU, CUDA's pinned memory, ROCm's
_CUDA = (2, 13)  # CUDA, and memory it manages


def own(x):
    """Return an array as one that kernels run on: itself, or a view of the memory of another library's array.

    Args:
        x: an array of NumPy or CuPy, or an object with `__dlpack__`, `__cuda_array_interface__` or
            `__array_interface__`.

    Raises:
        TypeError: it is none of these, or lies on a device of another kind.

    >>> import numpy as np
    >>> from fgrad.triton_kernels.interop import own
    >>> x = np.ones(3)
    >>> own(x) is x
    True
    >>> own([1.0, 2.0])
    Traceback (most recent call last):
    TypeError: kernels run on arrays, got builtins.list
    """
    kind = type(x)
    if kind in _HOMES or isinstance(x, np.ndarray) or kind.__module__.partition(".")[0] == "cupy":
        return x
    if hasattr(x, "__cuda_array_interface__"):
        return gpu_home().adopt(x)
    if hasattr(x, "__dlpack__"):
        device, _ = x.__dlpack_device__()
        if device in _HOST:
            return from_dlpack(x)
        if device in _CUDA:
            return gpu_home().adopt(x)
        raise TypeError(
            f"{kind.__module__}.{kind.__name__}: kernels run on the host and on CUDA, got DLPack's {device}"
        )
    if hasattr(x, "__array_interface__"):
        return np.asarray(x)
    raise TypeError(f"kernels run on arrays, got {kind.__module__}.{kind.__name__}")


def to_numpy(x):
    """Return an array in host memory: NumPy's own as they are, host arrays of others as views, others copied.

    Raises:
        TypeError: it is no array.
    """
    array = own(x)
    return home_of(array).to_numpy(array)


def put(x, device=None):
    """Return an array on a device; the array itself, or a view, if it lies there already.

    Args:
        x: any array that `own` takes.
        device: "cpu", "cuda" (the current one) or "cuda:1"; None is "cuda" where there is one, else "cpu".

    Raises:
        ImportError: `device` is a GPU and CuPy is not installed.
        ValueError: `device` is none of the above.
    """
    kind, number = _parsed(device)
    array = own(x)
    if kind == "cpu":
        return home_of(array).to_numpy(array)
    home = gpu_home()
    here = home.current_device() if number is None else number
    if home_of(array) is home and home.device(array) == here:
        return array
    with home.on_device(here):
        return home.from_numpy(array) if isinstance(array, np.ndarray) else home.move(array)


def to_dlpack(x):
    """Return an object for other libraries' `from_dlpack`; NumPy's bfloat16 and 8-bit floats, which NumPy does not
    export itself, included. The memory is shared.
    """
    array = own(x)
    return Exported(array) if isinstance(array, np.ndarray) else array


def _parsed(device):
    """Return ("cpu" or "cuda", number or None)."""
    if device is None:
        return ("cuda", None) if has_gpu() else ("cpu", None)
    kind, colon, number = str(device).partition(":")
    kind = {"gpu": "cuda"}.get(kind, kind)
    if kind not in ("cpu", "cuda") or colon and not number.isdigit() or kind == "cpu" and int(number or 0):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:" and a number, got {device!r}')
    return kind, int(number) if number else None


def has_gpu():
    """Return whether there is a GPU that `gpu_home` can use."""
    try:
        return gpu_home().count() > 0
    except (ImportError, RuntimeError):  # CuPy is missing; or there is no driver or no device
        return False

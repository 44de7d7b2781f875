"""Where tensors live: moving arrays to a GPU and back, and torch's rules for tensors of several devices.

Owns the seam between tensors and what holds arrays on a GPU, which is asked of `fgrad.extend` when it is first needed.
Knows arrays and their dtypes, no tensors.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from fgrad import extend
from fgrad.extend import Tracer, held, linear, on_gpu

from .dtypes import CPU, device


def is_available():
    """Return whether there is a GPU that arrays can be put on."""
    return extend.has_gpu()


def check_available():
    """Raise torch's error of a build without CUDA unless there is a GPU."""
    if not is_available():
        raise AssertionError("Torch not compiled with CUDA enabled")


class _Default(threading.local):
    """Where factories make tensors in this thread: the number of a GPU, None for the CPU."""

    place = None


default = _Default()


def set_default_device(device):
    """Set where factories of this thread make tensors when they are not told; None is the CPU again."""
    default.place = None if device is None else number_of(device)


def get_default_device():
    """Return where factories of this thread make tensors when they are not told."""
    return named(default.place)


def _enter(self):
    """Make tensors on this device inside: `with torch.device("cuda"):`."""
    self._outer = (*getattr(self, "_outer", ()), default.place)
    set_default_device(self)
    return self


def _exit(self, *exc):
    *self._outer, default.place = self._outer


device.__enter__, device.__exit__ = _enter, _exit


def number_of(d):
    """Return the number of the GPU that `d` names (a device, a string or a number), None if it names the CPU.

    `d` None is the default device.

    Raises:
        AssertionError: there is no GPU.
        RuntimeError: it names no device, or one that does not exist.
    """
    if d is None:
        return default.place
    found = device(d)
    if found.type == "cpu":
        return None
    if found.type != "cuda":
        raise RuntimeError(f"device '{found}': tensors live on the CPU and on CUDA devices here")
    check_available()
    home = extend.gpu_home()
    if found.index is None:
        return home.current_device()
    if found.index >= home.count():
        raise RuntimeError(
            "CUDA error: invalid device ordinal\nCUDA kernel errors might be asynchronously reported at some other "
            "API call, so the stacktrace below might be incorrect."
        )
    return found.index


def device_of(data: Any) -> device:
    """Return the device that an array, or the value of a traced one, lies on."""
    return named(place_of(data))


def place_of(data: Any) -> int | None:
    """Return the number of the GPU that an array, or the value of a traced one, lies on; None for the CPU."""
    if data.__class__ is np.ndarray:
        return None
    data = held(data)
    return extend.home_of(data).device(data) if on_gpu(data) else None


def moved(data, place):
    """Return an array on the GPU of a number, on the CPU for None; itself if it is there."""
    if place_of(data) == place:
        return data
    return extend.put(data, "cpu" if place is None else f"cuda:{place}")


def filled(value, shape, dtype, place):
    """Return an array of equal elements, made where it is to be: one element is all that is sent."""
    if place is None:
        return np.zeros(shape, dtype) if value == 0 else np.full(shape, value, dtype)
    return np.broadcast_to(moved(np.full((), value, dtype), place), shape).copy()


def like(data, value):
    """Return an array of equal elements, of the shape and dtype of another and beside it."""
    return filled(value, data.shape, data.dtype, place_of(data))


def beside(data, x):
    """Return an array of the host where another one is."""
    return moved(x, place_of(data))


def as_array(x: Any) -> Any:
    """Return what a primitive gives as an array where it is; traced values stay what they are."""
    if isinstance(x, np.generic):  # what NumPy gives for 0 dimensions
        return np.asarray(x)
    return x if isinstance(x, Tracer) or on_gpu(x) else np.asarray(x)


def address_of(data):
    """Return the address of an array's first element."""
    interface = data.__cuda_array_interface__ if on_gpu(data) else data.__array_interface__
    return interface["data"][0]


def is_there(x):
    """Return whether an array of another library lies on a GPU."""
    return on_gpu(x) or hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] in (2, 13)


def owner_of(data):
    """Return what stands for the allocation that an array on a GPU lies in."""
    return extend.home_of(data).owner(data)


def strided(data, shape, strides):
    """Return a window of any strides, in bytes, on the memory from an array's first element on."""
    if on_gpu(data):
        return extend.home_of(data).strided(data, shape, strides)
    return np.lib.stride_tricks.as_strided(data, shape, strides)


def storage_of(data):
    """Return the memory that an array on a GPU looks into, flat, and the place in it where the array starts."""
    whole = data if data.base is None else data.base
    flat = strided(whole, (whole.nbytes // whole.itemsize,), (whole.itemsize,)).view(data.dtype)
    return flat, (address_of(data) - address_of(whole)) // data.itemsize


def copied(data):
    """Return a copy of an array, or of a number, in C order where it is."""
    return data.copy() if on_gpu(data) else np.array(data, order="C")


def on_host(data):
    """Return an array in host memory: itself, or a copy of what is on a GPU."""
    return extend.put(data, "cpu") if on_gpu(data) else data


def mixed_error(first: int | None, second: int | None) -> RuntimeError:
    """Return torch's error for operands that lie on two devices, which `place_of` gave."""
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {named(first)} and "
        f"{named(second)}!"
    )


def named(place: int | None) -> device:
    """Return the device that `place_of` gave a number of."""
    return CPU if place is None else device("cuda", place)


to_device = linear(
    "to_device",
    lambda x, *, place, source: moved(x, place),
    type=lambda x, *, place, source: x,
    transpose=lambda ct, *, place, source: to_device(ct, place=source, source=place),
    shift=lambda size, *, place, source: {},
    doc="x on another device: on the GPU of number `place`, on the CPU for None.",
)

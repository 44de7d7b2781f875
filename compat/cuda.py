"""`torch.cuda`: the GPUs that tensors can live on; where there is none, these say so as a torch without CUDA does."""

from __future__ import annotations

import contextlib

from fgrad import extend

from . import devices
from .dtypes import device as Device
from .methods.random import default_generator


def is_available():
    """Return whether there is a GPU: CuPy is installed and finds one."""
    return devices.is_available()


def is_initialized():
    """Return whether there is a GPU, which needs no start here."""
    return devices.is_available()


def init():
    """Do nothing but raise torch's error where there is no GPU."""
    devices.check_available()


def device_count():
    """Return the number of GPUs."""
    return extend.gpu_home().count() if devices.is_available() else 0


def current_device():
    """Return the number of the GPU that "cuda" means in this thread."""
    devices.check_available()
    return extend.gpu_home().current_device()


def set_device(device):
    """Let "cuda" mean this GPU in this thread from now on; a negative number changes nothing."""
    number = _number(device)
    if number >= 0:
        extend.gpu_home().set_device(number)


def _number(device):
    """Return the number of the GPU that a device, a string or a number names; None names the current one."""
    devices.check_available()
    if device is None:
        return current_device()
    if isinstance(device, int) and device < 0:
        return device
    if Device(device).type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {Device(device)}")
    return devices.number_of(device)


class device(contextlib.ContextDecorator):
    """Let "cuda" mean this GPU inside."""

    def __init__(self, device):
        self.idx = _number(device)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = current_device()
        set_device(self.idx)
        return self

    def __exit__(self, *exc):
        set_device(self.prev_idx)


class device_of(device):
    """Let "cuda" mean the GPU of a tensor inside; nothing changes for a tensor of the CPU."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def synchronize(device=None):
    """Wait until the GPU has done its work."""
    with _current(device):
        extend.gpu_home().synchronize()


@contextlib.contextmanager
def _current(device):
    number = _number(device)
    with extend.gpu_home().on_device(number):
        yield number


def manual_seed(seed):
    """Seed the generator, which is one for all devices: draws are made on the CPU and sent."""
    if devices.is_available():
        default_generator.manual_seed(seed)


manual_seed_all = manual_seed


def get_device_name(device=None):
    """Return the name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """Return the compute capability of a GPU, as (major, minor)."""
    found = get_device_properties(device)
    return found.major, found.minor


def get_device_properties(device=None):
    """Return what a GPU is: `name`, `major`, `minor`, `total_memory` (bytes), `multi_processor_count`."""
    with _current(device) as number:
        return extend.gpu_home().properties(number)


def memory_allocated(device=None):
    """Return the bytes that arrays on the GPU occupy; 0 where there is none."""
    return _memory(device)[0]


def memory_reserved(device=None):
    """Return the bytes that the pool holds for arrays on the GPU; 0 where there is none."""
    return _memory(device)[1]


def _memory(device):
    if not devices.is_available():
        return 0, 0
    with _current(device):
        return extend.gpu_home().memory()


def max_memory_allocated(device=None):
    """Return 0 where there is no GPU; NotImplementedError where there is one, whose pool notes no peak."""
    if devices.is_available():
        raise NotImplementedError("max_memory_allocated: CuPy's pool notes no peak; see torch.cuda.memory_allocated")
    return 0


def empty_cache():
    """Give memory that no array occupies back to the GPU."""
    if devices.is_available():
        extend.gpu_home().release()

"""`torch.cuda`: there is no device here, and these say so as a torch without CUDA does."""

from .dtypes import check_device


def is_available():
    """Return False: tensors live on the CPU."""
    return False


def is_initialized():
    """Return False."""
    return False


def device_count():
    """Return 0."""
    return 0


def _refused(name):
    def function(*args, **kwargs):
        check_device("cuda")

    function.__name__ = name
    function.__doc__ = "Raise torch's error of a build without CUDA."
    return function


current_device, get_device_name, get_device_properties, set_device, init = (
    _refused(name) for name in ("current_device", "get_device_name", "get_device_properties", "set_device", "init")
)


def synchronize(device=None):
    """Do nothing: work on the CPU is done when it returns."""


def manual_seed(seed):
    """Do nothing: there is no generator on a device."""


manual_seed_all = manual_seed


def empty_cache():
    """Do nothing: there is no cache on a device."""


def memory_allocated(device=None):
    """Return 0."""
    return 0


max_memory_allocated = memory_allocated

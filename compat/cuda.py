"""`torch.cuda`: there is no device here, and these say so."""


def is_available():
    """Return False: tensors live on the CPU."""
    return False


def device_count():
    """Return 0."""
    return 0


def synchronize(device=None):
    """Do nothing: work on the CPU is done when it returns."""


def manual_seed(seed):
    """Do nothing: there is no generator on a device."""


manual_seed_all = manual_seed


def empty_cache():
    """Do nothing: there is no cache on a device."""

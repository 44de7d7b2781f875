"""How many bytes kernels move, counted from the loads and stores that the twin sees."""

from dataclasses import dataclass

import numpy as np

from .runtime import launching
from .twin import Memory, interpret


@dataclass
class Traffic:
    """What one launch moves: bytes read and written, each element once for every line of the kernel that touches it.

    What several programs read on one line (a row of biases) counts once, as it stays in a cache; what a kernel reads
    in two passes counts twice.
    """

    kernel: str
    read: int = 0
    written: int = 0

    @property
    def moved(self):
        """Return the bytes read and written."""
        return self.read + self.written


def traffic(function, *args, **kwargs):
    """Return the `Traffic` of every kernel that a function launches, in order.

    Args:
        function: launches kernels through `fgrad.triton_kernels.runtime.launch`.
        *args, **kwargs: its arguments, NumPy arrays.

    >>> import numpy as np
    >>> from fgrad.triton_kernels.softmax import softmax_forward
    >>> from fgrad.triton_kernels.traffic import traffic
    >>> traffic(softmax_forward, np.zeros((4, 100), np.float32))
    [Traffic(kernel='forward_kernel', read=1600, written=1600)]
    """
    found = []

    def watch(launch):
        memory = _Counting()
        interpret(launch.kernel, launch.grid, *launch.args, memory=memory, **launch.meta)
        found.append(Traffic(launch.kernel.__name__, memory.counted("loads"), memory.counted("stores")))

    with launching(watch):
        function(*args, **kwargs)
    return found


class _Counting(Memory):
    def __init__(self):
        super().__init__()
        self.touched = {}

    def loaded(self, buffer, offsets, dtype):
        self._note("loads", buffer, offsets, dtype.itemsize)

    def storing(self, buffer, offsets, values):
        self._note("stores", buffer, offsets, values.dtype.itemsize)

    def _note(self, action, buffer, offsets, width):
        key = action, self.source, buffer.name, width
        self.touched.setdefault(key, []).append(np.unique(offsets))

    def counted(self, action):
        """Return the bytes touched by an action."""
        return sum(
            len(np.unique(np.concatenate(parts))) * width
            for (kind, _, _, width), parts in self.touched.items()
            if kind == action
        )

"""The twin: a `@triton.jit` kernel interpreted on NumPy arrays, in the process that also compiles it.

The kernel goes through Triton's own frontend, exactly as when it is compiled; the intermediate representation that
comes out is translated to a Python program over NumPy and run once for each program of the grid. So whatever does not
compile does not interpret either, nothing in Triton is patched, no environment variable is read, and threads may
interpret and compile at the same time.
"""

from .launch import interpret, source_text
from .memory import KernelAssertion, KernelMemoryError, Memory

__all__ = ["interpret", "source_text", "KernelAssertion", "KernelMemoryError", "Memory"]

"""`gradcheck` and `gradgradcheck`: derivatives held against finite differences, and what else is asked of a backward.

`jacobians` finds them by differences, backward and forward; `comparison` holds them against each other, whole or by
random projections; `behaviour` checks the rest. Inputs are changed in place, and put back, and the function is called
with the very tensors it was given: programs may close over them.
"""

from .entry import gradcheck, gradgradcheck
from .jacobians import GradcheckError

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

"""Checks of derivatives: `check_grads` for functions, and the laws that hold of every primitive.

`check_primitive` runs all laws on a primitive of one's own. The laws are loaded when first asked for, since
`import fgrad` reaches `check_grads`. Of the rest of fgrad only `fgrad.extend` imports this package, for what
`fgrad.compat.gradcheck` shares with it: differences, and the search for the worst entry.
"""

from typing import Any

from fgrad.check.differences import numerical_jvp
from fgrad.check.grads import check_grads

_OF_LAWS = (
    "LAWS",
    "check_adjoint",
    "check_batched_derivative",
    "check_batching",
    "check_jit",
    "check_layout",
    "check_primitive",
    "check_program",
    "check_pull_override",
    "check_push",
    "check_saved_set",
    "check_second_order",
    "check_transpose_twice",
    "check_type_rule",
)

__all__ = [*_OF_LAWS, "check_grads", "numerical_jvp"]


def __getattr__(name: str) -> Any:
    if name not in _OF_LAWS:
        raise AttributeError(f"module 'fgrad.check' has no attribute '{name}'")
    from fgrad.check import laws

    return getattr(laws, name)

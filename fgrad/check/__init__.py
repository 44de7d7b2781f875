"""Checks of derivatives: `check_grads` for functions, and the laws that hold of every primitive.

`check_primitive` runs all laws on a primitive of one's own. Nothing here is imported by the rest of fgrad.
"""

from fgrad.check.grads import check_grads, numerical_jvp
from fgrad.check.laws import (
    LAWS,
    check_adjoint,
    check_batched_derivative,
    check_batching,
    check_jit,
    check_layout,
    check_primitive,
    check_program,
    check_pull_override,
    check_push,
    check_saved_set,
    check_second_order,
    check_transpose_twice,
    check_type_rule,
)

__all__ = [
    "LAWS",
    "check_adjoint",
    "check_batched_derivative",
    "check_batching",
    "check_grads",
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
    "numerical_jvp",
]

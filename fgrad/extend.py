"""The public extension API: what one needs to add a primitive, an interpreter, or a layer such as `fgrad.compat`.

Declare a primitive with a kind (`elementwise`, `linear`, `bilinear`, `differential`, `composite`, `constant`); its
derivatives, batching and tracing follow. Write an `Interpreter` to give all primitives another meaning. The transforms
are here for layers that offer them under other names.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from fgrad import forks
from fgrad.check.differences import two_point
from fgrad.check.grads import worst as worst_entry
from fgrad.core import (
    TABLE,
    ArrayType,
    Interpreter,
    Params,
    Primitive,
    Tracer,
    function_table,
    held,
    on_gpu,
    probe_providers,
    raise_leaked,
    recover,
    state,
    type_of,
    ufunc_method_table,
    ufunc_table,
)
from fgrad.kinds import Gate, bilinear, composite, constant, differential, elementwise, gate, linear, structured
from fgrad.nonfinite import counterpart, entry, first_bad
from fgrad.plans import Plan, expand_to, plan_for, recover_rule, sum_to, zeros
from fgrad.source import user_frame, user_line
from fgrad.transforms.jacobian import jacfwd, jacrev
from fgrad.transforms.jvp import Forward, jvp
from fgrad.transforms.linearize import Linearize, elementwise_types, grad, kept_types, value_and_grad, vjp
from fgrad.transforms.pushforward import linearize
from fgrad.transforms.transpose import transpose_rule
from fgrad.transforms.vmap import Batch, vmap

if _TYPE_CHECKING:
    from fgrad import profiler
    from fgrad.drawing.abstract import pulled_types
    from fgrad.drawing.picture import Picture
    from fgrad.drawing.steps import SavedValue, Step
    from fgrad.scipy import special
    from fgrad.triton_kernels.interop import has_gpu, put
    from fgrad.triton_kernels.runtime import gpu_home, home_of

_LATE = {
    "Picture": "drawing.picture",
    "SavedValue": "drawing.steps",
    "Step": "drawing.steps",
    "gpu_home": "triton_kernels.runtime",
    "has_gpu": "triton_kernels.interop",
    "home_of": "triton_kernels.runtime",
    "pulled_types": "drawing.abstract",
    "put": "triton_kernels.interop",
}
"""What is loaded when it is first asked for, and the module that has it."""


def __getattr__(name: str) -> object:
    """Load what few layers need when it is first asked for."""
    if name == "profiler":
        return _import_module("fgrad.profiler")
    if name == "special":
        return _import_module("fgrad.scipy.special")
    if name in _LATE:
        return getattr(_import_module(f"fgrad.{_LATE[name]}"), name)
    raise AttributeError(f"module 'fgrad.extend' has no attribute '{name}'")


__all__ = [
    "TABLE",
    "ArrayType",
    "Batch",
    "Forward",
    "Gate",
    "Interpreter",
    "Linearize",
    "Params",
    "Picture",
    "Plan",
    "Primitive",
    "SavedValue",
    "Step",
    "Tracer",
    "bilinear",
    "composite",
    "constant",
    "counterpart",
    "differential",
    "elementwise",
    "elementwise_types",
    "entry",
    "expand_to",
    "first_bad",
    "forks",
    "function_table",
    "gate",
    "gpu_home",
    "grad",
    "has_gpu",
    "held",
    "home_of",
    "jacfwd",
    "jacrev",
    "jvp",
    "kept_types",
    "linear",
    "linearize",
    "on_gpu",
    "plan_for",
    "probe_providers",
    "profiler",
    "pulled_types",
    "put",
    "raise_leaked",
    "recover",
    "recover_rule",
    "special",
    "state",
    "structured",
    "sum_to",
    "transpose_rule",
    "two_point",
    "type_of",
    "ufunc_method_table",
    "ufunc_table",
    "user_frame",
    "user_line",
    "value_and_grad",
    "vjp",
    "vmap",
    "worst_entry",
    "zeros",
]

"""Differentiate array programs: functional transforms over NumPy, an imperative layer, and Triton kernels.

The names and their meaning are JAX's; arrays are NumPy's. `fgrad.numpy` has NumPy's functions, `fgrad.lax` control
flow, `fgrad.random` random numbers, `fgrad.scipy` SciPy's functions and solvers, `fgrad.compat` the API of
`torch.autograd`, `fgrad.triton_kernels` kernels.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from fgrad import errors, numpy, ops, tree
from fgrad.core import Array
from fgrad.source import named_call, named_scope
from fgrad.transforms.checkpoint import checkpoint, checkpoint_name, checkpoint_policies
from fgrad.transforms.custom_jvp import custom_jvp
from fgrad.transforms.custom_vjp import custom_gradient, custom_vjp
from fgrad.transforms.jacobian import hessian, hvp, jacfwd, jacrev, linear_transpose
from fgrad.transforms.jit import ShapeDtypeStruct, disable_jit, eval_shape, jit, make_ir
from fgrad.transforms.jvp import jvp
from fgrad.transforms.linearize import float0, grad, value_and_grad, vjp
from fgrad.transforms.pushforward import linearize
from fgrad.transforms.stop import stop_gradient
from fgrad.transforms.vmap import vmap

jacobian = jacrev
remat = checkpoint

if _TYPE_CHECKING:
    from fgrad import config, flatten_util, kernels, lax, nn, random, scipy
    from fgrad.check import check_grads
    from fgrad.debug import debug_nans
    from fgrad.drawing.picture import draw
    from fgrad.interop import device_put, to_numpy
    from fgrad.kernel_call import triton_call
    from fgrad.kernel_pair import kernel_op
    from fgrad.lax import fixed_point
    from fgrad.profiler import profile, record_function
    from fgrad.sparse import sparse_hessian, sparse_jacobian
    from fgrad.transforms.callback import pure_callback
    from fgrad.transforms.closure import closure_convert, ensure_compile_time_eval


_LATE = {
    "check_grads": "check",
    "closure_convert": "transforms.closure",
    "debug_nans": "debug",
    "device_put": "interop",
    "draw": "drawing.picture",
    "ensure_compile_time_eval": "transforms.closure",
    "fixed_point": "lax",
    "kernel_op": "kernel_pair",
    "profile": "profiler",
    "pure_callback": "transforms.callback",
    "record_function": "profiler",
    "sparse_hessian": "sparse",
    "sparse_jacobian": "sparse",
    "to_numpy": "interop",
    "triton_call": "kernel_call",
}
"""What many programs do without, and the module that it is loaded from when it is first asked for."""

_LATE_MODULES = ("config", "flatten_util", "kernels", "lax", "nn", "random", "scipy")


def __getattr__(name: str) -> object:
    if name in _LATE_MODULES:
        return _import_module(f"fgrad.{name}")
    if name in _LATE:
        return getattr(_import_module(f"fgrad.{_LATE[name]}"), name)
    if name == "__version__":  # stands in pyproject.toml alone
        return _import_module("importlib.metadata").version("fgrad")
    raise AttributeError(f"module 'fgrad' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Array",
    "ShapeDtypeStruct",
    "check_grads",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "closure_convert",
    "config",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "device_put",
    "debug_nans",
    "disable_jit",
    "draw",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "fixed_point",
    "flatten_util",
    "float0",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "kernel_op",
    "kernels",
    "lax",
    "nn",
    "named_call",
    "named_scope",
    "numpy",
    "linear_transpose",
    "linearize",
    "make_ir",
    "ops",
    "profile",
    "pure_callback",
    "random",
    "record_function",
    "remat",
    "scipy",
    "sparse_hessian",
    "sparse_jacobian",
    "stop_gradient",
    "to_numpy",
    "tree",
    "triton_call",
    "value_and_grad",
    "vjp",
    "vmap",
]

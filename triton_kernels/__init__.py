"""Triton kernels, their runtime and their checks; knows nothing of differentiation.

One module a kernel family (`cross_entropy`, …), each with the `@triton.jit` kernels and plain functions over them. To
write one of your own: `interpret` runs a kernel on NumPy arrays without a GPU, `compile_kernel` builds it for named
targets without one. Importing this package loads no Triton: the first use does.
"""

import importlib

_HOMES = {
    "interpret": ".twin",
    "KernelAssertion": ".twin",
    "KernelMemoryError": ".twin",
    "check_kernel": ".check",
    "check_call": ".check",
    "require_clean": ".check",
    "Finding": ".check",
    "KernelDefect": ".check",
    "benchmark": ".timing",
    "tuning": ".tune",
    "compile_kernel": ".compile",
    "compile_call": ".compile",
}
_FAMILIES = (
    "activation",
    "attention",
    "cross_entropy",
    "dropout",
    "embedding",
    "layout",
    "linear_cross_entropy",
    "matmul",
    "norm",
    "optimizer",
    "reduction",
    "rope",
    "softmax",
)
_TOOLS = ("check", "compile", "interop", "native", "runtime", "tiling", "twin")

__all__ = [*_HOMES, *_FAMILIES, *_TOOLS]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_HOMES.get(name, f".{name}"), __name__)
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "triton":
            raise ImportError(
                f"fgrad.triton_kernels.{name} needs Triton: pip install 'fgrad[triton]' (wheels exist for Linux alone)"
            ) from error
        raise
    return getattr(module, name) if name in _HOMES else module


def __dir__():
    return sorted(__all__)

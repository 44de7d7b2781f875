"""The one file that touches Triton's own names beyond its public language.

Turns a `@triton.jit` kernel into the compiler's first intermediate representation (TTIR, as text) or into machine code,
for a named target, with no GPU and no torch. What a new Triton release changes is mended here. Tested with 3.6 to 3.9.
"""

import re
import subprocess
import tempfile
import threading

from triton import JITFunction, knobs
from triton import __version__ as version
from triton import compile as triton_compile
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend
from triton.runtime import Autotuner, Heuristics
from triton.runtime import driver as triton_driver

__all__ = [
    "LAUNCH_OPTIONS",
    "configurations",
    "disassemble",
    "fixed_names",
    "gpu_target",
    "is_tuned",
    "make_driver",
    "parameters",
    "set_driver",
    "source_key",
    "to_binary",
    "to_ttir",
    "untuned",
    "version",
]

# The frontend keeps process-wide state while it walks a kernel's source.
_frontend_lock = threading.RLock()

# What a launch may pass beside the kernel's own parameters; anything else is a misspelt argument.
LAUNCH_OPTIONS = frozenset(
    "num_warps num_stages num_ctas maxnreg enable_fp_fusion launch_pdl launch_cooperative_grid "
    "waves_per_eu matrix_instr_nonkdim kpack".split()
)


def gpu_target(name):
    """Return Triton's target for a name such as "sm_90" or "gfx942".

    Raises:
        ValueError: the name is neither `sm_<number>` nor `gfx<version>`.
    """
    if match := re.fullmatch(r"sm_?(\d+)a?", name):
        return GPUTarget("cuda", int(match[1]), 32)
    if re.fullmatch(r"gfx(9\w+)", name):
        return GPUTarget("hip", name, 64)
    if re.fullmatch(r"gfx(1\w+)", name):
        return GPUTarget("hip", name, 32)
    raise ValueError(f"target: got {name!r}, expected a name such as 'sm_90' or 'gfx942'")


def untuned(kernel, arguments, meta, choose=None):
    """Peel autotune and heuristics off a kernel; return the jitted function and meta with what they add.

    Args:
        kernel, arguments, meta: a launch.
        choose: `choose(autotuner, arguments by name)` returns a configuration out of `configurations`. The first stands
            for all if None: configurations may change the speed of a kernel, not its values.
    """
    meta = dict(meta)
    while not isinstance(kernel, JITFunction):
        named = {**dict(zip(getattr(kernel, "arg_names", ()), arguments)), **meta}
        if isinstance(kernel, Heuristics):
            for name, rule in kernel.values.items():
                meta[name] = rule({**named, **meta})
        elif isinstance(kernel, Autotuner):
            config = choose(kernel, named) if choose else _options(kernel.configs[0])
            meta = {**config, **meta}
        else:
            raise TypeError(f"kernel: got {type(kernel).__name__}, expected a function decorated with @triton.jit")
        kernel = kernel.fn
    return kernel, meta


def is_tuned(kernel):
    """Say whether autotune or heuristics decorate a kernel."""
    return not isinstance(kernel, JITFunction)


def configurations(tuner, named):
    """Return the configurations of an autotuner, for arguments by name, as dicts of arguments and compile options.

    Raises:
        NotImplementedError: a configuration has a hook of its own.
    """
    tuner.nargs = {name: value for name, value in named.items() if name in tuner.arg_names}
    options = {name: value for name, value in named.items() if name not in tuner.nargs}
    configs = tuner.prune_configs(options)
    if any(config.pre_hook for config in configs):
        raise NotImplementedError("a configuration with a pre_hook: launch with kernel[grid], see `native`")
    return [_options(config) for config in configs]


def _options(config):
    return {name: value for name, value in config.all_kwargs().items() if name != "ir_override"}


def source_key(kernel):
    """Return a hash of the source of a kernel, tuned or not, and of all it calls."""
    while not isinstance(kernel, JITFunction):
        kernel = kernel.fn
    return kernel.cache_key


def parameters(kernel):
    """Return [(name, is a constexpr, default or None)] of a jitted function, in order."""
    empty = kernel.signature.empty
    return [
        (param.name, param.is_constexpr, None if param.default is empty else param.default) for param in kernel.params
    ]


def fixed_names(kernel):
    """Return the parameters of a kernel, tuned or not, in order: each name, or None where it is a run-time value."""
    while not isinstance(kernel, JITFunction):
        kernel = kernel.fn
    return tuple(param.name if param.is_constexpr else None for param in kernel.params)


def to_ttir(kernel, signature, constexprs, target, options):
    """Return the kernel's TTIR as text, before any optimisation.

    Args:
        kernel: a jitted function.
        signature: parameter name to type name ("*bf16", "i32", "constexpr", …).
        constexprs: parameter path to compile-time value.
        target: a name `gpu_target` knows; the frontend picks libdevice symbols and limits by it.
        options: compile options of the target's backend.
    """
    device = gpu_target(target)
    backend = make_backend(device)
    parsed = backend.parse_options(dict(options))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    with _frontend_lock:
        module = ASTSource(kernel, signature, constexprs).make_ir(
            device, parsed, backend.get_codegen_implementation(parsed), backend.get_module_map(), context
        )
        return str(module)


def to_binary(kernel, signature, constexprs, target, options, attributes=None):
    """Compile a kernel for a target and return Triton's compiled kernel (`asm`, `metadata`); needs no GPU."""
    with _frontend_lock:
        return triton_compile(
            ASTSource(kernel, signature, constexprs, attributes), target=gpu_target(target), options=dict(options)
        )


def disassemble(cubin):
    """Return a CUDA binary's resource usage and instructions as text, by the disassembler in Triton's wheel."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "-res-usage", "-sass", file.name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_driver(home, benchmark):
    """Return Triton's CUDA driver object with devices, streams and benchmarks taken from a home, and no torch.

    Args:
        home: what has `current_device()`, `set_device(number)`, `stream()`, `capability(number)` and `flush_buffer()`.
        benchmark: `benchmark(call, quantiles=…)`, for `triton.autotune`.
    """
    from triton.backends.nvidia import driver as nvidia

    class HomeDriver(nvidia.CudaDriver):
        """Leaves out the base's constructor, which asks torch in Triton 3.6 and 3.7."""

        def __init__(self):
            self.utils = nvidia.CudaUtils()
            self.launcher_cls = nvidia.CudaLauncher
            self.get_current_device = home.current_device
            self.set_current_device = home.set_device
            self.get_device_capability = home.capability
            self.get_current_stream = lambda device: home.stream()

        @staticmethod
        def is_active():
            return True

        def get_benchmarker(self):
            return benchmark

        def get_empty_cache_for_benchmark(self):
            return home.flush_buffer()

        def clear_cache(self, cache):
            cache.zero_()

    return HomeDriver()


def set_driver(driver):
    """Make a driver object the one that `kernel[grid]` uses."""
    triton_driver.set_active(driver)

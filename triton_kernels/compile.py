"""Compiles kernels for named GPUs with no GPU at hand, and reports what the machine code needs and uses.

A compiled kernel may still not launch: `Report.problems` holds it against the target's limits. The number of kernel
parameters is checked on every compilation, since launching depends on it.
"""

import functools
import hashlib
import math
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from . import toolchain
from .runtime import launching
from .signature import TYPE_NAMES, bind
from .store import remembered

# Every Triton release tested passes two scratch pointers behind the kernel's own arguments.
HIDDEN_ARGUMENTS = 2

_TYPES = {*TYPE_NAMES.values(), "u1", "constexpr"}

# Part of the key of stored reports, so that none outlives the code that made it.
_REPORT_FORMAT = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


class AbiError(Exception):
    """The compiler passes other parameters than a launch would give; launching would read wrong values.

    See docs/errors.md#abierror.
    """


@dataclass(frozen=True)
class Limits:
    """What one multiprocessor of a target offers.

    Sources: CUDA C++ Programming Guide, table of compute capabilities; AMD CDNA3 and CDNA4 instruction set guides.
    """

    threads: int
    shared_bytes: int
    shared_bytes_in_all: int
    registers: int
    warps: int


LIMITS = {
    "sm_80": Limits(1024, 163 << 10, 164 << 10, 65536, 64),
    "sm_90": Limits(1024, 227 << 10, 228 << 10, 65536, 64),
    "sm_100": Limits(1024, 227 << 10, 228 << 10, 65536, 64),
    "gfx942": Limits(1024, 64 << 10, 64 << 10, 4 * 512 * 64, 32),
    "gfx950": Limits(1024, 160 << 10, 160 << 10, 4 * 512 * 64, 32),
}


@dataclass(frozen=True)
class Report:
    """What a kernel compiled for one target needs.

    registers: 32-bit registers of one thread. spill_bytes: local memory of one thread. shared_bytes: shared memory of a
    program. threads: threads of a program. load_bits, store_bits: widest access to global memory. tensor_cores: names
    of the matrix instructions. local_accesses: instructions that touch spilled values. parameters: parameters the
    binary takes. occupancy: share of a multiprocessor's warps that fit at once. problems: why it cannot launch.
    """

    target: str
    registers: int
    spill_bytes: int
    shared_bytes: int
    threads: int
    load_bits: int
    store_bits: int
    tensor_cores: tuple
    local_accesses: int
    parameters: int
    occupancy: float = 0.0
    problems: tuple = ()


def compile_kernel(kernel, signature, constexprs=None, targets=tuple(LIMITS), *, enable_fp_fusion=True, **options):
    """Compile a kernel for each target and report on the machine code; needs no GPU and no torch.

    Args:
        kernel: a `@triton.jit` function.
        signature: parameter name to type, as in "*bf16", "i32", "fp32". Pointers are taken as 16-byte aligned unless
            "*bf16:1" says they are not; "i32:16" says that a number is a multiple of 16.
        constexprs: parameter name to compile-time value.
        targets: names out of `LIMITS`.
        enable_fp_fusion: let the compiler contract a * b + c; given always, as Triton's own default changes with 3.10.
        **options: num_warps, num_stages and what else the backend takes.

    Returns:
        A dict from target to `Report`.

    Raises:
        AbiError: the binary takes other parameters than the signature says.
        ValueError: an unknown target, parameter or type.

    >>> from fgrad.triton_kernels import compile_kernel
    >>> from fgrad.triton_kernels.tiling import fill_kernel
    >>> signature = {"out": "*fp32", "size": "i32:16", "value": "fp32"}
    >>> report = compile_kernel(fill_kernel, signature, {"BLOCK": 1024}, ["sm_90"])["sm_90"]
    >>> report.store_bits, report.spill_bytes, report.problems
    (128, 0, ())
    """
    types, fixed, attributes = _compiler_input(kernel, signature, constexprs or {})
    return _compile(kernel, types, fixed, attributes, targets, {"enable_fp_fusion": enable_fp_fusion, **options})


def compile_call(function, *args, targets=tuple(LIMITS), **kwargs):
    """Compile what a function launches, with the very types and options of its launches; nothing runs.

    Args:
        function: a function that launches kernels, such as `cross_entropy_forward`. What it returns is not defined.
        *args, **kwargs: its arguments; NumPy arrays do, of any size, since they are not touched.
        targets: names out of `LIMITS`.

    Returns:
        A dict from kernel name to a dict from target to `Report`, in launch order.

    Raises:
        AbiError: a binary takes other parameters than the launch gives.

    >>> import numpy as np
    >>> from fgrad.triton_kernels import compile_call, cross_entropy
    >>> logits, labels = np.empty((8, 1000), np.float16), np.zeros(8, np.int64)
    >>> reports = compile_call(cross_entropy.cross_entropy_forward, logits, labels, targets=["sm_90"])
    >>> reports["forward_kernel"]["sm_90"].spill_bytes
    0
    """
    launches = []
    with launching(launches.append):
        function(*args, **kwargs)
    return {launch.kernel.__name__: compile_launch(launch, targets) for launch in launches}


def compile_launch(launch, targets=tuple(LIMITS)):
    """Compile the kernel of a `Launch` as it would be launched; return a dict from target to `Report`."""
    kernel, meta = toolchain.untuned(launch.kernel, launch.args, launch.meta)
    bound = bind(toolchain.parameters(kernel), launch.args, meta, toolchain.LAUNCH_OPTIONS)
    options = {name: value for name, value in meta.items() if name in toolchain.LAUNCH_OPTIONS}
    attributes = {path: [["tt.divisibility", 16]] for path in bound.aligned}
    return _compile(kernel, bound.types, bound.constexprs, attributes, targets, options)


def _compile(kernel, types, fixed, attributes, targets, options):
    unknown = set(targets) - set(LIMITS)
    if unknown:
        raise ValueError(f"targets: got {sorted(unknown)}, expected names out of {sorted(LIMITS)}")
    options = {"num_warps": 4, "enable_fp_fusion": True, **options}
    reports = {}
    for target in targets:
        binary = toolchain.to_binary(kernel, types, fixed, target, options, attributes)
        report = Report(**remembered(f"{_REPORT_FORMAT}-{binary.hash}", functools.partial(_measure, binary, target)))
        _check_abi(report, _count(types.values()))
        reports[target] = _judged(report, LIMITS[target], binary.metadata.target.warp_size)
    return reports


def _count(types):
    """Return how many run-time parameters type names stand for; a host descriptor passes its sizes beside itself."""
    total = 0
    for kind in types:
        if isinstance(kind, tuple):
            total += _count(kind)
        elif kind != "constexpr":
            total += 1
    return total


def _compiler_input(kernel, signature, constexprs):
    """Return parameter types, compile-time values and alignment attributes as the compiler takes them."""
    names = [name for name, _, _ in toolchain.parameters(kernel)]
    unknown = (set(signature) | set(constexprs)) - set(names)
    missing = set(names) - set(signature) - set(constexprs)
    if unknown or missing:
        raise ValueError(f"signature: unknown parameters {sorted(unknown)}, missing parameters {sorted(missing)}")
    types, attributes = {}, {}
    for position, name in enumerate(names):
        kind, _, divisor = str(signature.get(name, "constexpr")).partition(":")
        if kind.lstrip("*").isalnum() and kind.removeprefix("*") not in _TYPES:
            raise ValueError(f"signature: {name} has type {kind!r}, expected one of {sorted(_TYPES)}, or a * before it")
        types[name] = kind
        if divisor == "16" or (kind.startswith("*") and not divisor):
            attributes[(position,)] = [["tt.divisibility", 16]]
    return types, {(names.index(name),): value for name, value in constexprs.items()}, attributes


def _measure(binary, target):
    reader = _read_cuda if "cubin" in binary.asm else _read_amd
    threads = binary.metadata.num_warps * binary.metadata.target.warp_size
    report = Report(target=target, shared_bytes=binary.metadata.shared, threads=threads, **reader(binary.asm))
    return asdict(report)


def _read_cuda(asm):
    text = toolchain.disassemble(asm["cubin"])
    usage = dict(re.findall(r"(REG|STACK|LOCAL):(\d+)", text))
    entry = re.search(r"\.entry[^(]*\(([^)]*)\)", asm["ptx"])[1]
    return {
        "registers": int(usage["REG"]),
        "spill_bytes": int(usage["STACK"]) + int(usage["LOCAL"]),
        "load_bits": _widest(text, r"\b(?:LDG|LDGSTS)\.(\S+)"),
        "store_bits": _widest(text, r"\bSTG\.(\S+)"),
        "tensor_cores": tuple(sorted(set(re.findall(r"\b(?:HMMA|HGMMA|IMMA|QGMMA|IGMMA|DMMA|UTC\w*MMA)\b", text)))),
        "local_accesses": len(re.findall(r"\b(?:LDL|STL)\b", text)),
        "parameters": entry.count(".param"),
    }


def _widest(text, pattern):
    widths = [int(bits[1]) for modes in re.findall(pattern, text) if (bits := re.search(r"\b(64|128|256)\b", modes))]
    return max(widths, default=32 if re.search(pattern, text) else 0)


def _read_amd(asm):
    text = asm["amdgcn"]
    count = lambda name: int(re.search(rf"\.{name}:\s+(\d+)", text)[1])  # noqa: E731
    return {
        "registers": count("vgpr_count"),
        "spill_bytes": count("private_segment_fixed_size"),
        "load_bits": _widest_amd(text, "load"),
        "store_bits": _widest_amd(text, "store"),
        "tensor_cores": tuple(sorted(set(re.findall(r"\bv_mfma_\w+", text)))),
        "local_accesses": len(re.findall(r"\bscratch_(?:load|store)", text)),
        "parameters": len(re.findall(r"\.value_kind:\s+(?:global_buffer|by_value)", text)),
    }


def _widest_amd(text, action):
    found = re.findall(
        rf"\b(?:global|buffer|flat)_{action}_(?:lds_)?(dwordx\d|dword|ushort|short|ubyte|byte|b\d+)", text
    )
    sizes = {"dwordx4": 128, "dwordx3": 96, "dwordx2": 64}
    return max((sizes.get(name, 32) for name in found), default=0)


def _check_abi(report, arguments):
    if report.parameters != arguments + HIDDEN_ARGUMENTS:
        raise AbiError(
            f"{report.target}: the binary takes {report.parameters} parameters, a launch passes {arguments} arguments "
            f"and {HIDDEN_ARGUMENTS} scratch pointers; Triton {toolchain.version} changed its calling convention"
        )


def _judged(report, limits, warp_size):
    """Return the report with its occupancy, and with what keeps it from launching."""
    problems = []
    if report.threads > limits.threads:
        problems.append(f"{report.threads} threads, the limit is {limits.threads}")
    if report.shared_bytes > limits.shared_bytes:
        problems.append(f"{report.shared_bytes} bytes of shared memory, the limit is {limits.shared_bytes}")
    warps = report.threads // warp_size
    registers = warps * warp_size * 8 * math.ceil(report.registers / 8)
    if registers > limits.registers:
        problems.append(f"{report.registers} registers in each of {report.threads} threads do not fit")
    programs = min(
        limits.warps // max(1, warps),
        limits.registers // max(1, registers),
        limits.shared_bytes_in_all // max(1, report.shared_bytes),
    )
    return replace(
        report,
        tensor_cores=tuple(report.tensor_cores),
        occupancy=round(programs * warps / limits.warps, 3),
        problems=tuple(problems),
    )

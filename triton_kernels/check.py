"""Finds what is wrong with a kernel on a machine without a GPU: `check_kernel` runs it in the twin and watches.

Every access is logged, every store is undone afterwards, and the kernel runs twice with different values wherever the
hardware leaves a value undefined. So the detectors need no copies of the arguments and work on arrays of billions of
elements: `np.zeros` maps memory only where it is touched.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from . import toolchain
from .compile import compile_launch
from .runtime import Launch, launching
from .twin import Memory, interpret

_LOAD, _STORE, _ATOMIC = 0, 1, 2
_ACTIONS = ("loads", "stores", "updates atomically")
# Two bit patterns for undefined values, a large number and one far below zero in every floating type, whose squares do
# not overflow: arithmetic keeps them apart, and so do min and max. The third is NaN, which times 0 is not 0.
_PATTERNS = (0x55, 0xD3)
_NAN = 0xFF


class KernelDefect(AssertionError):
    """A checked kernel has findings. See docs/errors.md#kerneldefect."""


@dataclass(frozen=True)
class Finding:
    """One defect of a kernel.

    kind: "bounds", "race", "lanes" (one store writes two values to one element), "overflow", "assertion", "undefined"
    (a result depends on a value nothing defines), "unwritten" or "resources".
    message: what happened, in words. argument, index: the element, counted from the argument's first, where there is
    one. program: the program's index in the grid. source: "file:line".
    """

    kind: str
    message: str
    argument: str = ""
    index: int | None = None
    program: tuple = ()
    source: str = ""

    def __str__(self):
        element = f" {self.argument}[{self.index}]" if self.index is not None else ""
        program = f" in program {self.program}" if self.program else ""
        place = f" at {self.source}" if self.source else ""
        return f"{self.kind}{element}{program}{place}: {self.message}"


def check_kernel(kernel, grid, *args, outputs=(), programs=None, overflow=True, targets=(), **meta):
    """Run a kernel in the twin and return its defects; the arguments are left as they were.

    Args:
        kernel, grid, *args, **meta: as for `interpret`.
        outputs: names of array arguments the kernel must write in full, whatever they held.
        programs: indices of the programs to run instead of all, such as [(last, 0, 0)] on an array of billions of
            elements; outputs are then not held to be written in full.
        overflow: report integer arithmetic of 32 bits and less that overflows. Switch it off for kernels that mean to
            wrap around.
        targets: names such as "sm_90" to compile for, reporting what cannot launch there.

    Returns:
        A list of `Finding`, one of each kind for an argument and a source line; empty for a clean kernel.

    Raises:
        NotImplementedError: the kernel uses an operation the twin does not know.
        ValueError: `outputs` names what is no array argument, or `programs` what is not in the grid.

    >>> import numpy as np
    >>> from fgrad.triton_kernels import check_kernel
    >>> from fgrad.triton_kernels.tiling import fill_kernel
    >>> check_kernel(fill_kernel, 2, np.zeros(6, np.float32), 6, 1.0, BLOCK=4, outputs=["out"])
    []
    >>> print(check_kernel(fill_kernel, 1, np.zeros(6, np.float32), 6, 1.0, BLOCK=4, outputs=["out"])[0])
    unwritten out[4]: 2 of 6 elements are never written
    """
    launch = Launch(kernel, grid, args, meta)
    _require_arrays(launch, outputs)
    outputs = outputs if programs is None else ()
    first, second = (_run(launch, pattern, outputs, programs, overflow) for pattern in _PATTERNS)
    undefined = _undefined(first, second)
    if first.met_undefined and not undefined:
        undefined = _undefined(first, _run(launch, _NAN, outputs, programs, overflow))
    findings = [*first.findings, *_races(first.log), *undefined, *first.unwritten(outputs)]
    return [*findings, *_over_limits(launch, targets)]


def check_call(function, *args, overflow=True, targets=(), **kwargs):
    """Check every kernel a function launches, on the arguments it launches it with.

    Arrays the function makes with `empty` must be written in full by the first kernel that stores to them.

    Args:
        function: a function that launches kernels through `fgrad.triton_kernels.runtime.launch`.
        *args, **kwargs: its arguments.
        overflow, targets: as for `check_kernel`.

    Returns:
        The findings of all launches. What the function returns is discarded.

    >>> import numpy as np
    >>> from fgrad.triton_kernels import check_call, cross_entropy
    >>> check_call(cross_entropy.cross_entropy_forward, np.zeros((3, 5), np.float32), np.array([0, 4, 1]))
    []
    """
    findings = []
    unwritten = []

    def check(launch):
        outputs = [name for name, value in _named(launch) if any(value is array for array in unwritten)]
        findings.extend(
            check_kernel(
                launch.kernel,
                launch.grid,
                *launch.args,
                outputs=outputs,
                overflow=overflow,
                targets=targets,
                **launch.meta,
            )
        )
        unwritten.clear()
        interpret_regardless(launch)

    with launching(check, allocated=unwritten.append):
        function(*args, **kwargs)
    return findings


def interpret_regardless(launch):
    """Run a launch in the twin without the accesses that it could not make; the checker reports those."""
    interpret(launch.kernel, launch.grid, *launch.args, memory=_ForgivingMemory(), **launch.meta)


def require_clean(findings):
    """Raise for the findings of a check, if there are any.

    Raises:
        KernelDefect: there are findings; the message lists them.
    """
    if findings:
        raise KernelDefect("\n".join(str(finding) for finding in findings))


class _ForgivingMemory(Memory):
    """Memory that leaves out accesses outside the arguments."""

    def refuse(self, action, buffer, message, offset=None):
        pass

    def fail(self, message, source):
        pass


class _Access(NamedTuple):
    """What one operation of one program did to one argument."""

    kind: int
    buffer: object
    offsets: np.ndarray
    width: int
    program: tuple
    source: str


class _WatchedMemory(Memory):
    """Memory that logs accesses, notes violations instead of raising, and can undo every store."""

    def __init__(self, pattern):
        super().__init__()
        self.pattern = pattern
        self.met_undefined = False
        self.log = []
        self.found = {}
        self.before = []

    @property
    def findings(self):
        """Return the violations noted so far."""
        return list(self.found.values())

    def note(self, kind, message, argument="", index=None, source=""):
        """Keep the first finding of a kind for an argument and a source line."""
        finding = Finding(kind, message, argument, index, self.program, source)
        self.found.setdefault((kind, argument, source), finding)

    def refuse(self, action, buffer, message, offset=None):
        index = buffer.index_of(offset) if offset is not None else None
        self.note("bounds", f"{action} {message}", buffer.name if buffer else "", index, self.source)

    def fail(self, message, source):
        self.note("overflow" if "overflow" in message else "assertion", message, source=source)

    def undefined(self, shape, dtype):
        self.met_undefined = True
        return np.full(shape, pattern_value(self.pattern, dtype))

    def loaded(self, buffer, offsets, dtype):
        self._access(_LOAD, buffer, offsets, dtype)

    def storing(self, buffer, offsets, values):
        self._access(_STORE, buffer, offsets, values.dtype)
        self._remember(buffer, offsets, values.dtype)
        order = np.argsort(offsets, kind="stable")
        repeated = np.diff(offsets[order]) == 0
        clash = repeated & (values[order][1:] != values[order][:-1]).astype(np.bool_)
        if clash.any():
            index = buffer.index_of(offsets[order][1:][clash][0])
            self.note("lanes", "one store writes different values to this element", buffer.name, index, self.source)

    def updating(self, buffer, offsets, dtype):
        self._access(_ATOMIC, buffer, offsets, dtype)
        self._remember(buffer, np.unique(offsets), dtype)

    def _access(self, kind, buffer, offsets, dtype):
        self.log.append(_Access(kind, buffer, offsets, dtype.itemsize, self.program, self.source))

    def _remember(self, buffer, offsets, dtype):
        elements, lead = buffer.typed(dtype)
        indices = (offsets - lead) // dtype.itemsize
        self.before.append((elements, indices, elements[indices]))

    def written(self):
        """Return each argument that was written, with the byte offsets that were, in order."""
        parts = {}
        for access in self.log:
            if access.kind != _LOAD:
                parts.setdefault(access.buffer, []).append((access.offsets[:, None] + np.arange(access.width)).ravel())
        return {buffer: np.unique(np.concatenate(offsets)) for buffer, offsets in parts.items()}

    def undo(self):
        """Put back what memory held before the run."""
        for elements, indices, values in reversed(self.before):
            elements[indices] = values
        self.before.clear()

    def unwritten(self, outputs):
        """Return a finding for each output that was not written in full."""
        findings = []
        written = {buffer.name: offsets for buffer, offsets in self.written().items()}
        for buffer in self.buffers.values():
            if buffer.name not in outputs:
                continue
            missing = np.ones(len(buffer.flat), np.bool_) if buffer.inside is None else buffer.inside.copy()
            missing[written.get(buffer.name, [])] = False
            if missing.any():
                count, size = missing.sum() // buffer.dtype.itemsize, buffer.array.size
                index = buffer.index_of(np.flatnonzero(missing)[0])
                message = f"{count} of {size} elements are never written"
                findings.append(Finding("unwritten", message, buffer.name, index))
        return findings


def pattern_value(pattern, dtype):
    """Return the value of a dtype whose every byte is `pattern`."""
    if dtype == np.bool_:
        return np.bool_(pattern & 4)
    return np.frombuffer(bytes([pattern]) * dtype.itemsize, dtype)[0]


def _named(launch):
    """Return (name, value) of a launch's arguments."""
    kernel, _ = toolchain.untuned(launch.kernel, launch.args, launch.meta)
    names = [name for name, _, _ in toolchain.parameters(kernel)]
    return [*zip(names, launch.args), *launch.meta.items()]


def _require_arrays(launch, outputs):
    """Refuse names of outputs that are not those of array arguments: nothing would be held to be written."""
    arrays = {name: value for name, value in _named(launch) if isinstance(value, np.ndarray)}
    wrong = [name for name in outputs if name not in arrays]
    if wrong:
        raise ValueError(f"outputs: got {', '.join(wrong)}, expected names out of {', '.join(arrays) or 'none'}")
    for name in outputs:
        if not arrays[name].flags.writeable:
            raise ValueError(f"outputs: {name} is read-only")


def _run(launch, pattern, outputs, programs, overflow):
    """Interpret a launch, keep what it left at every address it wrote, and restore the arguments."""
    memory = _WatchedMemory(pattern)
    arrays = {name: value for name, value in _named(launch) if name in outputs}
    saved = {name: array.copy() for name, array in arrays.items()}
    for array in arrays.values():
        array[...] = pattern_value(pattern, array.dtype)
    try:
        meta = {"programs": programs, "memory": memory, "sanitize_overflow": overflow, **launch.meta}
        interpret(launch.kernel, launch.grid, *launch.args, **meta)
        memory.results = {buffer.name: (at, buffer.flat[at]) for buffer, at in memory.written().items()}
    finally:
        memory.undo()
        for name, array in arrays.items():
            array[...] = saved[name]
    return memory


def _undefined(first, second):
    """Return a finding for each argument whose results differ between runs that differ in undefined values alone."""
    findings = []
    buffers = {buffer.name: buffer for buffer in first.buffers.values()}
    for name in sorted(first.results.keys() | second.results.keys()):
        empty = (np.empty(0, np.int64), np.empty(0, np.uint8))
        (at, values), (other_at, other_values) = first.results.get(name, empty), second.results.get(name, empty)
        if len(at) == len(other_at) and (at == other_at).all():
            different = at[values != other_values]
        else:
            different = np.setxor1d(at, other_at)
        if len(different):
            index = buffers[name].index_of(different[0])
            message = "depends on a masked load without `other`, or on an element outside an array or never written"
            writer = _last_writer(first.log, name, different[0]) or _last_writer(second.log, name, different[0])
            findings.append(Finding("undefined", message, name, index, writer.program, writer.source))
    return findings


def _last_writer(log, name, offset):
    """Return the access that last wrote a byte of an argument, or None."""
    for access in reversed(log):
        if access.kind != _LOAD and access.buffer.name == name:
            behind = offset - access.offsets
            if ((behind >= 0) & (behind < access.width)).any():
                return access
    return None


def _races(log):
    """Return a finding for each argument with an element that two programs touch and at least one writes.

    Atomic accesses do not race with each other; they do with plain loads and stores.
    """
    log = _near_writes(log)
    if not log:
        return []
    unit = int(np.gcd.reduce([access.width for access in log]))
    parts = [
        (access.offsets[:, None] + access.buffer.process_low + np.arange(0, access.width, unit)).ravel()
        for access in log
    ]
    entry = np.repeat(np.arange(len(log)), [len(part) for part in parts])
    addresses = np.concatenate(parts)
    order = np.argsort(addresses, kind="stable")
    addresses, entry = addresses[order], entry[order]
    serial = {program: number for number, program in enumerate(dict.fromkeys(access.program for access in log))}
    program = np.array([serial[access.program] for access in log])[entry]
    kind = np.array([access.kind for access in log])[entry]
    starts = np.flatnonzero(np.diff(addresses, prepend=addresses[0] - 1))
    shared = np.minimum.reduceat(program, starts) != np.maximum.reduceat(program, starts)
    has = {which: np.logical_or.reduceat(kind == which, starts) for which in (_LOAD, _STORE, _ATOMIC)}
    racing = np.flatnonzero(shared & (has[_STORE] | (has[_ATOMIC] & has[_LOAD])))
    ends = np.append(starts[1:], len(addresses))
    findings = {}
    for group in racing:
        pair = _conflict([log[index] for index in entry[starts[group] : ends[group]]])
        finding = _describe_race(*pair, addresses[starts[group]])
        findings.setdefault(finding.argument, finding)
        if len(findings) == len({access.buffer.name for access in log}):
            break
    return list(findings.values())


def _near_writes(log):
    """Drop loads far from every write: read-only arguments, in the main."""
    writes = [access for access in log if access.kind != _LOAD and len(access.offsets)]
    if not writes:
        return []
    low = min(int(access.offsets.min()) + access.buffer.process_low for access in writes)
    high = max(int(access.offsets.max()) + access.buffer.process_low + access.width for access in writes)

    def near(access):
        lowest = int(access.offsets.min()) + access.buffer.process_low
        highest = int(access.offsets.max()) + access.buffer.process_low
        return lowest < high and highest >= low

    return [access for access in log if len(access.offsets) and near(access)]


def _conflict(accesses):
    """Return two accesses of different programs that may not happen in any order."""
    for writer in sorted(accesses, key=lambda access: access.kind != _STORE):
        for other in accesses:
            if writer.kind != _LOAD and other.program != writer.program and other.kind != writer.kind:
                return writer, other
    stores = [access for access in accesses if access.kind == _STORE]
    return stores[0], next(access for access in accesses if access.program != stores[0].program)


def _describe_race(one, other, address):
    buffer = one.buffer
    message = (
        f"program {one.program} {_ACTIONS[one.kind]} this element, program {other.program} {_ACTIONS[other.kind]} it"
        f"{f' at {other.source}' if other.source else ''}, and nothing orders the two"
    )
    return Finding("race", message, buffer.name, buffer.index_of(address - buffer.process_low), one.program, one.source)


def _over_limits(launch, targets):
    """Return a finding for everything that keeps a launch from running on a target."""
    if not targets:
        return []
    reports = compile_launch(launch, targets)
    return [
        Finding("resources", f"{target}: {problem}")
        for target, report in reports.items()
        for problem in report.problems
    ]

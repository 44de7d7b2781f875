"""What `op.check()` does: holds a kernel pair against its reference, finite differences, the checker and the targets.

Everything runs on the CPU, the kernels in the twin. One row of the report a question; no row is left out silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fgrad.check.differences import numerical_jvp
from fgrad.check.grads import TOLERANCE, worst
from fgrad.core import Params, type_of
from fgrad.transforms.vmap import vmap

if TYPE_CHECKING:
    from fgrad.kernel_pair import KernelOp

ENTRIES = 256
"""How many entries of a gradient are held against finite differences; more are sampled."""


class KernelCheckError(AssertionError):
    """A kernel pair does not do what it says; `report` has the rows. See docs/errors.md#kernelcheckerror."""

    def __init__(self, report: Report):
        super().__init__(f"{report.failed[0].what} failed: {report.failed[0].found}\n{report}")
        self.report = report


@dataclass(frozen=True)
class Row:
    """One question of a check, what was found, and whether that is right."""

    what: str
    found: str
    ok: bool = True


@dataclass(frozen=True)
class Report:
    """What a check found, row by row; its text is a table."""

    name: str
    rows: tuple[Row, ...]

    @property
    def failed(self) -> list[Row]:
        """The rows that failed."""
        return [row for row in self.rows if not row.ok]

    @property
    def ok(self) -> bool:
        """Whether no row failed."""
        return not self.failed

    def __str__(self) -> str:
        width = max([len(row.what) for row in self.rows], default=0)
        count = len(self.failed)
        head = f"{self.name}: {'ok' if self.ok else f'{count} of {len(self.rows)} checks failed'}"
        lines = [f"  {'ok  ' if row.ok else 'FAIL'}  {row.what:{width}}  {row.found}" for row in self.rows]
        return "\n".join([head, *lines])


def check_op(
    op: KernelOp, args: Sequence[Any], options: Params, targets: Sequence[str] | None, tolerance: float
) -> Report:
    """Run every check, print the report and return it; raise it as a KernelCheckError if a row failed."""
    for name, x in zip(op.forward.inputs, args, strict=False):
        if not isinstance(x, np.ndarray):
            raise TypeError(f"{op.__name__}.check: {name} must be a NumPy array, got {type(x).__name__}")
    from fgrad.triton_kernels import check
    from fgrad.triton_kernels.runtime import launching

    with launching(check.interpret_regardless):  # what is wrong shows in its row and keeps no other row from running
        case = _Case(op, args, options, targets, tolerance)
        checks = (_values, _gradients, _launches, _untouched, _batches, _binaries)
        rows = [row for question in checks for row in question(case)]
    report = Report(op.__name__, tuple(rows))
    if not report.ok:
        raise KernelCheckError(report)
    print(report)
    return report


class _Case:
    """A pair at its arguments: what forward and backward give, and a cotangent that has no two equal entries."""

    def __init__(
        self, op: KernelOp, args: Sequence[Any], options: Params, targets: Sequence[str] | None, tolerance: float
    ):
        self.op = op
        self.args = args
        self.options = options
        self.targets = targets
        self.tolerance = tolerance
        self.before = [x.tobytes() for x in args]
        self.wide = [x.astype(np.float64) if x.dtype.kind in "fV" else x for x in args]
        self.outs = _tuple(op.forward(*args, **options))
        self.ct = np.random.default_rng(0).standard_normal(self.outs[0].shape).astype(self.outs[0].dtype)
        self.residuals = [self.outs[k] for k in op.kept]

    def forward(self) -> Any:
        return self.op.forward.impl(*self.args, **self.options)

    def backward(self) -> Any:
        return self.op.backward(self.ct, *self.args, *self.residuals, **self.options)


def _values(case: _Case) -> Iterator[Row]:
    """Compare every output with the reference's, computed in float64."""
    want = _tuple(case.op.reference(*case.wide, **case.options))
    kinds = _tuple(case.op.forward.type_rule(*map(type_of, case.args), **case.options))
    if len(want) != len(case.outs):
        yield Row("values", f"forward returns {len(case.outs)} arrays, the reference {len(want)}", False)
        return
    for name, got, expected, kind in zip(case.op.forward.outputs, case.outs, want, kinds, strict=True):
        if type_of(got) != kind.strong():
            yield Row(f"value of {name}", f"it is of type {type_of(got)}, the reference's of {kind}", False)
            continue
        off, index = _units_off(got, np.asarray(expected))
        found = f"{off:.3g} units in the last place off, at {list(index)}"
        yield Row(f"value of {name}", found, bool(off <= case.tolerance))


def _units_off(got: Any, want: Any) -> tuple[float, tuple[int, ...]]:
    """Return the largest difference, in units of the last place at the largest value, and where it is."""
    if not got.size:
        return 0.0, ()
    if got.dtype.kind not in "fcV":
        gap = (got != want).astype(float)
    else:
        info = _info(got.dtype)
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        got, expected = got.astype(wide), want.astype(wide)
        finite = np.abs(expected[np.isfinite(expected)])
        unit = float(info.eps) * max(float(finite.max(initial=0)), float(info.tiny))
        with np.errstate(all="ignore"):
            gap = np.abs(got - expected) / unit
        gap = np.where(
            (got == expected) | (np.isnan(got) & np.isnan(expected)), 0, np.where(np.isnan(gap), np.inf, gap)
        )
    index = np.unravel_index(np.argmax(gap), gap.shape)
    return float(gap[index]), tuple(int(i) for i in index)


def _info(dtype: Any) -> Any:
    if dtype.kind == "V":  # bfloat16 and 8-bit floats
        import ml_dtypes

        return ml_dtypes.finfo(dtype)
    return np.finfo(dtype)


def _gradients(case: _Case) -> Iterator[Row]:
    """Compare entries of what backward gives with finite differences of the reference in float64."""
    cts = case.backward()
    if len(cts) != len(case.op.wrt):
        yield Row("gradient", f"backward returns {len(cts)} arrays for the {len(case.op.wrt)} inputs in wrt", False)
        return
    for i, got in zip(case.op.wrt, cts, strict=True):
        name = f"gradient by {case.op.forward.inputs[i]}"
        like = case.args[i]
        if got.shape != like.shape or got.dtype != like.dtype:
            found = f"{got.dtype}{list(got.shape)}, the input is {like.dtype}{list(like.shape)}"
            yield Row(name, found, False)
            continue
        entries = _sampled(like)
        want = np.array([_slope(case, i, index) for index in entries])
        have = np.array([got[index] for index in entries]).astype(np.float64)
        bound = _tolerance(like.dtype)
        where = worst(have, want, bound * max(1.0, float(np.abs(want).max(initial=0))), 0)
        found = f"{len(entries)} of {like.size} entries are those of finite differences"
        if where is not None:
            k = where[0]
            found = f"at {list(entries[k])} it is {have[k]:.6g}, finite differences give {want[k]:.6g}"
        yield Row(name, found, where is None)


def _tolerance(dtype: Any) -> float:
    return TOLERANCE[min(dtype.itemsize * 8, 64)] if dtype.itemsize > 1 else 0.5


def _sampled(x: Any) -> list[tuple[int, ...]]:
    """Return indices of all entries of an array, or of some drawn by chance."""
    picked = range(x.size) if x.size <= ENTRIES else np.random.default_rng(0).choice(x.size, ENTRIES, replace=False)
    return [tuple(int(j) for j in np.unravel_index(k, x.shape)) for k in picked]


def _slope(case: _Case, i: int, index: tuple[int, ...]) -> float:
    """Return the derivative of <ct, reference> by one entry of input i."""

    wide = case.wide

    def result(x: Any) -> Any:
        return _tuple(case.op.reference(*wide[:i], x, *wide[i + 1 :], **case.options))[0]

    t = np.zeros_like(wide[i])
    t[index] = 1
    pushed = numerical_jvp(result, (wide[i],), (t,))
    return float((np.asarray(pushed, np.float64) * case.ct.astype(np.float64)).sum())


def _launches(case: _Case) -> Iterator[Row]:
    """Run the checker on every launch of both functions."""
    from fgrad.triton_kernels import check
    from fgrad.triton_kernels.runtime import launching

    for name, function in (("forward", case.forward), ("backward", case.backward)):
        count = 0

        def counted(launch: Any) -> None:
            nonlocal count
            count += 1
            check.interpret_regardless(launch)

        with launching(counted):
            function()
        findings = check.check_call(function)
        found = "\n        ".join(map(str, findings)) or (f"{count} launches, nothing found" if count else "no launch")
        yield Row(f"memory, races, overflow of {name}", found, not findings)


def _untouched(case: _Case) -> Iterator[Row]:
    changed = [n for n, x, b in zip(case.op.forward.inputs, case.args, case.before, strict=True) if x.tobytes() != b]
    yield Row("inputs stay as they are", f"changed: {', '.join(changed)}" if changed else "they do", not changed)


def _batches(case: _Case) -> Iterator[Row]:
    """Compare `vmap` of both functions with one call an example."""
    stacked = [np.stack([x, x[::-1] if x.ndim else x]) for x in case.args]
    ct = np.stack([case.ct, 2 * case.ct]).astype(case.ct.dtype)
    one_by_one = [[x[k] for x in stacked] for k in range(2)]
    outs = [_tuple(case.op.forward(*xs, **case.options)) for xs in one_by_one]
    residuals = [np.stack([out[k] for out in outs]) for k in case.op.kept]
    for name, function, batch in (
        ("forward", case.op.forward, stacked),
        ("backward", case.op.backward, [ct, *stacked, *residuals]),
    ):

        def call(*xs: Any, function: Callable[..., Any] = function) -> Any:
            return function(*xs, **case.options)

        got = _tuple(vmap(call)(*batch))
        want = [
            np.stack(parts) for parts in zip(*[_tuple(call(*[x[k] for x in batch])) for k in range(2)], strict=True)
        ]
        off = max([_units_off(a, b)[0] for a, b in zip(got, want, strict=True)])
        yield Row(f"vmap of {name}", f"{off:.3g} units off a loop", bool(off <= case.tolerance))


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _binaries(case: _Case) -> Iterator[Row]:
    """Compile every kernel that is launched for every target."""
    from fgrad.triton_kernels import compile_call
    from fgrad.triton_kernels.compile import LIMITS

    targets = tuple(LIMITS) if case.targets is None else tuple(case.targets)
    for function in (case.forward, case.backward):
        for kernel, reports in compile_call(function, targets=targets).items():
            for target, report in reports.items():
                found = (
                    f"{report.registers} registers, {report.spill_bytes} bytes spilled, {report.shared_bytes} shared, "
                    f"{report.load_bits}-bit loads, occupancy {report.occupancy:.0%}"
                )
                problems = "; ".join(report.problems)
                yield Row(f"{kernel} on {target}", problems or found, not problems)

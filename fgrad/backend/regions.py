"""Regions: parts of a Program that work row by row, run in tiles that stay in cache, on several threads.

A value is a row value if it has the region's rows along its first axis and tile i of it depends on tile i of other row
values only. Elementwise work, reductions along other axes and products with small matrices keep that; a sum over the
rows is accumulated tile by tile. What comes before or after the region stays straight-line code.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fgrad.core import ArrayType, Params
from fgrad.program import Atom, Equation, Program, Var

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

TILE = 65536
"""Elements of one value in a tile: several float32 values of this size fit into a cache, and threads seldom wait."""

SMALLEST = 131072
"""Elements of the largest value below which tiles do not pay."""

_SMALL_MATRIX = 131072


class Tiled(NamedTuple):
    """How an equation works on tiles: how each operand is seen, what becomes of results, and parameters for a tile."""

    rows: tuple[bool, ...]
    mode: str
    params: Callable[[int], Params]


class Region(NamedTuple):
    """A Program cut in three; `tile(n)` gives the middle for n rows.

    `before` takes the Program's inputs and gives `shared`; `tile(n)` takes tiles of `sliced` and the whole of `whole`,
    some of which are `consts`; `after` takes the Program's inputs, `shared` and the region's results. `modes` says what
    becomes of results: "write" into rows, "add", "max" or "min" over tiles.
    """

    rows: int
    before: Program
    consts: list[tuple[Var, Any]]
    sliced: list[Var]
    whole: list[Var]
    results: list[Var]
    modes: list[str]
    tile: Callable[[int], Program]
    after: Program
    width: int


# ---------------------------------------------------------------------------------------------- rules per primitive


def _same(params: Params) -> Callable[[int], Params]:
    return lambda n: params


def _elementwise(eq: Equation, rows: int) -> Tiled | None:
    out = eq.outputs[0].type
    if not out.shape or out.shape[0] != rows:
        return None
    seen = tuple(a.type.ndim == out.ndim and a.type.shape[0] == rows for a in eq.inputs)
    if not any(seen):
        return None
    return Tiled(seen, "write", _same(eq.params))


def _reduction(eq: Equation, rows: int) -> Tiled | None:
    x = eq.inputs[0].type
    if not x.shape or x.shape[0] != rows:
        return None
    axes = eq.params["axes"]
    if 0 not in axes:
        return Tiled((True,), "write", _same(eq.params))
    mode = {"reduce_sum": "add", "reduce_max": "max", "reduce_min": "min"}.get(eq.prim.name)
    if mode is None or x.dtype.kind != "f" or x.dtype.itemsize < 4:
        return None
    return Tiled((True,), mode, _same(eq.params))


def _along(key: str) -> Callable[[Equation, int], Tiled | None]:
    """Return the rule of a primitive that works along an axis, or axes, other than the first."""

    def rule(eq: Equation, rows: int) -> Tiled | None:
        axes = eq.params[key]
        axes = axes if isinstance(axes, tuple) else (axes,)
        if 0 in axes or any(not a.type.shape or a.type.shape[0] != rows for a in eq.inputs):
            return None
        return Tiled((True,) * len(eq.inputs), "write", _same(eq.params))

    return rule


def _shaped(eq: Equation, rows: int) -> Tiled | None:
    """Reshape and broadcast: the first axis stays, or is new."""
    x, shape = eq.inputs[0].type, eq.params["shape"]
    if not shape or shape[0] != rows:
        return None
    row = bool(x.shape) and x.shape[0] == rows and (eq.prim.name == "reshape" or x.ndim == len(shape))
    if not row and eq.prim.name == "reshape":
        return None
    return Tiled((row,), "write", lambda n: {**eq.params, "shape": (n, *shape[1:])})


def _transpose(eq: Equation, rows: int) -> Tiled | None:
    if eq.params["perm"][:1] != (0,) or eq.inputs[0].type.shape[0] != rows:
        return None
    return Tiled((True,), "write", _same(eq.params))


def _slice(eq: Equation, rows: int) -> Tiled | None:
    index = eq.params["index"]
    if not index or eq.inputs[0].type.shape[0] != rows or eq.outputs[0].type.shape[0] != rows or index[0][2] < 0:
        return None
    return Tiled((True,), "write", lambda n: {"index": ((0, n, 1), *index[1:])})


def _dot(eq: Equation, rows: int) -> Tiled | None:
    x, y = eq.inputs[0].type, eq.inputs[1].type
    (xc, yc), (xb, yb) = eq.params["contract"], eq.params["batch"]
    out = eq.outputs[0].type
    lead_x, lead_y = bool(x.shape) and x.shape[0] == rows, bool(y.shape) and y.shape[0] == rows
    if xb and xb[0] == 0 and yb[0] == 0 and lead_x and lead_y:
        return Tiled((True, True), "write", _same(eq.params))
    if not xb and lead_x and 0 not in xc and y.size <= _SMALL_MATRIX and out.shape[:1] == (rows,):
        return Tiled((True, False), "write", _same(eq.params))
    paired = (0, 0) in zip(xc, yc, strict=True)
    if not xb and lead_x and lead_y and paired and out.size <= _SMALL_MATRIX and out.dtype.kind == "f":
        return Tiled((True, True), "add", _same(eq.params))
    return None


_RULES: dict[str, Callable[[Equation, int], Tiled | None]] = {
    "reduce_sum": _reduction,
    "reduce_max": _reduction,
    "reduce_min": _reduction,
    "reduce_prod": _along("axes"),
    "logsumexp": _along("axes"),
    "reduce_any": _along("axes"),
    "reduce_all": _along("axes"),
    "argmax": _along("axis"),
    "argmin": _along("axis"),
    "cumsum": _along("axis"),
    "take_along": _along("axis"),
    "concatenate": _along("axis"),
    "reshape": _shaped,
    "broadcast": _shaped,
    "transpose": _transpose,
    "slice": _slice,
    "cast": _elementwise,
    "named": _elementwise,
    "to_integer": _elementwise,
    "dot_general": _dot,
}


def tiled(eq: Equation, rows: int) -> Tiled | None:
    """Return how an equation works on tiles of `rows` rows, None if it does not."""
    rule = _RULES.get(eq.prim.name)
    if rule is not None:
        return rule(eq, rows)
    if eq.prim.kind == "elementwise" or eq.prim.declared.get("elementwise"):
        return _elementwise(eq, rows)
    return None


# ------------------------------------------------------------------------------------------------ finding a region


def find_region(program: Program) -> Region | None:
    """Return the Program cut around its best region, None if tiles would not pay."""
    rows = _best_rows(program)
    return None if rows is None else _cut(program, rows)


def _best_rows(program: Program) -> int | None:
    """Return the first-axis size with the most elementwise work, if there is enough of it."""
    work: Counter[int] = Counter()
    counts: Counter[int] = Counter()
    for eq in program.equations:
        kind = eq.outputs[0].type
        if kind.shape and kind.size >= SMALLEST and kind.shape[0] > 1 and tiled(eq, kind.shape[0]) is not None:
            work[kind.shape[0]] += kind.size
            counts[kind.shape[0]] += eq.prim.name not in ("reshape", "broadcast", "transpose")
    if not work:
        return None
    rows = max(work, key=lambda n: work[n])
    return rows if counts[rows] >= 3 else None


class _Cutter:
    """Sorts equations into before, region and after."""

    def __init__(self, program: Program, rows: int):
        self.program = program
        self.rows = rows
        self.row: set[int] = set()
        self.late: set[int] = set()
        self.before: list[Equation] = []
        self.region: list[tuple[Equation, Tiled]] = []
        self.after: list[Equation] = []
        self.accumulated: dict[int, str] = {}
        for eq in program.equations:
            self._sort(eq)

    def _sort(self, eq: Equation) -> None:
        if any(id(a) in self.late for a in eq.inputs):
            self._put_after(eq)
            return
        plan = tiled(eq, self.rows) if len(eq.outputs) == 1 else None
        uses_rows = any(id(a) in self.row for a in eq.inputs)
        fits = plan is not None and all(r or id(a) not in self.row for a, r in zip(eq.inputs, plan.rows, strict=True))
        v = eq.outputs[0]
        if plan is not None and fits and (uses_rows or (plan.mode == "write" and v.type.size >= SMALLEST)):
            self.region.append((eq, plan))
            if plan.mode == "write":
                self.row.add(id(v))
            else:
                self.accumulated[id(v)] = plan.mode
                self.late.add(id(v))
        elif uses_rows:
            self._put_after(eq)
        else:
            self.before.append(eq)

    def _put_after(self, eq: Equation) -> None:
        self.after.append(eq)
        self.late.update(id(v) for v in eq.outputs)


def _cut(program: Program, rows: int) -> Region | None:
    cutter = _Cutter(program, rows)
    if sum(eq.outputs[0].type.size >= SMALLEST for eq, _ in cutter.region) < 3:
        return None
    made = {id(eq.outputs[0]) for eq, _ in cutter.region}
    wanted = {id(a) for eq in cutter.after for a in eq.inputs} | {id(a) for a in program.outputs}
    results = [eq.outputs[0] for eq, _ in cutter.region if id(eq.outputs[0]) in wanted]
    modes = [cutter.accumulated.get(id(v), "write") for v in results]
    sliced, whole = _operands(cutter.region, made)
    early = {id(v) for eq in cutter.before for v in eq.outputs}
    used_late = {id(a) for eq in cutter.after for a in eq.inputs} | {id(a) for a in program.outputs}
    inside = {id(v) for v in (*sliced, *whole)}
    shared = [v for eq in cutter.before for v in eq.outputs if id(v) in used_late or id(v) in inside]
    before = Program(program.label, program.inputs, program.consts, cutter.before, shared)
    late_consts = [(v, x) for v, x in program.consts if id(v) in used_late]
    after = Program(program.label, [*program.inputs, *shared, *results], late_consts, cutter.after, program.outputs)
    consts = [(v, x) for v, x in program.consts if id(v) in inside]
    assert early >= {id(v) for v in shared}
    width = max(eq.outputs[0].type.size // rows for eq, _ in cutter.region if id(eq.outputs[0]) in cutter.row)
    tile = _tile_maker(program.label, cutter.region, sliced, whole, results)
    return Region(rows, before, consts, sliced, whole, results, modes, tile, after, max(width, 1))


def _operands(region: Sequence[tuple[Equation, Tiled]], made: set[int]) -> tuple[list[Var], list[Var]]:
    """Return the variables that come into the region, as tiles and as a whole (some as both)."""
    sliced: dict[int, Var] = {}
    whole: dict[int, Var] = {}
    for eq, plan in region:
        for a, row in zip(eq.inputs, plan.rows, strict=True):
            if isinstance(a, Var) and id(a) not in made:
                (sliced if row else whole)[id(a)] = a
    return list(sliced.values()), list(whole.values())


def _tile_maker(
    label: str,
    region: Sequence[tuple[Equation, Tiled]],
    sliced: Sequence[Var],
    whole: Sequence[Var],
    results: Sequence[Var],
) -> Callable[[int], Program]:
    """Return a function that makes the region's Program for a number of rows."""

    def tile(n: int) -> Program:
        as_tile = {id(v): Var(_rows_of(v.type, n)) for v in sliced}
        as_whole = {id(v): Var(v.type) for v in whole}
        made: dict[int, Var] = {}
        equations = []
        for eq, plan in region:
            v = eq.outputs[0]
            inputs: list[Atom] = []
            for a, row in zip(eq.inputs, plan.rows, strict=True):
                if not isinstance(a, Var):
                    inputs.append(a)
                else:
                    inputs.append(made.get(id(a)) or (as_tile if row else as_whole)[id(a)])
            made[id(v)] = Var(_rows_of(v.type, n) if plan.mode == "write" else v.type)
            equations.append(Equation(eq.prim, inputs, plan.params(n), [made[id(v)]], eq.source))
        inputs_in_order = [*as_tile.values(), *as_whole.values()]
        return Program(label, inputs_in_order, (), equations, [made[id(v)] for v in results])

    return tile


def _rows_of(kind: ArrayType, n: int) -> ArrayType:
    return ArrayType((n, *kind.shape[1:]), kind.dtype)


# --------------------------------------------------------------------------------------------------- running tiles

_START = {"add": 0, "max": -np.inf, "min": np.inf}
_JOIN = {"add": np.add, "max": np.maximum, "min": np.minimum}


def start_values(region: Region, given: Mapping[int, Any] = MappingProxyType({})) -> list[np.ndarray[Any, Any]]:
    """Return arrays that tiles write into, or accumulate in; those in `given` are there by their place."""
    out = []
    for k, (v, mode) in enumerate(zip(region.results, region.modes, strict=True)):
        if k in given:
            out.append(given[k])
        elif mode == "write":
            out.append(np.empty(v.type.shape, v.type.dtype))
        else:
            out.append(np.full(v.type.shape, _START[mode], v.type.dtype))
    return out


def tile_bounds(rows: int, width: int) -> list[tuple[int, int]]:
    """Return the rows of each tile, so that cores get equal shares of tiles of about `TILE` elements."""
    count = -(-rows // max(1, TILE // width))
    if count > 1:
        count = min(rows, -(-count // _cores()) * _cores())
    step = -(-rows // count)
    return [(i, min(i + step, rows)) for i in range(0, rows, step)]


def tile_rows(region: Region) -> int:
    """Return the rows of the first tile."""
    start, end = tile_bounds(region.rows, region.width)[0]
    return end - start


def run_tiles(
    region: Region,
    kernel: Callable[[int], Any],
    operands: Sequence[Any],
    given: Mapping[int, Any] = MappingProxyType({}),
) -> list[Any]:
    """Run the region's kernel over all tiles and return its results.

    Args:
        region: what runs.
        kernel: number of rows -> function of (tiles, whole operands, targets).
        operands: values of `sliced`, then of `whole`.
        given: arrays for results, by their place.
    """
    bounds = tile_bounds(region.rows, region.width)
    count = len(region.sliced)
    tiles, whole = operands[:count], operands[count:]
    results = start_values(region, given)
    workers = min(_cores(), len(bounds))
    if workers < 2:
        _run_range(region, kernel, bounds, tiles, whole, results)
        return results
    shares = [bounds[len(bounds) * k // workers : len(bounds) * (k + 1) // workers] for k in range(workers)]
    parts = [results]
    futures = []
    for share in shares[1:]:
        own = start_values(region)
        part = [r if m == "write" else o for r, o, m in zip(results, own, region.modes, strict=True)]
        parts.append(part)
        futures.append(_pool().submit(_run_range, region, kernel, share, tiles, whole, part))
    _run_range(region, kernel, shares[0], tiles, whole, results)
    for future in futures:
        future.result()
    for part in parts[1:]:  # in the order of the rows, so that sums do not depend on timing
        for r, p, mode in zip(results, part, region.modes, strict=True):
            if mode != "write":
                _JOIN[mode](r, p, out=r)
    return results


def _run_range(
    region: Region, kernel: Any, bounds: Sequence[tuple[int, int]], tiles: Any, whole: Any, results: Any
) -> None:
    for i, j in bounds:
        targets = [r[i:j] if m == "write" else r for r, m in zip(results, region.modes, strict=True)]
        kernel(j - i)(*[x[i:j] for x in tiles], *whole, *targets)


class _Pool:
    """The worker threads, started when first needed and forgotten by a forked child."""

    def __init__(self) -> None:
        self.executor: ThreadPoolExecutor | None = None
        self.lock = threading.Lock()


_workers = _Pool()


def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # only large work needs it, and it is slow to import

    with _workers.lock:
        if _workers.executor is None:
            _workers.executor = ThreadPoolExecutor(max(1, _cores() - 1), thread_name_prefix="fgrad")
        return _workers.executor


def _forget_workers() -> None:
    _workers.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

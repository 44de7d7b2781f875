"""The CPU back end: a Program becomes straight-line Python over NumPy.

Ufuncs and constants are closure cells, intermediate results go to an arena planned from liveness, matrix products go
straight to BLAS. What has no emitter runs by its own implementation. Results are fresh arrays.
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import math
import weakref
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from fgrad.backend import emit
from fgrad.backend.donation import overwritten
from fgrad.backend.loops import compile_scan
from fgrad.backend.memory import Arena, Block
from fgrad.backend.regions import Region, find_region, run_tiles, tile_rows
from fgrad.backend.scalar import scalar_source
from fgrad.backend.simplify import prepare
from fgrad.core import ArrayType
from fgrad.ops.blas import FEW, one_thread
from fgrad.ops.shape import as_slices
from fgrad.program import Atom, Equation, Literal, Program, Var

_RISKY = frozenset(
    "div reciprocal log log2 log10 log1p sqrt rsqrt cbrt pow exp exp2 expm1 cosh sinh asin acos acosh atanh rem fmod"
    " tan logsumexp erfinv lgamma digamma hypot".split()
)
"""Primitives whose values may raise floating-point warnings on finite operands; derivatives meet them anyway."""


class Place:
    """Where generated code finds a value.

    `name` is its expression; `array` is the constant or arena view, if known; `block` the arena block it lies in;
    `fresh` says that it is a local array nobody else can reach.
    """

    __slots__ = ("name", "array", "block", "fresh")

    def __init__(self, name: str, array: Any = None, block: Block | None = None, fresh: bool = False):
        self.name = name
        self.array = array
        self.block = block
        self.fresh = fresh


class Generator:
    """Writes the code of one Program; emitters (see `fgrad.backend.emit`) call its methods.

    `over` says which outputs are written over inputs: id of the output's variable -> number of the input. `lent` lets
    outputs be views of inputs, and of each other, for a caller that only reads them.
    """

    def __init__(
        self,
        program: Program,
        modes: Sequence[str] | None = None,
        owned: int = 0,
        over: Mapping[int, int] = MappingProxyType({}),
        lent: bool = False,
    ):
        self.program = program
        self.modes = modes
        self.lent = view_roots(program) if lent else {}
        self.arena = Arena()
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self.places: dict[int, Place] = {}
        self.live: list[Block] = []
        self.step = 0
        self.last = _last_uses(program)
        self.returned = {id(a) for a in program.outputs} - {*over} if modes is None else set()
        self.returned.update(id(root) for root in self.lent.values())
        self.targets: dict[int, str] = {v: f"x{k}" for v, k in over.items()}
        for k, (a, mode) in enumerate(zip(program.outputs, modes or [], strict=False)):
            if mode == "write":
                self.targets.setdefault(id(a), f"o{k}")
        self.parts = _computed_in_place(program, {*self.returned, *self.targets})
        self.wholes: dict[int, np.ndarray[Any, Any]] = {}
        self.sums = _sums_of_placed(program)
        for add, placed in self.sums.values():
            for eq in placed:
                self.last[id(eq.inputs[0])] = max(self.last[id(eq.inputs[0])], add)
        self.deferred = {id(eq) for _, placed in self.sums.values() for eq in placed}
        for k, v in enumerate(program.inputs):
            self.places[id(v)] = Place(f"x{k}", fresh=k >= len(program.inputs) - owned)
        for v, x in program.consts:
            self.places[id(v)] = Place(self.constant(x), array=x if isinstance(x, np.ndarray) else None)

    # what emitters ask

    def constant(self, value: Any) -> str:
        """Return the name that the code has for a constant."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"k{len(self.constants)}"
            self.constants[name] = value
        return name

    def place(self, a: Atom) -> Place:
        """Return where an atom is."""
        return Place(repr(a.value)) if isinstance(a, Literal) else self.places[id(a)]

    def dies(self, a: Atom) -> bool:
        """Return whether this step is the last to use a value and the block it lies in."""
        place = self.places.get(id(a))
        return place is not None and place.block is not None and place.block.last == self.step

    def is_returned(self, v: Var) -> bool:
        """Return whether a value must be a fresh array: an output of a Program that returns its outputs."""
        return id(v) in self.returned

    def has_target(self, v: Var) -> bool:
        """Return whether a value is written into an array that the caller gives."""
        return id(v) in self.targets

    def local(self, v: Var, expression: str, fresh: bool = False) -> None:
        """Let the value be a local variable."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        self.places[id(v)] = Place(name, fresh=fresh)

    def line(self, text: str) -> None:
        self.lines.append(text)

    def into(self, v: Var, reuse: Sequence[Atom] = ()) -> Place:
        """Return a place in the arena for a value: a block of `reuse` that dies now and fits, or another."""
        kind = v.type
        if id(v) in self.targets:
            self.places[id(v)] = Place(self.targets[id(v)], fresh=True)
            return self.places[id(v)]
        if id(v) in self.parts:
            return self._into_part(v, self.parts[id(v)])
        for a in reuse:
            place = self.place(a)
            if self.dies(a) and place.array is not None and _fills(place, kind) and self._alone(place, reuse):
                assert place.block is not None
                place.block.last = self.last[id(v)]
                self.places[id(v)] = Place(place.name, place.array, place.block)
                return self.places[id(v)]
        block, array = self.arena.take(kind.shape, kind.dtype, self.last[id(v)])
        self.live.append(block)
        self.places[id(v)] = Place(self.arena.view(block, array), array, block)
        return self.places[id(v)]

    def _into_part(self, v: Var, eq: Equation) -> Place:
        """Return the part, of the zeros that `eq` places a value in, that is the value's."""
        block, whole = self.arena.take_bordered(eq.outputs[0].type.shape, v.type.dtype)
        self.wholes[id(eq)] = whole
        part = whole[as_slices(eq.params["index"])]
        self.places[id(v)] = Place(self.arena.view(block, part), part, block)
        return self.places[id(v)]

    def computed_in(self, eq: Equation) -> np.ndarray[Any, Any] | None:
        """Return the array of a `place` whose operand was computed in it, None if it was computed elsewhere."""
        return self.wholes.get(id(eq))

    def placed_operands(self, eq: Equation) -> tuple[Equation, Equation] | None:
        """Return the `place` equations whose results a sum adds, if they are left to it."""
        found = self.sums.get(id(eq))
        return None if found is None else found[1]

    def is_deferred(self, eq: Equation) -> bool:
        """Return whether a `place` equation is left to the sum that needs it."""
        return id(eq) in self.deferred

    def _alone(self, place: Place, operands: Sequence[Atom]) -> bool:
        """Return whether no other operand looks at the same block through another view."""
        return all(p.block is not place.block or p.name == place.name for p in (self.place(a) for a in operands))

    def alias(self, v: Var, source: Place, array: np.ndarray[Any, Any]) -> None:
        """Let the value be a view, known now, of an arena value or a constant."""
        if source.block is None:
            self.places[id(v)] = Place(self.constant(array), array)
            return
        source.block.last = max(source.block.last, self.last[id(v)])
        self.places[id(v)] = Place(self.arena.view(source.block, array), array, source.block)

    # the whole

    def run(self) -> None:
        """Write all equations and the return."""
        for step, eq in enumerate(self.program.equations):
            self.step = step
            emitter = emit.TABLE.get(eq.prim.name, emit.elementwise)
            written = len(self.lines)
            if not emitter(self, eq):
                self._by_implementation(eq)
            self.lines[written:] = [f"{line}  # {eq.prim.name} {_short(eq.source)}" for line in self.lines[written:]]
            self.live = self.arena.release(self.step, self.live)
        if self.modes is None:
            self.lines.append(f"return [{', '.join(self._returns())}]")
        else:
            self._deliver(self.modes)

    def _deliver(self, modes: Sequence[str]) -> None:
        """Write results that are not there yet into the caller's arrays, or accumulate them."""
        joins = {"write": np.copyto, "add": np.add, "max": np.maximum, "min": np.minimum}
        for k, (a, mode) in enumerate(zip(self.program.outputs, modes, strict=True)):
            name = self.place(a).name
            if mode == "write":
                if name != f"o{k}":
                    self.line(f"{self.constant(np.copyto)}(o{k}, {name})")
            else:
                self.line(f"{self.constant(joins[mode])}(o{k}, {name}, out=o{k})")
        self.line("return None")

    def _by_implementation(self, eq: Equation) -> None:
        operands = ", ".join(self.place(a).name for a in eq.inputs)
        if eq.prim.name == "scan":
            expression = f"{self.constant(compile_scan(eq.params, Compiled))}({operands})"
        else:
            params = {key: compiled_parameter(value) for key, value in eq.params.items()}
            words = "".join(f", {key}={self.constant(value)}" for key, value in params.items())
            expression = f"{self.constant(eq.prim.impl)}({operands}{words if operands else words[2:]})"
        if not eq.prim.multiple:
            self._holding(eq)
            self.local(eq.outputs[0], expression)
            return
        names = [f"t{len(self.lines)}_{k}" for k in range(len(eq.outputs))]
        self._holding(eq)
        self.lines.append(f"{', '.join(names)}, = {expression}")
        for v, name in zip(eq.outputs, names, strict=True):
            self.places[id(v)] = Place(name)

    def _holding(self, eq: Equation) -> None:
        """Keep the blocks of operands for as long as results, which may be views of them, are used."""
        until = max(self.last[id(v)] for v in eq.outputs)
        for a in eq.inputs:
            block = self.place(a).block
            if block is not None:
                block.last = max(block.last, until)

    def _returns(self) -> list[str]:
        """Return the expressions of the outputs: a local is given away once, everything else is copied."""
        given: set[str] = set()
        out = []
        for a in self.program.outputs:
            place = self.place(a)
            if place.fresh and place.name not in given or id(a) in self.lent:
                given.add(place.name)
                out.append(place.name)
            else:
                own = own_integer if a.type.weak and a.type.dtype.kind == "i" else own_array
                out.append(f"{self.constant(own)}({place.name})")
        return out


def _short(source: str) -> str:
    """Return the user's `file:line` without the folders."""
    return source.replace("\\", "/").rpartition("/")[2]


def own_array(x: Any) -> np.ndarray[Any, Any]:
    """Return a fresh array with the value of `x`."""
    return np.array(x)


def own_integer(x: int) -> np.ndarray[Any, Any]:
    """Return a Python integer as an array of the type that it was recorded as; OverflowError if it does not fit."""
    return np.array(x, np.int64)


def _fills(place: Place, kind: ArrayType) -> bool:
    array = place.array
    return (
        array.shape == kind.shape and array.dtype == kind.dtype and array.flags.c_contiguous and not array.flags.owndata
    )


def _last_uses(program: Program) -> dict[int, int]:
    """Return the step that uses each variable last; outputs are used after all steps."""
    last: dict[int, int] = {}
    for step, eq in enumerate(program.equations):
        for v in eq.outputs:
            last[id(v)] = step
        for a in eq.inputs:
            last[id(a)] = step
    end = len(program.equations) + 1
    for a in program.outputs:
        last[id(a)] = end
    return last


_VIEWS = frozenset(("slice", "transpose", "reshape", "broadcast", "reverse"))


def view_roots(program: Program) -> dict[int, Var]:
    """Return for each output that is a view what it is a view of, by id: an input or the result of an equation."""
    made = {id(v): eq for eq in program.equations for v in eq.outputs}
    found: dict[int, Var] = {}
    for a in program.outputs:
        root: Atom = a
        while id(root) in made and made[id(root)].prim.name in _VIEWS:
            root = made[id(root)].inputs[0]
        if isinstance(root, Var) and root is not a and not root.type.weak and id(root) not in _constants(program):
            found[id(a)] = root
    return found


def _constants(program: Program) -> set[int]:
    return {id(v) for v, _ in program.consts}


_LARGEST_BORDERED = 2**20
"""Bytes up to which a placed value gets memory of its own."""


def _computed_in_place(program: Program, elsewhere: Container[int]) -> dict[int, Equation]:
    """Return which values are computed where a `place` equation wants them, by id: each with that equation.

    Those are results of single ufuncs; neither they nor the placed arrays are `elsewhere`, in arrays that are given.
    """
    made = {id(eq.outputs[0]) for eq in program.equations if eq.prim.name not in emit.TABLE and emit.ufunc_of(eq)}
    found: dict[int, Equation] = {}
    for eq in program.equations:
        if eq.prim.name != "place":
            continue
        (v,), (out,) = eq.inputs, eq.outputs
        small = out.type.size * out.type.dtype.itemsize <= _LARGEST_BORDERED
        if small and id(v) in made and id(v) not in elsewhere and id(out) not in elsewhere and v.type.size:
            found.setdefault(id(v), eq)
    return found


def _sums_of_placed(program: Program) -> dict[int, tuple[int, tuple[Equation, Equation]]]:
    """Return the sums of two large placed values that nothing else needs, by id: the step, and their equations.

    The places lie beside each other along one axis, without gaps.
    """
    uses = Counter(id(a) for eq in program.equations for a in eq.inputs)
    uses.update(id(a) for a in program.outputs)
    placed = {id(eq.outputs[0]): eq for eq in program.equations if eq.prim.name == "place"}
    found: dict[int, tuple[int, tuple[Equation, Equation]]] = {}
    for step, eq in enumerate(program.equations):
        if eq.prim.name != "add" or not all(id(a) in placed and uses[id(a)] == 1 for a in eq.inputs):
            continue
        x, y = [placed[id(a)] for a in eq.inputs]
        kind = eq.outputs[0].type
        large = kind.size * kind.dtype.itemsize > _LARGEST_BORDERED
        if large and x.outputs[0].type == y.outputs[0].type == kind and emit.shifted_axis(x, y) is not None:
            found[id(eq)] = step, (x, y)
    return found


# -------------------------------------------------------------------------------------------- compiled Programs

_NOT_FINITE = {"nan": math.nan, "inf": math.inf}  # as repr() writes them


class Compiled:
    """A Program as a function of plain arrays: `compute(*args)` returns its outputs, each a fresh array.

    An arena belongs to one running call: calls from several threads, or re-entrant ones, take arenas of their own from
    a pool. The last `owned` arguments are arrays that nobody else uses: they may be returned as they are. Results may
    be written over the arguments whose numbers are `donated`; `over` says which are. Results that are `lent` may be
    views of the arguments.
    """

    def __init__(
        self,
        program: Program,
        fast_math: bool = False,
        modes: Sequence[str] | None = None,
        owned: int = 0,
        donated: Sequence[int] = (),
        lent: bool = False,
    ):
        self.lent = lent
        self.program = prepare(program, fast_math) if modes is None else program
        self.owned = owned
        self.over = overwritten(self.program, donated)
        self.label = program.label
        self.out_types = program.out_types
        self.modes = modes
        scalar = scalar_source(self.program) if modes is None else None
        region = find_region(self.program) if modes is None and scalar is None else None
        if scalar is not None:
            self._scalar(scalar)
        elif region is not None:
            self._tiled(region)
        else:
            self._arrays()

    def _tiled(self, region: Region) -> None:
        """Run straight-line code, then the region tile by tile, then straight-line code again."""
        before, after = Compiled(region.before, lent=True), Compiled(region.after, owned=len(region.results))
        kernels: dict[int, Compiled] = {}
        constants = [x for _, x in region.consts]
        names = [*self.program.inputs, *region.before.outputs, *[v for v, _ in region.consts]]
        places = {id(v): k for k, v in enumerate(names)}
        picks = [places[id(v)] for v in (*region.sliced, *region.whole)]

        def kernel(n: int) -> Compiled:
            if n not in kernels:
                kernels[n] = Compiled(region.tile(n), modes=region.modes)
            return kernels[n]

        def compute(*args: Any) -> list[Any]:
            early = before.compute(*args)
            known = [*args, *early, *constants]
            with one_thread():
                results = run_tiles(
                    region,
                    lambda n: kernel(n).compute,
                    [known[k] for k in picks],
                    {place: args[k] for place, k in given.items()},
                )
            return after.compute(*args, *early, *results)

        self.compute = compute
        given = self._targets_of(region)
        first = kernel(tile_rows(region))
        parts = (before.source, f"# {region.rows} rows in tiles\n{first.source}", after.source)
        self.source = "\n".join([text for text in parts if len(text.splitlines()) > 4])
        self.layout = first.layout

    def _targets_of(self, region: Region) -> dict[int, int]:
        """Return which of a region's results are written over arguments: place among the results -> argument."""
        inputs = self.program.inputs
        busy = {id(v) for v in region.whole} | {id(a) for eq in region.after.equations for a in eq.inputs}
        busy.update(id(root) for root in view_roots(region.before).values())
        return {
            place: self.over[id(v)]
            for place, (v, mode) in enumerate(zip(region.results, region.modes, strict=True))
            if mode == "write" and id(v) in self.over and id(inputs[self.over[id(v)]]) not in busy
        }

    def _arrays(self) -> None:
        generator = Generator(self.program, self.modes, self.owned, self.over, self.lent)
        generator.run()
        self.layout = generator.arena.finish()
        constants, lines = generator.constants, generator.lines
        views = [v.name for v in self.layout.views]
        quiet = any(eq.prim.name in _RISKY for eq in self.program.equations)
        contexts = []
        if quiet:
            constants["errstate"] = np.errstate
            contexts.append("errstate(all='ignore')")
        if self.modes is None and wants_one_thread(self.program):
            constants["one_thread"] = one_thread
            contexts.append("one_thread()")
        body = [f"with {', '.join(contexts)}:", *["    " + line for line in lines]] if contexts else lines
        targets = [f"o{k}" for k in range(len(self.modes or ()))]
        arguments = ", ".join([*[f"x{k}" for k in range(len(self.program.inputs))], *targets])
        inner = [f"def run({arguments}):", *["    " + line for line in body], "return run"]
        self.source = f"def make({', '.join([*constants, *views])}):\n" + "".join(f"    {line}\n" for line in inner)
        make = _define(self.source, "make", dict(_NOT_FINITE), self.label)
        values = list(constants.values())
        layout = self.layout

        def build() -> Callable[..., Any]:
            return make(*values, *layout.build())  # type: ignore[no-any-return]

        pool = _Pool(build)
        self.borrowed = pool.borrowed
        self.compute = pool.compute if layout.sizes else pool.idle[0]

    def _scalar(self, source: str) -> None:
        self.source = source
        self.layout = Arena().finish()
        env = {"math": math, "array": np.array, **_NOT_FINITE}
        run = _define(source, "run", env, self.label)
        program = self.program

        def compute(*args: Any) -> list[Any]:
            try:
                return run(*args)  # type: ignore[no-any-return]
            except (OverflowError, ValueError, ZeroDivisionError):  # inf and nan as NumPy gives them
                with np.errstate(all="ignore"):
                    return [np.array(x) for x in program.compute(*args)]

        self.compute = compute

    def __repr__(self) -> str:
        return f"<compiled {self.label}: {len(self.program.equations)} equations, {sum(self.layout.sizes)} bytes>"


class _Pool:
    """Generated functions, each with an arena that no other call uses meanwhile.

    Apart from `Compiled`, which holds its methods: constants go with the last reference, not with a search for cycles.
    """

    __slots__ = ("build", "idle")

    def __init__(self, build: Callable[[], Callable[..., Any]]):
        self.build = build
        self.idle = [build()]

    def take(self) -> Callable[..., Any]:
        """Return a function that is idle, or a new one."""
        try:
            return self.idle.pop()
        except IndexError:
            return self.build()

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[Callable[..., Any]]:
        """Lend a function for many calls in a row."""
        run = self.take()
        try:
            yield run
        finally:
            self.idle.append(run)

    def compute(self, *args: Any) -> list[Any]:
        """Compute by a function for this call."""
        run = self.take()
        try:
            return run(*args)  # type: ignore[no-any-return]
        finally:
            self.idle.append(run)


def wants_one_thread(program: Program) -> bool:
    """Return whether a Program has products, and only such that are too small for several BLAS threads."""
    multiplications = [
        eq.outputs[0].type.size * math.prod([eq.inputs[0].type.shape[a] for a in eq.params["contract"][0]])
        for eq in program.equations
        if eq.prim.name == "dot_general"
    ]
    return bool(multiplications) and max(multiplications) < FEW


def compile_program(program: Program, fast_math: bool = False) -> Compiled:
    """Return the compiled form of a Program, made once per Program."""
    key = "cpu", fast_math
    compiled = program.cache.get(key)
    if compiled is None:
        compiled = program.cache[key] = Compiled(program, fast_math)
    return compiled  # type: ignore[no-any-return]


def compiled_parameter(value: Any) -> Any:
    """Return a parameter with the Programs in it compiled."""
    if isinstance(value, Program):
        return compile_program(value)
    if isinstance(value, tuple) and value and all(isinstance(p, Program) for p in value):
        return tuple(compile_program(p) for p in value)
    return value


_next_number = itertools.count(1).__next__


def _define(source: str, name: str, env: dict[str, Any], label: str) -> Any:
    """Compile a function; its source is registered, for as long as it lives, so that tracebacks show it."""
    filename = f"<fgrad {label} #{_next_number()}>"
    exec(compile(source, filename, "exec"), env)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    function = env.pop(name)  # which holds `env`
    weakref.finalize(function, linecache.cache.pop, filename, None).atexit = False
    return function

"""The intermediate representation: a straight-line, typed, printable list of equations.

`trace` turns a function into a `Program`; `run` gives it back its meaning under any interpreter; `check` verifies
types; `simplify` drops dead and repeated work. Must not import any primitive or transform.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import PYTHON_SCALARS, ArrayType, Interpreter, Params, Primitive, Tracer, state, type_of
from fgrad.placement import Placed
from fgrad.source import function_label, on_behalf_of, scope_of, user_line


class Var:
    """A value of a Program; identity is the object's."""

    __slots__ = ("type",)

    def __init__(self, type: ArrayType):
        self.type = type


class Literal:
    """A Python number written into an equation."""

    __slots__ = ("value", "type")

    def __init__(self, value: Any):
        self.value = value
        self.type = type_of(value)


Atom = Var | Literal


class Equation:
    """One application of a primitive; `source` is the user's line that made it."""

    __slots__ = ("prim", "inputs", "params", "outputs", "source")

    def __init__(self, prim: Primitive, inputs: list[Atom], params: Params, outputs: list[Var], source: str):
        self.prim = prim
        self.inputs = inputs
        self.params = params
        self.outputs = outputs
        self.source = source


class Program:
    """Inputs, constants, equations in order, outputs.

    `consts` pairs variables with the values they were captured with (arrays, or values traced by an enclosing
    transform). `cache` keeps what transforms derive from this Program, for as long as it lives. `placed` says that it
    runs on a device, and so does all that is derived from it.
    """

    __slots__ = ("label", "inputs", "consts", "equations", "outputs", "cache", "placed", "_steps")

    def __init__(
        self,
        label: str,
        inputs: Sequence[Var],
        consts: Sequence[tuple[Var, Any]],
        equations: Sequence[Equation],
        outputs: Sequence[Atom],
    ):
        self.label = label
        self.inputs = list(inputs)
        self.consts = list(consts)
        self.equations = list(equations)
        self.outputs = list(outputs)
        self.cache: dict[Any, Any] = {}
        self.placed: Placed | None = None
        self._steps: list[tuple[Any, ...]] | None = None

    @property
    def in_types(self) -> list[ArrayType]:
        return [v.type for v in self.inputs]

    @property
    def out_types(self) -> list[ArrayType]:
        return [v.type for v in self.outputs]

    def run(self, *args: Any) -> list[Any]:
        """Apply the Program to values, under the current interpreter; each value is dropped after its last use."""
        if len(args) != len(self.inputs):
            raise TypeError(f"{self.label}: the program takes {len(self.inputs)} inputs, got {len(args)}")
        steps = self._steps
        if steps is None:
            steps = self._steps = self._schedule()
        start, results = steps[0]
        slots = [*args, *start]
        for prim, reads, params, writes, drops in steps[1:]:
            out = prim(*[slots[k] if k.__class__ is int else k.value for k in reads], **params)
            if writes.__class__ is int:
                slots[writes] = out
            else:
                for k, x in zip(writes, out, strict=True):
                    slots[k] = x
            for k in drops:
                slots[k] = None
        return [slots[k] if k.__class__ is int else k.value for k in results]

    def compute(self, *args: Any) -> list[Any]:
        """Apply the Program to plain values, whatever transform is at work."""
        before = state.interpreter
        if before is None:
            return self.run(*args)
        state.interpreter = None
        try:
            return self.run(*args)
        finally:
            state.interpreter = before

    def _schedule(self) -> list[tuple[Any, ...]]:
        """Number the variables and find where each is used last."""
        number = {id(v): k for k, v in enumerate([*self.inputs, *(v for v, _ in self.consts)])}
        for eq in self.equations:
            for v in eq.outputs:
                number[id(v)] = len(number)

        def place(a: Atom) -> Literal | int:
            return a if isinstance(a, Literal) else number[id(a)]

        results = [place(a) for a in self.outputs]
        alive = {k for k in results if isinstance(k, int)}
        steps: list[tuple[Any, ...]] = []
        for eq in reversed(self.equations):
            reads = [place(a) for a in eq.inputs]
            writes = [number[id(v)] for v in eq.outputs]
            drops = [k for k in {*reads, *writes} if isinstance(k, int) and k not in alive]
            alive.update(k for k in reads if isinstance(k, int))
            steps.append((eq.prim, reads, eq.params, writes if eq.prim.multiple else writes[0], drops))
        padding: list[Any] = [None] * sum(len(eq.outputs) for eq in self.equations)
        return [([*(x for _, x in self.consts), *padding], results), *reversed(steps)]

    def check(self) -> None:
        """Raise TypeError unless every variable is defined before use and every type follows from its rule."""
        known = {id(v) for v in [*self.inputs, *(v for v, _ in self.consts)]}
        for eq in self.equations:
            for a in eq.inputs:
                if isinstance(a, Var) and id(a) not in known:
                    raise TypeError(f"{self.label}: '{eq.prim.name}' uses a value before it is defined ({eq.source})")
            wanted = eq.prim.type_rule(*[a.type for a in eq.inputs], **eq.params)
            wanted = list(wanted) if eq.prim.multiple else [wanted]
            given = [v.type for v in eq.outputs]
            if wanted != given:
                raise TypeError(f"{self.label}: '{eq.prim.name}' gives {wanted}, recorded as {given} ({eq.source})")
            known.update(id(v) for v in eq.outputs)
        for a in self.outputs:
            if isinstance(a, Var) and id(a) not in known:
                raise TypeError(f"{self.label}: an output is never defined")

    def lifted(self) -> tuple[Program, list[Any]]:
        """Return this Program with its constants as leading inputs, and the constants' values."""
        inputs = [v for v, _ in self.consts] + self.inputs
        return Program(self.label, inputs, (), self.equations, self.outputs), [x for _, x in self.consts]

    def on(self, placed: Placed | None) -> Program:
        """Return this Program, told where it runs."""
        self.placed = placed
        return self

    def simplify(self) -> Program:
        """Return an equal Program without repeated and dead equations."""
        return simplify(self)

    def __repr__(self) -> str:
        return pretty(self)

    def _repr_html_(self) -> str:
        from fgrad.drawing.tables import program_html  # the one upward import: only a notebook asks for it

        return program_html(self)


class _OnBehalf:
    """A primitive as one equation of a Program applies it: on behalf of the line that recorded it."""

    __slots__ = ("prim", "source", "multiple")

    def __init__(self, prim: Primitive, source: str):
        self.prim = prim
        self.source = source
        self.multiple = prim.multiple

    def __call__(self, *args: Any, **params: Any) -> Any:
        with on_behalf_of(self.source):
            return self.prim(*args, **params)


def attributed(program: Program) -> Program:
    """Return the Program in a form that, when run, tells interpreters the lines it was recorded from."""
    found = program.cache.get("attributed")
    if found is None:
        equations = [
            Equation(_OnBehalf(eq.prim, eq.source), eq.inputs, eq.params, eq.outputs, eq.source)  # type: ignore[arg-type]
            for eq in program.equations
        ]
        found = Program(program.label, program.inputs, program.consts, equations, program.outputs)
        program.cache["attributed"] = found
    return found


# -------------------------------------------------------------------------------------------------- tracing


class ProgramTracer(Tracer):
    """A value that stands for a variable of a Program being recorded."""

    __slots__ = ("variable",)

    def __init__(self, interpreter: Trace, var: Var):
        self.interpreter = interpreter
        self.variable = var

    @property
    def type(self) -> ArrayType:
        return self.variable.type


class Trace(Interpreter):
    """Record equations instead of computing. What does not depend on a traced value is computed at once."""

    def __init__(self, label: str):
        super().__init__(label)
        self.inputs: list[Var] = []
        self.equations: list[Equation] = []
        self.consts: list[tuple[Var, Any]] = []
        self._known: dict[int, tuple[Any, Var, Any]] = {}

    @classmethod
    def alone(cls, label: str) -> Trace:
        """Return a recorder that hands nothing to a transform at work: for Programs derived from Programs."""
        recorder = cls(label)
        recorder.parent = None
        return recorder

    def input(self, kind: ArrayType) -> ProgramTracer:
        """Return a new input of the Program."""
        var = Var(kind)
        self.inputs.append(var)
        return ProgramTracer(self, var)

    def atom(self, x: Any) -> Atom:
        """Return the variable or literal for a value met while tracing; arrays are captured as they are now."""
        if x.__class__ is ProgramTracer and x.interpreter is self:
            return x.variable
        if x.__class__ in PYTHON_SCALARS:
            return Literal(x)
        if isinstance(x, np.generic):
            x = np.asarray(x)
        known = self._known.get(id(x))
        if known is not None and (isinstance(x, Tracer) or same_array(x, known[2])):
            return known[1]
        var = Var(type_of(x))
        value = x if isinstance(x, Tracer) or not isinstance(x, np.ndarray) else frozen(x)
        self._known[id(x)] = (x, var, value)
        self.consts.append((var, value))
        return var

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        for arg in args:
            if arg.__class__ is ProgramTracer and arg.interpreter is self:
                break
        else:
            return self.pass_on(prim, args, params)
        rule = prim.rules.get(Trace)
        if rule is not None:
            return rule(self, args, params)
        return self.record(prim, args, params)

    def record(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        """Append the equation of one application and return its outputs."""
        atoms = [self.atom(x) for x in args]
        kinds = prim.type_rule(*[a.type for a in atoms], **params)
        outputs = [Var(t) for t in kinds] if prim.multiple else [Var(kinds)]
        self.equations.append(Equation(prim, atoms, params, outputs, user_line()))
        if not prim.multiple:
            return ProgramTracer(self, outputs[0])
        return tuple([ProgramTracer(self, v) for v in outputs])

    def finish(self, outputs: Iterable[Any]) -> Program:
        """Return the Program with these outputs."""
        return Program(self.label, self.inputs, self.consts, self.equations, [self.atom(x) for x in outputs])


def frozen(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy that nobody writes to, or `x` itself if it is one."""
    if x.base is None and not x.flags.writeable:
        return x
    x = np.array(x)
    x.flags.writeable = False
    return x


def same_array(x: Any, y: Any) -> bool:
    """Return whether two arrays hold the same bytes."""
    return x is y or (x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes())


class Traced:
    """A Program with the trees of its arguments and outputs."""

    __slots__ = ("program", "in_tree", "out_tree")

    def __init__(self, program: Program, in_tree: Any, out_tree: Any):
        self.program = program
        self.in_tree = in_tree
        self.out_tree = out_tree


def trace(fun: Callable[..., Any], kinds: Sequence[ArrayType], in_tree: Any, label: str | None = None) -> Traced:
    """Record `fun` for arguments of the given types.

    Args:
        fun: the function, of `(args, kwargs)` in the tree `in_tree`.
        kinds: the type of each leaf.
        in_tree: the tree of `(args, kwargs)`.
        label: what to call the Program in messages.

    Raises:
        TypeError: an output is no array or number; the message names its path.
    """
    interpreter = Trace(label or function_label("trace", fun))
    args, kwargs = tree.unflatten(in_tree, [interpreter.input(kind) for kind in kinds])
    with interpreter:
        out = fun(*args, **kwargs)
    leaves, out_tree = tree.flatten(out)
    for k, x in enumerate(leaves):
        if not (isinstance(x, Tracer) or x.__class__ in PYTHON_SCALARS or hasattr(x, "dtype")):
            path = tree.keystr(tree.leaves_with_path(out)[k][0])
            raise TypeError(
                f"{interpreter.label}: outputs must be arrays or numbers, but the output{' at ' + path if path else ''}"
                f" is {x!r} of type {type(x).__name__}"
            )
    return Traced(interpreter.finish(leaves), in_tree, out_tree)


# --------------------------------------------------------------------------------------------- simplification


def simplify(program: Program) -> Program:
    """Return an equal Program without repeated equations and without those whose results are not used."""
    return _without_dead(_without_repeats(program))


def _without_repeats(program: Program) -> Program:
    """Merge equations of the same primitive, inputs and parameters."""
    renamed: dict[int, Var] = {}
    first: dict[Any, list[Var]] = {}
    equations = []
    for eq in program.equations:
        inputs = [renamed.get(id(a), a) if isinstance(a, Var) else a for a in eq.inputs]
        key = _key(eq.prim, inputs, eq.params)
        known = first.get(key) if key is not None else None
        if known is not None:
            renamed.update((id(v), w) for v, w in zip(eq.outputs, known, strict=True))
            continue
        if key is not None:
            first[key] = eq.outputs
        equations.append(Equation(eq.prim, inputs, eq.params, eq.outputs, eq.source))
    outputs = [renamed.get(id(a), a) if isinstance(a, Var) else a for a in program.outputs]
    return Program(program.label, program.inputs, program.consts, equations, outputs)


def _key(prim: Primitive, inputs: Sequence[Atom], params: Params) -> Any:
    """Return what identifies an application, None if its parameters cannot be compared."""
    atoms = tuple((type(a.value), repr(a.value)) if isinstance(a, Literal) else id(a) for a in inputs)
    key = prim.name, atoms, tuple(params.items())
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _without_dead(program: Program) -> Program:
    """Drop equations and constants that no output depends on."""
    needed = {id(a) for a in program.outputs}
    equations = []
    for eq in reversed(program.equations):
        if any(id(v) in needed for v in eq.outputs):
            needed.update(id(a) for a in eq.inputs)
            equations.append(eq)
    consts = [(v, x) for v, x in program.consts if id(v) in needed]
    return Program(program.label, program.inputs, consts, equations[::-1], program.outputs)


# ------------------------------------------------------------------------------------------------- printing


def pretty(program: Program, indent: str = "") -> str:
    """Return a Program as text, one equation a line."""
    names: dict[int, str] = {}

    def name(a: Atom) -> str:
        if isinstance(a, Literal):
            return repr(a.value)
        if id(a) not in names:
            names[id(a)] = letters(len(names))
        return names[id(a)]

    def typed(v: Var) -> str:
        return f"{name(v)}: {v.type}"

    lines = [f"{indent}program {program.label}({', '.join(map(typed, program.inputs))})"]
    lines += [f"{indent}  const {typed(v)}" for v, _ in program.consts]
    for eq in program.equations:
        params, nested = _show_params(eq.params, indent + "    ")
        inputs = " ".join(name(a) for a in eq.inputs)
        line = f"{indent}  {', '.join(map(typed, eq.outputs))} = {eq.prim.name}{params} {inputs}".rstrip()
        scope = scope_of(eq.source)
        lines.append(f"{line}  # {scope}" if scope else line)
        lines += nested
    lines.append(f"{indent}  return {', '.join(map(name, program.outputs))}")
    return "\n".join(lines)


def _show_params(params: Params, indent: str) -> tuple[str, list[str]]:
    """Return parameters in brackets, and the text of Programs among them."""
    short, nested = [], []
    for key, value in params.items():
        programs = value if isinstance(value, tuple) else (value,)
        if programs and all(isinstance(p, Program) for p in programs):
            nested += [pretty(p, indent) for p in programs]
        elif callable(value) and not isinstance(value, type):
            short.append(f"{key}={getattr(value, '__name__', type(value).__name__)}")
        else:
            short.append(f"{key}={value}")
    return (f"[{', '.join(short)}]" if short else ""), nested


def letters(k: int) -> str:
    """Return the k-th name of a, b, …, z, aa, ab, …"""
    out = ""
    k += 1
    while k:
        k, digit = divmod(k - 1, 26)
        out = chr(ord("a") + digit) + out
    return out

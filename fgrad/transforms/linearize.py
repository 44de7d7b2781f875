"""Reverse mode: the tape, the interpreter that records it, and `vjp` and `grad`.

The tape is a graph of linear nodes. A node points to its parents only, and values point to their node, so what
nobody needs is freed at once. It is walked backwards by `pull_back` and forwards by `push_forward`, both iterative
and by creation number. This is the path of every eager gradient: what it calls is kept few and flat, and in one
file, since entering another costs time (tests/core/test_scale.py counts).
"""

from __future__ import annotations

import functools
import itertools
import operator
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import (
    OPERANDS,
    PYTHON_SCALARS,
    ArrayType,
    Interpreter,
    Params,
    Primitive,
    Tracer,
    ValueTracer,
    held,
    on_gpu,
    recover,
    state,
    type_of,
)
from fgrad.plans import Plan, Rule, plan_for, recover_rule
from fgrad.source import function_label

_new = object.__new__

# ------------------------------------------------------------------------------------------------- the tape


class Node:
    """One linear step. A leaf (an input) has no plan; `outputs` is 0 for a single output."""

    __slots__ = ("plan", "saved", "types", "params", "parents", "seq", "outputs")

    def __init__(
        self,
        plan: Plan | Step | None,
        saved: Any,
        types: tuple[ArrayType, ...] | None,
        params: Params,
        parents: tuple[Node, ...],
        seq: int,
        outputs: int = 0,
    ):
        self.plan = plan
        self.saved = saved
        self.types = types
        self.params = params
        self.parents = parents
        self.seq = seq
        self.outputs = outputs


class Step:
    """A plan that belongs to one node: a pair of closures, as structured primitives and custom rules make them."""

    __slots__ = ("pull", "push")

    def __init__(self, pull: Rule | None, push: Rule | None = None):
        self.pull = pull
        self.push = push


class Pick(Node):
    """The k-th output (`params`) of a node with several."""

    __slots__ = ()

    def __init__(self, node: Node, k: int, seq: int):
        super().__init__(_PICK, (), None, k, (node,), seq)  # type: ignore[arg-type]


_PICK = Step(None)


def leaf() -> Node:
    """Return a node that stands for an input."""
    return Node(None, (), None, {}, (), 0)


_by_seq = operator.attrgetter("seq")


def in_order(roots: Iterable[Node]) -> list[Node]:
    """Return the nodes that `roots` depend on, leaves left out, oldest first."""
    seen: set[Node] = set()
    nodes: list[Node] = []
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.plan is not None and node not in seen:
            seen.add(node)
            nodes.append(node)
            stack.extend(node.parents)
    nodes.sort(key=_by_seq)
    return nodes


def pull_back(order: Sequence[Node], cts: dict[Node, Any], once: bool = False) -> None:
    """Walk backwards: turn cotangents of outputs into cotangents of leaves, left in `cts`.

    Sums are made out of place: a cotangent may be shared with a saved value, another input or the caller. A walk that
    is the only one (`once`) lets go of what each node saved as soon as it is used.
    """
    take, find = cts.pop, cts.get
    for node in reversed(order):
        ct = take(node, None)
        if ct is None:
            continue
        plan = node.plan
        if plan is _PICK:
            main = node.parents[0]
            slots = cts.get(main)
            if slots is None:
                slots = cts[main] = [None] * main.outputs
            slots[node.params] = ct  # type: ignore[call-overload]
            continue
        try:
            pulled = plan.pull(node.saved, node.types, node.params, ct)  # type: ignore[union-attr, misc]
        except Exception:
            pulled = recover_rule(plan, plan.pull, node.saved, node.types, node.params, ct)  # type: ignore[union-attr, arg-type]
        if once:
            node.saved = ()
        parents = node.parents
        if len(parents) == 1 == len(pulled):
            parent, g = parents[0], pulled[0]
            if g is not None:
                have = find(parent)
                cts[parent] = g if have is None else have + g
            continue
        for parent, g in zip(parents, pulled, strict=True):
            if g is not None:
                have = find(parent)
                cts[parent] = g if have is None else have + g


def push_forward(order: Sequence[Node], tangents: dict[Node, Any]) -> None:
    """Walk forwards: turn tangents of leaves into tangents of every node, left in `tangents`."""
    have = tangents.get
    for node in order:
        plan = node.plan
        ts = [have(parent) for parent in node.parents]
        if plan is _PICK:
            tangents[node] = None if ts[0] is None else ts[0][node.params]  # type: ignore[call-overload]
        elif any(t is not None for t in ts):
            try:
                tangents[node] = plan.push(node.saved, node.types, node.params, ts)  # type: ignore[union-attr, misc]
            except Exception:
                tangents[node] = recover_rule(plan, plan.push, node.saved, node.types, node.params, ts)  # type: ignore[union-attr, arg-type]


# ---------------------------------------------------------------------------------------- the interpreter


class LinearTracer(ValueTracer):
    """A value and the node that says how it depends on the inputs."""

    __slots__ = ("node",)

    def __init__(self, interpreter: Linearize, value: Any, node: Node):
        self.interpreter = interpreter
        self.value = value
        self.node = node


About = str | tuple[str, Any]
"""What is being done: a label, or a transform's name and a function, of which a label is made when it is asked for."""


class Linearize(Interpreter):
    """Compute values and record the tape.

    `forward` chooses what nodes save: what a push needs, or (usual) what a pull needs.
    """

    def __init__(self, about: About, forward: bool = False):
        self.parent = state.interpreter
        self.about = about
        self.forward = forward
        self.clock: Callable[[], int] = itertools.count(1).__next__

    @property
    def label(self) -> str:  # type: ignore[override]
        """What is being done, for messages."""
        return self.about if isinstance(self.about, str) else function_label(*self.about)

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        # The way of every eager operation: what costs a call, a loop or a list is spelled out for one and two operands.
        count = len(args)
        mask = 0
        values: Sequence[Any] = args
        nodes: tuple[Node, ...] = ()
        if count == 2:
            x, y = args
            if x.__class__ is LinearTracer and x.interpreter is self:
                if y.__class__ is LinearTracer and y.interpreter is self:
                    mask, values, nodes = 3, (x.value, y.value), (x.node, y.node)
                else:
                    mask, values, nodes = 1, (x.value, y), (x.node,)
            elif y.__class__ is LinearTracer and y.interpreter is self:
                mask, values, nodes = 2, (x, y.value), (y.node,)
        elif count == 1:
            (x,) = args
            if x.__class__ is LinearTracer and x.interpreter is self:
                mask, values, nodes = 1, (x.value,), (x.node,)
        else:
            mask, values, nodes = self._split(args)
        if not mask:
            return self.pass_on(prim, args, params)
        if prim.make_plan is None or (self.forward and prim.definition is not None):
            return self._structured(prim, args, params)
        plan = (prim.push_plans if self.forward else prim.plans).get(mask)
        if plan is None or count > len(prim.inputs):
            plan = plan_for(prim, mask, count, self.forward)
        parent = self.parent
        if parent is not None:
            out = parent.process(prim, values, params)
        else:
            try:
                out = prim.impl(*values, **params) if params else prim.impl(*values)
            except Exception:
                out = recover(prim, values, params)
        active = plan.active
        if not active:
            return out
        if prim.multiple:
            return self._record_many(plan, values, nodes, mask, params, out)
        typed = plan.typed
        types: tuple[ArrayType, ...] | None = None
        if typed is None:  # elementwise_types, without its calls where all agree
            if out.__class__ is np.ndarray:
                shape, dtype = out.shape, out.dtype
                for i in active:
                    x = values[i]
                    if x.__class__ is not np.ndarray or x.dtype is not dtype or x.shape != shape:
                        types = elementwise_types(plan, values, out)
                        break
            else:
                for i in active:
                    if out.__class__ not in _NUMBERS or values[i].__class__ not in _NUMBERS:
                        types = elementwise_types(plan, values, out)
                        break
        elif typed:
            types = kept_types(plan, values, (out,))
        if len(active) != len(nodes):
            nodes = tuple(_active_nodes(plan, nodes, mask))
        saved = []
        for k in plan.saves:
            saved.append(values[k] if k >= 0 else out)
        for k in plan.foreign:
            saved[k] = private(saved[k])
        node = _new(Node)
        node.plan = plan
        node.saved = saved
        node.types = types
        node.params = params
        node.parents = nodes
        node.seq = self.clock()
        node.outputs = 0
        tracer = _new(LinearTracer)
        tracer.interpreter = self
        tracer.value = out
        tracer.node = node
        return tracer

    def _split(self, args: Sequence[Any]) -> tuple[int, list[Any], tuple[Node, ...]]:
        """Return which arguments are traced here, as a mask, the values of all, and the nodes of those."""
        mask = 0
        bit = 1
        values = []
        nodes = []
        for arg in args:
            if arg.__class__ is LinearTracer and arg.interpreter is self:
                mask |= bit
                values.append(arg.value)
                nodes.append(arg.node)
            else:
                values.append(arg)
            bit += bit
        return mask, values, tuple(nodes)

    def _record_many(
        self, plan: Plan, values: Sequence[Any], nodes: Sequence[Node], mask: int, params: Params, outs: Sequence[Any]
    ) -> Any:
        """Record a primitive of several outputs."""
        saved = [values[k] if k >= 0 else outs[~k] for k in plan.saves]
        for k in plan.foreign:
            saved[k] = private(saved[k])
        types = kept_types(plan, values, outs)
        parents = tuple(_active_nodes(plan, nodes, mask))
        return self.wrap_many(Node(plan, saved, types, params, parents, self.clock(), len(outs)), outs)

    def wrap_many(self, node: Node, outs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs of a node of several outputs as tracers; integer outputs stay plain."""
        return tuple(
            LinearTracer(self, out, Pick(node, k, self.clock())) if is_inexact(out) else out
            for k, out in enumerate(outs)
        )

    def _structured(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        rule = prim.rules.get(Linearize)
        if rule is not None:
            return rule(self, args, params)
        if prim.definition is not None:
            return prim.definition(*args, **params)
        self.missing_rule(prim)


class _Tapes(threading.local):
    """The interpreters that gradients are recorded by and tangents pushed by in this thread.

    `fgrad.debug_nans` puts ones here that also look at the values. `forward` is set by `fgrad.transforms.jvp`.
    """

    reverse: type[Linearize] = Linearize
    forward: Any


tapes = _Tapes()


def kept_types(plan: Plan, args: Sequence[Any], outs: Sequence[Any]) -> tuple[ArrayType, ...] | None:
    """Return the types a node keeps, as `plan.typed` says."""
    if plan.typed is None:
        return elementwise_types(plan, args, outs[0])
    return tuple([type_of(args[k]) if k >= 0 else type_of(outs[~k]) for k in plan.typed])


_NUMBERS = frozenset((float, np.float64))
"""What numbers are computed in: cotangents of either are of both."""


def elementwise_types(plan: Plan, args: Sequence[Any], out: Any) -> tuple[ArrayType, ...] | None:
    """Return the types of active inputs and output, or None if they all agree and nothing is to be undone."""
    if out.__class__ in _NUMBERS:
        for i in plan.active:
            if args[i].__class__ not in _NUMBERS:
                break
        else:
            return None
    elif out.__class__ is not complex:
        shape, dtype = out.shape, out.dtype
        for i in plan.active:
            x = args[i]
            if x.__class__ in (float, complex, int) or x.dtype is not dtype or x.shape != shape:
                break
        else:
            return None
    return (*[type_of(args[i]) for i in plan.active], type_of(out))


def _active_nodes(plan: Plan, nodes: Sequence[Node], mask: int) -> list[Node]:
    """Return the nodes of the inputs that are differentiated, out of those that are traced."""
    traced = [i for i in range(mask.bit_length()) if mask >> i & 1]
    return [nodes[traced.index(i)] for i in plan.active]


def private(x: Any) -> Any:
    """Return `x` if nobody can write to it, else a copy: what is saved must be what was computed with."""
    if isinstance(x, np.ndarray) and (x.flags.writeable or x.base is not None):
        return np.array(x)
    return x


def is_inexact(x: Any) -> bool:
    """Return whether `x` is of a real or complex floating type."""
    cls = x.__class__
    if cls is float or cls is complex:
        return True
    return cls is not int and cls is not bool and x.dtype.kind in "fcV" and x.dtype.itemsize > 0


# ------------------------------------------------------------------------------- arguments in, results out

float0 = np.dtype([("float0", np.void, 0)])
"""The dtype of tangents and cotangents of integers and bools: there is nothing in them."""


def check_callable(name: str, fun: Any) -> None:
    """Raise TypeError if `fun` is not callable."""
    if not callable(fun):
        raise TypeError(f"{name} expects a function as its first argument, got {fun!r} of type {type(fun).__name__}")


def as_operand(x: Any, name: str = "argument") -> Any:
    """Return `x` as an array or number that primitives take; TypeError names the argument.

    Arrays of foreign byte order become native; masked and object arrays are refused.
    """
    cls = x.__class__
    if cls is np.ndarray:
        if x.dtype.isnative and x.dtype.kind in "biufc":
            return x
    elif cls in PYTHON_SCALARS or isinstance(x, Tracer):
        return x
    elif isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"{name}: masked arrays are refused, since their masks would be lost; pass x.data and the mask apart"
        )
    elif not hasattr(x, "__array__"):
        raise TypeError(f"{name} of type {cls.__name__} is not a valid array or number: {x!r}")
    elif hasattr(x, "device") and hasattr(x, "__cuda_array_interface__"):
        return x
    x = np.asarray(x)
    if x.dtype.kind not in "biufcV" or (
        x.dtype.type is np.void and x.dtype.itemsize
    ):  # structured ones; float0 is none
        raise TypeError(f"{name}: arrays of dtype {x.dtype} cannot be differentiated or traced")
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))


def result(x: Any, seen: set[int]) -> Any:
    """Return `x` as an array that shares memory with nothing in `seen`, and enter it there."""
    if x.__class__ is np.ndarray:
        if x.base is not None or id(x) in seen or not x.flags.writeable:
            x = x.copy()
        seen.add(id(x))
        return x
    if isinstance(x, Tracer):
        return x
    if not hasattr(x, "__cuda_array_interface__"):
        return np.array(x)
    if x.base is not None or id(x) in seen:  # an array on a device stays there
        x = x.copy()
    seen.add(id(x))
    return x


def saved_buffers(order: Iterable[Node]) -> set[int]:
    """Return the ids of the arrays that own what the nodes have saved."""
    saved = [x for node in order for x in node.saved if x.__class__ is np.ndarray]
    return {id(x if x.base is None else x.base) for x in saved}


def zero_cotangent(kind: ArrayType, beside: Sequence[Any] = ()) -> Any:
    """Return the zero cotangent of an input of type `kind`: of dtype float0 for integers and bools.

    It lies on a GPU if `beside` is an array there.
    """
    if beside and kind.dtype.kind in "fcV":
        return np.zeros_like(beside[0], shape=kind.shape)
    return np.zeros(kind.shape, kind.dtype if kind.dtype.kind in "fcV" else float0)


class Recorded:
    """A function run once under `Linearize`: its inputs' nodes, its outputs, and what kind of arrays they are."""

    __slots__ = ("tape", "in_tree", "kinds", "leaves", "out", "aux")

    def __init__(
        self,
        about: About,
        fun: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        argnums: Sequence[int],
        check: Callable[[Any, str], None] | None = None,
        forward: bool = False,
    ):
        self.tape = tape = tapes.reverse(about, forward)
        self.kinds: list[ArrayType] = []
        self.leaves: list[Node] = []
        self.in_tree: list[Any] = []
        full = list(args)
        for i in argnums:
            arg = args[i]
            if arg.__class__ in OPERANDS:
                self.in_tree.append(None)
                full[i] = self._input(arg, f"argument {i}", check)
            else:
                leaves, treedef = tree.flatten(arg)
                self.in_tree.append(treedef)
                full[i] = tree.unflatten(treedef, [self._input(x, f"argument {i}", check) for x in leaves])
        state.interpreter = tape
        try:
            self.out = fun(*full, **kwargs)
        finally:
            state.interpreter = tape.parent

    def _input(self, x: Any, name: str, check: Callable[[Any, str], None] | None) -> Any:
        beside_gpu: tuple[Any, ...] = ()
        if x.__class__ is not np.ndarray or not x.dtype.isnative:
            x = as_operand(x, name)
            known = held(x)
            if on_gpu(known):
                beside_gpu = (known,)
                x = x.copy() if x is known else x
        kind = type_of(x)
        if check is not None:
            check(kind, name)
        node = Node(None, beside_gpu, None, {}, (), 0)
        self.kinds.append(kind)
        self.leaves.append(node)
        x = private(x)
        return LinearTracer(self.tape, x, node) if kind.dtype.kind in "fcV" else x

    def value(self, x: Any, seen: set[int]) -> Any:
        """Return a result of the function as the caller gets it."""
        if x.__class__ is LinearTracer and x.interpreter is self.tape:
            return result(x.value, seen)
        return x.copy() if x.__class__ is np.ndarray else x

    def node(self, x: Any) -> Node | None:
        """Return the node of a result, or None if it does not depend on the inputs."""
        return x.node if x.__class__ is LinearTracer and x.interpreter is self.tape else None

    def gather(self, cts: dict[Node, Any], seen: set[int]) -> list[Any]:
        """Return the cotangents of the inputs, per argument in its tree."""
        flat = []
        for node, kind in zip(self.leaves, self.kinds, strict=True):
            flat.append(result(cts[node], seen) if node in cts else zero_cotangent(kind, node.saved))
        return flat if self.in_tree == [None] else unflatten_each(self.in_tree, flat)


def unflatten_each(trees: Sequence[Any], flat: Sequence[Any]) -> list[Any]:
    """Split `flat` among `trees` (None for a single leaf) and rebuild each."""
    out = []
    start = 0
    for treedef in trees:
        stop = start + (1 if treedef is None else treedef.num_leaves)
        out.append(flat[start] if treedef is None else tree.unflatten(treedef, flat[start:stop]))
        start = stop
    return out


def split_aux(out: Any, name: str) -> tuple[Any, Any]:
    """Return `(out, aux)` of a function called with has_aux=True; TypeError if it is not a pair."""
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise TypeError(f"{name} with has_aux=True expects the function to return a pair (out, aux), got {out!r}")
    return out[0], out[1]


# ------------------------------------------------------------------------------------------------ vjp


class Pullback:
    """The function `vjp` returns: cotangents of the output to cotangents of the inputs.

    May be called any number of times, under any transform.
    """

    __slots__ = ("_recorded", "_order", "_nodes", "_kinds", "_out_tree")

    def __init__(self, recorded: Recorded, leaves: Sequence[Any], out_tree: Any):
        self._recorded = recorded
        self._nodes = [recorded.node(x) for x in leaves]
        self._kinds = [type_of(x) for x in leaves]
        self._out_tree = out_tree
        self._order = in_order([node for node in self._nodes if node is not None])

    def __call__(self, ct: Any) -> tuple[Any, ...]:
        leaves, treedef = tree.flatten(ct)
        if treedef != self._out_tree:
            raise ValueError(
                f"the cotangent given to a vjp function must have the tree of the output, {self._out_tree}, "
                f"got {treedef}"
            )
        cts: dict[Node, Any] = {}
        seen = set()
        for x, kind, node in zip(leaves, self._kinds, self._nodes, strict=True):
            x = check_cotangent(x, kind)
            if node is not None:
                seen.add(id(x))
                have = cts.get(node)
                cts[node] = x if have is None else have + x
        with np.errstate(all="ignore"):
            pull_back(self._order, cts)
        return tuple(self._recorded.gather(cts, seen))


def check_cotangent(ct: Any, kind: ArrayType) -> Any:
    """Return a cotangent given by the caller as an array of type `kind`; ValueError if it is of another."""
    ct = as_operand(ct, "cotangent")
    given = type_of(ct)
    if kind.dtype.kind not in "fcV":
        if given.shape != kind.shape or given.dtype != float0:
            raise ValueError(f"the cotangent of an output of type {kind} must have dtype float0, got {given}")
        return ct
    if given.shape != kind.shape or (not given.weak and given.dtype != kind.dtype):
        raise ValueError(f"the cotangent of an output of type {kind} must have that shape and dtype, got {given}")
    return np.asarray(ct, kind.dtype) if given.weak and not isinstance(ct, Tracer) else ct


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute `fun(*primals)` and return it with the function that pulls cotangents back.

    Args:
        fun: a function of arrays or pytrees.
        *primals: where to evaluate it; pytrees of arrays of any dtype.
        has_aux: `fun` returns a pair `(out, aux)`; `aux` is not differentiated.

    Returns:
        `(out, vjp_fn)` or `(out, vjp_fn, aux)`. `vjp_fn(ct)` takes a cotangent with the tree, shapes and dtypes of
        `out` and returns a tuple with the cotangent of each primal (dtype float0 for integer primals). Complex
        cotangents pair with tangents bilinearly, without a conjugate.

    Raises:
        TypeError: `fun` is not callable, or a primal is no array.
        ValueError: (from `vjp_fn`) the cotangent does not fit the output.

    Example:
        >>> import numpy as np, fgrad
        >>> out, vjp_fn = fgrad.vjp(lambda x, y: x * y, np.array([1., 2.]), np.array([3., 4.]))
        >>> vjp_fn(np.ones(2))
        (array([3., 4.]), array([1., 2.]))
    """
    check_callable("vjp", fun)
    recorded = Recorded(("vjp", fun), fun, primals, {}, range(len(primals)))
    out, aux = split_aux(recorded.out, "vjp") if has_aux else (recorded.out, None)
    leaves, out_tree = tree.flatten(out)
    leaves = [as_operand(x, "the output of the function given to vjp") for x in leaves]
    pullback = Pullback(recorded, leaves, out_tree)
    seen = saved_buffers(pullback._order)
    out = tree.unflatten(out_tree, [result(recorded.value(x, seen), seen) for x in leaves])
    if not has_aux:
        return out, pullback
    return out, pullback, tree.map(lambda x: recorded.value(x, seen), aux)


# ------------------------------------------------------------------------------------------------- grad


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes both the value of `fun` and its gradient.

    Args:
        fun: a function whose output is a scalar array of a real floating type.
        argnums: which positional arguments to differentiate; an int gives a gradient, a sequence a tuple of them;
            negative numbers count from the end. Keyword arguments pass through undifferentiated.
        has_aux: `fun` returns a pair `(value, aux)`; `aux` is any pytree and is not differentiated.
        holomorphic: promise that `fun` is holomorphic, from complex to complex; the gradient is its derivative.
        allow_int: accept integer and bool arguments; their gradients are zeros of dtype `float0`.

    Returns:
        A function with the arguments of `fun` that returns `(value, grad)`, or `((value, aux), grad)`. Gradients have
        the tree, shapes and dtypes of their arguments. For complex arguments of a real function the gradient at
        x + iy is df/dx - i df/dy.

    Raises:
        TypeError: `fun` is not callable; an argument has the wrong dtype; the output is not a real scalar.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.value_and_grad(lambda x: (x ** 2).sum())(np.array([1., 2.]))
        (array(5.), array([2., 4.]))
    """
    check_callable("value_and_grad", fun)
    return functools.wraps(fun, updated=())(_with_gradient(fun, argnums, has_aux, holomorphic, allow_int))


def _with_gradient(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, holomorphic: bool, allow_int: bool
) -> Callable[..., Any]:
    """Return the function that `value_and_grad` and `grad` are made of."""
    about = "grad", fun
    argnums = as_argnums(argnums)
    check = functools.partial(_check_input, holomorphic, allow_int)

    def value_and_grad_fun(*args: Any, **kwargs: Any) -> Any:
        numbers = (0,) if argnums == 0 and args else positions(argnums, len(args))
        recorded = Recorded(about, fun, args, kwargs, numbers, check)
        out = recorded.out
        aux = None
        if has_aux:
            out, aux = split_aux(out, "grad")
        ct = _unit_cotangent(out, holomorphic)
        node = recorded.node(out)
        cts: dict[Node, Any] = {}
        if node is not None:
            cts[node] = ct
            with np.errstate(all="ignore"):
                pull_back(in_order((node,)), cts, once=True)
        seen: set[int] = set()
        grads = recorded.gather(cts, seen)
        value = recorded.value(out, seen)
        if not isinstance(value, Tracer) and not hasattr(value, "__cuda_array_interface__"):
            value = np.asarray(value)
        if has_aux:
            value = value, tree.map(lambda x: recorded.value(x, seen), aux)
        return value, grads[0] if argnums.__class__ is int else tuple(grads)

    return value_and_grad_fun


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the gradient of `fun`.

    Takes the arguments of `value_and_grad` and raises as it does. The returned function gives the gradient, or
    `(grad, aux)` with `has_aux`.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.grad(lambda x: np.tanh(x).sum())(np.array([0., 1.]))
        array([1.        , 0.41997434])
    """
    check_callable("grad", fun)
    both = _with_gradient(fun, argnums, has_aux, holomorphic, allow_int)

    @functools.wraps(fun, updated=())
    def grad_fun(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_fun


def as_argnums(argnums: Any) -> int | tuple[int, ...]:
    """Return `argnums` as an int or a tuple of ints, NumPy's integers included; TypeError if it is neither."""
    try:
        return int(operator.index(argnums))
    except TypeError:
        pass
    try:
        return tuple([int(operator.index(n)) for n in argnums])
    except TypeError:
        raise TypeError(f"argnums must be an int or a sequence of ints, got {argnums!r}") from None


def positions(argnums: int | Sequence[int], count: int) -> Sequence[int]:
    """Return `argnums` as positions from the start.

    TypeError if arguments are missing, ValueError if a number is too low or one argument is asked for twice.
    """
    numbers = as_argnums(argnums)
    out: list[int] = []
    for n in (numbers,) if isinstance(numbers, int) else numbers:
        if not -count <= n < count:
            raise (TypeError if n > 0 else ValueError)(
                f"argnums={argnums} asks for argument {n}, but the function was called with {count} positional"
            )
        if n % count in out:
            raise ValueError(f"argnums={argnums} asks for argument {n % count} twice")
        out.append(n % count)
    return out


def _check_input(holomorphic: bool, allow_int: bool, kind: ArrayType, name: str) -> None:
    """Raise TypeError if an argument of this type cannot be differentiated by `grad`."""
    code = kind.dtype.kind
    if holomorphic:
        if code != "c":
            raise TypeError(f"grad with holomorphic=True requires complex inputs, but {name} has type {kind}")
    elif code not in "fcV" and not allow_int:
        raise TypeError(
            f"grad requires real- or complex-valued inputs (a sub-dtype of np.inexact), but {name} has type {kind}. "
            "Pass it as floats, leave it out of argnums, or set allow_int=True for a gradient of dtype float0."
        )


def _unit_cotangent(out: Any, holomorphic: bool) -> Any:
    """Return the cotangent 1 for the output of a function under `grad`; TypeError if it is not a scalar of its kind."""
    if out.__class__ in (list, tuple, dict) or out is None:
        raise TypeError(
            f"gradient only defined for scalar-output functions. The output was a {type(out).__name__}: {out!r}"
        )
    out = as_operand(out, "the output of the function given to grad")
    value = out.value if out.__class__ is LinearTracer else out
    weak = value.__class__ in PYTHON_SCALARS
    if not weak and value.shape != ():
        raise TypeError(f"gradient only defined for scalar-output functions. The output had shape: {value.shape}.")
    dtype = PYTHON_SCALARS[value.__class__] if weak else value.dtype
    code = dtype.kind
    if holomorphic:
        if code != "c":
            raise TypeError(f"grad with holomorphic=True requires a complex output, but it has type {type_of(value)}")
    elif code == "c":
        raise TypeError(
            f"grad requires real-valued outputs (a sub-dtype of np.floating), but the output has type "
            f"{type_of(value)}. Set holomorphic=True for a holomorphic function, or take the real part."
        )
    elif code not in "fV":
        raise TypeError(
            f"grad requires real-valued outputs (a sub-dtype of np.floating), but the output has type {type_of(value)}"
        )
    if weak:
        return 1.0
    return dtype.type(1) if isinstance(value, (np.ndarray, np.generic)) else _one_beside(value, dtype)


def _one_beside(value: Any, dtype: Any) -> Any:
    one = beside(value, np.ones((), dtype))
    return one if on_gpu(one) else dtype.type(1)


def beside(value: Any, x: np.ndarray[Any, Any]) -> Any:
    """Return an array of the host on the GPU that `value`, plain or traced, is on; itself if that is on none."""
    known = held(value)
    if not on_gpu(known):
        return x
    from fgrad.triton_kernels.runtime import home_of  # loaded when there is an array on a GPU

    home = home_of(known)
    with home.on_device(home.device(known)):
        return home.from_numpy(x)

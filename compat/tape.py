"""The tape: nodes of the graph, how an operation is recorded, and how rules are recorded again.

A node knows its parents and what it saved, never its own output. Places in the graph, to which gradients flow, are
nodes (of one output), `Output`s of nodes with several, and leaf tensors. Rules are those of the core's primitives: run
on plain arrays, or, for `create_graph`, under `Record`, where tensors appear as the core's tracers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fgrad.extend import (
    TABLE,
    ArrayType,
    Interpreter,
    Linearize,
    Params,
    Plan,
    Primitive,
    Tracer,
    kept_types,
    on_gpu,
    plan_for,
    recover,
    state,
)

# Relative, so that a type checker follows: it knows the folders, not the map that makes `compat` a part of fgrad.
from . import devices, graph
from .graph import edge
from .modes import mode
from .tensor import LEAF, Tensor, fresh, type_name, wrap, wrap_value

if TYPE_CHECKING:
    from .context import AutogradContext
    from .graph import Place
    from .hooks import PlaceHooks

clock = itertools.count(1).__next__

_new = object.__new__
FREED = None
NO_PARAMS: Params = {}

FREED_MESSAGE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


class Node(graph.Node):
    """One recorded step: the plan of a primitive, what it saved, and the places its inputs came from.

    `_saved` are arrays, in the order of `plan.saves`; `versions` has for each the version counter and the version at
    which it was saved, one after the other. `_parents` has a place for each of `plan.active`. `_more` is a
    `hooks.PlaceHooks` or None; `_width` is the number of outputs, set only if there are several.
    """

    __slots__ = ("_plan", "_saved", "versions", "types", "params", "_parents", "_seq", "_more", "_width", "__weakref__")

    _plan: Plan | Conjugated
    _saved: Any  # a tuple, or FREED
    versions: Any  # a tuple of lists and ints in turn, or None if nothing is to be checked
    types: tuple[ArrayType, ...] | None
    params: Params
    _parents: list[Place]
    _seq: int
    _more: PlaceHooks | None
    _width: int

    def node_and_index(self) -> tuple[Node, int]:
        """Return the node and the number of its output that this place stands for."""
        return self, 0

    def place(self, index: int) -> Node | Output:
        """Return the place of the output of a number."""
        return Output(self, index) if self._plan.prim.multiple else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            return saved_by_name(self, name.removeprefix("_saved_"))
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _sources(self) -> list[Place | None]:
        """Return a place for every input of the operation, None for those that require no grad."""
        places: list[Place | None] = [None] * max(len(self._plan.prim.inputs), 1 + max(self._plan.active))
        for i, place in zip(self._plan.active, self._parents):
            places[i] = place
        return places


class Output:
    """The k-th output of a node with several, as a place in the graph."""

    __slots__ = ("node", "index", "_seq", "_more", "__weakref__")

    _plan = _saved = None
    _more: PlaceHooks | None

    def __init__(self, node: Node | AutogradContext, index: int):
        self.node = node
        self.index = index
        self._seq = clock()
        self._more = None

    def node_and_index(self) -> tuple[Node | AutogradContext, int]:
        """Return the node and the number of its output that this place stands for."""
        return self.node, self.index


class Recipe:
    """How one primitive is recorded for one set of inputs that require grad: its plan and the class of its nodes."""

    __slots__ = ("plan", "node_class", "saves", "active", "partial")

    def __init__(self, prim: Primitive, mask: int, count: int):
        self.plan = plan_for(prim, mask, count)
        self.node_class = node_class(node_name(prim))
        self.saves = self.plan.saves
        self.active = self.plan.active
        self.partial = len(self.active) != mask.bit_count()

    def node(self, parents: list[Place]) -> Node:
        """Return a new node with these parents that has saved nothing yet."""
        node = _new(self.node_class)
        node._plan = self.plan
        node._parents = parents
        node._saved = ()
        node.params = NO_PARAMS
        node.versions = node.types = node._more = None
        node._seq = clock()
        return node


_recipes: dict[tuple[Primitive, int, int], Recipe] = {}
_node_classes: dict[str, type[Node]] = {}

NODE_NAMES = {
    "reduce_sum": "SumBackward0",
    "dot_general": "MmBackward0",
    "reduce_prod": "ProdBackward0",
    "reduce_max": "AmaxBackward0",
    "reduce_min": "AminBackward0",
    "broadcast": "ExpandBackward0",
    "reshape": "ViewBackward0",
    "transpose": "PermuteBackward0",
    "slice": "SliceBackward0",
    "concatenate": "CatBackward0",
    "cast": "ToCopyBackward0",
    "to_device": "ToCopyBackward0",
    "copy": "CloneBackward0",
    "max": "MaximumBackward0",
    "min": "MinimumBackward0",
    "select": "WhereBackward0",
    "rem": "RemainderBackward0",
    "gather": "IndexBackward0",
    "square": "PowBackward0",
    "take_along": "GatherBackward0",
}
"""torch's name for the nodes of a primitive, where it is not `<Primitive>Backward0`."""


def node_name(prim: Primitive) -> str:
    """Return torch's name for the nodes of a primitive."""
    return NODE_NAMES.get(prim.name) or "".join(word.capitalize() for word in prim.name.split("_")) + "Backward0"


def node_class(name: str) -> type[Node]:
    """Return the class of nodes of this name; programs read names off `type(grad_fn).__name__`."""
    found = _node_classes.get(name)
    if found is None:
        found = _node_classes[name] = type(name, (Node,), {"__slots__": (), "__module__": "fgrad.compat"})
    return found


def recipe_for(prim: Primitive, mask: int, count: int) -> Recipe:
    """Return the recipe of `prim` for the inputs in `mask`, out of `count`; cached."""
    key = (prim, mask, count)
    found = _recipes.get(key)
    if found is None:
        found = _recipes[key] = Recipe(prim, mask, count)
    return found


# ------------------------------------------------------------------------------------------------------ recording


def place_of(t: Tensor) -> Place | None:
    """Return the place in the graph that `t` came from, or None if it requires no grad.

    A view that was made without recording of what requires grad is a leaf of its own.
    """
    view = t._view
    node = t._node
    if view is not None:
        view.refresh(t)
        node = t._node
        if node is None and view.base._node is not None:
            return t
    return t if node is LEAF else node


def apply(
    prim: Primitive, args: Sequence[Any], params: Params, interpreter: Interpreter | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Apply a primitive to tensors and plain operands and record it where a gradient may be asked for."""
    enabled = mode.enabled
    values: list[Any] = []
    parents: list[Place] = []
    mask = 0
    for i, arg in enumerate(args):
        if not isinstance(arg, Tensor):
            values.append(arg)
            continue
        values.append(arg._data)
        if enabled and arg._node is not None or arg._view is not None:
            place = place_of(arg) if enabled else None
            if place is None:
                continue
            recorder = recorder_below(interpreter)
            if recorder is not None:
                values[-1] = Recorded(recorder, arg)
            elif interpreter is None or not reversed_by(interpreter):
                mask |= 1 << i
                parents.append(place)
    if interpreter is not None:
        out = interpreter.process(prim, values, params)
    else:
        try:
            out = prim.impl(*values, **params)
        except Exception:
            if beside := _beside(prim, args):
                return apply(prim, beside, params)
            out = recover(prim, values, params)
    if not enabled and interpreter is not None and reversed_by(interpreter):
        out = tuple(map(cut, out)) if prim.multiple else cut(out)
    if not mask or prim.make_plan is None:
        made = wrap_value if enabled else fresh
        return tuple([made(o) for o in out]) if prim.multiple else made(out)
    return record(recipe_for(prim, mask, len(args)), args, values, parents, params, mask, out)


def _beside(prim: Primitive, args: Sequence[Any]) -> list[Any] | None:
    """Return operands of a primitive that failed with 0-d tensors of the CPU on the GPU of the others, None if none is.

    Raises:
        RuntimeError: torch's, for tensors that lie on two devices.
    """
    places = [devices.place_of(x._data) for x in args if isinstance(x, Tensor)]
    there = [place for place in places if place is not None]
    if len(set(places)) < 2 or not there:
        return None
    if len(set(there)) == 1 and (prim.kind == "elementwise" or prim.declared.get("elementwise")):
        away = [isinstance(x, Tensor) and devices.place_of(x._data) is None for x in args]
        if all(not x._data.ndim for x, is_away in zip(args, away) if is_away):
            return [moved(x, there[0]) if is_away else x for x, is_away in zip(args, away)]
        places.sort(key=lambda place: place is None)  # as torch names them
    other = next(place for place in places if place != places[0])
    raise devices.mixed_error(places[0], other) from None


def moved(t: Tensor, place: int | None) -> Tensor:
    """Return a tensor on the GPU of a number, on the CPU for None: recorded, so that its gradient comes back."""
    source = devices.place_of(t._data)
    if source == place:
        return t
    return apply(devices.to_device, (t,), {"place": place, "source": source}, state.interpreter)  # type: ignore[return-value]


def record(
    recipe: Recipe, args: Sequence[Any], values: list[Any], parents: list[Place], params: Params, mask: int, out: Any
) -> Tensor | tuple[Tensor, ...]:
    """Return the result of a primitive as a tensor (or a tuple of them) with a new node."""
    plan = recipe.plan
    if plan.prim.multiple:
        return _record_several(recipe, args, values, parents, params, mask, out)
    if not recipe.active:
        return wrap_value(out)
    if out.__class__ is not np.ndarray:
        out = devices.as_array(out)
    node = _node(recipe, values, parents, params, mask, (out,))
    result = wrap(out, node)
    if recipe.saves:
        save(node, args, (result,))
    return result


def _record_several(
    recipe: Recipe, args: Sequence[Any], values: list[Any], parents: list[Place], params: Params, mask: int, out: Any
) -> tuple[Tensor, ...]:
    """Return the results of a primitive that has several."""
    if not recipe.active:
        return tuple([wrap_value(o) for o in out])
    outs = [o if o.__class__ is np.ndarray else devices.as_array(o) for o in out]
    node = _node(recipe, values, parents, params, mask, outs)
    node._width = len(outs)
    results = tuple([wrap(o, Output(node, k) if differentiable(o) else None) for k, o in enumerate(outs)])
    if recipe.saves:
        save(node, args, results)
    return results


def _node(
    recipe: Recipe, values: list[Any], parents: list[Place], params: Params, mask: int, outs: Sequence[Any]
) -> Node:
    """Return the node of a step that has not saved anything yet."""
    if recipe.partial:
        differentiated = [i for i in range(mask.bit_length()) if mask >> i & 1]
        parents = [parents[differentiated.index(i)] for i in recipe.active]
    node = recipe.node(parents)
    node.types = kept_types(recipe.plan, values, outs)
    node.params = params
    for x in (*outs, *[values[i] for i in recipe.active]):
        if x.dtype.kind == "c":
            node._plan = conjugated(recipe.plan)
            break
    return node


UNCHANGING = [0]
"""The version counter of what has none: numbers, and arrays that no tensor stands for."""


def save(node: Node, args: Sequence[Any], results: Sequence[Tensor]) -> None:
    """Keep what the pull of a node needs, with the versions of the tensors that it belongs to."""
    saved: list[Any] = []
    versions: list[Any] = []
    for k in node._plan.saves:
        t = args[k] if k >= 0 else results[~k]
        if isinstance(t, Tensor):
            saved.append(t._data)
            counter = t.counter
            versions += (counter, counter[0])
        else:
            saved.append(t)
            versions += (UNCHANGING, 0)
    node._saved = tuple(saved)
    node.versions = tuple(versions)
    if mode.packing:
        mode.packing.pack(node)


def differentiable(array: Any) -> bool:
    """Return whether an array is of a real or complex floating type."""
    return array.dtype.kind in "fcV"


class Conjugated:
    """A plan in torch's complex convention: its pull is conj(pull(conj ct)). Everything else is the plan's own."""

    __slots__ = ("plan", "prim", "active", "saves", "pull")

    def __init__(self, plan: Plan):
        self.plan = plan
        self.prim = plan.prim
        self.active = plan.active
        self.saves = plan.saves
        self.pull = self._pull

    def _pull(self, saved: Any, types: Any, params: Params, ct: Any) -> list[Any]:
        assert self.plan.pull is not None, self.prim
        ct = tuple(map(conj, ct)) if ct.__class__ in (tuple, list) else conj(ct)
        return [conj(g) for g in self.plan.pull(saved, types, params, ct)]


_conjugated: dict[Plan, Conjugated] = {}


def conjugated(plan: Plan) -> Conjugated:
    """Return the plan as nodes with complex values use it; cached."""
    found = _conjugated.get(plan)
    if found is None:
        found = _conjugated[plan] = Conjugated(plan)
    return found


def conj(x: Any) -> Any:
    """Return the conjugate of a cotangent: an array, a tracer or None."""
    return x.conj() if x is not None and x.dtype.kind == "c" else x


# ---------------------------------------------------------------------------------------------- saved values, again


def check_versions(node: Node) -> None:
    """Raise torch's error if a value that `node` saved was changed in place since."""
    versions = node.versions
    for k in range(0, len(versions), 2):
        if versions[k][0] != versions[k + 1]:
            raise modified_error(node, k // 2)


def modified_error(node: Node, k: int) -> RuntimeError:
    """Return the error for the k-th saved value of `node`, which was changed in place."""
    counter, version = node.versions[2 * k : 2 * k + 2]
    value = node._saved[k]
    index = node._plan.saves[k]
    maker = ""
    if index < 0:
        maker = f", which is output {~index} of {type(node).__name__},"
    elif index in node._plan.active:
        source, number = edge(node._parents[node._plan.active.index(index)])
        assert source is not None, node
        maker = f", which is output {number} of {source.name()},"
    what = f"[{type_name(wrap(value))} {list(value.shape)}]".replace("torch.", "torch.", 1)
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"{what}{maker} is at version {counter[0]}; expected version {version} instead. Hint: enable anomaly "
        "detection to "
        "find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True)."
    )


def unpacked(node: Node) -> list[Any]:
    """Return the arrays that `node` saved, checked, and unpacked if hooks packed them."""
    check_versions(node)
    return [value.unpack()._data if value.__class__ is Packed else value for value in node._saved]


class Packed:
    """A saved value as a user's hook packed it, and the hook that unpacks it."""

    __slots__ = ("value", "unpack_hook")

    def __init__(self, value: Any, unpack_hook: Callable[[Any], Tensor]):
        self.value = value
        self.unpack_hook = unpack_hook

    def unpack(self) -> Tensor:
        """Return the tensor that the hook gives back; TypeError if it is none."""
        t = self.unpack_hook(self.value)
        if not isinstance(t, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(t).__name__}"
            )
        return t


def saved_tensors(node: Node) -> list[Any]:
    """Return what `node` saved as tensors that know where they came from; RuntimeError if freed or changed."""
    if node._saved is FREED:
        raise RuntimeError(FREED_MESSAGE)
    if node.versions:
        check_versions(node)
    return [saved_tensor(node, k) for k in range(len(node._saved))]


_TORCH_NAMES = {"self": "x", "other": "y", "input": "x", "result": "out", "exponent": "y", "mat2": "y", "vec": "y"}


def saved_by_name(node: Node, name: str) -> Any:
    """Return a saved value by torch's name for it, `self`, `other` or `result`; AttributeError if it was not saved."""
    prim = node._plan.prim
    ours = _TORCH_NAMES.get(name, name)
    places = {**{n: i for i, n in enumerate(prim.inputs)}, **{n: ~k for k, n in enumerate(prim.outputs)}}
    if node._saved is not FREED and places.get(ours) not in node._plan.saves:
        if ours in prim.inputs:
            return None
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '_saved_{name}'")
    return saved_tensors(node)[node._plan.saves.index(places[ours])]


def saved_tensor(node: Node, k: int) -> Any:
    """Return the k-th saved value of `node` as a tensor with its history; plain numbers stay what they are."""
    value = node._saved[k]
    if value.__class__ is Packed:
        value = value.unpack()._data
    plan = node._plan
    index = plan.saves[k]
    if index < 0:
        t = wrap_value(value, node.place(~index))
    elif index in plan.active:
        place = node._parents[plan.active.index(index)]
        if isinstance(place, Tensor) and place._data is value:
            return place
        t = wrap(value, place)
    elif isinstance(value, (np.ndarray, Tracer)) or on_gpu(value):
        t = wrap(value)
    else:
        return value
    counter = node.versions[2 * k]
    if counter is not UNCHANGING:
        t._counter = counter
    return t


class Recorded(Tracer):
    """A tensor as rules and functions of the core see it while they are recorded."""

    __slots__ = ("tensor",)

    def __init__(self, interpreter: Record, tensor: Tensor):
        self.interpreter = interpreter
        self.tensor = tensor

    @property
    def type(self) -> ArrayType:
        data = self.tensor._data
        return ArrayType(data.shape, data.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor._data.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.tensor._data.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return self.tensor._data.ndim  # type: ignore[no-any-return]

    @property
    def value(self) -> Any:
        return self.tensor._data

    def concrete(self) -> Any:
        data = self.tensor._data
        return data.concrete() if isinstance(data, Tracer) else data


def share_version(t: Tensor, sources: Sequence[Any]) -> None:
    """Let the result of a step have the version of the tensor whose memory it looks into, if there is one."""
    base = getattr(t._data, "base", None)
    if base is None:
        return
    for source in sources:
        if isinstance(source, Tensor) and (source._data is base or getattr(source._data, "base", None) is base):
            t._counter = source.counter
            return


class Record(Interpreter):
    """Computes on tensors and records on their tape what rules and functions of the core do.

    With `slopes`, as in pulls, what is constant by its primitive (a sign) depends on its operand with derivative 0, as
    torch has it: so that a gradient requires grad where one of torch does.
    """

    def __init__(self, slopes: bool = False) -> None:
        super().__init__("recording of tensors")
        self.slopes = slopes

    def process(self, prim: Primitive, args: Sequence[Any], params: Params) -> Any:
        tensors = list(args)
        ours = False
        for i, a in enumerate(args):
            if a.__class__ is Recorded and a.interpreter is self:
                tensors[i] = a.tensor
                ours = True
        if not ours:
            return self.pass_on(prim, args, params)
        rule = prim.rules.get(Record)
        if rule is not None:
            return rule(self, args, params)
        if prim.make_plan is None and prim.definition is not None:
            return prim.definition(*args, **params)
        inner = state.interpreter
        state.interpreter = self.parent
        try:
            out: Any = apply(prim, tensors, params, self.parent)
        finally:
            state.interpreter = inner
        if prim.multiple:
            return tuple([Recorded(self, o) for o in out])
        if self.slopes and prim.kind == "constant" and out._node is None and differentiable(out._data):
            return self.sloped(Recorded(self, out), args)
        share_version(out, tensors)
        return Recorded(self, out)

    def sloped(self, value: Any, operands: Sequence[Any]) -> Any:
        """Return a traced value as depending on those operands that require grad, with derivative 0."""
        for x in operands:
            if x.__class__ is Recorded and place_of(x.tensor) is not None and x.dtype == value.dtype:
                value = TABLE["select"](np.asarray(True), value, np.zeros((), x.dtype) * x)
        return value

    def lift(self, x: Any) -> Any:
        """Return a tensor as a traced value; anything else as it is."""
        return Recorded(self, x) if isinstance(x, Tensor) else x

    def lower(self, x: Any) -> Tensor | None:
        """Return a traced value, an array or a number as a tensor; None stays None."""
        if x.__class__ is Recorded and x.interpreter is self:
            return x.tensor
        return x if x is None or isinstance(x, Tensor) else wrap_value(x)


class Bottom(Record):
    """The recorder below all transforms of `torch.func`: there tensors that require grad are recorded, others computed.

    What the transforms compute of the former is on the tape, so that their results can be differentiated by it.
    """


def reversed_by(interpreter: Interpreter | None) -> bool:
    """Return whether a chain of interpreters differentiates in reverse: there `no_grad` and `detach` cut."""
    while interpreter is not None:
        if isinstance(interpreter, Linearize):
            return True
        interpreter = interpreter.parent
    return False


def cut(x: Any) -> Any:
    """Return a traced value as a constant of the transforms that differentiate it, on memory of its own."""
    return TABLE["stop_gradient"](TABLE["copy"](x)) if isinstance(x, Tracer) else x


def recorder_below(interpreter: Interpreter | None) -> Bottom | None:
    """Return the recorder at the bottom of a chain of interpreters, if there is one."""
    while interpreter is not None:
        if interpreter.__class__ is Bottom:
            return interpreter
        interpreter = interpreter.parent
    return None


def pull_recorded(node: Node, ct: Any) -> list[Tensor | None]:
    """Run a node's pull on tensors, recorded: gradients that can be differentiated again."""
    recorder = Record(slopes=True)
    pull = node._plan.pull
    assert pull is not None, node
    saved = [recorder.lift(t) for t in saved_tensors(node)]
    for k, value in enumerate(node._saved):
        if value.__class__ is np.ndarray and node.versions[2 * k] is UNCHANGING:
            saved[k] = value  # of the host, whatever the others' device: a constant that no tensor stands for
    if ct.__class__ is list:
        ct = [recorder.lift(c) for c in ct]
    else:
        ct = recorder.lift(ct)
    with recorder:
        pulled = pull(saved, node.types, node.params, ct)
        if node._plan.prim.name == "relu":  # whose gradient has, in torch, its result for an operand
            pulled = [recorder.sloped(g, saved) for g in pulled]
    return [recorder.lower(g) for g in pulled]

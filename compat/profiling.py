"""What a profiler sees of tensors: functions and methods, nodes of a backward pass, custom Functions.

Entry points are exchanged while a profiler is at work (see `fgrad.profiler.probes`): every public function and method,
where programs find it, and the steps of the engine. Nothing here is on any path otherwise. Names are those that
`torch.autograd.profiler` documents: `mul`, `PowBackward0`, `torch::autograd::AccumulateGrad`.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys

from numpy import ndarray

from fgrad.extend import TABLE, profiler, state

from .engine import Pass
from .function import Function
from .methods import FUNCTIONS, index
from .tape import FREED, Output, clock, node_name
from .tensor import LEAF, Tensor

record = profiler.record
here, now, next_serial, stack = record.here, record.now, record.next_serial, record.stack
Observer, facts_of, kind_of = record.Observer, record.facts_of, record.kind_of
span, timed = record.span, record.timed

NAMESPACES = ("fgrad.compat", *[f"fgrad.compat.{name}" for name in ("nn.functional", "linalg", "fft", "special")])

NOT_OPERATIONS = frozenset(
    "__iter__ __getitem__ __setitem__ __pos__ __array__ __dlpack__ __dlpack_device__ __deepcopy__ __reduce_ex__"
    " __copy__ __array_ufunc__ __array_function__ requires_grad_ _is_view backward register_hook"
    " register_post_accumulate_grad_hook retain_grad numpy storage_offset data_ptr storage untyped_storage"
    " _typed_storage is_inference is_tensor is_complex is_floating_point numel manual_seed seed initial_seed"
    " get_rng_state set_rng_state broadcast_shapes can_cast promote_types result_type from_dlpack from_numpy composed"
    " in_place".split()
)
"""What looks at tensors without computing, or hands over to functions that are events themselves."""

OPERATORS = {"truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "invert": "bitwise_not", "rsub": "rsub"}
"""torch's names of operators that are not Python's."""


def operation_name(attribute):
    """Return torch's name for what an attribute of Tensor computes: `__radd__` is add, `__iadd__` is add_."""
    if not attribute.startswith("__"):
        return attribute
    word = attribute.strip("_")
    if word in OPERATORS:
        return OPERATORS[word]
    plain = word.removeprefix("r") if hasattr(Tensor, f"__{word[1:]}__") else word
    if plain == word and word.startswith("i") and hasattr(Tensor, f"__{word[1:]}__"):
        return OPERATORS.get(word[1:], word[1:]) + "_"
    return OPERATORS.get(plain, plain)


def primitive_name(prim):
    """Return torch's name for what a primitive computes."""
    return without_end(node_name(prim))


def without_end(name):
    """Return the name of what a node goes back through: `MulBackward0` goes back through mul."""
    word = re.sub(r"Backward\d*$", "", name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).lower()


@functools.cache
def probes():
    """Return the owner, name and observed form of every entry point."""
    found = [(Pass, "run", _observed_run(Pass.run))]
    found.append((Pass, "_work", _observed_work(Pass._work)))
    found.append((Pass, "_finish", _observed_finish(Pass._finish)))
    found.append((Function, "apply", _observed_apply(vars(Function)["apply"])))
    found.append((index, "index_view", _observed_index_view(index.index_view)))
    for name, fun in vars(Tensor).items():
        if _is_operation(name, fun):
            found.append((Tensor, name, observed(fun, operation_name(name))))
    for module in [sys.modules[name] for name in NAMESPACES]:
        for name, fun in vars(module).items():
            if _is_operation(name, fun) and not name.startswith("_"):
                found.append((module, name, observed(fun, name)))
    return found


def _is_operation(name, fun):
    return (
        inspect.isfunction(fun)
        and name not in NOT_OPERATIONS
        and (name in FUNCTIONS or fun.__module__.startswith(("fgrad.compat.methods", "fgrad.compat.nn.functional")))
    )


# ------------------------------------------------------------------------------------------------------- functions


def observed(fun, name):
    """Return a function of tensors as one event, tied to the node that it records.

    A function that is one primitive runs as if nobody looked, by its short way; others show what they are made of.
    """
    prim = getattr(fun, "primitive", None)

    @functools.wraps(fun)
    def call(*args, **kwargs):
        place = here.place
        if not place.observers:
            return fun(*args, **kwargs)
        observer = state.interpreter
        hidden = prim is not None and observer.__class__ is Observer and observer.parent is None
        before = args[0]._node if args and isinstance(args[0], Tensor) else None
        serial = next_serial()
        place.depth = depth = place.depth + 1
        first, out = 0 if hidden else clock(), None
        if hidden:
            state.interpreter = None
        if place.marks is not None:
            place.marks.begin(name, serial, None, list(map(_kind, args)))
        start = now()
        try:
            out = fun(*args, **kwargs)
        finally:
            end = now()
            if hidden:
                state.interpreter = observer
            place.depth = depth - 1
            link = _link(out, before, first)
            if place.marks is not None:
                place.marks.end(serial, link)
            facts = _facts(args, kwargs, out, prim) if place.shapes else None
            record.write(place, (serial, start, end, depth, name, "op", facts, link))
        if place.ledgers:
            _keep_books(place.ledgers, serial, args, out, before)
        return out

    return call


def _observed_index_view(original):
    original.primitive = TABLE["index_view"]
    named = {}

    def index_view(x, entries, node):
        """Look at a part of a tensor: select, slice or unsqueeze, as torch names it."""
        if node not in named:
            named[node] = observed(original, without_end(node))
        return named[node](x, entries, node)

    return index_view


def _link(out, before, first=0):
    """Return what ties an event to the node that it recorded, or to several since number `first`; None without one."""
    if out.__class__ is tuple and out:
        out = out[0]
    node = out._node if isinstance(out, Tensor) else None
    if node is None or node is LEAF or node is before or isinstance(node, Tensor):
        return None
    number = node.node_and_index()[0]._seq
    return ("tape", number, first) if first else ("tape", number)


def _keep_books(ledgers, serial, args, out, before):
    """Write down what a function allocated, and what the node that it recorded keeps of it."""
    made = [o for o in (out if out.__class__ is tuple else (out,)) if isinstance(o, Tensor)]
    given = [a._data for a in args if isinstance(a, Tensor)]
    saved = ()
    if made and _link(made[0], before) is not None:
        saved = made[0]._node.node_and_index()[0]._saved or ()
    for ledger in ledgers:
        ledger.enter(tuple([o._data for o in made]), serial, given)
        ledger.save(saved, serial)


def _facts(args, kwargs, out, prim):
    """Return what `facts_of` does, of tensors."""
    if len(args) == 2 and not kwargs and args[0].__class__ is args[1].__class__ is out.__class__ is Tensor:
        return facts_of((args[0]._data, args[1]._data), out._data, prim)
    inputs = (*args, *kwargs.values()) if kwargs else args
    facts = [len(inputs), False, prim]
    for x in inputs:
        facts += (x._data.shape, x._data.dtype) if x.__class__ is Tensor else (_kind(x), None)
    if out.__class__ is Tensor:
        data = out._data
        facts += (data.shape, data.dtype)
        facts[1] = data.__class__ is not ndarray or data.base is None or data.size == 1
        return tuple(facts)
    for x in out if out.__class__ is tuple else (out,):
        facts += (_kind(x), None)
    return tuple(facts)


def _kind(x):
    if isinstance(x, Tensor):
        return kind_of(x._data)
    if x.__class__ in (list, tuple) and x and isinstance(x[0], Tensor):
        return list(map(_kind, x))
    return kind_of(x)


def _observed_apply(original):
    def apply(cls, *args, **kwargs):
        call = observed(functools.partial(original.__func__, cls), cls.__name__)
        return call(*args, **kwargs)

    return classmethod(apply)


# ---------------------------------------------------------------------------------------------------------- backward


class ObservedPass(Pass):
    """A pass that takes every node the long way, where it can be seen."""

    __slots__ = ()


class SeenPlan(profiler.functional.Watched):
    """A node's plan whose operators are seen; the event is that of the node."""

    __slots__ = ()

    def pull(self, saved, types, params, ct):
        """Pull a gradient back, with an event for every operator of the rule."""
        return profiler.functional.seen_pull(self.plan.pull, saved, types, params, ct)


def _observed_run(original):
    def run(self):
        if here.place.observers:
            with span("torch::autograd::GraphRoot", "backward"):
                if self.__class__ is Pass:
                    self.__class__ = ObservedPass
        original(self)

    return run


def _observed_work(original):
    seen_plans = {}

    def work(self, node, g):
        place = here.place
        if node.__class__ is Output or not place.observers:
            original(self, node, g)
            return
        plan = node._plan
        saved = None
        if plan is not None:
            saved = node._saved
            if plan.__class__ is not SeenPlan:
                if plan not in seen_plans:
                    seen_plans[plan] = SeenPlan(plan, "")
                node._plan = seen_plans[plan]
        facts = _facts_of_gradients(g if g.__class__ is list else (g,)) if place.shapes else None
        link = "tape", node._seq
        timed(place, node.__class__.__name__, "backward", link, facts, original, self, node, g)
        if place.ledgers and saved and node._saved is FREED:
            for ledger in place.ledgers:
                ledger.release(saved)

    return work


def _facts_of_gradients(grads):
    if len(grads) == 1 and grads[0].__class__ is ndarray:
        return 1, False, None, grads[0].shape, grads[0].dtype
    facts = [len(grads), False, None]
    for g in grads:
        facts += (g.shape, g.dtype) if g.__class__ is ndarray else (_kind(g), None)
    return tuple(facts)


def _observed_finish(original):
    def finish(self, leaf, g):
        place = here.place
        if g is None or not self.accumulate or not place.observers:
            original(self, leaf, g)
            return
        facts = _facts_of_gradients((g,)) if place.shapes else None
        timed(place, "torch::autograd::AccumulateGrad", "backward", None, facts, original, self, leaf, g)
        made = leaf.extras.grad  # a hook may have taken it away
        for ledger in place.ledgers if made is not None else ():
            ledger.enter(made._data, place.last)

    return finish

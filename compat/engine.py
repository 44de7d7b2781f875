"""The backward pass: gradients flow from roots to leaves, iteratively, in the reverse order of creation.

A place is due when no younger place waits, so one heap of creation numbers is all the scheduling there is. Gradients
are plain arrays, or tensors where the pass itself is recorded (`create_graph`). A pass within a pass is another call of
`run`: it finishes before the outer one goes on; deep nests continue on fresh threads, which have a stack of their own.
"""

from __future__ import annotations

import sys
import threading
import warnings
from heapq import heappop, heappush

import numpy as np

from fgrad.compat.graph import AccumulateGrad, GradientEdge, GraphNode
from fgrad.compat.hooks import as_tensor, run_hooks
from fgrad.compat.modes import mode
from fgrad.compat.tape import (
    FREED,
    FREED_MESSAGE,
    Output,
    apply,
    check_versions,
    place_of,
    pull_recorded,
    unpacked,
)
from fgrad.compat.tensor import LEAF, Tensor, type_name, wrap
from fgrad.extend import TABLE, state

MAX_DEPTH = 20
"""Passes nested deeper than this in one thread go on in a new one, so that Python's recursion limit is not met."""


class _Passes(threading.local):
    """The passes at work in this thread: how deep they nest, the innermost one and its callbacks."""

    depth = 0
    callbacks = None
    current = None


passes = _Passes()


def queue_callback(fun):
    """Run `fun()` once when the pass that is at work ends; RuntimeError outside of a pass."""
    if passes.callbacks is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    passes.callbacks.append(fun)


class Pass:
    """One backward pass: what it may free, whether it is recorded, and whose gradients it is asked for.

    `needed` are the places that lead to requested ones (None: all); `captured` maps requested places to their
    gradients; `accumulate` says whether leaves get theirs added to `.grad`.
    """

    __slots__ = ("keep", "create", "needed", "captured", "accumulate", "grads", "due", "places", "roots")

    def __init__(self, keep, create, needed=None, captured=None, accumulate=True):
        self.keep = keep
        self.create = create
        self.needed = needed
        self.captured = captured
        self.accumulate = accumulate
        self.grads = {}
        self.due = []
        self.places = {}
        self.roots = []

    def reaches(self, place):
        """Return whether gradients flow from the roots of this pass to a place."""
        return place is not None and place in Needed.toward(self.roots, [place]).reached

    def send(self, place, g):
        """Add gradient `g` (None: no gradient, but reached) to what has arrived at a place."""
        needed = self.needed
        if needed is not None and place not in needed:
            return
        grads = self.grads
        if place not in grads:
            grads[place] = g
            seq = place._seq
            if seq:
                self.places[seq] = place
                heappush(self.due, -seq)
        elif g is not None:
            have = grads[place]
            grads[place] = g if have is None else have + g

    def run(self):
        """Work off all places that are due, then the leaves."""
        due, places, grads = self.due, self.places, self.grads
        plain = not self.create and self.captured is None
        while due:
            place = places.pop(-heappop(due))
            g = grads.pop(place)
            while place is not None:  # as long as a single place is due, which nobody else can send to
                saved = place._saved
                if not plain or saved is None or place._more is not None or g is None or g.__class__ is list:
                    self._work(place, g)
                    break
                # The usual case, spelled out: what `_work`, `_pull` and `send` do for a node without any extras.
                if saved:
                    versions = place.versions
                    if versions[0][0] != versions[1] or len(versions) > 2:
                        check_versions(place)
                    if not self.keep:
                        place._saved = FREED
                parents = place._parents
                pulled = place._plan.pull(saved, place.types, place.params, g)
                place = None
                if len(parents) == 1 and not due and parents[0]._seq:
                    place, g = parents[0], pulled[0]
                    continue
                for parent, h in zip(parents, pulled):
                    if parent in grads:
                        if h is not None:
                            have = grads[parent]
                            grads[parent] = h if have is None else have + h
                    else:
                        grads[parent] = h
                        seq = parent._seq
                        if seq:
                            places[seq] = parent
                            heappush(due, -seq)
        for leaf, g in grads.items():
            self._finish(leaf, g)

    def _work(self, place, g):
        """Work one place off: hooks, requests, the node itself, and its parents' shares."""
        if place._more is not None:
            g = place._more.before(place, g, self.create)
        captured = self.captured
        if captured is not None and place in captured:
            captured[place] = g
            if self.needed is not None and place not in self.needed.interior:
                return
        if place.__class__ is Output:
            self._collect(place, g)
            return
        pulled = self._pull(place, g)
        if place._more is not None:
            pulled = place._more.after(place, g, pulled, self.create)
        for parent, h in zip(place._parents, pulled):
            if parent is not None:
                self.send(parent, h)

    def _collect(self, output, g):
        """Put the gradient of one output of a node into its place among those of the others."""
        node = output.node
        grads = self.grads
        slots = grads.get(node)
        if slots is None:
            slots = grads[node] = [None] * node._width
            self.places[node._seq] = node
            heappush(self.due, -node._seq)
        have = slots[output.index]
        slots[output.index] = g if have is None else have if g is None else have + g

    def _pull(self, node, g):
        """Return the gradients that a node gives to its parents, and free what it saved unless it is kept."""
        plan = node._plan
        if plan is None:
            return node.run(g, self)
        if g is None or g.__class__ is list and all(c is None for c in g):
            return [None] * len(node._parents)
        saved = node._saved
        if saved is FREED:
            raise RuntimeError(FREED_MESSAGE)
        if self.create:
            pulled = pull_recorded(node, g)
        else:
            pulled = plan.pull(unpacked(node) if saved else saved, node.types, node.params, g)
        if saved and not self.keep:
            node._saved = FREED
        return pulled

    def _finish(self, leaf, g):
        """Run a leaf's hooks and hand its gradient over."""
        extras = leaf._extras
        if extras is not None and extras.hooks:
            g = run_hooks(extras.hooks.values(), g, self.create)
        if self.captured is not None and leaf in self.captured:
            self.captured[leaf] = g
        if g is None or not self.accumulate:
            return
        place = place_of(leaf)
        if place is not None and place is not leaf:
            raise RuntimeError("leaf variable has been moved into the graph interior")
        if place is not None:
            accumulate(leaf, g)
            if extras is not None and extras.post_hooks:
                for hook in list(extras.post_hooks.values()):
                    if hook(leaf) is not None:
                        raise RuntimeError("Tensor post accumulate grad hooks should return None.")


class Needed(set):
    """The places that lead to requested ones.

    `interior` are those from which the pass has to go on, `reached` all places between the roots and the leaves.
    """

    interior: set
    reached: set

    @classmethod
    def toward(cls, roots, requested):
        """Return the places between `roots` and `requested` (places), found without recursion."""
        order = []
        seen = set()
        stack = list(roots)
        while stack:
            place = stack.pop()
            if place in seen or place is None:
                continue
            seen.add(place)
            order.append(place)
            stack.extend(sources(place))
        order.sort(key=lambda place: place._seq)
        needed = cls(requested)
        needed.interior = set()
        needed.reached = seen
        for place in order:
            if any(source in needed for source in sources(place)):
                needed.add(place)
                needed.interior.add(place)
        return needed


def sources(place):
    """Return the places that a place's gradient flows to."""
    if place.__class__ is Output:
        return (place.node,)
    return () if isinstance(place, Tensor) else place._parents


# ----------------------------------------------------------------------------------------------------- accumulation

_accumulation = threading.Lock()
_own_references = 0


def accumulate(leaf, g):
    """Add a gradient to `leaf.grad`: in place if neither side is recorded, so that an alias sees the sum."""
    with _accumulation:
        extras = leaf.extras
        have = extras.grad
        if isinstance(g, Tensor):
            g = g if g._data.dtype == leaf._data.dtype else g.to(leaf.dtype)
            if not mode.enabled:
                g = g.detach()
            extras.grad = g.clone() if have is None else have + g
            return
        if g.dtype != leaf._data.dtype:
            g = g.real if g.dtype.kind == "c" and leaf._data.dtype.kind != "c" else g
            g = g.astype(leaf._data.dtype)
        if have is None:
            extras.grad = wrap(g if g.__class__ is np.ndarray and _ours_alone(g) else np.array(g, order="C"))
        elif have._node is None and have._data.flags.writeable:
            np.add(have._data, g, out=have._data)
            have.counter[0] += 1
        else:
            extras.grad = have + wrap(g)


def _ours_alone(g):
    """Say whether nobody else holds the memory of gradient `g`, so that it may become a `.grad` without a copy."""
    return g.base is None and g.flags.c_contiguous and g.flags.writeable and sys.getrefcount(g) <= _own_references


def _count_own_references():
    """Return how many references `_ours_alone` counts to a gradient that only a pass holds: differs among Pythons."""
    counts = []
    leaf = wrap(np.zeros(1), LEAF)
    work = Pass(keep=False, create=False)
    work.grads[leaf] = np.zeros(1)
    original = sys.getrefcount
    sys.getrefcount = lambda g: counts.append(original(g)) or 0
    try:
        work.run()
    finally:
        sys.getrefcount = original
    return counts[0] - 1


# ------------------------------------------------------------------------------------------------------ entry points


def run_pass(roots, work):
    """Run a pass from pairs of a place and its gradient; a pass within many others goes on in a new thread."""
    if passes.depth < MAX_DEPTH:
        return _run_here(roots, work)
    failure = []
    settings = mode.enabled, mode.packing, state.interpreter

    def nested():
        mode.enabled, mode.packing, state.interpreter = settings
        try:
            _run_here(roots, work)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=nested, name="fgrad nested backward")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return work


def _run_here(roots, work):
    outer = mode.enabled, passes.callbacks, passes.current
    mode.enabled = work.create
    passes.depth += 1
    passes.callbacks = callbacks = []
    passes.current = work
    try:
        with np.errstate(all="ignore"):
            work.roots = [place for place, _ in roots]
            for place, g in roots:
                work.send(place, g)
            work.run()
        while callbacks:
            callbacks.pop(0)()
    finally:
        passes.depth -= 1
        mode.enabled, passes.callbacks, passes.current = outer
    return work


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Compute the sum of gradients of `tensors` with respect to the leaves of their graph, into `.grad`.

    Args:
        tensors: a tensor or a sequence of tensors, the roots.
        grad_tensors: for each root the gradient to start from, of its shape; None for roots of one element.
        retain_graph: keep what nodes saved, so that the graph may be walked again; by default as `create_graph`.
        create_graph: record the pass, so that gradients can be differentiated.
        grad_variables: deprecated name of `grad_tensors`.
        inputs: leaves (or other tensors) that alone accumulate a gradient.

    Raises:
        RuntimeError: a root does not require grad, a gradient is missing or of the wrong shape, the graph was freed, or
            a saved tensor was changed in place.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.tensor([1., 2.], requires_grad=True)
        >>> torch.autograd.backward([(x * x).sum()])
        >>> x.grad
        tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn("'grad_variables' is deprecated. Use 'grad_tensors' instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "'grad_tensors' and 'grad_variables' (deprecated) arguments both passed to backward(). Please only "
                "use 'grad_tensors'."
            )
        grad_tensors = grad_variables
    roots = start(sequence(tensors), grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else bool(retain_graph)
    work = Pass(keep, bool(create_graph))
    if inputs is not None:
        inputs = sequence(inputs)
        if not inputs:
            raise RuntimeError("'inputs' argument to backward() cannot be empty.")
        places = [requested_place(t) for t in inputs]
        work.captured = dict.fromkeys(places)
        work.needed = Needed.toward([place for place, _ in roots], places)
    run_pass(roots, work)
    for t in inputs or ():
        g = work.captured[place_of(t)]
        if t._node is not LEAF and g is not None:
            accumulate(t, g)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """Compute and return the sum of gradients of `outputs` with respect to `inputs`; `.grad` is not touched.

    Args:
        outputs: a tensor or a sequence of tensors.
        inputs: a tensor or a sequence of tensors; each gives one entry of the result.
        grad_outputs: for each output the gradient to start from; None for outputs of one element.
        retain_graph: keep what nodes saved; by default as `create_graph`.
        create_graph: record the pass, so that the results can be differentiated.
        only_inputs: False also accumulates into the other leaves.
        allow_unused: give None for inputs that the outputs do not depend on, in place of an error.
        is_grads_batched: `grad_outputs` have a batch dimension in front, and so will the results.
        materialize_grads: give zeros in place of None.

    Raises:
        RuntimeError: as `backward`, or an input was not used in the graph.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.tensor([3.], requires_grad=True)
        >>> torch.autograd.grad(x ** 2, x)
        (tensor([6.]),)
    """
    inputs = sequence(inputs)
    if allow_unused is False and materialize_grads:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if is_grads_batched:
        return _grad_of_batch(
            outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads
        )
    roots = start(sequence(outputs), grad_outputs, create_graph)
    places = [requested_place(t) for t in inputs]
    work = Pass(create_graph if retain_graph is None else bool(retain_graph), bool(create_graph))
    work.captured = dict.fromkeys(places)
    if only_inputs:
        work.accumulate = False
        work.needed = Needed.toward([place for place, _ in roots], places)
    run_pass(roots, work)
    return tuple(
        [
            _result(work.captured[place], t, k, allow_unused or materialize_grads, materialize_grads, create_graph)
            for k, (place, t) in enumerate(zip(places, inputs))
        ]
    )


def _result(g, t, k, allowed, materialize, create):
    """Return one gradient as `grad` gives it."""
    if g is None:
        if not allowed:
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True "
                "if "
                "this is the desired behavior."
            )
        return wrap(np.zeros(t._data.shape, t._data.dtype), LEAF if create else None) if materialize else None
    if isinstance(g, Tensor):
        return g
    if not isinstance(t, GradientEdge) and g.dtype != t._data.dtype:
        g = g.real if g.dtype.kind == "c" and t._data.dtype.kind != "c" else g
        g = g.astype(t._data.dtype)
    return wrap(g if _ours_alone(g) or g.base is None and g.flags.writeable else np.array(g))


def _grad_of_batch(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize):
    """Return the gradients for each gradient in a batch of them, stacked."""
    batches = sequence(grad_outputs)
    count = next(len(b) for b in batches if b is not None)
    rows = [
        grad(
            outputs,
            inputs,
            [None if b is None else b[i] for b in batches],
            retain_graph or i + 1 < count or create_graph,
            create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize,
        )
        for i in range(count)
    ]
    return tuple([None if column[0] is None else stack(column) for column in zip(*rows)])


def stack(tensors):
    """Return tensors of one shape along a new first dimension, recorded."""
    first = TABLE["concatenate"]
    rows = [t.unsqueeze(0) for t in tensors]
    return apply(first, rows, {"axis": 0}, state.interpreter)


def sequence(x):
    """Return one tensor, an edge or a sequence of them as a tuple."""
    if isinstance(x, (Tensor, GradientEdge)):
        return (x,)
    return tuple(x)


def requested_place(t):
    """Return the place whose gradient an entry of `inputs` asks for; RuntimeError if it requires no grad."""
    if isinstance(t, GradientEdge):
        return place_of_edge(t)
    place = place_of(t)
    if place is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return place


def start(roots, gradients, create):
    """Return pairs of a root's place and the gradient to start from, checked in torch's words."""
    if gradients is None or isinstance(gradients, Tensor):
        gradients = (gradients,) * (len(roots) if gradients is None else 1)
    gradients = tuple(gradients)
    if len(gradients) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(gradients)} gradients")
    pairs = []
    for k, (root, g) in enumerate(zip(roots, gradients)):
        place = place_of_edge(root) if isinstance(root, GradientEdge) else place_of(root)
        if place is None:
            raise RuntimeError(f"element {k} of tensors does not require grad and does not have a grad_fn")
        g = _implicit(root) if g is None else _explicit(root, g, k)
        pairs.append((place, g if create else g._data))
    return pairs


def place_of_edge(gradient_edge):
    """Return the place that an edge names."""
    node, index = gradient_edge
    if isinstance(node, AccumulateGrad):
        return node.variable
    return node.place(index)


def _implicit(root):
    """Return the gradient 1 of a root of one element."""
    if root._data.size != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if root._data.dtype.kind == "c":
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {type_name(root)}")
    return wrap(np.ones(root._data.shape, root._data.dtype))


def _explicit(root, g, k):
    """Return a gradient given by the caller, checked against its root."""
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if isinstance(root, GradientEdge):
        return g
    if g.shape != root.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{k}] has a shape of {g.shape} and output[{k}] has a shape of {root.shape}."
        )
    if (g._data.dtype.kind == "c") != (root._data.dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{k}] has a dtype of {g.dtype} and output[{k}] has a dtype of {root.dtype}."
        )
    return g if g._data.dtype == root._data.dtype else g.to(root.dtype)


def call_node(node, *grads):
    """Run one node on gradients of its outputs and return those of its inputs: what `grad_fn(g)` does.

    Raises:
        TypeError: the number of gradients is not that of the outputs.
    """
    width = getattr(node, "_width", 1) if node._plan is None or node._plan.prim.multiple else 1
    if len(grads) != width:
        raise TypeError(f"expected {width} arguments, got {len(grads)} instead")
    composed = node._more is not None and node._more.sources is not None
    operands = node._more.sources if composed else node._sources()
    sources = [place for place in operands if place is not None]
    work = Pass(True, mode.enabled, accumulate=False)
    work.captured = dict.fromkeys(sources)
    work.needed = Needed.toward([node], sources)
    work.needed.interior -= set(sources)
    given = [None if g is None else g if work.create else g._data for g in grads]
    run_pass([(node, given if width > 1 else given[0])], work)
    pulled = tuple([None if place is None else as_tensor(work.captured[place]) for place in operands])
    return pulled[0] if len(pulled) == 1 else pulled


GraphNode.__call__ = call_node

_own_references = _count_own_references()

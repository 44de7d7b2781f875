"""The backward pass: gradients flow from roots to leaves, iteratively, in the reverse order of creation.

A place is due when no younger place waits, so one heap of creation numbers is all the scheduling there is. Gradients
are plain arrays, or tensors where the pass itself is recorded (`create_graph`). A pass within a pass is another call of
`run`: it finishes before the outer one goes on; deep nests continue on fresh threads, which have a stack of their own.
"""

from __future__ import annotations

import sys
import threading
from heapq import heappop, heappush

import numpy as np

from fgrad.extend import forks, on_gpu, recover_rule, state

from . import devices
from .hooks import post_hooked, run_hooks
from .modes import mode
from .tape import (
    FREED,
    FREED_MESSAGE,
    Output,
    check_versions,
    place_of,
    pull_recorded,
    unpacked,
)
from .tensor import LEAF, Tensor, wrap

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
    gradients; `accumulate` says whether leaves get theirs added to `.grad`; `missing` maps leaves that are to be
    finished as soon as all has arrived to the number of gradients that have not.
    """

    __slots__ = ("keep", "create", "needed", "captured", "accumulate", "grads", "due", "places", "roots", "missing")

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
        self.missing = None

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
        missing = self.missing
        if missing is not None and place in missing:
            missing[place] -= 1
            if not missing[place]:
                self._finish(place, grads.pop(place))

    def run(self):
        """Work off all places that are due, then the leaves."""
        due, places, grads = self.due, self.places, self.grads
        plain = not self.create and self.captured is None and self.missing is None and self.__class__ is Pass
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
                plan = place._plan
                try:
                    pulled = plan.pull(saved, place.types, place.params, g)
                except Exception:
                    pulled = recover_rule(plan, plan.pull, saved, place.types, place.params, g)
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
        captured = self.captured
        wanted = captured is not None and place in captured
        ends = wanted and self.needed is not None and place not in self.needed.interior
        if wanted and not ends:  # as torch has it: what goes on is asked for before its hooks, what ends after them
            captured[place] = g
        if place._more is not None:
            g = place._more.before(place, g, self.create)
        if ends:
            captured[place] = g
            return
        if place.__class__ is Output:
            self._collect(place, g)
            return
        if place._more is not None and place._more.post:
            operands, pulled = self._pull_operands(place, g)
            pulled = place._more.after(g, pulled, self.create)
        else:
            operands, pulled = place._parents, self._pull(place, g)
        for parent, h in zip(operands, pulled):
            if parent is not None:
                self.send(parent, h)

    def _pull_operands(self, node, g):
        """Return the places of all operands of the operation that the graph shows as a node, and their gradients."""
        operands = shown_operands(node)
        if node._more.sources is None:
            pulled = self._pull(node, g)
            found = iter(pulled)
            return operands, pulled if node._plan is None else [None if p is None else next(found) for p in operands]
        inside = Inside(self, operands)
        for parent, h in zip(node._parents, self._pull(node, g)):
            inside.send(parent, h)
        inside.run()
        return operands, [inside.found.pop(place, None) for place in operands]

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
            kept = unpacked(node) if saved else saved
            try:
                pulled = plan.pull(kept, node.types, node.params, g)
            except Exception:
                pulled = recover_rule(plan, plan.pull, kept, node.types, node.params, g)
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


pass_class: type[Pass] = Pass
"""What passes are when they run: anomaly mode puts a class that watches here."""


class Inside(Pass):
    """The part of a pass that runs inside a composed operation: what reaches its operands is collected in `found`."""

    __slots__ = ("found",)

    def __init__(self, outer, operands):
        super().__init__(outer.keep, outer.create, captured={}, accumulate=False)
        self.found = {place: None for place in operands if place is not None}

    def send(self, place, g):
        """Collect what reaches an operand; pass on what goes on inside."""
        found = self.found
        if place not in found:
            super().send(place, g)
        elif g is not None:
            found[place] = g if found[place] is None else found[place] + g


def shown_operands(node):
    """Return a place for each operand of the operation that the graph shows as a node; None for constants."""
    more = node._more
    return node._sources() if more is None or more.sources is None else more.sources


def arrivals(roots, needed):
    """Return for each leaf with hooks for after its gradient is added how many gradients will reach it."""
    count = {}
    seen = set()
    stack = list(roots)
    while stack:
        place = stack.pop()
        if place is None or needed is not None and place not in needed:
            continue
        if isinstance(place, Tensor):
            if place._extras is not None and place._extras.post_hooks:
                count[place] = count.get(place, 0) + 1
        elif place not in seen:
            seen.add(place)
            hooked = place.__class__ is not Output and place._more is not None and place._more.post
            stack.extend(shown_operands(place) if hooked else sources(place))
    return count


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

_accumulation = forks.lock()
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
        g = in_dtype_of(leaf, g)
        if have is None:
            extras.grad = wrap(g if g.__class__ is np.ndarray and _ours_alone(g) else devices.copied(g))
        elif on_gpu(have._data) or isinstance(have._data, np.ndarray) and have._data.flags.writeable:
            np.add(have._data, g, out=have._data)
            have.counter[0] += 1
        else:
            extras.grad = have + wrap(g)


def in_dtype_of(t, g):
    """Return an array's gradient in the dtype of tensor `t`: the real part if `t` is real."""
    dtype = t._data.dtype
    if g.dtype == dtype:
        return g
    return (g.real if g.dtype.kind == "c" and dtype.kind != "c" else g).astype(dtype)


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
    work.__class__ = pass_class
    passes.depth += 1
    passes.callbacks = callbacks = []
    passes.current = work
    try:
        with np.errstate(all="ignore"):
            work.roots = [place for place, _ in roots]
            if post_hooked:
                work.missing = arrivals(work.roots, work.needed) or None
            for place, g in roots:
                work.send(place, g)
            work.run()
        while callbacks:
            callbacks.pop(0)()
    finally:
        passes.depth -= 1
        mode.enabled, passes.callbacks, passes.current = outer
    return work


_own_references = _count_own_references()

"""The same programs observed by torch's profiler and by this one: the same functions, nesting, shapes and ties.

torch's names are mapped to those of the 1.4 documentation: no `aten::`, no events of the engine's own. What torch does
inside of an operation (allocations, conversions of numbers, views it goes through) is left out on both sides.
"""

import importlib
import math
import textwrap

import pytest

import fgrad.compat

pytestmark = pytest.mark.parity

PROGRAMS = {
    "arithmetic": """
        x = leaf(2, 3)
        ((x * 2 + 4) / x).sum().backward()
    """,
    "the example of the documentation": """
        x = leaf(1, 1)
        for _ in range(3):
            y = x ** 2
            y.backward()
    """,
    "products": """
        x = leaf(2, 3)
        (x @ x.t()).exp().sum().backward()
    """,
    "a linear layer": """
        x, w, b = leaf(5, 3), leaf(4, 3), leaf(4)
        h = torch.tanh(x.mm(w.t()) + b)
        h.mean().backward()
    """,
    "two leaves": """
        x, y = leaf(3), leaf(3)
        (x * y).sum().backward()
    """,
    "views": """
        x = leaf(2, 6)
        y = x.view(3, 4)
        y.t().exp().sum().backward()
    """,
    "indexing": """
        x = leaf(4, 3)
        (x[0] * x[1:3]).sum().backward()
    """,
    "joining": """
        x, y = leaf(2, 3), leaf(1, 3)
        torch.cat([x, y]).sigmoid().sum().backward()
    """,
    "in place": """
        x = leaf(3)
        y = x.clone()
        y.mul_(2).add_(1)
        y.sum().backward()
    """,
    "broadcasting": """
        x, y = leaf(4, 1), leaf(3)
        (x - y).abs().sum().backward()
    """,
    "reductions": """
        x = leaf(3, 4)
        x.sum(0).exp().sum().backward()
        x.detach().max()
    """,
    "softmax": """
        x = leaf(3, 4)
        x.softmax(-1).log().sum().backward()
    """,
    "named stretches": """
        x = leaf(3)
        with torch.autograd.profiler.record_function("outer"):
            y = x.exp()
            with torch.autograd.profiler.record_function("inner"):
                z = y.sin()
        z.sum().backward()
    """,
    "a function of one's own": """
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, g):
                return g * 2
        x = leaf(3)
        Twice.apply(x).sum().backward()
    """,
    "no gradient": """
        x = leaf(3)
        with torch.no_grad():
            (x * x).cos()
        x.detach()
    """,
    "grad": """
        x = leaf(3)
        torch.autograd.grad((x * x).sum(), x)
    """,
}

PLUMBING = frozenset(
    "to _to_copy empty empty_like empty_strided copy_ fill_ as_strided resolve_conj ones_like detach item"
    " _local_scalar_dense torch::autograd::GraphRoot".split()
)
"""What one of the two does on the way: memory, conversions, the start of a pass."""


def observed(torch, text):
    """Return the events of a program under the profiler of `torch`. It runs once before, to learn its leaves."""
    program = compile(textwrap.dedent(text), "<program>", "exec")
    shapes = []

    def leaf(*shape):
        shapes.append(shape)
        return torch.arange(1.0, 1.0 + math.prod(shape)).view(*shape).requires_grad_()

    exec(program, {"torch": torch, "leaf": leaf})
    leaves = iter([leaf(*shape) for shape in list(shapes)])
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        exec(program, {"torch": torch, "leaf": lambda *shape: next(leaves)})
    return prof.function_events


def name_of(event):
    """Return an event's name as the 1.4 documentation has it, None for events that are no part of the comparison."""
    name = event.name.removeprefix("aten::")
    if name in PLUMBING or name.startswith("autograd::engine::evaluate_function"):
        return None
    return name


def is_backward(event):
    return "Backward" in event.name and not event.name.startswith("autograd::") or "AccumulateGrad" in event.name


def outermost(event):
    """Say whether an event lies in no other but named stretches."""
    outer = event.cpu_parent
    while outer is not None:
        if outer.name not in STRETCHES:
            return False
        outer = outer.cpu_parent
    return True


STRETCHES = ("outer", "inner")


def stretch_of(event):
    """Return the innermost named stretch that an event lies in."""
    outer = event.cpu_parent
    while outer is not None and outer.name not in STRETCHES:
        outer = outer.cpu_parent
    return outer.name if outer is not None else None


def summary(events):
    """Return what must agree: forward functions, nodes with what they go back to, and the stretches they lie in."""
    forward, nodes = [], []
    makers = {}
    for event in sorted(events, key=lambda e: e.time_range.start):
        name = name_of(event)
        if name is None:
            continue
        if is_backward(event):
            nodes.append((name, event.sequence_nr, makers.get(event.sequence_nr)))
        elif outermost(event):
            shapes = [shape for shape in flat(event.input_shapes) if shape]
            forward.append((name, shapes, stretch_of(event)))
        if not is_backward(event) and event.sequence_nr >= 0:
            makers.setdefault(event.sequence_nr, name)
    return forward, [(name, maker) for name, _, maker in without_parts(nodes)]


def without_parts(nodes):
    """Return nodes without those that belong to the same call as one before: what is one node for one is several."""
    known = set()
    for node in nodes:
        if node[1] < 0 or node[1] not in known:
            yield node
        known.add(node[1])


def without_leaves(nodes):
    """Return nodes without the ends at leaves, which come last here and as soon as they can with torch."""
    return [node for node in nodes if node[0] != "torch::autograd::AccumulateGrad"]


def flat(shapes):
    """Return shapes with those of lists of tensors among them."""
    for shape in shapes:
        if shape and isinstance(shape[0], list):
            yield from shape
        else:
            yield shape


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    theirs = summary(observed(importlib.import_module("torch"), PROGRAMS[name]))
    ours = summary(observed(fgrad.compat, PROGRAMS[name]))
    assert [row[::2] for row in ours[0]] == [row[::2] for row in theirs[0]]
    for mine, other in zip(ours[0], theirs[0], strict=True):
        assert mine[1] == other[1] or mine[0] == "cat", mine  # torch shows no shapes of lists
    assert without_leaves(ours[1]) == without_leaves(theirs[1])
    assert len(ours[1]) == len(theirs[1])

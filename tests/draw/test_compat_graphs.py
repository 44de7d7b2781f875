"""Pictures of recorded graphs: names, shapes, saved bytes, composed operations, freed graphs, and errors."""

import inspect
import re

import numpy as np
import pytest

import fgrad.compat as torch
from fgrad.drawing.text import bytes_text
from tests.draw.helpers import parse_dot, parse_svg


def labels(picture):
    return [(node["label"]).split("\n") for node in parse_dot(picture.dot)[0].values()]


def operations(picture):
    return [g for g in picture.groups if g.role == "operation"]


def test_the_structure_of_a_graph():
    w = torch.ones(3, 2, requires_grad=True)
    b = torch.zeros(2, requires_grad=True)
    y = torch.tanh(torch.ones(4, 3) @ w + b).sum()
    picture = torch.draw(y, names={"w": w, "b": b})
    found = labels(picture)
    assert sorted(found[:2]) == [["b", "float32[2]"], ["w", "float32[3,2]"]]
    assert found[2:] == [
        ["MmBackward0", "float32[4,2]", "saves 48 B: self"],
        ["AddBackward0", "float32[4,2]"],
        ["TanhBackward0", "float32[4,2]", "saves 32 B: result"],
        ["SumBackward0", "float32[]"],
        ["output", "float32[]"],
    ]
    assert picture.summary == "4 operations, 80 B saved for backward"
    parse_svg(picture.svg())


SHAPED = {
    "reductions": lambda x: x.amax(1).mean() + x.prod(0).sum() + x.std() + x.norm() + torch.logsumexp(x, 1).sum(),
    "shapes": lambda x: torch.cat([x.t(), x.t()]).reshape(-1).unsqueeze(0).expand(2, -1).permute(1, 0).flip(0),
    "indexing": lambda x: x[torch.tensor([0, 0, 2])].cumsum(1)[:, 1:].gather(1, torch.tensor([[0], [1], [0]])),
    "sorting": lambda x: x.sort(1).values[0] + x.topk(2).values[:, :1].squeeze(1).sum() + x.max(1).values.sum(),
    "products": lambda x: torch.einsum("ij,kj->ik", x, x) @ torch.linalg.inv(x @ x.t() + 9 * torch.eye(3)),
    "factors": lambda x: (
        sum(part.sum() for part in torch.linalg.svd(x)) + torch.linalg.cholesky(x @ x.t() + torch.eye(3))
    ),
    "softmax": lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 2])) + x.softmax(0).sum(),
    "complex": lambda x: torch.fft.fft(torch.complex(x, x)).abs().sum(),
    "places": lambda x: (x * 2).add_(1).mul_(x),
    "choice": lambda x: torch.where(x > 0, x, x * 2).clamp(0, 1).pow(3) / (x.exp() + 1),
}


@pytest.mark.parametrize("name", SHAPED)
def test_every_shape_is_known(name):
    x = (torch.arange(12.0).reshape(3, 4) / 7).requires_grad_()
    picture = torch.draw(SHAPED[name](x))
    unknown = [g.title for g in operations(picture) if any(kind is None for step in g.steps for kind in step.types)]
    assert not unknown
    for (label, *_), group in zip(labels(picture), picture.groups, strict=True):
        assert label.startswith(group.title)


def test_types_are_those_of_the_tensors():
    x = torch.ones(3, 1, dtype=torch.float64, requires_grad=True)
    y = x.to(torch.float32)
    z = (y + torch.ones(2)).sum(0)
    kinds = [str(g.steps[0].types[0]) for g in operations(torch.draw(z))]
    assert kinds == ["float32[3,1]", "float32[3,2]", "float32[2]"]


def test_what_views_save_is_counted_once():
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    picture = torch.draw((y[:2] * y[2:]).sum())
    assert picture.summary.endswith("16 B saved for backward")


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


def test_functions_of_the_user():
    x = torch.ones(5, requires_grad=True)
    (square, _total) = operations(torch.draw(Square.apply(x).sum()))
    assert (square.title, [s.nbytes for s in square.saved]) == ("SquareBackward", [20])
    assert str(square.steps[0].types[0]) == "float32[5]"


def test_composed_operations_are_one_box_with_all_that_they_save():
    x = torch.ones(4, 3, requires_grad=True)
    y = torch.std(x, 0)
    (std,) = operations(torch.draw(y))
    assert std.title == "StdBackward0"
    assert std.saved
    assert std.reads == [0]


def test_several_roots_and_a_leaf():
    x = torch.ones(2, requires_grad=True)
    picture = torch.draw([x, x * 2])
    assert [label[0] for label in labels(picture)] == ["leaf", "MulBackward0", "output 0", "output 1"]
    assert picture.title == "the graph of a leaf, MulBackward0"


def test_freed_graphs_say_so():
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    picture = torch.draw(y)
    assert "what freed nodes had saved is not known" in picture.summary
    assert [g.detail for g in operations(picture)] == [["freed"], []]


def test_saved_values_that_hooks_packed_are_left_alone():
    x = torch.ones(2, requires_grad=True)
    calls = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: calls.append(t) or t):
        y = (x * x).sum()
    parse_dot(torch.draw(y).dot)
    assert not calls


def test_a_loop_folds_by_what_repeats():
    x = torch.ones(3, requires_grad=True)
    y = x
    for _ in range(100):
        y = torch.sin(y) * 2
    picture = torch.draw(y.sum())
    assert [(g.title, g.repeats) for g in operations(picture)] == [("2 operations", 100), ("SumBackward0", 1)]
    assert bytes_text(100 * 12) in picture.summary


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_mode_gives_lines():
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = x
        for _ in range(100):
            y = torch.sin(y)
    (group,) = operations(torch.draw(y))
    assert re.fullmatch(r"test_compat_graphs\.py:\d+", *group.detail)
    assert group.title == "test_anomaly_mode_gives_lines"


def test_a_graph_of_many_nodes():
    x = torch.ones((), requires_grad=True)
    y = x
    for k in range(3000):
        y = y * (1 - k % 7 / 100)
    picture = torch.draw(y)
    assert len(operations(picture)) <= 60
    parse_svg(picture.svg())


def test_errors():
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.draw(torch.ones(2))
    with pytest.raises(TypeError, match="draw expects a tensor"):
        torch.draw(np.ones(2))


def test_outputs_of_a_composed_operation_may_share_what_is_inside():
    x = (torch.arange(9.0).reshape(3, 3) / 7 + torch.eye(3)).requires_grad_()
    u, s, v = torch.svd(x)
    picture = torch.draw([u, s, v])
    titles = [g.title for g in operations(picture)]
    assert titles.count("SvdBackward0") + titles.count("LinalgSvdBackward0") >= 1
    assert all(kind is not None for g in operations(picture) for step in g.steps for kind in step.types)
    parse_svg(picture.svg())


def matrix():
    return (torch.arange(9.0).reshape(3, 3) / 7 + torch.eye(3)).requires_grad_()


ARGUMENTS = [
    lambda: (matrix(),),
    lambda: (matrix(), 1),
    lambda: (matrix(), matrix()),
    lambda: (matrix(), matrix(), matrix()),
    lambda: (matrix(), (0, 1)),
    lambda: (matrix(), 1, 0),
    lambda: ([matrix(), matrix()],),
]


def is_operation(name, fun):
    """Say whether a public function works on tensors: others set what holds for the whole process."""
    if not inspect.isfunction(fun) or name.startswith(("_", "set_", "manual_seed", "seed")):
        return False
    return fun.__module__.startswith(("fgrad.compat.methods", "fgrad.compat.nn.functional"))


def recorded_by(fun, make):
    """Return the tensors that a function gives for arguments, if it takes these and records anything."""
    try:
        out = fun(*make())
    except Exception:  # what a function makes of arguments that are not meant for it is not the matter here
        return []
    outs = out if isinstance(out, (tuple, list)) else [out]
    return [t for t in outs if isinstance(t, torch.Tensor) and t.grad_fn is not None]


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_the_graph_of_every_function_is_drawn_with_every_shape():
    drawn = set()
    for module in (torch, torch.linalg, torch.fft, torch.special, torch.nn.functional):
        for name, fun in vars(module).items():
            for make in ARGUMENTS if is_operation(name, fun) else ():
                outs = recorded_by(fun, make)
                if not outs:
                    continue
                picture = torch.draw(outs)
                assert "freed" not in picture.summary
                assert all(kind is not None for g in picture.groups for s in g.steps for kind in s.types), name
                parse_svg(picture.svg())
                drawn.add(name)
    assert len(drawn) > 200

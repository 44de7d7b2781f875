"""Folding: what is joined, that it stays acyclic, and that nothing is lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fgrad
from fgrad.core import ArrayType
from fgrad.drawing.fold import fold, function_at
from fgrad.drawing.steps import SavedValue, Step, total

SCALAR = ArrayType((), np.dtype(float))


@st.composite
def programs(draw):
    steps = [Step(f"x{k}", "input", (), [SCALAR]) for k in range(draw(st.integers(0, 5)))]
    for _ in range(draw(st.integers(1, 40))):
        reads = draw(st.lists(st.integers(0, len(steps) - 1), max_size=3)) if steps else []
        place = draw(st.sampled_from(["", "/a.py:1", "/a.py:2", "/b.py:9"]))
        saved = [SavedValue(draw(st.integers(0, 9)), 8, "x")] if draw(st.booleans()) else []
        steps.append(Step(draw(st.sampled_from("fgh")), "operation", reads, [SCALAR], "", place, saved=saved))
    for k in range(draw(st.integers(0, 3))):
        steps.append(Step(f"out{k}", "output", [draw(st.integers(0, len(steps) - k - 1))], [SCALAR]))
    return steps


@settings(max_examples=40)
@given(programs(), st.integers(1, 50))
def test_folding_keeps_every_step_and_stays_acyclic(steps, limit):
    groups = fold(steps, limit)
    assert sorted(map(id, steps)) == sorted(id(step) for g in groups for step in g.steps)
    assert all(u < k for k, g in enumerate(groups) for u in g.reads)
    assert sum(g.role == "operation" for g in groups) <= limit
    assert total([s for g in groups for s in g.saved]) == total([s for step in steps for s in step.saved])


@settings(max_examples=40)
@given(programs(), st.integers(1, 50))
def test_edges_between_groups_are_those_of_their_steps(steps, limit):
    groups = fold(steps, limit)
    home = {id(step): k for k, g in enumerate(groups) for step in g.steps}
    wanted = {(home[id(steps[i])], home[id(step)]) for step in steps for i in step.inputs}
    assert {(u, k) for k, g in enumerate(groups) for u in g.reads} == {(u, k) for u, k in wanted if u != k}


def operations(groups):
    return [(g.title, *g.detail, len(g.steps), g.repeats) for g in groups if g.role == "operation"]


def test_a_loop_in_lines_of_its_own_is_one_box():
    def deep(x):
        for _ in range(100):
            x = np.sin(x)
            x = x * 2
        return x.sum()

    picture = fgrad.draw(deep, np.ones(3))
    line = deep.__code__.co_firstlineno
    titles = operations(picture.groups)
    name = "test_a_loop_in_lines_of_its_own_is_one_box.deep"
    assert titles[0] == (name, f"test_fold.py:{line + 2}-{line + 3}", 200, 100)
    assert titles[1][0] == "reduce_sum"
    assert "200 operations" not in picture.summary
    assert picture.summary.startswith("201 operations in 2 boxes")


def test_functions_fold_where_lines_are_too_many():
    source = "def block(x):\n" + "".join(f"    x = x * {k}.0\n" for k in range(2, 12)) + "    return x\n"
    steps = [Step("x", "input", (), [SCALAR])]
    for k in range(40):
        steps.append(Step(f"op{k}", "operation", [k], [SCALAR], "", f"/nowhere/model.py:{k + 1}"))
    groups = [g for g in fold(steps, 10) if g.role == "operation"]
    assert [len(g.steps) for g in groups] == [4] * 10
    assert groups[0].detail == ["model.py:1-4"]
    assert source.count("\n") == 12


def test_names_given_by_the_user_are_the_titles():
    def f(x):
        for _ in range(3):
            x = fgrad.checkpoint_name(np.sin(x) * 2, "wave")
        return x

    assert operations(fgrad.draw(f, 1.0, max_nodes=4).groups)[0][0] == "wave"


def test_inputs_read_by_the_same_box_are_joined():
    def f(xs):
        total = 0.0
        for x in xs:
            total = total + x * 2
        return total

    picture = fgrad.draw(f, [np.ones(2)] * 30, max_nodes=5)
    assert [(g.title, len(g.steps)) for g in picture.groups if g.role == "input"] == [("30 inputs", 30)]


def test_the_function_of_a_line():
    line = test_the_function_of_a_line.__code__.co_firstlineno
    assert function_at(f"{__file__}:{line + 1}") == f"{__file__}:test_the_function_of_a_line"
    assert function_at("an unknown line") == ""
    assert function_at("/no/such/file.py:3") == ""


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="max_nodes must be at least 1, got 0"):
        fgrad.draw(np.sin, 1.0, max_nodes=0)


def test_a_transformer_folds_into_its_functions():
    def norm(x):
        m = x.mean(-1, keepdims=True)
        v = ((x - m) ** 2).mean(-1, keepdims=True)
        return (x - m) / np.sqrt(v + 1e-5)

    def attention(p, x):
        s = (x @ p["q"]) @ (x @ p["k"]).T
        e = np.exp(s - s.max(-1, keepdims=True))
        a = e / e.sum(-1, keepdims=True)
        return a @ (x @ p["v"])

    def model(params, x):
        for p in params:
            x = x + attention(p, norm(x))
            x = x + np.tanh(norm(x) @ p["w"])
        return (x**2).mean()

    params = [{name: np.ones((4, 4)) for name in "qkvw"} for _ in range(5)]
    picture = fgrad.draw(model, params, np.ones((3, 4)), max_nodes=40)
    titles = [g.title.rpartition(".")[2] for g in picture.groups if g.role == "operation"]
    assert sum(len(g.steps) for g in picture.groups if g.role == "operation") > 150
    assert titles[:4] == ["norm", "attention", "add", "norm"]
    assert titles.count("norm") == 10
    assert titles.count("attention") == 5


def test_named_scopes_are_the_boxes():
    def layer(x):
        with fgrad.named_scope("attention"):
            x = x + np.sin(x)
        with fgrad.named_scope("mlp"):
            return x + np.tanh(x * 2)

    def model(x):
        for k in range(3):
            with fgrad.named_scope(f"layer{k}"):
                x = layer(x)
        return x.sum()

    def titles(limit):
        return [g.title for g in fgrad.draw(model, np.ones(3), max_nodes=limit).groups if g.role == "operation"]

    assert titles(10)[:3] == ["layer0/attention", "layer0/mlp", "layer1/attention"]
    assert titles(4) == ["layer0", "layer1", "layer2", "reduce_sum"]
    assert len(titles(100)) == 16


def test_derivatives_are_boxes_of_the_functions_that_ran_forward():
    def outer(x):
        y = np.sin(x) * 2
        return y * y + x

    def loss(x):
        y = outer(outer(x))
        return (y * y).sum()

    picture = fgrad.draw(fgrad.grad(loss), np.ones(3), max_nodes=8)
    titles = [g.title.rpartition(".")[2] for g in picture.groups if g.role == "operation"]
    assert titles == ["outer", "loss", "loss, derivative", "outer, derivative"]
    assert sum(len(g.steps) for g in picture.groups if g.role == "operation") > 20

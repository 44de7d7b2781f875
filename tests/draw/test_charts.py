"""Pictures of profiles: golden structure from events made by hand, so that no time decides a test."""

import itertools

import numpy as np
import pytest

import fgrad
import fgrad.compat as torch
from fgrad.drawing import flames, svg
from fgrad.drawing.tables import EVENT_COLUMNS, events_table
from fgrad.profiler.events import CATEGORIES, EventList, FunctionEvent
from tests.draw.helpers import SVG, parse_svg, texts


def events_of(*nested, span=1000):
    """Return events from (name, category, start, end, [inside]) tuples, all in one thread."""
    found = []

    def add(item, parent):
        name, category, start, end, *inside = item
        event = FunctionEvent(len(found) + 1, name, 7, start, end, category)
        found.append(event)
        if parent is not None:
            parent.append_child(event)
        for child in inside:
            add(child, event)

    for item in nested:
        add(item, None)
    return EventList(found, [(7, "MainThread", 0, span)])


STEP = events_of(
    ("step", "user", 0, 400, ("mul", "op", 0, 100), ("mul", "op", 150, 350)),
    ("step", "user", 500, 700, ("add", "op", 500, 600)),
    ("MulBackward0", "backward", 700, 900),
)


def frame_tree(frame):
    return {f.name: (f.total, f.own, f.count, frame_tree(f)) for f in frame.inside.values()}


def test_frames_take_events_of_the_same_place_together():
    root = flames.frames(STEP)
    assert (root.total, root.own) == (1000, 200)
    assert frame_tree(root) == {
        "step": (600, 200, 2, {"mul": (300, 0 + 300, 2, {}), "add": (100, 100, 1, {})}),
        "MulBackward0": (200, 200, 1, {}),
    }


def rects(root):
    """Return tip, left edge, width and top of every frame."""
    found = []
    for group in root.iter(SVG + "g"):
        title, rect = group.find(SVG + "title"), group.find(SVG + "rect")
        if title is not None and rect is not None:
            found.append((title.text.split("\n")[0], *(float(rect.get(k)) for k in ("x", "width", "y"))))
    return found


def test_children_lie_below_and_inside_their_parents():
    found = {name: rest for name, *rest in rects(parse_svg(flames.flamegraph_svg(STEP)))}
    assert set(found) == {"observed (user)", "step (user)", "mul (op)", "add (op)", "MulBackward0 (backward)"}
    for child, parent in [("step (user)", "observed (user)"), ("mul (op)", "step (user)"), ("add (op)", "step (user)")]:
        x, w, y = found[child]
        px, pw, py = found[parent]
        assert px - 1e-6 <= x
        assert x + w <= px + pw + 0.2
        assert y == py + flames.ROW
    assert found["step (user)"][1] == pytest.approx(found["observed (user)"][1] * 0.6, abs=0.5)


def test_what_is_too_narrow_is_counted():
    many = [(f"f{k}", "op", k, k + 1) for k in range(5)]
    svg_text = flames.flamegraph_svg(events_of(*many, ("long", "op", 10, 10**6), span=10**6))
    assert any("5 frames too narrow to draw" in line for line in texts(parse_svg(svg_text)))


@pytest.mark.parametrize("make", [flames.flamegraph_svg, flames.overview_svg])
@pytest.mark.parametrize(
    "events",
    [
        EventList(),
        EventList([], [(7, "MainThread", 0, 0)]),
        events_of(('<b>"\\\x00é', "op", 0, 10)),
        events_of(("a" * 500, "kernel", 0, 10)),
        events_of(*[(c, c, 10 * k, 10 * k + 9) for k, c in enumerate(CATEGORIES)]),
    ],
)
def test_any_events_make_well_formed_pictures(make, events):
    root = parse_svg(make(events))
    width = float(root.get("width"))
    for _, x, w, _ in rects(root):
        assert 0 <= x <= x + w <= width


def test_deep_nests_need_no_recursion():
    item = ("f", "op", 0, 3000)
    events = [FunctionEvent(k + 1, f"f{k}", 7, k, 10_000 - k, "op") for k in range(3000)]
    for outer, inner in itertools.pairwise(events):
        outer.append_child(inner)
    parse_svg(flames.flamegraph_svg(EventList(events, [(7, item[0], 0, 10_000)])))


def test_the_overview_has_a_bar_for_each_name_and_the_rest():
    shown = texts(parse_svg(flames.overview_svg(STEP)))
    for name in ("step", "mul", "add", "MulBackward0", "in no event"):
        assert name in shown
    assert "300 ns, 30.0%, 2 calls" in shown
    assert "200 ns, 20.0%" in shown
    assert "thread MainThread" in shown


def test_many_names_are_summed_up():
    events = events_of(*[(f"f{k}", "op", 10 * k, 10 * k + 9) for k in range(40)])
    shown = texts(parse_svg(flames.overview_svg(events)))
    assert "15 more names" in shown


def test_every_category_has_a_colour_that_carries_text():
    assert set(flames.COLOURS) == set(CATEGORIES)
    for colour in flames.COLOURS.values():
        ink = svg.ink_for(colour)
        light, dark = sorted((svg.luminance(rgb(c)) + 0.05 for c in (colour, ink)), reverse=True)
        assert light / dark >= 4.5


def rgb(colour):
    return [int(colour[k : k + 2], 16) for k in (1, 3, 5)]


def test_ticks_are_round_and_few():
    for end in (0.0, 1e-9, 0.3, 7.3, 1e6):
        found = svg.ticks(end, 5)
        assert found[0] == 0
        assert found[-1] <= end
        assert len(found) <= 6


def test_tables_hold_every_name_whole():
    html = events_table(events_of(("a" * 300 + "<", "op", 0, 1500)))
    assert "a" * 300 + "&lt;" in html
    assert all(column in html for column in EVENT_COLUMNS)
    assert "<th" in html
    assert "shapes" not in html


def test_tables_show_shapes_and_lines_that_were_recorded():
    events = events_of(("mul", "op", 0, 1500), ("add", "op", 1600, 1700))
    events[0].input_shapes = [[2, 3], []]
    events[0].stack = ["model.py(3): f", "main.py(1): <module>"]
    html = events_table(events)
    assert "[[2, 3], []]" in html
    assert "model.py(3): f" in html
    assert "main.py" not in html


# ------------------------------------------------------------------------------------------------------ from profiles


def test_profiles_write_pictures_that_need_no_network(tmp_path):
    with fgrad.profile() as prof:
        fgrad.grad(lambda x: np.tanh(x).sum())(np.ones(3))
    prof.flamegraph(tmp_path / "flame.svg")
    prof.flamegraph(tmp_path / "flame.html")
    prof.plot(tmp_path / "plot.svg")
    prof.plot(tmp_path / "plot.html")
    assert {"tanh (primitive)", "tanh pull (backward)"} <= {
        name for name, *_ in rects(parse_svg((tmp_path / "flame.svg").read_text()))
    }
    for name in ("flame.html", "plot.html"):
        page = (tmp_path / name).read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http" not in page
        assert "<script" not in page
        assert "tanh" in page
    with pytest.raises(ValueError, match="saved as .svg or .html, got 'flame.png'"):
        prof.flamegraph(tmp_path / "flame.png")
    assert "<table" in prof._repr_html_()
    assert "<table" in prof.function_events._repr_html_()
    assert "<table" in prof.key_averages()._repr_html_()


def test_times_of_a_profile_colour_a_program():
    def f(x):
        y = np.tanh(x)
        return (y * y).sum()

    with fgrad.profile(with_stack=True) as prof:
        fgrad.grad(f)(np.ones(3))
    picture = fgrad.draw(f, np.ones(3)).timed(prof)
    times = {g.title: g.seconds for g in picture.groups}
    assert times["x"] is None
    tanh = [e for e in prof.function_events if e.name in ("tanh", "tanh pull")]
    assert times["tanh"] == pytest.approx(sum(e.total_ns for e in tanh) / 1e9)
    assert "measured" in picture.summary
    with pytest.raises(ValueError, match="no event of what is drawn"):
        fgrad.draw(np.cos, np.ones(3)).timed(prof)


def test_times_of_a_profile_colour_a_recorded_graph():
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.profiler.profile() as prof:
        y = torch.tanh(x)
        loss = y.sum()
        loss.backward(retain_graph=True)
    picture = torch.draw(loss).timed(prof)
    times = {g.title: g.seconds for g in picture.groups}
    tanh = [e for e in prof.function_events if e.name in ("tanh", "TanhBackward0")]
    assert len(tanh) == 2
    assert times["TanhBackward0"] == pytest.approx(sum(e.total_ns for e in tanh) / 1e9)
    assert times["SumBackward0"] > 0


def test_kernels_on_a_device_have_a_lane():
    events = events_of(("launch", "op", 0, 100))
    kernel = FunctionEvent(99, "softmax", 0, 50, 500, "kernel")
    kernel.device = "cuda:0"
    events[0].kernels = [kernel]
    shown = texts(parse_svg(flames.overview_svg(events)))
    assert "kernels on cuda:0" in shown
    assert "softmax" in shown


def test_pictures_of_many_events_stay_small():
    events = events_of(*[("f", "op", 10 * k, 10 * k + 9) for k in range(30_000)], span=300_000)
    assert len(flames.overview_svg(events)) < 400_000


def test_times_of_forward_and_derivative_are_told_apart_where_both_are_drawn():
    def f(x):
        return np.tanh(x).sum()

    gradient = fgrad.grad(f)
    with fgrad.profile(with_stack=True) as prof:
        gradient(np.ones(3))
    picture = fgrad.draw(gradient, np.ones(3)).timed(prof)
    (tanh,) = [g for g in picture.groups if g.title == "tanh"]
    (event,) = [e for e in prof.function_events if e.name == "tanh"]
    assert tanh.seconds == pytest.approx(event.total_ns / 1e9)
    (squared, scaled) = [g for g in picture.groups if g.title == "mul"]
    products = [e.total_ns / 1e9 for e in prof.function_events if e.name == "mul"]
    assert squared.seconds + scaled.seconds == pytest.approx(sum(products))


def test_a_profile_with_stacks_gives_a_recorded_graph_its_lines():
    def deep(x):
        for _ in range(50):
            x = torch.sin(x)
            x = x * 2
        return x

    x = torch.ones(3, requires_grad=True)
    with torch.autograd.profiler.profile(with_stack=True) as prof:
        loss = deep(x).sum()
        loss.backward(retain_graph=True)
    picture = torch.draw(loss).timed(prof)
    titles = [(g.title.rpartition(".")[2], g.repeats) for g in picture.groups if g.role == "operation"]
    assert titles[0] == ("deep", 50)

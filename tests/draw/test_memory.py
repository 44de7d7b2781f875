"""The memory timeline: numbers from events made by hand, from real profiles, and the picture."""

import numpy as np
import pytest

import fgrad
import fgrad.compat as torch
from fgrad.drawing.memory import KINDS, MemoryTimeline
from fgrad.profiler.events import FunctionEvent, MemoryEvent
from tests.draw.helpers import parse_svg, texts


def event(number, name, line=""):
    made = FunctionEvent(number, name, 7, 0, 1, "primitive")
    made.stack = [line] if line else []
    return made


TANH, MUL = event(1, "tanh", "model.py(3): f"), event(2, "mul", "model.py(4): f")

MEMORY = [
    MemoryEvent(1000, 80, "value", TANH),
    MemoryEvent(2000, -80, "value", TANH),
    MemoryEvent(2000, 80, "saved", TANH),
    MemoryEvent(3000, 40, "value", MUL),
    MemoryEvent(4000, 16, "gradient", None),
    MemoryEvent(5000, -80, "saved", TANH),
]


def test_the_numbers():
    timeline = MemoryTimeline(MEMORY)
    np.testing.assert_allclose(timeline.times, [0, 1e-6, 1e-6, 2e-6, 3e-6, 4e-6])
    assert timeline.live["saved"].tolist() == [0, 0, 80, 80, 80, 0]
    assert timeline.live["value"].tolist() == [80, 0, 0, 40, 40, 40]
    assert timeline.live["gradient"].tolist() == [0, 0, 0, 0, 16, 16]
    assert timeline.total.tolist() == [80, 0, 80, 120, 136, 56]
    assert (timeline.peak, timeline.peak_index) == (136, 4)
    assert all(timeline.live[kind].dtype == np.int64 for kind in KINDS)


def test_the_holders():
    timeline = MemoryTimeline(MEMORY)
    assert [tuple(h) for h in timeline.holders()] == [
        (80, "saved", "tanh", "model.py(3): f", 1),
        (40, "value", "mul", "model.py(4): f", 1),
        (16, "gradient", "made before", "", 1),
    ]
    assert [h.name for h in timeline.holders(1)] == ["tanh"]
    assert [h.name for h in timeline.holders(at=5)] == ["mul", "made before"]


def test_the_picture(tmp_path):
    timeline = MemoryTimeline(MEMORY)
    root = parse_svg(timeline.svg())
    shown = texts(root)
    assert "peak 136 B" in shown
    assert "model.py(3): f" in shown
    timeline.save(tmp_path / "m.svg")
    timeline.save(tmp_path / "m.html")
    assert (tmp_path / "m.svg").read_text() == timeline.svg()
    assert timeline.svg() in timeline._repr_html_()
    assert repr(timeline) == "<memory timeline: peak 136 B (80 B saved for backward, 16 B gradients, 40 B values)>"
    with pytest.raises(ValueError, match="saved as .svg or .html"):
        timeline.save(tmp_path / "m.png")


def test_nothing_followed():
    timeline = MemoryTimeline([])
    parse_svg(timeline.svg())
    assert timeline.holders() == []
    with fgrad.profile() as prof:
        pass
    with pytest.raises(ValueError, match="profile_memory=True"):
        prof.memory_timeline()
    with fgrad.profile(profile_memory=True) as prof:
        pass
    assert prof.memory_timeline().peak == 0


def test_functional_code(tmp_path):
    def loss(x):
        y = np.tanh(x)
        return (y * y).sum()

    with fgrad.profile(profile_memory=True, with_stack=True) as prof:
        fgrad.grad(loss)(np.ones(1000))
    timeline = prof.memory_timeline(tmp_path / "m.svg")
    assert (tmp_path / "m.svg").exists()
    assert all((timeline.live[kind] >= 0).all() for kind in KINDS)
    assert timeline.live["saved"].max() >= 8000
    assert timeline.live["gradient"].max() >= 8000
    assert timeline.live["saved"][-1] == 0
    (holder, *_) = [h for h in timeline.holders(at=int(np.argmax(timeline.live["saved"]))) if h.kind == "saved"]
    assert (holder.name, holder.nbytes) == ("tanh", 8000)
    assert "test_memory.py(" in holder.line


def test_tensors():
    x = torch.ones(1000, requires_grad=True)
    with torch.autograd.profiler.profile(profile_memory=True, with_stack=True) as prof:
        y = torch.tanh(x)
        loss = (y * y).sum()
        loss.backward()
    timeline = prof.memory_timeline()
    assert all((timeline.live[kind] >= 0).all() for kind in KINDS)
    assert timeline.live["saved"].max() >= 4000
    assert timeline.live["gradient"].max() >= 4000


def test_gradients_are_named_by_what_they_go_back_through():
    def loss(x):
        return np.tanh(x).sum()

    with fgrad.profile(profile_memory=True, with_stack=True) as prof:
        gradient = fgrad.grad(loss)(np.ones(1000))
    timeline = prof.memory_timeline()
    (holder, *_) = timeline.holders(at=len(timeline.times) - 1)
    line = loss.__code__.co_firstlineno + 1
    assert (holder.kind, holder.name, holder.nbytes) == ("gradient", "tanh pull", gradient.nbytes)
    assert f"test_memory.py({line}): loss" in holder.line


def test_a_picture_of_many_changes_stays_small_and_keeps_the_peak():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 9, 50_000)
    changes = [
        MemoryEvent(10 * k + 5 * sign, int(n) * (1, -1)[sign], "value", TANH)
        for k, n in enumerate(sizes)
        for sign in (0, 1)
    ]
    changes.append(MemoryEvent(123_456, 1000, "value", MUL))
    changes.append(MemoryEvent(123_457, -1000, "value", MUL))
    timeline = MemoryTimeline(changes)
    svg_text = timeline.svg()
    assert len(svg_text) < 400_000
    assert timeline.peak >= 1000
    (area,) = [p for p in parse_svg(svg_text).iter("{http://www.w3.org/2000/svg}path") if p.get("fill") == "#56b4e9"]
    heights = [float(point.split()[1]) for point in area.get("d").strip("Mz").split("L")]
    assert min(heights) == pytest.approx(56 + 300 * (1 - 1 / 1.04), abs=0.2)


def test_what_was_there_before_the_log_begins_is_alive_from_its_beginning():
    timeline = MemoryTimeline([MemoryEvent(1, 8, "value", MUL), MemoryEvent(2, -80, "value", TANH)])
    assert timeline.live["value"].tolist() == [80, 0]

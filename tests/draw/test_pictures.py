"""Pictures of Programs: the golden structure of DOT, SVG that is well-formed and legible, files, and errors."""

import itertools
import shutil
import stat
import subprocess

import numpy as np
import pytest

import fgrad
from fgrad.drawing import svg
from fgrad.drawing.boxes import boxes_of
from fgrad.drawing.dot import MISSING, quoted
from fgrad.drawing.picture import Picture
from fgrad.drawing.steps import Step
from fgrad.drawing.text import bytes_text, cells, seconds_text, shorten
from tests.draw.helpers import SVG, parse_dot, parse_svg, texts, unquoted

graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")

NASTY = ['say "hi"', "back\\slash\\N", "a\nb", "<b>&amp;</b>", "日本語 é", "\x00\x1b[31m", "}", "\\", '\\"']


def loss(params, x):
    h = np.tanh(x @ params["w"] + params["b"])
    return (h**2).sum()


PARAMS = {"w": np.ones((3, 2)), "b": np.zeros(2)}


def test_the_structure_of_a_picture():
    nodes, edges = parse_dot(fgrad.draw(loss, PARAMS, np.ones((4, 3))).dot)
    assert [node["label"] for node in nodes.values()] == [
        "params['b']\nfloat64[2]",
        "params['w']\nfloat64[3,2]",
        "x\nfloat64[4,3]",
        "dot_general\ncontract=((1,), (0,))\nfloat64[4,2]\nsaves 144 B: params['w'], x",
        "add\nfloat64[4,2]",
        "tanh\nfloat64[4,2]\nsaves 64 B: tanh",
        "pow\n(_, 2)\nfloat64[4,2]\nsaves 64 B: tanh",
        "reduce_sum\naxes=(0, 1)\nfloat64[]",
        "output\nfloat64[]",
    ]
    assert edges == [
        ("n1", "n3"), ("n2", "n3"), ("n0", "n4"), ("n3", "n4"), ("n4", "n5"), ("n5", "n6"), ("n6", "n7"), ("n7", "n8")
    ]  # fmt: skip


def test_what_is_saved_is_counted_once():
    picture = fgrad.draw(lambda x: np.tanh(x) * np.tanh(x), np.ones(4))
    assert picture.summary == "3 operations, 64 B saved for backward"
    assert fgrad.draw(lambda x: (2 * x).sum(), np.ones(4)).summary.endswith("2 operations, 0 B saved for backward")


def test_what_is_saved_is_what_the_tape_saves():
    args = PARAMS, np.ones((4, 3))
    _, pullback = fgrad.vjp(loss, *args)
    saved = {id(x): x.nbytes for node in pullback._order for x in node.saved if isinstance(x, np.ndarray)}
    assert bytes_text(sum(saved.values())) in fgrad.draw(loss, *args).summary


def test_jitted_functions_and_programs_are_drawn():
    args = PARAMS, np.ones((4, 3))
    program = fgrad.make_ir(loss)(*args)
    for picture in (fgrad.draw(fgrad.jit(loss), *args), fgrad.draw(program)):
        assert [g.title for g in picture.groups if g.role == "operation"] == [
            "dot_general", "add", "tanh", "pow", "reduce_sum",
        ]  # fmt: skip
    names = [g.title for g in fgrad.draw(fgrad.jit(loss), *args).groups if g.role == "input"]
    assert names == ["params['b']", "params['w']", "x"]
    with pytest.raises(TypeError, match="without further arguments"):
        fgrad.draw(program, 1.0)
    with pytest.raises(TypeError, match="draw expects a function"):
        fgrad.draw(3)


@pytest.mark.parametrize(
    ("fun", "arg", "remark"),
    [
        (lambda i: i + 1, 3, "no input is differentiable"),
        (lambda x: fgrad.lax.while_loop(lambda v: v > 1, lambda v: v / 2, x), 4.0, "no reverse mode: "),
        (lambda x: (), 4.0, ""),
        (lambda x: 2.0, 4.0, ""),
        (lambda x: np.ones((0, 3)) * x, 4.0, ""),
    ],
)
def test_functions_without_much_to_differentiate(fun, arg, remark):
    picture = fgrad.draw(fun, arg)
    assert remark in picture.summary
    parse_dot(picture.dot)
    parse_svg(picture.svg())


def test_arguments_are_called_what_the_function_calls_them():
    def f(n, x, *more, scale):
        return x * n + scale + sum(more)

    jitted = fgrad.jit(f, static_argnums=0)
    for fun in (f, jitted):
        found = [g.title for g in fgrad.draw(fun, 2, np.ones(3), np.ones(3), scale=1.0).groups if g.role == "input"]
        assert found[-3:] == ["x", "argument 2", "scale"]


def test_structured_primitives_carry_the_users_names():
    inner = fgrad.jit(np.sin)

    def f(x):
        return fgrad.checkpoint(lambda y: np.sin(np.sin(y)))(inner(fgrad.checkpoint_name(x * 2, "twice"))).sum()

    titles = [g.title for g in fgrad.draw(f, np.ones(3)).groups]
    assert titles[2] == "twice"
    assert titles[3].startswith("jit of sin")
    assert titles[4].startswith("checkpoint of <lambda>")


# ---------------------------------------------------------------------------------------------------- text in files


@pytest.mark.parametrize("name", NASTY)
def test_any_name_is_legal_dot_and_svg(name):
    steps = [
        Step(name, "input", (), [None]),
        Step(name, "operation", [0], [None], name, f"{name}:3", False, name, name),
    ]
    picture = Picture(name, [*steps, Step(name, "output", [1], [None])], remark=name)
    nodes, edges = parse_dot(picture.dot)
    assert edges == [("n0", "n1"), ("n1", "n2")]
    shown = name.replace("\x00", "\ufffd").replace("\x1b", "\ufffd")
    assert nodes["n0"]["label"].startswith(shown)
    root = parse_svg(picture.svg())
    assert shown in root.find(SVG + "title").text


@pytest.mark.parametrize("name", NASTY)
@graphviz
def test_graphviz_reads_any_name(name):
    steps = [Step(name, "input", (), [None]), Step(name, "operation", [0], [None], name)]
    assert (
        b"<svg"
        in subprocess.run(
            ["dot", "-Tsvg"], input=Picture(name, steps).dot.encode(), capture_output=True, check=True
        ).stdout
    )


@pytest.mark.parametrize("name", NASTY[:3] + NASTY[4:5] + NASTY[6:])
def test_quoting_is_undone_by_a_reader(name):
    assert unquoted(quoted(name)) == name


def test_long_names_stand_whole_in_the_tip():
    name = "a_name_that_is_far_too_long_for_one_line_of_a_box"
    picture = Picture("p", [Step(name, "input", (), [None])])
    root = parse_svg(picture.svg())
    assert name not in texts(root)
    assert any(name in tip.text for tip in root.iter(SVG + "title"))


def test_text_stays_inside_its_box():
    from fgrad.drawing.graphs import PAD, box_size

    picture = fgrad.draw(fgrad.grad(loss), PARAMS, np.ones((4, 3)))
    for box in boxes_of(picture.groups):
        width, height = box_size(box)
        assert all(svg.text_width(line) <= width - PAD for line in [box.title])
        assert all(svg.text_width(line, svg.SIZE - 1) <= width - PAD for line in box.lines)
        assert height >= 15 * (1 + len(box.lines))


def test_times_are_colours_and_numbers():
    steps = [
        Step("x", "input", (), [None]),
        Step("fast", "operation", [0], [None], seconds=1e-6),
        Step("slow", "operation", [1], [None], seconds=3e-3),
    ]
    picture = Picture("p", steps)
    assert picture.summary.endswith("3.00 ms measured")
    nodes, _ = parse_dot(picture.dot)
    assert nodes["n2"]["fillcolor"] == svg.heat(1.0)
    assert nodes["n2"]["label"].endswith("3.00 ms")
    assert {svg.heat(1.0), svg.heat(1 / 3000)} <= {
        rect.get("style", "").removeprefix("fill:") for rect in parse_svg(picture.svg()).iter(SVG + "rect")
    }


def contrast(a, b):
    low, high = sorted([svg.luminance(a), svg.luminance(b)])
    return (high + 0.05) / (low + 0.05)


def rgb(colour):
    return [int(colour[k : k + 2], 16) for k in (1, 3, 5)]


@pytest.mark.parametrize("share", np.linspace(0, 1, 21))
def test_text_on_every_heat_is_legible(share):
    assert contrast(rgb(svg.heat(share)), rgb(svg.ink_on(share))) >= 4.5


def test_heat_is_told_by_lightness_alone():
    lightness = [svg.luminance(rgb(svg.heat(s))) for s in np.linspace(0, 1, 30)]
    assert all(a > b for a, b in itertools.pairwise(lightness))


@pytest.mark.parametrize("theme", [svg.LIGHT, svg.DARK])
def test_text_on_both_backgrounds_is_legible(theme):
    for ink in ("ink", "dim"):
        for ground in ("page", "box", "end"):
            assert contrast(rgb(theme[ink]), rgb(theme[ground])) >= 4.5


# ----------------------------------------------------------------------------------------------------------- files


def test_files_without_graphviz(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    picture = fgrad.draw(np.sin, np.ones(3))
    for name in ("p.dot", "p.svg", "p.html"):
        picture.save(tmp_path / name)
    assert (tmp_path / "p.dot").read_text() == picture.dot
    assert (tmp_path / "p.svg").read_text() == picture.svg()
    assert "http" not in (tmp_path / "p.html").read_text().replace("http://www.w3.org/2000/svg", "")
    for save in (lambda: picture.save(tmp_path / "p.png"), lambda: picture.svg(layout="dot")):
        with pytest.raises(RuntimeError, match="install the package `graphviz`"):
            save()
    assert not (tmp_path / "p.png").exists()
    assert "install" in MISSING


def test_graphviz_is_run_and_its_complaint_is_told(tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\nif [ "$1" = -Tpng ]; then /bin/cat; else echo "no such format" >&2; exit 3; fi\n')
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(tmp_path))
    picture = fgrad.draw(np.sin, np.ones(3))
    picture.save(tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes() == picture.dot.encode()
    with pytest.raises(RuntimeError, match="cannot make pdf: no such format"):
        picture.save(tmp_path / "p.pdf")


@graphviz
def test_graphviz_draws_it(tmp_path):
    picture = fgrad.draw(loss, PARAMS, np.ones((4, 3)))
    picture.save(tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"
    assert "tanh" in "".join(parse_svg(picture.svg(layout="dot")).itertext())


def test_unknown_formats_and_layouts_are_refused(tmp_path):
    picture = fgrad.draw(np.sin, 1.0)
    with pytest.raises(ValueError, match=r"saved as .dot, .svg, .html, .png or .pdf, got 'p.bmp'"):
        picture.save(tmp_path / "p.bmp")
    with pytest.raises(ValueError, match="layout must be 'own' or 'dot', got 'neato'"):
        picture.svg(layout="neato")


def test_notebooks_get_pictures_and_tables():
    picture = fgrad.draw(np.sin, np.ones(3))
    parse_svg(picture._repr_svg_())
    assert picture.svg() in picture._repr_html_()
    html = fgrad.make_ir(lambda x: np.sin(x) * 2)(np.ones(3))._repr_html_()
    assert "b: float64[3]" in html
    assert "test_pictures.py:" in html
    assert "<svg" in html


# ------------------------------------------------------------------------------------------------ numbers and names


@pytest.mark.parametrize(
    ("given", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (10 * 2**20, "10.0 MiB"), (2**50, "1024 TiB")],
)
def test_bytes(given, shown):
    assert bytes_text(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"), [(1.0, "1.00 s"), (0.9999, "1.00 s"), (5e-6, "5.00 µs"), (2e-10, "0.2 ns"), (120, "120 s")]
)
def test_seconds(given, shown):
    assert seconds_text(given) == shown


@pytest.mark.parametrize("width", range(1, 12))
@pytest.mark.parametrize("text", ["abcdefghijkl", "日本語日本語", "é́́abcdefghijkl"])
def test_shortened_names_fit(text, width):
    assert cells(shorten(text, width)) <= width

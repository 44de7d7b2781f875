"""The layered layout: no box on another, edges downward, the example of monotone regression in general."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrad.drawing.layout import layered, monotone


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 14))
    sizes = [(draw(st.integers(4, 90)), draw(st.integers(4, 60))) for _ in range(count)]
    pairs = list(itertools.combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=24)) if pairs else []
    return sizes, edges


def overlap(a, size_a, b, size_b):
    return all(abs(p - q) < (m + n) / 2 - 1e-6 for p, q, m, n in zip(a, b, size_a, size_b, strict=True))


@given(graphs())
def test_boxes_stand_apart_and_inside(graph):
    sizes, edges = graph
    placed = layered(sizes, edges)
    for u, v in itertools.combinations(range(len(sizes)), 2):
        assert not overlap(placed.centres[u], sizes[u], placed.centres[v], sizes[v])
    for (x, y), (w, h) in zip(placed.centres, sizes, strict=True):
        assert w / 2 - 1e-6 <= x <= placed.width - w / 2 + 1e-6
        assert h / 2 - 1e-6 <= y <= placed.height - h / 2 + 1e-6


@given(graphs())
def test_edges_run_downward_from_box_to_box(graph):
    sizes, edges = graph
    placed = layered(sizes, edges)
    for (u, v), route in zip(edges, placed.routes, strict=True):
        heights = [y for _, y in route]
        assert heights == sorted(heights)
        assert route[0] == pytest.approx((placed.centres[u][0], placed.centres[u][1] + sizes[u][1] / 2))
        assert route[-1] == pytest.approx((placed.centres[v][0], placed.centres[v][1] - sizes[v][1] / 2))


@given(graphs())
def test_edges_cross_no_box(graph):
    sizes, edges = graph
    placed = layered(sizes, edges)
    for (u, v), route in zip(edges, placed.routes, strict=True):
        for (x0, y0), (x1, y1) in itertools.pairwise(route[1:-1]):
            for k, ((x, y), (w, h)) in enumerate(zip(placed.centres, sizes, strict=True)):
                if k not in (u, v) and x0 == x1 and abs(x - x0) < w / 2:
                    assert max(y0, y1) <= y - h / 2 + 1e-6 or min(y0, y1) >= y + h / 2 - 1e-6


def test_two_pairs_do_not_cross():
    placed = layered([(10, 10)] * 4, [(0, 3), (1, 2)])
    left = placed.centres[0][0] < placed.centres[1][0]
    assert (placed.centres[3][0] < placed.centres[2][0]) == left


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(0.1, 4)), min_size=1, max_size=8))
def test_monotone_is_the_projection(pairs):
    values, weights = map(np.array, zip(*pairs, strict=True))
    got = np.array(monotone(list(values), list(weights)))
    assert (np.diff(got) >= -1e-9).all()
    for other in itertools.islice(itertools.product(*[np.linspace(-9, 9, 3)] * len(values)), 300):
        tried = np.sort(other)
        assert (weights * (got - values) ** 2).sum() <= (weights * (tried - values) ** 2).sum() + 1e-6


def test_nothing_to_place():
    assert layered([], []).width == 0

"""A layered layout: where the boxes of an acyclic graph stand, and how its edges run.

The four steps of Sugiyama, Tagawa and Toda (1981): layers, dummy boxes where an edge crosses a layer, an order within
each layer with few crossings (barycentres), and columns. Columns are found layer by layer: the places closest to the
neighbours' in the sense of least squares, with order and distances kept, which is a monotone regression.
"""

from __future__ import annotations

import operator
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

SWEEPS = 12
"""Passes over the layers, up and down in turn; orders settle after a few."""
ACROSS, DOWN = 22.0, 40.0
"""Free space between boxes of a layer, and between layers."""
STRAIGHT = 4.0
"""How much more an inner piece of a long edge is drawn to stand below the last one than a box is."""
LOOSE = 0.05
"""How much a box that hangs on one edge pulls at its neighbour: it follows, and does not lead."""

Point = tuple[float, float]


@dataclass
class Placement:
    """Where boxes stand (their centres), how edges run (points from box to box), and how much room all takes."""

    centres: list[Point]
    routes: list[list[Point]]
    width: float
    height: float


def layered(sizes: Sequence[Point], edges: Sequence[tuple[int, int]]) -> Placement:
    """Place boxes of the given (width, height); every edge leads from a lower to a higher number.

    Example:
        >>> layered([(10, 10), (10, 10)], [(0, 1)]).centres
        [(5.0, 5.0), (5.0, 55.0)]
    """
    if not sizes:
        return Placement([], [], 0.0, 0.0)
    rank = _ranks(len(sizes), edges)
    widths = [w for w, _ in sizes]
    chains, rank = _chains(edges, rank, widths)
    layers: list[list[int]] = [[] for _ in range(max(rank) + 1)]
    for v, r in enumerate(rank):
        layers[r].append(v)
    above, below = _neighbours(chains, len(rank))
    layers = _ordered(layers, above, below)
    xs = _columns(layers, above, below, widths, len(sizes))
    heights = _heights(layers, sizes)
    ys = _rows(heights)
    left = min(x - w / 2 for x, w in zip(xs, widths, strict=True))
    points = [(x - left, ys[r]) for x, r in zip(xs, rank, strict=True)]
    routes = [_route(chain, points, sizes, [heights[rank[v]] for v in chain]) for chain in chains]
    width = max(x + w / 2 for (x, _), w in zip(points, widths, strict=True))
    return Placement(points[: len(sizes)], routes, width, ys[-1] + heights[-1] / 2)


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each box: below all it reads; boxes that read nothing just above their first reader."""
    rank = [0] * count
    first: list[int | None] = [None] * count
    reads = {v for _, v in edges}
    by_target = sorted(edges, key=lambda e: e[1])
    for u, v in by_target:
        rank[v] = max(rank[v], rank[u] + 1)
    for u, v in edges:
        known = first[u]
        first[u] = rank[v] if known is None else min(known, rank[v])
    for v in range(count):
        lowest = first[v]
        if v not in reads and lowest is not None:
            rank[v] = lowest - 1
    return rank


def _chains(
    edges: Sequence[tuple[int, int]], rank: Sequence[int], widths: list[float]
) -> tuple[list[list[int]], list[int]]:
    """Return each edge as a chain of boxes in neighbouring layers, and the layers, dummy boxes included."""
    rank = list(rank)
    chains = []
    for u, v in edges:
        chain = [u]
        for r in range(rank[u] + 1, rank[v]):
            chain.append(len(rank))
            rank.append(r)
            widths.append(0.0)
        chains.append([*chain, v])
    return chains, rank


def _neighbours(chains: Sequence[Sequence[int]], count: int) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for chain in chains:
        for u, v in pairwise(chain):
            above[v].append(u)
            below[u].append(v)
    return above, below


def _ordered(
    layers: Sequence[Sequence[int]], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return the layers in an order with few crossings: the best seen while sorting by barycentres up and down."""
    current = [list(layer) for layer in layers]
    best, fewest = current, _crossings(current, below)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        sides, span = (above, current) if sweep % 2 == 0 else (below, current[::-1])
        place = {v: float(k) for layer in current for k, v in enumerate(layer)}
        for layer in span:
            centre = {v: _mean([place[u] for u in sides[v]], place[v]) for v in layer}
            layer.sort(key=centre.__getitem__)
            place.update((v, float(k)) for k, v in enumerate(layer))
        crossings = _crossings(current, below)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in current], crossings
    return best


def _mean(values: Sequence[float], default: float, weights: Sequence[float] | None = None) -> float:
    """Return the mean of values, `default` if there are none."""
    weights = weights or [1.0] * len(values)
    return sum(map(operator.mul, values, weights)) / sum(weights) if values else default


def _crossings(layers: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> int:
    """Count crossings between neighbouring layers: inversions among the lower ends, upper ends in order."""
    place = {v: k for layer in layers for k, v in enumerate(layer)}
    count = 0
    for layer in layers:
        ends: list[int] = []
        for v in layer:
            mine = [place[u] for u in below[v]]
            count += sum(len(ends) - bisect_right(ends, end) for end in mine)
            for end in mine:
                insort(ends, end)
    return count


def _columns(
    layers: Sequence[Sequence[int]],
    above: Sequence[Sequence[int]],
    below: Sequence[Sequence[int]],
    widths: Sequence[float],
    boxes: int,
) -> list[float]:
    """Return the horizontal centre of every box."""
    xs = [0.0] * len(widths)
    for layer in layers:
        _spread(layer, [0.0] * len(layer), [1.0] * len(layer), widths, xs)
    pull = [LOOSE if len(a) + len(b) == 1 else 1.0 for a, b in zip(above, below, strict=True)]
    for sweep in range(SWEEPS):
        sides, span = (above, layers) if sweep % 2 == 0 else (below, layers[::-1])
        for layer in span:
            wanted = [_mean([xs[u] for u in sides[v]], xs[v], [pull[u] for u in sides[v]]) for v in layer]
            weights = [STRAIGHT if v >= boxes else 1.0 for v in layer]
            _spread(layer, wanted, weights, widths, xs)
    return xs


def _spread(
    layer: Sequence[int], wanted: Sequence[float], weights: Sequence[float], widths: Sequence[float], xs: list[float]
) -> None:
    """Place the boxes of a layer as close to where they are wanted as their order and widths allow."""
    offsets = [0.0]
    for u, v in pairwise(layer):
        offsets.append(offsets[-1] + (widths[u] + widths[v]) / 2 + ACROSS)
    free = monotone([x - o for x, o in zip(wanted, offsets, strict=True)], weights)
    for v, x, o in zip(layer, free, offsets, strict=True):
        xs[v] = x + o


def monotone(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the nondecreasing sequence closest to `values` in weighted least squares (pool adjacent violators).

    Example:
        >>> monotone([1.0, 3.0, 2.0], [1.0, 1.0, 1.0])
        [1.0, 2.5, 2.5]
    """
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        pool = value, weight, 1
        while pools and pools[-1][0] > pool[0]:
            mean, mass, count = pools.pop()
            both = mass + pool[1]
            pool = (mean * mass + pool[0] * pool[1]) / both, both, count + pool[2]
        pools.append(pool)
    return [mean for mean, _, count in pools for _ in range(count)]


def _heights(layers: Sequence[Sequence[int]], sizes: Sequence[Point]) -> list[float]:
    return [max((sizes[v][1] for v in layer if v < len(sizes)), default=0.0) for layer in layers]


def _rows(heights: Sequence[float]) -> list[float]:
    """Return the vertical centre of each layer."""
    bottoms = accumulate(h + DOWN for h in heights)
    return [bottom - DOWN - h / 2 for bottom, h in zip(bottoms, heights, strict=True)]


def _route(
    chain: Sequence[int], points: Sequence[Point], sizes: Sequence[Point], heights: Sequence[float]
) -> list[Point]:
    """Return the points of an edge: from the lower side of a box, straight through the layers between, to another."""
    start, end = chain[0], chain[-1]
    route = [(points[start][0], points[start][1] + sizes[start][1] / 2)]
    for v, h in zip(chain[1:-1], heights[1:-1], strict=True):
        x, y = points[v]
        route += [(x, y - h / 2), (x, y + h / 2)]
    return [*route, (points[end][0], points[end][1] - sizes[end][1] / 2)]

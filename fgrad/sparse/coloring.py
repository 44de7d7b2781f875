"""Which columns or rows of a pattern can share one pass: no two of a color meet in a row (column) that is to be read.

A few rows with many entries would force many colors on the columns. They are set apart and computed by rows, in
reverse mode, or, for a symmetric matrix, as the columns that they also are. Source: Curtis, Powell & Reid (1974);
Coleman & Moré (1983) for graphs; Gebremedhin, Manne & Pothen (2005), "What color is your Jacobian?", for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

Matrix = Any  # a csr_array of bool


class Coloring(NamedTuple):
    """Colors of columns and of rows, -1 for those that are not computed as such."""

    columns: Any
    rows: Any

    @property
    def passes(self) -> tuple[int, int]:
        """The numbers of colors of columns and of rows."""
        return int(self.columns.max(initial=-1)) + 1, int(self.rows.max(initial=-1)) + 1


def color(pattern: Matrix) -> Coloring:
    """Return colors by which each entry of the pattern is read off a column's or a row's pass."""
    by_rows = dense_lines(np.diff(pattern.indptr), int(np.diff(pattern.tocsc().indptr).max(initial=0)))
    columns = _greedy(pattern[np.flatnonzero(~by_rows)])
    rows = np.full(pattern.shape[0], -1)
    rows[by_rows] = _greedy(pattern[np.flatnonzero(by_rows)].T.tocsr())
    return Coloring(columns, rows)


def color_symmetric(pattern: Matrix) -> Coloring:
    """Return colors of columns by which each entry of a symmetric pattern, or its mirror image, is read off."""
    hubs = dense_lines(np.diff(pattern.indptr), pattern.shape[0])
    rest = np.flatnonzero(~hubs)
    columns = np.full(pattern.shape[1], -1)
    columns[rest] = _greedy(pattern[rest][:, rest])
    columns[hubs] = columns.max(initial=-1) + 1 + np.arange(np.count_nonzero(hubs))
    return Coloring(columns, np.full(pattern.shape[0], -1))


def dense_lines(counts: Any, all_apart: int) -> Any:
    """Return which rows, the fullest ones, to set apart so that passes are likely fewest: all, if `all_apart` is less.

    With the k fullest rows apart there are k passes for those, and at least as many as the next one has entries.
    """
    order = np.argsort(-counts, kind="stable")
    bounds = np.arange(counts.size) + counts[order]
    best = int(np.argmin(bounds)) if counts.size else 0
    apart = np.zeros(counts.size, bool)
    apart[order[:best] if not counts.size or bounds[best] <= all_apart else order] = True
    return apart


def _greedy(pattern: Matrix) -> Any:
    """Return colors of the columns: each gets the first that no column met in a row has; in order, or fullest first.

    Empty columns have none, -1.
    """
    fewest = int(np.diff(pattern.indptr).max(initial=0))
    if fewest == pattern.shape[1]:
        return np.arange(fewest)
    columns = pattern.tocsc()
    starts, rows = columns.indptr.tolist(), columns.indices.tolist()
    colors = _first_fit(range(pattern.shape[1]), starts, rows, pattern.shape[0])
    if colors.max(initial=-1) + 1 > fewest:
        fullest = np.argsort(-np.diff(columns.indptr), kind="stable").tolist()
        other = _first_fit(fullest, starts, rows, pattern.shape[0])
        if other.max(initial=-1) < colors.max(initial=-1):
            return other
    return colors


def _first_fit(order: Iterable[int], starts: list[int], rows: list[int], count: int) -> Any:
    """Color columns in an order; the colors met in each row are the bits of a number."""
    colors = [-1] * (len(starts) - 1)
    met = [0] * count
    for column in order:
        mine = rows[starts[column] : starts[column + 1]]
        if not mine:
            continue
        taken = 0
        for row in mine:
            taken |= met[row]
        first_free = ~taken & (taken + 1)
        colors[column] = first_free.bit_length() - 1
        for row in mine:
            met[row] |= first_free
    return np.array(colors, dtype=np.int64)

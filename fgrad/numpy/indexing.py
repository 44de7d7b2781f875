"""NumPy's indexing of traced values: basic, boolean, integer arrays, ellipsis, newaxis, and any mix of them.

An index is read once into an `Indexing`, which says it in terms of axes. Reads (a slice, a gather, an order of axes)
and the updates of `at` (one scatter) both come from it, so they agree on what an index means.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fgrad.core import Tracer
from fgrad.errors import NonConcreteBooleanIndexError, TracerArrayConversionError
from fgrad.numpy.arguments import as_array, cast, known, stack_nested
from fgrad.ops import elementwise as e
from fgrad.ops import index as ix
from fgrad.ops import shape as s
from fgrad.source import user_line


def unknown_mask(function: str, x: Any) -> NonConcreteBooleanIndexError:
    """Return the error for a result whose shape depends on values that are not known."""
    return NonConcreteBooleanIndexError(
        f"{function}: the shape of the result depends on values that {x.interpreter.label} does not know ({x.type}), "
        f"at {user_line()}.\nRemedy: use the three-argument fgrad.numpy.where(mask, x, other), or give size= and "
        "fill_value= where the function has them."
    )


def unknown_values(function: str, argument: str, x: Any) -> TracerArrayConversionError:
    """Return the error for an argument that has to be known and is traced."""
    return TracerArrayConversionError(
        f"{function}: {argument} must be known, but it is traced by {x.interpreter.label} ({x.type}), at {user_line()}."
        "\nRemedy: make it a static argument of jit (static_argnums), or close over a NumPy array."
    )


# ------------------------------------------------------------------------------------------------ reading an index

_BLOCK = "block"


class Indexing:
    """An index of an array of a given shape, in terms of axes.

    `source` is the shape to index: the array's, with axes of length 1 put in for 0-d bools. For each of its axes
    `entries` has a (start, stop, step), an int, or an array of ints. `picked` are the axes with one of the latter two,
    and `block` is the shape those broadcast to. `result` is the order of axes in the result: an axis of `source`,
    `_BLOCK` for the axes of the block, None for a new one.
    """

    __slots__ = ("source", "entries", "picked", "block", "result")

    def __init__(self, shape: tuple[int, ...], index: Any, check: bool = True):
        self.entries: list[Any] = []
        self.picked: list[int] = []
        self.result: list[Any] = []
        lengths: list[int] = []
        places: list[int] = []  # where in the index the picked axes stand
        before = 0
        fancy = False
        for place, item, length in _items(index, shape, check):
            if item is None:
                self.result.append(None)
                continue
            if item.__class__ is tuple:
                self.result.append(len(lengths))
            else:
                before = before if places else len(self.result)
                self.picked.append(len(lengths))
                places.append(place)
                fancy = fancy or item.__class__ is not int
            lengths.append(length)
            self.entries.append(item)
        self.source = tuple(lengths)
        self.block = _block([self.entries[a] for a in self.picked]) if fancy else ()
        if fancy:
            together = places[-1] - places[0] == len(set(places)) - 1
            self.result.insert(before if together else 0, _BLOCK)
            if check and 0 in self.shape():
                self._check_bounds()

    def _check_bounds(self) -> None:
        """Raise IndexError for an index out of bounds, where no element is read that would show it."""
        for a in self.picked:
            rows, n = known(self.entries[a]), self.source[a]
            if rows is not None and rows.size and 0 not in self.block:
                _checked(int(rows.max()), a, n)
                _checked(int(rows.min()), a, n)

    def length(self, axis: int) -> int:
        """Return how many elements a slice takes along an axis."""
        return len(range(*self.entries[axis]))

    def shape(self) -> tuple[int, ...]:
        """Return the shape of the result."""
        out: list[int] = []
        for label in self.result:
            out.extend((1,) if label is None else self.block if label is _BLOCK else (self.length(label),))
        return tuple(out)

    def whole(self, axis: int) -> bool:
        """Return whether a slice takes an axis as it is."""
        return bool(self.entries[axis] == (0, self.source[axis], 1))

    def rows(self, axes: Sequence[int], grid: Sequence[int]) -> list[Any]:
        """Return an index array for each of the picked `axes` and of the sliced axes in `grid`, all of one shape.

        That is the shape of the block, followed by the lengths of the sliced axes.
        """
        lengths = [self.length(a) for a in grid]
        full = (*self.block, *lengths)
        rows = []
        for a in axes:
            row = as_array(self.entries[a])
            row = s.reshape(row, shape=(*row.shape, *(1,) * len(grid)))
            rows.append(row if row.shape == full else s.broadcast(row, shape=full))
        for k, a in enumerate(grid):
            row = np.arange(*self.entries[a]).reshape((lengths[k], *(1,) * (len(grid) - k - 1)))
            rows.append(np.broadcast_to(row, full))
        return rows


def stacked(rows: Sequence[Any]) -> Any:
    """Return index arrays of one shape as one array, stacked along a first axis, as `gather` takes them."""
    rows = [s.reshape(cast(as_array(row), np.intp), shape=(1, *row.shape)) for row in rows]
    return rows[0] if len(rows) == 1 else s.concatenate(*rows, axis=0)


def _items(index: Any, shape: tuple[int, ...], check: bool) -> Iterator[tuple[int, Any, int]]:
    """Give an index as (place in it, item, axis length), for every axis of `shape` and new one.

    An item is None (a new axis), a (start, stop, step), an int or an array of ints.

    Masks become arrays of ints; a 0-d bool indexes an axis of length 1 that is put in for it. Ints out of bounds raise
    IndexError, unless `check` is False: then ints are given as 0-d arrays, for a mode to deal with.
    """
    raw = [_item(item) for item in (index if isinstance(index, tuple) else (index,))]
    uses = [_axes_used(item) for item in raw]
    if sum(item is Ellipsis for item in raw) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    missing = len(shape) - sum(uses)
    if missing < 0:
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {sum(uses)} were indexed")
    if not any(item is Ellipsis for item in raw):
        raw.append(Ellipsis)
        uses.append(0)
    axis = 0
    for place, (item, used) in enumerate(zip(raw, uses)):
        if item is None:
            yield place, None, 1
        elif item is Ellipsis:
            yield from [(place, (0, n, 1), n) for n in shape[axis : axis + missing]]
            axis += missing
        elif isinstance(item, slice):
            yield place, _normal_slice(item, shape[axis]), shape[axis]
        elif item.__class__ is int:
            yield place, _checked(item, axis, shape[axis]) if check else np.asarray(item), shape[axis]
        elif item.dtype.kind != "b":
            yield place, item, shape[axis]
        elif item.ndim == 0:
            yield place, np.zeros(int(known(item)), np.intp), 1
        else:
            yield from [(place, row, n) for row, n in zip(_mask(item, shape, axis), shape[axis:])]
        axis += used


def _item(item: Any) -> Any:
    """Return one part of an index as None, Ellipsis, a slice, an int, or an array of ints or bools."""
    if item is None or item is Ellipsis or item.__class__ in (int, slice):
        return item
    if isinstance(item, np.integer) or (isinstance(item, np.ndarray) and not item.ndim and item.dtype.kind in "iu"):
        return int(item)
    if isinstance(item, (list, tuple)):
        item = stack_nested(item) if len(item) else np.zeros(0, np.intp)
    if isinstance(item, (np.ndarray, Tracer, bool, np.bool_)):
        item = as_array(item)
        if item.dtype.kind in "iu":
            return cast(item, np.intp)
        if item.dtype.kind == "b":
            if known(item) is None:
                raise unknown_mask("indexing by a mask", item)
            return np.asarray(known(item))
        raise IndexError(f"arrays used as indices must be of integer (or boolean) type, got {item.dtype}")
    if hasattr(item, "__index__"):
        return operator.index(item)
    if hasattr(item, "__array__"):  # such as a Series
        return _item(np.asarray(item))
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
        f"indices, got {item!r}"
    )


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if hasattr(item, "ndim") and item.dtype.kind == "b" else 1


def _normal_slice(item: slice, n: int) -> tuple[int, int | None, int]:
    """Return a slice with its bounds resolved; one that takes nothing is (0, 0, 1)."""
    start, stop, step = item.indices(n)
    if not len(range(start, stop, step)):
        return 0, 0, 1
    return start, stop, step


def _checked(i: int, axis: int, n: int) -> int:
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
    return i % n


def _mask(mask: Any, shape: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """Return the index arrays a mask means."""
    for k, (m, n) in enumerate(zip(mask.shape, shape[axis:])):
        if m != n and m:  # NumPy lets an empty mask pass
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + k}; size of axis is {n} but size of "
                f"corresponding boolean axis is {m}"
            )
    return mask.nonzero()


def _block(items: Sequence[Any]) -> tuple[int, ...]:
    shapes = [getattr(item, "shape", ()) for item in items]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            "shape mismatch: indexing arrays could not be broadcast together with shapes " + " ".join(map(str, shapes))
        ) from None


# --------------------------------------------------------------------------------------------------- reading


def getitem(x: Any, index: Any) -> Any:
    """Return `x[index]` for an array or traced value, by NumPy's rules."""
    shape = x.shape
    if shape and index.__class__ is int:
        i = _checked(index, 0, shape[0])
        row = s.slice(x, index=((i, i + 1, 1), *[(0, n, 1) for n in shape[1:]]))
        return s.reshape(row, shape=shape[1:])
    if shape and index.__class__ is slice:
        span = _span(_normal_slice(index, shape[0]), shape[0], False)
        return s.slice(x, index=(span, *[(0, n, 1) for n in shape[1:]]))
    return read(as_array(x), Indexing(x.shape, index))


def read(x: Any, at: Indexing, mode: str | None = None, fill: Any = None) -> Any:
    """Return the elements of `x` that an index takes; `mode` and `fill` deal with indices out of bounds."""
    if x.shape != at.source:
        x = s.reshape(x, shape=at.source)
    fancy = _BLOCK in at.result
    spans = [_span(item, n, fancy) for item, n in zip(at.entries, at.source)]
    if any(span != (0, n, 1) for span, n in zip(spans, at.source)):
        x = s.slice(x, index=tuple(spans))
    if fancy:
        rows, inside = in_mode(mode, at.rows(at.picked, ()), [at.source[a] for a in at.picked])
        x = ix.gather(x, stacked(rows), axes=tuple(at.picked))
        if inside is not None:
            inside = s.reshape(inside, shape=(*inside.shape, *(1,) * (x.ndim - inside.ndim)))
            x = e.select(inside, x, _fill_value(x.dtype) if fill is None else cast(as_array(fill), x.dtype))
        x = _ordered(x, at)
    shape = at.shape()
    return x if x.shape == shape else s.reshape(x, shape=shape)


def in_mode(mode: str | None, rows: Sequence[Any], lengths: Sequence[int]) -> tuple[Sequence[Any], Any]:
    """Return index arrays with those out of bounds dealt with, and the mask of those that lay inside (None: all)."""
    if mode in (None, "raise", "promise_in_bounds"):
        return rows, None
    if mode == "wrap":
        return [e.rem(row, n) for row, n in zip(rows, lengths)], None
    rows = [e.select(e.lt(row, 0), e.add(row, n), row) for row, n in zip(rows, lengths)]
    clipped = [e.clamp(row, 0, max(n - 1, 0)) for row, n in zip(rows, lengths)]
    if mode == "clip":
        return clipped, None
    if mode not in ("fill", "drop"):
        raise ValueError(f"mode must be None, 'clip', 'wrap', 'fill', 'drop' or 'promise_in_bounds', got {mode!r}")
    inside = e.eq(rows[0], clipped[0])
    for row, near in zip(rows[1:], clipped[1:]):
        inside = e.logical_and(inside, e.eq(row, near))
    return clipped, inside


def _fill_value(dtype: np.dtype[Any]) -> Any:
    """Return what stands for an element that is not there: NaN, the least int, the greatest unsigned one, True."""
    if dtype.kind in "fcV":
        return np.asarray(np.nan, dtype)
    if dtype.kind == "b":
        return np.asarray(True)
    limits = np.iinfo(dtype)
    return np.asarray(limits.min if dtype.kind == "i" else limits.max, dtype)


def _span(item: Any, n: int, fancy: bool) -> tuple[int, int | None, int]:
    """Return the slice to take of one axis before anything is gathered."""
    if item.__class__ is tuple:
        start, stop, step = item
        return start, None if stop < 0 else stop, step
    return (0, n, 1) if fancy else (item, item + 1, 1)


def _ordered(x: Any, at: Indexing) -> Any:
    """Return a gathered array, whose block comes first, with its axes in the order of the result."""
    count = len(at.block)
    rest = [a for a in range(len(at.source)) if a not in at.picked]
    order: list[int] = []
    for label in at.result:
        if label is _BLOCK:
            order.extend(range(count))
        elif label is not None:
            order.append(count + rest.index(label))
    return x if order == sorted(order) else s.transpose(x, perm=tuple(order))


# --------------------------------------------------------------------------------------------------- writing


class Places:
    """Where an index writes: the axes and index arrays of a scatter, and how values are brought into its shape."""

    __slots__ = ("at", "axes", "rows", "_grid")

    def __init__(self, at: Indexing):
        self.at = at
        self._grid = [a for a in range(len(at.source)) if at.entries[a].__class__ is tuple and not at.whole(a)]
        if not at.picked and not self._grid:
            self._grid = [0]
        self.axes = (*at.picked, *self._grid)
        self.rows = at.rows(at.picked, self._grid)

    def values(self, v: Any, dtype: Any) -> Any:
        """Return values, which broadcast to the shape of the result of reading, in the shape a scatter takes."""
        at = self.at
        v = broadcast_values(cast(as_array(v), dtype), at.shape())
        block = [(_BLOCK, k) for k in range(len(at.block))]
        labels: list[Any] = []
        for label in at.result:
            labels.extend(block if label is _BLOCK else () if label is None else (label,))
        if len(labels) != v.ndim:  # without the new axes
            v = s.reshape(v, shape=tuple([n for n, label in zip(v.shape, self._spread()) if label is not None]))
        whole = [a for a in range(len(at.source)) if a not in self.axes]
        order = tuple([labels.index(label) for label in (*block, *self._grid, *whole)])
        return v if order == tuple(range(v.ndim)) else s.transpose(v, perm=order)

    def _spread(self) -> list[Any]:
        """Return the labels of the result, one for each of its axes."""
        out: list[Any] = []
        for label in self.at.result:
            out.extend([_BLOCK] * len(self.at.block) if label is _BLOCK else [label])
        return out


def broadcast_values(v: Any, shape: tuple[int, ...]) -> Any:
    """Return values broadcast to a shape, as an assignment does it: axes of length 1 in front do no harm."""
    extra = v.ndim - len(shape)
    if extra > 0 and v.shape[:extra] == (1,) * extra:
        v = s.reshape(v, shape=v.shape[extra:])
    return v if v.shape == shape else s.broadcast(v, shape=shape)

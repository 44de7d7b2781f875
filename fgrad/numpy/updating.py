"""Functional updates: `at(x)[index].set(v)` gives a copy of `x` with elements replaced, and its derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad.core import Tracer
from fgrad.numpy.arguments import as_array, cast, known, operand
from fgrad.numpy.indexing import Indexing, Places, broadcast_values, in_mode, read, stacked, unknown_mask
from fgrad.ops import elementwise as e
from fgrad.ops import index as ix
from fgrad.ops import shape as s

__all__ = ["at"]


class AtArray(np.ndarray):
    """An array that has `at`: what creation functions and updates return outside transforms.

    Views of it have `at` too; an operation on it works on the plain array and returns a plain one. That costs less than
    to let NumPy carry the class along, and keeps its scalars: for a subclass, `x.sum()` would be a 0-d array.
    """

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    @property
    def at(self) -> At:
        """The functional updates of this array."""
        return At(self)


def created(x: Any) -> Any:
    """Return a new array as creation functions do: with `at`. A traced value, which has it, is returned as it is."""
    return x.view(AtArray) if isinstance(x, np.ndarray) else x


class At:
    """What `at(x)` is: index it to say which elements are meant."""

    __slots__ = ("_array",)

    def __init__(self, array: Any):
        self._array = array

    def __getitem__(self, index: Any) -> Update:
        return Update(self._array, index)

    def __repr__(self) -> str:
        return f"at({self._array!r})"


def at(x: Any) -> At:
    """Return the functional updates of an array: `at(x)[index].set(values)` and its kin.

    Args:
        x: array or traced value, of any shape and dtype.

    Returns:
        An object to index as one indexes `x`, in any of NumPy's ways. The result has the methods `set`, `add`,
        `subtract`, `multiply`, `divide`, `power`, `min`, `max` and `apply`, each of which returns a new array, and
        `get`. Values broadcast to the shape of `x[index]` and are cast to the dtype of `x`. Where an index is repeated,
        all values count; of values set, the last one stays.

    Example:
        >>> import numpy as np, fgrad.numpy as fnp
        >>> fnp.at(np.zeros(3))[[0, 2, 2]].add(1.0)
        array([1., 0., 2.])
    """
    return At(x)


class Update:
    """Elements of an array, chosen by an index, ready to be read, or replaced in a copy.

    Every method takes `mode`: None to raise IndexError for an index out of bounds, "clip" to use the nearest one,
    "wrap" to count on from the other end, "drop" or "fill" to leave such elements out. `unique_indices` and
    `indices_are_sorted` are promises; results do not depend on them.
    """

    __slots__ = ("_x", "_index")

    def __init__(self, x: Any, index: Any):
        self._x = as_array(x)
        self._index = index

    def set(self, values: Any, *, mode: str | None = None, **promises: bool) -> Any:
        """Return the array with these elements replaced by `values`."""
        return self._updated(ix.scatter_set, lambda x, v: v, values, mode, promises)

    def add(self, values: Any, *, mode: str | None = None, **promises: bool) -> Any:
        """Return the array with `values` added to these elements."""
        return self._updated(ix.scatter_add, e.add, values, mode, promises)

    def subtract(self, values: Any, *, mode: str | None = None, **promises: bool) -> Any:
        """Return the array with `values` taken from these elements."""
        return self._updated(ix.scatter_add, e.add, e.neg(as_array(values)), mode, promises)

    def multiply(self, values: Any, *, mode: str | None = None, **promises: bool) -> Any:
        """Return the array with these elements multiplied by `values`."""
        return self._updated(ix.scatter_mul, e.mul, values, mode, promises)

    mul = multiply

    def divide(self, values: Any, *, mode: str | None = None, **promises: bool) -> Any:
        """Return the array with these elements divided by `values`; integers become floats."""
        x = self._x
        divisor = Update(np.ones(x.shape, np.result_type(x.dtype, as_array(values).dtype)), self._index)
        return created(e.div(x, operand(divisor.multiply(values, mode=mode, **promises))))

    def power(self, values: Any, *, mode: str | None = None, **promises: bool) -> Any:
        """Return the array with these elements raised to the power of `values`."""
        exponent = Update(np.ones(self._x.shape, self._x.dtype), self._index)
        return created(e.pow(self._x, operand(exponent.multiply(values, mode=mode, **promises))))

    def min(self, values: Any, *, mode: str | None = None, **promises: bool) -> Any:
        """Return the array with these elements replaced by `values` where those are smaller."""
        return self._updated(ix.scatter_min, e.min, values, mode, promises)

    def max(self, values: Any, *, mode: str | None = None, **promises: bool) -> Any:
        """Return the array with these elements replaced by `values` where those are larger."""
        return self._updated(ix.scatter_max, e.max, values, mode, promises)

    def apply(self, function: Callable[[Any], Any], *, mode: str | None = None, **promises: bool) -> Any:
        """Return the array with these elements replaced by `function` of them, applied once to all of them."""
        if self._unknown_mask() is not None:
            return self._updated(ix.scatter_set, lambda x, v: v, function(self._x), mode, promises)
        return self.set(function(operand(self.get(mode=mode))), mode=mode, **promises)

    def get(self, *, mode: str | None = None, fill_value: Any = None, **promises: bool) -> Any:
        """Return these elements, `x[index]`.

        With mode "fill", elements out of bounds are `fill_value`: by default NaN, or for integers the least one (the
        greatest, if unsigned).
        """
        _check_promises(promises)
        return created(read(self._x, self._indexing(mode), "fill" if mode == "drop" else mode, fill_value))

    def _indexing(self, mode: str | None) -> Indexing:
        return Indexing(self._x.shape, self._index, check=mode in (None, "raise", "promise_in_bounds"))

    def _unknown_mask(self) -> Any:
        """Return the index if it is a mask whose values are not known, else None."""
        index = self._index[0] if isinstance(self._index, tuple) and len(self._index) == 1 else self._index
        if isinstance(index, Tracer) and index.dtype.kind == "b" and known(index) is None:
            return index
        return None

    def _updated(self, scatter: Any, pointwise: Any, values: Any, mode: str | None, promises: dict[str, bool]) -> Any:
        """Return the array updated by a scatter; through a mask that is not known, by the pointwise operation."""
        _check_promises(promises)
        x = self._x
        mask = self._unknown_mask()
        if mask is not None:
            return created(_through_mask(mask, x, pointwise, cast(as_array(values), x.dtype)))
        at = self._indexing(mode)
        window = _window(at) if mode is None and scatter in (ix.scatter_set, ix.scatter_add) else None
        if window is not None:
            return created(_update_window(x, at, window, scatter, cast(as_array(values), x.dtype)))
        places = Places(at)
        values = places.values(values, x.dtype)
        source = x if x.shape == at.source else s.reshape(x, shape=at.source)
        return created(s.reshape(_scattered(scatter, source, places, values, mode), shape=x.shape))


def _check_promises(promises: dict[str, bool]) -> None:
    for name in promises:
        if name not in ("unique_indices", "indices_are_sorted", "wrap_negative_indices"):
            raise TypeError(f"at[...]: unexpected keyword argument {name!r}")


def _through_mask(mask: Any, x: Any, pointwise: Any, values: Any) -> Any:
    """Return `x` updated where a mask of its leading axes holds; values must not depend on how many that are."""
    if mask.ndim > x.ndim or mask.shape != x.shape[: mask.ndim]:
        raise IndexError(f"boolean index of shape {mask.shape} does not match an array of shape {x.shape}")
    if values.ndim > x.ndim - mask.ndim and values.shape != x.shape:
        raise unknown_mask("updating through a mask", mask)
    new = pointwise(x, values)
    return e.select(s.reshape(mask, shape=(*mask.shape, *(1,) * (x.ndim - mask.ndim))), new, x)


def _window(at: Indexing) -> tuple[tuple[int, int, int], ...] | None:
    """Return the slices of a basic index of unit steps, or None for any other index."""
    window = []
    for item in at.entries:
        if item.__class__ is int:
            window.append((item, item + 1, 1))
        elif item.__class__ is tuple and item[2] == 1:
            window.append(item)
        else:
            return None
    return tuple(window)


def _update_window(x: Any, at: Indexing, window: Any, scatter: Any, values: Any) -> Any:
    """Return `x` with values set in a window or added there, without an index array."""
    values = broadcast_values(values, at.shape())
    values = s.reshape(values, shape=tuple([stop - start for start, stop, _ in window]))
    if scatter is ix.scatter_add:
        return e.add(x, s.place(values, shape=x.shape, index=window))
    return ix.dynamic_update_slice(x, values, np.array([start for start, _, _ in window], np.intp))


def _scattered(scatter: Any, x: Any, places: Places, values: Any, mode: str | None) -> Any:
    """Return `x` after a scatter; writes out of bounds go to a row of their own if they are to be dropped."""
    axes = places.axes
    lengths = [x.shape[a] for a in axes]
    rows, inside = in_mode(mode, places.rows, lengths)
    if inside is None:
        return scatter(x, stacked(rows), values, axes=axes)
    spare, n = axes[0], lengths[0]
    widths = tuple([(0, int(a == spare), 0) for a in range(x.ndim)])
    padded = s.pad(x, np.zeros((), x.dtype), widths=widths)
    rows = [e.select(inside, rows[0], n), *rows[1:]]
    out = scatter(padded, stacked(rows), values, axes=axes)
    return s.slice(out, index=tuple([(0, m, 1) for m in x.shape]))

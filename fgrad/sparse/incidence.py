"""Which elements of its inputs each element of a primitive's output depends on, read off the one table.

An incidence is a chain of boolean matrices, SciPy's CSR, whose product has a row per element of the output and a column
per element of the input. It may have entries where a derivative is zero, never the reverse. Elementwise and constant
primitives follow from their kind; those that move, add or mix elements are named here; of any other, every element of
the output depends on every element of the input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, kron

from fgrad.core import ArrayType, Params, Primitive
from fgrad.plans import plan_for
from fgrad.transforms.linearize import kept_types

Matrix = Any  # a csr_array of bool
Chain = tuple[Matrix, ...]

MOVING = {
    "reshape",
    "transpose",
    "reverse",
    "broadcast",
    "slice",
    "place",
    "pad",
    "concatenate",
    "gather",
    "take_along",
    "scatter_set",
    "dynamic_slice",
    "dynamic_update_slice",
}
"""Linear primitives each element of whose output is one of an input, or none: they are run on numbers of elements."""

ADDING = {"reduce_sum", "scatter_add", "put_along_add"}
"""Linear primitives that take each element of an input to one place: their transposes move numbers of places."""

IN_PLACE = {"cast", "copy", "real", "imag", "conj", "named", "complex_abs", "complex_sign", "refuse_singular"}
"""Primitives of another kind than elementwise whose output depends on its input element by element."""

REDUCING = {"reduce_prod", "reduce_max", "reduce_min", "logsumexp"}
"""Primitives that mix the elements along their parameter `axes`, which the output does not have."""

ALONG = {
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "cumlogsumexp",
    "recurrence",
    "fft",
    "ifft",
    "rfft",
    "irfft",
    "take_along",
    "put_along_add",
}
"""Primitives that mix the elements along their parameter `axis` or `axes`, and keep the axes."""

OF_MATRICES = {
    "cholesky",
    "lu",
    "qr",
    "triangular_solve",
    "solve",
    "inv",
    "pinv",
    "det",
    "cofactors",
    "cofactors_change",
    "slogdet",
    "expm",
    "expm_change",
    "eigh",
    "eig",
    "svd",
}
"""Primitives that work on the matrices along the last two axes, one by one."""


class Application:
    """One application of a primitive: types, parameters, and the values of those inputs that are known."""

    __slots__ = ("prim", "in_types", "out_types", "params", "known")

    def __init__(
        self,
        prim: Primitive,
        in_types: Sequence[ArrayType],
        out_types: Sequence[ArrayType],
        params: Params,
        known: Sequence[Any],
    ):
        self.prim = prim
        self.in_types = in_types
        self.out_types = out_types
        self.params = params
        self.known = known


def incidence(one: Application, i: int, k: int) -> Chain | None:
    """Return the incidence of input i and output k, whose derivative may be other than zero; None if it is zero."""
    if not has_derivative(one.prim, i) or one.out_types[k].dtype.kind not in "fcV":
        return None
    for rule in (_elementwise, _moving, _adding, _mixing, _product, _convolution):
        found = rule(one, i, k)
        if found is not None:
            return found
    return everything(one.out_types[k].size, one.in_types[i].size)


def has_derivative(prim: Primitive, i: int) -> bool:
    """Return whether the kind of a primitive says that it may have a derivative by input i."""
    if prim.kind == "constant":
        return False
    if prim.kind == "elementwise":
        return prim.declared["d"][i] is not None and not _is_nought(prim.declared["d"][i])
    if prim.kind == "linear" and not prim.inputs[0].startswith("*"):
        return i in prim.declared["wrt"]
    if prim.kind == "differential":
        return i < len(prim.declared["jvp"]) and prim.declared["jvp"][i] is not None
    return True


def _is_nought(partial: Any) -> bool:
    return isinstance(partial, (int, float)) and partial == 0


# ---------------------------------------------------------------------------------------------------- matrices


def taking(source: Any, size: int) -> Matrix:
    """Return the matrix whose row r has an entry in column source[r] - 1, none where that is 0."""
    source = np.asarray(source).reshape(-1).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(source > 0)])
    columns = source[source > 0] - 1
    return csr_array((np.ones(columns.size, bool), columns, starts), shape=(source.size, size))


def everything(rows: int, columns: int) -> Chain:
    """Return the incidence in which all depends on all."""
    return csr_array(np.ones((rows, 1), bool)), csr_array(np.ones((1, columns), bool))


def _numbers(shape: Sequence[int]) -> Any:
    """Return an array with the numbers of its elements, from 1."""
    return np.arange(1, math.prod(shape) + 1).reshape(shape)


def _blocks(shape: Sequence[int], axes: Sequence[int]) -> Any:
    """Return for each element the number, from 1, that its indices along `axes`, in that order, have together."""
    numbers = _numbers([shape[a] for a in axes])
    others = [a for a in range(len(shape)) if a not in axes]
    order = [*axes, *others]
    wide = numbers.reshape((*numbers.shape, *(1,) * len(others))).transpose(np.argsort(order))
    return np.broadcast_to(wide, shape)


def mixing(in_shape: Sequence[int], in_axes: Sequence[int], out_shape: Sequence[int], out_axes: Sequence[int]) -> Chain:
    """Return the incidence in which elements depend on all that have the same indices along the paired axes."""
    count = math.prod(in_shape[a] for a in in_axes)
    return taking(_blocks(out_shape, out_axes), count), taking(_blocks(in_shape, in_axes), count).T.tocsr()


# ------------------------------------------------------------------------------------------------------ families


def _elementwise(one: Application, i: int, k: int) -> Chain | None:
    shape, out = one.in_types[i].shape, one.out_types[k].shape
    if one.prim.kind == "elementwise":
        return () if shape == out else (taking(np.broadcast_to(_numbers(shape), out), math.prod(shape)),)
    return () if one.prim.name in IN_PLACE else None


def _moving(one: Application, i: int, k: int) -> Chain | None:
    prim = one.prim
    if prim.name not in MOVING:
        return None
    values: list[Any] = []
    for j, t in enumerate(one.in_types):
        if has_derivative(prim, j):
            values.append(_numbers(t.shape) if j == i else np.zeros(t.shape, np.int64))
        elif one.known[j] is None:
            return None
        else:
            values.append(one.known[j])
    return (taking(prim.impl(*values, **one.params), one.in_types[i].size),)


def _adding(one: Application, i: int, k: int) -> Chain | None:
    prim = one.prim
    if prim.name not in ADDING:
        return None
    plan = plan_for(prim, 1 << i, len(one.in_types))
    saved = [one.known[j] for j in plan.saves]
    if any(x is None for x in saved):
        return None
    types = kept_types(plan, [t.with_dtype(np.int64) for t in one.in_types], ())
    (places,) = plan.pull(saved, types, one.params, _numbers(one.out_types[k].shape))  # type: ignore[misc]
    return (taking(places, one.out_types[k].size).T.tocsr(),)


def _mixing(one: Application, i: int, k: int) -> Chain | None:
    name, params = one.prim.name, one.params
    shape, out = one.in_types[i].shape, one.out_types[k].shape
    if name in REDUCING:
        rest = [a for a in range(len(shape)) if a not in params["axes"]]
        return mixing(shape, rest, out, range(len(out)))
    if name in ALONG:
        mixed = params["axes"] if "axes" in params else (params["axis"],)
        rest = [a for a in range(len(shape)) if a not in mixed]
        return mixing(shape, rest, out, rest)
    if name == "gather":  # at indices that are not known
        rest = [a for a in range(len(shape)) if a not in params["axes"]]
        return mixing(shape, rest, out, range(len(out) - len(rest), len(out)))
    if name in OF_MATRICES or name == "top_k":
        batch = range(len(shape) - (1 if name == "top_k" else 2))
        return mixing(shape, batch, out, batch)
    return None


def _product(one: Application, i: int, k: int) -> Chain | None:
    """Sum over contracted axes; with a known matrix as the other operand, over those of its entries that are not 0."""
    if one.prim.name != "dot_general":
        return None
    contract, batch = one.params["contract"], one.params["batch"]
    x, y = one.in_types
    free = [[a for a in range(t.ndim) if a not in (*contract[j], *batch[j])] for j, t in enumerate((x, y))]
    first = len(batch[0]) + (len(free[0]) if i else 0)
    mine = [*range(len(batch[0])), *range(first, first + len(free[i]))]
    shape = one.in_types[i].shape
    other = one.known[1 - i]
    if other is None or batch[0] or not isinstance(other, np.ndarray):
        return mixing(shape, [*batch[i], *free[i]], one.out_types[k].shape, mine)
    axes = [*free[1 - i], *contract[1 - i]]
    rows = math.prod(other.shape[a] for a in free[1 - i])
    entries = csr_array(other.transpose(axes).reshape(rows, -1) != 0)  # free axes of the other, contracted ones
    kept = eye_array(math.prod(shape[a] for a in free[i]), dtype=bool, format="csr")
    factors = (entries, kept) if i else (kept, entries)
    order = [*contract[i], *free[i]] if i else [*free[i], *contract[i]]
    return kron(*factors, format="csr"), taking(_numbers(shape).transpose(order), math.prod(shape))


def _convolution(one: Application, i: int, k: int) -> Chain | None:
    """Union over the places of the kernel: with a kernel that is 1 in one place and 0 elsewhere, elements move."""
    if one.prim.name != "conv_general" or i != 0:
        return None
    (n, channels, *space), w = one.in_types[0].shape, one.in_types[1].shape
    features, groups = w[0], one.params["groups"]
    params = {**one.params, "groups": 1}
    numbers = _numbers((1, 1, *space)).astype(np.float64)
    out_space = math.prod(one.out_types[k].shape[2:])
    spatial = csr_array((out_space, math.prod(space)), dtype=bool)
    for place in np.ndindex(*w[2:]):
        kernel = np.zeros((1, 1, *w[2:]))
        kernel[(0, 0, *place)] = 1
        spatial = spatial + taking(one.prim.impl(numbers, kernel, **params), math.prod(space))
    group = csr_array(np.ones((features // groups, channels // groups), bool))
    whole = kron(kron(eye_array(n * groups, dtype=bool), group), spatial, format="csr")
    return (whole,)

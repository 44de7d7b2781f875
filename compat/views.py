"""Views and in-place operations: shared memory, shared versions, and whose history an in-place write changes.

A view knows its base and the chain of primitives that leads from the base to it. Writing to a view gives the base a
new history (`copy_slices`), and every view of that base finds its own again, by its chain, when it is next asked for.
This module owns torch's rules for what may be written in place, and their wording.
"""

from __future__ import annotations

import numpy as np

from fgrad.extend import TABLE, ArrayType, Tracer, linear, on_gpu, recover, state, sum_to, type_of

from . import devices, hooks
from .dtypes import category
from .modes import mode
from .tape import Node, apply, clock, node_class, place_of, recipe_for
from .tensor import INFERENCE, LEAF, TYPE_NAMES, Tensor, wrap

PLAIN = None
MULTIPLE = "multiple"
NO_GRAD = "no_grad"
INFERENCE_MODE = "inference"
CUSTOM = "custom"


class View:
    """How a tensor looks into the memory of its base. `seen` is the version at which its history was last found.

    `origin` says how it was made, as far as that forbids writing to it: MULTIPLE (by a function of several views),
    NO_GRAD, CUSTOM (returned by a Function), or PLAIN.
    """

    __slots__ = ("base", "chain", "seen", "origin")

    def __init__(self, base, chain, seen, origin=PLAIN):
        self.base = base
        self.chain = chain
        self.seen = seen
        self.origin = origin

    def refresh(self, t):
        """Find the history of view `t` again if its memory was written to since."""
        version = t._counter[0]
        if version == self.seen:
            return
        if isinstance(self.base._data, Tracer):
            t._data = _follow(self.base._data, self.chain)
        place = place_of(self.base)
        if self.origin is not PLAIN and (place is not None or t._node is not None):
            raise _forbidden_origin(t, self, "its base or another view of its base has been modified")
        if place is not None:
            t._node = follow_place(place, self.base, self.chain)
        elif t._node is None:  # there may be a history yet: the base may be asked to require grad
            return
        self.seen = version


def follow_place(place, base, chain):
    """Return the place of a view of `base`, which comes from `place`: a node for each link of the chain.

    The last one has the name that torch gives such a node.
    """
    kind = type_of(base._data)
    for prim, params in chain:
        out = prim.type_rule(kind, **params)
        recipe = recipe_for(prim, 1, 1)
        place = link(recipe, [kind], out, params, [place])
        kind = out
    if chain:
        place.__class__ = node_class("AsStridedBackward0")
    return place


def link(recipe, kinds, out, params, parents, saved=()):
    """Return a node of a linear primitive, made from types."""
    node = object.__new__(recipe.node_class)
    node._plan = recipe.plan
    node._saved = saved
    node.versions = None
    typed = recipe.plan.typed or ()
    node.types = tuple([kinds[k] if k >= 0 else out for k in typed])
    node.params = params
    node._parents = parents
    node._more = None
    node._seq = clock()
    return node


def view(prim, x, params, node_name=None):
    """Apply a primitive whose result shares memory with `x`, as a view of it; a copy is an ordinary result."""
    if isinstance(x._data, Tracer) and not mode.enabled:
        out = wrap(prim(x._data, **params))  # not cut as other results are: what is written to it reaches its base
    else:
        out = apply(prim, (x,), params, state.interpreter)
    if node_name and out._node is not None:
        out._node.__class__ = node_class(node_name)
    data = x._data
    if shares(out._data, data):
        as_view(out, x, ((prim, params),))
    return out


def shares(out, data):
    """Return whether two arrays look into the same memory; values traced from one another count as if they did."""
    if data.__class__ is np.ndarray:
        return owner(out) is owner(data)
    return isinstance(data, Tracer) or devices.owner_of(out) is devices.owner_of(data)


def owner(data):
    """Return the array whose memory `data` looks into; windows made by strides stand a step apart from it."""
    found = data
    while (base := getattr(data, "base", None)) is not None:
        data = base
        if isinstance(data, np.ndarray):
            found = data
    return found


def as_view(out, x, links, origin=PLAIN):
    """Make `out` a view of `x` by a chain of links."""
    out._counter = counter = x.counter
    if counter is INFERENCE:
        return
    above = x._view
    if above is not None:
        origin = origin or above.origin
        out._view = made = View(above.base, above.chain + links, counter[0], origin)
    else:
        out._view = made = View(x, links, counter[0], origin)
    if made.origin is PLAIN and not mode.enabled:
        made.origin = INFERENCE_MODE if mode.inference else NO_GRAD


def alias(x):
    """Return a tensor on the same memory and version counter, without history: what `detach` gives."""
    t = wrap(x._data)
    t._counter = x.counter
    return t


# ------------------------------------------------------------------------------------------ primitives that are views


real_view = linear(
    "real_view",
    lambda x: x.real,
    type=lambda x: ArrayType(x.shape, np.zeros((), x.dtype).real.dtype),
    transpose=lambda ct: TABLE["complex"](ct, 0 * ct),
    doc="The real part of complex x: a view.",
)
imag_view = linear(
    "imag_view",
    lambda x: x.imag,
    type=lambda x: ArrayType(x.shape, np.zeros((), x.dtype).real.dtype),
    transpose=lambda ct: TABLE["complex"](0 * ct, -ct),
    doc="The imaginary part of complex x: a view.",
)


class Index:
    """A basic index (ints, slices, None, Ellipsis), hashable, so that it can be a primitive's parameter."""

    __slots__ = ("raw", "key")

    def __init__(self, raw):
        self.raw = raw
        self.key = None

    def _frozen(self):
        if self.key is None:
            self.key = tuple([(i.start, i.stop, i.step) if isinstance(i, slice) else i for i in self.raw])
        return self.key

    def __eq__(self, other):
        return isinstance(other, Index) and self._frozen() == other._frozen()

    def __hash__(self):
        return hash(self._frozen())

    def __repr__(self):
        return f"Index{self._frozen()}"


def _index_type(x, *, index):
    shape = np.broadcast_to(np.zeros((), bool), x.shape)[index.raw].shape
    return ArrayType(shape, x.dtype)


def _place_at(u, *, index, shape):
    try:
        out = np.zeros(shape, u.dtype)
        out[index.raw] = u
    except TypeError:  # on a GPU
        out = devices.filled(0, shape, u.dtype, devices.place_of(u))
        out[index.raw] = u
    return out


index_view = linear(
    "index_view",
    lambda x, *, index: x[index.raw],
    type=_index_type,
    transpose=lambda ct, x, *, index: place_at(ct, index=index, shape=x.shape),
    doc="x at a basic index: a view.",
)
place_at = linear(
    "place_at",
    _place_at,
    type=lambda u, *, index, shape: ArrayType(shape, u.dtype),
    transpose=lambda ct, *, index, shape: index_view(ct, index=index),
    doc="Zeros with u at a basic index.",
)


def _expand(x, *, shape):
    strides = (0,) * (len(shape) - x.ndim) + tuple(
        [0 if n != m else s for n, m, s in zip(x.shape, shape[len(shape) - x.ndim :], x.strides)]
    )
    return window(x, shape, strides)


def window(x, shape, strides):
    """Return a window of any strides on the memory from the first element of `x` on, to be written to if `x` is."""
    try:
        return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=x.flags.writeable)
    except (TypeError, AttributeError):  # on a GPU
        return devices.strided(x, shape, strides)


expand = linear(
    "expand",
    _expand,
    type=lambda x, *, shape: ArrayType(shape, x.dtype),
    transpose=lambda ct, x, *, shape: sum_to(ct, x),
    doc="x with axes of length 1 stretched, and new ones in front: a view that may be written to, whatever its size.",
)


def _strided(x, *, shape, strides, offset):
    """Look into the whole memory behind x: it may lie outside x, but not outside the storage."""
    storage, first = storage_of(x)
    step = x.itemsize
    return devices.strided(storage[first + offset :], shape, [s * step for s in strides])


def storage_of(x):
    """Return the whole memory that an array looks into, flat, and the place in it where the array starts."""
    if on_gpu(x):
        return devices.storage_of(x)
    memory = owner(x)
    step = x.itemsize
    start = (x.__array_interface__["data"][0] - memory.__array_interface__["data"][0]) // step
    first = memory.reshape(-1)[:1] if memory.flags.c_contiguous else memory
    flat = np.lib.stride_tricks.as_strided(first.view(x.dtype), (memory.nbytes // step,), (step,))
    return flat, start


def _positions(x, shape, strides, offset):
    """Return for each element of the strided view the number, in memory order of x, of the element that it is."""
    flat = np.arange(x.size)
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, [s * flat.itemsize for s in strides])


def _pull_strided(ct, x, *, shape, strides, offset):
    at = _positions(x, shape, strides, offset).reshape((-1,))
    flat = TABLE["scatter_add"](np.zeros((x.size,), x.dtype), at[None], ct.reshape((-1,)), axes=(0,))
    return flat.reshape(x.shape)


as_strided = linear(
    "as_strided",
    _strided,
    type=lambda x, *, shape, strides, offset: ArrayType(shape, x.dtype),
    transpose=_pull_strided,
    doc="A window of any strides on the memory of x; gradients add up where it overlaps itself.",
)

# ------------------------------------------------------------------------------------------------- copy_slices


def _follow(x, chain):
    """Apply the links of a chain: primitives, so that it is plain computation or traced, as the interpreter says."""
    for prim, params in chain:
        x = prim(x, **params)
    return x


def _overwrite(x, u, *, chain, order):
    """Return a copy of x, laid out in memory as the base is, with u written where the chain leads."""
    out = x.transpose(order).copy().transpose(np.argsort(order))
    region = out
    for prim, params in chain:
        try:
            region = prim.impl(region, **params)
        except TypeError:
            region = recover(prim, (region,), params)
    region[...] = u
    return out


def _keep_rest(ct, x, u, *, chain, order):
    return copy_slices(ct, np.zeros(u.shape, ct.dtype), chain=chain, order=order)


copy_slices = linear(
    "copy_slices",
    _overwrite,
    wrt=(0, 1),
    type=lambda x, u, *, chain, order: x,
    transpose=(_keep_rest, lambda ct, *, chain: _follow(ct, chain)),
    doc="x with u written into the part of it that a chain of views leads to.",
)


def _memory_order(data):
    """Return the axes of an array from the longest stride to the shortest: its layout, whatever its offset."""
    return tuple(sorted(range(data.ndim), key=lambda axis: -abs(data.strides[axis])))


# ------------------------------------------------------------------------------------------------------ in place


def check_inference(t):
    """Raise torch's error if `t` is an inference tensor and this is not inference mode."""
    if t._counter is INFERENCE and not mode.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def raise_version(t):
    """Count a change of `t` in place; inference tensors count none."""
    if t._counter is not INFERENCE:
        t.counter[0] += 1


def check_inplace(t, source_requires_grad=False):
    """Raise torch's error if `t` may not be written to here."""
    check_inference(t)
    if not mode.enabled or not requires_grad(t) and not source_requires_grad:
        return
    place = place_of(t)
    view = t._view
    if view is not None:
        if view.origin is not PLAIN:
            raise _forbidden_origin(t, view)
        if place is not None and (view.base._node is LEAF or view.base._node is None):
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if isinstance(place, Tensor):
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


_ORIGINS = {
    MULTIPLE: "This view is the output of a function that returns multiple views. Such functions do not allow the "
    "output views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    CUSTOM: "This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
    "logic to handle view+inplace would override the custom backward associated with the custom Function, leading to "
    "incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function.",
}


def _forbidden_origin(t, view, what="is being modified"):
    """Return the error for a view that may not be written to because of how it was made."""
    if view.origin in (NO_GRAD, INFERENCE_MODE):
        return _unrecorded_view(view.origin, what)
    name = "unbind or split" if t._node in (None, LEAF) else type(t._node.node_and_index()[0]).__name__
    return RuntimeError(f"Output 0 of {name} is a view and {what} inplace. {_ORIGINS[view.origin]}")


def _unrecorded_view(origin, what):
    block, where = ("no_grad", "with grad mode enabled")
    if origin is INFERENCE_MODE:
        block, where = ("inference_mode", "in normal mode")
    return RuntimeError(
        f"A view was created in {origin} mode and {what} inplace {where}. Given that this use "
        "case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the "
        f"inplace either both inside the {block} block (if you don't want the inplace to be tracked) or both outside "
        "(if you want the "
        "inplace to be tracked)."
    )


def rebase(t, place):
    """Let the value just written to `t` come from `place` (None: from a constant); its version is raised already."""
    view = t._view
    if view is None:
        _move(t, place)
        return
    base = view.base
    before = place_of(base)
    order = _memory_order(base._data)
    params = {"chain": view.chain, "order": order}
    mask = (before is not None) | (place is not None) << 1
    if mask:
        recipe = recipe_for(copy_slices, mask, 2)
        node = link(
            recipe, [type_of(base._data), type_of(t._data)], None, params, [p for p in (before, place) if p is not None]
        )
        node.__class__ = node_class("CopySlices")
        _move(base, node)
        view.seen = t._counter[0]
        t._node = follow_place(node, base, view.chain)


def _move(t, place):
    """Let `t` come from another place; if it keeps its gradient, that of its new value from now on."""
    before = t._node
    t._node = place
    if t._extras is not None and t._extras.retains and place is not None:
        if before is not None and before is not LEAF and before._more is not None:
            before._more.retains = None
        hooks.retain(t, place)


def write(t, result, uniform=False):
    """Write `result` (a tensor, recorded or not) into `t` in place, with torch's checks of shape, dtype and overlap.

    `uniform` says that all elements are alike, so that overlap does no harm.
    """
    result = _zero_slope(t, result)
    data, new = t._data, result._data
    if new.shape != data.shape:
        raise RuntimeError(f"output with shape {list(data.shape)} doesn't match the broadcast shape {list(new.shape)}")
    check_castable(new.dtype, data.dtype)
    if not uniform:
        check_overlap(t)
    if isinstance(data, Tracer) or isinstance(new, Tracer):
        _write_traced(t, new)
    else:
        np.copyto(data, new, casting="unsafe")
    raise_version(t)
    if not mode.enabled:
        return t
    place = place_of(result)
    if place is None and place_of_before(t) is None:
        return t
    if place is not None and place.__class__.__base__ is Node and place._saved:
        _saved_in_place(place, t, new)
    rebase(t, place)
    return t


def _write_traced(t, new):
    """Let `t` hold a traced value from now on: under a transform of the core memory is never written to."""
    if new.dtype != t._data.dtype:
        new = new.astype(t._data.dtype)
    view = t._view
    if view is not None:
        base = view.base
        base._data = copy_slices(base._data, new, chain=view.chain, order=tuple(range(base._data.ndim)))
        view.seen = t._counter[0] + 1
    t._data = new


def _zero_slope(t, result):
    """Return a result that depends on nothing as one with derivative 0 by the value that `t` had, if it had history."""
    if not mode.enabled or place_of(result) is not None or result._data.shape != t._data.shape:
        return result
    place = place_of(t)
    if place is None:
        return result
    value = result._data.astype(t._data.dtype)
    return apply(TABLE["select"], (np.asarray(False), wrap(value, place), wrap(value)), {})


def place_of_before(t):
    """Return whether `t` or its base had a history before this write."""
    view = t._view
    return t._node if view is None else (t._node or view.base._node)


def _saved_in_place(node, t, new):
    """Let a node that saved its output know that the output now lives in `t`, whose later changes count."""
    saved, versions = list(node._saved), list(node.versions)
    for k, index in enumerate(node._plan.saves):
        if index < 0 and saved[k] is new and new.dtype == t._data.dtype:
            saved[k] = t._data
            versions[2 * k : 2 * k + 2] = t._counter, t._counter[0]
    node._saved, node.versions = tuple(saved), tuple(versions)


def check_castable(source, target):
    """Raise torch's error if a result of dtype `source` cannot be written into memory of dtype `target`."""
    if category(source) > category(target):
        raise RuntimeError(
            f"result type {_scalar_name(source)} can't be cast to the desired output type {_scalar_name(target)}"
        )


def _scalar_name(d):
    return TYPE_NAMES[d.name].removesuffix("Tensor")


def check_overlap(t):
    """Raise torch's error if elements of `t` share memory with one another."""
    data = t._data
    if (
        t._view is not None
        and not isinstance(data, Tracer)
        and any(s == 0 and n > 1 for s, n in zip(data.strides, data.shape))
    ):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def shadow(t):
    """Return a tensor with the value and history of `t`, on memory of its own: the input of an in-place operation."""
    copy = wrap(t._data.copy() if mode.enabled else t._data, None)
    place = place_of(t) if mode.enabled else None
    copy._node = place
    return copy


def requires_grad(t):
    """Return whether `t` requires grad, its base's history counted in."""
    return t._node is not None or t._view is not None and t._view.base._node is not None


def detach_(t):
    """Cut `t` from its history in place, its hooks kept; RuntimeError for a view, whose history is its base's."""
    if t._view is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, "
            "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() "
            "cannot "
            "be called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
            "torch/optim/optimizer.py as a solution."
        )
    more = getattr(t._node, "_more", None)
    if more is not None and more.tensor:
        t.extras.hooks = more.tensor
    t._node = None
    return t

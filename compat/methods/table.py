"""How functions and methods are made: from a primitive, or from a function of fgrad's, run on arrays or recorded.

Every public function is entered in FUNCTIONS (the namespace of `fgrad.compat`) and on Tensor by `define`; the variant
that works in place and `out=` follow from the plain one. Families fill the table; this module knows no operation.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
from numpy import ndarray

from fgrad.extend import TABLE, Tracer, elementwise_types, kept_types, linear, on_gpu, state

from .. import devices, dtypes, views
from ..dtypes import FLOAT32, FLOAT64, cast, result_dtype
from ..modes import mode
from ..quiet import quietly
from ..tape import (
    NO_PARAMS,
    UNCHANGING,
    Record,
    apply,
    clock,
    cut,
    moved,
    node_class,
    place_of,
    recipe_for,
    reversed_by,
    save,
)
from ..tensor import INFERENCE, LEAF, Tensor, fresh, wrap_value
from .steps import named

new = object.__new__

FUNCTIONS = {}
"""Every public function by its torch name."""

FUNCTIONS_IN_PLACE = set(
    "abs acos acosh addmv arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil clamp clamp_max "
    "clamp_min clip conj_physical cos cosh deg2rad erf erfc exp exp2 expm1 fix floor frac gcd i0 index_put lcm ldexp "
    "log log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal relu round rsqrt sigmoid sin sinc sinh sqrt "
    "square tan tanh trunc xlogy".split()
)
"""What torch has in place as a function too: `torch.exp_(x)`."""


def define(name, fun, *, method=True, function=True, inplace=False, out=True, aliases=()):
    """Enter a function under its torch name and aliases: as a function, a method, in place (`name_`), with `out=`."""
    fun.__name__ = fun.__qualname__ = name
    for key in (name, *aliases):
        if function:
            FUNCTIONS[key] = with_out(fun) if out else fun
        if method:
            setattr(Tensor, key, fun)
        if inplace:
            setattr(Tensor, key + "_", in_place(fun, key))
            if key in FUNCTIONS_IN_PLACE:
                FUNCTIONS[key + "_"] = getattr(Tensor, key + "_")
    return fun


# ------------------------------------------------------------------------------------------- one primitive


def promoted(args, kind):
    """Return operands in the dtype torch computes them in; tensors are cast by recorded steps where they differ."""
    values = [a._data if isinstance(a, Tensor) else a for a in args]
    target = result_dtype(values)
    if kind == "float":
        target = dtypes.to_inexact(target)
    return [
        a if not isinstance(a, Tensor) and a.__class__ in (float, int) and target.kind == "f" else to(a, target)
        for a in args
    ]


def to(a, target):
    """Return an operand in a NumPy dtype: tensors by a recorded cast, numbers as 0-d arrays."""
    if not isinstance(a, Tensor):
        return cast(a, target)
    if a._data.dtype == target:
        return a
    prim = TABLE["cast"] if target.kind in "fcV" else TABLE["to_integer"]
    return apply(prim, (a,), {"dtype": target}, state.interpreter)


def operand(x):
    """Return whether `x` may stand beside a tensor in an arithmetic operation."""
    return isinstance(x, (Tensor, bool, int, float, complex, np.generic, np.ndarray, Tracer))


def check_broadcast(x, y):
    """Raise RuntimeError in torch's words if two operands do not broadcast."""
    a, b = (v._data.shape if isinstance(v, Tensor) else () for v in (x, y))
    for k in range(1, min(len(a), len(b)) + 1):
        if a[-k] != b[-k] and 1 not in (a[-k], b[-k]):
            raise RuntimeError(
                f"The size of tensor a ({a[-k]}) must match the size of tensor b ({b[-k]}) at non-singleton dimension "
                f"{max(len(a), len(b)) - k}"
            )


def binary(prim, kind="arithmetic", quiet=False):
    """Return the function of two operands that a primitive (its `primitive`) gives; quick where dtypes are one float.

    This is the path of small eager programs: what it calls is spelled out. `quiet` silences NumPy's warnings, for what
    has singular points. `kind` is "float" where integers become floats.
    """
    impl = functools.partial(quietly, prim.impl) if quiet else prim.impl
    recipes = {}

    def fun(x, y):
        a = x._data if isinstance(x, Tensor) else x
        dtype = a.dtype if a.__class__ is ndarray else None
        if state.interpreter is not None or (dtype is not FLOAT32 and dtype is not FLOAT64):
            return mixed(prim, kind, x, y)
        if isinstance(y, Tensor):
            b = y._data
            if b.dtype is not dtype:
                return mixed(prim, kind, x, y)
        elif y.__class__ is float or y.__class__ is int:
            b = y
        else:
            return mixed(prim, kind, x, y)
        try:
            out = impl(a, b)
        except ValueError:
            check_broadcast(x, y)
            raise
        except TypeError:  # one of them is on a GPU
            return mixed(prim, kind, x, y)
        t = new(Tensor)
        t._data = out if out.__class__ is ndarray else np.asarray(out)
        t._node = t._counter = t._view = t._extras = None
        if not mode.enabled:
            if mode.inference:
                t._counter = INFERENCE
            return t
        place = x._node if x._view is None else place_of(x)
        other = None if b is y else y._node if y._view is None else place_of(y)
        if place is None:
            if other is None:
                return t
            mask, parents = 2, [y if other is LEAF else other]
        elif other is None:
            mask, parents = 1, [x if place is LEAF else place]
        else:
            mask, parents = 3, [x if place is LEAF else place, y if other is LEAF else other]
        recipe = recipes.get(mask)
        if recipe is None:
            recipe = recipes[mask] = recipe_for(prim, mask, 2)
        if recipe.active:
            t._node = node = new(recipe.node_class)
            node._plan = recipe.plan
            node._parents = parents
            node.params = NO_PARAMS
            node._more = None
            node._seq = clock()  # what watches nodes (anomaly mode) sees them now
            node.types = None if b is y or a.shape == b.shape else elementwise_types(recipe.plan, (a, b), t._data)
            keep(node, recipe.saves, x, y, t)
        return t

    fun.primitive = prim
    return fun


def keep(node, saves, x, y, t):
    """Do what `tape.save` does, for a function of two operands."""
    if not saves:
        node._saved = ()
        node.versions = None
        return
    if len(saves) > 1 or mode.packing:
        save(node, (x, y), (t,))
        return
    k = saves[0]
    s = x if k == 0 else y if k == 1 else t
    if isinstance(s, Tensor):
        counter = s._counter
        if counter is None:
            counter = s._counter = [0]
        node._saved = (s._data,)
        node.versions = (counter, counter[0])
    else:
        node._saved = (s,)
        node.versions = (UNCHANGING, 0)


def mixed(prim, kind, x, y):
    """Apply a primitive to two operands of any kind, promoted as torch does; NotImplemented if one is no operand."""
    if not operand(y) or not operand(x):
        return NotImplemented
    x, y = [wrap_value(v) if isinstance(v, (np.ndarray, np.generic)) else v for v in (x, y)]
    check_broadcast(x, y)
    with np.errstate(all="ignore"):
        return apply(prim, promoted((x, y), kind), {}, state.interpreter)


def unary(prim, kind="float"):
    """Return the function of one operand that a primitive (its `primitive`) gives; quick for floats, like `binary`.

    `kind` is "float" where integers become floats.
    """
    impl = prim.impl
    recipe = None

    def fun(x):
        nonlocal recipe
        if not isinstance(x, Tensor):
            raise TypeError(f"{prim.name}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
        a = x._data
        dtype = a.dtype
        if state.interpreter is not None or a.__class__ is not ndarray or dtype is not FLOAT32 and dtype is not FLOAT64:
            return any_kind(x)
        out = quietly(impl, a)
        t = new(Tensor)
        t._data = out if out.__class__ is ndarray else np.asarray(out)
        t._node = t._counter = t._view = t._extras = None
        if not mode.enabled:
            if mode.inference:
                t._counter = INFERENCE
            return t
        place = x._node if x._view is None else place_of(x)
        if place is None:
            return t
        if recipe is None:
            recipe = recipe_for(prim, 1, 1)
        if recipe.active:
            t._node = node = recipe.node([x if place is LEAF else place])
            node.types = kept_types(recipe.plan, (a,), (t._data,))
            keep(node, recipe.saves, x, None, t)
        return t

    def any_kind(x):
        with np.errstate(all="ignore"):
            given = x._data.dtype.kind
            if kind == "float" and given not in "fcV":
                x = to(x, dtypes.default.real)
            return in_float32(fun, (x,)) if given == "V" else apply(prim, (x,), {}, state.interpreter)

    fun.primitive = prim
    return fun


# ------------------------------------------------------------------------------- functions of fgrad, run on tensors


SYNONYMS = {"axis": "dim", "keepdims": "keepdim"}
"""NumPy's names of arguments, which torch takes as well."""


def composed(fun, node=None, promote=None):
    """Return a function of tensors that runs `fun`, a function of fgrad's values: on arrays, or recorded.

    `node` names the graph's node for the whole, or is a function of the arguments that does; `promote` ("arithmetic",
    "float") casts the tensors among the positional arguments to their common dtype first.
    """
    node = node or "".join(word.capitalize() for word in fun.__name__.strip("_").split("_")) + "Backward0"

    @functools.wraps(fun)
    def call(*args, **kwargs):
        if kwargs:
            kwargs = {SYNONYMS.get(key, key): value for key, value in kwargs.items()}
            if "input" in kwargs:
                args = (kwargs.pop("input"), *args)
        with np.errstate(all="ignore"):
            if promote:
                args = promoted(args, promote)
            return run(fun, args, kwargs, node)

    return call


def run(fun, args, kwargs, node):
    """Run a function of fgrad's values on tensors: recorded, as `node` (see `composed`), if one requires grad."""
    tensors, flat = operands(args, kwargs)
    for t in tensors:
        if t._data.dtype.kind == "V":
            return in_float32(lambda *args, **kwargs: run(fun, args, kwargs, node), args, kwargs)
    if mode.enabled:
        places = [place_of(t) for t in tensors if t._data.dtype.kind in "fcV"]
        for place in places:
            if place is not None:
                try:
                    return _run_recorded(fun, args, kwargs, flat, node, places)
                except REFUSALS:
                    return on_host(_running(fun, node), args, kwargs)
    plain, words = _each(_data, args, kwargs, flat)
    try:
        out = fun(*plain, **words)
    except Exception:
        return _run_elsewhere(fun, args, kwargs, flat, node, tensors)
    if not mode.enabled and reversed_by(state.interpreter):
        out = mapped_out(cut, out)
    return mapped_out(lambda x: fresh(_apart(x, tensors)), out)


REFUSALS = TypeError, AttributeError, NotImplementedError
"""What arrays on a GPU raise where the array library cannot do what NumPy can."""


def _run_elsewhere(fun, args, kwargs, flat, node, tensors):
    """Run a function that has just failed on arrays as on traced values: what the array library has not, has a way.

    The error is raised again where no tensor is on a GPU.
    """
    if not any(on_gpu(t._data) for t in tensors):
        raise
    try:
        return _run_recorded(fun, args, kwargs, flat, node, [])
    except REFUSALS:
        return on_host(_running(fun, node), args, kwargs)


def _running(fun, node):
    return lambda *args, **kwargs: run(fun, args, kwargs, node)


def check_devices(tensors):
    """Raise torch's error unless tensors lie on one device; numbers of the CPU may stand beside others."""
    places = [devices.place_of(t._data) for t in tensors]
    if len(set(places)) > 1:
        counted = [p for p, t in zip(places, tensors) if t._data.ndim or p is not None]
        other = next((p for p in counted if p != counted[0]), counted[0])
        if other != counted[0]:
            raise devices.mixed_error(counted[0], other)


def on_host(fun, args, kwargs):
    """Return what a function gives for copies of tensors of a GPU on the CPU, moved back; all moves are recorded.

    Called where the error is handled that says that the function cannot be computed there, and which is raised again if
    no tensor is on a GPU.
    """
    tensors = found_in((args, kwargs))
    place = next((p for t in tensors if (p := devices.place_of(t._data)) is not None), None)
    if place is None:
        raise
    check_devices(tensors)
    args, kwargs = mapped(lambda x: moved(x, None) if isinstance(x, Tensor) else x, (tuple(args), dict(kwargs)))
    return mapped_out(lambda x: moved(x, place) if isinstance(x, Tensor) else x, fun(*args, **kwargs))


def in_float32(fun, args, kwargs=None):
    """Return what a function of tensors gives for bfloat16: computed in float32 and rounded once, as torch does."""
    narrow = dtypes.to_numpy(dtypes.DTYPES["bfloat16"])
    wide = lambda x: to(x, FLOAT32) if isinstance(x, Tensor) and x._data.dtype == narrow else x  # noqa: E731
    others = [t._data.dtype for t in found_in((args, kwargs or {})) if t._data.dtype.kind in "fc"]
    out = fun(*mapped(wide, args), **mapped(wide, kwargs or {}))
    return out if others else mapped_out(lambda t: _narrowed(t, narrow), out)


def _narrowed(t, narrow):
    """Return a result of float32 rounded; its node has the name of the operation."""
    if t._data.dtype != FLOAT32:
        return t
    made = to(t, narrow)
    if made._node is not None and made._node is not LEAF:
        made._node.__class__ = t._node.node_and_index()[0].__class__
    return made


def _run_recorded(fun, args, kwargs, flat, node, places):
    recorder = Record()
    if callable(node):
        node = node(*args, **kwargs)
    args, kwargs = _each(recorder.lift, args, kwargs, flat)
    start = clock()
    with recorder:
        out = fun(*args, **kwargs)
    if isinstance(out, Tracer):
        return named(recorder.lower(out), node, places, start)
    return mapped_out(lambda x: named(recorder.lower(x), node, places, start), out)


def operands(args, kwargs):
    """Return the tensors among arguments in order, and whether none of them is inside a tuple, list or dict."""
    tensors = []
    flat = True
    for x in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(x, Tensor):
            tensors.append(x)
        elif isinstance(x, (tuple, list, Mapping)):
            inside = found_in(x)
            if inside:
                tensors += inside
                flat = False
    return tensors, flat


def _each(change, args, kwargs, flat):
    """Return arguments with `change` applied to each, or, unless `flat`, to what is inside them."""
    if flat:
        return [change(x) for x in args], {key: change(x) for key, x in kwargs.items()} if kwargs else kwargs
    return mapped(change, args), mapped(change, kwargs)


def _data(x):
    return x._data if isinstance(x, Tensor) else x


def _apart(out, tensors):
    """Return a result as an array on memory of its own: a function may have given back an argument, or a part of one.

    A result on a GPU must come from tensors of one device.
    """
    if out.__class__ is not ndarray:
        if isinstance(out, np.generic):
            return np.asarray(out)
        if isinstance(out, Tracer):
            return out
        if on_gpu(out):
            check_devices(tensors)
        out = devices.as_array(out)
    for t in tensors:
        data = t._data
        if out is data or out.base is not None and (out.base is data or out.base is data.base):
            return out.copy()
    return out


def found_in(x):
    """Return the tensors in nested tuples, lists and dicts."""
    return [item for item in leaves(x) if isinstance(item, Tensor)]


def leaves(x):
    """Yield what nested tuples, lists and dicts hold."""
    if isinstance(x, (tuple, list)):
        for item in x:
            yield from leaves(item)
    elif isinstance(x, Mapping):
        yield from leaves(tuple(x.values()))
    else:
        yield x


def mapped(fun, x):
    """Return nested tuples, lists and dicts with `fun` applied to what they hold."""
    if isinstance(x, tuple):
        items = [mapped(fun, item) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
    if isinstance(x, list):
        return [mapped(fun, item) for item in x]
    if isinstance(x, dict):
        return {key: mapped(fun, item) for key, item in x.items()}
    return fun(x)


def mapped_out(fun, x):
    """Return the results of a function as tensors, in the tuple they came in; None stays None."""
    if x is None:
        return None
    return mapped(fun, x) if isinstance(x, (tuple, list)) else fun(x)


# ------------------------------------------------------------------------------- what has no derivative, or a zero one


def _refuse(ct, *, name):
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


underivable = linear(
    "underivable",
    lambda value, x, *, name: value,
    wrt=(1,),
    type=lambda value, x, *, name: value,
    transpose=(_refuse,),
    doc="The value of an operation of x that has no derivative: asking for one is an error, not zero.",
)


def without_derivative(fun, name):
    """Return a function of tensors whose results require grad where its operands do, and refuse backward."""

    @functools.wraps(fun)
    def call(*args, **kwargs):
        try:
            out = fun(*args, **kwargs)
        except REFUSALS:
            out = on_host(fun, args, kwargs)
        source = next((t for t in found_in((args, kwargs)) if views.requires_grad(t)), None)
        if source is None or not mode.enabled:
            return out
        return mapped(lambda t: _refusing(t, source, name), out)

    return call


def _refusing(t, source, name):
    if t._data.dtype.kind not in "fcV":
        return t
    out = apply(underivable, (wrap_value(t._data), source), {"name": name}, state.interpreter)
    out._node.__class__ = node_class("NotImplemented")
    return out


def with_zero_slope(out, x):
    """Return value `out` as depending on `x` with derivative 0, as torch records sign, floor, draws and the like."""
    return TABLE["select"](np.asarray(True), out, np.zeros((), out.dtype) * x) if x.dtype.kind in "fcV" else out


zero_slope = composed(with_zero_slope, "NotImplemented")

# ------------------------------------------------------------------------------------------ in place, and out=


def in_place(fun, name):
    """Return the method that writes what `fun` gives into its first argument."""

    ufunc = _STRAIGHT.get(getattr(getattr(fun, "primitive", None), "name", None))

    def method(self, *args, **kwargs):
        if ufunc is not None and not mode.enabled and written_straight(ufunc, self, *args, **kwargs):
            return self
        views.check_inplace(self, mode.enabled and any(map(views.requires_grad, found_in((args, kwargs)))))
        recording = mode.enabled and (
            views.requires_grad(self) or any(map(views.requires_grad, found_in((args, kwargs))))
        )
        source = views.shadow(self) if recording else self
        result = fun(source, *args, **kwargs)
        if result is NotImplemented:
            return result
        return views.write(self, result)

    method.__name__ = method.__qualname__ = name + "_"
    method.primitive = getattr(fun, "primitive", None)
    return method


_STRAIGHT = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide}
"""The ufuncs of in-place arithmetic that may write straight into memory."""


def written_straight(ufunc, t, *operands, **options):
    """Write `ufunc(t, other)` over `t` if nothing is to be cast, recorded or checked: parameters under `no_grad`.

    Return whether that was done. `options` may have torch's `alpha`, a factor of the other operand, where it adds.
    """
    data = t._data
    dtype = data.dtype
    if len(operands) != 1 or t._view is not None or t._counter is INFERENCE or state.interpreter is not None:
        return False
    if data.__class__ is not ndarray or (dtype is not FLOAT32 and dtype is not FLOAT64) or not data.flags.writeable:
        return False
    other = operands[0]
    if isinstance(other, Tensor):
        other = other._data
        if other.__class__ is not ndarray or other.dtype is not dtype or other.shape != data.shape:
            return False
    elif other.__class__ is not float and other.__class__ is not int:
        return False
    if options:
        alpha = options.get("alpha")
        if len(options) != 1 or ufunc not in (np.add, np.subtract) or alpha.__class__ not in (float, int):
            return False
        other = quietly(np.multiply, other, alpha) if other.__class__ is ndarray else other * alpha
    quietly(ufunc, data, other, data)
    t.counter[0] += 1
    return True


def with_out(fun):
    """Return a function that also takes `out=`, a tensor to be written to and returned."""

    @functools.wraps(fun)
    def call(*args, out=None, **kwargs):
        if out is None:
            return fun(*args, **kwargs)
        if mode.enabled and any(map(views.requires_grad, found_in((args, kwargs, out)))):
            raise RuntimeError(
                f"{fun.__name__}(): functions with out=... arguments don't support automatic differentiation, but "
                "one of the "
                "arguments requires grad."
            )
        result = fun(*args, **kwargs)
        if isinstance(out, (tuple, list)):
            for o, r in zip(out, result):
                write_out(o, r)
        else:
            write_out(out, result)
        return out

    return call


def write_out(out, result):
    """Write a result into `out`, which is given the result's shape if it has another."""
    views.check_inference(out)
    views.check_castable(result._data.dtype, out._data.dtype)
    if out._data.shape != result._data.shape:
        out._data = devices.filled(0, result._data.shape, out._data.dtype, devices.place_of(out._data))
    if out._data.__class__ is not result._data.__class__ and out.device != result.device:
        raise devices.mixed_error(devices.place_of(out._data), devices.place_of(result._data))
    np.copyto(out._data, result._data, casting="unsafe")
    views.raise_version(out)

"""Steps: single primitives on plain tensors of floats, recorded without the way through fgrad's own functions.

What small programs call most is made of these; everything else, and every other kind of operand, goes through `table`.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy import ndarray

from fgrad.extend import kept_types, state

from ..dtypes import FLOAT32, FLOAT64
from ..hooks import PlaceHooks
from ..modes import mode
from ..quiet import quietly
from ..tape import node_class, place_of, recipe_for, save
from ..tensor import INFERENCE, LEAF, Tensor, wrap


def quick(*args):
    """Return whether these are plain tensors of one float, computed on with nobody looking: `steps` are for them."""
    dtype = args[0]._data.dtype if isinstance(args[0], Tensor) else None
    if state.interpreter is not None or dtype is not FLOAT32 and dtype is not FLOAT64:
        return False
    for x in args:
        if not isinstance(x, Tensor) or x._data.__class__ is not ndarray or x._data.dtype is not dtype:
            return False
    return True


def steps(prim, silent=False):
    """Return the function of `quick` tensors, plain values and parameters that records a primitive as one step.

    `name` is that of the node, if it is not the primitive's own. The graph shows tensors as operands, values not.
    `silent` says that NumPy never warns of what the primitive does.
    """
    recipes = {}
    impl = prim.impl if silent else functools.partial(quietly, prim.impl)

    def step(args, params, name=None):
        values = [x._data if isinstance(x, Tensor) else x for x in args]
        out = impl(*values, **params)
        t = wrap(out if out.__class__ is ndarray else np.asarray(out))
        if not mode.enabled:
            if mode.inference:
                t._counter = INFERENCE
            return t
        mask, places = 0, []
        for k, x in enumerate(args):
            if isinstance(x, Tensor):
                place = x._node if x._view is None else place_of(x)
                places.append(x if place is LEAF else place)
                if place is not None:
                    mask |= 1 << k
        if not mask:
            return t
        key = mask, len(args)
        recipe = recipes.get(key)
        if recipe is None:
            recipe = recipes[key] = recipe_for(prim, mask, len(args))
        if recipe.active:
            t._node = node = recipe.node([place for place in places if place is not None])
            node.params = params
            node.types = kept_types(recipe.plan, values, (t._data,))
            if name is not None:
                node.__class__ = node_class(name)
            if len(places) != len(args):
                PlaceHooks.at(node).sources = places
            if recipe.saves:
                save(node, args, (t,))
        return t

    return step


def shown_as_one(t, x, name, start):
    """Let the graph show the steps from `x` to `t`, recorded since `start`, as one node of this name."""
    return t if t._node is None else named(t, name, [place_of(x)], start)


def named(t, node, places, start):
    """Let the graph show what was recorded since `start` and ends at `t` as one node."""
    place = t._node
    if place is None or place is LEAF or place._seq <= start:
        return t
    last = place.node_and_index()[0]
    last.__class__ = node_class(node)
    inputs = last._plan.prim.inputs
    hidden = len(inputs) != len(places) and not inputs[0].startswith("*")
    if hidden or len(last._parents) != len(places) or any(a is not b for a, b in zip(last._parents, places)):
        PlaceHooks.at(last).sources = places
    return t

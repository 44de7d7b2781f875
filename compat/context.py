"""The ctx of a `Function`: what forward and backward share, and the node of the graph that it is.

Values are saved by position as torch has it, or by name as R torch has it; in-place changes to them are detected.
"""

from __future__ import annotations

import copy
import functools
import warnings
from typing import ClassVar

import numpy as np

from fgrad.extend import Tracer

from . import devices, dtypes, graph, views
from .hooks import as_tensor
from .modes import mode
from .tape import FREED, FREED_MESSAGE, Output, moved, place_of
from .tensor import LEAF, Tensor, type_name, wrap


class Saved:
    """One value that a ctx saved: an input, another tensor, an output of its own node (never held), or any object."""

    __slots__ = ("value", "kind", "version", "place")

    def __init__(self, value, node, inputs, outputs):
        self.value = value
        self.kind = "object"
        if not isinstance(value, Tensor):
            return
        self.version = value.counter[0]
        for k, out in enumerate(outputs):
            if value is out:
                self.kind, self.place, self.value = "output", k, views.alias(value)
                return
        self.kind, self.place = "tensor", place_of(value)
        if mode.packing and self.place is not node:
            self.kind, self.value = "packed", mode.packing.packed(value)

    def get(self, node):
        """Return the value, with its history; RuntimeError if it was changed in place since."""
        if self.kind == "object":
            return self.value
        if self.kind == "packed":
            return self.value.unpack()
        t = self.value
        if t.counter[0] != self.version:
            maker = f", which is output {self.place} of {node.name()}," if self.kind == "output" else ""
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"[{type_name(t)} {list(t.shape)}]{maker} is at version {t.counter[0]}; expected version "
                f"{self.version} "
                "instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
                "with "
                "torch.autograd.set_detect_anomaly(True)."
            )
        if self.kind == "output":
            made = views.alias(t)
            made._node = node.place(self.place)
            return made
        if t._node is LEAF or place_of(t) is self.place:
            return t
        made = views.alias(t)
        made._node = self.place
        return made


class _ContextMethodMixin:
    """What forward may ask of its ctx."""

    def save_for_backward(self, *tensors, **named):
        """Keep values for backward, where `saved_tensors` (or `saved_variables`, by name) gives them back.

        Args:
            *tensors: tensors or None, as torch has it; in-place changes until backward are detected.
            **named: any objects under names, as R torch has it.
        """
        self._to_save = tensors
        self._named_to_save = named

    def save_for_forward(self, *tensors):
        """Keep tensors for jvp, where `saved_tensors` and `saved_for_forward` give them back."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_forward expected all arguments to be tensors, but got {type(t).__name__}")
        self._to_save_forward = self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """Say that forward changed these inputs in place; they have to be returned."""
        self._dirty = args

    def mark_non_differentiable(self, *args):
        """Say that these outputs have no gradient; backward gets zeros for them."""
        self._non_differentiable = args

    def mark_shared_storage(self, *pairs):
        """Do nothing: shared memory is found without being told."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked.",
            FutureWarning,
            stacklevel=2,
        )

    def set_materialize_grads(self, value):
        """Say whether backward gets zeros (True, the default) or None for outputs that got no gradient."""
        self.materialize_grads = bool(value)


class FunctionCtx(_ContextMethodMixin):
    """What `setup_context` and `forward` see of a node."""


class NeedsInputGrad(tuple):
    """Which inputs require grad: a tuple of bools, which may also be asked by an argument's name."""

    names: ClassVar = ()

    def __getitem__(self, key):
        return tuple.__getitem__(self, self.names.index(key) if isinstance(key, str) else key)

    def __getattr__(self, name):
        if name in self.names:
            return self[name]
        raise AttributeError(name)


@functools.lru_cache(maxsize=1024)
def _flags_of(names):
    """Return the class of flags for arguments of these names."""
    return type("NeedsInputGrad", (NeedsInputGrad,), {"names": names})


class SavedVariables(dict):
    """Values saved by name, asked for by name, attribute or position."""

    def __getitem__(self, key):
        return list(self.values())[key] if isinstance(key, int) else dict.__getitem__(self, key)

    def __getattr__(self, name):
        try:
            return dict.__getitem__(self, name)
        except KeyError:
            raise AttributeError(name) from None


class AutogradContext(graph.Node, FunctionCtx):
    """The ctx of one call, which is its node in the graph.

    Made by `Function.apply`. By hand, as R torch documents it: `ptr` is kept as given, `env` is the Function (or None),
    `argument_names` and `argument_needs_grad` say what `needs_input_grad` answers.
    """

    _plan = _saved = None
    _function = _in_places = _out_places = None
    materialize_grads = True
    saved_for_forward: tuple = ()
    dirty_tensors = property(lambda self: self._dirty, doc="The inputs that forward said to have changed in place.")
    non_differentiable = property(lambda self: self._non_differentiable, doc="The outputs without a gradient.")
    to_save = property(lambda self: self._to_save, doc="What forward asked to save, until the outputs are known.")
    requires_grad = property(lambda self: any(self._needs), doc="Whether any argument requires grad.")

    def __init__(self, ptr=None, env=None, argument_names=None, argument_needs_grad=None):
        self.ptr = ptr
        self.env = env
        self.argument_names = tuple(argument_names or ())
        self.needs_input_grad = argument_needs_grad or ()
        self._parents = []
        self._more = None
        self._seq = 0
        self._width = 1
        self.materialize_grads = True
        self._to_save = self._to_save_forward = ()
        self._named_to_save = {}
        self._dirty = self._non_differentiable = ()
        self._kept = self._kept_by_name = None

    @property
    def needs_input_grad(self):
        """For each argument of forward whether it requires grad, by position or by name."""
        return self._needs

    @needs_input_grad.setter
    def needs_input_grad(self, flags):
        self._needs = _flags_of(self.argument_names)(flags)

    # -------------------------------------------------------------------------------------- saved values

    def _keep(self, inputs, outputs):
        """Turn what forward asked to save into checked values; done when the outputs are known."""
        for k, t in enumerate(self._to_save):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {k} is of type {type(t).__name__}"
                )
        self._kept = [Saved(t, self, inputs, outputs) for t in self._to_save]
        self._kept_by_name = {k: Saved(t, self, inputs, outputs) for k, t in self._named_to_save.items()}
        self._to_save = self._to_save_forward = self._named_to_save = ()

    def _unpacked(self, saved):
        if saved is FREED:
            if not self._seq:
                return []
            raise RuntimeError(FREED_MESSAGE)
        return [s.get(self) for s in saved]

    @property
    def saved_tensors(self):
        """The tensors given to `save_for_backward`; RuntimeError if one was changed in place, or the graph freed."""
        return tuple(self._unpacked(self._kept))

    @property
    def saved_variables(self):
        """What was saved: by name or position if it was saved by name, else torch's deprecated tuple."""
        if self._kept_by_name:
            values = self._unpacked(list(self._kept_by_name.values()))
            named = dict(zip(self._kept_by_name, values))
            positional = {str(k): t for k, t in enumerate(self._unpacked(self._kept))}
            return SavedVariables({**positional, **named})
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def clone(self, deep=False):
        """Return a copy of this context; `deep` copies what it holds as well."""
        made = copy.copy(self)
        if deep:
            for name, value in self.__dict__.items():
                if name not in ("parents", "more"):
                    made.__dict__[name] = copy.deepcopy(value)
        return made

    # ----------------------------------------------------------------------------------------- as a node

    def node_and_index(self):
        """Return the node and the number of its output that this place stands for."""
        return self, 0

    def place(self, index):
        """Return the place of the output of a number."""
        return self if self._width == 1 else Output(self, index)

    @property
    def next_functions(self):
        """For each tensor argument a pair of the node it came from and that node's output number."""
        return tuple([graph.edge(p) for p, t in zip(self._parents, self._is_tensor) if t])

    def run(self, g, work):
        """Run the user's backward within a pass, on tensors, and check what it gives."""
        if self._kept is FREED and self._seq:
            raise RuntimeError(FREED_MESSAGE)
        given = g if g.__class__ is list else [g]
        tensors = [self._gradient(k, x) for k, x in enumerate(given)]
        pulled = self._apply_backward(*tensors)
        pulled = pulled if isinstance(pulled, tuple) else (pulled,)
        checked = self._checked(pulled)
        if not work.keep and (self._kept or self._kept_by_name):
            self._kept = self._kept_by_name = FREED
        return checked if work.create else [None if t is None else t._data for t in checked]

    def _gradient(self, k, g):
        if g is None:
            if not self.materialize_grads or self._out_types[k] is None:
                return None
            shape, dtype = self._out_types[k]
            return wrap(devices.filled(0, shape, dtype, self._out_places and self._out_places[k]))
        return as_tensor(g)

    def _apply_backward(self, *grads):
        return self._function._pull()(self, *grads)

    def _checked(self, pulled):
        """Return one gradient for each argument, of its shape and dtype; RuntimeError or TypeError in torch's words."""
        name = self.name()
        expected = len(self._parents)
        if len(pulled) > expected and all(g is None for g in pulled[expected:]):
            pulled = pulled[:expected]
        if len(pulled) != expected:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {expected}, got {len(pulled)})"
            )
        return [self._checked_one(k, g) for k, g in enumerate(pulled)]

    def _checked_one(self, k, g):
        if g is None:
            return None
        if not isinstance(g, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
        if not self._is_tensor[k]:
            raise RuntimeError(
                f"function {self.name()} returned a gradient different than None at position {k + 1}, but the "
                "corresponding "
                "forward input was not a Variable"
            )
        if self._parents[k] is None:
            return None
        shape, dtype = self._in_types[k]
        if (self._in_places is not None or g._data.__class__ is not np.ndarray) and not isinstance(g._data, Tracer):
            g = self._on_device(k, g)
        if g._data.shape != shape:
            g = _reduced(g, shape, self.name(), k)
        if g._data.dtype != dtype:
            if g._data.dtype.kind == "c" and dtype.kind != "c":
                g = g.real
            g = g.to(dtype=dtypes.of(dtype))
        return g

    def _on_device(self, k, g):
        """Return a gradient where its argument is: a number is moved; RuntimeError in torch's words for others."""
        place = self._in_places and self._in_places[k]
        if g._data.ndim and place != devices.place_of(g._data):
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {k} - expected device "
                f"{devices.named(place)} but got {g.device}"
            )
        return moved(g, place)


def _reduced(g, shape, name, k):
    """Return a gradient summed to an argument's shape, where it is a broadcast of it; RuntimeError if it is not."""
    try:
        fits = np.broadcast_shapes(g._data.shape, shape) == g._data.shape
    except ValueError:
        fits = False
    if not fits:
        raise RuntimeError(
            f"Function {name} returned an invalid gradient at index {k} - got {list(g.shape)} but expected shape "
            "compatible "
            f"with {list(shape)}"
        )
    lead = g._data.ndim - len(shape)
    over = [*range(lead), *[i + lead for i, n in enumerate(shape) if n == 1 and g._data.shape[i + lead] != 1]]
    return g.sum(over, True).reshape(*shape) if over else g.reshape(*shape)


BackwardCFunction = AutogradContext

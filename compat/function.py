"""`Function`: operations with a user's own forward and backward, and the ctx that joins the two.

The ctx is the node: an instance of `<Function>Backward`, made before forward runs and put into the graph after it.
"""

from __future__ import annotations

import copy
import functools
import warnings
from typing import ClassVar

import numpy as np

from fgrad.compat import graph, views
from fgrad.compat.hooks import as_tensor
from fgrad.compat.modes import mode, no_grad
from fgrad.compat.tape import FREED, FREED_MESSAGE, Output, Packed, clock, place_of
from fgrad.compat.tensor import LEAF, Tensor, type_name, wrap


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
    _function = None

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
        self._to_save = ()
        self._named_to_save = {}
        self._dirty = self._non_differentiable = ()
        self._kept = self._kept_by_name = None

    @property
    def needs_input_grad(self):
        """For each argument of forward whether it requires grad, by position or by name."""
        return self._needs

    @needs_input_grad.setter
    def needs_input_grad(self, flags):
        kind = type("NeedsInputGrad", (NeedsInputGrad,), {"names": self.argument_names})
        self._needs = kind(flags)

    # -------------------------------------------------------------------------------------- saved values

    def _keep(self, inputs, outputs):
        """Turn what forward asked to save into checked values; done when the outputs are known."""
        for t in self._to_save:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type {type(t).__name__}"
                )
        self._kept = [Saved(t, self, inputs, outputs) for t in self._to_save]
        self._kept_by_name = {k: Saved(t, self, inputs, outputs) for k, t in self._named_to_save.items()}
        self._to_save = self._named_to_save = ()

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
        pulled = pulled if isinstance(pulled, tuple) else tuple(pulled) if isinstance(pulled, list) else (pulled,)
        checked = self._checked(pulled)
        if not work.keep and (self._kept or self._kept_by_name):
            self._kept = self._kept_by_name = FREED
        return checked if work.create else [None if t is None else t._data for t in checked]

    def _gradient(self, k, g):
        if g is None:
            if not self.materialize_grads or self._out_types[k] is None:
                return None
            shape, dtype = self._out_types[k]
            return wrap(np.zeros(shape, dtype))
        return as_tensor(g)

    def _apply_backward(self, *grads):
        backward, vjp = self._function.backward, self._function.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one "
                "of them."
            )
        return (vjp if vjp is not Function.vjp else backward)(self, *grads)

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
            raise TypeError(f"expected Variable or None (got {type(g).__name__})")
        if not self._is_tensor[k]:
            raise RuntimeError(
                f"function {self.name()} returned a gradient different from None at position {k + 1}, but the "
                "corresponding "
                "forward input was not a Variable"
            )
        if self._parents[k] is None:
            return None
        shape, dtype = self._in_types[k]
        if g._data.shape != shape:
            g = _reduced(g, shape, self.name(), k)
        if g._data.dtype != dtype:
            if g._data.dtype.kind == "c" and dtype.kind != "c":
                g = g.real
            g = g.to(dtype=graph_dtype(dtype))
        return g


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


def graph_dtype(numpy_dtype):
    """Return torch's dtype for a NumPy one."""
    from fgrad.compat import dtypes

    return dtypes.of(numpy_dtype)


BackwardCFunction = AutogradContext


class _FunctionMeta(type):
    """Gives each Function the class of its nodes, `<Function>Backward`."""

    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(
            name + "Backward", (AutogradContext,), {"_function": cls, "__module__": cls.__module__}
        )


class Function(metaclass=_FunctionMeta):
    """Define an operation by its own forward and backward.

    Subclass it with static methods `forward(ctx, *args)` and `backward(ctx, *grad_outputs)`, and call
    `YourFunction.apply(*args)`. forward runs without recording; backward gets a gradient for each output and returns
    one for each argument of forward. `setup_context(ctx, inputs, output)` may take over what forward needs ctx for.

    Example:
        >>> import fgrad.compat as torch
        >>> class Exp(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, i):
        ...         result = i.exp()
        ...         ctx.save_for_backward(result)
        ...         return result
        ...     @staticmethod
        ...     def backward(ctx, grad_output):
        ...         result, = ctx.saved_tensors
        ...         return grad_output * result
        >>> x = torch.tensor([0.], requires_grad=True)
        >>> Exp.apply(x).backward()
        >>> x.grad
        tensor([1.])
    """

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on "
            "the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function "
            "with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs; to be overridden."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Save what backward needs, if forward takes no ctx; may be overridden."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Return a gradient for each argument of forward; to be overridden."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward "
            "mode AD."
        )

    @staticmethod
    def vjp(ctx, *grad_outputs):
        """Another name for backward."""
        raise NotImplementedError("You must implement either the backward or vjp method")

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Return a tangent for each output; to be overridden for forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward and record the call; returns what forward returns."""
        if not isinstance(
            cls.__dict__.get("forward", Function.__dict__["forward"]), (staticmethod, classmethod)
        ) and any(
            "forward" in c.__dict__ and not isinstance(c.__dict__["forward"], (staticmethod, classmethod))
            for c in cls.__mro__[:1]
        ):
            raise RuntimeError(
                "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
                "autograd function "
                "with static forward method. (Example: "
                "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
            )
        return _Call(cls, args, kwargs).run()


class InplaceFunction(Function):
    """A Function that may be made with `inplace`, a flag for its methods."""

    def __init__(self, inplace=False):
        self.inplace = inplace


class _Call:
    """One call of `apply`: runs forward, then ties its outputs to a node."""

    def __init__(self, function, args, kwargs):
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.places = [place_of(a) if isinstance(a, Tensor) else None for a in args]
        self.recorded = mode.enabled and any(p is not None for p in self.places)

    def run(self):
        """Return what forward returns, its tensors recorded."""
        ctx = self._context()
        with no_grad():
            raw = self._forward(ctx)
        single = not isinstance(raw, (tuple, list))
        outputs = [raw] if single else list(raw)
        self._check_dirty(ctx, outputs)
        outputs = self._settle(ctx, outputs)
        ctx._keep(self.args, outputs)
        if single:
            return outputs[0]
        return type(raw)(*outputs) if hasattr(raw, "_fields") else tuple(outputs)

    def _context(self):
        ctx = self.function._backward_cls.__new__(self.function._backward_cls)
        names = _argument_names(self.function)
        AutogradContext.__init__(ctx, argument_names=names, env=self.function)
        ctx.needs_input_grad = [p is not None for p in self.places]
        ctx._parents = self.places if self.recorded else [None] * len(self.args)
        ctx._is_tensor = [isinstance(a, Tensor) for a in self.args]
        ctx._in_types = [(a._data.shape, a._data.dtype) if isinstance(a, Tensor) else None for a in self.args]
        return ctx

    def _forward(self, ctx):
        function = self.function
        if function.setup_context is Function.setup_context:
            return function.forward(ctx, *self.args, **self.kwargs)
        output = function.forward(*self.args, **self.kwargs)
        function.setup_context(ctx, self.args, output)
        return output

    def _check_dirty(self, ctx, outputs):
        for t in ctx._dirty:
            if not any(t is a for a in self.args):
                warnings.warn(
                    "mark_dirty: a tensor marked dirty is not an input of the function", UserWarning, stacklevel=4
                )
            elif not any(t is o for o in outputs):
                raise RuntimeError(
                    "Some elements marked as dirty during the forward method were not returned as output. The inputs "
                    "that are "
                    "modified inplace must all be outputs of the Function."
                )

    def _settle(self, ctx, outputs):
        """Give each output tensor its place in the graph."""
        differentiable = [
            isinstance(o, Tensor) and o._data.dtype.kind in "fc" and not any(o is n for n in ctx._non_differentiable)
            for o in outputs
        ]
        ctx._width = len(outputs)
        ctx._out_types = [(o._data.shape, o._data.dtype) if isinstance(o, Tensor) else None for o in outputs]
        ctx._seq = clock()
        done = {}
        settled = []
        for k, out in enumerate(outputs):
            if not isinstance(out, Tensor):
                settled.append(out)
            elif id(out) in done:  # returned twice: one tensor, whose gradient arrives at its last place
                made = done[id(out)]
                if self.recorded and differentiable[k] and made._node is not None:
                    made._node = ctx.place(k)
                settled.append(made)
            else:
                made = self._settle_one(ctx, out, k, differentiable[k])
                done[id(out)] = made
                settled.append(made)
        return settled

    def _settle_one(self, ctx, out, k, differentiable):
        dirty = any(out is t for t in ctx._dirty)
        is_input = any(out is a for a in self.args)
        place = ctx.place(k) if self.recorded and differentiable else None
        if dirty:
            self._settle_dirty(ctx, out, place)
            return out
        if is_input:
            out = _as_returned(out, place)
        elif place is None:
            if out._view is None or not self.recorded:
                out._node = None if not isinstance(out._node, Tensor) and out._node is not LEAF else out._node
            return out
        elif out._view is not None:
            out._view.origin = views.CUSTOM
            out._view.seen = out.counter[0]
        if place is not None:
            out._node = place
        return out

    def _settle_dirty(self, ctx, out, place):
        """Let an input that forward changed in place come from this node."""
        if out._node is LEAF and self.recorded:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        out.counter[0] += 1
        if place is None:
            return
        view = out._view
        if view is not None:
            if view.origin is views.MULTIPLE or ctx._width > 1:
                raise RuntimeError(
                    "If your Function modifies inplace an input that is a view of another Tensor, your Function "
                    "cannot return more "
                    "than one Tensor. This is not supported by the current autograd engine. "
                    "a Function that returns multiple views: your Function modifies inplace an input that is a view "
                    "of another Tensor"
                )
            if place_of(view.base) is not None and view.base._node is LEAF:
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place operation."
                )
        views.rebase(out, place)


def _as_returned(t, place):
    """Return an input that forward gave back as it was, as another tensor: a view with a history of its own."""
    made = wrap(t._data)
    made._counter = t.counter
    views.as_view(made, t, ())
    made._view.origin = views.CUSTOM
    if place is None:
        made._node = None
    return made


@functools.lru_cache(maxsize=1024)
def _argument_names(function):
    import inspect

    try:
        names = [
            p.name
            for p in inspect.signature(function.forward).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        return ()
    return tuple(names if function.setup_context is not Function.setup_context else names[1:])


def once_differentiable(backward):
    """Decorate a backward that cannot be differentiated itself: its results raise if they are.

    Example:
        >>> import fgrad.compat as torch
        >>> from fgrad.compat.autograd.function import once_differentiable
        >>> once_differentiable(lambda ctx, g: g * 2)(None, torch.ones(1))
        tensor([2.])
    """

    @functools.wraps(backward)
    def wrapper(ctx, *args):
        with no_grad():
            outputs = backward(ctx, *args)
        if not mode.enabled or not any(isinstance(a, Tensor) and views.requires_grad(a) for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        made = [_DelayedError.apply(o) if isinstance(o, Tensor) else o for o in ((outputs,) if single else outputs)]
        return made[0] if single else tuple(made)

    return wrapper


class _DelayedError(Function):
    """Passes a value through; differentiating it is the error."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

    @classmethod
    def apply(cls, x):
        x = x.detach().requires_grad_()
        with_grad = super().apply(x)
        return with_grad


__all__ = ["AutogradContext", "Function", "FunctionCtx", "InplaceFunction", "Packed", "once_differentiable"]

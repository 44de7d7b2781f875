"""`Function`: operations with a user's own forward and backward, and the ctx that joins the two.

The ctx is the node: an instance of `<Function>Backward`, made before forward runs and put into the graph after it.
"""

from __future__ import annotations

import functools
import inspect
import types
import warnings

import numpy as np

from fgrad.extend import state

from . import devices, views
from .context import AutogradContext
from .function_traced import TracedCall, is_traced
from .modes import mode, no_grad
from .tape import clock, place_of, recorder_below, reversed_by
from .tensor import LEAF, Tensor, wrap

_LEGACY = (
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
    "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
)


class FunctionMeta(type):
    """Gives each Function the class of its nodes, `<Function>Backward`."""

    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(
            name + "Backward", (AutogradContext,), {"_function": cls, "__module__": cls.__module__}
        )


class Function(metaclass=FunctionMeta):
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
        raise RuntimeError(_LEGACY)

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

    @staticmethod
    def vmap(info, in_dims, *args):
        """Return the outputs for a batch of arguments and their batch dimensions; to be overridden for `func.vmap`."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def _has_vmap(cls):
        return cls.vmap is not Function.vmap

    @classmethod
    def _has_setup(cls):
        return cls.setup_context is not Function.setup_context

    @classmethod
    def _run_forward(cls, ctx, args, kwargs, setup=True):
        """Run forward with its ctx, or without it and then setup_context."""
        if not cls._has_setup():
            return cls.forward(ctx, *args, **kwargs)
        output = cls.forward(*args, **kwargs)
        if setup:
            cls.setup_context(ctx, tuple(args), output)
        return output

    @classmethod
    def _pull(cls):
        """Return the method that computes gradients: backward or vjp; RuntimeError if both are given."""
        has_vjp = cls.vjp is not Function.vjp
        if has_vjp and cls.backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return cls.vjp if has_vjp else cls.backward

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward and record the call; returns what forward returns."""
        if isinstance(inspect.getattr_static(cls, "forward"), types.FunctionType):
            raise RuntimeError(_LEGACY)
        if kwargs:
            args, kwargs = _by_position(cls, args, kwargs)
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
        if is_traced(self.args):
            if recorder_below(state.interpreter):  # which records what the transforms leave of this call
                self.places, self.recorded = [None] * len(self.args), False
            ctx, raw = TracedCall(self.function, self.args, self.kwargs, self._context).bind()
        else:
            ctx = self._context(self.args)
            with no_grad():
                raw = self.function._run_forward(ctx, self.args, self.kwargs)
        single = not isinstance(raw, (tuple, list))
        outputs = [raw] if single else list(raw)
        self._check_dirty(ctx, outputs)
        outputs = self._settle(ctx, outputs)
        ctx._keep(self.args, outputs)
        if single:
            return outputs[0]
        return type(raw)(*outputs) if hasattr(raw, "_fields") else type(raw)(outputs)

    def _context(self, args):
        ctx = self.function._backward_cls.__new__(self.function._backward_cls)
        names = _argument_names(self.function)
        AutogradContext.__init__(ctx, argument_names=names, env=self.function)
        ctx.needs_input_grad = [p is not None for p in self.places]
        ctx._parents = self.places if self.recorded else [None] * len(args)
        ctx._in_types = types = [(a._data.shape, a._data.dtype) if isinstance(a, Tensor) else None for a in args]
        ctx._is_tensor = [kind is not None for kind in types]
        ctx._in_places = _places(args)
        return ctx

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
            isinstance(o, Tensor) and o._data.dtype.kind in "fcV" and not any(o is n for n in ctx._non_differentiable)
            for o in outputs
        ]
        ctx._width = len(outputs)
        ctx._out_types = [(o._data.shape, o._data.dtype) if isinstance(o, Tensor) else None for o in outputs]
        ctx._out_places = _places(outputs)
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
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        views.raise_version(out)
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


def _places(values):
    """Return the number of the GPU that each tensor is on, None where all is on the CPU."""
    for x in values:
        if isinstance(x, Tensor) and x._data.__class__ is not np.ndarray:
            return [devices.place_of(x._data) if isinstance(x, Tensor) else None for x in values]
    return None


def _as_returned(t, place):
    """Return an input that forward gave back as it was, as another tensor: a view with a history of its own."""
    made = wrap(t._data)
    made._counter = t.counter
    views.as_view(made, t, ())
    made._view.origin = views.CUSTOM
    if place is None:
        made._node = None
    return made


def _by_position(function, args, kwargs):
    """Return arguments of forward given by name at their positions, so that each counts as an input."""
    lead = () if function._has_setup() else (None,)
    bound = inspect.signature(function.forward).bind(*lead, *args, **kwargs)
    return bound.args[len(lead) :], bound.kwargs


@functools.lru_cache(maxsize=1024)
def _argument_names(function):
    try:
        names = [
            p.name
            for p in inspect.signature(function.forward).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        return ()
    return tuple(names if function._has_setup() else names[1:])


TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


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
        if reversed_by(state.interpreter):  # an outer transform differentiates what is computed here
            raise RuntimeError(TWICE)
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
        raise RuntimeError(TWICE)

    @classmethod
    def apply(cls, x):
        x = x.detach().requires_grad_()
        with_grad = super().apply(x)
        return with_grad

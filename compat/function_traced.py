"""Custom Functions on values traced by the core, as `forward_ad` and `torch.func` make them.

A call is one primitive that carries the Function: differentiated in reverse by its `backward`, in forward mode by its
`jvp`, batched by its `vmap` or, with `generate_vmap_rule`, by batching `forward` and `backward`. At every level the
rules see tensors of that level: `setup_context` runs once for each; without one, what forward saved is found again
among its inputs and outputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fgrad.extend import TABLE, Batch, Forward, Tracer, state, structured

from . import devices
from .context import Saved
from .modes import mode, no_grad
from .tape import Record, recorder_below
from .tensor import Tensor, wrap, wrap_value
from .views import requires_grad

GUIDE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told: the size of the mapped dimension, and how random numbers are drawn."""

    batch_size: int
    randomness: str = "error"


def value_of(t):
    """Return a tensor's value under transforms: traced by the recorder below them if it requires grad."""
    recorder = recorder_below(state.interpreter)
    return recorder.lift(t) if recorder and mode.enabled and requires_grad(t) else t._data


def is_traced(args):
    """Return whether one of the arguments is a tensor of a value traced by the core."""
    return state.interpreter is not None and any(isinstance(a, Tensor) and isinstance(a._data, Tracer) for a in args)


class TracedCall:
    """One call of a Function on traced values: how its arguments and what it saved are put together again.

    `origins` says for each saved value where it comes from: ("input", position), ("output", number), ("more", number)
    of what forward computed besides, or ("as it is", value).
    """

    def __init__(self, function, args, kwargs, new_context):
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.new_context = new_context
        self.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]

    def bind(self):
        """Apply the primitive; return a ctx and what forward gives, on tensors of this level."""
        values = [value_of(self.args[i]) for i in self.places]
        flat = function_call(*values, **self.params())
        outs = self.outputs(flat)
        return self.context(self.args, outs, flat), outs[0] if self.single else self.collected(outs)

    def params(self):
        """Return the parameters of the primitive."""
        return {"fun": self.fun, "fwd": self.fwd, "bwd": self.bwd, "consts": 0, "call": self}

    # ------------------------------------------------------------------------------ one level: values and tensors

    def tensors(self, values):
        """Return the arguments of forward with these values in the places of its tensors."""
        made = list(self.args)
        for i, v in zip(self.places, values):
            made[i] = wrap_value(v)
        return made

    def fun(self, *values):
        """Run forward on values; return the values of what it gives and of what it saved besides, as one list."""
        args = self.tensors(values)
        ctx = self.new_context(args)
        with no_grad():
            raw = self.function._run_forward(ctx, args, self.kwargs, setup=False)
        outs = self.describe(raw)
        more: list[Any] = []
        self.origins = [_origin(t, args, outs, more) for t in ctx._to_save]
        self.forward_origins = [_origin(t, args, outs, more) for t in ctx._to_save_forward]
        self.named_origins = {k: _origin(t, args, outs, more) for k, t in ctx._named_to_save.items()}
        self.undifferentiated = [any(o is n for n in ctx._non_differentiable) for o in outs]
        self.attributes = {k: v for k, v in ctx.__dict__.items() if k not in _OWN}
        return [t._data for t in (*outs, *more) if isinstance(t, Tensor)]

    def describe(self, raw):
        """Note the form of what forward gave, and return its outputs as a list."""
        self.single = not isinstance(raw, (tuple, list))
        kind = type(raw)
        self.collected = (lambda outs: kind(*outs)) if hasattr(raw, "_fields") else tuple
        outs = [raw] if self.single else list(raw)
        self.is_tensor = [isinstance(o, Tensor) for o in outs]
        self.statics = [None if isinstance(o, Tensor) else o for o in outs]
        return outs

    def outputs(self, flat):
        """Return the list of outputs with the values of a level in the places of its tensors."""
        found = iter(flat)
        return [wrap_value(next(found)) if t else o for t, o in zip(self.is_tensor, self.statics)]

    def context(self, args, outs, flat):
        """Return a ctx for a level with these arguments and outputs: set up for it, or as forward left its own."""
        ctx = self.new_context(args)
        ctx._out_types = [(o._data.shape, o._data.dtype) if isinstance(o, Tensor) else None for o in outs]
        ctx._width = len(outs)
        if self.function._has_setup():
            self.function.setup_context(ctx, tuple(args), outs[0] if self.single else self.collected(outs))
            return ctx
        found = {"input": args, "output": outs, "more": [wrap_value(x) for x in flat[sum(self.is_tensor) :]]}

        def at_level(origin):
            kind, which = origin
            return which if kind == "as it is" else found[kind][which]

        ctx.__dict__.update(self.attributes)
        ctx._to_save = [at_level(o) for o in self.origins]
        ctx._to_save_forward = [at_level(o) for o in self.forward_origins]
        ctx._named_to_save = {k: at_level(o) for k, o in self.named_origins.items()}
        ctx._non_differentiable = [o for o, skip in zip(outs, self.undifferentiated) if skip]
        return ctx

    def context_of(self, values, flat):
        """Return a ctx for a level with these values, its saved values ready to be asked for."""
        args = self.tensors(values)
        ctx = self.context(args, self.outputs(flat), flat)
        ctx.needs_input_grad = [isinstance(a, Tensor) and a._data.dtype.kind in "fcV" for a in args]
        ctx._keep(args, ())
        return ctx

    # -------------------------------------------------------------------------------------------- reverse mode

    def fwd(self, *values):
        """Return outputs and residuals for `bwd`: the values of this level, inputs and outputs."""
        flat = list(function_call(*values, **self.params()))
        return flat, [*values, *flat]

    def bwd(self, residuals, cts):
        """Run the user's backward on tensors; return cotangents of the tensor arguments."""
        ctx = self.context_of(residuals[: len(self.places)], residuals[len(self.places) :])
        given = iter(cts)
        grads = [_cotangent(next(given)) if t else None for t in self.is_tensor]
        ctx._parents = [self] * len(self.args)  # a place for every argument: each gradient is checked and kept
        pulled = ctx._apply_backward(*[ctx._gradient(k, g) for k, g in enumerate(grads)])
        checked = ctx._checked(pulled if isinstance(pulled, tuple) else (pulled,))
        return [None if checked[i] is None else checked[i]._data for i in self.places]

    # -------------------------------------------------------------------------------------------- forward mode

    def push(self, values, flat, tangents):
        """Run the user's jvp; return for each tensor that forward gave a tangent or None."""
        ctx = self.context_of(values, flat)
        if ctx.saved_for_forward:
            ctx._kept = [Saved(t, ctx, (), ()) for t in ctx.saved_for_forward]
        if ctx.materialize_grads:
            tangents = [devices.like(v, 0) if t is None else t for v, t in zip(values, tangents)]
        got = self.function.jvp(ctx, *self.tangents(tangents))
        got = got if isinstance(got, (tuple, list)) else (got,)
        if len(got) != len(self.is_tensor):
            raise RuntimeError(
                f"Function's jvp returned an invalid number of forward gradients (expected {len(self.is_tensor)} but "
                f"got {len(got)})"
            )
        kept = [t for t, is_tensor in zip(got, self.is_tensor) if is_tensor]
        for out, t in zip(flat, kept):
            if t is not None and t._data.shape != out.shape:
                raise RuntimeError(
                    "Trying to set a forward gradient that has a different size than that of the original Tensor, this "
                    f"is not supported. Tensor is of size {list(out.shape)} while the given forward gradient is of "
                    f"size {list(t.shape)}."
                )
        return [None if t is None else t._data for t in kept] + [None] * (len(flat) - len(kept))

    def tangents(self, tangents):
        """Return a tangent for each argument of forward; None for what is no tensor, or has none."""
        made = [None] * len(self.args)
        for i, t in zip(self.places, tangents):
            made[i] = None if t is None else wrap_value(t)
        return made

    # ------------------------------------------------------------------------------------------------- batching

    def check_batching(self):
        """Raise RuntimeError in torch's words unless the Function says in exactly one way how it is batched."""
        function, generated = self.function, self.function.generate_vmap_rule
        if generated and function._has_vmap():
            raise RuntimeError(
                f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an "
                "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap "
                f"staticmethod to avoid ambiguity. {GUIDE}"
            )
        if not generated and not function._has_vmap():
            raise RuntimeError(
                f"You tried to vmap over {function.__name__}, but it does not have vmap support. Please override and "
                f"implement the vmap staticmethod or set generate_vmap_rule=True. {GUIDE}"
            )

    def batched(self, size, values, axes):
        """Run the user's vmap; return flat outputs and their batch axes."""
        dims = [None] * len(self.args)
        for i, axis in zip(self.places, axes):
            dims[i] = axis
        out, out_dims = self.function.vmap(VmapInfo(size), tuple(dims), *self.tensors(values))
        outs = self.describe(out)
        self.origins, self.forward_origins, self.named_origins, self.attributes = [], [], {}, {}
        self.undifferentiated = [False] * len(outs)
        out_dims = out_dims if isinstance(out_dims, (tuple, list)) else (out_dims,) * len(outs)
        pairs = [(o._data, d) for o, d in zip(outs, out_dims) if isinstance(o, Tensor)]
        return tuple(o for o, _ in pairs), tuple(d for _, d in pairs)


_OWN = {"_parents", "_more", "_seq", "_width", "_to_save", "_to_save_forward", "_named_to_save", "_non_differentiable",
        "_dirty", "_kept", "_kept_by_name", "_needs", "_is_tensor", "_in_types", "_out_types"}  # fmt: skip
"""What a ctx has of its own at each level; everything else is what forward left on it."""


def _origin(t, args, outs, more):
    """Return where a saved value comes from; a tensor that is neither input nor output is entered in `more`."""
    if not isinstance(t, Tensor):
        return "as it is", t
    for kind, among in (("input", args), ("output", outs)):
        for i, x in enumerate(among):
            if x is t:
                return kind, i
    more.append(t)
    return "more", len(more) - 1


def _cotangent(ct):
    """Return a cotangent as a tensor; what stands for that of integers is None."""
    return None if ct is None or ct.dtype.kind not in "fcV" else wrap(ct)


# ----------------------------------------------------------------------------------------- the primitive and its rules

function_call = structured(
    "function_call",
    lambda *xs, fun, fwd, bwd, consts, call: tuple(fun(*xs)),
    lambda *types, fun, **params: tuple(fun.out_types),
    doc="A call of a custom Function: its own backward, jvp and vmap are the rules.",
)


def _as_custom_vjp(rule):
    """Return a rule of the core's functions with a pullback of their own, for calls that concern its interpreter."""

    def process(interpreter, args, params):
        if not any(isinstance(x, Tracer) and x.interpreter is interpreter for x in args):
            return interpreter.pass_on(function_call, args, params)
        return rule(interpreter, args, {k: v for k, v in params.items() if k != "call"})

    return process


def _forward(forward, args, params):
    pairs = [forward.split(x) for x in args]
    if all(t is None for _, t in pairs):
        return forward.pass_on(function_call, args, params)
    values = [v for v, _ in pairs]
    state.interpreter = forward.parent
    try:
        flat = function_call(*values, **params)
        tangents = params["call"].push(values, flat, [t for _, t in pairs])
    finally:
        state.interpreter = forward
    return tuple(forward.wrap(x, t) for x, t in zip(flat, tangents))


def _batch(batch, args, params):
    pairs = [batch.split(x) for x in args]
    if all(axis is None for _, axis in pairs):
        return batch.pass_on(function_call, args, params)
    call = params["call"]
    call.check_batching()
    if call.function.generate_vmap_rule:
        return _generated(batch, args, params)
    state.interpreter = batch.parent
    try:
        outs, axes = call.batched(batch.size, [v for v, _ in pairs], [a for _, a in pairs])
    finally:
        state.interpreter = batch
    return batch.wrap(function_call, outs, axes)


def _recorded(recorder, args, params):
    """Apply the Function to tensors, on the tape below all transforms."""
    call = params["call"]
    if not call.function._has_setup():
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            f"override the setup_context staticmethod. {GUIDE}"
        )
    tensors = list(call.args)
    for i, x in zip(call.places, args):
        tensors[i] = recorder.lower(x)
    state.interpreter = recorder.parent
    try:
        outs = call.describe(call.function.apply(*tensors, **call.kwargs))
    finally:
        state.interpreter = recorder
    call.origins, call.forward_origins, call.named_origins, call.attributes = [], [], {}, {}
    call.undifferentiated = [False] * len(outs)
    return tuple(recorder.lift(t) for t in outs if isinstance(t, Tensor))


function_call.rules.update({kind: _as_custom_vjp(rule) for kind, rule in TABLE["custom_vjp_call"].rules.items()})
_generated = function_call.rules[Batch]
function_call.rules[Forward] = _forward
function_call.rules[Batch] = _batch
function_call.rules[Record] = _recorded

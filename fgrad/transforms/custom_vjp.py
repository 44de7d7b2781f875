"""Functions with a pullback of the user's own, transposed for forward mode where it is linear in the cotangent."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import ArrayType, Params, Tracer, on_gpu, state, type_of
from fgrad.ops.custom import custom_vjp_call
from fgrad.program import Program, Trace
from fgrad.transforms.custom import (
    CustomCall,
    CustomFunction,
    RuleTrace,
    Skipping,
    Taking,
    check_closed_over,
    mapped,
    missing_rule,
    recorded,
    within_rule,
)
from fgrad.transforms.jvp import Forward
from fgrad.transforms.linearize import (
    Linearize,
    LinearTracer,
    Node,
    Step,
    as_operand,
    check_callable,
    float0,
    private,
    zero_cotangent,
)
from fgrad.transforms.programs import under
from fgrad.transforms.structured import rule
from fgrad.transforms.transpose import transpose_many
from fgrad.transforms.vmap import Batch, to_front, vmap


class custom_vjp(CustomFunction):
    """Give a function a pullback of its own.

    Args:
        fun: a function of arrays or pytrees.
        nondiff_argnums, nondiff_argnames: arguments that are not differentiated (any Python objects); `bwd` gets them
            first.

    The pullback is given by `defvjp(fwd, bwd)`: `fwd(*args) -> (out, residuals)` with residuals any pytree, and
    `bwd(residuals, ct)` returns a cotangent per differentiable argument, None for zero (also in subtrees). Forward mode
    uses the transpose of `bwd` where it is linear in the cotangent.

    Raises:
        AttributeError: the function is differentiated but has no rule.
        ValueError: `bwd` gives the wrong number or shape of cotangents.
        TypeError: forward mode of a function whose `bwd` is not linear.

    Example:
        >>> import numpy as np, fgrad
        >>> @fgrad.custom_vjp
        ... def clipped(x):
        ...     return x
        >>> clipped.defvjp(lambda x: (x, None), lambda res, ct: (np.clip(ct, -1, 1),))
        >>> fgrad.grad(lambda x: clipped(x) * 5)(np.array(2.))
        array(1.)
    """

    _fwd: Callable[..., Any] | None = None
    _bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False) -> None:
        """Set `fwd(*args) -> (out, residuals)` and `bwd(*nondiff, residuals, ct) -> cotangents`."""
        check_callable("defvjp", fwd)
        check_callable("defvjp", bwd)
        self._fwd, self._bwd = fwd, bwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = self._positional(args, kwargs)
        if state.interpreter is None:
            return self._fun(*args)
        if self._fwd is None or self._bwd is None:
            raise missing_rule(self.__name__, "VJP", "custom_vjp")  # type: ignore[attr-defined]
        one = _VJPCall(self, args)
        outs = custom_vjp_call(*one.leaves, fun=one.flat, fwd=one.fwd, bwd=one.bwd, consts=0)
        return tree.unflatten(one.out_tree, outs)


class _VJPCall(CustomCall):
    """A call of a `custom_vjp` function, with its rule on flat lists."""

    def __init__(self, custom: custom_vjp, args: Sequence[Any]):
        super().__init__(custom, args)
        self.user_fwd, self.user_bwd = custom._fwd, custom._bwd
        self.res_tree: Any = None
        self.res_static: list[Any] = []

    def fwd(self, *xs: Any) -> tuple[list[Any], list[Any]]:
        pair = self.user_fwd(*self.join(tree.unflatten(self.in_tree, list(xs))))  # type: ignore[misc]
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"the forward function of {self.name} must return a pair (out, residuals), got {pair!r}")
        outs, self.out_tree = tree.flatten(pair[0])
        res, self.res_tree = tree.flatten(pair[1])
        arrays = [isinstance(x, (Tracer, np.ndarray, np.generic, int, float, complex)) for x in res]
        self.res_static = [None if a else (x,) for x, a in zip(res, arrays, strict=True)]
        outs = [as_operand(x, f"the output of {self.name}") for x in outs]
        return outs, [x for x, a in zip(res, arrays, strict=True) if a]

    def bwd(self, res: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        arrays = iter(res)
        full = [next(arrays) if s is None else s[0] for s in self.res_static]
        ct = tree.unflatten(self.out_tree, list(cts))
        pulled = self.user_bwd(*self.nondiff, tree.unflatten(self.res_tree, full), ct)  # type: ignore[misc]
        if not isinstance(pulled, (tuple, list)):
            raise TypeError(f"the backward function of {self.name} must return a tuple or list, got {pulled!r}")
        if len(pulled) != self.in_tree.num_children:
            raise TypeError(
                f"the backward function of {self.name} must return a cotangent for each of "
                f"{self.in_tree.num_children} arguments, got {len(pulled)}"
            )
        return self._checked(list(pulled))

    def _checked(self, pulled: list[Any]) -> list[Any]:
        """Return cotangents per leaf, None for zero; ValueError if a shape is wrong."""
        none = lambda x: x is None  # noqa: E731
        names = f"the output of the backward function of {self.name}"
        skeleton = tree.unflatten(self.in_tree, self.leaves)
        flat: list[Any] = []
        for part, arg in zip(pulled, skeleton, strict=True):
            flat += _spread(part, arg, none, names)
        for k, (ct, x) in enumerate(zip(flat, self.leaves, strict=True)):
            if ct is None:
                continue
            want, got = type_of(x), type_of(ct)
            if got.dtype == float0:
                flat[k] = None
            elif got.shape != want.shape:
                raise ValueError(f"{names} must have the shape of its argument: leaf {k} is {want}, got {got}")
        return flat


def _spread(part: Any, arg: Any, none: Callable[[Any], bool], name: str) -> list[Any]:
    """Return the cotangent leaves for one argument; a None stands for zeros of a whole subtree."""
    if part is None:
        return [None] * tree.structure(arg).num_leaves
    return tree.broadcast_prefix(part, arg, is_leaf=none, name=name)  # type: ignore[no-any-return]


@rule(custom_vjp_call, Linearize)
def _vjp_linearize(tape: Linearize, args: Sequence[Any], params: Params) -> Any:
    n = params["consts"]
    mine = [x.__class__ is LinearTracer and x.interpreter is tape for x in args]
    check_closed_over([x for x, m in zip(args[:n], mine[:n], strict=True) if m])
    if not any(mine):
        return tape.pass_on(custom_vjp_call, args, params)
    values = [x.value if m else x for x, m in zip(args, mine, strict=True)]
    outs, residuals = under(tape.parent, lambda: params["fwd"](*values))
    types = [type_of(x) for x in outs], [type_of(x) for x in values]
    node = Node(
        _CUSTOM_VJP,
        [private(x) for x in residuals],
        None,
        (params["bwd"], tuple(mine[n:]), types, n),  # type: ignore[arg-type]
        tuple(x.node for x, m in zip(args, mine, strict=True) if m),
        tape.clock(),
        len(outs),
    )
    return tape.wrap_many(node, outs)


def _pull_custom(saved: Any, types: Any, params: Any, cts: Any) -> list[Any]:
    bwd, mine, (out_types, _), _ = params
    full = [zero_cotangent(t) if ct is None else ct for ct, t in zip(cts, out_types, strict=True)]
    return [_owned(g) for g, m in zip(bwd(saved, full), mine, strict=True) if m]


def _owned(g: Any) -> Any:
    """Return a cotangent from user code as an array of its own: it may be a residual."""
    if g is None or isinstance(g, Tracer):
        return g
    return g.copy() if on_gpu(g) else np.array(g)


def _push_custom(saved: Any, types: Any, params: Any, tangents: Any) -> list[Any]:
    """Push tangents through the transpose of the user's pullback."""
    bwd, mine, (out_types, _), _ = params
    given = iter(tangents)
    ts = [next(given) if m else None for m in mine]
    differentiable = [k for k, t in enumerate(out_types) if t.dtype.kind in "fcV"]

    def pulled(*cts: Any) -> list[Any]:
        found = dict(zip(differentiable, cts, strict=True))
        return bwd(saved, [found.get(k, zero_cotangent(t)) for k, t in enumerate(out_types)])  # type: ignore[no-any-return]

    try:
        pushed = transpose_many(pulled, [out_types[k].strong() for k in differentiable], ts)
    except TypeError as error:
        raise TypeError(
            "forward mode through a custom_vjp function needs a backward function that is linear in the cotangent; "
            f"this one is not ({error}).\nRemedy: use reverse mode, or define the function with custom_jvp."
        ) from error
    found = dict(zip(differentiable, pushed, strict=True))
    return [found.get(k) for k in range(len(out_types))]


_CUSTOM_VJP = Step(_pull_custom, _push_custom)


@rule(custom_vjp_call, Forward)
def _vjp_forward(forward: Forward, args: Sequence[Any], params: Params) -> Any:
    n = params["consts"]
    pairs = [forward.split(x) for x in args]
    check_closed_over([x for x, (_, t) in zip(args[:n], pairs[:n], strict=True) if t is not None])
    values = [v for v, _ in pairs]
    mine = tuple(t is not None for _, t in pairs[n:])

    def run() -> Any:
        outs, residuals = params["fwd"](*values)
        types = [type_of(x) for x in outs], [type_of(x) for x in values]
        tangents = [t for _, t in pairs[n:] if t is not None]
        return outs, _push_custom(residuals, None, (params["bwd"], mine, types, n), tangents)

    outs, pushed = under(forward.parent, run)
    return tuple(forward.wrap(x, t) for x, t in zip(outs, pushed, strict=True))


@rule(custom_vjp_call, Batch)
def _vjp_batch(batch: Batch, args: Sequence[Any], params: Params) -> Any:
    pairs = [batch.split(x) for x in args]
    axes = tuple(None if a is None else 0 for _, a in pairs)
    n = params["consts"]
    values = [x if a is None else to_front(x, a, batch.size) for x, a in pairs]
    new = {
        "fun": mapped(batch, params["fun"], axes),
        "fwd": vmap(lambda *xs: tuple(map(list, params["fwd"](*xs))), axes, 0, batch.axis_name, batch.size),
        "bwd": functools.partial(_batched_bwd, batch, params["bwd"], axes[n:]),
        "consts": n,
    }
    outs = under(batch.parent, lambda: custom_vjp_call(*values, **new))
    return batch.wrap(custom_vjp_call, outs, 0)


def _batched_bwd(batch: Batch, bwd: Any, axes: Sequence[int | None], res: Any, cts: Any) -> list[Any]:
    """Pull back all examples at once; the cotangent of an unbatched argument is the sum over examples."""
    present: list[bool] = []

    def one(res: Any, cts: Any) -> list[Any]:
        pulled = bwd(res, cts)
        present[:] = [g is not None for g in pulled]
        return [g for g in pulled if g is not None]

    found = iter(vmap(one, (0, 0), 0, batch.axis_name, batch.size)(list(res), list(cts)))
    pulled = [next(found) if p else None for p in present]
    return [g.sum(axis=0) if g is not None and a is None else g for g, a in zip(pulled, axes, strict=True)]


@rule(custom_vjp_call, Trace)
def _vjp_trace(recorder: Trace, args: Sequence[Any], params: Params) -> Any:
    """Record the function and both halves of its rule, so that nothing refers to this recording later."""
    n = params["consts"]
    kinds = [recorder.atom(x).type for x in args]
    fun, fun_consts = recorded(recorder, params["fun"], kinds)
    if within_rule(recorder):
        i = len(fun_consts)
        lazy = {"fun": Taking(fun, range(i + len(args))), "fwd": Skipping(params["fwd"], i)}
        return recorder.record(custom_vjp_call, [*fun_consts, *args], {**lazy, "bwd": params["bwd"], "consts": i + n})
    counts: list[int] = []

    def fwd(*xs: Any) -> list[Any]:
        outs, res = params["fwd"](*xs)
        counts[:] = [len(outs)]
        return [*outs, *res]

    forward, fwd_consts = recorded(recorder, fwd, kinds, RuleTrace)
    m = counts[0]
    res_kinds = forward.out_types[m:]
    ct_kinds = [ArrayType(t.shape, t.dtype if t.dtype.kind in "fcV" else float0) for t in forward.out_types[:m]]
    present: list[bool] = []

    def bwd(*both: Any) -> list[Any]:
        pulled = params["bwd"](both[: len(res_kinds)], both[len(res_kinds) :])
        present[:] = [g is not None for g in pulled]
        return [g for g in pulled if g is not None]

    backward, bwd_consts = recorded(recorder, bwd, [*res_kinds, *ct_kinds], RuleTrace)
    i, j, k = len(fun_consts), len(fwd_consts), len(bwd_consts)
    rest = range(i + j + k, i + j + k + len(args))
    new = {
        "fun": Taking(fun, [*range(i), *rest]),
        "fwd": _Forwards(Taking(forward, [*range(i, i + j), *rest]), m, range(i + j, i + j + k)),
        "bwd": _Backwards(backward, k, tuple(present)),
        "consts": i + j + k + n,
    }
    return recorder.record(custom_vjp_call, [*fun_consts, *fwd_consts, *bwd_consts, *args], new)


class _Forwards:
    """A recorded `fwd`: its residuals are those of the user and what the recorded `bwd` closes over."""

    __name__ = "fwd"

    def __init__(self, taking: Taking, outs: int, extra: range):
        self.taking, self.outs, self.extra = taking, outs, extra

    def __call__(self, *xs: Any) -> tuple[list[Any], list[Any]]:
        flat = self.taking(*xs)
        return flat[: self.outs], [*[xs[k] for k in self.extra], *flat[self.outs :]]


class _Backwards:
    """A recorded `bwd`."""

    __name__ = "bwd"

    def __init__(self, program: Program, consts: int, present: Sequence[bool]):
        self.program, self.consts, self.present = program, consts, present

    def __call__(self, res: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        found = iter(self.program.run(*res, *cts))
        return [next(found) if p else None for p in self.present]


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function a pullback returned by the function itself: `fun(*args) -> (out, vjp)`.

    `vjp(ct)` returns one cotangent, or a tuple with one per argument.

    Example:
        >>> import numpy as np, fgrad
        >>> @fgrad.custom_gradient
        ... def square(x):
        ...     return x * x, lambda ct: 10 * ct * x
        >>> fgrad.grad(square)(np.array(3.))
        array(30.)
    """
    check_callable("custom_gradient", fun)
    wrapped = custom_vjp(lambda *args: fun(*args)[0])
    functools.update_wrapper(wrapped, fun, updated=())

    def fwd(*args: Any) -> Any:
        out, pull = fun(*args)
        leaves, out_tree = tree.flatten(out)
        kinds = [ArrayType(t.shape, t.dtype) for t in map(type_of, leaves)]
        trees: list[Any] = []

        def flat_pull(*cts: Any) -> list[Any]:
            pulled = pull(tree.unflatten(out_tree, list(cts)))
            single = not (isinstance(pulled, (tuple, list)) and len(pulled) == len(args))
            flat, treedef = tree.flatten((pulled,) if single else tuple(pulled))
            trees[:] = [treedef]
            return flat

        program, consts = recorded(state.interpreter, flat_pull, kinds)  # what pull closes over becomes residuals
        return out, (consts, _Static((program, trees[0])))

    def bwd(res: Any, ct: Any) -> Any:
        consts, static = res
        program, treedef = static.value
        return tree.unflatten(treedef, program.run(*consts, *tree.leaves(ct)))

    wrapped.defvjp(fwd, bwd)
    return wrapped


class _Static:
    """A leaf of a pytree that is no array."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

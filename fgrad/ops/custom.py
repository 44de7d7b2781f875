"""Primitives that carry a function with the user's own derivative. See `fgrad.transforms.custom`.

The functions in parameters take and give flat lists of arrays: `fun(*xs) -> outs`, `rule(*xs, *ts) -> outs + tangents`,
`fwd(*xs) -> (outs, residuals)`, `bwd(residuals, cts) -> cts of xs`. The first `consts` of the xs are closed over.
"""

from __future__ import annotations

from fgrad.kinds import structured


def _types(*types, fun, **params):
    return tuple(fun.out_types)  # a Program by the time types are asked for


custom_jvp_call = structured(
    "custom_jvp_call",
    lambda *xs, fun, rule, consts: tuple(fun(*xs)),
    _types,
    doc="A function with a tangent rule of its own.",
)

custom_vjp_call = structured(
    "custom_vjp_call",
    lambda *xs, fun, fwd, bwd, consts: tuple(fun(*xs)),
    _types,
    doc="A function with a pullback of its own.",
)

checkpoint_call = structured(
    "checkpoint_call",
    lambda *xs, program, policy: tuple(program.compute(*xs)),
    lambda *types, program, policy: tuple(program.out_types),
    doc="A Program whose intermediate values are computed again for the pullback.",
)

callback_call = structured(
    "callback_call",
    lambda *xs, callback, types, how: callback(*xs),
    lambda *kinds, callback, types, how: types,
    doc="A function of Python on plain arrays, whose results have the given types.",
)

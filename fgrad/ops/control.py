"""Structured primitives: those that hold Programs. Their meaning under transforms is in `fgrad.transforms.control`.

Programs in parameters have no constants of their own: whatever a body closes over is passed as an operand.
"""

from __future__ import annotations

import numpy as np

from fgrad.core import ArrayType, on_gpu
from fgrad.kinds import structured
from fgrad.plans import hooks


def _call(*args, program):
    if program.placed is not None or any(map(on_gpu, args)):
        return tuple(hooks.compute_on_gpu(program, *args))
    return tuple(program.compute(*args))


call = structured(
    "call",
    _call,
    lambda *types, program: tuple(program.out_types),
    doc="Apply a Program; what a jitted function becomes inside other transforms.",
)

cond = structured(
    "cond",
    lambda index, *operands, branches: tuple(branches[int(index)].compute(*operands)),
    lambda index, *types, branches: tuple(branches[0].out_types),
    doc="Apply the branch that the integer `index` chooses.",
)


def _stacked(kind, length):
    return ArrayType((length, *kind.shape), kind.dtype)


def _scan(*args, body, length, reverse, consts, carries):
    """Run `body(*consts, *carry, *x)` over the leading axis of the xs; ys are written into place."""
    fixed = args[:consts]
    carry = list(args[consts : consts + carries])
    xs = args[consts + carries :]
    ys = [np.empty(_stacked(t, length).shape, t.dtype) for t in body.out_types[carries:]]
    for i in reversed(range(length)) if reverse else range(length):
        outs = body.compute(*fixed, *carry, *[x[i] for x in xs])
        carry = outs[:carries]
        for y, out in zip(ys, outs[carries:], strict=True):
            y[i] = out
    return (*carry, *ys)


scan = structured(
    "scan",
    _scan,
    lambda *types, body, length, reverse, consts, carries: (
        *types[consts : consts + carries],
        *[_stacked(t, length) for t in body.out_types[carries:]],
    ),
    doc="Carry a state along the leading axis, stacking one output a step.",
)


def _while_loop(*args, test, body, test_consts, body_consts):
    head, fixed, state = (
        args[:test_consts],
        args[test_consts : test_consts + body_consts],
        list(args[test_consts + body_consts :]),
    )
    while test.compute(*head, *state)[0]:
        state = body.compute(*fixed, *state)
    return tuple(state)


while_loop = structured(
    "while_loop",
    _while_loop,
    lambda *types, test, body, test_consts, body_consts: types[test_consts + body_consts :],
    doc="Apply `body` for as long as `test` holds.",
)

linear_solve = structured(
    "linear_solve",
    lambda *args, matvec, solve, vecmat, transpose_solve, counts: tuple(
        solve.compute(*args[counts[0] : counts[0] + counts[1]], *args[sum(counts) :])
    ),
    lambda *types, matvec, solve, vecmat, transpose_solve, counts: tuple(solve.out_types),
    doc="The solution x of matvec(x) = b that `solve` finds, and what else it gives. Operands: what matvec and vecmat, "
    "solve, and transpose_solve close over, as many as `counts` says, then b.",
)

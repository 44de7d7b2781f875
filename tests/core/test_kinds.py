"""How rules are read: their parameters' names are found as `inspect` finds them, and wrong ones fail at declaration."""

import functools
import inspect
import operator

import numpy as np
import pytest

from fgrad import kinds
from fgrad.core import TABLE
from fgrad.kinds import elementwise
from fgrad.plans import parameters_of

P = inspect.Parameter
KINDS = ((P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD), (P.VAR_POSITIONAL,), (P.KEYWORD_ONLY,), (P.VAR_KEYWORD,))


@functools.wraps(operator.add)
def wrapper(*args):
    return args


class Callable:
    def __call__(self, x, y=1, *, axis):
        return x


@pytest.mark.parametrize(
    "function",
    [
        lambda: None,
        lambda x, /, y=2, *zs, axis, keepdims=False, **rest: 0,
        lambda *xs: xs,
        lambda x, **rest: rest,
        operator.eq,
        wrapper,
        np.sum,
        functools.partial(lambda x, y, *, axis: x, 1),
        Callable(),
        Callable().__call__,
    ],
)
def test_parameters_are_those_of_inspect(function):
    found = inspect.signature(function).parameters.values()
    assert parameters_of(function) == tuple(tuple(p.name for p in found if p.kind in kind) for kind in KINDS)


@pytest.mark.parametrize("partial", [lambda nothing: 1, kinds.gate(lambda x: x > 0, lambda nothing: 1)])
def test_an_unknown_name_fails_at_declaration(partial):
    with pytest.raises(TypeError, match="primitive 'mistaken': a rule names nothing, which is none of out, x, x_type"):
        elementwise("mistaken", np.negative, d=partial)
    assert "mistaken" not in TABLE

"""Anomaly mode beside torch's: the same functions are named, in the same words, by the same number of warnings."""

import re
import warnings

import pytest

import fgrad.compat as ours
from tests.parity.both import real_torch

pytestmark = pytest.mark.parity

PROGRAMS = {
    "sqrt": lambda t, x: (x.sqrt() * 0).sum().backward(),
    "forward nan": lambda t, x: ((x - 3).log() ** 2 * (x - 3).log()).sum().backward(),
    "division": lambda t, x: (x / x).sum().backward(),
    "power": lambda t, x: ((x**0.5) * 0).sum().backward(),
    "custom": lambda t, x: bad(t).apply(x).sum().backward(),
    "twice": lambda t, x: again(t, x * 2),
    "hook": lambda t, x: hooked(x * 2).sum().backward(),
}


def bad(t):
    class Bad(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    return Bad


def again(t, x):
    (g,) = t.autograd.grad((x**1.5).sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x, create_graph=True)
    (h * 0).sum().backward()


def hooked(x):
    x.register_hook(lambda g: 1 / 0)
    return x


def outcome(t, program):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with t.autograd.detect_anomaly():
            x = t.tensor([1.0, 0.0], dtype=t.double, requires_grad=True)
            with pytest.raises((RuntimeError, ZeroDivisionError)) as info:
                program(t, x)
    told = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    phrases = [re.match(r"\s*(Anomaly Detection has been enabled|[\w ]+ \S+?\. [A-Z][\w ]+)", text)[1] for text in told]
    return info.type, str(info.value).splitlines()[0], phrases


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_said(program):
    assert outcome(ours, program) == outcome(real_torch(), program)


def test_a_hook_of_a_leaf():
    """torch's node of a leaf also remembers who made it; here a leaf has no node of its own."""
    for t in (ours, real_torch()):
        _, _, (_, told) = outcome(t, lambda t, x: (hooked(x) * 2).sum().backward())
        assert told.startswith("Error detected in torch::autograd::AccumulateGrad.")


def test_the_traceback_is_kept_under_the_same_key():
    for t in (ours, real_torch()):
        with t.autograd.set_detect_anomaly(True):
            y = t.ones(1, requires_grad=True) * 2
        assert "y = t.ones(1, requires_grad=True) * 2" in "".join(y.grad_fn.metadata["traceback_"])

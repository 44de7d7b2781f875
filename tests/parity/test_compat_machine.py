"""A state machine that takes torch and fgrad.compat through the same steps, and compares all that can be seen of both.

Steps are views, operations, writes in place, hooks, modes, passes and detaching, on tensors that earlier steps made.
"""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import fgrad.compat as compat
from tests.parity.both import assert_same, data, plain, real_torch
from tests.parity.test_compat_inplace import INPLACE, OPS, VIEWS

pytestmark = pytest.mark.parity

NUMBERS = st.integers(0, 9)
MODES = ("no_grad()", "enable_grad()", "set_grad_enabled(False)", "set_grad_enabled(True)")
SIZE = 12


class Machine(RuleBasedStateMachine):
    """`self.sides` has for each of the two modules the names that steps may use; `ts` is the list of tensors."""

    def __init__(self):
        super().__init__()
        self.sides = [
            {"torch": module, "np": np, "ts": [], "hooks": [], "modes": [], "log": []}
            for module in (real_torch(), compat)
        ]

    def step(self, code):
        """Run a statement with both modules; both end in an error, or neither does."""
        outcomes = []
        for side in self.sides:
            try:
                exec(code, side)
                outcomes.append(None)
            except (RuntimeError, IndexError, ValueError) as error:
                outcomes.append(error)
        torchs, ours = outcomes
        assert (torchs is None) == (ours is None), f"{code}\ntorch: {torchs!r}\ncompat: {ours!r}"

    def tensor(self, number):
        return f"ts[{number} % len(ts)]"

    @initialize()
    def start(self):
        for side in self.sides:
            leaf = side["torch"].tensor(data(3, 3, seed=1)).requires_grad_()
            side["leaf"] = leaf
            side["ts"] += [leaf, leaf * 1, side["torch"].tensor(data(3, 3, seed=2))]

    @rule(template=st.sampled_from(VIEWS + OPS), a=NUMBERS, b=NUMBERS)
    def make(self, template, a, b):
        if len(self.sides[0]["ts"]) < SIZE:
            self.step(f"ts.append({template.format(a=self.tensor(a), b=self.tensor(b))})")

    # torch takes a view of a constant for a leaf until it is asked for its history, so it is asked before a write.
    @rule(template=st.sampled_from(INPLACE), a=NUMBERS, b=NUMBERS)
    def write(self, template, a, b):
        self.step(f"{self.tensor(a)}.grad_fn; {template.format(a=self.tensor(a), b=self.tensor(b))}")

    # torch crashes when a hook is put on a view that was made in no_grad.
    @rule(a=NUMBERS, factor=st.sampled_from([2.0, -1.0]))
    def hook(self, a, factor):
        t = self.tensor(a)
        self.step(
            f"{t}._base is None and hooks.append({t}.register_hook(lambda g: "
            f"log.append(g.sum().item()) or g * {factor}))"
        )

    @rule(a=NUMBERS)
    def remove_hook(self, a):
        self.step(f"hooks and hooks[{a} % len(hooks)].remove()")

    @rule(a=NUMBERS)
    def retain(self, a):
        self.step(f"{self.tensor(a)}._base is None and {self.tensor(a)}.retain_grad()")

    @rule(mode=st.sampled_from(MODES))
    def enter(self, mode):
        if len(self.sides[0]["modes"]) < 3:
            self.step(f"modes.append(torch.{mode}); modes[-1].__enter__()")

    @rule()
    def leave(self):
        self.step("modes and modes.pop().__exit__(None, None, None)")

    @rule(a=NUMBERS, retain=st.booleans(), create=st.booleans())
    def backward(self, a, retain, create):
        self.step(f"{self.tensor(a)}.sum().backward(retain_graph={retain or None}, create_graph={create})")

    @rule(a=NUMBERS, b=NUMBERS)
    def grad(self, a, b):
        inputs = f"[leaf, {self.tensor(b)}]"
        self.step(
            "log.append([None if g is None else g.detach() for g in "
            f"torch.autograd.grad(({self.tensor(a)} * 1.5).sum(), {inputs}, retain_graph=True, allow_unused=True)])"
        )

    @rule(a=NUMBERS)
    def detached(self, a):
        if len(self.sides[0]["ts"]) < SIZE:
            self.step(f"ts.append({self.tensor(a)}.detach())")

    @rule(a=NUMBERS)
    def drop(self, a):
        if len(self.sides[0]["ts"]) > 3:
            self.step(f"del ts[{a} % len(ts)]")

    @invariant()
    def same(self):
        shown = [[self.seen(side, t) for t in side["ts"]] for side in self.sides]
        assert_same(plain(shown[0]), plain(shown[1]))
        assert_same(*[plain(side["log"]) for side in self.sides])
        assert_same(*[plain(side["leaf"].grad) if "leaf" in side else None for side in self.sides])

    def seen(self, side, t):
        """Return what can be seen of a tensor; the history of a view may be an error to ask for."""
        try:
            history = t.grad_fn is None
            kept = t.grad.detach() if t.retains_grad and t.grad is not None else None
        except RuntimeError:
            history = kept = "an error"
        return [
            kept,
            t.detach(),
            t.requires_grad,
            t._version,
            t._base is None,
            history,
            side["torch"].is_grad_enabled(),
        ]

    def teardown(self):
        while any(side["modes"] for side in self.sides):
            self.leave()


def run(examples, steps):
    with np.errstate(all="ignore"):
        run_state_machine_as_test(
            Machine, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
        )


@pytest.mark.filterwarnings("ignore")
def test_machine():
    run(150, 20)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_machine_for_long():
    run(3000, 40)

"""gradcheck beside torch's: the same planted bugs are caught, by the same error with the same key phrase."""

import warnings

import pytest

import fgrad.compat as ours
from tests.parity.both import real_torch

pytestmark = pytest.mark.parity

PHRASES = (
    "While considering the imaginary part of complex outputs only, Jacobian mismatch for output",
    "While considering the imaginary part of complex inputs only, Jacobian computed with forward mode mismatch",
    "Jacobian computed with forward mode mismatch for output",
    "Jacobian mismatch for output 0 with respect to input 0",
    "Jacobian mismatch for output 0 with respect to input 1",
    "Jacobian mismatch for output 1 with respect to input 0",
    "Backward is not reentrant",
    "backward not multiplied by grad_output",
    "Numerical gradient for function expected to be zero",
    "Expected all input grads to be undefined or zero when all output grads are undefined or zero",
    "Expected backward function to handle undefined output grads",
    "failed while testing batched gradient computation",
    "You must implement the jvp function",
    "returned an incorrect number of gradients (expected 2, got 1)",
    "expects at least one input tensor to require gradient",
    "has a dimension with stride 0",
    "to return outputs with the same shape when inputs are perturbed",
    "Setting check_batched_grad=True requires check_backward_ad to be True",
    "unsupported operand type(s) for *",
)


def function(t, backward, forward=lambda ctx, x: x * 2, **methods):
    body = {"forward": forward, "backward": backward, **methods}
    return type("Bug", (t.autograd.Function,), {k: staticmethod(f) for k, f in body.items()}).apply


def real(t, *values):
    return t.tensor(values or (0.7, 1.3), dtype=t.double, requires_grad=True)


def complex_(t):
    return t.tensor([0.7 + 1j, 1.3 - 2j], dtype=t.complex128, requires_grad=True)


def pair(t, backward):
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    return function(t, backward, forward)


def drifting(t):
    calls = []
    return function(t, lambda ctx, g: g * (2 + 1e-8 * (calls.append(0) or len(calls))))


def bad_batch(t):
    class Inner(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def vmap(info, in_dims, x):
            return x * 7, in_dims[0]

    return function(t, lambda ctx, g: Inner.apply(g))


CASES = {
    "right": lambda t: (lambda x: x.sin() * x, real(t), {}),
    "right, everything": lambda t: (
        lambda x, y: (x * y, x.sum()),
        (real(t), real(t, 3.0, 4.0)),
        {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True},
    ),
    "right, fast": lambda t: (lambda z: z * z, complex_(t), {"fast_mode": True, "check_forward_ad": True}),
    "wrong factor": lambda t: (function(t, lambda ctx, g: g * 3), real(t), {}),
    "wrong factor, fast": lambda t: (function(t, lambda ctx, g: g * 3), real(t), {"fast_mode": True}),
    "slightly wrong": lambda t: (function(t, lambda ctx, g: g * 2.01), real(t), {}),
    "within rtol": lambda t: (function(t, lambda ctx, g: g * 2.001), real(t), {}),
    "within atol": lambda t: (function(t, lambda ctx, g: g * 2.001), real(t), {"rtol": 0, "atol": 0.1}),
    "nan": lambda t: (function(t, lambda ctx, g: g * float("nan"), lambda ctx, x: x * float("nan")), real(t), {}),
    "None for a gradient": lambda t: (function(t, lambda ctx, g: None), real(t), {}),
    "too few gradients": lambda t: (
        function(t, lambda ctx, g: g, lambda ctx, x, y: x + y),
        (real(t), real(t)),
        {},
    ),
    "second input": lambda t: (
        function(t, lambda ctx, g: (g, g * 2), lambda ctx, x, y: x + y),
        (real(t), real(t)),
        {},
    ),
    "second output": lambda t: (
        function(t, lambda ctx, a, b: a + b * 4, lambda ctx, x: (x * 1, x * 3)),
        real(t),
        {},
    ),
    "float32 gradient": lambda t: (function(t, lambda ctx, g: (g * 2).float()), real(t), {"check_grad_dtypes": True}),
    "conjugate forgotten": lambda t: (function(t, lambda ctx, g: g * 2j, lambda ctx, z: z * 2j), complex_(t), {}),
    "drifting": lambda t: (drifting(t), real(t), {}),
    "drifting within tolerance": lambda t: (drifting(t), real(t), {"nondet_tol": 1e-5}),
    "not multiplied": lambda t: (function(t, lambda ctx, g: t.ones_like(g) * 2), real(t, 1.0), {}),
    "not multiplied, fast": lambda t: (function(t, lambda ctx, g: g * 2 + 1e-7), real(t, 1.0), {"fast_mode": True}),
    "detached": lambda t: (lambda x: x.detach() * 2, real(t), {}),
    "None raises TypeError": lambda t: (pair(t, lambda ctx, a, b: a * 2 + b * 3), real(t), {}),
    "undefined": lambda t: (pair(t, lambda ctx, a, b: refuse(a, b)), real(t), {}),
    "undefined not checked": lambda t: (
        pair(t, lambda ctx, a, b: refuse(a, b)),
        real(t),
        {"check_undefined_grad": False},
    ),
    "undefined gives ones": lambda t: (pair(t, lambda ctx, a, b: ones(t, a, b)), real(t), {}),
    "wrong forward": lambda t: (
        function(t, lambda ctx, g: g * 2, jvp=lambda ctx, x: x * 3),
        real(t),
        {"check_forward_ad": True},
    ),
    "wrong forward, not asked": lambda t: (function(t, lambda ctx, g: g * 2, jvp=lambda ctx, x: x * 3), real(t), {}),
    "wrong forward, complex": lambda t: (
        function(t, lambda ctx, g: g * 2, jvp=lambda ctx, x: x.conj() * 2),
        complex_(t),
        {"check_forward_ad": True},
    ),
    "wrong backward, forward only": lambda t: (
        function(t, lambda ctx, g: g * 3, jvp=lambda ctx, x: x * 2),
        real(t),
        {"check_forward_ad": True, "check_backward_ad": False},
    ),
    "no forward rule": lambda t: (function(t, lambda ctx, g: g * 2), real(t), {"check_forward_ad": True}),
    "batches": lambda t: (lambda x: x.sum() * x, real(t), {"check_batched_grad": True}),
    "wrong batched rule, not asked": lambda t: (bad_batch(t), real(t), {}),
    "nothing to check": lambda t: (lambda x: x, real(t).detach(), {}),
    "overlapping": lambda t: (lambda x: x * 2, t.ones(1, dtype=t.double).expand(3).requires_grad_(), {}),
    "changing shape": lambda t: (lambda x: x[: 1 + int(x[0] > 1)], real(t, 1.0, 2.0), {}),
    "contradiction": lambda t: (
        lambda x: x,
        real(t),
        {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
    ),
    "low precision": lambda t: (lambda x: x * 2, real(t).detach().float().requires_grad_(), {}),
    "kink": lambda t: (lambda x: x.abs(), real(t, 0.0, 1.0), {}),
}


def refuse(a, b):
    if a is None:
        raise RuntimeError("no gradient")
    return a * 2 if b is None else a * 2 + b * 3


def ones(t, a, b):
    if a is None and b is None:
        return t.ones(2, dtype=t.double)
    return (0 if a is None else a * 2) + (0 if b is None else b * 3)


def outcome(t, check, case):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        func, inputs, options = case(t)
        try:
            said = check(func, inputs, **options)
        except Exception as error:
            said = type(error).__name__, next((p for p in PHRASES if p in str(error)), str(error))
    return said, [str(w.message)[:60] for w in caught if issubclass(w.category, UserWarning)]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_caught(case):
    torch = real_torch()
    assert outcome(ours, ours.autograd.gradcheck, case) == outcome(torch, torch.autograd.gradcheck, case)


def test_a_wrong_batched_rule():
    """torch's check runs under its old vmap, which asks no Function for its rule; here it is asked, and caught."""
    torch = real_torch()
    case = CASES["wrong batched rule, not asked"]
    func, inputs, _ = case(torch)
    assert torch.autograd.gradcheck(func, inputs, check_batched_grad=True)
    func, inputs, _ = case(ours)
    with pytest.raises(ours.autograd.gradcheck.GradcheckError, match="testing batched gradient computation"):
        ours.autograd.gradcheck(func, inputs, check_batched_grad=True)


SECOND = {
    "right": lambda t: (lambda x: x.sin() * x, real(t), {}),
    "right, forward over reverse": lambda t: (lambda x: x.exp() * x, real(t), {"check_fwd_over_rev": True}),
    "right, fast": lambda t: (lambda x, y: (x * y).sum(), (real(t), real(t)), {"fast_mode": True}),
    "right, complex": lambda t: (lambda z: z * z * z, complex_(t), {"check_batched_grad": True}),
    "right, strided": lambda t: (lambda x: x**3, real(t), {"gen_non_contig_grad_outputs": True}),
    "linear": lambda t: (lambda x: x * 2, real(t), {}),
    "second derivative cut": lambda t: (
        function(t, lambda ctx, g: g * 2 * ctx.x.detach(), lambda ctx, x: setattr(ctx, "x", x) or x * x),
        real(t),
        {},
    ),
}


@pytest.mark.parametrize("case", SECOND.values(), ids=SECOND)
def test_what_is_caught_of_second_derivatives(case):
    torch = real_torch()
    assert outcome(ours, ours.autograd.gradgradcheck, case) == outcome(torch, torch.autograd.gradgradcheck, case)

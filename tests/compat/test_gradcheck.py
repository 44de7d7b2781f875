"""gradcheck: what passes, which planted bugs are caught and in what words, and what each parameter does."""

import warnings

import numpy as np
import pytest

import fgrad.compat as torch
from fgrad.compat.autograd.gradcheck import GradcheckError

gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck


def leaf(*shape, dtype=torch.double, seed=0):
    random = np.random.default_rng(seed)
    values = random.uniform(0.5, 2, shape)
    if dtype.is_complex:
        values = values + 1j * random.uniform(-1, 1, shape)
    return torch.tensor(values, dtype=dtype).requires_grad_()


class Twice(torch.autograd.Function):
    """y = 2 x; the bugs below override one method each."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 2


class Pair(torch.autograd.Function):
    """y, z = 2 x, 3 x; without a gradient for an output, backward gets None."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        return b * 3 if a is None and b is not None else a if a is None else a * 2 + (0 if b is None else b * 3)


def with_backward(rule, base=Twice):
    return type("Bug", (base,), {"backward": staticmethod(rule)}).apply


def with_jvp(rule):
    return type("Bug", (Twice,), {"jvp": staticmethod(rule)}).apply


# ---------------------------------------------------------------------------------------------------- what passes

EVERYTHING = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
RIGHT = {
    "elementwise": (lambda x: x.sin() * x, leaf(3)),
    "several outputs": (lambda x, y: (x @ y, (x * x).sum(), y.exp()), (leaf(2, 3), leaf(3, 2))),
    "0-d": (lambda x: x.sin(), leaf()),
    "empty": (lambda x: x * 2, leaf(0)),
    "not contiguous": (lambda x: x.sum(0), leaf(3, 2).detach().t().requires_grad_()),
    "an input that is no tensor": (lambda x, n, name: x**n, (leaf(3), 3, "name")),
    "an input that needs none": (lambda x, y: x * y, (leaf(3), torch.ones(3, dtype=torch.double))),
    "unused input": (lambda x, y: x * 2, (leaf(3), leaf(2))),
    "integer output": (lambda x: (x * 2, (x > 1).long()), leaf(3)),
    "an output that needs no gradient": (lambda x: (x.detach() * 0, torch.ones(2), x * 2), leaf(3)),
    "complex": (lambda z: z * z.conj() * z, leaf(3, dtype=torch.complex128)),
    "complex to real": (lambda z: z.abs(), leaf(3, dtype=torch.complex128)),
    "real to complex": (lambda x: torch.complex(x, x * x), leaf(3)),
    "both": (lambda x, z: x * z, (leaf(3), leaf(3, dtype=torch.complex128))),
    "list of inputs": (lambda x, y: [x * y], [leaf(3), leaf(3, seed=1)]),
    "custom": (Twice.apply, leaf(3)),
}


@pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize(("func", "inputs"), RIGHT.values(), ids=RIGHT)
def test_right_derivatives_pass(func, inputs, fast_mode):
    assert gradcheck(func, inputs, fast_mode=fast_mode, **EVERYTHING) is True


@pytest.mark.parametrize("name", ["elementwise", "several outputs", "0-d", "complex", "complex to real"])
def test_right_second_derivatives_pass(name):
    func, inputs = RIGHT[name]
    assert gradgradcheck(func, inputs, check_batched_grad=True) is True
    assert gradgradcheck(func, inputs, fast_mode=True, gen_non_contig_grad_outputs=True) is True


def test_forward_over_reverse():
    assert gradgradcheck(lambda x, y: x.sin() * y, (leaf(3), leaf(3)), check_fwd_over_rev=True)
    assert gradgradcheck(
        lambda x: x.exp(), leaf(3), check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False
    )


# ------------------------------------------------------------------------------------------------- what is caught

MISMATCH = "Jacobian mismatch for output 0 with respect to input 0"
BUGS = {
    "wrong factor": (with_backward(lambda ctx, g: g * 3), leaf(2), {}, MISMATCH),
    "wrong factor, fast": (with_backward(lambda ctx, g: g * 3), leaf(2), {"fast_mode": True}, MISMATCH),
    "wrong sign": (with_backward(lambda ctx, g: g * -2), leaf(2), {}, MISMATCH),
    "transposed": (with_backward(lambda ctx, g: (g * 2).flip(0)), leaf(2), {}, MISMATCH),
    "one entry off": (
        with_backward(lambda ctx, g: g * torch.tensor([2.0, 2.001, 2.0], dtype=torch.double) * 1.001),
        leaf(3),
        {},
        MISMATCH,
    ),
    "nan": (with_backward(lambda ctx, g: g * np.nan), leaf(2), {}, "analytical"),
    "no gradient": (with_backward(lambda ctx, g: None), leaf(2), {}, MISMATCH),
    "conjugate forgotten": (
        with_backward(lambda ctx, g: g * 2j),
        leaf(2, dtype=torch.complex128),
        {},
        "While considering the imaginary part of complex outputs only, " + MISMATCH,
    ),
    "not multiplied": (
        with_backward(lambda ctx, g: 2 * torch.ones_like(g)),
        leaf(1),
        {},
        "backward not multiplied by grad_output",
    ),
    "detached": (lambda x: x.detach() * 2, leaf(2), {}, "Numerical gradient for function expected to be zero"),
    "undefined": (
        with_backward(lambda ctx, a, b: _only_both(a, b), Pair),
        leaf(2),
        {},
        "Expected backward function to handle undefined output grads",
    ),
    "undefined means more": (
        with_backward(lambda ctx, a, b: _ones_for_none(a, b), Pair),
        leaf(2),
        {},
        "Expected all input grads to be undefined or zero when all output grads are undefined or zero",
    ),
    "wrong forward": (
        with_jvp(lambda ctx, t: t * 3),
        leaf(2),
        {"check_forward_ad": True},
        "Jacobian computed with forward mode mismatch for output 0 with respect to input 0",
    ),
    "wrong forward, fast": (
        with_jvp(lambda ctx, t: t * 3),
        leaf(2),
        {"check_forward_ad": True, "fast_mode": True},
        "Jacobian computed with forward mode mismatch",
    ),
    "wrong forward, complex": (
        with_jvp(lambda ctx, t: t.conj() * 2),
        leaf(2, dtype=torch.complex128),
        {"check_forward_ad": True},
        "While considering the imaginary part of complex inputs only, Jacobian computed with forward mode mismatch",
    ),
}


def _only_both(a, b):
    if a is None and b is None:
        raise RuntimeError("no gradient at all")
    return Pair.backward(None, a, b)


def _ones_for_none(a, b):
    return torch.ones(2, dtype=torch.double) if a is None and b is None else Pair.backward(None, a, b)


@pytest.mark.filterwarnings("ignore:Backwards compatibility")
@pytest.mark.parametrize(("func", "inputs", "options", "words"), BUGS.values(), ids=BUGS)
def test_bugs_are_caught(func, inputs, options, words):
    with pytest.raises(GradcheckError) as info:
        gradcheck(func, inputs, **options)
    assert words in str(info.value)
    assert gradcheck(func, inputs, raise_exception=False, **options) is False


def test_a_wrong_second_derivative():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x.detach()

    assert gradcheck(Square.apply, leaf(2))
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradgradcheck(Square.apply, leaf(2))


def test_a_wrong_rule_for_batches():
    class Scale(Twice):
        """The backward of Outer, whose rule for vmap is wrong."""

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def vmap(info, in_dims, x):
            return x * 5, in_dims[0]

    outer = with_backward(lambda ctx, g: Scale.apply(g))
    assert gradcheck(outer, leaf(2))
    with pytest.raises(GradcheckError, match="failed while testing batched gradient computation"):
        gradcheck(outer, leaf(2), check_batched_grad=True)


def test_a_backward_that_takes_no_batches():
    outer = with_backward(lambda ctx, g: g * 2 * (1 + 0 * float(g.sum())))
    with pytest.raises(GradcheckError, match="While computing batched gradients, got: "):
        gradcheck(outer, leaf(2), check_batched_grad=True)


def test_a_backward_that_differs_from_call_to_call():
    calls = []

    def rule(ctx, g):
        calls.append(None)
        return g * (2 + 1e-7 * len(calls))

    with pytest.raises(GradcheckError, match="Backward is not reentrant") as info:
        gradcheck(with_backward(rule), leaf(2))
    assert "The tolerance for nondeterminism was 0.0" in str(info.value)
    assert gradcheck(with_backward(rule), leaf(2), nondet_tol=1e-3)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(with_backward(rule), leaf(2), fast_mode=True)


# -------------------------------------------------------------------------------------------- what the message says


def test_message_shows_both_jacobians_and_the_worst_entry():
    scale = torch.tensor([2.0, 2.5, 2.1], dtype=torch.double)
    with pytest.raises(GradcheckError) as info:
        gradcheck(with_backward(lambda ctx, g: g * scale), leaf(3))
    message = str(info.value)
    assert "numerical:tensor([[2.0000, 0.0000, 0.0000]" in message
    assert "analytical:tensor([[2.0000, 0.0000, 0.0000],\n        [0.0000, 2.5000, 0.0000]" in message
    assert "worst entry [1, 1] (element 1 of the input, 1 of the output): numerical 2," in message
    assert "analytical 2.5, difference 0.5" in message


def test_message_names_output_and_input():
    class Three(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 1, y * 1, x + y

        @staticmethod
        def backward(ctx, a, b, c):
            return a + c, b + 2 * c

    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 2 with respect to input 1"):
        gradcheck(Three.apply, (leaf(2), leaf(2)))


class Differences(torch.autograd.Function):
    """Gradients off by one part in 2000, which cancellation makes more of in a projection."""

    @staticmethod
    def forward(ctx, x):
        return torch.stack([x[0] - x[1], x[1] - x[0]])

    @staticmethod
    def backward(ctx, g):
        return torch.stack([(g[0] - g[1]) * 1.0005, (g[1] - g[0]) * 0.9995])


differences = Differences.apply


def test_fast_mode_says_what_the_entries_say():
    with pytest.raises(GradcheckError, match=r"computed in fast mode(.|\n)*entry by entry:\n(.|\n)*worst entry"):
        gradcheck(with_backward(lambda ctx, g: g * 3), leaf(2), fast_mode=True)
    with pytest.raises(GradcheckError, match="fast_mode=False would pass"):
        gradcheck(differences, leaf(2), fast_mode=True, atol=0)
    assert gradcheck(differences, leaf(2), atol=1e-8)


# ---------------------------------------------------------------------------------------------- what parameters do


def test_eps_atol_rtol():
    off = with_backward(lambda ctx, g: g * 2.01)
    assert gradcheck(off, leaf(2), rtol=1e-2)
    assert gradcheck(off, leaf(2), rtol=0, atol=0.02)
    assert not gradcheck(off, leaf(2), rtol=0, atol=0.005, raise_exception=False)
    cubic = lambda x: x**3  # noqa: E731  (the central difference is off by eps²)
    assert gradcheck(cubic, leaf(2), eps=1e-3)
    assert not gradcheck(cubic, leaf(2), eps=0.5, raise_exception=False)


def test_check_undefined_grad_and_backward_off():
    undefined = BUGS["undefined"][0]
    assert gradcheck(undefined, leaf(2), check_undefined_grad=False)
    wrong = with_backward(lambda ctx, g: g * 3)
    assert gradcheck(wrong, leaf(2), check_backward_ad=False, check_forward_ad=True)


def test_check_undefined_grad_warns():
    with pytest.warns(UserWarning, match="New undefined gradient support checking feature is enabled by default"):
        gradcheck(BUGS["undefined"][0], leaf(2), raise_exception=False)


def test_check_forward_ad_without_a_rule():
    class NoRule(torch.autograd.Function):
        forward, backward = staticmethod(Twice.forward), staticmethod(Twice.backward)

    assert gradcheck(NoRule.apply, leaf(2))
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        gradcheck(NoRule.apply, leaf(2), check_forward_ad=True)


def test_check_grad_dtypes_passes_where_gradients_are_cast():
    assert gradcheck(with_backward(lambda ctx, g: (g * 2).to(torch.float32)), leaf(2) * 1, check_grad_dtypes=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"check_backward_ad": False}, "Expected at least one of check_forward_ad or check_backward_ad to be True"),
        (
            {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
            "Setting check_batched_grad=True requires check_backward_ad to be True",
        ),
        (
            {"check_batched_forward_grad": True},
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
        ),
    ],
)
def test_contradictions(options, words):
    with pytest.raises(AssertionError, match=words):
        gradcheck(lambda x: x, leaf(2), **options)


def test_contradictions_of_gradgradcheck():
    with pytest.raises(AssertionError, match="Expected at least one of check_fwd_over_rev or check_rev_over_rev"):
        gradgradcheck(lambda x: x, leaf(2), check_rev_over_rev=False)
    with pytest.raises(AssertionError, match="Setting check_undefined_grad=True requires check_rev_over_rev"):
        gradgradcheck(lambda x: x, leaf(2), check_rev_over_rev=False, check_fwd_over_rev=True)


def test_grad_outputs():
    seeds = torch.tensor([1.0, -2.0], dtype=torch.double, requires_grad=True)
    assert gradgradcheck(lambda x: x**3, leaf(2), seeds)
    assert gradgradcheck(lambda x: (x**3, x), leaf(2), [seeds, seeds.detach().clone().requires_grad_()])


# ------------------------------------------------------------------------------------------------------- the inputs


def test_warns_of_low_precision():
    x = torch.tensor([1.0], dtype=torch.float32, requires_grad=True)
    with pytest.warns(UserWarning, match=r"Input #1 requires gradient and is not a double precision floating point"):
        gradcheck(lambda n, x: x * n, (2, x), atol=1e-1, eps=1e-2)


def test_overlapping_memory_is_refused():
    x = torch.ones(1, dtype=torch.double).expand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda x: x * 2, x)


def test_windows_that_overlap_are_warned_of():
    windows = torch.arange(4, dtype=torch.double).as_strided((3, 2), (1, 1)).requires_grad_()
    with pytest.warns(UserWarning, match="Input #0 has elements that share memory with one another"):
        assert not gradcheck(lambda x: x * x, windows, raise_exception=False)
    gaps = torch.arange(8, dtype=torch.double).as_strided((2, 2), (4, 2)).requires_grad_()
    assert gradcheck(lambda x: x * x, gaps)


def test_nothing_requires_grad():
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
        gradcheck(lambda x: x, torch.ones(2))


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("dtype", [torch.double, torch.complex128])
def test_inputs_are_left_unchanged(fast_mode, dtype):
    x = leaf(2, 3, dtype=dtype)
    before, version = x.detach().clone(), x._version
    gradcheck(lambda x: x * x, x, fast_mode=fast_mode)
    count = []

    def fails(x):
        count.append(None)
        if len(count) > 3:
            raise KeyError("mid-way")
        return x * x

    with pytest.raises(KeyError):
        gradcheck(fails, x, fast_mode=fast_mode)
    assert torch.equal(x, before) and x._version == version and x.grad is None


def test_the_function_gets_the_very_inputs():
    x = leaf(2)
    assert gradcheck(lambda ignored: x * 3, x)


def test_outputs_that_change_their_shape():
    x = torch.tensor([1.0, 2.0], dtype=torch.double, requires_grad=True)
    with pytest.raises(AssertionError, match="Expected `func` to return outputs with the same shape when inputs are"):
        gradcheck(lambda x: x[: 1 + int(x[0] > 1)], x)


def test_other_errors_pass_through():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError):
        gradcheck(fails, leaf(2), raise_exception=False)


def test_costs_two_calls_an_element_and_few_in_fast_mode():
    def calls(**options):
        count = []

        def f(x):
            count.append(None)
            return x * x

        with warnings.catch_warnings():
            gradcheck(f, leaf(30), check_undefined_grad=False, **options)
        return len(count)

    assert calls() == 61
    assert calls(fast_mode=True) == 3

"""The checks themselves: wrong derivatives and wrong declarations are found, and the message says where."""

import numpy as np
import pytest

from fgrad import check, kinds
from fgrad.check import check_grads, numerical_jvp
from fgrad.core import ArrayType, Primitive
from fgrad.ops import elementwise as e

X = np.array([[0.3, -1.1, 0.7], [1.9, 0.4, -0.6]])


@pytest.fixture
def declare(monkeypatch):
    """Return a function that declares primitives outside the table."""
    monkeypatch.setattr(kinds, "register", lambda prim: prim)
    return kinds


def wrong_sine(declare):
    return declare.elementwise("wrong", np.sin, d=lambda x: 1.001 * e.cos(x))


# ------------------------------------------------------------------------------------------------ check_grads


def test_right_derivatives_pass():
    check_grads(lambda d: {"y": np.sin(d["x"]) * d["y"], "n": 3}, ({"x": X, "y": X + 1},), order=3)
    check_grads(lambda z, n: np.exp(z) * n, (X + 1j, 2), order=2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_types_pass(dtype):
    check_grads(lambda x: np.tanh(x) * x, (X.astype(dtype),), order=2)


def test_forward_mode_names_the_worst_entry(declare):
    with pytest.raises(
        AssertionError, match=r"forward derivative of wrong is wrong, worst at output\[\d, \d\]: it is .*give"
    ):
        check_grads(wrong_sine(declare), (X,), 1, modes="fwd")


def test_reverse_mode_names_the_worst_entry(declare):
    prim = declare.elementwise("wrong", np.sin, d=lambda x: e.cos(x) + 0.01 * (x > 1.5))
    with pytest.raises(AssertionError, match=r"worst entry: args\[0\]\['w'\]\[1, 0\] has derivative 0.396.*give 0.409"):
        check_grads(lambda p: prim(p["w"]), ({"w": X},), 1, modes=["rev"])


def test_reverse_mode_of_complex_arguments(declare):
    with pytest.raises(
        AssertionError, match=r"worst entry: args\[0\]\[\d, \d\] has derivative \(.*j\), .*give \(.*j\)"
    ):
        check_grads(wrong_sine(declare), (X + 0.5j,), 1, modes="rev")


def test_second_order_is_checked(declare):
    """A rule whose value is right and which, traced again, is not."""
    half = declare.elementwise("half", np.sin, d=lambda x: np.cos(getattr(x, "value", x)))
    check_grads(half, (X,), 1, modes="fwd")
    with pytest.raises(AssertionError, match="fwd of half"):
        check_grads(half, (X,), 2, modes="fwd")


def test_tolerances_and_step_are_taken(declare):
    check_grads(wrong_sine(declare), (X,), 1, atol=0.1, rtol=0.1)
    with pytest.raises(AssertionError):
        check_grads(np.sin, (X,), 1, modes="fwd", atol=0, rtol=1e-20, eps=0.1)


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ((3, (X,), 1), TypeError, "check_grads expects a function"),
        ((np.sin, X, 1), TypeError, "tuple or list"),
        ((np.sin, (X,), 0), ValueError, "order must be at least 1, got 0"),
        ((np.sin, (X,), 1, ("forward",)), ValueError, "'fwd', 'rev' or both"),
        ((np.sin, (X,), 1, ()), ValueError, "'fwd', 'rev' or both"),
    ],
)
def test_arguments_are_checked(args, error, words):
    with pytest.raises(error, match=words):
        check_grads(*args)


# ---------------------------------------------------------------------------------------------- numerical_jvp


def test_complex_step_is_exact_where_legal():
    assert abs(numerical_jvp(np.exp, (1.0,), (1.0,)) - np.e) < 1e-14


def test_complex_step_is_not_taken_where_illegal():
    """conj and abs accept complex numbers and are not holomorphic."""
    np.testing.assert_allclose(numerical_jvp(np.conj, (X,), (X,)), X, rtol=1e-9)
    np.testing.assert_allclose(numerical_jvp(np.abs, (X,), (np.ones_like(X),)), np.sign(X), rtol=1e-9)
    np.testing.assert_allclose(numerical_jvp(np.maximum, (X, 0 * X), (X, X)), X, rtol=1e-9)


def test_step_fits_the_precision_of_the_output():
    got = numerical_jvp(lambda x: np.sin(x.astype(np.float32)), (X,), (np.ones_like(X),))
    np.testing.assert_allclose(got, np.cos(X), rtol=2e-3, atol=2e-4)


def test_integers_have_no_tangent():
    out = numerical_jvp(lambda x, n: (x * n, n), (X, 3), (X, np.zeros((), "V0")))
    np.testing.assert_allclose(out[0], 3 * X)
    assert out[1].dtype.itemsize == 0


# -------------------------------------------------------------------------------------------------- the laws


def test_a_good_primitive_passes(declare):
    check.check_primitive(declare.elementwise("cube", lambda x: x * x * x, d=lambda x: 3 * x * x), X)


def same(x):
    return ArrayType(x.shape, x.dtype)


def no_change(size):
    return {}


def twice(x):
    return 2 * x


def writes(x):
    x *= 2
    return x + 1


def counts():
    calls = []

    def impl(x):
        calls.append(x)
        return x + len(calls)

    return impl


WRONG = [
    ("type_rule", lambda k: k.linear("w", twice, type=lambda x: ArrayType(x.shape, np.float32), transpose=twice_back)),
    ("layout", lambda k: k.linear("w", lambda x: x, type=same, transpose=lambda ct: ct)),
    ("layout", lambda k: k.constant("w", writes, type=same)),
    ("layout", lambda k: k.constant("w", lambda x: x.ravel(order="K"), type=same)),
    ("push", lambda k: k.elementwise("w", np.sin, d=lambda x: e.cos(x) * (1 + 1e-8))),
    ("adjoint", lambda k: k.linear("w", twice, type=same, transpose=lambda ct: 3 * ct)),
    ("adjoint", lambda k: k.linear("w", twice, type=same, transpose=lambda ct: (2 * ct).astype(np.float32))),
    ("second_order", lambda k: k.elementwise("w", np.sin, d=lambda x: np.cos(getattr(x, "value", x)))),
    ("saved_set", lambda k: k.elementwise("w", np.sin, d=lambda x, out: e.cos(x))),
    ("pull_override", lambda k: k.composite("w", lambda x: e.sin(x), type=same, pull=lambda ct, x: ct * x)),
    ("transpose_twice", lambda k: k.linear("w", twice, type=same, transpose=lambda ct: 3 * ct)),
    ("batching", lambda k: k.constant("w", lambda x: x - x.max(), type=same, shift=no_change)),
    ("batched_derivative", lambda k: k.differential("w", np.square, type=same, jvp=square_tangent, shift=no_change)),
    ("program", lambda k: k.constant("w", counts(), type=same)),
    ("jit", lambda k: k.constant("w", counts(), type=same)),
]


def twice_back(ct):
    return 2 * ct


def square_tangent(t, x):
    """A rule that looks at all examples of a batch at once."""
    return 2 * t * x * (1 + (np.ndim(getattr(x, "value", x)) > 2))


@pytest.mark.parametrize(("law", "make"), WRONG)
def test_each_law_finds_what_breaks_it(law, make, declare):
    prim = make(declare)
    with pytest.raises(AssertionError, match="primitive 'w' breaks the law"):
        check.LAWS[law].check(prim, np.asfortranarray(X))


def test_every_law_is_tried():
    assert {law for law, _ in WRONG} == set(check.LAWS)


def test_messages_name_primitive_law_and_inputs(declare):
    with pytest.raises(AssertionError) as error:
        check.check_push(wrong_sine(declare), np.array([0.25]))
    words = str(error.value)
    assert all(
        w in words for w in ("'wrong'", "'push = finite difference'", "with respect to input 0", "x = array([0.25])")
    )
    assert isinstance(wrong_sine(declare), Primitive)

"""Reverse mode: what grad, value_and_grad, vjp and linearize take, give and refuse."""

from collections import namedtuple

import numpy as np
import pytest

import fgrad
from fgrad.errors import ConcretizationTypeError, UnexpectedTracerError

X = np.array([1.0, 2.0, 3.0])


def square_sum(x):
    return (x * x).sum()


def test_value_and_grad_are_plain_arrays():
    value, gradient = fgrad.value_and_grad(square_sum)(X)
    assert type(value) is np.ndarray and type(gradient) is np.ndarray
    assert value == 14.0
    np.testing.assert_array_equal(gradient, 2 * X)


def test_argnums_int_tuple_and_negative():
    def f(x, y, z):
        return x * y * z

    assert fgrad.grad(f, 1)(2.0, 3.0, 4.0) == 8.0
    assert fgrad.grad(f, -1)(2.0, 3.0, 4.0) == 6.0
    assert [float(g) for g in fgrad.grad(f, (0, 2))(2.0, 3.0, 4.0)] == [12.0, 6.0]
    assert isinstance(fgrad.grad(f, (1,))(2.0, 3.0, 4.0), tuple)
    with pytest.raises(TypeError, match="argnums=3 asks for argument 3"):
        fgrad.grad(f, 3)(2.0, 3.0, 4.0)
    with pytest.raises(ValueError, match="argnums=-4 asks for argument -4"):
        fgrad.grad(f, -4)(2.0, 3.0, 4.0)
    with pytest.raises(TypeError, match="argnums must be an int or a sequence of ints, got 'x'"):
        fgrad.grad(f, "x")(2.0, 3.0, 4.0)


def test_pytrees_keywords_and_objects_pass_through():
    Pair = namedtuple("Pair", "w b")

    def loss(params, name, *, scale):
        assert name == "model"
        return (params["layer"].w * scale + params["layer"].b).sum()

    gradient = fgrad.grad(loss)({"layer": Pair(X, np.float32(1))}, "model", scale=2.0)
    np.testing.assert_array_equal(gradient["layer"].w, [2.0, 2.0, 2.0])
    assert gradient["layer"].b == 3.0
    assert gradient["layer"].b.dtype == np.float32


def test_aux_has_no_tracers_and_any_objects():
    gradient, aux = fgrad.grad(lambda x: ((x * x).sum(), {"y": x * 2, "name": "n"}), has_aux=True)(X)
    np.testing.assert_array_equal(gradient, 2 * X)
    np.testing.assert_array_equal(aux["y"], 2 * X)
    assert type(aux["y"]) is np.ndarray and aux["name"] == "n"
    with pytest.raises(TypeError, match="pair"):
        fgrad.grad(lambda x: x.sum(), has_aux=True)(X)


def test_integers_are_refused_or_float0():
    with pytest.raises(TypeError, match="requires real- or complex-valued inputs"):
        fgrad.grad(square_sum)(np.array([1, 2]))
    gradient = fgrad.grad(lambda i: (i * 1.5).sum(), allow_int=True)(np.array([1, 2]))
    assert gradient.dtype == fgrad.float0 and gradient.shape == (2,)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: x, r"scalar-output functions. The output had shape: \(3,\)"),
        (lambda x: (x.sum(), x.sum()), "scalar-output functions"),
        (lambda x: (x > 0).any(), "requires real-valued outputs"),
        (lambda x: (x * 1j).sum(), "requires real-valued outputs.*holomorphic"),
    ],
)
def test_output_must_be_a_real_scalar(f, message):
    with pytest.raises(TypeError, match=message):
        fgrad.grad(f)(X)


def test_complex_conventions():
    z = 3.0 + 4.0j
    np.testing.assert_allclose(fgrad.grad(abs)(z), 0.6 - 0.8j)
    np.testing.assert_allclose(fgrad.grad(lambda z: z**3, holomorphic=True)(z), 3 * z**2)
    with pytest.raises(TypeError, match="holomorphic=True requires complex inputs"):
        fgrad.grad(lambda x: x, holomorphic=True)(1.0)
    _, pull = fgrad.vjp(np.conj, np.array(z))
    assert pull(np.array(1 + 2j))[0] == 1 - 2j


def test_vjp_checks_its_cotangent():
    out, pull = fgrad.vjp(lambda x: {"a": x * 2}, X.astype(np.float32))
    with pytest.raises(ValueError, match="tree of the output"):
        pull(X)
    with pytest.raises(ValueError, match=r"float32\[3\]"):
        pull({"a": X})
    with pytest.raises(ValueError, match=r"float32\[3\]"):
        pull({"a": np.ones(2, np.float32)})
    for _ in range(2):
        np.testing.assert_array_equal(pull({"a": np.ones(3, np.float32)})[0], [2, 2, 2])
    assert out["a"].dtype == np.float32


def test_vjp_of_integer_primals_gives_float0():
    _, pull = fgrad.vjp(lambda x, i: x * i, X, np.array([1, 2, 3]))
    dx, di = pull(np.ones(3))
    np.testing.assert_array_equal(dx, [1, 2, 3])
    assert di.dtype == fgrad.float0


def test_linearize_runs_once():
    calls = []

    def f(x):
        calls.append(1)
        return x * x

    out, push = fgrad.linearize(f, X)
    np.testing.assert_array_equal(push(np.ones(3)), 2 * X)
    np.testing.assert_array_equal(push(X), 2 * X * X)
    np.testing.assert_array_equal(out, X * X)
    assert len(calls) == 1
    with pytest.raises(TypeError, match="types must match"):
        push(np.ones(3, np.float32))
    with pytest.raises(ValueError, match="types must match"):
        push(np.ones(2))


def test_perturbations_are_kept_apart():
    assert fgrad.grad(lambda x: x * fgrad.grad(lambda y: x + y)(1.0))(3.0) == 1.0
    assert fgrad.jvp(lambda x: x * fgrad.jvp(lambda y: x * y, (1.0,), (1.0,))[1], (3.0,), (1.0,))[1] == 6.0


def test_python_control_flow_sees_values():
    def f(x):
        y = x
        while y < 10:
            y = y * 2
        return y if bool(y > 11) else -y

    assert fgrad.grad(f)(3.0) == 4.0
    assert fgrad.grad(lambda x: x * int(x))(3.7) == 3.0
    for cut in (float, complex, lambda x: x.item(), lambda x: x.tolist()):
        with pytest.raises(ConcretizationTypeError, match="cut the derivative"):
            fgrad.grad(lambda x, cut=cut: x * cut(x))(3.0)


def test_leaked_values_raise():
    kept = []
    fgrad.grad(lambda x: kept.append(x) or x.sum())(X)
    for use in (lambda x: x + 1, np.tanh, lambda x: 2 * x, lambda x: fgrad.grad(lambda y: (x * y).sum())(X)):
        with pytest.raises(UnexpectedTracerError, match=r"grad of <lambda> \(test_grad.py:.*leaked"):
            use(kept[0])


def test_writing_into_a_traced_value_names_the_remedy():
    def f(x):
        x[0] = 1.0
        return x.sum()

    with pytest.raises(TypeError, match=r"item assignment.*\n.*\.at\[index\]\.set"):
        fgrad.grad(f)(X)
    with pytest.raises(TypeError, match="in-place"):
        fgrad.grad(lambda x: np.add(X, x, out=np.zeros(3)).sum())(X)

    def accumulate(x):
        total = np.zeros(3)
        total += x
        return total.sum()

    with pytest.raises(TypeError, match="in-place"):
        fgrad.grad(accumulate)(X)


def test_refused_array_likes_name_the_reason():
    with pytest.raises(TypeError, match="masked arrays are refused"):
        fgrad.grad(lambda x: x.sum())(np.ma.masked_array(X, [0, 1, 0]))
    with pytest.raises(TypeError, match="not a valid array or number"):
        fgrad.grad(lambda x: x)("text")
    with pytest.raises(TypeError, match="^grad expects a function"):
        fgrad.grad(3)


def test_foreign_byte_order_and_read_only_arrays():
    swapped = X.astype(X.dtype.newbyteorder())
    np.testing.assert_array_equal(fgrad.grad(square_sum)(swapped), 2 * X)
    fixed = X.copy()
    fixed.flags.writeable = False
    gradient = fgrad.grad(square_sum)(fixed)
    gradient[0] = 7.0


@pytest.mark.heavy
def test_a_program_of_a_hundred_thousand_steps():  # for tapes as long see tests/core/test_scale.py
    def chain(x):
        for _ in range(100_000):
            x = x * 1.00001
        return x

    program = fgrad.make_ir(chain)(1.0)
    assert len(program.equations) == 100_000
    program.simplify().check()


@pytest.mark.parametrize("transform", [fgrad.grad, fgrad.jacfwd, fgrad.jacrev])
def test_argnums_of_all_kinds(transform):
    f = lambda x, y: x * y  # noqa: E731
    assert transform(f, np.int64(1))(2.0, 3.0) == 2.0
    assert transform(f, (np.int64(1), -2))(2.0, 3.0) == (2.0, 3.0)
    with pytest.raises(ValueError, match=r"argnums=\(0, -2\) asks for argument 0 twice"):
        transform(f, (0, -2))(2.0, 3.0)
    for wrong in (None, 1.0, "0", (0, "1")):
        with pytest.raises(TypeError, match="argnums must be an int or a sequence of ints, got"):
            transform(f, wrong)

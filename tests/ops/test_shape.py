"""Shape primitives at the edges: empty and 0-d arrays, negative steps and widths, bytes, memory of results."""

import numpy as np
import pytest

import fgrad
from fgrad.core import type_of
from fgrad.ops import shape as s

X = np.arange(12.0).reshape(3, 4)


# ----------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(
    "f",
    [
        lambda x: s.reshape(x, shape=(3, 4)),
        lambda x: s.transpose(x, perm=(0, 1)),
        lambda x: s.slice(x, index=((0, 3, 1), (0, 4, 1))),
        lambda x: s.broadcast(x, shape=(3, 4)),
        lambda x: s.reverse(x, axes=()),
        lambda x: s.concatenate(x, axis=0),
        lambda x: s.cast(x, dtype=np.float64),
        s.copy,
        s.stop_gradient,
    ],
    ids="reshape transpose slice broadcast reverse concatenate cast copy stop_gradient".split(),
)
@pytest.mark.parametrize("transform", [lambda f, x: fgrad.vmap(f)(x[None])[0], lambda f, x: fgrad.vjp(f, x)[0]])
def test_results_of_transforms_share_no_memory_with_arguments(f, transform):
    x = X.copy()
    assert f(x) is not x
    out = transform(f, x)
    np.testing.assert_array_equal(out, X)
    assert not np.shares_memory(out, x)


@pytest.mark.parametrize("f", [s.copy, s.stop_gradient, lambda x: s.cast(x, dtype=x.dtype)])
def test_copies_own_their_memory(f):
    assert not np.shares_memory(f(X), X)


def test_cotangents_of_identities_are_not_the_seed():
    ct = np.ones((3, 4))
    _, pull = fgrad.vjp(s.copy, X)
    assert not np.shares_memory(pull(ct)[0], ct)


# ------------------------------------------------------------------------------------------ reshape, transpose


def test_reshape_of_a_python_number_is_an_array():
    out, gradient = fgrad.value_and_grad(lambda x: s.reshape(x, shape=(1, 1)).sum())(3.0)
    assert out == 3.0
    np.testing.assert_array_equal(gradient, 1.0)


def test_reshape_says_what_does_not_fit():
    with pytest.raises(ValueError, match=r"size 12 into shape \(5, 2\)"):
        s.reshape.type_rule(type_of(X), shape=(5, 2))


@pytest.mark.parametrize("perm", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_inverse_undoes_a_permutation(perm):
    x = np.zeros((2, 3, 4))
    assert x.transpose(perm).transpose(s.inverse(perm)).shape == x.shape


@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 1)])
def test_reverse_is_flip(axes):
    np.testing.assert_array_equal(s.reverse(X, axes=axes), np.flip(X, axes))


# --------------------------------------------------------------------------------------------------- broadcast


def test_broadcast_sums_small_numbers_in_single_precision():
    x = np.zeros((), np.float16)
    gradient = fgrad.grad(lambda x: (s.broadcast(x, shape=(4096,)) * np.float16(1.0)).sum())(x)
    assert gradient == 4096
    assert gradient.dtype == np.float16


@pytest.mark.parametrize("shape", [(5, 3, 4), (100, 3, 4)], ids=["copied", "viewed"])
def test_broadcast_is_broadcast_to(shape):
    out = s.broadcast(X, shape=shape)
    np.testing.assert_array_equal(out, np.broadcast_to(X, shape))
    with pytest.raises(ValueError, match="broadcast"):
        s.broadcast(X, shape=(*shape[:-1], 5))
    with pytest.raises(ValueError, match="broadcast"):
        s.broadcast(X, shape=(4,))


def test_numpy_functions_that_rules_call_take_traced_values():
    def f(x):
        return np.stack([x, np.broadcast_to(x[0], (4,))]) * np.concatenate([x[None], x[None]])

    x = np.arange(4.0)
    np.testing.assert_array_equal(fgrad.grad(lambda x: f(x).sum())(x), 2 * x + x[0] + [x.sum(), 0, 0, 0])


# --------------------------------------------------------------------------------------------- slice and place


@pytest.mark.parametrize(
    "index",
    [
        ((0, 3, 1), (0, 4, 1)),
        ((2, None, -1), (3, 0, -2)),
        ((-1, None, -1), (-2, -4, -1)),
        ((1, 1, 1), (0, 4, 3)),
        ((5, 9, 1), (0, 100, 1)),
    ],
)
def test_slice_and_place_are_numpys(index):
    key = tuple(slice(*triple) for triple in index)
    out = s.slice(X, index=index)
    np.testing.assert_array_equal(out, X[key])
    back = np.zeros_like(X)
    back[key] = out
    np.testing.assert_array_equal(s.place(out, shape=X.shape, index=index), back)
    np.testing.assert_array_equal(fgrad.grad(lambda x: (s.slice(x, index=index) ** 2).sum())(X), 2 * back)


def test_slice_of_a_scalar():
    assert s.slice(np.float64(2.0), index=()) == 2.0
    assert s.place(np.float64(2.0), shape=(), index=()) == 2.0


def test_slice_wants_an_entry_per_axis():
    with pytest.raises(ValueError, match="1 entries for 2 axes"):
        s.slice.type_rule(type_of(X), index=((0, 1, 1),))


# --------------------------------------------------------------------------------------------------------- pad


@pytest.mark.parametrize(
    ("widths", "want"),
    [
        ((2, 1, 0), [9, 9, 1, 2, 3, 9]),
        ((0, 0, 1), [1, 9, 2, 9, 3]),
        ((-1, 0, 0), [2, 3]),
        ((0, -2, 0), [1]),
        ((-1, -1, 1), [9, 2, 9]),
        ((-2, 0, 2), [9, 2, 9, 9, 3]),
        ((-5, 2, 0), []),
        ((-4, 3, 0), [9, 9]),
        ((4, -6, 0), [9]),
        ((-3, 4, 0), [9, 9, 9, 9]),
    ],
)
def test_pad_of_three_numbers(widths, want):
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(s.pad(x, 9.0, widths=(widths,)), want)
    gx, gv = fgrad.grad(lambda x, v: s.pad(x, v, widths=(widths,)).sum(), argnums=(0, 1))(x, np.array(9.0))
    np.testing.assert_array_equal(gx, [float(n in want) for n in x])
    assert gv == want.count(9)


def test_pad_of_nothing_is_the_number():
    np.testing.assert_array_equal(s.pad(np.zeros(0), 7.0, widths=((2, 1, 5),)), [7, 7, 7])


@pytest.mark.parametrize(("widths", "message"), [((-2, -2, 0), "negative length"), ((0, 0, -1), "interior")])
def test_pad_refuses(widths, message):
    with pytest.raises(ValueError, match=message):
        s.pad(np.zeros(3), 0.0, widths=(widths,))


def test_an_infinite_cotangent_stays_where_it_is():
    _, pull = fgrad.vjp(lambda x, v: s.pad(x, v, widths=((1, 0, 0),)), np.zeros(2), np.array(0.0))
    gx, gv = pull(np.array([1.0, np.inf, np.nan]))
    np.testing.assert_array_equal(gx, [np.inf, np.nan])
    assert gv == 1


# ------------------------------------------------------------------------------------------------- concatenate


def test_concatenate_with_empty_parts():
    parts = (np.zeros((0, 2)), np.ones((2, 2)), np.zeros((0, 2)))
    grads = fgrad.grad(lambda *xs: (s.concatenate(*xs, axis=0) * 3.0).sum(), argnums=(0, 1, 2))(*parts)
    assert [g.shape for g in grads] == [(0, 2), (2, 2), (0, 2)]
    np.testing.assert_array_equal(grads[1], 3.0)


def test_concatenate_differentiates_only_what_is_asked():
    np.testing.assert_array_equal(fgrad.grad(lambda x: s.concatenate(X, x, X, axis=1).sum())(X), np.ones_like(X))


def test_concatenate_names_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"\(3, 4\), \(2, 4\)"):
        s.concatenate.type_rule(type_of(X), type_of(X[:2]), axis=1)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_stack_is_numpys(axis):
    np.testing.assert_array_equal(s.stack([X, -X], axis=axis), np.stack([X, -X], axis=axis))


# ------------------------------------------------------------------------------------------------------- dtype


def test_cast_to_real_takes_the_real_part():
    z = np.array([1 + 2j, 3 - 4j])
    np.testing.assert_array_equal(s.cast(z, dtype=np.float32), np.array([1, 3], np.float32))
    _, pull = fgrad.vjp(lambda z: s.cast(z, dtype=np.float64), z)
    np.testing.assert_array_equal(pull(np.ones(2))[0], np.ones(2, complex))


def test_cast_gives_the_cotangent_back_in_the_inputs_dtype():
    _, pull = fgrad.vjp(lambda x: s.cast(x, dtype=np.complex128), np.ones(2, np.float32))
    (gradient,) = pull(np.array([1 + 1j, 2 + 5j]))
    np.testing.assert_array_equal(gradient, np.array([1, 2], np.float32))
    assert gradient.dtype == np.float32


def test_to_integer_rounds_towards_zero_and_has_no_derivative():
    x = np.array([-1.7, 1.7])
    np.testing.assert_array_equal(s.to_integer(x, dtype=np.int8), np.array([-1, 1], np.int8))
    np.testing.assert_array_equal(fgrad.grad(lambda x: (x * s.to_integer(x, dtype=np.int64)).sum())(x), [-1, 1])


def test_bitcast_between_widths():
    x = np.array([[1.0, -2.0]], np.float32)
    narrow = s.bitcast(x, dtype=np.uint8)
    assert narrow.shape == (1, 2, 4)
    np.testing.assert_array_equal(s.bitcast(narrow, dtype=np.float32), x)
    assert s.bitcast(np.float32(1.0), dtype=np.int32) == 0x3F800000
    with pytest.raises(ValueError, match="last axis of length 4"):
        s.bitcast(narrow[..., :3], dtype=np.float32)


def test_stop_gradient_cuts():
    assert fgrad.grad(lambda x: x * s.stop_gradient(x))(np.array(3.0)) == 3.0

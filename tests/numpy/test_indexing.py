"""All of NumPy's forms of indexing on traced values, and the updates that come from the same reading of an index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fgrad
import fgrad.numpy as fnp
from fgrad import errors

# ----------------------------------------------------------------------------------------------- random indices


@st.composite
def indices(draw, shape):
    """Draw an index of an array of a given shape: any mix of NumPy's forms, now and then one that does not fit."""
    block = draw(st.sampled_from([(), (2,), (3,), (2, 3), (0,)]))
    parts = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 9)):
        kind = draw(st.sampled_from("islabntm"))
        n = shape[axis]
        if kind == "n":
            parts.append(None)
            continue
        if kind == "t":
            parts.append(draw(st.sampled_from([True, False, np.True_, np.array(False)])))
            continue
        if kind == "i":
            parts.append(draw(st.integers(-n, max(n - 1, 0))))
        elif kind == "s":
            bound = st.one_of(st.none(), st.integers(-n - 2, n + 2))
            parts.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, -1, -3]))))
        elif kind in "la":
            lengths = draw(st.sampled_from([block, block[1:], (1, *block[1:])]))
            values = draw(
                st.lists(st.integers(-n, max(n - 1, 0)), min_size=int(np.prod(lengths)), max_size=int(np.prod(lengths)))
            )
            array = np.array(values, int).reshape(lengths)
            parts.append(array.tolist() if kind == "l" and lengths else array)
        else:
            ndim = 1 if kind == "b" else min(2, len(shape) - axis)
            size = int(np.prod(shape[axis : axis + ndim]))
            mask = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
            parts.append(mask.reshape(shape[axis : axis + ndim]))
            axis += ndim - 1
        axis += 1
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
    if len(parts) == 1 and draw(st.booleans()):
        return parts[0]
    return tuple(parts)


@st.composite
def arrays_and_indices(draw):
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=0, max_size=4)))
    x = np.array(np.arange(int(np.prod(shape)), dtype=float).reshape(shape) + 0.5)
    return x, draw(indices(shape))


def outcome(function):
    """Return the result of a function, or the class of the IndexError it raised."""
    try:
        return function()
    except IndexError as error:
        return type(error)
    except DeprecationWarning:  # NumPy before 2.2 is about to raise
        return IndexError


@given(arrays_and_indices())
def test_reading(drawn):
    x, index = drawn
    want = outcome(lambda: x[index])
    got = outcome(lambda: fgrad.jit(lambda x: x[index])(x))
    if isinstance(want, type):
        assert got is want
        return
    assert got.shape == np.shape(want)
    np.testing.assert_array_equal(got, want)


@given(arrays_and_indices())
def test_reading_pulls_back_to_a_sum(drawn):
    x, index = drawn
    want = outcome(lambda: x[index])
    if isinstance(want, type):
        return
    ct = np.arange(np.size(want), dtype=float).reshape(np.shape(want)) + 1.0
    _, pull = fgrad.vjp(lambda x: x[index], x)
    (g,) = pull(ct)
    expected = np.zeros_like(x)
    np.add.at(expected, index, ct)
    np.testing.assert_array_equal(g, expected)


@given(arrays_and_indices(), st.booleans())
def test_writing(drawn, scalar):
    x, index = drawn
    target = outcome(lambda: x[index])
    if isinstance(target, type):
        assert outcome(lambda: fnp.at(x)[index].set(1.0)) is target
        return
    values = 7.0 if scalar else np.arange(np.size(target), dtype=float).reshape(np.shape(target))
    want = np.array(x)
    want[index] = values
    np.testing.assert_array_equal(fnp.at(x)[index].set(values), want)
    np.testing.assert_array_equal(fgrad.jit(lambda x, v: x.at[index].set(v))(x, values), want)
    want = np.array(x)
    np.add.at(want, index, values)
    np.testing.assert_allclose(fnp.at(x)[index].add(values), want)
    np.testing.assert_array_equal(fnp.at(x)[index].get(), target)


@given(arrays_and_indices())
def test_derivatives_of_writing(drawn):
    x, index = drawn
    target = outcome(lambda: x[index])
    if isinstance(target, type):
        return
    values = np.cos(np.arange(np.size(target), dtype=float)).reshape(np.shape(target))
    ct = np.sin(np.arange(x.size, dtype=float)).reshape(x.shape)
    _, pull = fgrad.vjp(lambda x, v: fnp.at(x)[index].add(v), x, values)
    gx, gv = pull(ct)
    np.testing.assert_array_equal(gx, ct)
    np.testing.assert_array_equal(gv, ct[index])
    _, pull = fgrad.vjp(lambda x, v: fnp.at(x)[index].set(v), x, values)
    gx, gv = pull(ct)
    written = np.zeros(x.shape, bool)
    written[index] = True
    np.testing.assert_array_equal(gx, np.where(written, 0, ct))
    assert np.isclose(gv.sum(), ct[written].sum())


# ------------------------------------------------------------------------------------------------- traced indices

X = np.arange(12.0).reshape(3, 4)


def test_an_index_may_be_traced():
    f = fgrad.jit(lambda x, i, j: x[i, :, None][..., j])
    i, j = np.array([2, 0]), np.array(0)
    np.testing.assert_array_equal(f(X, i, j), X[i, :, None][..., 0])
    got = fgrad.vmap(lambda i: X[i] if isinstance(i, np.ndarray) else fnp.take(X, i, axis=0))(np.array([1, 2]))
    np.testing.assert_array_equal(got, X[[1, 2]])
    np.testing.assert_array_equal(fgrad.vmap(lambda x, i: x[i])(X, np.array([0, 3, -1])), [0.0, 7.0, 11.0])


def test_lists_of_traced_values_are_indices():
    f = fgrad.jit(lambda x, i: x[[i, 0]])
    np.testing.assert_array_equal(f(X, np.array(2)), X[[2, 0]])


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (1.0, "only integers"),
        ("a", "only integers"),
        (np.array([1.0]), "integer"),
        ((0, 0, 0), "too many indices"),
        (5, "index 5 is out of bounds for axis 0 with size 3"),
        ((slice(None), -5), "index -5 is out of bounds for axis 1 with size 4"),
        (np.array([True, False]), "boolean index did not match"),
        ((np.array([0, 1]), np.array([0, 1, 2])), "could not be broadcast together"),
        ((..., ...), "single ellipsis"),
        ([0, 3], "out of bounds"),
    ],
)
def test_errors_are_index_errors(index, message):
    with pytest.raises(IndexError, match=message):
        fgrad.grad(lambda x: x[index].sum())(X)
    with pytest.raises(IndexError):
        X[index]


def test_a_mask_must_be_known():
    with pytest.raises(errors.NonConcreteBooleanIndexError, match="where"):
        fgrad.jit(lambda x: x[x > 3])(X)
    with pytest.raises(errors.NonConcreteBooleanIndexError):
        fgrad.vmap(lambda x: x[x > 3])(X)
    np.testing.assert_array_equal(fgrad.grad(lambda x: (x[x > 3] ** 2).sum())(X), np.where(X > 3, 2 * X, 0))


def test_assignment_names_at():
    def f(x):
        x[0] = 1.0
        return x

    for transform in (fgrad.grad, fgrad.jit, fgrad.vmap):
        with pytest.raises(TypeError, match=r"\.at\["):
            transform(f)(X)


# ------------------------------------------------------------------------------------------------------------ at


def test_at_on_traced_values_and_created_arrays():
    assert fnp.zeros(3).at[1].set(2.0).at[0].add(1.0).tolist() == [1.0, 2.0, 0.0]
    assert fgrad.grad(lambda x: x.at[0].set(5.0).sum())(np.ones(3)).tolist() == [0.0, 1.0, 1.0]
    for created in (fnp.arange(3), fnp.array([1, 2]), fnp.ones_like(X), fnp.linspace(0, 1, 3), fnp.full(2, 1.0)):
        assert hasattr(created, "at")
        assert isinstance(created, np.ndarray)
    assert type(fnp.ones(2) + 1) is np.ndarray
    assert type(fnp.ones(2).sum()) is np.float64
    assert repr(fnp.ones(2)) == "array([1., 1.])"


def test_repeated_indices_all_count():
    x = np.array([1.0, 2.0, 3.0])
    i = [0, 2, 2]
    assert fnp.at(x)[i].add(1.0).tolist() == [2.0, 2.0, 5.0]
    assert fnp.at(x)[i].subtract(1.0).tolist() == [0.0, 2.0, 1.0]
    assert fnp.at(x)[i].multiply(2.0).tolist() == [2.0, 2.0, 12.0]
    assert fnp.at(x)[i].divide(2.0).tolist() == [0.5, 2.0, 0.75]
    assert fnp.at(x)[i].power(2.0).tolist() == [1.0, 2.0, 81.0]
    assert fnp.at(x)[i].min([0.5, 9.0, 2.5]).tolist() == [0.5, 2.0, 2.5]
    assert fnp.at(x)[i].max([0.5, 9.0, 2.5]).tolist() == [1.0, 2.0, 9.0]
    assert fnp.at(x)[i].set([7.0, 8.0, 9.0]).tolist() == [7.0, 2.0, 9.0]
    assert fnp.at(x)[i].apply(np.square).tolist() == [1.0, 2.0, 9.0]


@pytest.mark.parametrize("method", ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"])
@pytest.mark.parametrize("index", [1, (slice(0, 2), 1), ([0, 2], slice(1, 3)), np.array([True, False, True])])
def test_updates_differentiate(method, index):
    x = np.linspace(0.5, 2.0, 12).reshape(3, 4)
    v = np.full(np.shape(x[index]), 0.7)

    def f(x, v):
        return getattr(fnp.at(x)[index], method)(v)

    fgrad.check_grads(f, (x, v), 2)
    np.testing.assert_allclose(fgrad.jit(f)(x, v), f(x, v))
    pair = np.stack([x, x * 0.9]), np.stack([v, v * 1.1])
    np.testing.assert_allclose(fgrad.vmap(f)(*pair), [f(pair[0][k], pair[1][k]) for k in (0, 1)])


@pytest.mark.parametrize("transform", [lambda f: f, fgrad.jit], ids=["eager", "jit"])
def test_modes(transform):
    x, i = np.array([1.0, 2.0, 3.0]), np.array([0, 5, -4])
    run = lambda f: transform(f)(x, i).tolist()  # noqa: E731
    assert run(lambda x, i: fnp.at(x)[i].get(mode="clip")) == [1.0, 3.0, 1.0]
    assert run(lambda x, i: fnp.at(x)[i].get(mode="wrap")) == [1.0, 3.0, 3.0]
    assert run(lambda x, i: fnp.at(x)[i].get(mode="fill", fill_value=9.0)) == [1.0, 9.0, 9.0]
    assert np.isnan(run(lambda x, i: fnp.at(x)[i].get(mode="fill"))[1])
    assert run(lambda x, i: fnp.at(x)[i].add(1.0, mode="drop")) == [2.0, 2.0, 3.0]
    assert run(lambda x, i: fnp.at(x)[i].set([7.0, 8.0, 9.0], mode="drop")) == [7.0, 2.0, 3.0]
    assert run(lambda x, i: fnp.at(x)[i].max(9.0, mode="clip")) == [9.0, 2.0, 9.0]
    for method in ("get", "add"):
        with pytest.raises(IndexError):
            run(lambda x, i, method=method: getattr(fnp.at(x)[i], method)(*([1.0] if method == "add" else [])))
    assert fnp.at(x)[7].set(0.0, mode="drop").tolist() == x.tolist()
    with pytest.raises(ValueError, match="mode"):
        fnp.at(x)[i].get(mode="nearest")


def test_fill_values_by_dtype():
    i = [9]
    assert fnp.at(np.array([1], np.int8))[i].get(mode="fill").tolist() == [-128]
    assert fnp.at(np.array([1], np.uint8))[i].get(mode="fill").tolist() == [255]
    assert fnp.at(np.array([False]))[i].get(mode="fill").tolist() == [True]


def test_values_are_cast_to_the_array():
    assert fnp.at(np.zeros(2, np.float32))[0].set(1).dtype == np.float32
    assert fnp.at(np.zeros(2, int))[0].add(2.7).tolist() == [2, 0]
    assert fnp.at(np.zeros(2, bool))[0].set(1).tolist() == [True, False]


def test_updates_through_a_mask_that_is_not_known():
    f = fgrad.jit(lambda x: x.at[x > 1].set(0.0).at[x < 0.5].add(10.0))
    assert f(np.array([0.0, 1.0, 2.0])).tolist() == [10.0, 1.0, 0.0]
    g = fgrad.vmap(lambda x: x.at[x > 1].multiply(2.0))
    assert g(np.array([[0.0, 3.0]])).tolist() == [[0.0, 6.0]]
    assert fgrad.jit(lambda x: x.at[x > 1].apply(np.sqrt))(np.array([1.0, 4.0])).tolist() == [1.0, 2.0]
    with pytest.raises(errors.NonConcreteBooleanIndexError):
        fgrad.jit(lambda x: x.at[x > 1].set(np.arange(2.0)))(np.array([0.0, 1.0, 2.0]))


def test_unknown_options_are_named():
    with pytest.raises(TypeError, match="sorted"):
        fnp.at(X)[0].set(1.0, sorted=True)
    assert fnp.at(X)[0].set(1.0, unique_indices=True, indices_are_sorted=True)[0].tolist() == [1.0] * 4

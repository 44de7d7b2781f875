"""Indexing primitives: repeated, negative and out-of-range indices, zeros, ties, batched indices, windows."""

import numpy as np
import pytest

import fgrad
from fgrad.ops import index as ix

X = np.arange(12.0).reshape(3, 4)
SCATTERS = ("scatter_add", "scatter_set", "scatter_mul", "scatter_min", "scatter_max")


def reference(name, x, i, u, axes):
    """Scatter one element after the other."""
    update = {
        "scatter_add": lambda a, b: a + b,
        "scatter_set": lambda a, b: b,
        "scatter_mul": lambda a, b: a * b,
        "scatter_min": np.minimum,
        "scatter_max": np.maximum,
    }[name]
    out = x.copy()
    for b in np.ndindex(*i.shape[1:]):
        place = [slice(None)] * x.ndim
        for k, axis in enumerate(axes):
            place[axis] = i[(k, *b)]
        out[tuple(place)] = update(out[tuple(place)], u[b])
    return out


# ------------------------------------------------------------------------------------------------------ gather


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (2, 0), (2, 1), (0, 1, 2)])
@pytest.mark.parametrize("inner", [(), (2,), (2, 3), (0,)])
def test_gather_puts_index_axes_first(axes, inner, order):
    x = np.asarray(np.arange(24.0).reshape(2, 3, 4), order=order)
    rng = np.random.default_rng(0)
    i = np.stack([rng.integers(-x.shape[a], x.shape[a], inner) for a in axes])
    rest = [a for a in range(3) if a not in axes]
    want = x.transpose((*axes, *rest))[tuple(i)]
    np.testing.assert_array_equal(ix.gather(x, i, axes=axes), want)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.int64])
def test_indices_of_any_integer_dtype(dtype):
    i = np.array([[2, 0]], dtype)
    np.testing.assert_array_equal(ix.gather(X, i, axes=(0,)), X[[2, 0]])
    np.testing.assert_array_equal(ix.scatter_add(X, i, X[:2], axes=(0,)), reference("scatter_add", X, i, X[:2], (0,)))


def test_small_index_dtypes_under_vmap():
    x = np.arange(600.0).reshape(300, 2)
    i = (np.arange(300) % 2).astype(np.int8)
    out = fgrad.vmap(lambda row, k: ix.gather(row, k[None], axes=(0,)))(x, i)
    np.testing.assert_array_equal(out, x[np.arange(300), i])
    starts = np.full((3, 1), 100, np.int8)
    out = fgrad.vmap(lambda k: ix.dynamic_slice(np.arange(300.0), k, sizes=(2,)))(starts)
    np.testing.assert_array_equal(out, [[100, 101]] * 3)


@pytest.mark.parametrize("bad", [3, -4])
@pytest.mark.parametrize("inner", [(), (2,)])
@pytest.mark.parametrize("name", ["gather", *SCATTERS])
def test_out_of_range_indices_raise(name, inner, bad):
    i = np.full((1, *inner), bad)
    u = () if name == "gather" else (np.zeros((*inner, 4)),)
    with pytest.raises(IndexError, match=rf"index {bad} is out of bounds for axis 0 with size 3"):
        getattr(ix, name)(X, i, *u, axes=(0,))


def test_out_of_range_indices_raise_on_the_flattened_path():
    i, u = np.full((1, 100), -5), np.zeros((100, 3))
    with pytest.raises(IndexError, match="index -5 is out of bounds for axis 1 with size 4"):
        ix.scatter_add(X, i, u, axes=(1,))
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 1 with size 4"):
        ix.put_along_add(X, np.full((3, 1), 4), np.zeros((3, 1)), axis=1)


def test_nothing_can_be_taken_from_an_empty_axis_but_nothing():
    x = np.zeros((0, 2))
    assert ix.gather(x, np.zeros((1, 0), int), axes=(0,)).shape == (0, 2)
    with pytest.raises(IndexError):
        ix.gather(x, np.zeros((1, 1), int), axes=(0,))


def test_gather_does_not_alias_its_input_under_a_transform():
    x = X.copy()
    out, _ = fgrad.vjp(lambda x: ix.gather(x, np.array([1]), axes=(0,)), x)
    assert not np.shares_memory(out, x)


# ---------------------------------------------------------------------------------------------------- scatters


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (2, 0), (0, 1, 2)])
@pytest.mark.parametrize("inner", [(), (3,), (40, 5), (0,)], ids=["one", "few", "many", "none"])
def test_scatters_apply_repeated_indices_in_order(name, axes, inner):
    rng = np.random.default_rng(1)
    x = np.asarray(rng.normal(size=(2, 3, 4)), order="F")
    i = np.stack([rng.integers(-x.shape[a], x.shape[a], inner) for a in axes])
    rest = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    u = rng.normal(size=(*inner, *rest))
    got = getattr(ix, name)(x, i, u, axes=axes)
    np.testing.assert_allclose(got, reference(name, x, i, u, axes), rtol=1e-12)


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda a: a[..., ::-1].copy()[..., ::-1]])
def test_the_last_one_wins_in_any_memory_layout(layout):
    i = layout(np.array([[[0, 1, 0], [2, 0, 1]]]))
    u = layout(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(ix.scatter_set(np.zeros(3), i, u, axes=(0,)), [4, 5, 3])
    gradient = fgrad.grad(lambda u: ix.scatter_set(np.zeros(3), i, u, axes=(0,)).sum())(u)
    np.testing.assert_array_equal(gradient, [[0, 0, 0], [1, 1, 1]])


def test_scatter_set_gives_the_cotangent_to_the_winner():
    i = np.array([[1, 1, -2]])
    gx, gu = fgrad.grad(lambda x, u: (ix.scatter_set(x, i, u, axes=(0,)) * X[:, 0]).sum(), argnums=(0, 1))(
        np.ones(3), np.ones(3)
    )
    np.testing.assert_array_equal(gx, [0, 0, 8])
    np.testing.assert_array_equal(gu, [0, 0, 4])


def test_scatter_add_of_many_halves_counts_right():
    i = np.zeros((1, 5000), int)
    out = ix.scatter_add(np.zeros(1, np.float16), i, np.ones(5000, np.float16), axes=(0,))
    assert out.dtype == np.float16
    assert out == 5000


@pytest.mark.parametrize("u", [[2.0, 3.0, 5.0], [0.0, 3.0, 5.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]])
def test_scatter_mul_has_exact_derivatives_at_zeros(u):
    i = np.zeros((1, 3), int)

    def f(x, u):
        return ix.scatter_mul(x, i, u, axes=(0,))[0]

    def product(x, u):
        return x[0] * u[0] * u[1] * u[2]

    point = np.array([7.0, 1.0]), np.array(u)
    for order in (fgrad.grad, lambda g, n: fgrad.jacobian(fgrad.grad(g, n), n)):
        for n in (0, 1):
            np.testing.assert_array_equal(order(f, n)(*point), order(product, n)(*point))


@pytest.mark.parametrize("name", ["scatter_min", "scatter_max"])
def test_equals_share_the_derivative(name):
    i = np.array([[0, 0, 1]])
    x, u = np.array([2.0, 1.0]), np.array([2.0, 2.0, 1.0])
    gx, gu = fgrad.grad(lambda x, u: getattr(ix, name)(x, i, u, axes=(0,)).sum(), argnums=(0, 1))(x, u)
    np.testing.assert_allclose(gx, [1 / 3, 1 / 2])
    np.testing.assert_allclose(gu, [1 / 3, 1 / 3, 1 / 2])


def test_shares_of_very_many_halves_are_finite():
    n = 70_000
    u = np.ones(n, np.float16)
    gradient = fgrad.grad(lambda u: ix.scatter_max(np.zeros(1, np.float16), np.zeros((1, n), int), u, axes=(0,))[0])(u)
    assert gradient.astype(float).sum() == pytest.approx(1, rel=5e-3)


# -------------------------------------------------------------------------------------------------- along an axis


def test_put_along_adds_repeated_indices():
    i = np.array([[0, 0, -1], [1, 1, 1], [2, -2, 3]])
    out = ix.put_along_add(np.zeros((3, 4)), i, np.ones((3, 3)), axis=1)
    np.testing.assert_array_equal(out, [[2, 0, 0, 1], [0, 3, 0, 0], [0, 0, 2, 1]])
    np.testing.assert_array_equal(fgrad.grad(lambda x: ix.take_along(x, i, axis=1).sum())(X), out)


def test_put_along_add_of_many_halves_counts_right():
    i = np.zeros((5000, 1), int).T
    assert ix.put_along_add(np.zeros((1, 2), np.float16), i, np.ones((1, 5000), np.float16), axis=1)[0, 0] == 5000


# ------------------------------------------------------------------------------------------------- dynamic slices


@pytest.mark.parametrize(("start", "want"), [(0, 0), (3, 3), (4, 3), (100, 3), (-1, 0)])
def test_windows_move_inside(start, want):
    x = np.arange(5.0)
    i = np.array([start])
    np.testing.assert_array_equal(ix.dynamic_slice(x, i, sizes=(2,)), x[want : want + 2])
    got = ix.dynamic_update_slice(x, np.array([8.0, 9.0]), i)
    np.testing.assert_array_equal(got[want : want + 2], [8, 9])
    np.testing.assert_array_equal(np.delete(got, [want, want + 1]), np.delete(x, [want, want + 1]))


@pytest.mark.parametrize("sizes", [(2, 3), (3, 4), (1, 4), (3, 1), (0, 2)])
@pytest.mark.parametrize("batched", [(True, True), (False, True), (True, False)])
def test_batched_windows(sizes, batched):
    x = np.arange(24.0).reshape(2, 3, 4)
    i = np.array([[1, 5], [-3, 1]])
    xs, starts = (x if batched[0] else x[0]), (i if batched[1] else i[0])
    axes = tuple(0 if b else None for b in batched)
    rows = [(x[n] if batched[0] else x[0], i[n] if batched[1] else i[0]) for n in range(2)]
    got = fgrad.vmap(lambda x, i: ix.dynamic_slice(x, i, sizes=sizes), in_axes=axes)(xs, starts)
    np.testing.assert_array_equal(got, [ix.dynamic_slice(a, b, sizes=sizes) for a, b in rows])
    u = -np.ones(sizes)
    got = fgrad.vmap(lambda x, i: ix.dynamic_update_slice(x, u, i), in_axes=axes)(xs, starts)
    np.testing.assert_array_equal(got, [ix.dynamic_update_slice(a, u, b) for a, b in rows])


def test_a_window_of_a_scalar_is_the_scalar():
    no_starts = np.zeros((2, 0), int)
    assert ix.dynamic_slice(np.array(3.0), no_starts[0], sizes=()) == 3.0
    got = fgrad.vmap(lambda x, i: ix.dynamic_slice(x, i, sizes=()))(np.array([1.0, 2.0]), no_starts)
    np.testing.assert_array_equal(got, [1, 2])


# ------------------------------------------------------------------------------------------------------ nesting


@pytest.mark.parametrize("name", SCATTERS)
def test_a_batch_of_a_batch_of_a_gradient(name):
    rng = np.random.default_rng(2)
    x, u = rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 4))
    i = rng.integers(0, 3, (2, 1, 4))

    def f(x, i, u):
        return (getattr(ix, name)(x, i, u, axes=(0,)) ** 2).sum()

    g = fgrad.grad(f, argnums=(0, 2))
    inner = fgrad.vmap(g, in_axes=(0, None, 0))
    got = fgrad.vmap(inner, in_axes=(0, 0, None))(x, i, u)
    for a in range(2):
        for b in range(2):
            for left, right in zip(got, g(x[a, b], i[a], u[b]), strict=True):
                np.testing.assert_allclose(left[a, b], right)

"""Contractions against einsum and a convolution written out: layouts that BLAS wants, batching, empty axes."""

import itertools
import string

import numpy as np
import pytest

import fgrad
from fgrad.core import type_of
from fgrad.ops import blas
from fgrad.ops import contract as c


def einsum(x, y, contract, batch):
    letters = iter(string.ascii_letters)
    xs, ys = [None] * x.ndim, [None] * y.ndim
    for a, b in [*zip(*contract, strict=True), *zip(*batch, strict=True)]:
        xs[a] = ys[b] = next(letters)
    xs = [n or next(letters) for n in xs]
    ys = [n or next(letters) for n in ys]
    out = [xs[a] for a in batch[0]]
    out += [n for a, n in enumerate(xs) if a not in (*contract[0], *batch[0])]
    out += [n for a, n in enumerate(ys) if a not in (*contract[1], *batch[1])]
    return np.einsum(f"{''.join(xs)},{''.join(ys)}->{''.join(out)}", x, y)


CASES = [
    ((3, 4), (4, 5), ((1,), (0,)), ((), ())),
    ((4, 3), (4, 5), ((0,), (0,)), ((), ())),
    ((3, 4), (5, 4), ((1,), (1,)), ((), ())),
    ((4, 3), (5, 4), ((0,), (1,)), ((), ())),
    ((4,), (4, 5), ((0,), (0,)), ((), ())),
    ((4,), (5, 4), ((0,), (1,)), ((), ())),
    ((3, 4), (4,), ((1,), (0,)), ((), ())),
    ((4,), (4,), ((0,), (0,)), ((), ())),
    ((2, 3, 4), (4, 5), ((2,), (0,)), ((), ())),
    ((2, 3, 4), (2, 3, 5), ((0, 1), (0, 1)), ((), ())),
    ((2, 3, 4), (3, 2, 5), ((1, 0), (0, 1)), ((), ())),
    ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
    ((3, 2, 4), (4, 5, 2), ((2,), (0,)), ((1,), (2,))),
    ((3, 4, 2), (4, 5, 2), ((1,), (0,)), ((2,), (2,))),
    ((2, 6, 3, 4), (2, 5, 3, 4), ((3,), (3,)), ((0, 2), (0, 2))),
    ((2, 3), (2, 3), ((), ()), ((0, 1), (0, 1))),
    ((2, 3), (4,), ((), ()), ((), ())),
    ((), (), ((), ()), ((), ())),
    ((2, 0), (0, 3), ((1,), (0,)), ((), ())),
    ((0, 2, 3), (0, 3, 4), ((2,), (1,)), ((0,), (0,))),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64])
@pytest.mark.parametrize(("x", "y", "contract", "batch"), CASES)
def test_dot_general_is_einsum(x, y, contract, batch, dtype):
    rng = np.random.default_rng(0)
    x, y = [rng.integers(-4, 5, shape).astype(dtype) for shape in (x, y)]
    for a, b in itertools.product((x, np.asfortranarray(x)), (y, np.asfortranarray(y))):
        got = c.dot_general(a, b, contract=contract, batch=batch)
        np.testing.assert_array_equal(got, einsum(x, y, contract, batch))
        assert got.dtype == dtype


@pytest.mark.parametrize(("x", "y", "contract", "batch"), CASES)
@pytest.mark.parametrize("on", [(0, 0), (0, None), (None, 0), (-1, 0), (-1, -1), (None, -1)])
def test_dot_general_batches_over_any_axis(x, y, contract, batch, on):
    rng = np.random.default_rng(1)
    x, y = [rng.normal(size=(2, *shape)) for shape in (x, y)]
    want = [einsum(x[0 if on[0] is None else n], y[0 if on[1] is None else n], contract, batch) for n in range(2)]
    args = [v[0] if a is None else np.moveaxis(v, 0, a) for v, a in zip((x, y), on, strict=True)]
    got = fgrad.vmap(lambda x, y: c.dot_general(x, y, contract=contract, batch=batch), in_axes=on)(*args)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_matrices_are_multiplied_without_copies_or_permutations():
    """The gradients of a matrix product are products of the operands as they lie in memory."""
    x, y = np.ones((3, 4)), np.ones((4, 5))
    contract = ((1,), (0,)), ((), ())
    for wrt in "xy":
        assert c._transposed(wrt, 2, 2, *contract)[2] is None
    _, pull = fgrad.vjp(lambda x, y: c.dot_general(x, y, contract=contract[0], batch=contract[1]), x, y)
    assert all(g.flags.c_contiguous for g in pull(np.ones((3, 5))))


def test_an_unbatched_operand_may_be_traced_by_an_outer_transform():
    w, x = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3)

    def loss(w):
        return fgrad.vmap(lambda row: c.dot_general(w, row, contract=((1,), (0,)), batch=((), ())))(x).sum()

    np.testing.assert_array_equal(fgrad.grad(loss)(w), np.tile(x.sum(0), (2, 1)))


def test_halves_are_summed_in_single_precision():
    x = np.ones((1, 4097), np.float16)
    out = c.dot_general(x, x, contract=((1,), (1,)), batch=((), ()))
    assert out.dtype == np.float16
    assert out == 4096  # the nearest half to 4097; a running sum of halves stops at 2048


def test_dot_general_names_lengths_that_differ():
    kinds = type_of(np.zeros((2, 3))), type_of(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"contract=\(\(1,\), \(0,\)\) pairs axes of lengths \[3\] and \[2\]"):
        c.dot_general.type_rule(*kinds, contract=((1,), (0,)), batch=((), ()))


# ------------------------------------------------------------------------------------------------- convolution


def params(strides=(1, 1), padding=((0, 0), (0, 0)), x_dilation=(1, 1), w_dilation=(1, 1), groups=1):
    options = {"strides": strides, "padding": padding, "x_dilation": x_dilation, "w_dilation": w_dilation}
    return {**options, "groups": groups}


def written_out(x, w, strides, padding, x_dilation, w_dilation, groups):
    """Convolve images element by element."""
    n, _, *space = x.shape
    features, channels, *kernel = w.shape
    wide = np.zeros((*x.shape[:2], *[(s - 1) * d + 1 for s, d in zip(space, x_dilation, strict=True)]), x.dtype)
    wide[:, :, :: x_dilation[0], :: x_dilation[1]] = x
    wide = np.pad(wide, ((0, 0), (0, 0), *[(max(lo, 0), max(hi, 0)) for lo, hi in padding]))
    crop = [slice(-min(lo, 0), m + min(hi, 0)) for (lo, hi), m in zip(padding, wide.shape[2:], strict=True)]
    wide = wide[(slice(None), slice(None), *crop)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, w_dilation, strict=True)]
    size = [(m - r) // s + 1 for m, r, s in zip(wide.shape[2:], reach, strides, strict=True)]
    out = np.zeros((n, features, *size), x.dtype)
    for f, p, q in np.ndindex(features, *size):
        first = f // (features // groups) * channels
        top, left = p * strides[0], q * strides[1]
        rows = slice(top, top + reach[0], w_dilation[0])
        columns = slice(left, left + reach[1], w_dilation[1])
        out[:, f, p, q] = (wide[:, first : first + channels, rows, columns] * w[f]).sum((1, 2, 3))
    return out


CONVOLUTIONS = [
    ((2, 3, 6, 7), (4, 3, 3, 2), params()),
    ((2, 3, 6, 7), (4, 3, 3, 2), params(strides=(2, 3), padding=((1, 2), (0, 1)))),
    ((2, 3, 6, 7), (4, 3, 2, 2), params(w_dilation=(2, 3), padding=((1, 1), (2, 0)))),
    ((2, 3, 4, 5), (4, 3, 3, 2), params(x_dilation=(2, 3), padding=((1, 0), (0, 2)))),
    ((2, 3, 4, 5), (4, 3, 3, 2), params(x_dilation=(2, 1), strides=(1, 2))),
    ((2, 3, 4, 5), (4, 3, 2, 2), params(x_dilation=(2, 2), w_dilation=(2, 1), padding=((-1, -2), (1, -1)))),
    ((2, 4, 5, 5), (6, 2, 3, 3), params(groups=2, padding=((1, 1), (1, 1)))),
    ((2, 4, 5, 5), (4, 1, 3, 3), params(groups=4, x_dilation=(2, 2), padding=((1, 1), (1, 1)))),
    ((5, 2, 4, 4), (3, 2, 4, 3), params()),
]


@pytest.mark.parametrize(("x", "w", "options"), CONVOLUTIONS)
def test_conv_general_is_the_sum_written_out(x, w, options):
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=x), rng.normal(size=w)
    np.testing.assert_allclose(c.conv_general(x, w, **options), written_out(x, w, **options), atol=1e-12)


@pytest.mark.parametrize(("x", "w", "options"), CONVOLUTIONS)
def test_conv_general_has_both_transposes(x, w, options):
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=x), rng.normal(size=w)
    out, pull = fgrad.vjp(lambda x, w: c.conv_general(x, w, **options), x, w)
    ct = rng.normal(size=out.shape)
    gx, gw = pull(ct)
    dx, dw = rng.normal(size=x.shape), rng.normal(size=w.shape)
    assert (gx * dx).sum() == pytest.approx((ct * written_out(dx, w, **options)).sum(), rel=1e-10)
    assert (gw * dw).sum() == pytest.approx((ct * written_out(x, dw, **options)).sum(), rel=1e-10)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_any_number_of_spatial_axes(rank):
    x, w = np.ones((2, 3, *(4,) * rank)), np.ones((5, 3, *(2,) * rank))
    ones = (1,) * rank
    out = c.conv_general(x, w, strides=ones, padding=((0, 0),) * rank, x_dilation=ones, w_dilation=ones, groups=1)
    np.testing.assert_array_equal(out, np.full((2, 5, *(3,) * rank), 3.0 * 2**rank))


def test_a_kernel_that_does_not_fit_gives_nothing():
    out = c.conv_general(np.ones((1, 1, 2, 2)), np.ones((1, 1, 3, 3)), **params())
    assert out.shape == (1, 1, 0, 0)


@pytest.mark.parametrize("options", [params(), params(x_dilation=(2, 2))])
def test_no_channels_sum_to_zero(options):
    out = c.conv_general(np.ones((1, 0, 3, 3)), np.ones((2, 0, 2, 2)), **options)
    assert out.shape[:2] == (1, 2)
    assert not out.any()


def test_convolution_of_halves_sums_in_single_precision():
    x = np.ones((1, 1, 1, 4097), np.float16)
    assert c.conv_general(x, x, **params()) == 4096


def test_conv_general_names_channels_that_do_not_fit():
    kinds = type_of(np.zeros((1, 3, 4, 4))), type_of(np.zeros((2, 2, 1, 1)))
    with pytest.raises(ValueError, match=r"groups=1 dividing O, got float64\[1,3,4,4\]"):
        c.conv_general.type_rule(*kinds, **params())


# ------------------------------------------------------------------------------------------------------------- BLAS


@pytest.fixture
def threads(monkeypatch):
    """Stand in for a BLAS on four threads; return the list of what was set."""
    library = blas._Blas()
    library.looked = True
    settings = [4]
    library.get, library.set = lambda: settings[-1], settings.append
    monkeypatch.setattr(blas, "_blas", library)
    return settings


@pytest.mark.parametrize(("size", "alone"), [(16, False), (128, True), (256, False)])
def test_products_of_middle_size_run_on_one_thread(threads, size, alone):
    x = np.random.default_rng(0).standard_normal((size, size))
    found = c.dot_general(x, x, contract=((1,), (0,)), batch=((), ()))
    np.testing.assert_allclose(found, x @ x, rtol=1e-10, atol=1e-10)
    assert threads == ([4, 1, 4] if alone else [4])


def test_the_last_one_out_restores_the_threads(threads):
    with blas.one_thread():
        with pytest.raises(ValueError), blas.one_thread():
            raise ValueError
        assert threads == [4, 1]
    assert threads == [4, 1, 4]


def test_an_interrupt_on_the_way_in_or_out_leaves_nothing_behind(threads):
    def interrupted(n):
        threads.append(n)
        blas._blas.set = threads.append
        raise KeyboardInterrupt

    inside = blas.one_thread()
    inside.__enter__()
    assert threads == [4, 1]
    del inside  # the interrupt came before the first step of __exit__
    assert threads == [4, 1, 4]
    blas._blas.set = interrupted
    with pytest.raises(KeyboardInterrupt), blas.one_thread():
        pass
    assert threads == [4, 1, 4, 1, 4]
    with blas.one_thread():
        assert threads[-1] == 1
    assert threads[-1] == 4

"""`fgrad.numpy.fft` beyond the table of samples: NumPy's names on traced values, options, what is refused."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp

X = np.random.default_rng(3).normal(size=(4, 6))


def test_parseval():
    g = fgrad.grad(lambda x: (abs(np.fft.fft(x, norm="ortho")) ** 2).sum())(X)
    np.testing.assert_allclose(g, 2 * X)


def test_round_trips_have_the_identity_for_derivative():
    for forth, back in (
        (np.fft.fft2, np.fft.ifft2),
        (np.fft.rfftn, np.fft.irfftn),
        (np.fft.fftshift, np.fft.ifftshift),
    ):
        np.testing.assert_allclose(fgrad.jvp(lambda x: back(forth(x)).real, (X,), (X,))[1], X)  # noqa: B023


def test_hfft_of_odd_length():
    half = X[0, :3] + 1j * X[1, :3]
    for n in (4, 5):
        np.testing.assert_allclose(fgrad.jit(lambda a: np.fft.hfft(a, n))(half), np.fft.hfft(half, n))  # noqa: B023
        fgrad.check_grads(lambda a: np.fft.hfft(a, n, norm="ortho"), (half,), 2)  # noqa: B023


def test_frequencies_of_a_traced_spacing():
    for function in (fnp.fft.fftfreq, fnp.fft.rfftfreq):
        g = fgrad.jacrev(lambda d: function(5, d))(0.5)  # noqa: B023
        np.testing.assert_allclose(g, -function(5, 0.5) / 0.5)


def test_no_axes_change_nothing():
    np.testing.assert_array_equal(fgrad.jit(lambda x: np.fft.fftn(x, axes=()))(X), X)


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: np.fft.fft(x, 0), ValueError, "data points"),
        (lambda x: np.fft.irfft(x[:, :1]), ValueError, "data points"),
        (lambda x: np.fft.fft(x, norm="unit"), ValueError, "Invalid norm value unit"),
        (lambda x: np.fft.fft(x, axis=2), np.exceptions.AxisError, "out of bounds"),
        (lambda x: np.fft.fft2(x, (3,)), ValueError, "different lengths"),
        (lambda x: np.fft.rfft(x + 0j), TypeError, "use fft"),
        (lambda x: np.fft.rfftn(x, axes=()), ValueError, "at least 1 axis"),
        (lambda x: np.fft.fft(x, out=np.empty((4, 6), complex)), TypeError, "out="),
    ],
)
def test_refusals(function, error, words):
    for transform in (fgrad.jit, lambda f: lambda x: fgrad.vjp(f, x)):
        with pytest.raises(error, match=words):
            transform(function)(X)

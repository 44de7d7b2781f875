"""Fourier primitives: against the matrix of the transform, in every parity of length; transposes, batches, types."""

import numpy as np
import pytest

import fgrad
from fgrad.ops import fft as f

RNG = np.random.default_rng(5)


def matrix(n):
    return np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_fft_and_its_inverse_are_products_with_a_matrix(n):
    x = RNG.normal(size=n) + 1j * RNG.normal(size=n)
    np.testing.assert_allclose(f.fft(x, axes=(0,)), matrix(n) @ x, atol=1e-13)
    np.testing.assert_allclose(f.ifft(x, axes=(0,)), matrix(n).conj() @ x / n, atol=1e-13)
    for prim, want in ((f.fft, matrix(n)), (f.ifft, matrix(n).conj() / n)):
        ct = RNG.normal(size=n) + 0.5j
        (pulled,) = fgrad.vjp(lambda x, prim=prim: prim(x, axes=(0,)), x)[1](ct)
        np.testing.assert_allclose(pulled, want.T @ ct, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_rfft_and_irfft_have_exact_transposes(n):
    """Against the real matrices of the two, made of their values at basis vectors."""
    x, ct = RNG.normal(size=n), RNG.normal(size=n // 2 + 1) + 1j * RNG.normal(size=n // 2 + 1)
    forward = np.stack([np.fft.rfft(row) for row in np.eye(n)], 1)
    (pulled,) = fgrad.vjp(lambda x: f.rfft(x, axis=0), x)[1](ct)
    np.testing.assert_allclose(pulled, (forward.T @ ct).real, atol=1e-13)
    basis = np.eye(n // 2 + 1)
    parts = [np.stack([np.fft.irfft(row * unit, n) for row in basis], 1) for unit in (1, 1j)]
    (pulled,) = fgrad.vjp(lambda c: f.irfft(c, axis=0, n=n), ct)[1](x)
    np.testing.assert_allclose(pulled, parts[0].T @ x - 1j * (parts[1].T @ x), atol=1e-13)


def test_real_input_has_a_real_cotangent():
    x = RNG.normal(size=6).astype(np.float32)
    for function in (lambda x: f.fft(x, axes=(0,)), lambda x: f.irfft(x, axis=0, n=10)):
        out, pull = fgrad.vjp(function, x)
        assert pull(out)[0].dtype == np.float32


def test_a_batch_is_one_transform():
    x = RNG.normal(size=(3, 4, 5))
    program = str(fgrad.make_ir(fgrad.vmap(lambda x: f.fft(x, axes=(0, 1))))(x))
    assert program.count("= fft[") == 1
    np.testing.assert_allclose(fgrad.vmap(lambda x: f.rfft(x, axis=0), 1)(x), np.fft.rfft(x, axis=0).swapaxes(0, 1))


def test_an_axis_may_be_transformed_twice():
    x = RNG.normal(size=5)
    np.testing.assert_allclose(f.fft(x, axes=(0, 0)), matrix(5) @ matrix(5) @ x, atol=1e-12)
    fgrad.check_grads(lambda x: f.fft(x, axes=(0, 0)), (x,), 1)


def test_convolution_by_fourier_transforms_has_the_derivative_of_the_convolution():
    x, w = RNG.normal(size=8), RNG.normal(size=8)

    def by_fft(x, w):
        return f.irfft(f.rfft(x, axis=0) * f.rfft(w, axis=0), axis=0, n=8)

    def by_sums(x, w):
        return sum(x[k] * np.roll(w, k) for k in range(8))

    for got, want in zip(fgrad.jacrev(by_fft, (0, 1))(x, w), fgrad.jacrev(by_sums, (0, 1))(x, w), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-13)
    fgrad.check_grads(by_fft, (x, w), 2)


def test_lengths_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="takes 4 frequencies along axis 0"):
        fgrad.make_ir(lambda x: f.irfft(x, axis=0, n=6))(np.ones(3, complex))

"""`fgrad.scipy.signal`: values against SciPy's, derivatives against finite differences, under vmap and jit."""

import numpy as np
import pytest
import scipy.signal

import fgrad
from fgrad.scipy import signal

RNG = np.random.default_rng(0)
SHAPES = [
    ((7,), (3,)),
    ((7,), (4,)),
    ((3,), (7,)),
    ((5, 6), (2, 3)),
    ((2, 2), (4, 3)),
    ((4, 3, 5), (2, 3, 2)),
    ((), ()),
]
MIXED = ((5, 2), (2, 4))


def draw(shape, dtype=np.float64):
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_any_dimensions(name, shapes, mode, dtype):
    x, y = draw(shapes[0], dtype), draw(shapes[1], dtype)
    want = getattr(scipy.signal, name)(x, y, mode, "direct")

    def f(x, y):
        return getattr(signal, name)(x, y, mode)

    np.testing.assert_allclose(f(x, y), want, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(fgrad.jit(f)(x, y), want, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(fgrad.vmap(f, (0, None))(np.stack([x, 2 * x]), y)[1], 2 * want, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(fgrad.vmap(f)(np.stack([x, x]), np.stack([y, -y]))[1], -want, rtol=1e-11, atol=1e-13)
    fgrad.check_grads(f, (x, y), 2)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
@pytest.mark.parametrize("shapes", [((5, 6), (2, 3)), ((5, 6), (4, 4)), ((3, 3), (3, 3)), ((2, 3), (5, 6))])
def test_planes(name, shapes, mode):
    x, y = draw(shapes[0]), draw(shapes[1])

    def f(x, y):
        return getattr(signal, name)(x, y, mode)

    np.testing.assert_allclose(f(x, y), getattr(scipy.signal, name)(x, y, mode), rtol=1e-11, atol=1e-13)
    fgrad.check_grads(f, (x, y), 2)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_shapes_of_which_neither_contains_the_other(name):
    x, y = (draw(s) for s in MIXED)
    for mode in ("full", "same"):
        want = getattr(scipy.signal, name)(x, y, mode, "direct")
        np.testing.assert_allclose(getattr(signal, name)(x, y, mode), want, rtol=1e-11, atol=1e-13)
    with pytest.raises(ValueError, match=f"{name}: for mode 'valid'"):
        getattr(signal, name)(x, y, "valid")


def test_dtypes():
    x, y = np.arange(5), np.array([1, 2, 1])
    out = signal.convolve(x, y)
    assert out.dtype == np.int64
    np.testing.assert_array_equal(out, scipy.signal.convolve(x, y))
    assert signal.convolve(x.astype(np.float32), y.astype(np.float32)).dtype == np.float32
    assert fgrad.jit(signal.convolve)(x.astype(np.float32), y.astype(np.float32)).dtype == np.float32
    assert signal.convolve([1, 2], [0.5]).dtype == np.float64


def test_wrong_arguments():
    x, plane = np.ones(3), np.ones((3, 3))
    with pytest.raises(ValueError, match="same dimensionality, got 1 and 2"):
        signal.convolve(x, plane)
    with pytest.raises(ValueError, match="mode must be 'full', 'valid' or 'same', got 'wide'"):
        signal.correlate(x, x, "wide")
    with pytest.raises(ValueError, match="method"):
        signal.convolve(x, x, method="slow")
    with pytest.raises(ValueError, match="must not be empty"):
        signal.convolve(x, np.ones(0))
    with pytest.raises(ValueError, match="2-D"):
        signal.convolve2d(x, x)
    with pytest.raises(NotImplementedError, match="boundary='fill'"):
        signal.correlate2d(plane, plane, boundary="wrap")


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", [((7,), (3,)), ((3,), (7,)), ((5, 6), (2, 3)), ((4, 3, 5), (2, 3, 2))])
def test_convolution_by_fft(shapes, mode, dtype):
    x, y = draw(shapes[0], dtype), draw(shapes[1], dtype)
    want = scipy.signal.fftconvolve(x, y, mode)

    def f(x, y):
        return signal.fftconvolve(x, y, mode)

    np.testing.assert_allclose(f(x, y), want, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fgrad.jit(f)(x, y), want, rtol=1e-10, atol=1e-12)
    fgrad.check_grads(f, (x, y), 2)


def test_convolution_by_fft_along_some_axes():
    x, y = draw((4, 6)), draw((1, 3))
    for mode in ("full", "same", "valid"):
        want = scipy.signal.fftconvolve(x, y, mode, axes=1)
        np.testing.assert_allclose(signal.fftconvolve(x, y, mode, axes=1), want, rtol=1e-10, atol=1e-12)
    assert signal.fftconvolve([1, 2], [1, 1]).dtype == np.float64
    assert signal.fftconvolve(x.astype(np.float32), y.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("kind", ["linear", "constant"])
@pytest.mark.parametrize("axis", [0, -1])
def test_detrend(kind, axis):
    x = draw((6, 7))
    places = [2, 5] if kind == "linear" else 0

    def f(x):
        return signal.detrend(x, axis, kind, places)

    want = scipy.signal.detrend(x, axis, kind, places)
    np.testing.assert_allclose(f(x), want, atol=1e-12)
    np.testing.assert_allclose(fgrad.jit(f)(x), want, atol=1e-12)
    fgrad.check_grads(f, (x,), 2)
    with pytest.raises(ValueError, match="type must be"):
        signal.detrend(x, type="square")
    with pytest.raises(ValueError, match="breakpoints"):
        signal.detrend(x, bp=9)

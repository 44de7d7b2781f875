"""Cosine transforms, integrals of samples, and interpolation on grids: SciPy's values, derivatives, vmap and jit."""

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.ndimage

import fgrad
from fgrad.scipy import fft, integrate, interpolate, ndimage

RNG = np.random.default_rng(3)
X = RNG.normal(size=(4, 5))
Z = X + 1j * RNG.normal(size=(4, 5))


def check(ours, want, *args, order=2):
    close = {"rtol": 1e-10, "atol": 1e-12}
    np.testing.assert_allclose(ours(*args), want, **close)
    np.testing.assert_allclose(fgrad.jit(ours)(*args), want, **close)
    np.testing.assert_allclose(fgrad.vmap(ours)(*[np.stack([x, x]) for x in args])[1], want, **close)
    fgrad.check_grads(ours, args, order, rtol=1e-5)


@pytest.mark.heavy
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("kind", [2, 3])
@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
@pytest.mark.parametrize("x", [X, Z], ids=["real", "complex"])
def test_cosine_transforms(name, kind, norm, x):
    ours, scipys = getattr(fft, name), getattr(scipy.fft, name)
    check(lambda x: ours(x, kind, norm=norm), scipys(x, kind, norm=norm), x)
    size = (3, 7) if name.endswith("n") else 7
    np.testing.assert_allclose(ours(x, kind, size), scipys(x, kind, size), atol=1e-12)


def test_options_of_cosine_transforms():
    np.testing.assert_allclose(fft.dct(X, n=2, axis=0), scipy.fft.dct(X, n=2, axis=0), atol=1e-12)
    np.testing.assert_allclose(fft.dctn(X, axes=0), scipy.fft.dctn(X, axes=[0]), atol=1e-12)
    assert fft.dct(X.astype(np.float32)).dtype == np.float32
    assert fft.dct([1, 2, 3]).dtype == np.float64
    with pytest.raises(NotImplementedError, match="types 2 and 3"):
        fft.dct(X, 1)
    with pytest.raises(ValueError, match="norm must be"):
        fft.idct(X, norm="none")
    with pytest.raises(ValueError, match="at least 1"):
        fft.dct(X, n=0)


@pytest.mark.heavy
@pytest.mark.parametrize("n", [2, 3, 4, 7])
@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid", "simpson"])
def test_integrals(name, n):
    ours, scipys = getattr(integrate, name), getattr(scipy.integrate, name)
    y, x = RNG.normal(size=(3, n)), np.cumsum(RNG.uniform(0.5, 1.0, n))
    check(ours, scipys(y, x), y, x)
    np.testing.assert_allclose(ours(y.T, x, axis=0), scipys(y.T, x, axis=0))
    np.testing.assert_allclose(ours(y, dx=0.3), scipys(y, dx=0.3))
    fgrad.check_grads(lambda y, dx: ours(y, dx=dx), (y, 0.3), 2)


def test_what_integrals_refuse():
    assert integrate.cumulative_trapezoid([1.0, 3.0], initial=0).tolist() == [0.0, 2.0]
    with pytest.raises(ValueError, match="initial"):
        integrate.cumulative_trapezoid(X, initial=1.0)
    with pytest.raises(ValueError, match="x must have as many points"):
        integrate.simpson(X, X[0, :3])


MODES = ["constant", "grid-constant", "nearest", "mirror", "reflect", "grid-wrap"]


@pytest.mark.heavy
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_map_coordinates(order, mode):
    places = RNG.uniform(-6, 9, (2, 20))
    ours = lambda x, places: ndimage.map_coordinates(x, places, order, mode, 0.7)  # noqa: E731
    want = scipy.ndimage.map_coordinates(X, places, order=order, mode=mode, cval=0.7)
    check(ours, want, X, places)
    ints = np.arange(20).reshape(4, 5)
    got = ndimage.map_coordinates(ints, [[0.4], [2.0]], order=0)
    assert got.dtype == ints.dtype and got.tolist() == [2]


def test_what_map_coordinates_refuses():
    with pytest.raises(ValueError, match="must be 2 arrays"):
        ndimage.map_coordinates(X, [[1.0]])
    with pytest.raises(NotImplementedError, match="order must be 0 or 1"):
        ndimage.map_coordinates(X, [[1.0], [1.0]], order=3)
    with pytest.raises(NotImplementedError, match="mode must be one of"):
        ndimage.map_coordinates(X, [[1.0], [1.0]], mode="wrap")


GRID = (np.array([0.0, 1.0, 2.5, 3.0]), np.array([-1.0, 0.0, 0.5, 2.0, 4.0]))
POINTS = np.column_stack([RNG.uniform(0.1, 2.9, 6), RNG.uniform(-0.9, 3.9, 6)])


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("values", [X, np.stack([X, 2 * X], -1)], ids=["numbers", "vectors"])
def test_grid_interpolation(values, method):
    scipys = scipy.interpolate.RegularGridInterpolator(GRID, values, method)
    check(lambda v, p: interpolate.RegularGridInterpolator(GRID, v, method)(p), scipys(POINTS), values, POINTS)
    ours = interpolate.RegularGridInterpolator(GRID, values, method)
    np.testing.assert_allclose(ours((POINTS[:, 0], POINTS[:, 1])), scipys(POINTS))
    np.testing.assert_allclose(ours(POINTS[0], "linear"), scipys(POINTS[0], "linear")[0])


@pytest.mark.parametrize("fill", [None, 3.0])
@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_grid_interpolation_beyond_the_grid(fill, method):
    far = np.array([[-1.0, 0.3], [2.0, 5.0], [1.0, 1.0], [0.0, 4.0], [np.nan, 0.0]])
    both = [m.RegularGridInterpolator(GRID, X, method, False, fill) for m in (interpolate, scipy.interpolate)]
    np.testing.assert_allclose(both[0](far), both[1](far))
    strict = interpolate.RegularGridInterpolator(GRID, X, method)
    with pytest.raises(ValueError, match="out of bounds in dimension 0"):
        strict(far[:1])
    assert np.isnan(fgrad.jit(strict)(far[:1])).all()


def test_what_grids_refuse():
    for grid, words in ((([0.0, 0.0],), "ascending"), (([0.0, 1.0], [0.0]), "at least two")):
        with pytest.raises(ValueError, match=words):
            interpolate.RegularGridInterpolator(grid, np.ones((2, 2)))
    with pytest.raises(ValueError, match="samples must be of shape"):
        interpolate.RegularGridInterpolator(GRID, X.T)
    with pytest.raises(NotImplementedError, match="method"):
        interpolate.RegularGridInterpolator(GRID, X, "cubic")
    with pytest.raises(ValueError, match="2 coordinates"):
        interpolate.RegularGridInterpolator(GRID, X)(np.ones(3))

"""What creation functions return, what they refuse, and how they read traced values."""

import io

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import errors


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_two_numbers_are_no_shape(name):
    with pytest.raises(TypeError, match=rf"{name}\(\(2, 3\)\)"):
        getattr(fnp, name)(2, 3)


def test_shapes_are_ints():
    with pytest.raises(TypeError, match="zeros: "):
        fnp.zeros((2.5,))
    with pytest.raises(TypeError, match="full: shape must be an int or a sequence of ints"):
        fnp.full("ab", 1)
    with pytest.raises(errors.TracerIntegerConversionError):
        fgrad.jit(lambda n: fnp.zeros(n))(3)
    with pytest.raises(errors.TracerIntegerConversionError):
        fgrad.jit(lambda x, n: fnp.reshape(x, (n,)))(np.ones(3), 3)


def test_ranges_need_known_limits():
    for f in (lambda n: fnp.arange(n), lambda n: fnp.eye(n), lambda n: fnp.tri(N=n)):
        with pytest.raises(errors.TracerArrayConversionError, match="must be known"):
            fgrad.jit(f)(3)
    assert fgrad.jit(lambda n: fnp.arange(n), static_argnums=0)(3).tolist() == [0, 1, 2]


def test_arrays_of_traced_values():
    def f(x):
        return fnp.array([[x[0], 1.0], [fnp.sum(x), x[1] * 2]])

    x = np.array([0.5, 2.0])
    assert fgrad.jit(f)(x).tolist() == [[0.5, 1.0], [2.5, 4.0]]
    assert fgrad.grad(lambda x: fnp.sum(f(x)))(x).tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match="equal shapes"):
        fgrad.jit(lambda x: fnp.array([x, x[0]]))(x)


@pytest.mark.parametrize("bad", [object(), None, "text", {"a": 1}])
def test_what_is_no_number_is_refused(bad):
    for f in (fnp.array, lambda x: fgrad.grad(lambda y: fnp.sum(fnp.add(x, y)))(1.0)):
        with pytest.raises(TypeError):
            f(bad)


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    with pytest.raises(TypeError, match="masks would be lost"):
        fgrad.grad(lambda x: fnp.sum(fnp.multiply(x, masked)))(1.0)


def test_foreign_memory():
    big = np.array([1.0, 2.0]).astype(">f8")
    assert fgrad.grad(lambda x: fnp.sum(fnp.multiply(x, big)))(1.0) == 3.0
    assert fnp.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]
    stream = io.BytesIO()
    np.save(stream, np.arange(3))
    stream.seek(0)
    assert fnp.load(stream).tolist() == [0, 1, 2]
    assert isinstance(fnp.zeros(3), fnp.ndarray)
    assert fgrad.jit(lambda x: isinstance(x, fnp.ndarray))(np.ones(2))


def test_fromfile(tmp_path):
    np.arange(3.0).tofile(tmp_path / "x.bin")
    assert fnp.fromfile(tmp_path / "x.bin").at[0].set(5.0).tolist() == [5.0, 1.0, 2.0]


def test_traced_values_share_no_memory():
    x = np.ones(2)
    assert fnp.shares_memory(x, x)
    assert fnp.may_share_memory(x, x)
    assert not fgrad.grad(lambda y: y[0] * fnp.shares_memory(y, y))(x).any()


def test_devices():
    assert fnp.asarray([1.0], device="cpu").tolist() == [1.0]
    for f in (fnp.asarray, lambda x, device: fnp.astype(fnp.asarray(x), int, device=device)):
        with pytest.raises(ValueError, match="device"):
            f([1.0], device="gpu")

"""NumPy's functions that write: in place on arrays, into a copy on request, refused with a remedy on traced values."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp

X = np.arange(6.0).reshape(2, 3) + 1
CALLS = {
    "fill_diagonal": (9.0,),
    "put": ([0, 4, 0], [7.0, 8.0]),
    "put_along_axis": (np.array([[2], [0]]), 5.0, 1),
    "place": (X > 2, [7.0, 8.0]),
    "copyto": (np.zeros(3),),
    "putmask": (X > 2, [7.0, 8.0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_writing(name):
    args = CALLS[name]
    want = X.copy()
    getattr(np, name)(want, *args)
    mine = X.copy()
    assert getattr(fnp, name)(mine, *args) is None
    np.testing.assert_array_equal(mine, want)
    copy = getattr(fnp, name)(X, *args, inplace=False)
    np.testing.assert_array_equal(copy, want)
    np.testing.assert_array_equal(fgrad.jit(lambda x: getattr(fnp, name)(x, *args, inplace=False))(X), want)
    gradient = fgrad.grad(lambda x: fnp.sum(getattr(fnp, name)(x, *args, inplace=False)))(X)
    np.testing.assert_array_equal(gradient, (want == X).astype(float))
    for module in (np, fnp):
        with pytest.raises(TypeError, match=r"inplace=False|fgrad\.numpy\.where"):
            fgrad.jit(lambda x, module=module: getattr(module, name)(x, *args))(X)


@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (3, 3, 3)])
@pytest.mark.parametrize("wrap", [False, True])
def test_diagonals(shape, wrap):
    want = np.zeros(shape)
    np.fill_diagonal(want, [1.0, 2.0], wrap)
    np.testing.assert_array_equal(fnp.fill_diagonal(np.zeros(shape), [1.0, 2.0], wrap, inplace=False), want)


def test_put_modes():
    for mode in ("clip", "wrap"):
        want = X.copy()
        np.put(want, [-9, 8], [7.0, 8.0], mode=mode)
        np.testing.assert_array_equal(fnp.put(X, [-9, 8], [7.0, 8.0], mode=mode, inplace=False), want)
    with pytest.raises(IndexError):
        fnp.put(X, [9], 1.0, inplace=False)


def test_along_no_axis():
    want = X.copy()
    np.put_along_axis(want, np.array([0, 5]), 9.0, None)
    np.testing.assert_array_equal(fnp.put_along_axis(X, np.array([0, 5]), 9.0, None, inplace=False), want)

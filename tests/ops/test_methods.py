"""The methods that rules rely on, called as the floor of primitives has them: as NumPy's, on traced values."""

import numpy as np
import pytest

import fgrad
from fgrad.ops import methods as m

X = np.arange(24.0).reshape(2, 3, 4)

CALLS = {
    "reshape": (lambda x: m.reshape(x, 4, -1), lambda x: x.reshape(4, -1)),
    "reshape to a tuple": (lambda x: m.reshape(x, (6, 4)), lambda x: x.reshape((6, 4))),
    "transpose": (m.transpose, np.transpose),
    "transpose by axes": (lambda x: m.transpose(x, 2, 0, -2), lambda x: x.transpose(2, 0, -2)),
    "sum": (m.total, np.sum),
    "sum over an axis": (lambda x: m.total(x, -1), lambda x: x.sum(-1)),
    "sum over axes": (lambda x: m.total(x, (2, 0)), lambda x: x.sum((2, 0))),
    "sum in a dtype": (lambda x: m.total(x, 0, np.float32), lambda x: x.sum(0, np.float32)),
    "astype": (lambda x: m.astype(x, "float32"), lambda x: x.astype("float32")),
    "astype int": (lambda x: m.astype(x, int), lambda x: x.astype(int)),
}
KEYS = {
    "ints": np.s_[1, -1, 2],
    "slices": np.s_[:, 2:0:-1, ::-2],
    "Ellipsis": np.s_[..., 1],
    "None": np.s_[None, 0, ..., None],
    "nothing": (),
    "empty": np.s_[:, 3:],
    "NumPy's ints": (np.int64(1),),
}


def is_numpys(ours, numpys, x):
    want = numpys(x)
    for out in (fgrad.vjp(ours, x)[0], fgrad.vmap(ours)(x[None])[0]):
        np.testing.assert_array_equal(out, want)
        assert out.dtype == want.dtype


@pytest.mark.parametrize("call", CALLS)
def test_methods_are_numpys(call):
    is_numpys(*CALLS[call], X)


@pytest.mark.parametrize("key", KEYS)
def test_basic_indexing_is_numpys(key):
    is_numpys(lambda x: m.getitem(x, KEYS[key]), lambda x: x[KEYS[key]], X)


@pytest.mark.parametrize(
    ("key", "message"), [((0, 3), "index 3 .* axis 1 with size 3"), ((0,) * 4, "too many indices")]
)
def test_indexing_refuses_what_numpy_refuses(key, message):
    with pytest.raises(IndexError, match=message):
        fgrad.vjp(lambda x: m.getitem(x, key), X)


def test_an_empty_array_can_be_reshaped():
    is_numpys(lambda x: m.reshape(x, -1, 3), lambda x: x.reshape(-1, 3), np.zeros((0, 3)))

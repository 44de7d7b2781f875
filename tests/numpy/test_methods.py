"""NumPy's methods, properties and operators on traced values give what they give on arrays."""

import operator

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import errors

X = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
CALLS = {
    "sum": lambda x: x.sum(axis=1, keepdims=True),
    "prod": lambda x: x.prod(0),
    "mean": lambda x: x.mean(),
    "var": lambda x: x.var(axis=0, ddof=1),
    "std": lambda x: x.std(1),
    "max": lambda x: x.max(axis=-1),
    "min": lambda x: x.min(),
    "argmax": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(),
    "any": lambda x: (x > 2).any(axis=0),
    "all": lambda x: (x > -5).all(),
    "cumsum": lambda x: x.cumsum(axis=1),
    "cumprod": lambda x: x.cumprod(),
    "reshape": lambda x: x.reshape(3, 2),
    "reshape tuple": lambda x: x.reshape((-1,), order="F"),
    "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.flatten("F"),
    "transpose": lambda x: x.transpose(),
    "transpose axes": lambda x: x.transpose(1, 0),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "squeeze": lambda x: x[:1].squeeze(0),
    "astype": lambda x: x.astype(np.float32),
    "astype int": lambda x: x.astype("int64"),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "conj": lambda x: x.conj(),
    "conjugate": lambda x: x.conjugate(),
    "dot": lambda x: x.dot(x.T),
    "clip": lambda x: x.clip(-1, 1),
    "clip names": lambda x: x.clip(min=0.0),
    "round": lambda x: x.round(1),
    "take": lambda x: x.take([0, 2], axis=1),
    "repeat": lambda x: x.repeat(2, axis=0),
    "diagonal": lambda x: x.diagonal(1),
    "trace": lambda x: x.trace(),
    "argsort": lambda x: x.argsort(axis=0),
    "searchsorted": lambda x: x[1][::-1].searchsorted(0.7),
    "copy": lambda x: x.copy(),
    "view": lambda x: x.view(),
    "compress": lambda x: x.compress([True, False], axis=0),
    "len": lambda x: np.zeros(len(x)),
    "iteration": lambda x: np.stack([row * k for k, row in enumerate(x)]),
    "reversed": lambda x: np.stack(list(reversed(x))),
    "abs": abs,
    "neg": operator.neg,
    "pos": operator.pos,
    "matmul": lambda x: x @ x.T,
    "rmatmul": lambda x: np.ones((2, 2)) @ x,
    "matmul list": lambda x: x @ [1.0, 2.0, 3.0],
    "divmod": lambda x: divmod(x, 0.75)[1],
    "rdivmod": lambda x: divmod(2.0, x)[0],
    "pow": lambda x: x**2,
    "rpow": lambda x: 2**x,
    "floordiv": lambda x: x // 0.3,
    "comparison": lambda x: (x < 1) & (x != 0.25) | (x >= 3),
    "list": lambda x: x + [1, 2, 3],
    "newaxis": lambda x: x[:, None, ::-1],
    "ellipsis": lambda x: x[..., [0, 1], 1:2],
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("transform", ["jit", "grad"])
def test_method(name, transform):
    f = CALLS[name]
    want = np.asarray(f(X))
    if transform == "jit":
        got = fgrad.jit(f)(X)
    else:
        found = []
        fgrad.vjp(lambda x: found.append(f(x)), X)
        got = np.asarray(found[0].concrete() if isinstance(found[0], fgrad.core.Tracer) else found[0])
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_every_method_of_arrays_is_there_or_has_a_reason():
    missing = {n for n in dir(np.ndarray) if not n.startswith("_")} - set(dir(fgrad.core.Tracer))
    reasons = {
        "base ctypes data flags strides itemset dump dumps getfield setfield setflags": "memory",
        "tofile tobytes tostring": "bytes",
        "ptp": "NumPy 2.0 has it left over",
        "byteswap newbyteorder put resize partition": "in place",
    }
    assert missing <= set(" ".join(reasons).split())


def test_writing_methods_are_refused():
    for method in (lambda x: x.sort(), lambda x: x.fill(0.0), lambda x: x.__setitem__(0, 1.0)):
        with pytest.raises(TypeError, match=r"in place|writes"):
            fgrad.grad(method)(X)
    for method in (lambda x: x.tobytes(), lambda x: np.from_dlpack(x), np.asarray):
        with pytest.raises(errors.TracerArrayConversionError):
            fgrad.jit(method)(X)
    with pytest.raises(TypeError, match="view"):
        fgrad.jit(lambda x: x.view(np.int64))(X)


def test_augmented_assignment_rebinds():
    def f(x):
        y = x
        y += 1.0
        y *= x
        return y.sum()

    np.testing.assert_array_equal(fgrad.grad(f)(X), 2 * X + 1)


def test_an_array_is_not_written_by_a_traced_value():
    def f(x):
        out = np.zeros(3)
        out += x
        return out.sum()

    with pytest.raises(TypeError, match="existing array"):
        fgrad.grad(f)(np.ones(3))
    with pytest.raises(errors.TracerArrayConversionError):
        fgrad.grad(lambda x: np.zeros(3).__setitem__(slice(None), x))(np.ones(3))


def test_the_array_namespace_is_this_one():
    def f(x):
        assert x.device == "cpu"
        assert x.to_device("cpu") is x
        return x.__array_namespace__().sum(x)

    assert fgrad.grad(f)(X).tolist() == np.ones((2, 3)).tolist()
    with pytest.raises(ValueError, match="to_device"):
        fgrad.grad(lambda x: x.to_device("gpu").sum())(X)


def test_rounding_and_abs_of_python_numbers():
    assert fgrad.grad(lambda x: abs(x) * 3)(-2.0) == -3.0
    assert fgrad.grad(lambda x: x * round(x))(2.4) == 2.0
    assert fnp.abs(-2) == 2

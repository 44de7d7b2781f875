"""What may stand for an array, as an argument of a transform and as an operand of a traced value; and what is refused.

Outside transforms functions are NumPy's own and take what NumPy takes: a Series gives a Series.
"""

import array
import datetime
import decimal
import fractions

import numpy as np
import pandas as pd
import pytest

import fgrad
import fgrad.numpy as fnp

VALUES = np.array([1.5, -2.0, 0.25])
FRAME = pd.DataFrame({"a": [1.5, -2.0], "b": [0.25, 3.0]})


def frozen(x):
    x.flags.writeable = False
    return x


def unaligned(x):
    return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype)


ARRAYS = {
    "read-only": (frozen(VALUES.copy()), VALUES),
    "other byte order": (VALUES.astype(">f8"), VALUES),
    "ints of other byte order": (np.array([1, -2, 3], ">i4"), np.array([1, -2, 3], np.int32)),
    "complex of other byte order": (np.array([1j, 2.0], ">c16"), np.array([1j, 2.0])),
    "negative stride": (VALUES[::-1], VALUES[::-1].copy()),
    "broadcast": (np.broadcast_to(1.5, (3,)), np.full(3, 1.5)),
    "unaligned": (unaligned(VALUES), VALUES),
    "Fortran order": (np.asfortranarray(FRAME.to_numpy()), FRAME.to_numpy()),
    "Series": (pd.Series(VALUES, index=["x", "y", "z"]), VALUES),
    "Series of ints": (pd.Series([1, 2, 3]), np.array([1, 2, 3])),
    "Series of nullable ints": (pd.Series([1, 2, 3], dtype="Int64"), np.array([1, 2, 3])),
    "Series with a missing value": (pd.Series([1.5, None], dtype="Float64"), np.array([1.5, np.nan])),
    "Series of categories": (pd.Series([1, 2, 1], dtype="category"), np.array([1, 2, 1])),
    "DataFrame": (FRAME, FRAME.to_numpy()),
    "matrix": (np.array([[1.5, 2.0]]).view(np.matrix), np.array([[1.5, 2.0]])),
    "NumPy number": (np.float32(1.5), np.array(1.5, np.float32)),
    "array without axes": (np.array(1.5), np.array(1.5)),
}
OPERANDS = ARRAYS | {  # as arguments of transforms these are trees
    "list": ([1.5, -2.0], np.array([1.5, -2.0])),
    "tuple": (((1, 2), (3, 4)), np.array([[1, 2], [3, 4]])),
}
NUMBERS = {"int": 2, "float": 2.5, "complex": 2j, "bool": True}
FUNCTIONS_ONLY = {  # Python's operators are not defined on them, or mean something else
    "array.array": (array.array("d", VALUES), VALUES),
    "memoryview": (memoryview(VALUES), VALUES),
    "range": (range(3), np.arange(3)),
}


def real(x):
    return fnp.sum(fnp.real(x))


def same(got, want):
    assert type(got) is np.ndarray
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ARRAYS)
def test_as_an_argument(name):
    like, plain = ARRAYS[name]
    same(fgrad.jit(lambda x: x * 2)(like), fgrad.jit(lambda x: x * 2)(plain))
    if plain.ndim:
        same(fgrad.vmap(lambda x: x * 2)(like), plain * 2)
    if plain.dtype.kind in "fc":
        same(fgrad.grad(lambda x: real(x * x))(like), 2 * plain)
        same(fgrad.jvp(lambda x: x * x, (plain,), (like,))[1], 2 * plain * plain)
        same(fgrad.vjp(lambda x: x * x, plain)[1](like)[0], 2 * plain * plain)
    else:
        with pytest.raises(TypeError, match="real- or complex-valued inputs"):
            fgrad.grad(real)(like)


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("transform", ["jit", "grad"])
def test_as_an_operand(name, transform):
    like, plain = OPERANDS[name]
    y = np.full(plain.shape, 2.0)
    for f in (
        lambda y, x: y * x,
        lambda y, x: x * y,
        lambda y, x: x - y,
        lambda y, x: np.multiply(x, y),
        lambda y, x: fnp.multiply(y, x),
        lambda y, x: fnp.where(fnp.isfinite(x), x, y),
        lambda y, x: fnp.concatenate([fnp.ravel(y), fnp.ravel(x)]),
        lambda y, x: y.at[...].set(fnp.real(x)),
    ):
        if transform == "jit":
            same(fgrad.jit(lambda y, f=f: f(y, like))(y), fgrad.jit(lambda y, f=f: f(y, plain))(y))
        else:
            same(fgrad.grad(lambda y, f=f: real(f(y, like)))(y), fgrad.grad(lambda y, f=f: real(f(y, plain)))(y))


@pytest.mark.parametrize("name", FUNCTIONS_ONLY)
def test_as_an_operand_of_functions(name):
    like, plain = FUNCTIONS_ONLY[name]
    same(fgrad.jit(lambda y: fnp.multiply(like, y))(2.0), plain * 2.0)
    with pytest.raises(TypeError, match="not a valid array or number"):
        fgrad.jit(lambda x: x)(like)


@pytest.mark.parametrize("name", NUMBERS)
def test_python_numbers(name):
    number = NUMBERS[name]
    out = fgrad.jit(lambda x: x * 2)(number)
    assert (out, out.dtype) == (number * 2, np.asarray(number * 2).dtype)
    out = fgrad.grad(lambda y: real(y * number))(np.float32(3.0))
    assert (out, out.dtype) == (np.real(number), np.float32)  # numbers give way


def test_a_list_is_a_tree_of_its_items():
    assert fgrad.grad(lambda x: x[0] * x[1])([2.0, 3.0]) == [3.0, 2.0]
    with pytest.raises(ValueError, match="equal shapes"):
        fgrad.grad(fnp.sum)([[1.0], [1.0, 2.0]])


@pytest.mark.parametrize("index", [pd.Series([2, 0]), np.array([2, 0], ">i8"), [2, 0], np.array([True, False, True])])
def test_as_an_index(index):
    plain = np.asarray(index)
    for transform in (fgrad.jit, lambda f: lambda x: fgrad.vjp(f, x)[0]):
        same(transform(lambda x: x[index])(VALUES), VALUES[plain])
        same(transform(lambda x: x.at[index].set(0.0))(VALUES), fnp.at(VALUES)[plain].set(0.0))


def test_an_index_of_pandas():
    index = pd.Index(VALUES)
    same(fgrad.jit(lambda x: x * 2)(index), VALUES * 2)
    for f in (lambda y: y * index, lambda y: index * y, lambda y: fnp.multiply(index, y)):
        same(fgrad.jit(f)(2.0), VALUES * 2)
    with pytest.raises(fgrad.errors.TracerArrayConversionError):  # NumPy asks pandas first, which asks for values
        fgrad.jit(lambda y: np.multiply(index, y))(2.0)


# --------------------------------------------------------------------------------------------------- what is refused

MASKED = np.ma.masked_array(VALUES, mask=[True, False, False])
REFUSED = {
    "masked array": (MASKED, "masks would be lost"),
    "masked array without a mask": (np.ma.masked_array(VALUES), "masks would be lost"),
    "objects": (np.array([1.5, 2.0], object), "dtype object"),
    "text": (np.array(["a", "b"]), "dtype <U1"),
    "bytes": (np.array([b"a"]), r"dtype \|S1"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), r"dtype datetime64\[D\]"),
    "durations": (np.array([1, 2], "m8[s]"), r"dtype timedelta64\[s\]"),
    "Series of text": (pd.Series(["a", "b"]), "dtype object"),
    "Series of dates": (pd.Series(pd.to_datetime(["2020-01-01"])), "dtype datetime64"),
    "DataFrame of many dtypes": (pd.DataFrame({"a": [1.5], "b": ["x"]}), "dtype object"),
}
NO_ARRAYS = {
    "text": "ab",
    "set": {1.0},
    "iterator": iter([1.0]),
    "Fraction": fractions.Fraction(1, 2),
    "Decimal": decimal.Decimal("1.5"),
    "date": datetime.date(2020, 1, 1),
    "object": object(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_an_argument(name):
    like, reason = REFUSED[name]
    for transform in (fgrad.jit, fgrad.vmap, fgrad.grad, lambda f: lambda x: fgrad.vjp(f, x)):
        with pytest.raises(TypeError, match=reason):
            transform(lambda x: x)(like)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("transform", [fgrad.jit, fgrad.grad, lambda f: lambda y: fgrad.jvp(f, (y,), (1.0,))])
def test_refused_as_an_operand(name, transform):
    like, _ = REFUSED[name]
    for f in (lambda y: y * like, lambda y: like * y, lambda y: fnp.multiply(like, y), lambda y: np.multiply(y, like)):
        with pytest.raises(TypeError):
            transform(lambda y, f=f: fnp.sum(f(y)))(2.0)


def test_masked_operands_say_why():
    for f in (lambda y: y * MASKED, lambda y: fnp.add(MASKED, y), lambda y: fnp.stack([MASKED, MASKED * 1]) * y):
        with pytest.raises(TypeError, match="masks would be lost"):
            fgrad.jit(f)(2.0)
    with pytest.raises(fgrad.errors.TracerArrayConversionError):  # NumPy's masked array comes first and asks for values
        fgrad.jit(lambda y: MASKED * y)(2.0)


@pytest.mark.parametrize("name", NO_ARRAYS)
def test_what_is_no_array(name):
    like = NO_ARRAYS[name]
    for transform in (fgrad.jit, fgrad.grad, fgrad.vmap):
        with pytest.raises(TypeError, match=r"not a valid array or number"):
            transform(lambda x: x)(like)
    with pytest.raises(TypeError):
        fgrad.grad(lambda y: fnp.sum(fnp.multiply(like, y)))(2.0)


def test_records_are_refused():
    record = np.zeros(2, [("a", float)])
    for transform in (fgrad.jit, fgrad.grad, fgrad.vmap):
        with pytest.raises(TypeError):
            transform(lambda x: fnp.sum(x * 2.0))(record)

"""NumPy's whole namespace on traced values: each function works, or raises an error that says what to use instead.

The functions with rows in the table of samples work: `test_parity.test_numpys_protocols` calls each.
"""

import inspect

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from tests.numpy import linalg_samples, samples

X = np.array([1.5, 0.5, 2.0])

# Functions of numbers, shapes, dtypes, texts, files and settings; a traced value is none of these.
OF_NO_ARRAYS = """
    base_repr binary_repr broadcast_shapes datetime_data frompyfunc fromregex genfromtxt get_include
    get_printoptions getbufsize geterr geterrcall info isdtype issubdtype load loadtxt mintypecode printoptions
    promote_types set_printoptions setbufsize seterr seterrcall show_config show_runtime test typename
""".split()
WORKING = {  # what has no row of samples
    "at": None,
    "isscalar": lambda x: np.isscalar(x),
    "iterable": lambda x: np.iterable(x),
    "may_share_memory": lambda x: np.may_share_memory(x, X),
    "shares_memory": lambda x: np.shares_memory(x, X),
    "roots": lambda x: np.roots(x),
    "poly1d": lambda x: np.poly1d(x)(0.5),
}
REFUSED = {
    "array2string": lambda x: np.array2string(x),
    "array_repr": lambda x: np.array_repr(x),
    "array_str": lambda x: np.array_str(x),
    "asmatrix": lambda x: np.asmatrix(x),
    "bmat": lambda x: np.bmat([[x]]),
    "busday_count": lambda x: np.busday_count(x, x),
    "busday_offset": lambda x: np.busday_offset(x, x),
    "copyto": lambda x: np.copyto(np.zeros(3), x),
    "datetime_as_string": lambda x: np.datetime_as_string(x),
    "fill_diagonal": lambda x: np.fill_diagonal(x, 0.0),
    "format_float_positional": lambda x: np.format_float_positional(x[0]),
    "format_float_scientific": lambda x: np.format_float_scientific(x[0]),
    "from_dlpack": lambda x: np.from_dlpack(x),
    "fromfile": lambda x: np.fromfile(x),
    "is_busday": lambda x: np.is_busday(x),
    "isfortran": lambda x: np.isfortran(x),
    "isnat": lambda x: np.isnat(x),
    "ix_": lambda x: np.ix_(x, x),
    "nested_iters": lambda x: np.nested_iters([x], [[0], []]),
    "place": lambda x: np.place(x, X > 1, X),
    "put": lambda x: np.put(x, [0], 1.0),
    "put_along_axis": lambda x: np.put_along_axis(x, np.array([0]), 1.0, 0),
    "putmask": lambda x: np.putmask(x, X > 1, X),
    "require": lambda x: np.require(x, requirements="C"),
    "save": lambda x: np.save("x.npy", x),
    "savetxt": lambda x: np.savetxt("x.txt", x),
    "savez": lambda x: np.savez("x.npz", x),
    "savez_compressed": lambda x: np.savez_compressed("x.npz", x),
    # Classes that hold values:
    "float64": lambda x: np.float64(x[0]),
    "matrix": lambda x: np.matrix(x),
    "ndenumerate": lambda x: [*np.ndenumerate(x)],
    "nditer": lambda x: [*np.nditer(x)],
    "vectorize": lambda x: np.vectorize(abs)(x),
    # Beyond the main namespace:
    "emath.sqrt": lambda x: np.emath.sqrt(x),
    "ma.array": lambda x: np.ma.array(x),
    "polynomial": lambda x: np.polynomial.polynomial.polyval(0.5, x),
    "random": lambda x: np.random.default_rng(0).normal(x),
    "strings": lambda x: np.strings.upper(x),
    "testing": lambda x: np.testing.assert_array_equal(x, X),
    "lib.stride_tricks": lambda x: np.lib.stride_tricks.as_strided(x, (2,), (8,)),
}
OLDER = {"row_stack", "in1d", "trapz"}  # NumPy deprecates or has removed them


def test_every_function_is_accounted_for():
    public = {n: getattr(np, n) for n in np.__all__ if not n.startswith("_")}
    functions = {n for n, x in public.items() if callable(x) and not inspect.isclass(x)}
    accounted = {*samples.TABLE, *OF_NO_ARRAYS, *WORKING, *REFUSED, *OLDER}
    assert functions <= accounted
    for module, table in ((np.linalg, linalg_samples.LINALG), (np.fft, linalg_samples.FFT)):
        assert {n for n in module.__all__ if n != "LinAlgError"} == set(table)


@pytest.mark.parametrize("name", [n for n, call in WORKING.items() if call])
def test_works(name):
    want = WORKING[name](X)
    found = []
    fgrad.vjp(lambda x: found.append(WORKING[name](x)) or 0.0, X)
    if name in ("may_share_memory", "shares_memory"):
        assert found == [False]
    elif isinstance(want, bool):
        assert found[0] == want or name == "isscalar"
    else:
        np.testing.assert_allclose(found[0].concrete(), want)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of NumPy's matrices
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("transform", [fgrad.jit, fgrad.grad])
def test_is_refused(name, transform, tmp_path, monkeypatch):
    """Nothing runs on the bare value, and no derivative is cut without a word."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, AttributeError, ValueError)) as caught:
        transform(lambda x: fnp.sum(x) + (REFUSED[name](x) is None))(X)
    assert "Remedy" in str(caught.value) or name in WITHOUT_REMEDY, caught.value


# Python or NumPy itself raises before fgrad is asked; none of these is a function of an array's numbers.
WITHOUT_REMEDY = {"from_dlpack", "fromfile", "isfortran", "nditer", "nested_iters", "savez", "savez_compressed"}


def test_a_namesake_is_named():
    with pytest.raises(TypeError, match=r"numpy\.lib\..*scimath.*\.sqrt .*\n.*use fgrad\.numpy\.sqrt if it suits"):
        fgrad.grad(lambda x: fnp.sum(np.emath.sqrt(x)))(X)


@pytest.mark.parametrize("axis", [None, 0, (0, 1), (1, 1)])
def test_sliding_windows(axis):
    x = np.arange(20.0).reshape(4, 5) ** 2
    width = 2 if axis == 0 else (2, 3)
    view = np.lib.stride_tricks.sliding_window_view
    want = view(x, width, axis)
    np.testing.assert_array_equal(fgrad.jit(lambda x: view(x, width, axis))(x), want)
    fgrad.check_grads(lambda x: view(x, width, axis) ** 2, (x,), 2, rtol=1e-4)
    with pytest.raises(ValueError, match="does not fit"):
        fgrad.jit(lambda x: view(x, 9, 0))(x)

"""Every public function against NumPy, and the laws of transforms, over the table of samples."""

import inspect

import numpy as np
import pytest

import fgrad
import fgrad.nn
import fgrad.numpy as fnp
from fgrad import errors
from tests.numpy import linalg_samples, samples
from tests.numpy.laws import Call, assert_same, outputs

EXEMPT = {
    "at": "in test_at.py",
    **dict.fromkeys("fill_diagonal put put_along_axis place copyto putmask".split(), "they write; in test_writing.py"),
    "roots": "always complex on traced values; in test_options.py",
    "from_dlpack": "takes another library's array; in test_creation.py",
    **dict.fromkeys(("shares_memory", "may_share_memory"), "traced values have no memory; in test_creation.py"),
    "vectorize": "takes a function; in test_applying.py",
    "fromfile": "reads a file; in test_creation.py",
}
NUMPYS_OWN = set(vars(fgrad.numpy.numpys_own))


def functions(namespace):
    return {
        name
        for name, value in vars(namespace).items()
        if not name.startswith("_") and callable(value) and not inspect.isclass(value) and name not in NUMPYS_OWN
    }


def rows(table, module, numpy):
    out = []
    for name, cases in table.items():
        if not hasattr(numpy, name):
            continue
        out += [
            pytest.param(getattr(module, name), getattr(numpy, name), case, id=f"{name}-{k}")
            for k, case in enumerate(cases)
        ]
    return out


ROWS = [
    *rows(samples.TABLE, fnp, np),
    *rows(linalg_samples.LINALG, fnp.linalg, np.linalg),
    *rows(linalg_samples.FFT, fnp.fft, np.fft),
]
WHERE_NUMPY_WARNS = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")


def test_every_public_function_has_a_row():
    assert functions(fnp) == set(samples.TABLE) | set(EXEMPT)
    assert functions(fnp.linalg) & set(fnp.linalg.__all__) == set(linalg_samples.LINALG)
    assert functions(fnp.fft) & set(fnp.fft.__all__) == set(linalg_samples.FFT)


def test_documentation():
    for module in (fnp, fnp.linalg, fnp.fft, fgrad.nn):
        for name in functions(module):
            function = getattr(module, name)
            assert function.__doc__, name
            assert inspect.signature(function), name


@WHERE_NUMPY_WARNS
@pytest.mark.parametrize(("function", "original", "case"), ROWS)
def test_eager_is_numpy(function, original, case):
    assert_same(function(*case.args, **case.kwargs), original(*case.args, **case.kwargs), case.close)


@WHERE_NUMPY_WARNS
@pytest.mark.heavy
@pytest.mark.parametrize(("function", "original", "case"), ROWS)
def test_jit(function, original, case):
    """The composition of primitives gives NumPy's values, shapes and dtypes; what needs known values says so."""
    f = Call(function, case)
    if case.known and f.arrays:
        with pytest.raises((errors.NonConcreteBooleanIndexError, errors.TracerArrayConversionError)):
            _traced(f)
        return
    want = original(*case.args, **case.kwargs)
    if want.__class__ is int and original is np.count_nonzero:  # in NumPy 2.0
        want = np.intp(want)
    if any(x.__class__ in NOT_ARRAYS or isinstance(x, np.dtype) for x in outputs(want)):
        assert_same(_shared(f), want)
        return
    assert_same(_traced(f), want, case.close)


NOT_ARRAYS = {str, type, int}


def _traced(f):
    return fgrad.jit(lambda *xs: outputs(f(*xs)))(*f.arrays)


def _shared(f):
    """Return a result that is no array, computed under jit."""
    found = []
    fgrad.jit(lambda *xs: found.append(f(*xs)))(*f.arrays)
    return found[0]


@WHERE_NUMPY_WARNS
@pytest.mark.heavy
@pytest.mark.parametrize(("function", "original", "case"), ROWS)
def test_numpys_protocols(function, original, case):
    """NumPy's own function, called on traced values, gives what the one of fgrad gives."""
    f, g = Call(function, case), Call(original, case)
    if not f.arrays or case.known:
        return
    want = f(*f.arrays)
    if any(x.__class__ in NOT_ARRAYS or isinstance(x, np.dtype) for x in outputs(want)):
        return
    if original in NOT_DISPATCHED:
        with pytest.raises(errors.TracerArrayConversionError):
            _traced(g)
        return
    assert_same(_traced(g), want, case.close)


NOT_DISPATCHED = {np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.full}


@WHERE_NUMPY_WARNS
@pytest.mark.heavy
@pytest.mark.parametrize(("function", "original", "case"), ROWS)
def test_vmap(function, original, case):
    """vmap gives the stack of the results for each example, batched in all arrays or in the last one only."""
    f = Call(function, case)
    if not f.arrays or not case.batched:
        return
    want = f(*f.arrays)
    if any(x.__class__ in NOT_ARRAYS or isinstance(x, np.dtype) for x in outputs(want)):
        return
    for batched in {tuple(range(len(f.arrays))), (len(f.arrays) - 1,)}:
        axes = tuple([0 if k in batched else None for k in range(len(f.arrays))])
        examples = [[other(x, j) if k in batched else x for k, x in enumerate(f.arrays)] for j in (0, 1)]
        stacked = [np.stack([examples[0][k], examples[1][k]]) if k in batched else x for k, x in enumerate(f.arrays)]
        got = fgrad.vmap(lambda *xs: outputs(f(*xs)), axes)(*stacked)
        wants = [outputs(f(*xs)) for xs in examples]
        assert_same(got, [np.stack(pair) for pair in zip(*wants, strict=True)], case.close)


def other(x, j):
    """Return example j of a batch: the array itself, and one of other values that suit the same functions."""
    if j == 0 or x.dtype.kind == "b":
        return x
    if x.dtype.kind in "iu":
        return x[..., ::-1] if x.ndim else x
    return (x * 0.875).astype(x.dtype)


@WHERE_NUMPY_WARNS
@pytest.mark.heavy
@pytest.mark.parametrize(("function", "original", "case"), [row for row in ROWS if row.values[2].smooth])
def test_derivatives(function, original, case):
    """Forward and reverse mode agree with finite differences, to second order."""
    f = Call(function, case)
    floats = [k for k, x in enumerate(f.arrays) if x.dtype in (np.float64, np.complex128)]
    if not floats:
        return

    def of_floats(*xs):
        full = list(f.arrays)
        for k, x in zip(floats, xs, strict=True):
            full[k] = x
        return [y for y in outputs(f(*full)) if hasattr(y, "dtype") and y.dtype.kind in "fc"]

    fgrad.check_grads(of_floats, [f.arrays[k] for k in floats], 2, rtol=1e-4, atol=1e-5)


@WHERE_NUMPY_WARNS
@pytest.mark.heavy
@pytest.mark.parametrize(("function", "original", "case"), ROWS)
def test_values_under_grad(function, original, case):
    """Values computed while the tape records are NumPy's, in dtype and shape too."""
    f = Call(function, case)
    if not f.arrays:
        return
    found = []
    fgrad.vjp(lambda *xs: found.append(outputs(f(*xs))) or 0.0, *f.arrays)
    want = outputs(original(*case.args, **case.kwargs))
    assert_same([_value(x) for x in found[0]], want, case.close)


def _value(x):
    return x.concrete() if isinstance(x, fgrad.core.Tracer) else x

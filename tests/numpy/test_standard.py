"""`fgrad.numpy` is a namespace of the array API standard: its signatures, its calls, its types, its array object."""

import inspect

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from tests.numpy import standard
from tests.numpy.laws import assert_same, outputs

PLACES = {"": (fnp, standard.MAIN), "linalg.": (fnp.linalg, standard.LINALG), "fft.": (fnp.fft, standard.FFT)}
FUNCTIONS = [
    pytest.param(module, name, text, id=place + name)
    for place, (module, table) in PLACES.items()
    for name, text in standard.signatures(table).items()
]
NUMPY = tuple(int(n) for n in np.__version__.split(".")[:2])
KINDS = inspect.Parameter


@pytest.mark.parametrize(("module", "name", "text"), FUNCTIONS)
def test_signatures(module, name, text):
    """What the standard lets one pass is taken, by the same names, with the same defaults; more has defaults."""
    if name in ("finfo", "iinfo"):  # NumPy's classes
        assert getattr(module, name)(np.float32 if name == "finfo" else np.int8).bits == {"finfo": 32, "iinfo": 8}[name]
        return
    if NUMPY < (2, 4) and name in ("arange", "from_dlpack"):
        pytest.skip("NumPy's builtin does not tell its arguments; test_calls makes the calls")
    wanted = list(inspect.signature(eval(f"lambda {text[1:-1]}: None")).parameters.values())
    ours = list(inspect.signature(getattr(module, name)).parameters.values())
    named = {p.name: p for p in ours}
    variadic = any(p.kind is KINDS.VAR_POSITIONAL for p in ours)
    for k, want in enumerate(wanted):
        if want.kind in (KINDS.POSITIONAL_ONLY, KINDS.VAR_POSITIONAL) or want.kind is KINDS.POSITIONAL_OR_KEYWORD:
            assert variadic or ours[k].kind in (KINDS.POSITIONAL_ONLY, KINDS.POSITIONAL_OR_KEYWORD), want.name
        if want.kind in (KINDS.POSITIONAL_OR_KEYWORD, KINDS.KEYWORD_ONLY):
            assert named[want.name].kind in (KINDS.POSITIONAL_OR_KEYWORD, KINDS.KEYWORD_ONLY), want.name
            if want.default is not KINDS.empty:
                assert same_default(named[want.name].default, want.default), (want, named[want.name])
    known = {want.name for want in wanted} | {p.name for p in ours[: len(wanted)]}
    more = [p for p in ours if p.name not in known and p.kind not in (KINDS.VAR_POSITIONAL, KINDS.VAR_KEYWORD)]
    assert all(p.default is not KINDS.empty for p in more)


def same_default(ours, standards):
    """Return whether defaults mean one thing: None and marks of absence stand for the standard's own."""
    return ours in (None, float) or ours.__class__ in (object, type(np._NoValue)) or ours == standards


X = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
A = X @ X.T + np.eye(2)
I = np.array([[3, -1, 2], [0, 5, 4]])  # noqa: E741
V = np.array([0.5, 1.0, 2.0])
CALLS = """
    clip(x, 0.0, 1.0) ; clip(x, min=0.0) ; clip(x, max=1.0)
    round(x) ; abs(x) ; pow(abs(x), 2) ; atan2(x, x) ; add(x, 1) ; add(1.0, x) ; maximum(x, 0) ; copysign(x, -1.0)
    astype(x, float32, copy=True, device='cpu') ; astype(x, float32)
    asarray(x, dtype=float32, device='cpu', copy=True) ; asarray(x)
    empty_like(x, dtype=float32, device='cpu').shape ; ones_like(x, dtype=float32, device='cpu') ; zeros_like(x)
    full_like(x, 2.0, dtype=float32, device='cpu') ; full_like(x, fill_value=3)
    arange(1, 7, 2, dtype=float32, device='cpu') ; arange(3) ; arange(0, stop=4, step=2)
    eye(2, 3, k=1, dtype=float32, device='cpu') ; full((2,), 1.0, dtype=float32, device='cpu')
    linspace(0, 1, 5, dtype=float32, device='cpu', endpoint=False) ; linspace(0.0, 1.0, num=3)
    ones((2, 3), dtype=float32, device='cpu') ; zeros(3)
    meshgrid(x[0], x[1], indexing='ij') ; tril(x, k=1) ; triu(x, k=-1)
    broadcast_arrays(x, x[0]) ; broadcast_to(x, (2, 2, 3)) ; broadcast_to(x, shape=(1, 2, 3))
    can_cast(x, complex128) ; can_cast(float32, float64) ; result_type(x, float32) ; result_type(x, 1)
    isdtype(x.dtype, 'real floating') ; isdtype(x.dtype, ('integral', float64))
    take(x, i[0, :1] - 3, axis=0) ; take(x[0], i[0] % 3) ; take_along_axis(x, i % 3, axis=1)
    take_along_axis(x, i % 3, axis=-1)
    matmul(x, x.mT) ; matrix_transpose(x) ; tensordot(x, x, axes=2) ; tensordot(x, x.T, axes=((1,), (0,)))
    vecdot(x, x, axis=0) ; vecdot(x, x)
    concat([x, x], axis=1) ; concat([x, x], axis=None) ; expand_dims(x, axis=0) ; expand_dims(x, axis=-1)
    flip(x, axis=0) ; flip(x) ; moveaxis(x, 0, 1) ; permute_dims(x, (1, 0)) ; permute_dims(x, axes=(1, 0))
    repeat(x, 2, axis=0) ; repeat(x, 2) ; reshape(x, (3, 2), copy=True) ; reshape(x, shape=(6,))
    roll(x, 1, axis=0) ; roll(x, shift=(1, 2), axis=(0, 1)) ; squeeze(x[:1], 0) ; squeeze(x[:1], axis=(0,))
    stack([x, x], axis=1) ; tile(x, (2, 1)) ; unstack(x, axis=1) ; unstack(x)
    argmax(x, axis=1, keepdims=True) ; argmin(x) ; count_nonzero(i, axis=0, keepdims=True)
    searchsorted(sort(x[0]), x[1], side='right') ; searchsorted(x[0], x[1], sorter=argsort(x[0]))
    where(x > 0, x, 0.0) ; where(x > 0, 1.0, x)
    argsort(x, axis=0, descending=True, stable=True) ; sort(x, axis=0, descending=True, stable=False) ; sort(x)
    cumulative_sum(x, axis=1, dtype=float32, include_initial=True) ; cumulative_sum(x[0])
    cumulative_prod(x, axis=0, include_initial=True)
    max(x, axis=(0, 1), keepdims=True) ; min(x, axis=0) ; mean(x, axis=0, keepdims=True)
    sum(x, axis=1, dtype=float32, keepdims=True) ; prod(i, axis=0) ; std(x, axis=0, correction=1, keepdims=True)
    var(x, correction=0.5) ; all(x > 0, axis=0, keepdims=True) ; any(x > 9)
    diff(x, axis=0, n=1, prepend=x[:1], append=x[:1])
    linalg.cholesky(a, upper=True) ; linalg.cross(x, x[::-1], axis=-1) ; linalg.det(a) ; linalg.diagonal(x, offset=1)
    linalg.eigh(a).eigenvalues ; linalg.eigvalsh(a) ; linalg.inv(a) ; linalg.matmul(x, x.T)
    linalg.matrix_norm(x, keepdims=True, ord=1) ; linalg.matrix_norm(x) ; linalg.matrix_power(a, 3)
    linalg.matrix_rank(x, rtol=1e-3) ; linalg.matrix_transpose(x) ; linalg.outer(x[0], x[1]) ; linalg.pinv(x, rtol=1e-3)
    linalg.qr(x, mode='complete').R ; linalg.slogdet(a).logabsdet ; linalg.solve(a, x) ; linalg.svdvals(x)
    linalg.svd(x, full_matrices=False).S ; linalg.tensordot(x, x, axes=2) ; linalg.trace(a, offset=1, dtype=float32)
    linalg.vecdot(x, x, axis=0) ; linalg.vector_norm(x, axis=0, keepdims=True, ord=1) ; linalg.vector_norm(x, ord=inf)
    fft.fft(x, n=4, axis=0, norm='ortho') ; fft.ifft(x) ; fft.fftn(x, s=(2, 4), axes=(0, 1), norm='forward')
    fft.ifftn(x) ; fft.rfft(x, n=4) ; fft.irfft(x, n=5) ; fft.rfftn(x) ; fft.irfftn(x, s=(2, 3), axes=(0, 1))
    fft.hfft(x, n=4) ; fft.ihfft(x) ; fft.fftshift(x, axes=0) ; fft.ifftshift(x)
    fft.fftfreq(5, d=0.5, device='cpu') ; fft.rfftfreq(6, d=2.0, dtype=float32, device='cpu')
    fft.fftfreq(4, dtype=float32)
"""
EXPRESSIONS = [part.strip() for part in CALLS.replace("\n", ";").split(";") if part.strip()]


def evaluate(text, x, a, i):
    """Return the value of an expression in the namespace."""
    names = {name: getattr(fnp, name) for name in dir(fnp) if not name.startswith("_")}
    return eval(text, names | {"x": x, "a": a, "i": i, "linalg": fnp.linalg, "fft": fnp.fft})


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_calls(text):
    """Calls in the standard's form give the same eagerly and under jit."""
    want = outputs(evaluate(text, X, A, I))
    if any(isinstance(y, (bool, np.dtype)) for y in want):
        found = []
        fgrad.jit(lambda *xs: found.append(outputs(evaluate(text, *xs))))(X, A, I)
        assert found[0] == want
        return
    assert_same(fgrad.jit(lambda *xs: outputs(evaluate(text, *xs)))(X, A, I), want)


def test_every_function_is_called():
    names = {place + name for place, (_, table) in PLACES.items() for name in standard.signatures(table)}
    elementwise = set(standard.signatures(standard.MAIN.partition("clip")[0]))
    elsewhere = {"from_dlpack", "empty", "finfo", "iinfo", "nonzero"}
    elsewhere |= {"unique_all", "unique_counts", "unique_inverse", "unique_values"}
    missing = {name for name in names - elementwise - elsewhere if not any(f"{name}(" in e for e in EXPRESSIONS)}
    assert not missing


def test_constants_and_dtypes():
    for name in standard.CONSTANTS.split():
        assert getattr(fnp, name) is getattr(np, name)
    for name in standard.DTYPES.split():
        assert fnp.zeros(2, dtype=getattr(fnp, name)).dtype == np.dtype(name)
    assert fnp.finfo(fnp.float32).bits == 32
    assert {n for n in "bits eps max min smallest_normal dtype".split() if hasattr(fnp.finfo(fnp.float64), n)} == {
        *"bits eps max min smallest_normal dtype".split()
    }
    assert fnp.iinfo(fnp.int8).max == 127


@pytest.mark.parametrize("transform", [fgrad.jit, fgrad.grad], ids=["jit", "grad"])
def test_the_array_object(transform):
    def f(x):
        for name in (standard.ATTRIBUTES + " " + standard.METHODS).split():
            assert hasattr(x, name) or name == "__complex__", name
        assert x.__array_namespace__() is fnp
        assert x.__array_namespace__(api_version="2024.12") is fnp
        with pytest.raises(ValueError, match=r"2020\.01.*2024\.12"):
            x.__array_namespace__(api_version="2020.01")
        assert (x.device, x.ndim, x.size, x.shape) == ("cpu", 2, 6, (2, 3))
        assert fnp.finfo(x).bits == 64
        return fnp.sum(x.mT * x.T)

    assert transform(f)(X).shape in ((), (2, 3))


@pytest.mark.skipif(NUMPY < (2, 1), reason="NumPy says of itself what it has from 2.1 on")
def test_the_namespaces_information():
    info = fnp.__array_namespace_info__()
    for name in standard.INFO.split():
        assert hasattr(info, name)
    size = {"max dimensions": 64} if NUMPY >= (2, 3) else {}
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, **size}
    assert list(info.devices()) == ["cpu"]
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert set(info.dtypes()) == set(standard.DTYPES.split())


KIND_OF = {
    "bool": "bool",
    **dict.fromkeys("int8 int16 int32 int64".split(), "signed integer"),
    **dict.fromkeys("uint8 uint16 uint32 uint64".split(), "unsigned integer"),
    **dict.fromkeys(("float32", "float64"), "real floating"),
    **dict.fromkeys(("complex64", "complex128"), "complex floating"),
}


@pytest.mark.parametrize("name", KIND_OF)
def test_isdtype(name):
    dtype, kind = fnp.dtype(name), KIND_OF[name]
    for other in set(KIND_OF.values()):
        assert fnp.isdtype(dtype, other) == (other == kind)
    assert fnp.isdtype(dtype, "integral") == kind.endswith("integer")
    assert fnp.isdtype(dtype, "numeric") == (kind != "bool")
    assert fnp.isdtype(dtype, ("bool", dtype))

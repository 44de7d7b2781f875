"""jit, eval_shape and make_ir: signatures, statics, constants, errors; jit(f) = f."""

import functools
import threading

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.errors import TracerBoolConversionError, TracerIntegerConversionError, UnexpectedTracerError

X = np.array([1.0, 2.0, 3.0])
RNG = np.random.default_rng(0)


def test_python_runs_once_per_signature():
    runs = []

    @fgrad.jit
    def f(x, y):
        runs.append(1)
        return x * y

    for _ in range(3):
        np.testing.assert_array_equal(f(X, 2.0), 2 * X)
    assert len(runs) == 1
    f(X, 3.0)  # values are no part of the signature
    assert len(runs) == 1
    f(X, 3)
    f(X.astype(np.float32), 3.0)
    f(X[:2], 3.0)
    f(X, np.float64(3.0))  # strong where 3.0 is weak
    assert len(runs) == 5
    assert f.cache_info().misses == 5 and f.cache_info().hits == 3
    f.clear_cache()
    assert f.cache_info().currsize == 0


def test_results_are_fresh():
    f = fgrad.jit(lambda x: (x, x, x.reshape(3, 1), X))
    a, b, c, d = f(X)
    for array in (a, b, c, d):
        array += 1
    np.testing.assert_array_equal(X, [1, 2, 3])
    np.testing.assert_array_equal(f(X)[3], X)


def test_closed_over_arrays_are_constants_as_recorded():
    weights = X.copy()
    f = fgrad.jit(lambda x: x * weights)
    f(X)
    weights[:] = 0
    np.testing.assert_array_equal(f(X), X * X)


def test_statics_by_position_and_name():
    def power(x, n, flag=True):
        return x**n if flag else x

    for f in (
        fgrad.jit(power, static_argnums=(1, 2)),
        fgrad.jit(power, static_argnums=(-2, -1)),
        fgrad.jit(power, static_argnames=("n", "flag")),
        fgrad.jit(static_argnames=["n", "flag"])(power),
    ):
        np.testing.assert_array_equal(f(X, 2), X**2)
        np.testing.assert_array_equal(f(X, n=3), X**3)
        np.testing.assert_array_equal(f(X, 3, False), X)
    with pytest.raises(ValueError, match="hashable"):
        fgrad.jit(power, static_argnums=1)(X, [1])
    with pytest.raises(ValueError, match="static_argnums has 7"):
        fgrad.jit(power, static_argnums=7)
    with pytest.raises(ValueError, match="'m', which is no argument"):
        fgrad.jit(power, static_argnames="m")
    f = fgrad.jit(lambda n: n + 1, static_argnums=0)
    assert f(1).dtype == np.int64 and f(1.0).dtype == np.float64


def test_methods_partials_and_refusals():
    class Model:
        def __init__(self, w):
            self.w = w

        @functools.partial(fgrad.jit, static_argnums=0)
        def apply(self, x):
            return x * self.w

    np.testing.assert_array_equal(Model(2.0).apply(X), 2 * X)
    np.testing.assert_array_equal(fgrad.jit(functools.partial(np.multiply, 3.0))(X), 3 * X)

    def generator(x):
        yield x

    for wrong in (3, generator, staticmethod(lambda x: x)):
        with pytest.raises(TypeError, match="jit expects a function"):
            fgrad.jit(wrong)
    with pytest.raises(TypeError, match=r"outputs must be arrays.*\['b'\]"):
        fgrad.jit(lambda x: {"a": x, "b": "text"})(X)
    with pytest.raises(TypeError, match="static_argnums"):
        fgrad.jit(lambda x, mode: x)(X, "fast")


def test_control_flow_names_line_and_remedy():
    def branch(x):
        return x if x > 0 else -x

    with pytest.raises(TracerBoolConversionError, match=r"(?s)test_jit.py:\d+.*jit of branch.*static_argnums"):
        fgrad.jit(branch)(1.0)
    with pytest.raises(TracerIntegerConversionError, match="(?s)range.*fori_loop"):
        fgrad.jit(lambda n: sum(range(n)))(3)


def test_leaks_are_caught():
    kept = []
    fgrad.jit(lambda x: kept.append(x) or x)(X)
    with pytest.raises(UnexpectedTracerError, match="jit of"):
        kept[0] + 1


def test_closing_over_an_outer_transform():
    assert fgrad.grad(lambda c: fgrad.jit(lambda y: y * c)(2.0))(3.0) == 2.0
    inner = fgrad.jit(lambda x: x * 2)
    np.testing.assert_array_equal(fgrad.jit(lambda x: inner(x) + inner(x))(X), 4 * X)


def update(params, grads, rate):
    return {k: p - rate * grads[k] for k, p in params.items()}


@pytest.mark.parametrize("shape", [(4, 3), (600, 400)])  # straight-line code, and tiles
def test_donated_arguments_are_written_over(shape):
    params = {k: np.full(shape, v) for k, v in (("a", 1.0), ("b", 2.0))}
    grads = {k: np.full(shape, v) for k, v in (("a", 0.5), ("b", -0.5))}
    before = {k: g.copy() for k, g in grads.items()}
    step = fgrad.jit(update, donate_argnums=0)
    for k in range(3):
        new = step(params, grads, 1.0)
        assert all(new[name] is params[name] for name in params)
        np.testing.assert_array_equal(new["a"], np.full(shape, 0.5 - 0.5 * k))
        np.testing.assert_array_equal(new["b"], np.full(shape, 2.5 + 0.5 * k))
    for name, g in grads.items():
        np.testing.assert_array_equal(g, before[name])
    assert step.cache_info() == (2, 1, 1024, 1)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: (x + y, x * 2),  # read again after the result is there
        lambda x, y: (x + y, x),  # returned
        lambda x, y: (x.T.T + y, x + 1),  # seen through a view
        lambda x, y: (fnp.cumsum(x + y, 0), x[::-1] + y),
    ],
)
@pytest.mark.parametrize("shape", [(4, 3), (600, 400)])
@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_donation_never_changes_a_result(f, shape):
    x, y = RNG.normal(size=shape), RNG.normal(size=shape)
    want = f(x.copy(), y)
    for got, expected in zip(fgrad.jit(f, donate_argnums=0)(x, y), want, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_what_may_not_be_written_to_is_left_alone():
    step = fgrad.jit(lambda x, y: x + y, donate_argnames="x")
    x = np.ones(3)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    for given, other in ((frozen, x), (x, x), (x[::-1], np.ones(3)), (x[:], x[1:2]), (x[:], np.ones(3))):
        held = given.copy()
        np.testing.assert_array_equal(step(given, other), held + other)
        np.testing.assert_array_equal(given, held)
    assert step(x=x, y=np.ones(3)) is x
    np.testing.assert_array_equal(fgrad.grad(lambda z: step(z, z).sum())(np.ones(2)), [2.0, 2.0])


def test_useless_and_contradictory_donations_are_told():
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float64\[2\]"):
        fgrad.jit(lambda x: x.sum(), donate_argnums=0)(np.ones(2))
    with pytest.raises(ValueError, match="both static and donated"):
        fgrad.jit(lambda x: x, static_argnums=0, donate_argnums=0)
    with pytest.raises(ValueError, match="donate_argnums has 1, but"):
        fgrad.jit(lambda x: x, donate_argnums=1)


def test_refused_arguments_are_named():
    f = fgrad.jit(lambda n, x, **options: x, static_argnums=0)
    with pytest.raises(TypeError, match=r"argument 1\['a'\]\[0\] of type str is not a valid array or number: 'w'"):
        f(3, {"a": ["w"]})
    with pytest.raises(TypeError, match=r"argument option: arrays of dtype object"):
        f(3, X, option=np.array([None]))


def test_integers_that_do_not_fit_are_an_error():
    double = fgrad.jit(lambda x: x * 2)
    assert double(2**61) == 2**62 and double(2**61).dtype == np.int64
    for x in (2**62, 2**70):
        with pytest.raises(OverflowError):
            double(x)


def test_disable_jit_is_local_to_the_thread():
    seen = []
    f = fgrad.jit(lambda x: seen.append(type(x)) or x)
    with fgrad.disable_jit():
        f(X)
        thread = threading.Thread(target=lambda: f(X))
        thread.start()
        thread.join()
    assert seen[0] is np.ndarray and seen[1] is not np.ndarray


def test_threads_share_one_jitted_function():
    f = fgrad.jit(lambda x: np.tanh(x) * 2)
    results = {}

    def work(k):
        results[k] = [f(np.full(4, float(k))) for _ in range(50)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, outs in results.items():
        for out in outs:
            np.testing.assert_array_equal(out, np.tanh(np.full(4, float(k))) * 2)


@pytest.mark.parametrize("x", [2, 2.0, True, np.float32(2), np.arange(3, dtype=np.int8), X])
@pytest.mark.parametrize(
    "f", [lambda x: x * 2, lambda x: x * 2.5, lambda x: x / 2, np.sin, lambda x: np.float32(3) * x, lambda x: x > 1]
)
def test_dtypes_are_those_of_eager_numpy(f, x):
    eager = np.asarray(f(x))
    assert fgrad.jit(f)(x).dtype == eager.dtype
    assert fgrad.eval_shape(f, x).dtype == eager.dtype
    if np.ndim(x):
        assert fgrad.vmap(f)(x).dtype == eager.dtype


def test_eval_shape_does_no_work():
    big = fgrad.ShapeDtypeStruct((10**6, 10**6), np.float32)
    assert fgrad.eval_shape(lambda x: (x @ x).sum(axis=0), big) == fgrad.ShapeDtypeStruct((10**6,), np.float32)
    with pytest.raises(ValueError, match="dtype"):
        fgrad.ShapeDtypeStruct((3,), None)


def test_ir_prints_and_checks():
    program = fgrad.make_ir(lambda x, y: np.tanh(x @ y) + 1)(np.ones((2, 3)), np.ones(3))
    program.check()
    text = str(program)
    assert "a: float64[2,3], b: float64[3]" in text and "tanh" in text and "add" in text
    repeated = fgrad.make_ir(lambda x: np.tanh(x) + np.tanh(x))(X)
    assert len(repeated.equations) == 3 and len(repeated.simplify().equations) == 2


def test_retraces_explain_themselves(caplog):
    f = fgrad.jit(lambda d, n: d["w"] * n, static_argnums=1)
    with caplog.at_level("INFO", "fgrad.jit"):
        f({"w": X}, 2)
        assert not caplog.records
        f({"w": X[:2]}, 2)
        f({"w": X[:2]}, 3)
        f({"w": X[:2], "b": 1.0}, 3)
    messages = [r.getMessage() for r in caplog.records]
    assert "argument 0['w'] is float64[2] where it was float64[3]" in messages[0]
    assert "static argument 1 is 3 where it was 2" in messages[1]
    assert "tree" in messages[2]


def test_retraces_name_arguments_as_callers_do(caplog):
    f = fgrad.jit(lambda n, x, *, y: x * n + y, static_argnums=0)
    with caplog.at_level("INFO", "fgrad.jit"):
        f(2, X, y=1.0)
        f(2, X[:2], y=1)
    assert "argument 1 is float64[2] where it was float64[3]; argument y is int64[]*" in caplog.records[0].getMessage()


def test_lowering_shows_programs_source_and_work():
    lowered = fgrad.jit(lambda x, y: np.tanh(x @ y)).lower(np.ones((2, 3)), np.ones(3))
    assert lowered.flops == 2 * 2 * 3 + 2 and lowered.bytes_in == 72 and lowered.bytes_out == 16
    assert "def make" in lowered.source
    for part in ("recorded", "simplified", "source", "flops"):
        assert part in str(lowered)


def test_fast_math_is_asked_for():
    f = lambda x: x * 0.0 + 0.0  # noqa: E731
    with np.errstate(invalid="ignore"):
        assert np.isnan(fgrad.jit(f)(np.array([np.inf]))).all()
    fast = fgrad.jit(f, fast_math=True)
    assert (fast(np.array([np.inf])) == 0).all() and not fast.lower(X).simplified.equations


def test_generated_lines_name_the_users_line():
    source = fgrad.jit(lambda x: np.tanh(x) * 2).lower(X).source
    assert "# tanh test_jit.py:" in source and "# mul test_jit.py:" in source

"""Generated CPU code equals the Program it comes from: values, freshness, threads, special values, tiles."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fgrad
import fgrad.numpy as fnp
from fgrad.backend import cpu, memory, regions
from fgrad.backend.cpu import Compiled
from fgrad.ops import blas

RNG = np.random.default_rng(0)


def compiled(f, *args):
    return Compiled(fgrad.make_ir(f)(*args).simplify())


# ------------------------------------------------------------------------------------------------ random Programs

UNARY = [
    fnp.tanh,
    fnp.sin,
    fnp.exp,
    fnp.abs,
    fnp.negative,
    fnp.square,
    fgrad.nn.sigmoid,
    fgrad.nn.softplus,
    fgrad.nn.relu,
]
BINARY = [fnp.add, fnp.subtract, fnp.multiply, fnp.maximum, fnp.minimum, lambda x, y: x / (1 + y * y), fnp.logaddexp]
SHAPING = [
    lambda x: x - fnp.mean(x, axis=-1, keepdims=True),
    lambda x: x * fnp.sum(x, axis=0),
    lambda x: fgrad.nn.softmax(x, axis=-1),
    lambda x: fnp.concatenate([x[:, 1:], x[:, :1]], axis=1),
    lambda x: (x.T @ x) @ x.T if x.shape[0] == x.shape[1] else x @ (x.T @ x),
    lambda x: fnp.where(x > 0, x, 0.0),
    lambda x: fnp.at(x)[0].add(1.0),
    lambda x: fnp.clip(x, -1.0, 1.0),
    lambda x: x**3,
    lambda x: x.reshape(-1).reshape(x.shape),
]


@st.composite
def programs(draw):
    """Return a random function of two matrices."""
    steps = draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 5), st.integers(0, 5)),
            min_size=1,
            max_size=8,
        )
    )

    def f(x, y):
        values = [x, y]
        for kind, which, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            if kind == 0:
                values.append(UNARY[which % len(UNARY)](fnp.tanh(a)))
            elif kind == 1:
                values.append(BINARY[which % len(BINARY)](a, b))
            else:
                values.append(SHAPING[which % len(SHAPING)](fnp.tanh(a)))
        return values[-1], fnp.sum(values[-1] * values[len(values) // 2])

    return f


@given(programs(), st.sampled_from([(3, 4), (1, 5), (4, 4)]), st.sampled_from([np.float64, np.float32]))
def test_random_programs(f, shape, dtype):
    x, y = (RNG.normal(size=shape).astype(dtype) for _ in range(2))
    rtol = 1e-12 if dtype == np.float64 else 2e-4
    for got, want in zip(fgrad.jit(f)(x, y), f(x, y), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
    loss = lambda x, y: f(x, y)[1]  # noqa: E731
    got, want = fgrad.jit(fgrad.grad(loss))(x, y), fgrad.grad(loss)(x, y)
    np.testing.assert_allclose(got, want, rtol=rtol * 10, atol=rtol * 10)


@given(programs(), st.sampled_from([(5, 4), (3, 3), (300, 40)]))
def test_random_programs_in_threads(f, shape):
    """One compiled Program, called from several threads at once with numbers of their own, gives each its own."""
    program = fgrad.make_ir(fgrad.value_and_grad(lambda x, y: f(x, y)[1]))(*[np.ones(shape)] * 2)
    compiled = Compiled(program.simplify())
    pairs = [[RNG.normal(size=shape) for _ in range(2)] for _ in range(4)]
    want = [program.compute(*pair) for pair in pairs]
    start = threading.Barrier(len(pairs))

    def work(pair):
        start.wait()
        return [compiled.compute(*pair) for _ in range(5)]

    with ThreadPoolExecutor(len(pairs)) as pool:
        found = list(pool.map(work, pairs))
    for results, expected in zip(found, want, strict=True):
        for result in results:
            for g, w in zip(result, expected, strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-10)


@given(programs(), st.sampled_from([(7, 4), (16, 3)]))
def test_random_programs_in_tiles(f, shape):
    x, y = (RNG.normal(size=shape) for _ in range(2))
    program = fgrad.make_ir(fgrad.value_and_grad(lambda x, y: f(x, y)[1]))(x, y)
    want = program.compute(x, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regions, "SMALLEST", 1)
        patch.setattr(regions, "TILE", 9)
        got = Compiled(program.simplify()).compute(x, y)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-10)


# ------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("exponent", [0.5, -0.5, 1.5, 2.0, 3, -1, 0])
def test_powers_have_the_bits_of_the_operator(dtype, exponent):
    x = np.array([-np.inf, -0.0, 0.0, 4, -1, np.inf, np.nan, 0.25], dtype)
    with np.errstate(all="ignore"):
        got, want = fgrad.jit(lambda x: x**exponent)(x), x**exponent
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def number_chain(x):
    y = fnp.exp(x) / x - fnp.log(x) + fnp.sqrt(x)
    return fnp.where(y > 1.0, fnp.sin(y) * y**2.5, fnp.tanh(y) / (x - 2.0))


@pytest.mark.parametrize("x", [0.5, 2.0, 0.0, -0.0, -1.0, 1e3, 1e308, np.inf, -np.inf, np.nan])
def test_numbers_give_inf_and_nan_as_numpy_does(x):
    c = compiled(number_chain, x)
    assert "math." in c.source
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(c.compute(x)[0], number_chain(np.float64(x)), rtol=1e-14)
        np.testing.assert_allclose(c.compute(np.float64(x))[0], number_chain(np.float64(x)), rtol=1e-14)


def test_integers_and_float32_numbers_keep_their_types():
    f = fgrad.jit(lambda x: x * x + 1)
    assert f(3).dtype == np.int64 and f(np.float32(3)).dtype == np.float32
    with np.errstate(over="ignore"):
        assert f(np.int8(100)) == np.int8(100) * np.int8(100) + 1


# ----------------------------------------------------------------------------------------------- memory and threads


def network(w, x):
    h = fnp.tanh(x @ w)
    return fnp.sum(fnp.where(h > 0, h, 0.1 * h) @ w.T, axis=1), h


def test_arena_never_shows_through(monkeypatch):
    """Whatever is in the arena before a call, results are the same and share no memory with it or with each other."""
    w, x = RNG.normal(size=(4, 4)), RNG.normal(size=(3, 4))
    want = network(w, x)
    monkeypatch.setattr(memory.Layout, "build", poisoned_but_for_borders(memory.Layout.build))
    c = compiled(network, w, x)
    first = c.compute(w, x)
    kept = [a.copy() for a in first]
    second = c.compute(w * 2, x)
    for a, b, k, v in zip(first, second, kept, want, strict=True):
        np.testing.assert_array_equal(a, k)
        np.testing.assert_allclose(a, v, rtol=1e-12)
        assert not np.shares_memory(a, b) and not np.shares_memory(a, w) and a.flags.owndata and a.flags.writeable


def rosenbrock(x):
    return fnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


PLACING = [
    rosenbrock,
    lambda x: fnp.sum(x[2:5] * x[::-2][:3]),
    lambda x: fnp.sum(fnp.tanh(x[1:4]) ** 2) + fnp.sum(fnp.exp(x[1:4])),
    lambda x: fnp.sum((x[:1] * x)[3:] ** 2),
    lambda x: fnp.sum(fnp.outer(x, x)[1::2, ::3] ** 2),
]


@pytest.mark.parametrize("f", PLACING)
@pytest.mark.parametrize("transform", [fgrad.grad, lambda f: fgrad.grad(lambda x: fnp.sum(fgrad.grad(f)(x) ** 2))])
def test_values_computed_where_they_are_placed(f, transform, monkeypatch):
    """Around a placed value there are zeros at every call, whatever the one before had."""
    monkeypatch.setattr(memory.Layout, "build", poisoned_but_for_borders(memory.Layout.build))
    gradient = transform(f)
    jitted = fgrad.jit(gradient)
    for x in (RNG.normal(size=8), np.full(8, np.nan), np.full(8, np.inf), RNG.normal(size=8)):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(jitted(x), gradient(x), rtol=1e-12)


def poisoned_but_for_borders(build):
    def poisoned(self):
        arrays = build(self)
        for a, view in zip(arrays, self.views, strict=True):
            if not self.bordered[view.block] and a.flags.c_contiguous and a.size:
                a.reshape(-1).view(np.uint8).fill(255)
        return arrays

    return poisoned


def test_a_placed_value_is_written_once():
    c = compiled(fgrad.grad(rosenbrock), np.ones(10))
    assert "fill" not in c.source and "copyto" not in c.source
    assert "fill" in compiled(fgrad.grad(rosenbrock), np.ones(2**18)).source


def test_values_that_die_give_their_block_away():
    c = compiled(lambda x: fnp.sum(fnp.sin(fnp.sin(fnp.sin(fnp.sin(x))))), np.ones(1000))
    assert sum(c.layout.sizes) == 8064 or sum(c.layout.sizes) == 8000


def test_two_threads_in_one_function():
    f = fgrad.jit(fgrad.value_and_grad(lambda w, x: network(w, x)[0].sum()))
    w, xs = RNG.normal(size=(4, 4)), RNG.normal(size=(8, 3, 4))
    want = [f(w, x) for x in xs]
    failures = []

    def work(k):
        for _ in range(100):
            value, gradient = f(w, xs[k])
            if value != want[k][0] or (gradient != want[k][1]).any():
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_nothing_grows_over_many_calls(no_collector):
    f = fgrad.jit(lambda x, s: fnp.sum(fnp.tanh(x) * s))
    x = np.ones(8)
    for k in range(100):
        f(x, float(k))
    before = len(gc.get_objects())
    for k in range(2_000):
        f(x, float(k))
    assert len(gc.get_objects()) - before < 50
    assert f.cache_info().currsize == 1


def test_signatures_are_bounded(monkeypatch):
    import fgrad.transforms.jit as module

    monkeypatch.setattr(module, "CACHE_SIZE", 10)
    f = fgrad.jit(lambda x: x + 1)
    for n in range(50):
        assert f(np.zeros(n)).shape == (n,)
    assert f.cache_info().currsize == 10
    assert f(np.zeros(3))[0] == 1


def test_constants_die_with_the_function():
    import weakref

    class Array(np.ndarray):
        pass

    def make():
        constant = np.ones(1000).view(Array)
        f = fgrad.jit(lambda x: x * np.asarray(constant))
        f(np.ones(1000))
        return f, weakref.ref(constant)

    f, alive = make()
    assert alive() is not None
    del f
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("shape", [(3,), (600_000,), ()], ids=["arena", "tiles", "numbers"])
def test_what_is_generated_goes_with_the_function(shape, no_collector):
    """At once, without the cycle collector: constants may be large, and so are the sources of many signatures."""
    import linecache
    import weakref

    sources = len(linecache.cache)
    f = fgrad.jit(lambda x: fnp.exp(x) * x + fnp.tanh(x).sum())
    f(np.ones(shape))
    f(np.ones(shape))
    f.cache_info()
    alive = weakref.ref(f.__wrapped__), weakref.ref(next(iter(f._cache.values())).compiled)
    assert len(linecache.cache) > sources
    del f
    assert [ref() for ref in alive] == [None, None]
    assert len(linecache.cache) == sources


# ------------------------------------------------------------------------------------------------------------ tiles


@pytest.mark.parametrize("shape", [(200_003,), (700, 301), (3, 100, 701)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiles_of_large_arrays(shape, dtype):
    x, b = RNG.normal(size=shape).astype(dtype), RNG.normal(size=shape[1:]).astype(dtype)

    def f(x, b):
        y = fnp.tanh(x * 2 + b)
        z = y - fnp.mean(y, axis=-1, keepdims=True) if len(shape) > 1 else y
        return fnp.sum(z * z), z, fnp.max(y), fnp.min(y), fnp.sum(z, axis=0)

    jitted = fgrad.jit(f)
    out = jitted(x, b)
    rtol = 1e-12 if dtype == np.float64 else 1e-4
    for got, want in zip(out, f(x, b), strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * 100)
        assert got.dtype == dtype and got.flags.owndata
    gradient = fgrad.jit(fgrad.grad(lambda x: f(x, b)[0]))(x)
    np.testing.assert_allclose(gradient, fgrad.grad(lambda x: f(x, b)[0])(x), rtol=rtol * 10, atol=rtol * 10)
    again = jitted(x, b)
    np.testing.assert_array_equal(again[0], out[0])  # sums do not depend on timing


def test_regions_are_found_where_they_pay():
    x = np.ones((600, 400))
    region = regions.find_region(fgrad.make_ir(lambda x: fnp.sum(fnp.exp(fnp.sin(x) * x)))(x))
    assert region is not None and region.rows == 600 and region.modes == ["add"] and not region.after.equations
    assert regions.find_region(fgrad.make_ir(lambda x: fnp.exp(fnp.sin(x) * x))(x[:50])) is None


# ------------------------------------------------------------------------------------------------------------- BLAS


def test_blas_threads_are_restored():
    blas._blas.look()
    if blas._blas.get is None:
        pytest.skip("NumPy's BLAS here has no thread setter")
    before = blas._blas.get()
    f = fgrad.jit(lambda x: (x @ x).sum())
    f(np.ones((8, 8)))
    assert blas._blas.get() == before
    with blas.one_thread():
        with blas.one_thread():
            assert blas._blas.get() == 1
        assert blas._blas.get() == 1
    assert blas._blas.get() == before
    with pytest.raises(ValueError, match="shape"):
        Compiled(fgrad.make_ir(lambda x: x @ x)(np.ones((8, 8)))).compute(np.ones((8, 7)))
    assert blas._blas.get() == before


def test_errors_in_generated_code_show_its_source():
    c = compiled(lambda x: fnp.tanh(x) * 2, np.ones(3))
    with pytest.raises(ValueError) as caught:
        c.compute(np.ones(4))
    lines = [str(entry.statement) for entry in caught.traceback]
    assert any("b0" in line for line in lines)


# ------------------------------------------------------------------------------------------------------------ scans


def rnn(params, xs, h0):
    w_x, w_h, b = params

    def step(h, x):
        h = fnp.tanh(x @ w_x + h @ w_h + b)
        return h, (h.sum(), x)

    h, (sums, inputs) = fgrad.lax.scan(step, h0, xs)
    return fnp.sum(h * h) + fnp.sum(sums) + fnp.sum(inputs * sums[:, None, None])


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_scans_leave_the_loop_what_does_not_depend_on_the_carry(steps):
    params = [RNG.normal(size=s) for s in ((3, 4), (4, 4), (4,))]
    xs, h0 = RNG.normal(size=(steps, 2, 3)), RNG.normal(size=(2, 4))
    f = fgrad.value_and_grad(rnn, (0, 1, 2))
    want, got = f(params, xs, h0), fgrad.jit(f)(params, xs, h0)
    for a, b in zip(fgrad.tree.leaves(got), fgrad.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
        assert a.flags.owndata and a.flags.writeable


def test_gradients_of_weights_are_collected_after_the_loop():
    params = [RNG.normal(size=s) for s in ((3, 4), (4, 4), (4,))]
    xs, h0 = RNG.normal(size=(5, 2, 3)), RNG.normal(size=(2, 4))
    program = fgrad.make_ir(fgrad.grad(rnn))(params, xs, h0).simplify()
    backward = [eq for eq in program.equations if eq.prim.name == "scan"][-1]
    from fgrad.backend import loops

    scan = loops.Scan(**backward.params)
    left, collected = loops._without_collectors(scan)
    assert len(collected) == 3 and left.carries == scan.carries - 3
    totals = [c.total.equations[0].prim.name for c in collected]
    assert sorted(totals) == ["dot_general", "dot_general", "reduce_sum"]


LENDING = [
    lambda x, y: fnp.tanh(x[:-1] + x[1:] * y[1:]) * 2 + 1,
    lambda x, y: fnp.tanh(x[::-1] * 2 + x) * y,
    lambda x, y: fnp.tanh((x @ fnp.ones((4, 4))).T.reshape(x.shape) * x + y) * 3,
    lambda x, y: (fnp.tanh(x.T.reshape(x.shape) + x) * 2 + y, x.T),
]


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@pytest.mark.parametrize("f", LENDING)
@pytest.mark.parametrize("donated", [(), (0,), (0, 1)])
def test_regions_read_views_of_what_comes_before(f, donated, monkeypatch):
    """No result is a view of an argument, none is written where a view is still read, and nothing is copied before."""
    monkeypatch.setattr(regions, "SMALLEST", 1)
    monkeypatch.setattr(regions, "TILE", 9)
    x, y = RNG.normal(size=(24, 4)), RNG.normal(size=(24, 4))
    want = f(x, y)
    jitted = fgrad.jit(f, donate_argnums=donated)
    for _ in range(2):
        given = [x.copy(), y.copy()]
        got = jitted(*given)
        for g, w in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, want)], strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-12)
            assert g.flags.writeable
        kept = [a for k, a in enumerate(given) if k not in donated]
        for a, original in zip(kept, [v for k, v in enumerate((x, y)) if k not in donated], strict=True):
            np.testing.assert_array_equal(a, original)
            assert not any(np.shares_memory(a, g) for g in (got if isinstance(got, tuple) else (got,)))


SHIFTED = [
    lambda x: fnp.sum((x[1:] - x[:-1]) ** 2),
    lambda x: fnp.sum((x[2:] - 2 * x[1:-1] + x[:-2]) ** 2),
    lambda x: fnp.sum(x[:2] ** 2) + fnp.sum(fnp.sin(x[-3:])),
    lambda x: fnp.sum(fnp.tanh(x[:, 1:] * x[:, :-1])) if x.ndim > 1 else fnp.sum(x[3:] * x[:-3]),
]


@pytest.mark.parametrize("f", SHIFTED)
@pytest.mark.parametrize("shape", [(8,), (8, 5)])
def test_large_parts_that_overlap_are_added_once(f, shape, monkeypatch):
    """Sums of parts that are placed have the bits of the sum, signs of zeros included, without zeros to add them to."""
    monkeypatch.setattr(cpu, "_LARGEST_BORDERED", 0)
    x = RNG.normal(size=shape)
    x.flat[3:5] = -0.0
    program = fgrad.make_ir(fgrad.grad(f))(x).simplify()
    c = Compiled(program)
    for values in (x, np.zeros(shape), np.full(shape, -0.0)):
        got, want = c.compute(values)[0], program.compute(values)[0]
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_no_zeros_are_made_for_parts_that_overlap(monkeypatch):
    monkeypatch.setattr(cpu, "_LARGEST_BORDERED", 0)
    assert "fill" not in compiled(fgrad.grad(SHIFTED[0]), np.ones(8)).source

"""What follows a product is done before its store: values and gradients are NumPy's, and fewer bytes move."""

import functools

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fgrad
import fgrad.numpy as fnp
from fgrad.backend.gpu import program as gpu_programs
from fgrad.backend.gpu.fusion import Step
from fgrad.backend.gpu.program import GpuProgram
from fgrad.program import Var
from fgrad.triton_kernels import check_call, check_kernel, compile_call, require_clean
from fgrad.triton_kernels.runtime import interpret_launch, launching
from fgrad.triton_kernels.traffic import traffic
from tests.gpu.cases import CASES as CASES_OF_THE_PAGE

ACTIVATIONS = {
    "relu": fgrad.nn.relu,
    "gelu by tanh": fgrad.nn.gelu,
    "gelu": functools.partial(fgrad.nn.gelu, approximate=False),
    "silu": fgrad.nn.silu,
    "tanh": fnp.tanh,
    "sigmoid": fgrad.nn.sigmoid,
    "softplus": fgrad.nn.softplus,
}
TOLERANCES = {np.float64: 1e-12, np.float32: 2e-5, np.float16: 6e-3, ml_dtypes.bfloat16: 5e-2}


def draw(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


X, W, BIAS, CT = draw(24, 40), draw(40, 32, seed=1), draw(32, seed=2), draw(24, 32, seed=3)


def compiled(f, *args):
    return GpuProgram(fgrad.make_ir(f)(*args).simplify())


def compare(f, *args, tolerance=2e-5):
    """Run a function's Program on the twin, and on NumPy in float32 at least; return the names of the kernels."""
    mine = compiled(f, *args)
    precise = [x.astype(np.float32) if x.dtype.itemsize < 4 else x for x in args]
    wanted = fgrad.make_ir(f)(*precise).simplify().compute(*precise)
    for result, kind, want in zip(mine.compute(*args), mine.out_types, wanted, strict=True):
        assert (result.dtype, result.shape) == (kind.dtype, kind.shape)
        wide = want.astype(np.float64)
        scale = max(1, np.abs(wide[np.isfinite(wide)]).max(initial=0))
        np.testing.assert_allclose(result.astype(np.float64), wide, rtol=tolerance, atol=tolerance * scale)
    return [launch.kernel for launch in traffic(mine.compute, *args)]


def moved(f, *args):
    """Return the bytes that all kernels of a function move, and those without epilogues."""
    with pytest.MonkeyPatch.context() as patch:
        found = sum(launch.moved for launch in traffic(compiled(f, *args).compute, *args))
        patch.setattr(gpu_programs, "with_epilogues", lambda program: program)
        return found, sum(launch.moved for launch in traffic(compiled(f, *args).compute, *args))


def layer(act, x, w, b):
    return act(x @ w + b)


def pulled(act, x, w, b, ct):
    return fgrad.vjp(functools.partial(layer, act), x, w, b)[1](ct)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_layers_are_one_kernel(name, dtype):
    args = [x.astype(dtype) for x in (X, W, BIAS)]
    f = functools.partial(layer, ACTIVATIONS[name])
    assert compare(f, *args, tolerance=TOLERANCES[dtype]) == ["matmul_kernel"]
    here, without = moved(f, *args)
    (kind,) = compiled(f, *args).out_types
    assert here == sum(x.nbytes for x in args) + kind.size * kind.dtype.itemsize
    assert without == here + 2 * kind.size * args[0].itemsize


@pytest.mark.parametrize("dtype", TOLERANCES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_of_layers(name, dtype):
    def gradient(x, w, b, ct):
        return fgrad.grad(lambda x, w, b: (ACTIVATIONS[name](x @ w + b) * ct).sum(), (0, 1, 2))(x, w, b)

    compare(gradient, *[x.astype(dtype) for x in (X, W, BIAS, CT)], tolerance=TOLERANCES[dtype])


def value_and_gradients(act, x, w, b, w2, ct):
    out, pull = fgrad.vjp(lambda x, w, b, w2: act(x @ w + b) @ w2, x, w, b, w2)
    return out, *pull(ct)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_slopes_are_part_of_products_backward(name):
    f = functools.partial(value_and_gradients, ACTIVATIONS[name])
    args = X, W, BIAS, draw(32, 16, seed=4), draw(24, 16, seed=5)
    kernels = compare(f, *args, tolerance=1e-4)
    assert [kernel for kernel in kernels if kernel != "matmul_kernel"] == ["kernel_0"]  # the gradient of the bias
    here, without = moved(f, *args)
    assert here <= without - CT.nbytes


CASES = {
    "a residual behind": (lambda x, w, b, r: fgrad.nn.gelu(x @ w + b) + r, X, W, BIAS, CT),
    "a residual before": (lambda x, w, b, r: fgrad.nn.relu(x @ w + b + r), X, W, BIAS, CT),
    "a gate": (lambda x, w, v: fgrad.nn.silu(x @ w) * (x @ v), X, W, draw(40, 32, seed=6)),
    "two arrays beside": (lambda x, w, r, s: fnp.where(r > 0, x @ w, s), X, W, CT, CT * 2),
    "a batch": (lambda x, w: fnp.tanh(x @ w), draw(3, 5, 7), draw(3, 7, 4)),
    "three axes": (lambda x, w, b: fnp.tanh(x @ w + b), draw(3, 5, 7), draw(7, 4), draw(4)),
    "computed from one beside": (lambda x, w, r: (x @ w) * (1 - fnp.tanh(r) ** 2), X, W, CT),
    "an array known only later": (lambda x, w, r, v: fnp.tanh(x @ w) * (r @ v), X, W, X, W[:, ::-1].copy()),
    "a bool result": (lambda x, w: (x @ w > 0) & (x @ w < 1), X, W),
}


@pytest.mark.parametrize("case", CASES)
def test_what_follows_is_part_of_the_product(case):
    kernels = compare(*CASES[case])
    assert set(kernels) == {"matmul_kernel"} or case == "a bool result"


@pytest.mark.parametrize("case", CASES)
def test_epilogues_are_clean(case):
    f, *args = CASES[case]
    assert check_call(compiled(f, *args).compute, *args) == []


APART = {
    "a reduction of the product": (lambda x, w: fnp.exp(x @ w - (x @ w).max(1, keepdims=True)), X, W),
    "a softmax": (lambda x, w: fgrad.nn.softmax(x @ w), X, W),
    "a view beside": (lambda x, w, r: fnp.tanh(x @ w + r.T), X, W, CT.T.copy()),
    "a column": (lambda x, w, r: (x @ w) * r, X, W, draw(24, 1)),
    "no elements": (lambda x, w, b: fnp.tanh(x @ w + b), X[:0], W, BIAS),
    "more arrays than two": (lambda x, w, *r: fnp.tanh(((x @ w) * r[0] + r[1]) * r[2]), X, W, CT, CT + 1, CT + 2),
    "its own other values": (lambda x, w: (fnp.sin(h := x @ w), fnp.cos(h), h.T @ h, fnp.tanh(h)), X, W),
    "numbers of the program": (lambda x, w: (x @ w) * np.float32(0.3) + np.full((1, 1), 2, np.float32), X, W),
}


@pytest.mark.parametrize("case", APART)
def test_what_cannot_be_part_of_a_product_is_right_beside_it(case):
    compare(*APART[case])


def test_nan_and_infinities_pass():
    x = X.copy()
    x[0, 0], x[1, 1], x[2, 2] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        for act in ACTIVATIONS.values():
            compare(functools.partial(layer, act), x, np.abs(W), BIAS)


def test_a_value_that_no_memory_needs_stays_with_the_kernel_that_reads_it():
    f = lambda x, w: fgrad.nn.standardize(fnp.tanh(x @ w))  # noqa: E731
    plan = compiled(f, X, W).plan
    assert [part.equation.prim.name for part in plan.parts if isinstance(part, Step)] == ["dot_general"]
    here, without = moved(f, X, W)
    assert here == without


def test_both_results_come_from_one_launch_where_backward_needs_what_was_activated():
    def f(x, w, b, ct):
        return fgrad.nn.gelu(x @ w + b), *pulled(fgrad.nn.gelu, x, w, b, ct)

    (step, *_) = (part for part in compiled(f, X, W, BIAS, CT).plan.parts if isinstance(part, Step))
    assert len(step.equation.outputs) == 2
    compare(f, X, W, BIAS, CT, tolerance=1e-4)


def test_results_of_products_are_given_away_as_they_are():
    made = []

    def f(x, w, b):
        return fgrad.nn.gelu(x @ w + b), x @ w

    mine = compiled(f, draw(3, 5, 7), draw(7, 4), draw(4))
    with launching(interpret_launch, allocated=made.append):
        results = mine.compute(draw(3, 5, 7), draw(7, 4), draw(4))
    assert {id(x) for x in results} == {id(x) for x in made}


def test_01_offsets_beyond_int32():
    x, w, r = (np.zeros(shape, np.float16) for shape in ((70_000, 512, 16), (70_000, 16, 64), (70_000, 512, 64)))
    launches = []
    with launching(launches.append):
        compiled(lambda x, w, r: fgrad.nn.gelu(x @ w) + r, x, w, r).compute(x, w, r)
    (launch,) = launches
    last = tuple(size - 1 for size in (*np.atleast_1d(launch.grid), 1, 1)[:3])
    require_clean(check_kernel(launch.kernel, launch.grid, *launch.args, programs=[last], **launch.meta))


def test_21_sizes_of_one_block_share_a_kernel():
    seen = set()
    for rows in (17, 19, 21):
        launches = []
        with launching(launches.append):
            compiled(functools.partial(layer, fgrad.nn.gelu), X[:1].repeat(rows, 0), W, BIAS).compute(
                X[:1].repeat(rows, 0), W, BIAS
            )
        (launch,) = launches
        seen.add((launch.meta["EPILOGUE"], launch.meta["M"], launch.meta["N"]))
    assert len(seen) == 1


def test_lowering_counts_what_a_product_does_besides():
    low = fgrad.jit(functools.partial(layer, fnp.tanh)).lower(X, W, BIAS, target="sm_90")
    (part,) = low.parts
    assert part.flops == 2 * 24 * 40 * 32 + 2 * 24 * 32
    assert low.moved == low.least


def size_of(values):
    return sum(v.type.size * v.type.dtype.itemsize for v in {id(v): v for v in values}.values())


def given_and_taken(program, plan):
    """Return the values that generated kernels must read or write: what products and callers give them and take.

    Each counts once, however many kernels read it.
    """
    kinds = {id(part.equation): part.kind for part in plan.parts if isinstance(part, Step)}
    roots, generated, found = {}, set(), []

    def note(values, mine):
        values = [roots.get(id(v), v) for v in values if isinstance(v, Var)]
        found.extend(v for v in values if (id(v) in generated) == mine)

    for eq in program.equations:
        kind = kinds.get(id(eq))
        if kind == "view":
            roots[id(eq.outputs[0])] = roots.get(id(eq.inputs[0]), eq.inputs[0])
        elif kind is None:
            note(eq.inputs, mine=False)
            generated.update(id(v) for v in eq.outputs)
        else:
            note(eq.inputs, mine=True)
    note(program.outputs, mine=True)
    return found


def test_kernels_of_a_transformer_block_move_little_more_than_products_give_and_take():
    """But for partial sums, which are a twentieth of it."""
    function, *args = CASES_OF_THE_PAGE["transformer block (W10), value and gradient"]()
    block = compiled(function, *args)
    moved = sum(size_of(k.loads.values()) + size_of(k.stores) for k in block.plan.kernels)
    assert moved <= 1.3 * size_of(given_and_taken(block.program, block.plan))


# ------------------------------------------------------------------------------------------------- random programs

UNARY = (fnp.tanh, fgrad.nn.relu, fgrad.nn.gelu, fnp.cos, lambda x: 0.5 * x - 1, lambda x: fgrad.nn.softmax(x))
BINARY = (fnp.add, fnp.multiply, fnp.maximum, lambda x, y: fnp.where(x > y, x, -y), lambda x, y: x @ y / 3)

steps = st.lists(
    st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=10
)


@pytest.mark.heavy
@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(steps, st.integers(1, 3))
def test_random_programs_around_products(chosen, results):
    def f(*xs):
        values = list(xs)
        values.append(values[0] @ values[1])
        for unary, which, one, two in chosen:
            x, y = values[-1 - one % len(values)], values[-1 - two % len(values)]
            values.append(UNARY[which](x) if unary else BINARY[which % len(BINARY)](x, y))
        return values[-results:]

    def loss(*xs):
        return sum([(fnp.cos(y) * (1 + k)).sum() for k, y in enumerate(f(*xs))])

    args = [draw(6, 6, seed=k) / 2 for k in range(3)]
    compare(lambda *xs: tuple(f(*xs)), *args, tolerance=1e-3)
    compare(fgrad.grad(loss, (0, 1, 2)), *args, tolerance=1e-3)


@pytest.mark.heavy
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "gfx942"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_epilogues_use_tensor_cores_and_do_not_spill(name, target):
    args = [np.empty(shape, ml_dtypes.bfloat16) for shape in ((512, 512), (512, 512), (512,), (512, 512))]

    def f(x, w, b, r):
        return ACTIVATIONS[name](x @ w + b) + r

    ((_, reports),) = compile_call(compiled(f, *args).compute, *args, targets=[target]).items()
    report = reports[target]
    assert (report.spill_bytes, report.problems, report.load_bits) == (0, (), 128)
    assert report.tensor_cores

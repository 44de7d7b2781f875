"""Functions of `fgrad.kernels` inside Programs for a GPU: by their pairs where asked for, or where that moves less."""

import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
from fgrad import kernels, placement
from fgrad.backend.gpu.program import GpuProgram
from fgrad.kernel_pair import kernel_op
from fgrad.triton_kernels import check_call
from fgrad.triton_kernels.traffic import traffic
from tests.triton.standin import DeviceArray
from tests.triton_ops.test_kernels import CASES, agree

case_parameter = pytest.mark.parametrize("case", CASES, ids=str)
RNG = np.random.default_rng(0)


def draw(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


def pulled(call, ct):
    """Return the function of active arguments that gives the value and its cotangents."""

    def run(*active):
        out, pull = fgrad.vjp(call, *active)
        return out, *pull(ct)

    return run


def by_hand(launch):
    """Return whether a kernel is one of the library's; results are packed on their way, which may take a copy."""
    return not launch.kernel.startswith(("kernel_", "joined", "copy_kernel"))


@pytest.mark.heavy
@pytest.mark.parametrize("impl", ["numpy", "triton", None])
@case_parameter
def test_a_program_for_the_gpu_is_numpys_function(case, impl):
    args, places = case.draw(np.float32)
    active = [args[i] for i in places]
    out = case.of("numpy", args, places)(*active)
    ct = draw(*out.shape, dtype=out.dtype)
    found = fgrad.jit(pulled(case.of(impl, args, places), ct), device="twin")(*active)
    wanted = pulled(case.of("numpy", args, places), ct)(*active)
    for got, want in zip(found, wanted, strict=True):
        agree(got, want, 64)


@pytest.mark.heavy
@case_parameter
def test_a_pair_in_a_program_launches_what_the_pair_launches(case):
    args, places = case.draw(np.float32)
    active = [args[i] for i in places]
    call = case.of("triton", args, places)
    ct = draw(*call(*active).shape)
    for f in (call, pulled(call, ct)):
        alone, inside = traffic(f, *active), traffic(fgrad.jit(f, device="twin"), *active)
        assert list(filter(by_hand, inside)) == list(filter(by_hand, alone))


GENERATED = ("softmax", "log_softmax", "layer_norm", "rms_norm", "gelu", "gelu_tanh", "silu", "swiglu", "geglu")


@pytest.mark.parametrize("name", GENERATED)
def test_generated_kernels_move_no_more_than_pairs(name):
    count = {"layer_norm": 3, "rms_norm": 2, "swiglu": 2, "geglu": 2}.get(name, 1)
    args = [draw(32, 64), *[draw(64) if "norm" in name else draw(32, 64) for _ in range(count - 1)]]
    function = getattr(kernels, name)

    def moved(impl):
        def loss(*xs):
            return (function(*xs, impl=impl) ** 2).sum()

        gradient = fgrad.grad(loss, tuple(range(count)))
        return [sum(t.moved for t in traffic(fgrad.jit(f, device="twin"), *args)) for f in (loss, gradient)]

    generated, pair = moved(None), moved("triton")
    assert generated[0] <= 1.01 * pair[0]
    assert generated[1] < pair[1]
    assert moved("numpy") == generated


def test_cross_entropy_is_generated_and_moves_what_its_pair_does():
    logits, labels = draw(64, 256), np.arange(64) * 5 % 256

    def loss(logits, labels, impl=None):
        return kernels.cross_entropy(logits, labels, impl=impl).sum()

    for f in (loss, fgrad.grad(loss)):
        compiled = GpuProgram(fgrad.make_ir(f)(logits, labels).simplify())
        assert not compiled.leaves_the_gpu()
        mine = sum(t.moved for t in traffic(compiled.compute, logits, labels))
        pair = sum(t.moved for t in traffic(f, logits, labels, impl="triton"))
        assert mine <= 1.05 * pair
        np.testing.assert_allclose(compiled.compute(logits, labels)[0], f(logits, labels), rtol=1e-5, atol=1e-6)
        assert check_call(compiled.compute, logits, labels) == []


@pytest.mark.parametrize("at", [[[0], [4], [2]], [[-1], [-5], [0]]])
def test_one_entry_of_each_row_is_a_sum_where_rows_are_read_anyway(at):
    x, at = draw(3, 5), np.array(at)
    x[0, 1], x[1, 1] = np.nan, -np.inf

    def f(x, at):
        return np.take_along_axis(x, at * 1, axis=1) - fgrad.nn.softmax(x).max(1, keepdims=True)

    with np.errstate(invalid="ignore"):
        want = f(x, at)
    compiled = GpuProgram(fgrad.make_ir(f)(x, at).simplify())
    np.testing.assert_allclose(compiled.compute(x, at)[0], want, rtol=1e-5)
    assert not compiled.leaves_the_gpu()
    alone = GpuProgram(fgrad.make_ir(lambda x, at: np.take_along_axis(x, at, axis=1))(x, at).simplify())
    assert [part.equation.prim.name for part in alone.plan.parts] == ["take_along"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex128, np.int64, bool])
def test_a_reshape_of_what_is_not_packed_is_a_copy_by_a_kernel(dtype):
    x = (9 * draw(3, 4, 5)).astype(dtype)

    def f(x):
        return x.transpose(2, 0, 1).reshape(5, 12)[::-1]

    compiled = GpuProgram(fgrad.make_ir(f)(x).simplify())
    np.testing.assert_array_equal(compiled.compute(x)[0], f(x))
    names = [t.kernel for t in traffic(compiled.compute, x)]
    assert names == ([] if dtype is np.complex128 else ["copy_kernel"])
    assert not compiled.leaves_the_gpu()


# ------------------------------------------------------------------------------------- what is chosen for a device


def attend(q, k, v, impl=None):
    return kernels.attention(q, k, v, causal=True, impl=impl)


ATTENDED = draw(1, 2, 64, 16), draw(1, 2, 64, 16), draw(1, 2, 64, 16)
CHOSEN = {
    "attention": (attend, *ATTENDED),
    "embedding": (lambda x, impl=None: kernels.embedding(x, np.array([3, 1, 3]), impl=impl), draw(5, 8)),
    "gather": (lambda x, impl=None: kernels.gather(x, np.array([3, 1]), axis=1, impl=impl), draw(2, 5)),
    "scatter_add": (
        lambda x, u, impl=None: kernels.scatter_add(x, np.array([3, 1, 3]), u, impl=impl),
        draw(5, 8),
        draw(3, 8),
    ),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_recorded_for_a_device_has_the_pair_where_it_moves_less(name):
    f, *args = CHOSEN[name]
    (alone,) = traffic(lambda *xs: f(*xs, impl="triton"), *args)
    assert traffic(fgrad.jit(f, device="twin"), *args) == [alone]
    definition = traffic(fgrad.jit(lambda *xs: f(*xs, impl="numpy"), device="twin"), *args)
    assert alone.moved < sum(t.moved for t in definition)


def test_the_choice_reaches_into_checkpoints_and_gradients():
    f = fgrad.checkpoint(lambda *xs: attend(*xs))
    gradient = fgrad.grad(lambda *xs: f(*xs).sum(), (0, 1, 2))
    names = {t.kernel for t in traffic(fgrad.jit(gradient, device="twin"), *ATTENDED)}
    assert {"forward_kernel", "dq_kernel", "dkv_kernel"} <= names
    for got, want in zip(fgrad.jit(gradient, device="twin")(*ATTENDED), gradient(*ATTENDED), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_no_choice_is_made_where_nothing_is_recorded_for_a_device():
    inner = fgrad.jit(attend)
    for f in (attend, inner, fgrad.jit(lambda *xs: inner(*xs), device="twin")):
        assert all(t.kernel != "forward_kernel" for t in traffic(f, *ATTENDED))
    assert placement.device() is None


def test_kernels_that_would_run_once_an_example_are_not_chosen():
    f = fgrad.vmap(lambda q, k, v: attend(q[None], k[None], v[None]))
    whole = [x.reshape(2, 1, 64, 16) for x in ATTENDED]
    names = {t.kernel for t in traffic(fgrad.jit(f, device="twin"), *whole)}
    assert "forward_kernel" not in names


def test_a_pair_of_ones_own_runs_where_the_arrays_are(card):
    double = kernel_op(lambda x: 2 * x, lambda ct: 2 * ct, lambda x: x + x, name="double")
    result = fgrad.jit(fgrad.grad(lambda x: (double(x) * x).sum()), device="cuda")(ATTENDED[0])
    assert type(result) is DeviceArray
    np.testing.assert_allclose(fgrad.to_numpy(result), 4 * ATTENDED[0], rtol=1e-6)


@pytest.mark.parametrize("name", ["attention", "embedding"])
def test_pairs_run_on_a_card(card, name):
    f, *args = CHOSEN[name]
    result = fgrad.jit(f, device="cuda")(*args)
    assert type(result) is DeviceArray
    np.testing.assert_allclose(fgrad.to_numpy(result), f(*args), rtol=1e-4, atol=1e-5)

"""Jitted functions on a device: the stand-in's launches, recorded by its driver and interpreted; and the twin."""

import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
import fgrad.numpy as fnp
from fgrad.program import Program
from fgrad.triton_kernels.traffic import traffic
from tests.triton.standin import DeviceArray

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 40)).astype(np.float32)
W = RNG.normal(size=(40, 8)).astype(np.float32)


def mean_of_softmax(x, scale):
    return (fgrad.nn.softmax(x * scale) * fnp.arange(40.0, dtype=np.float32)).mean(0)


def loss(w, x):
    return (fnp.tanh(x @ w) ** 2).sum()


def same(result, expected):
    np.testing.assert_allclose(fgrad.to_numpy(result), expected, rtol=1e-4, atol=1e-5)


def test_arguments_are_brought_to_a_device_and_results_stay(card):
    result = fgrad.jit(mean_of_softmax, device="cuda")(X, 2.0)
    assert type(result) is DeviceArray
    same(result, mean_of_softmax(X, 2.0))
    assert card.launches > 0


def test_arrays_on_a_device_are_computed_there(card):
    f = fgrad.jit(mean_of_softmax)
    there = fgrad.device_put(X, "cuda")
    result = f(there, 2.0)
    assert type(result) is DeviceArray
    same(result, f(X, 2.0))
    assert type(f(X, 2.0)) is np.ndarray


def test_launches_go_to_the_current_stream_of_the_arrays_device(card):
    there = DeviceArray(X, number=1)
    result = fgrad.jit(lambda x: fnp.tanh(x) + 1)(there)
    assert (result.number, card.launched_on) == (1, 1)
    assert card.stream == 0x77


def test_constants_are_brought_once(card, monkeypatch):
    table = RNG.normal(size=40).astype(np.float32)
    f = fgrad.jit(lambda x: x * table)
    there = fgrad.device_put(X, "cuda")
    f(there)
    from fgrad.triton_kernels.runtime import home_of

    home = home_of(there)
    monkeypatch.setattr(home, "from_numpy", lambda x: pytest.fail("a constant is brought again"))
    same(f(there), X * table)


def test_constants_of_what_is_differentiated_are_brought_once(card, monkeypatch):
    from fgrad.triton_kernels.runtime import gpu_home

    table = RNG.normal(size=(6, 40)).astype(np.float32)
    gradient = fgrad.grad(fgrad.jit(lambda w: loss(w, table), device="cuda"))
    gradient(W)
    home = gpu_home()
    bring, shapes = home.from_numpy, []
    monkeypatch.setattr(home, "from_numpy", lambda x: shapes.append(x.shape) or bring(x))
    same(gradient(W), fgrad.grad(loss)(W, table))
    assert W.shape in shapes
    assert table.shape not in shapes


def test_numbers_alone_are_brought_too(card):
    result = fgrad.jit(lambda x: x * 2 + 1, device="cuda")(3.0)
    assert type(result) is DeviceArray
    same(result, 7.0)


def test_gradient_inside(card):
    result = fgrad.jit(fgrad.grad(loss), device="cuda")(W, X)
    same(result, fgrad.grad(loss)(W, X))


def test_gradient_of_a_jitted_function_runs_generated_kernels_backward(card):
    f = fgrad.jit(loss)
    w, x = fgrad.device_put((W, X), "cuda")
    before = card.launches
    result = fgrad.grad(f)(w, x)
    assert type(result) is DeviceArray
    same(result, fgrad.grad(loss)(W, X))
    assert card.launches > before + 2


TRANSFORMS = {
    "grad": lambda f: fgrad.grad(f)(W, X),
    "value and grad": lambda f: fgrad.value_and_grad(f, (0, 1))(W, X),
    "vjp": lambda f: fgrad.vjp(f, W, X)[1](np.float32(2)),
    "jvp": lambda f: fgrad.jvp(f, (W, X), (W, X)),
    "linearize": lambda f: fgrad.linearize(f, W, X)[1](W, X),
    "vmap": lambda f: fgrad.vmap(f)(np.stack([W, 2 * W]), np.stack([X, X])),
    "vmap of grad": lambda f: fgrad.vmap(fgrad.grad(f), (0, None))(np.stack([W, 2 * W]), X),
    "jvp of grad": lambda f: fgrad.jvp(lambda w: fgrad.grad(f)(w, X), (W,), (W,))[1],
    "grad of checkpoint": lambda f: fgrad.grad(fgrad.checkpoint(f))(W, X),
}


def results_of(transform, f):
    """Return what a transform of a function gives, and check that it is what it gives of `loss`."""
    results, expected = fgrad.tree.leaves(transform(f)), fgrad.tree.leaves(transform(loss))
    for got, want in zip(results, expected, strict=True):
        same(got, want)
    return results


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_of_what_is_jitted_for_a_device_run_there(card, transform):
    results = results_of(transform, fgrad.jit(loss, device="cuda"))
    assert all(type(x) is DeviceArray for x in results)
    assert card.launches >= len(traffic(transform, fgrad.jit(loss, device="twin"))) > 0


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_what_is_jitted_for_the_twin_run_there(name, monkeypatch):
    f = fgrad.jit(loss, device="twin")
    assert all(isinstance(x, (np.ndarray, np.generic)) for x in results_of(TRANSFORMS[name], f))
    if "checkpoint" not in name:  # whose own Program only calls others
        monkeypatch.setattr(Program, "compute", lambda *args: pytest.fail("something is computed by NumPy"))
    TRANSFORMS[name](f)


def test_a_function_of_what_is_jitted_for_a_device(card):
    f = fgrad.jit(loss, device="cuda")
    result = fgrad.grad(lambda w: fnp.sin(f(2 * w, X)) * 3)(W)
    same(result, fgrad.grad(lambda w: fnp.sin(loss(2 * w, X)) * 3)(W))


@pytest.mark.parametrize(("fast_math", "value"), [(True, 0), (False, np.nan)])
def test_transforms_keep_options(card, fast_math, value):
    f = fgrad.jit(lambda x: x * 0, device="cuda", fast_math=fast_math)
    one, infinite = np.ones(2, np.float32), np.full(2, np.inf, np.float32)
    same(fgrad.jvp(f, (infinite,), (one,))[0], [value] * 2)


def test_another_functions_device_counts_inside_it():
    inner = fgrad.jit(loss, device="twin")
    assert traffic(fgrad.jit(lambda w: inner(w, X)), W) == []
    assert len(traffic(fgrad.jit(lambda w: inner(w, X), device="twin"), W)) > 0


def test_a_checkpoint_is_computed_again(card):
    policy = fgrad.checkpoint_policies.nothing_saveable
    f = fgrad.checkpoint(fgrad.jit(loss), policy=policy)
    w, x = fgrad.device_put((W, X), "cuda")
    _, pull = fgrad.vjp(f, w, x)
    once = card.launches
    pulled = pull(fgrad.device_put(np.ones((), np.float32), "cuda"))
    assert card.launches - once > once  # forward again, and backward
    same(pulled[0], fgrad.grad(loss)(W, X))


def test_launches_are_replayed_on_arrays_of_their_own(card):
    f = fgrad.jit(mean_of_softmax, device="cuda", replay=True)
    first = f(X, 2.0)
    same(first, mean_of_softmax(X, 2.0))
    second = f(X + 1, 3.0)
    same(second, mean_of_softmax(X + 1, 3.0))
    same(first, mean_of_softmax(X, 2.0))
    assert type(second) is DeviceArray


def test_calls_of_the_array_library_are_not_replayed(card):
    with pytest.raises(NotImplementedError, match="replay=True takes kernels and views alone"):
        fgrad.jit(lambda x: fnp.sort(x), device="cuda", replay=True)(X)


def test_calls_without_a_kernel_run_where_the_arrays_are(card):
    same(fgrad.jit(lambda x: fnp.sort(x * 2, 1) + 1, device="cuda")(X), np.sort(X * 2, 1) + 1)


def test_what_has_no_kernel_is_left_to_the_array_library_and_marked():
    low = fgrad.jit(lambda x: fnp.sort(x * 2, 1) + 1).lower(X, target="sm_90")
    assert [part.kind for part in low.parts] == ["generated", "library", "generated"]


def test_the_twin_is_a_device():
    f = fgrad.jit(mean_of_softmax, device="twin")
    same(f(X, 2.0), mean_of_softmax(X, 2.0))
    same(fgrad.jit(fgrad.grad(loss), device="twin")(W, X), fgrad.grad(loss)(W, X))


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", 3])
def test_unknown_devices_are_refused(device):
    with pytest.raises(ValueError, match="jit: device: got"):
        fgrad.jit(loss, device=device)


def test_without_a_gpu_the_error_says_so(monkeypatch):
    from fgrad.triton_kernels import interop, runtime

    with pytest.raises(ImportError, match="CuPy"):
        fgrad.jit(loss, device="cuda")(W, X)
    monkeypatch.setattr(runtime, "gpu_home", lambda: None)
    monkeypatch.setattr(interop, "has_gpu", lambda: False)
    with pytest.raises(RuntimeError, match='device="cuda" needs a GPU, and there is none'):
        fgrad.jit(loss, device="cuda")(W, X)


@pytest.mark.heavy
def test_the_script_for_a_card(card, capsys, monkeypatch):
    from fgrad.triton_kernels import tune
    from fgrad.triton_kernels.bench import device
    from tests.gpu import card as script

    monkeypatch.setattr(tune, "REPEATS", 1)
    monkeypatch.setattr(device, "_CEILING_BYTES", 1 << 12)
    monkeypatch.setattr(script, "RUNS", 2)
    known = script.programs(elements=16384)
    names = ("softmax, 1,024 wide", "layer norm and GELU, backward, 1,024 wide", "softmax, 16,384 wide")
    assert script.main(lambda x: DeviceArray(np.array(x)), {name: known[name] for name in names}) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:56].strip() for line in lines[1:4]] == list(names)
    assert all(line.endswith("%") for line in lines[1:4])
    assert lines[-1] == "0 failures"

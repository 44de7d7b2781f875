"""Tensors on a stand-in for a GPU: moving, devices, torch's errors for tensors of several, and `torch.cuda`."""

import copy
import pickle

import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
import fgrad.compat as torch
from tests.triton.standin.arrays import DeviceArray

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64]
SHAPES = [(), (0,), (1,), (3, 1), (2, 3)]
MIXED = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"


@pytest.fixture(autouse=True)
def _card(card):
    return card


def numbers(t):
    return t.detach().cpu().numpy()


# ------------------------------------------------------------------------------------------------------- moving


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_there_and_back_is_the_same(shape, dtype):
    here = (torch.arange(6) - 2)[: int(np.prod(shape))].reshape(shape).to(dtype)
    there = here.cuda()
    assert type(there._data) is DeviceArray
    assert (there.device, there.is_cuda, there.get_device()) == (torch.device("cuda:0"), True, 0)
    assert (there.dtype, there.shape) == (dtype, here.shape)
    assert there.cpu().equal(here) and not there.cpu().is_cuda
    assert there.tolist() == here.tolist()


def test_what_is_there_already_is_not_copied():
    there = torch.ones(2, device="cuda")
    for same in (there.cuda(), there.cuda(0), there.to("cuda"), there.to("cuda:0"), there.to(there), there.to(0)):
        assert same is there
    assert there.to("cuda", copy=True) is not there
    here = torch.ones(2)
    assert here.cpu() is here and here.to("cpu") is here


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.to("cuda", torch.float64),
        lambda x: x.to(torch.device("cuda"), dtype=torch.float64, non_blocking=True),
        lambda x: x.to(torch.ones(1, dtype=torch.float64, device="cuda")),
        lambda x: x.type_as(torch.ones(1, dtype=torch.float64, device="cuda")),
        lambda x: x.type("torch.cuda.DoubleTensor"),
        lambda x: x.double().cuda(torch.device("cuda", 0)),
    ],
)
def test_ways_to_say_where(ask):
    x = torch.ones(2, requires_grad=True)
    there = ask(x)
    assert there.is_cuda and there.dtype is torch.float64
    there.sum().backward()
    assert x.grad.device == torch.device("cpu") and x.grad.dtype is torch.float32
    assert x.grad.tolist() == [1, 1]


def test_gradients_come_back_to_where_a_tensor_was():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    there = x.cuda()
    assert there.grad_fn.name() == "ToCopyBackward0"
    seen = []
    there.register_hook(lambda g: seen.append(g.device))
    (there * there).sum().cpu().backward(create_graph=True)
    assert not x.grad.is_cuda and x.grad.tolist() == [2, 4] and seen == [torch.device("cuda:0")]
    (second,) = torch.autograd.grad(x.grad.sum(), x)
    assert second.tolist() == [2, 2]


def test_a_leaf_on_a_gpu_has_its_gradient_there():
    x = torch.ones(2, 3, device="cuda", requires_grad=True)
    (x * 2).sum().backward()
    alias = x.grad
    (x * 2).sum().backward()
    assert x.grad is alias and x.grad.is_cuda and x.grad.tolist() == [[4] * 3] * 2


def test_no_grad_moves_are_not_recorded():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not x.cuda().requires_grad


def test_transforms_of_functions_on_a_gpu():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    f = lambda row: (row.sigmoid() * row).sum()  # noqa: E731
    for transform in (lambda f: torch.func.vmap(torch.func.grad(f)), lambda f: torch.func.jacrev(torch.func.vmap(f))):
        there = transform(f)(x.cuda())
        assert there.is_cuda
        np.testing.assert_allclose(numbers(there), numbers(transform(f)(x)), rtol=1e-5)
    moved = torch.func.grad(lambda x: x.cuda().sum().cpu())(x)
    assert not moved.is_cuda and moved.tolist() == [[1, 1], [1, 1]]


# ------------------------------------------------------------------------------------------------------ factories


@pytest.mark.parametrize(
    "make",
    [
        lambda d: torch.zeros(2, 3, device=d),
        lambda d: torch.ones((2,), device=d, dtype=torch.int64),
        lambda d: torch.full((2,), 7.5, device=d),
        lambda d: torch.arange(1, 5, device=d),
        lambda d: torch.linspace(0, 1, 3, device=d),
        lambda d: torch.logspace(0, 1, 3, device=d),
        lambda d: torch.eye(2, 3, device=d),
        lambda d: torch.tensor([[1, 2], [3, 4]], device=d),
        lambda d: torch.as_tensor(np.arange(3.0), device=d),
        lambda d: torch.scalar_tensor(2.5, device=d),
        lambda d: torch.rand(3, device=d),
        lambda d: torch.randn(3, device=d),
        lambda d: torch.randint(0, 9, (4,), device=d),
        lambda d: torch.randperm(5, device=d),
        lambda d: torch.normal(0.0, 1.0, (3,), device=d),
        lambda d: torch.tril_indices(3, 3, device=d),
        lambda d: torch.zeros_like(torch.ones(2), device=d),
        lambda d: torch.rand_like(torch.ones(2, device=d)),
        lambda d: torch.randint_like(torch.ones(2, device=d), 5),
        lambda d: torch.full_like(torch.ones(2, device=d), 3),
        lambda d: torch.ones(2, device=d).new_zeros(3),
        lambda d: torch.ones(2).new_ones(3, device=d),
        lambda d: torch.ones(2, device=d).new_full((2,), 3.0),
        lambda d: torch.ones(2, device=d).new_tensor([1, 2]),
        lambda d: torch.ones(2, device=d).new([1.0, 2.0]),
        lambda d: torch.ones(2, device=d).new(2, 3),
        lambda d: torch.ones(2, device=d).new_empty_strided((2, 2), (1, 2)),
        lambda d: torch.zeros(2, out=torch.empty(0, device=d)),
        lambda d: torch.bernoulli(torch.full((9,), 0.5, device=d)),
        lambda d: torch.multinomial(torch.ones(4, device=d), 2),
        lambda d: torch.poisson(torch.ones(4, device=d)),
        lambda d: torch.ones(5, device=d).normal_(),
    ],
)
def test_factories_make_the_same_values_on_either_device(make):
    torch.manual_seed(3)
    there = make("cuda")
    torch.manual_seed(3)
    here = make("cpu")
    assert there.is_cuda and not here.is_cuda
    assert (there.dtype, there.shape, there.stride()) == (here.dtype, here.shape, here.stride())
    np.testing.assert_array_equal(numbers(there), numbers(here))


def test_a_default_device():
    assert torch.get_default_device() == torch.device("cpu")
    with torch.device("cuda"):
        assert torch.zeros(2).is_cuda and torch.tensor(1.0).is_cuda and not torch.zeros(2, device="cpu").is_cuda
        with torch.device("cpu"):
            assert not torch.zeros(2).is_cuda
        assert torch.get_default_device() == torch.device("cuda:0")
    torch.set_default_device("cuda")
    try:
        assert torch.rand(1).is_cuda
    finally:
        torch.set_default_device(None)
    assert not torch.rand(1).is_cuda


def test_arrays_of_a_gpu_become_tensors_on_their_memory_and_the_other_way_round():
    array = fgrad.device_put(np.arange(3.0), "cuda")
    t = torch.as_tensor(array)
    t[0] = 7
    assert t.is_cuda and fgrad.to_numpy(array)[0] == 7
    assert t.__cuda_array_interface__["data"][0] == t.data_ptr()
    assert not torch.tensor(array).equal(t.mul_(2)) and torch.tensor(array).is_cuda
    with pytest.raises(AttributeError, match="Can't get __cuda_array_interface__ on non-CUDA tensor type"):
        _ = torch.ones(1).__cuda_array_interface__


# --------------------------------------------------------------------------------------- several devices at once


@pytest.mark.parametrize(
    "mix",
    [
        lambda a, b: a + b,
        lambda a, b: b * a,
        lambda a, b: torch.where(a > 0, a, b),
        lambda a, b: a.add_(b),
        lambda a, b: b.add_(a),
        lambda a, b: torch.maximum(a, b),
        lambda a, b: a.lerp(b, 0.5),
        lambda a, b: a.clamp(b),
        lambda a, b: a / b.requires_grad_(),
        lambda a, b: torch.cat([a, b]),
        lambda a, b: torch.stack([a, b]),
        lambda a, b: a @ b.cuda() + b,
    ],
)
def test_tensors_of_two_devices_do_not_mix(mix):
    with pytest.raises(RuntimeError, match=MIXED):
        mix(torch.ones(2, 2, device="cuda"), torch.ones(2, 2))


@pytest.mark.parametrize(
    "mix", [torch.mm, torch.matmul, torch.dot, torch.cat, torch.nn.functional.linear, torch.index_select]
)
def test_functions_of_tensors_of_two_devices_name_both(mix):
    a, b = torch.ones(2, 2), torch.ones(2, 2, device="cuda")
    args = {
        torch.dot: (a[0], b[0]),
        torch.cat: ([a, b],),
        torch.index_select: (a, 0, torch.zeros(1, dtype=torch.int64, device="cuda")),
    }
    with pytest.raises(RuntimeError, match="found at least two devices, cpu and cuda:0!"):
        mix(*args.get(mix, (a, b)))


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, s: x * s,
        lambda x, s: s - x,
        lambda x, s: torch.where(x > 1, x, s),
        lambda x, s: torch.maximum(x, s),
        lambda x, s: x**s,
        lambda x, s: x.clone().mul_(s),
    ],
)
def test_numbers_of_the_cpu_mix_with_tensors_of_a_gpu(mix):
    def run(device):
        x = torch.tensor([1.0, 3.0], device=device, requires_grad=True)
        s = torch.tensor(2.0, requires_grad=True)
        out = mix(x, s)
        assert out.device.type == device
        out.sum().backward()
        assert not s.grad.is_cuda and x.grad.device == x.device
        return [numbers(t) for t in (out, x.grad, s.grad)]

    for there, here in zip(run("cuda"), run("cpu")):
        np.testing.assert_allclose(there, here, rtol=1e-5)


def test_numbers_of_a_gpu_do_not_mix_with_tensors_of_the_cpu():
    with pytest.raises(RuntimeError, match=MIXED):
        torch.ones(2) + torch.tensor(1.0, device="cuda")


def test_copy_and_setitem_cross_devices():
    x = torch.zeros(3, device="cuda")
    source = torch.ones(3, requires_grad=True)
    y = x.clone()
    y.copy_(source * 2)
    y[0] = 5
    y[1:] = torch.tensor([7.0, 8.0])
    y[torch.tensor([True, False, False])] = 1.5
    assert y.tolist() == [1.5, 7, 8] and y.is_cuda
    y.sum().backward()
    assert source.grad.tolist() == [0, 0, 0] and not source.grad.is_cuda
    here = torch.zeros(2)
    here.copy_(torch.ones(2, device="cuda"))
    assert here.tolist() == [1, 1] and not here.is_cuda


def test_indices_may_lie_on_the_cpu():
    x = torch.arange(4.0).cuda().requires_grad_()
    for index in (torch.tensor([1, 1]), torch.tensor([1, 1]).cuda(), torch.tensor([False, True, False, False]), [1, 1]):
        picked = x[index]
        assert picked.is_cuda and picked.tolist()[0] == 1
    with pytest.raises(
        RuntimeError, match="indices should be either on cpu or on the same device as the indexed tensor"
    ):
        torch.ones(2)[torch.zeros(1, dtype=torch.int64, device="cuda")]
    x[torch.tensor([1, 1])].sum().backward()
    assert x.grad.is_cuda and x.grad.tolist() == [0, 2, 0, 0]


# ------------------------------------------------------------------------------------------------------- errors


def test_numpy_is_refused():
    there = torch.ones(2, device="cuda")
    message = (
        "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )
    for ask in (lambda: there.numpy(), lambda: np.asarray(there), lambda: np.array(there)):
        with pytest.raises(TypeError) as caught:
            ask()
        assert str(caught.value) == message
    assert there.numpy(force=True).tolist() == [1, 1] and there.cpu().numpy().tolist() == [1, 1]
    assert (there.sum().item(), float(there[0]), int(there[1]), bool(there[0])) == (2, 1, 1, True)


def test_a_gradient_of_another_device_is_refused():
    x = torch.ones(2, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError) as caught:
        x.grad = torch.ones(2)
    assert str(caught.value) == (
        "attempting to assign a gradient with device type 'cpu' to a tensor with device type 'cuda'. Please ensure "
        "that the gradient and the tensor are on the same device"
    )
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cuda:0 but got cpu"):
        (x * 2).backward(torch.ones(2))
    (x * 2).sum().backward(torch.tensor(3.0))
    assert x.grad.tolist() == [6, 6]


def test_a_function_that_answers_on_another_device_is_refused():
    class Sent(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.cpu()

    x = torch.ones(2, device="cuda", requires_grad=True)
    message = "Function SentBackward returned an invalid gradient at index 0 - expected device cuda:0 but got cpu"
    with pytest.raises(RuntimeError, match=message):
        Sent.apply(x).sum().backward()


def test_a_function_gets_zeros_where_its_outputs_are():
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            assert g.is_cuda and h.is_cuda
            return g * 2 + h * 3

    x = torch.ones(2, device="cuda", requires_grad=True)
    Two.apply(x)[0].sum().backward()
    assert x.grad.is_cuda and x.grad.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda x: x.cuda("cpu"), RuntimeError, "Invalid device, must be cuda device"),
        (lambda x: x.to("cuda:9"), RuntimeError, "CUDA error: invalid device ordinal"),
        (lambda x: x.to("mps"), RuntimeError, "mps"),
        (
            lambda x: torch.ones(2).set_(x.cuda()),
            RuntimeError,
            'Attempted to set the storage of a tensor on device "cpu"',
        ),
        (lambda x: torch.add(x, x, out=x.cuda()), RuntimeError, "on the same device"),
        (lambda x: x.cuda().pin_memory(), RuntimeError, "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors"),
    ],
)
def test_refusals(ask, error, message):
    with pytest.raises(error, match=message):
        ask(torch.ones(2))


# --------------------------------------------------------------------------------------- printing, copying, memory


def test_printing_says_where():
    there = torch.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    assert repr(there) == "tensor([1., 2.], device='cuda:0', requires_grad=True)"
    assert repr(there.detach().double()) == "tensor([1., 2.], device='cuda:0', dtype=torch.float64)"
    assert repr(torch.zeros(0, 2, device="cuda")) == "tensor([], device='cuda:0', size=(0, 2))"
    assert there.type() == "torch.cuda.FloatTensor"


def test_copies_stay_on_the_device():
    there = torch.arange(3.0).cuda().requires_grad_()
    there.sum().backward()
    for made in (copy.deepcopy(there), pickle.loads(pickle.dumps(there))):
        assert made.is_cuda and made.requires_grad and made.tolist() == there.tolist()
    assert copy.deepcopy(there).grad.is_cuda
    packed = []
    with torch.autograd.graph.save_on_cpu():
        y = there * there
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.device) or t, lambda t: t):
        there * there
    assert packed == [torch.device("cuda:0")] * 2
    (g,) = torch.autograd.grad(y.sum(), there)
    assert g.is_cuda and g.tolist() == [0, 2, 4]


def test_views_share_memory_and_versions():
    x = torch.zeros(2, 3, device="cuda")
    row, column, wide = x[0], x.t()[1], x.view(6)
    wide[0] = 1
    row.add_(1)
    assert x.tolist() == [[2, 1, 1], [0, 0, 0]] and column.tolist() == [1, 0]
    assert row._base is x and row.data_ptr() == x.data_ptr() and x._version == column._version == 2
    e = torch.ones(1, device="cuda").expand(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        e.add_(1)


# -------------------------------------------------------------------------------------------------------- torch.cuda


def test_the_namespace():
    assert torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.device_count() == 2
    assert torch.cuda.current_device() == 0 and torch.device(1) == torch.device("cuda:1")
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1 and torch.ones(1, device="cuda").device.index == 1
    with torch.cuda.device_of(torch.ones(1, device="cuda:1")):
        assert torch.cuda.current_device() == 1
    with torch.cuda.device_of(torch.ones(1)):
        assert torch.cuda.current_device() == 0
    torch.cuda.set_device("cuda:1")
    try:
        assert torch.ones(1).cuda().device == torch.device("cuda", 1)
    finally:
        torch.cuda.set_device(0)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() == torch.cuda.memory_reserved() == 0
    assert torch.cuda.get_device_capability() == (9, 0) and torch.cuda.get_device_name(0) == "stand-in"
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.set_device("cpu")


def test_two_gpus_do_not_mix():
    a, b = torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")
    assert b.sum().device.index == 1 and b.cuda(0).device.index == 0
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cuda:1!"):
        a + b
    with pytest.raises(RuntimeError, match="gradient located on device with index '1' to a tensor located on device"):
        a.requires_grad_().grad = b


def test_where_there_is_no_gpu_torch_says_so(monkeypatch):
    from fgrad.triton_kernels.runtime import _HOMES

    monkeypatch.delitem(_HOMES, DeviceArray)
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    for ask in (torch.ones(1).cuda, lambda: torch.ones(1, device="cuda"), torch.cuda.current_device, torch.cuda.init):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            ask()
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        torch.device(0)


@pytest.mark.filterwarnings("ignore::UserWarning")  # which anomaly mode gives, with the forward call
def test_anomaly_mode_looks_at_arrays_of_a_gpu():
    x = torch.zeros(2, device="cuda", requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = (x.sqrt() * 0).sum()
        with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
            y.backward()


def test_checkpoints_and_hooks_work_there():
    x = torch.ones(2, 3, device="cuda", requires_grad=True)
    seen = []
    y = torch.utils.checkpoint.checkpoint(lambda x: (x.exp() * x).tanh(), x, use_reentrant=False)
    y.register_hook(lambda g: seen.append(g.is_cuda) or g * 2)
    y.sum().backward()
    here = x.detach().cpu().requires_grad_()
    ((here.exp() * here).tanh() * 2).sum().backward()
    assert seen == [True] and x.grad.is_cuda
    np.testing.assert_allclose(numbers(x.grad), numbers(here.grad), rtol=1e-5)


def test_a_training_loop_runs_there_as_on_the_cpu():
    def train(device):
        torch.manual_seed(0)
        x, target = torch.randn(8, 5).to(device), torch.randint(0, 3, (8,)).to(device)
        weights = [torch.randn(5, 16).to(device).requires_grad_(), torch.randn(16, 3).to(device).requires_grad_()]
        losses = []
        for _ in range(5):
            hidden = torch.nn.functional.dropout(torch.relu(x @ weights[0]), 0.1)
            loss = torch.nn.functional.cross_entropy(hidden @ weights[1], target)
            for w in weights:
                w.grad = None
            loss.backward()
            with torch.no_grad():
                for w in weights:
                    assert w.grad.device == w.device
                    w -= 0.1 * w.grad
            losses.append(loss.item())
        return losses

    np.testing.assert_allclose(train("cuda"), train("cpu"), rtol=1e-4)

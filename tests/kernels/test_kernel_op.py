"""`kernel_op` on kernels that are NumPy functions: what runs when, and what is refused. No Triton is needed."""

import numpy as np
import pytest

import fgrad
import fgrad.compat as torch
from fgrad.check import LAWS, check_grads, check_push


class Scaled:
    """y = x * w and the norm of each row, with kernels that count their launches."""

    def __init__(self):
        self.launches = {"forward": 0, "backward": 0}
        self.op = fgrad.kernel_op(
            self.forward, self.backward, self.reference, name="scaled", outputs=("y", "norms"), wrt=(0, 1)
        )

    def forward(self, x, w, *, power=2):
        self.launches["forward"] += 1
        return (x * w) ** power, np.sqrt((x**2).sum(-1))

    def backward(self, ct, x, w, norms, *, power=2):
        self.launches["backward"] += 1
        np.testing.assert_array_equal(norms, np.sqrt((x**2).sum(-1)))
        inner = ct * power * (x * w) ** (power - 1)
        return inner * w, (inner * x).sum(0)

    def reference(self, x, w, *, power):
        return (x * w) ** power, np.sqrt((x**2).sum(-1))


@pytest.fixture
def scaled():
    return Scaled()


X, W = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([1.0, -1.0, 2.0])


def test_value_and_gradient_are_the_kernels(scaled):
    value, (dx, dw) = fgrad.value_and_grad(lambda x, w: scaled.op(x, w).sum(), (0, 1))(X, W)
    assert scaled.launches == {"forward": 1, "backward": 1}
    assert value == ((X * W) ** 2).sum()
    np.testing.assert_allclose(dx, 2 * X * W**2)
    np.testing.assert_allclose(dw, (2 * X**2 * W).sum(0))


def test_gradient_of_one_input(scaled):
    np.testing.assert_allclose(fgrad.grad(lambda w: scaled.op(X, w).sum())(W), (2 * X**2 * W).sum(0))


def test_options(scaled):
    np.testing.assert_allclose(scaled.op(X, W, power=3), (X * W) ** 3)
    check_grads(lambda x, w: scaled.op(x, w, power=3), (X, W), order=2)


def test_jit_launches_the_kernels(scaled):
    f = fgrad.jit(fgrad.grad(lambda x: scaled.op(x, W).sum()))
    for _ in range(3):
        np.testing.assert_allclose(f(X), 2 * X * W**2)
    assert scaled.launches == {"forward": 3, "backward": 3}


def test_vmap_launches_once_per_example(scaled):
    xs = np.stack([X, 2 * X, 3 * X])
    out = fgrad.vmap(scaled.op, (0, None))(xs, W)
    assert scaled.launches["forward"] == 3
    np.testing.assert_allclose(out, (xs * W) ** 2)
    grads = fgrad.vmap(fgrad.grad(lambda x: scaled.op(x, W).sum()))(xs)
    np.testing.assert_allclose(grads, 2 * xs * W**2)


def test_laws_hold(scaled):
    for law in LAWS.values():
        if (
            law.applies(scaled.op.forward) and law.check is not check_push
        ):  # what is kept for backward is no output to differentiate
            law.check(scaled.op.forward, X, W, power=2)
    check_grads(scaled.op, (X, W), order=2)


def test_higher_derivatives_are_those_of_the_reference(scaled):
    hessian = fgrad.hessian(lambda w: scaled.op(X, w).sum())(W)
    np.testing.assert_allclose(hessian, np.diag((2 * X**2).sum(0)))


def test_forward_mode_is_that_of_the_reference(scaled):
    out, t = fgrad.jvp(lambda x: scaled.op(x, W), (X,), (np.ones_like(X),))
    np.testing.assert_allclose(out, (X * W) ** 2)
    np.testing.assert_allclose(t, 2 * X * W**2)


def test_a_single_output():
    op = fgrad.kernel_op(lambda x: np.exp(x), lambda ct, out: ct * out, np.exp, name="exponential")
    assert repr(op) == "<kernel op exponential(x)>"
    np.testing.assert_allclose(fgrad.grad(lambda x: op(x).sum())(W), np.exp(W))
    np.testing.assert_allclose(fgrad.hessian(lambda x: op(x).sum())(W), np.diag(np.exp(W)))


def test_lists_are_arrays():
    op = fgrad.kernel_op(lambda x: 2 * x, lambda ct: 2 * ct, lambda x: 2 * x, name="double")
    np.testing.assert_array_equal(op([1.0, 2.0]), [2.0, 4.0])


def test_an_input_without_a_derivative_is_refused():
    op = fgrad.kernel_op(lambda x, w: x * w, lambda ct, w: ct * w, lambda x, w: x * w, name="times")
    assert fgrad.grad(lambda x: op(x, 3.0))(2.0) == 3
    with pytest.raises(TypeError, match="times has no derivative by its input w"):
        fgrad.grad(lambda w: op(2.0, w))(3.0)


@pytest.mark.parametrize(
    ("forward", "backward", "said"),
    [
        (lambda x: x, lambda ct, y: ct, r"must be ct and then names of inputs \(x\) or outputs \(out\), got ct, y"),
        (lambda x: x, lambda x: x, "got x"),
        (lambda x, scale=2: x, lambda ct: ct, "options by keyword alone, with defaults; got scale=2"),
        (lambda *xs: xs, lambda ct: ct, r"got \*xs"),
        (lambda x, *, scale: x, lambda ct: ct, "got scale"),
    ],
)
def test_declarations_that_are_refused(forward, backward, said):
    with pytest.raises(TypeError, match=said):
        fgrad.kernel_op(forward, backward, lambda x: x, name="mine")


def test_calls_that_are_refused(scaled):
    with pytest.raises(TypeError, match="scaled: expected the arrays x, w, got 1 of them"):
        scaled.op(X)
    with pytest.raises(TypeError, match="scaled: no option is called scale"):
        scaled.op(X, W, scale=2)


def softplus(batch, calls):
    """Return log(1 + exp(x)) * w, made of functions that take leading axes, and note the shapes they see."""

    def forward(x, w):
        calls.append(x.shape)
        return np.logaddexp(0, x) * w

    def backward(ct, x, w):
        calls.append(x.shape)
        return ct * w / (1 + np.exp(-x)), ct * np.logaddexp(0, x)

    return fgrad.kernel_op(
        forward, backward, lambda x, w: np.logaddexp(0, x) * w, name="softplus", wrt=(0, 1), batch=batch
    )


@pytest.mark.parametrize(("batch", "shapes"), [("loop", [(3,)] * 2), ("leading", [(2, 3)])])
def test_vmap_runs_as_it_is_told(batch, shapes):
    calls = []
    op, w = softplus(batch, calls), np.array([1.0, 2.0, 3.0])
    out = fgrad.vmap(op, (0, None))(X, w)
    np.testing.assert_allclose(out, np.logaddexp(0, X) * w)
    assert calls == shapes
    dw = fgrad.vmap(fgrad.grad(lambda x, w: op(x, w).sum(), 1), (0, None))(X, w)
    np.testing.assert_allclose(dw, np.logaddexp(0, X))


@pytest.mark.parametrize("batch", ["loop", "leading", "grid"])
def test_every_order_of_grad_and_vmap(batch):
    op, w = softplus(batch, []), np.array([1.0, 2.0, 3.0])
    s = 1 / (1 + np.exp(-X))
    np.testing.assert_allclose(fgrad.grad(lambda x: fgrad.vmap(op, (0, None))(x, w).sum())(X), w * s)
    np.testing.assert_allclose(
        fgrad.grad(lambda w: fgrad.vmap(op, (0, None))(X, w).sum())(w), np.logaddexp(0, X).sum(0)
    )
    np.testing.assert_allclose(fgrad.hessian(lambda x: op(x, w).sum())(X[0]), np.diag((w * s * (1 - s))[0]))
    np.testing.assert_allclose(
        fgrad.vmap(fgrad.vmap(fgrad.grad(op), (0, 0)), (0, None))(X, w), np.broadcast_to(w * s, X.shape)
    )
    np.testing.assert_allclose(fgrad.jit(fgrad.grad(lambda x: fgrad.vmap(op, (0, None))(x, w).sum()))(X), w * s)
    check_grads(lambda x, w: fgrad.vmap(op, (1, None))(x, w), (X[:2, :2].copy(), W[:2]), order=2)


def test_a_leading_batch_is_one_run_of_each_function():
    calls = []
    op = softplus("leading", calls)
    fgrad.grad(lambda w: fgrad.vmap(op, (0, None))(X, w).sum())(W)
    assert calls == [X.shape, X.shape]


def test_batches_are_handed_on_to_functions_that_can_be_traced():
    op = softplus("grid", [])
    np.testing.assert_allclose(fgrad.jit(fgrad.vmap(op))(X, X), np.logaddexp(0, X) * X)
    np.testing.assert_allclose(fgrad.vmap(fgrad.grad(lambda x: op(x, W).sum()))(X), W / (1 + np.exp(-X)))


def test_a_backward_that_is_a_kernel_op_has_second_derivatives_of_its_own():
    launches = []

    def slope(g, x):
        return g * 3 * x**2

    def slope_backward(ct, g, x):
        launches.append("second")
        return ct * 3 * x**2, ct * g * 6 * x

    slope_op = fgrad.kernel_op(slope, slope_backward, slope, wrt=(0, 1))
    cube = fgrad.kernel_op(lambda x: x**3, slope_op, lambda x: x**3, name="cube")
    np.testing.assert_allclose(fgrad.grad(lambda x: cube(x).sum())(W), 3 * W**2)
    assert launches == []
    np.testing.assert_allclose(fgrad.grad(lambda x: fgrad.grad(lambda x: cube(x).sum())(x).sum())(W), 6 * W)
    assert launches
    np.testing.assert_allclose(fgrad.vmap(fgrad.grad(cube))(W), 3 * W**2)


def test_tensors_record_the_pair(scaled):
    x = torch.tensor(X, requires_grad=True)
    w = torch.tensor(W, requires_grad=True)
    out = scaled.op(x, w)
    assert type(out.grad_fn).__name__ == "ScaledBackward0"
    out.sum().backward()
    assert scaled.launches == {"forward": 1, "backward": 1}
    np.testing.assert_allclose(x.grad.numpy(), 2 * X * W**2)
    np.testing.assert_allclose(w.grad.numpy(), (2 * X**2 * W).sum(0))


def test_arrays_of_layers_that_know_nothing_of_kernel_ops_are_refused(scaled):
    class Lazy:
        def __array_function__(self, function, types, args, kwargs):
            return NotImplemented

    with pytest.raises(TypeError, match=r"scaled: expected arrays, got .*Lazy"):
        scaled.op(Lazy(), W)


def test_tensors_without_grad_give_tensors(scaled):
    out = scaled.op(torch.tensor(X), torch.tensor(W), power=3)
    assert isinstance(out, torch.Tensor)
    assert not out.requires_grad
    np.testing.assert_allclose(out.numpy(), (X * W) ** 3)


def test_tensors_have_second_derivatives(scaled):
    w = torch.tensor(W, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda w: scaled.op(torch.tensor(X), w), (w,))
    x = torch.tensor(X, requires_grad=True) * 1
    out = scaled.op(x, w).sum()
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()

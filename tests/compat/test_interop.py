"""Both ways between the core and tensors: core transforms over functions that use tensors, Functions on a core vjp."""

import numpy as np
import pytest

import fgrad
import fgrad.compat as torch


def loss(x):
    """Compute on tensors inside a function of arrays."""
    t = torch.tensor(x)
    return ((t * t).tanh().sum() + (t[1:] @ t[:-1]))._data


def plain_loss(x):
    return np.tanh(x * x).sum() + x[1:] @ x[:-1]


X = np.array([0.5, -1.0, 2.0])


def test_core_transforms_go_through_tensors():
    np.testing.assert_allclose(fgrad.grad(loss)(X), fgrad.grad(plain_loss)(X))
    np.testing.assert_allclose(fgrad.hessian(loss)(X), fgrad.hessian(plain_loss)(X))
    value, tangent = fgrad.jvp(loss, (X,), (np.ones(3),))
    np.testing.assert_allclose([value, tangent], fgrad.jvp(plain_loss, (X,), (np.ones(3),)))
    batch = np.stack([X, X + 1])
    np.testing.assert_allclose(fgrad.vmap(loss)(batch), fgrad.vmap(plain_loss)(batch))


class CoreFunction(torch.autograd.Function):
    """Wraps a function of the core; its backward is the core's vjp, recorded when it is to be differentiated again."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.asarray(plain_loss(x.numpy())))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * CoreGradient.apply(x)


class CoreGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(fgrad.grad(plain_loss)(x.numpy()))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.from_numpy(fgrad.hvp(plain_loss, (x.numpy(),), (g.numpy(),)))


def test_a_function_on_a_core_vjp_is_differentiable():
    x = torch.tensor(X, requires_grad=True)
    (g,) = torch.autograd.grad(CoreFunction.apply(x), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), fgrad.grad(plain_loss)(X))
    (h,) = torch.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(h.numpy(), fgrad.hessian(plain_loss)(X).sum(0))


def test_numpy_functions_take_tensors_without_gradients():
    t = torch.ones(3)
    assert np.sum(np.asarray(t)) == 3
    assert isinstance(np.array([1.0, 2.0, 3.0]) * t, torch.Tensor)


def test_numpy_functions_record_on_tensors():
    x = torch.tensor(X, requires_grad=True)
    y = np.sum(np.sin(x) * np.array([1.0, 2.0, 3.0]))
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(X) * [1, 2, 3])
    assert y.requires_grad


def test_numpy_functions_without_a_counterpart_raise_torchs_error():
    with pytest.raises(RuntimeError, match="requires grad"):
        np.busday_count(torch.ones(3, requires_grad=True), torch.ones(3))
    a = np.ones(3)
    with pytest.raises(RuntimeError, match="requires grad"):
        a += torch.ones(3, requires_grad=True)


def test_dlpack_goes_both_ways():
    t = torch.arange(3.0)
    assert np.from_dlpack(t).tolist() == [0, 1, 2]
    assert torch.from_dlpack(np.ones(2)).tolist() == [1, 1]

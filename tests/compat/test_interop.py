"""Both ways between the core and tensors: core transforms over functions that use tensors, Functions on a core vjp."""

import numpy as np
import pytest

import fgrad
import fgrad.compat as torch
from tests.numpy.samples import NUMPY


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


def through_tensors(x):
    """Compute on tensors in the documented way: `as_tensor` in, `numpy` out."""
    t = torch.as_tensor(x)
    return ((t * t).tanh().sum() + t[1:] @ t[:-1]).numpy()


@pytest.mark.parametrize("transform", [fgrad.grad, fgrad.hessian, lambda f: fgrad.jit(fgrad.grad(f)), fgrad.jacfwd])
def test_core_transforms_take_the_documented_way(transform):
    np.testing.assert_allclose(transform(through_tensors)(X), transform(plain_loss)(X))


def test_writes_in_place_inside_a_core_transform():
    def f(x):
        t = torch.zeros(3, dtype=torch.double)
        t[1:] = torch.as_tensor(x)[:2] * 2
        t.mul_(t)
        return t.sum().numpy()

    np.testing.assert_allclose(fgrad.grad(f)(X), [4.0, -8.0, 0.0])
    np.testing.assert_allclose(fgrad.vmap(fgrad.grad(f))(np.stack([X, X])), [[4.0, -8.0, 0.0]] * 2)


def test_custom_functions_keep_their_rules_inside_core_transforms():
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g * 7

    def f(x):
        return Odd.apply(torch.as_tensor(x)).sum().numpy()

    np.testing.assert_allclose(fgrad.grad(f)(X), [7.0, 7.0, 7.0])
    np.testing.assert_allclose(fgrad.jit(fgrad.grad(f))(X), [7.0, 7.0, 7.0])


def test_values_leave_a_core_transform_by_numpy_alone():
    for leave in (lambda t: np.asarray(t), lambda t: t.item(), lambda t: float(t), lambda t: t.tolist()):
        with pytest.raises(TypeError):
            fgrad.grad(lambda x, leave=leave: leave(torch.as_tensor(x).sum()))(X)


def test_functions_of_arrays_record_on_tensors():
    x = torch.tensor(X, requires_grad=True)
    (g,) = torch.autograd.grad(plain_loss(x), x)
    np.testing.assert_allclose(g.numpy(), fgrad.grad(plain_loss)(X))


class OnTheTape(torch.autograd.Function):
    """A Function whose backward is a vjp of the core, on the tape: differentiable to any order."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.as_tensor(plain_loss(x.numpy()))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.func.vjp(lambda t: torch.as_tensor(plain_loss(t.numpy())), x)[1](g)[0]


def test_a_function_on_a_vjp_on_the_tape_is_differentiable_to_third_order():
    x = torch.tensor(X, requires_grad=True)
    assert torch.autograd.gradgradcheck(OnTheTape.apply, x)
    (g,) = torch.autograd.grad(OnTheTape.apply(x), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(h.sum(), x)
    np.testing.assert_allclose(third.numpy(), fgrad.grad(lambda x: fgrad.hessian(plain_loss)(x).sum())(X))


def test_a_function_on_a_first_order_vjp():
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out, ctx.pull = fgrad.vjp(plain_loss, x.numpy())
            return torch.as_tensor(out)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return torch.as_tensor(ctx.pull(g.numpy())[0])

    x = torch.tensor(X, requires_grad=True)
    (g,) = torch.autograd.grad(First.apply(x), x)
    np.testing.assert_allclose(g.numpy(), fgrad.grad(plain_loss)(X))


def test_memory_is_shared_by_dlpack_and_numpy():
    a = np.arange(3.0)
    t = torch.from_dlpack(a)
    t.add_(1)
    assert a.tolist() == [1.0, 2.0, 3.0]
    b = np.from_dlpack(t)
    t[0] = 9
    assert b.tolist() == [9.0, 2.0, 3.0]
    assert b.flags.writeable == (NUMPY >= (2, 1))
    assert np.asarray(t, dtype=np.float32).dtype == np.float32
    with pytest.raises(RuntimeError, match="requires grad"):
        np.from_dlpack(t.requires_grad_())
    with pytest.raises(TypeError, match="can't convert np.ndarray"):
        torch.from_numpy(np.array(["a"]))


def test_once_differentiable_refuses_a_second_transform():
    class Square(torch.autograd.Function):  # torch gives zeros here
        @staticmethod
        def forward(a):
            return a * a

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    def first(x):
        return torch.func.grad(lambda x: Square.apply(x).sum())(x).sum()

    assert first(torch.ones(2)).item() == 4
    with pytest.raises(RuntimeError, match="trying to differentiate twice"):
        torch.func.grad(first)(torch.ones(2))

"""Every example and every stated behaviour of the documents that compat follows.

They are torch.autograd's page of release 1.4 and R torch's AutogradContext. The examples with integer leaves use
floats: the page's own raise torch's error (the last test). The profiler's examples belong to the profiler.
"""

import copy
import inspect
import warnings

import numpy as np
import pytest

import fgrad.compat as torch
from fgrad.compat.autograd import Function, Variable
from fgrad.compat.autograd.function import AutogradContext, _ContextMethodMixin

# ---------------------------------------------------------------------------------------------- backward and grad


def test_parameters_and_defaults_of_backward():
    wanted = {"tensors": inspect.Parameter.empty, "grad_tensors": None, "retain_graph": None, "create_graph": False}
    found = inspect.signature(torch.autograd.backward).parameters
    assert {name: found[name].default for name in wanted} == wanted
    assert list(found)[:5] == ["tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables"]


def test_parameters_and_defaults_of_grad():
    found = inspect.signature(torch.autograd.grad).parameters
    names = ["outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs", "allow_unused"]
    assert list(found)[:7] == names
    assert [found[name].default for name in names[2:6]] == [None, None, False, True]
    assert not found["allow_unused"].default


def test_parameters_and_defaults_of_tensor_backward():
    found = inspect.signature(torch.Tensor.backward).parameters
    assert list(found)[1:4] == ["gradient", "retain_graph", "create_graph"]
    assert [found[name].default for name in list(found)[1:4]] == [None, None, False]


def test_backward_sums_gradients_of_several_tensors_and_accumulates():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward([x.sum(), x * 3], [None, torch.ones(2)])
    assert x.grad.tolist() == [4, 4]
    torch.autograd.backward(x.sum())
    assert x.grad.tolist() == [5, 5]


def test_retain_graph_defaults_to_create_graph():
    x = torch.tensor([2.0], requires_grad=True)
    y = (x**3).sum()
    y.backward(create_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_the_graph_of_the_derivative_can_be_differentiated():
    x = torch.tensor([2.0], requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [12]


def test_only_inputs_false_accumulates_into_the_remaining_leaves():
    x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3.0, requires_grad=True)
    (g,) = torch.autograd.grad((x * y).sum(), x, only_inputs=False)
    assert g.tolist() == [3, 3]
    assert y.grad.tolist() == [1, 1]


def test_a_gradient_that_is_a_tensor_is_cut_from_its_graph_unless_create_graph():
    x, g = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (x * 2).backward(g)
    assert not x.grad.requires_grad


# -------------------------------------------------------------------------------------------------- grad modes


def test_example_of_no_grad():
    x = torch.tensor([1.0], requires_grad=True)
    with torch.no_grad():
        y = x * 2
    assert y.requires_grad is False

    @torch.no_grad()
    def doubler(x):
        return x * 2

    z = doubler(x)
    assert z.requires_grad is False


def test_example_of_enable_grad():
    x = torch.tensor([1.0], requires_grad=True)
    with torch.no_grad(), torch.enable_grad():
        y = x * 2
    assert y.requires_grad is True
    y.backward()
    assert x.grad.tolist() == [2]

    @torch.enable_grad()
    def doubler(x):
        return x * 2

    with torch.no_grad():
        z = doubler(x)
    assert z.requires_grad is True


def test_example_of_set_grad_enabled():
    x = torch.tensor([1.0], requires_grad=True)
    is_train = False
    with torch.set_grad_enabled(is_train):
        y = x * 2
    assert y.requires_grad is False
    torch.set_grad_enabled(True)
    y = x * 2
    assert y.requires_grad is True
    torch.set_grad_enabled(False)
    y = x * 2
    assert y.requires_grad is False
    torch.set_grad_enabled(True)


def test_the_modes_stand_in_torch_autograd_too():
    assert torch.autograd.no_grad is torch.no_grad
    assert torch.autograd.enable_grad is torch.enable_grad
    assert torch.autograd.set_grad_enabled is torch.set_grad_enabled


def test_in_place_correctness_checks_are_raised_in_backward():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_variable_is_deprecated_and_returns_tensors():
    v = Variable(torch.ones(2))
    assert type(v) is torch.Tensor
    assert not v.requires_grad
    v = Variable(torch.ones(2), True)
    assert v.requires_grad
    assert v.data.tolist() == v.tolist()
    v.register_hook(lambda g: g * 2)
    v.sum().backward()
    assert v.grad.tolist() == [2, 2]
    assert v.detach().requires_grad is False


def test_example_of_factories_with_requires_grad():
    autograd_tensor = torch.randn((2, 3, 4), requires_grad=True)
    assert autograd_tensor.requires_grad
    assert autograd_tensor.shape == (2, 3, 4)


# ------------------------------------------------------------------------------------------------------- Tensor


def test_grad_is_none_first_and_then_accumulates():
    x = torch.ones(2, requires_grad=True)
    assert x.grad is None
    x.sum().backward()
    assert isinstance(x.grad, torch.Tensor)
    x.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_example_of_is_leaf():
    assert torch.rand(10, requires_grad=True).is_leaf
    assert not (torch.rand(10, requires_grad=True) + 2).is_leaf
    assert torch.rand(10).is_leaf
    assert torch.rand(10).requires_grad_().is_leaf
    assert torch.rand(10, requires_grad=True, device="cpu").is_leaf
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.rand(10, requires_grad=True).cuda()


def test_detach_shares_storage_and_changes_trigger_checks():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    d = y.detach()
    assert not d.requires_grad
    d.zero_()
    assert y.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    "change", [lambda t: t.resize_(4), lambda t: t.resize_as_(torch.ones(4)), lambda t: t.set_(torch.ones(3))]
)
def test_what_detach_returned_keeps_its_size(change):
    x = torch.ones(2, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"not allowed on a Tensor created from .data or .detach\(\)"):
        change(x.detach())
    assert x.shape == (2, 2)


def test_detach_in_place_makes_a_leaf_and_refuses_views():
    x = torch.ones(2, requires_grad=True) * 2
    x.detach_()
    assert x.is_leaf
    assert not x.requires_grad
    with pytest.raises(RuntimeError, match="view"):
        (torch.ones(2, requires_grad=True) * 2)[0].detach_()


def test_example_of_register_hook():
    v = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
    h = v.register_hook(lambda grad: grad * 2)  # double the gradient
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert v.grad.tolist() == [2, 4, 6]
    assert v.grad.type() == "torch.FloatTensor"
    assert v.grad.size() == (3,)
    h.remove()
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert v.grad.tolist() == [3, 6, 9]


def test_retain_grad():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1, 1]


# ------------------------------------------------------------------------------------------------------ Function


class Exp(Function):
    @staticmethod
    def forward(ctx, i):
        result = i.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


def test_example_of_function():
    x = torch.tensor([0.5, 1.0], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(Exp.apply, x)
    assert torch.autograd.gradgradcheck(Exp.apply, x)


def test_the_context_has_the_methods_of_the_mixin():
    for name in ("mark_dirty", "mark_non_differentiable", "save_for_backward"):
        assert callable(getattr(_ContextMethodMixin, name))
        assert issubclass(AutogradContext, _ContextMethodMixin)


def test_needs_input_grad_is_true_where_the_input_needs_a_gradient():
    seen = []

    class Scale(Function):
        @staticmethod
        def forward(ctx, x, k):
            return x * k

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad[0])
            return g, None

    Scale.apply(torch.ones(1, requires_grad=True), 1).backward()
    assert seen == [True]


# --------------------------------------------------------------------------------------------- numerical checking


def test_parameters_and_defaults_of_gradcheck():
    found = inspect.signature(torch.autograd.gradcheck.gradcheck).parameters
    wanted = {"eps": 1e-6, "atol": 1e-5, "rtol": 1e-3, "raise_exception": True, "nondet_tol": 0.0}
    assert {name: found[name].default for name in wanted} == wanted
    assert "check_sparse_nnz" in found


def test_parameters_and_defaults_of_gradgradcheck():
    found = inspect.signature(torch.autograd.gradgradcheck).parameters
    wanted = {"grad_outputs": None, "eps": 1e-6, "atol": 1e-5, "rtol": 1e-3, "gen_non_contig_grad_outputs": False}
    assert {name: found[name].default for name in wanted} == wanted
    x = torch.tensor([1.0, 2.0], dtype=torch.double, requires_grad=True)
    seeds = torch.ones(2, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: x**3, x, seeds)
    assert torch.autograd.gradgradcheck(lambda x: x**3, x, gen_non_contig_grad_outputs=True)


def test_gradcheck_warns_of_low_precision():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="double precision"):
        torch.autograd.gradcheck(lambda x: x * 2, x, atol=1e-1, eps=1e-2)


def test_gradcheck_refuses_overlapping_memory():
    x = torch.ones(1, dtype=torch.double).expand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="stride 0"):
        torch.autograd.gradcheck(lambda x: x * 2, x)


# ----------------------------------------------------------------------------------- R torch's AutogradContext


def test_values_are_saved_by_name_and_may_be_any_object():
    class Power(Function):
        @staticmethod
        def forward(ctx, input, exponent):
            ctx.save_for_backward(base=input, k=exponent, note={"any": "object"})
            return input**exponent

        @staticmethod
        def backward(ctx, g):
            saved = ctx.saved_variables
            assert saved.note == {"any": "object"}
            assert saved[1] == saved["k"] == saved.k
            return g * saved.k * saved["base"] ** (saved.k - 1), None

    x = torch.tensor([3.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Power.apply(x, 2).backward()
    assert x.grad.tolist() == [6]


def test_named_values_are_checked_for_changes():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x=x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_variables.x

    x = torch.ones(2, requires_grad=True) * 1
    y = Square.apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_positional_saves_alone_warn_as_torch_does():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            with pytest.warns(DeprecationWarning, match="saved_variables.*deprecated"):
                (x,) = ctx.saved_variables
            return g * 2 * x

    x = torch.ones(2, requires_grad=True)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_needs_input_grad_by_name_of_the_argument():
    class Scale(Function):
        @staticmethod
        def forward(ctx, input, factor):
            assert ctx.needs_input_grad["input"] is True
            assert ctx.needs_input_grad.factor is False
            assert list(ctx.needs_input_grad) == [True, False]
            return input * factor

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    Scale.apply(torch.ones(2, requires_grad=True), 2).sum().backward()


def test_the_constructor_and_clone():
    ctx = AutogradContext(ptr=7, env=None, argument_names=("a", "b"), argument_needs_grad=(True, False))
    assert ctx.ptr == 7
    assert ctx.needs_input_grad["a"]
    assert not ctx.needs_input_grad["b"]
    ctx.notes = [1]
    shallow, deep = ctx.clone(), ctx.clone(deep=True)
    assert type(shallow) is AutogradContext
    assert shallow.notes is ctx.notes
    assert deep.notes == [1]
    assert deep.notes is not ctx.notes
    assert copy.copy(ctx).needs_input_grad["a"]


def test_marks_work_inside_forward():
    class Mixed(Function):
        @staticmethod
        def forward(ctx, x):
            index = x.argmax()
            ctx.mark_non_differentiable(index)
            return x * 2, index

        @staticmethod
        def backward(ctx, g, g_index):
            assert not np.any(g_index.numpy())
            assert g_index.shape == ()
            return g * 2

    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y, index = Mixed.apply(x)
    assert index.item() == 1
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_integer_leaves_raise_torchs_error():
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1], requires_grad=True)

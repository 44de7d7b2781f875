"""Graphs of any depth are built, walked and freed without recursion; memory goes by reference count alone."""

import gc
import weakref

import pytest

import fgrad.compat as torch
import fgrad.compat.autograd.forward_ad as fw
from fgrad.compat.utils.checkpoint import checkpoint

DEPTH = 100_000


@pytest.mark.heavy
def test_a_deep_chain_is_walked_and_freed(no_collector):
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(DEPTH):
        y = y + 1
    y.sum().backward()
    assert x.grad.item() == 1
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


@pytest.mark.heavy
def test_a_deep_chain_of_functions_is_walked_and_freed(no_collector):
    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(DEPTH // 2):
        y = Step.apply(y)
    node = weakref.ref(y.grad_fn)
    y.sum().backward()
    del y
    assert node() is None
    assert x.grad.item() == 1


@pytest.mark.heavy
def test_a_deep_chain_in_place_is_walked_and_freed(no_collector):
    x = torch.ones(1, requires_grad=True)
    y = x * 1
    for _ in range(DEPTH):
        y.add_(1)
    y.sum().backward()
    assert x.grad.item() == 1


@pytest.mark.heavy
def test_a_deep_chain_that_is_never_walked_is_freed(no_collector):
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(DEPTH):
        y = y * 1
    alive = weakref.ref(y)
    del y
    assert alive() is None


@pytest.mark.heavy
def test_backward_2000_levels_deep():
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.x = ctx.x - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, g):
            if ctx.x.item() < 0:
                return g
            with torch.enable_grad():
                Nested.apply(ctx.x).sum().backward()
            return g

    v = torch.tensor(2000.0, requires_grad=True)
    Nested.apply(v).sum().backward()
    assert v.grad is not None


def test_nested_passes_finish_before_what_waits():
    order = []

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            order.append("outer")
            with torch.enable_grad():
                t = torch.ones(1, requires_grad=True)
                Inner.apply(t).sum().backward()
            return g

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            order.append("inner")
            return g

    class Waiting(Inner):
        @staticmethod
        def backward(ctx, g):
            order.append("waiting")
            return g

    x = torch.ones(1, requires_grad=True)
    (Waiting.apply(x) + Outer.apply(x)).sum().backward()
    assert order == ["outer", "inner", "waiting"]


def test_an_error_of_a_nested_pass_leaves_through_the_outer_one():
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise LookupError("inner")

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                t = torch.ones(1, requires_grad=True)
                Bad.apply(t).sum().backward()
            return g

    with pytest.raises(LookupError, match="inner"):
        Outer.apply(torch.ones(1, requires_grad=True)).sum().backward()
    assert torch.is_grad_enabled()


def test_a_tensor_that_retains_its_gradient_dies_while_its_graph_lives(no_collector):
    x = torch.ones(5, 5, requires_grad=True)

    def run():
        y = x * 2
        y.retain_grad()
        return y / 2, weakref.ref(y)

    z, ref = run()
    assert ref() is None
    z.sum().backward()
    assert x.grad is not None


def test_saved_outputs_make_no_cycle(no_collector):
    def run():
        x = torch.ones(3, requires_grad=True)
        y = x.exp().tanh()
        return weakref.ref(y), weakref.ref(y.grad_fn)

    tensor, node = run()
    assert tensor() is None
    assert node() is None


def test_a_function_that_saves_its_output_makes_no_cycle(no_collector):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    y = Exp.apply(torch.ones(3, requires_grad=True))
    node, tensor = weakref.ref(y.grad_fn), weakref.ref(y)
    del y
    assert node() is None
    assert tensor() is None


def test_an_in_place_operation_on_a_view_that_saves_its_output_makes_no_cycle(no_collector):
    class Hook:
        def __call__(self, g):
            return None

    def run():
        hook = Hook()
        x = torch.ones(4, requires_grad=True) * 1
        v = x[:2]
        v.exp_()
        x.register_hook(hook)
        v.register_hook(hook)
        return weakref.ref(hook)

    assert run()() is None


def test_saved_values_are_dropped_as_the_pass_goes():
    class Watch(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            seen.append(alive() is None)
            return g

    seen = []
    x = torch.ones(3, requires_grad=True)
    big = Watch.apply(x).exp()
    alive = weakref.ref(big.detach().numpy())
    out = (big * big).sum()
    alive = weakref.ref(big._data)
    del big
    out.backward()
    assert seen == [True]


class Doubled(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 2


W = torch.ones(3, requires_grad=True)


def train():
    ((W * W).softmax(0).sum() + Doubled.apply(W).var()).backward()
    with torch.no_grad():
        W.sub_(W.grad * 0)


def differentiate_twice():
    (g,) = torch.autograd.grad((W**3).sum(), W, create_graph=True)
    torch.autograd.grad(g.sum(), W)


def transform():
    torch.func.vmap(torch.func.grad(lambda x: (Doubled.apply(x) * W).sum()))(torch.ones(2, 3)).sum().backward()


def push():
    with fw.dual_level():
        fw.unpack_dual(Doubled.apply(fw.make_dual(torch.ones(3), torch.ones(3))).exp())


def write():
    y = W * 1
    y[:2].mul_(2)
    y.view(3, 1).add_(1)
    y.sum().backward()


def watch():
    y = W * 2
    handle = y.register_hook(lambda g: g * 1)
    y.retain_grad()
    y.softmax(0).grad_fn.register_hook(lambda inputs, outputs: None)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        z = (y * y).exp()
    z.sum().backward()
    handle.remove()


def recompute():
    checkpoint(lambda x: x.exp(), W, use_reentrant=False).sum().backward()


def infer():
    with torch.inference_mode():
        (torch.ones(3) * 2).sum()


def finish_early():
    p = torch.ones(2, requires_grad=True)
    p.register_post_accumulate_grad_hook(lambda p: None)
    (p * 2).sum().backward()


@pytest.mark.heavy
@pytest.mark.parametrize(
    "step", [train, differentiate_twice, transform, push, write, watch, recompute, infer, finish_early]
)
def test_nothing_grows(step, no_collector):
    import tracemalloc

    def grown(count):
        for _ in range(count):
            step()
            W.grad = None
        return len(gc.get_objects()), tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    objects, size = grown(100)
    more_objects, more_size = grown(400)
    tracemalloc.stop()
    assert more_objects - objects < 20, "objects are left to the cycle collector"
    assert more_size - size < 120_000  # Python keeps up to some thousand tuples for reuse


@pytest.mark.slow
@pytest.mark.parametrize("step", [train, transform, write, watch])
def test_nothing_grows_over_many_steps(step, no_collector):
    for _ in range(200):
        step()
    before = len(gc.get_objects())
    for _ in range(10_000):
        step()
        W.grad = None
    assert len(gc.get_objects()) - before < 20


def test_importing_starts_no_thread():
    import subprocess
    import sys

    code = "import threading, fgrad.compat; assert threading.active_count() == 1"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_operations_without_a_derivative_refuse_backward():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match="the derivative for 'unique' is not implemented"):
        x.unique().sum().backward()

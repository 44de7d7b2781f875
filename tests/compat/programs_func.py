"""Programs of custom Functions under `forward_ad` and `torch.func`, and of what these transforms give."""

FUNCTION_TRANSFORMS = {
    "forward_ad asks for jvp": """
        raises NotImplementedError: You must implement the jvp function
        import torch.autograd.forward_ad as fw
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, g): return g * 2
        with fw.dual_level():
            Double.apply(fw.make_dual(torch.ones(2), torch.ones(2)))
    """,
    "func.jvp asks for jvp": """
        raises NotImplementedError: You must implement the jvp function
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(x): return x * 2
            @staticmethod
            def setup_context(ctx, inputs, output): pass
            @staticmethod
            def backward(ctx, g): return g * 2
        torch.func.jvp(Double.apply, (torch.ones(2),), (torch.ones(2),))
    """,
    "jvp is what forward mode uses": """
        import torch.autograd.forward_ad as fw
        class Odd(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, n, y):
                ctx.save_for_forward(x, y); ctx.n = n
                return x * y, x + n
            @staticmethod
            def jvp(ctx, tx, n, ty):
                assert n is None
                x, y = ctx.saved_tensors
                return 10 * tx * y + ty * x, tx * ctx.n
        x, y = torch.tensor([1., 2.]), torch.tensor([3., 4.])
        with fw.dual_level():
            for t in (Odd.apply(fw.make_dual(x, torch.ones(2)), 3, y), Odd.apply(x, 3, fw.make_dual(y, torch.ones(2)))):
                show([fw.unpack_dual(o) for o in t])
    """,
    "jvp that returns too little": """
        raises RuntimeError: Function's jvp returned an invalid number of forward gradients (expected 2 but got 1)
        import torch.autograd.forward_ad as fw
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 1, x * 2
            @staticmethod
            def jvp(ctx, t): return t
        with fw.dual_level():
            F.apply(fw.make_dual(torch.ones(2), torch.ones(2)))
    """,
    "jvp of another size": """
        raises RuntimeError: Trying to set a forward gradient that has a different size
        import torch.autograd.forward_ad as fw
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 1
            @staticmethod
            def jvp(ctx, t): return t[:1]
        with fw.dual_level():
            F.apply(fw.make_dual(torch.ones(2), torch.ones(2)))
    """,
    "jvp with None for tangents that are zero": """
        import torch.autograd.forward_ad as fw
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.set_materialize_grads(False)
                return x + y
            @staticmethod
            def jvp(ctx, tx, ty):
                assert ty is None
                return tx * 2
        with fw.dual_level():
            show(fw.unpack_dual(F.apply(fw.make_dual(torch.ones(2), torch.ones(2)), torch.ones(2))))
    """,
    "forward over reverse": """
        import torch.autograd.forward_ad as fw
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x); ctx.save_for_forward(x)
                return x ** 3
            @staticmethod
            def backward(ctx, g): return 3 * ctx.saved_tensors[0] ** 2 * g
            @staticmethod
            def jvp(ctx, t): return 3 * ctx.saved_tensors[0] ** 2 * t
        x = torch.tensor([1., 2.], requires_grad=True)
        with fw.dual_level():
            y = Cube.apply(fw.make_dual(x, torch.ones(2)))
            show([t.detach() for t in fw.unpack_dual(y)])
            g, = torch.autograd.grad(y.sum(), x)
            show(fw.unpack_dual(g))
    """,
    "func transforms use backward": """
        class Round(torch.autograd.Function):
            @staticmethod
            def forward(x): return x.round()
            @staticmethod
            def setup_context(ctx, inputs, output): ctx.scale = 1.0
            @staticmethod
            def backward(ctx, g):
                assert ctx.needs_input_grad[0]
                return g * ctx.scale
        x = torch.tensor([0.3, 1.6])
        f = lambda x: (Round.apply(x) ** 2).sum()
        show(torch.func.grad(f)(x))
        show(torch.func.grad(lambda x: (torch.func.grad(f)(x) ** 2).sum())(x))
        show(torch.func.jacrev(Round.apply)(x))
        out, pull = torch.func.vjp(Round.apply, x); show(out); show(pull(torch.ones(2)))
    """,
    "several inputs and outputs under func.grad": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(x, w, name):
                assert name == "w"
                half = x * 0.5
                return half * w, w * w, x.long()
            @staticmethod
            def setup_context(ctx, inputs, output):
                x, w, name = inputs
                ctx.save_for_backward(x, w, output[0], None)
                ctx.mark_non_differentiable(output[2])
            @staticmethod
            def backward(ctx, g, h, i):
                x, w, out, none = ctx.saved_tensors
                assert none is None
                return g * w * 0.5, g * out / w + 2 * h * w, None
        def f(x, w):
            a, b, c = Scale.apply(x, w, "w")
            return (a * b).sum() + b.sum()
        x, w = torch.tensor([1., 2.]), torch.tensor([3., -1.])
        show(torch.func.grad(f, argnums=(0, 1))(x, w))
        show(torch.func.hessian(f, argnums=1)(x, w) if False else torch.func.jacrev(torch.func.grad(f, argnums=1), argnums=1)(x, w))
    """,
    "vmap without a rule": """
        raises RuntimeError: it does not have vmap support
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(x): return x * 2
            @staticmethod
            def setup_context(ctx, inputs, output): pass
            @staticmethod
            def backward(ctx, g): return g * 2
        torch.func.vmap(Double.apply)(torch.ones(3))
    """,
    "vmap with two rules": """
        raises RuntimeError: has both generate_vmap_rule=True and an overridden vmap staticmethod
        class Double(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x): return x * 2
            @staticmethod
            def setup_context(ctx, inputs, output): pass
            @staticmethod
            def vmap(info, in_dims, x): return x * 2, in_dims[0]
        torch.func.vmap(Double.apply)(torch.ones(3))
    """,
    "generate_vmap_rule": """
        class Weighted(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x, w): return (x * w).sum()
            @staticmethod
            def setup_context(ctx, inputs, output): ctx.save_for_backward(*inputs)
            @staticmethod
            def backward(ctx, g):
                x, w = ctx.saved_tensors
                return 5 * g * w, 7 * g * x
        xs, w = torch.arange(6.).reshape(3, 2), torch.tensor([2., -1.])
        show(torch.func.vmap(Weighted.apply, in_dims=(0, None))(xs, w))
        show(torch.func.vmap(torch.func.grad(Weighted.apply, argnums=(0, 1)), in_dims=(0, None))(xs, w))
        show(torch.func.grad(lambda w: torch.func.vmap(Weighted.apply, in_dims=(0, None))(xs, w).sum())(w))
        show(torch.func.jacrev(lambda x: torch.stack([Weighted.apply(x, w), Weighted.apply(w, x)]))(xs[1]))
    """,
    "a vmap of one's own": """
        seen = []
        class Swap(torch.autograd.Function):
            @staticmethod
            def forward(x, n): return x * n
            @staticmethod
            def setup_context(ctx, inputs, output): ctx.n = inputs[1]
            @staticmethod
            def backward(ctx, g): return g * ctx.n, None
            @staticmethod
            def vmap(info, in_dims, x, n):
                seen.append((info.batch_size, info.randomness, in_dims))
                return Swap.apply(x, n), in_dims[0]
        xs = torch.arange(6.).reshape(2, 3)
        show(torch.func.vmap(Swap.apply, in_dims=(1, None))(xs, 3))
        show(torch.func.vmap(lambda x: Swap.apply(x, 2))(xs))
        show(torch.func.vmap(torch.func.grad(lambda x: (Swap.apply(x, 2) ** 2).sum()))(xs))
        show([str(s) for s in seen])
    """,
    "a vmap with two outputs": """
        class Two(torch.autograd.Function):
            @staticmethod
            def forward(x): return x.sum(), x * 2
            @staticmethod
            def setup_context(ctx, inputs, output): pass
            @staticmethod
            def vmap(info, in_dims, x):
                x = x.movedim(in_dims[0], 0)
                return (x.sum(1), (x * 2).t()), (0, 1)
        show(torch.func.vmap(Two.apply, in_dims=1)(torch.arange(6.).reshape(2, 3)))
    """,
    "a vmap that is not overridden": """
        raises NotImplementedError: To use autograd.Function with vmap
        torch.autograd.Function.vmap(None, (0,), torch.ones(1))
    """,
}

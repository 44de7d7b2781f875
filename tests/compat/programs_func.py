"""Programs of custom Functions under `forward_ad` and `torch.func`, and of what these transforms give."""

FUNCTION_TRANSFORMS = {
    "detach and no_grad cut": """
        grad, vmap = torch.func.grad, torch.func.vmap; x = torch.tensor([1., 2.])
        def a(x): return (x.detach() * x).sum()
        def b(x):
            with torch.no_grad(): y = x * 2; z = y.softmax(0) + y.exp()
            return (y * z * x).sum()
        def d(x): return (x.data * x).sum()
        for f in (a, b, d):
            show([grad(f)(x), vmap(grad(f))(torch.stack([x, x])), grad(lambda x: vmap(lambda t: t * 2)(x).sum() * f(x))(x), torch.func.jacrev(f)(x)])
        with torch.no_grad():
            show(grad(lambda x: (x ** 2).sum())(x)); show(torch.func.vjp(lambda x: x ** 2, x)[1](x))
            w = torch.ones(2, requires_grad=True); show(grad(lambda x: (x * w).sum())(x))
        show(grad(lambda x: grad(lambda y: (y.detach() * y * x).sum())(x).sum())(x))
    """,
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

BATCHED = {
    "is_grads_batched in one pass": """
        p = torch.tensor(data(4, 3, seed=3), requires_grad=True)
        outs = [(p.cumsum(1) * p).sin(), p.max(1)[0], p.sort(1)[0], torch.logsumexp(p, 0), (p.t() @ p).det(), p[[0, 1]], p.prod(1),
                p.norm(dim=0), p.std(0), torch.cat([p, p]), p.view(-1)[2:], p.expand(2, 4, 3), torch.where(p > 0, p, -p), p.clone().mul_(2),
                torch.nn.functional.layer_norm(p, (3,)), torch.nn.functional.conv1d(p[None], torch.ones(2, 4, 2).double())]
        for k, out in enumerate(outs):
            g = torch.tensor(data(5, *out.shape, seed=k))
            show(torch.autograd.grad(out, p, g, is_grads_batched=True, retain_graph=True))
    """,
    "is_grads_batched of several outputs and unused inputs": """
        p = torch.tensor(data(4, 3, seed=3), requires_grad=True); q = torch.ones(2, requires_grad=True)
        two = torch.ones(2).double()
        show(torch.autograd.grad([p * 2, p.sum()], p, [torch.ones(2, 4, 3).double(), two], is_grads_batched=True))
        show(torch.autograd.grad((p * 2).sum(), [p, q], two, is_grads_batched=True, allow_unused=True))
        show(torch.autograd.grad((p * 2).sum(), [p, q], two, is_grads_batched=True, materialize_grads=True))
    """,
    "is_grads_batched with create_graph": """
        p = torch.tensor(data(3, seed=3), requires_grad=True)
        (g,) = torch.autograd.grad(p ** 3, p, torch.eye(3).double(), is_grads_batched=True, create_graph=True)
        show(g)
        show(torch.autograd.grad(g.sum(), p))
    """,
    "is_grads_batched of a wrong shape": """
        raises RuntimeError: we interpret the first dimension of each grad_output as the batch dimension
        p = torch.ones(4, 3, requires_grad=True)
        torch.autograd.grad(p * 2, p, torch.ones(4, 3), is_grads_batched=True)
    """,
    "vectorized jacobians": """
        x, y = torch.tensor(data(3, seed=1)), torch.tensor(data(2, 3, seed=2))
        f = lambda x, y: ((x * y).exp(), (y @ x).tanh(), x.sum() * y[0, 0])
        jacobian = torch.autograd.functional.jacobian
        for options in (dict(vectorize=True), dict(vectorize=True, strategy='forward-mode')):
            show(jacobian(f, (x, y), **options))
            show([jacobian(g, x, **options) for g in (lambda x: x ** 2, lambda x: torch.ones(2), lambda x: x.max(), lambda x: x.softmax(0))])
            show(jacobian(lambda x: (x ** 2, x.sum()), x, **options))
            show(jacobian(lambda x, y: x * 2, (x, y), **options))
    """,
    "vectorized hessians": """
        x, y = torch.tensor(data(3, seed=1)), torch.tensor(data(2, 3, seed=2))
        hessian = torch.autograd.functional.hessian
        show(hessian(lambda x: (x ** 3).sum(), x, vectorize=True))
        show(hessian(lambda x, y: ((y @ x) ** 2).sum().exp(), (x, y), vectorize=True))
        show(hessian(lambda x: (x ** 3).sum(), x, vectorize=True, outer_jacobian_strategy='forward-mode').detach())
    """,
    "a Function on the way": """
        seen = []
        class F(torch.autograd.Function):
            generate_vmap_rule = True
            @staticmethod
            def forward(x): return x * 2
            @staticmethod
            def setup_context(ctx, inputs, output): pass
            @staticmethod
            def backward(ctx, g): return g * 3
        x = torch.ones(3, requires_grad=True)
        show(torch.autograd.grad(F.apply(x), x, torch.eye(3), is_grads_batched=True))
    """,
    "forward strategy alone": """
        raises NotImplementedError: only implemented for `vectorize=True`
        torch.autograd.functional.jacobian(lambda x: x, torch.ones(2), strategy="forward-mode")
    """,
    "strict and vectorize": """
        raises RuntimeError: are not supported together
        torch.autograd.functional.jacobian(lambda x: x, torch.ones(2), strict=True, vectorize=True)
    """,
}

TRANSFORMS = {
    "results are on the tape": """
        func = torch.func
        x = torch.tensor([1., 2., 3.], requires_grad=True); w = torch.tensor([2., -1., 0.5], requires_grad=True); z = torch.arange(3.)
        def both(y, *leaves): return [y.detach(), y.requires_grad, torch.autograd.grad(y.sum(), leaves)]
        show(both(func.grad(lambda z: (z ** 2 * w).sum())(z), w))
        show(both(func.grad(lambda z: (z ** 3).sum())(x), x))
        show(both(func.vmap(lambda z: (z * w).sum())(torch.ones(2, 3)), w))
        show(both(func.vmap(torch.sin)(x) * w, x, w))
        show(both(func.jacrev(lambda z: z * z * w)(x), x, w))
        show(both(func.jacfwd(lambda z: z * z * w)(z), w))
        show(both(func.hessian(lambda z: (z ** 3 * w).sum())(x), x, w))
        show(both(func.jvp(lambda z: z ** 2 * w, (x,), (torch.ones(3),))[1], x, w))
        out, pull = func.vjp(lambda z: z ** 2 * w, x)
        show(both(out, x, w)); show(both(pull(torch.ones(3))[0], x, w))
        show(both(func.vmap(func.grad(lambda z, v: (z ** 2 * v).sum()), in_dims=(0, None))(torch.ones(2, 3), w), w))
        show(func.grad(lambda z: z.sum())(x).requires_grad)
        with torch.no_grad():
            show(func.grad(lambda z: (z ** 2 * w).sum())(z))
    """,
    "a Function's results are on the tape": """
        class Odd(torch.autograd.Function):
            @staticmethod
            def forward(x, w): return x * x * w
            @staticmethod
            def setup_context(ctx, inputs, output): ctx.save_for_backward(*inputs)
            @staticmethod
            def backward(ctx, g):
                x, w = ctx.saved_tensors
                return 20 * g * x * w, 3 * g * x * x
        w = torch.tensor([2., -1.], requires_grad=True); x = torch.tensor([1., 3.])
        out = torch.func.grad(lambda x: (Odd.apply(x, w) ** 2).sum())(x)
        show(out); show(torch.autograd.grad(out.sum(), w))
    """,
    "vmap": """
        F = torch.nn.functional; vmap = torch.func.vmap; grad = torch.func.grad
        z = torch.tensor(data(3, 4, seed=1)); k = torch.tensor([0, 2, 1]); w = torch.tensor(data(4, seed=2, low=.5, high=2.))
        show([vmap(f)(z) for f in (lambda z: z.max(0)[0], lambda z: z.sort()[0], lambda z: z.topk(2)[0], lambda z: z.argmax(), lambda z: z.median(),
              lambda z: z.cummax(0)[0], lambda z: z.view(2, 2), lambda z: z[1:], lambda z: F.max_pool1d(z[None], 2), lambda z: z.diag(),
              lambda z: z.prod(), lambda z: torch.where(z > 0, z, 0), lambda z: z.norm(), lambda z: z.clamp(0), lambda z: z.expand(2, 4),
              lambda z: torch.stack([z, z]), lambda z: z @ z, lambda z: z.new_zeros(2) + z[:2], lambda z: z.unbind()[0], lambda z: z.split(2)[1],
              lambda z: z.var(), lambda z: z.flip(0), lambda z: z.cumsum(0), lambda z: (z, z.sum()))])
        show([vmap(f)(z, k) for f in (lambda z, k: F.cross_entropy(z, k), grad(lambda z, k: F.cross_entropy(z[None], k[None])),
              grad(lambda z, k: F.nll_loss(z, k)), grad(lambda z, k: F.cross_entropy(z, k, weight=w, label_smoothing=.1)),
              grad(lambda z, k: F.cross_entropy(z[None], k[None], ignore_index=2)), lambda z, k: z.gather(0, k[None]), lambda z, k: z[k])])
        show([vmap(lambda z: z.sum(), in_dims=1)(z), vmap(lambda z: z * 2, out_dims=1)(z), vmap(vmap(lambda z: z * z))(z), vmap(lambda z: z * 2, chunk_size=2)(z)])
        show([vmap(lambda a, b: a + b, in_dims=(0, None))(z, z[0]), vmap(lambda d: d['a'])({'a': z})])
    """,
    "writes in place": """
        z = torch.tensor(data(3, 4, seed=1))
        def a(x):
            y = x.clone(); y[0] = 5; y[1:].mul_(2)
            return (y * y).sum()
        def b(x):
            y = x * 1; v = y.view(2, 2); v[0] = 1; w = y[:2]
            return (w * y[2:]).sum() + v.sum()
        def c(x):
            y = x * 1; v = y[1:3]; y.mul_(3)
            return v.sum()
        grad, vmap, jvp = torch.func.grad, torch.func.vmap, torch.func.jvp
        for f in (a, b, c):
            show([grad(f)(z[0]), vmap(f)(z), vmap(grad(f))(z), grad(lambda z: vmap(f)(z).sum())(z), jvp(f, (z[0],), (z[1],))])
    """,
    "writes of traced values": """
        z = torch.tensor(data(3, seed=1))
        def f(x):
            out = torch.zeros(4, dtype=torch.double)
            out[1] = x[0] * 2; out[2:] += x[1:3]
            return (out * out).sum()
        show(torch.func.grad(f)(z)); show(torch.func.jvp(f, (z,), (z,)))
    """,
    "grad_and_value, argnums and aux": """
        f = lambda x, y: ((x * y).sum(), x + y)
        x, y = torch.arange(3.), torch.ones(3)
        show(torch.func.grad(f, argnums=1, has_aux=True)(x, y))
        show(torch.func.grad_and_value(lambda x, y: (x * y).sum(), argnums=(0, 1))(x, y))
    """,
    "linearize": """
        out, push = torch.func.linearize(lambda x: x.sin() * 2, torch.arange(3.))
        show(out); show(push(torch.ones(3))); show(push(torch.arange(3.)))
    """,
    "random draws under vmap: an error unless told": """
        raises RuntimeError: called random operation while in randomness error mode
        torch.func.vmap(lambda x: x + torch.randn(2))(torch.ones(3, 2))
    """,
    "random draws under vmap": """
        x = torch.zeros(3, 2)
        same = torch.func.vmap(lambda x: x + torch.randn(2), randomness="same")(x)
        different = torch.func.vmap(lambda x: x + torch.rand(2), randomness="different")(x)
        assert bool((same[0] == same[1]).all()) and not bool((different[0] == different[1]).all())
        dropped = torch.func.vmap(lambda x: torch.nn.functional.dropout(x + 1, 0.5), randomness="different")(torch.zeros(4, 64))
        assert not bool((dropped[0] == dropped[1]).all())
        show([tuple(same.shape), tuple(different.shape)])
    """,
    "sizes that differ": """
        raises ValueError: Expected all tensors to have the same size in the mapped dimension, got sizes [3, 4]
        torch.func.vmap(lambda a, b: a + b)(torch.ones(3, 4), torch.ones(4))
    """,
    "a result that is no tensor": """
        raises ValueError: must only return Tensors, got type <class 'int'>
        torch.func.vmap(lambda a: 3)(torch.ones(3, 4))
    """,
    "an argument that is no tensor": """
        raises ValueError: We cannot vmap over non-Tensor arguments
        torch.func.vmap(lambda a: a)(3)
    """,
}

CALLS = {
    "arguments by name": """
        class K(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, k=2): ctx.k = k; return a * k
            @staticmethod
            def backward(ctx, g): return g * ctx.k, None
        x = torch.ones(2, requires_grad=True)
        show([K.apply(a=x, k=4).requires_grad, torch.autograd.grad(K.apply(x, k=3).sum(), x), torch.autograd.grad(K.apply(k=5, a=x).sum(), x)])
    """,
    "too few gradients for arguments by name": """
        raises RuntimeError: returned an incorrect number of gradients (expected 2, got 1)
        class K(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, k=2): return a * k
            @staticmethod
            def backward(ctx, g): return g
        K.apply(torch.ones(2, requires_grad=True), k=3).sum().backward()
    """,
    "a gradient that is no tensor": """
        raises RuntimeError: expected Variable or None (got int)
        class K(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a * 2
            @staticmethod
            def backward(ctx, g): return 3
        K.apply(torch.ones(2, requires_grad=True)).sum().backward()
    """,
    "a gradient for what is no tensor": """
        raises RuntimeError: returned a gradient different than None at position 2
        class K(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, k): return a * k
            @staticmethod
            def backward(ctx, g): return g, g
        K.apply(torch.ones(2, requires_grad=True), 3).sum().backward()
    """,
    "saving what is no tensor": """
        raises TypeError: save_for_backward can only save variables, but argument 0 is of type int
        class K(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): ctx.save_for_backward(3); return a * 2
        K.apply(torch.ones(2, requires_grad=True))
    """,
    "a dirty leaf": """
        raises RuntimeError: a leaf Variable that requires grad has been used in an in-place operation
        class K(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): a.add_(1); ctx.mark_dirty(a); return a
        K.apply(torch.ones(2, requires_grad=True))
    """,
    "Variable of nothing and of a list": """
        raises TypeError: Variable data has to be a tensor, but got list
        show(torch.autograd.Variable())
        torch.autograd.Variable([1.])
    """,
    "retain_grad follows a write": """
        x = torch.ones(2, requires_grad=True); y = x * 1; y.retain_grad(); y.mul_(3); y.sum().backward(); show([y.grad, x.grad])
    """,
    "set_grad_enabled wants a bool": """
        raises TypeError: argument 'enabled' (position 1) must be bool, not str
        torch.set_grad_enabled("x")
    """,
    "what is asked for inside the graph is taken before its hooks, at its end after them": """
        x = torch.ones(2, requires_grad=True); y = x * 1; y.register_hook(lambda g: g * 2)
        show(torch.autograd.grad((y * 1.5).sum(), [x, y], retain_graph=True)); show(torch.autograd.grad((y * 1.5).sum(), [y]))
    """,
}

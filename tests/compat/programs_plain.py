"""Programs about operations that take fewer steps on plain tensors of floats than on others: edges of those steps."""

PLAIN = {
    "reductions": """
        x = torch.tensor([[1., -2., float('nan')], [3., 4., float('inf')]], dtype=torch.float64, requires_grad=True)
        for f in (lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.sum(-1, True), lambda x: torch.sum(x, (0, 1)), lambda x: x.sum(dim=(1,), keepdim=True),
                  lambda x: x.sum([]), lambda x: x.mean(), lambda x: x.mean(0), lambda x: x.mean(dim=1, keepdim=True), lambda x: torch.mean(input=x, dim=0),
                  lambda x: x.sum(0, dtype=torch.float32), lambda x: x.sum(axis=0), lambda x: torch.sum(x, dim=0, keepdims=True)):
            y = f(x); g, = torch.autograd.grad(y.sum(), x)
            show([y, g, type(y.grad_fn).__name__, len(y.grad_fn.next_functions)])
        for shape in ((), (0,), (2, 0), (1, 1)):
            e = torch.ones(shape, requires_grad=True)
            show([e.sum(), e.mean(), e.sum(-1), e.mean(-1, True)])
            e.mean().backward(); show(e.grad)
        with torch.no_grad(): show([x.sum(), x.mean(0).requires_grad])
    """,
    "second derivatives": """
        x = torch.tensor([[.5, -1.5, 2.], [1., .25, -3.]], dtype=torch.float64, requires_grad=True)
        w = torch.tensor([[1., 2., -1.], [.5, 3., 2.]], dtype=torch.float64, requires_grad=True)
        for f in (lambda: (x * x).sum(0).prod(), lambda: (x ** 3).mean(1).sum() ** 2, lambda: x.softmax(1)[:, 0].sum(), lambda: (w * x.log_softmax(0)).sum(),
                  lambda: (torch.where(x > 0, x * x, w ** 2) ** 2).sum(), lambda: (x * w).clamp(-1, 1).pow(2).sum(), lambda: torch.cat([x * x, w * x]).prod(0).sum(),
                  lambda: ((x @ w.T) ** 2).sum(), lambda: torch.nn.functional.mse_loss(x * x, w), lambda: (1 - x * w).pow(2).sum()):
            g, h = torch.autograd.grad(f(), (x, w), create_graph=True, allow_unused=True)
            s = torch.autograd.grad((g * torch.arange(6.).view(2, 3)).sum(), (x, w), allow_unused=True)
            show([f(), g, *s])
    """,
    "clamp and where": """
        nan, inf = float('nan'), float('inf')
        x = torch.tensor([-inf, -1., 0., .5, 1., 2., inf], requires_grad=True)
        for a, b in ((0, 1), (0., None), (None, 1), (1, 0), (-inf, inf), (.5, .5)):
            y = x.clamp(a, b); y.backward(torch.ones(7)); show([y, x.grad, type(y.grad_fn).__name__]); x.grad = None
        show([x.clamp(min=0), torch.clip(x, max=1), x.detach().clamp_(0, 1), torch.tensor([1, 5]).clamp(2, 3.5), torch.tensor([1, 5]).clamp(2)])
        m = torch.tensor([[True], [False]])
        y = torch.where(m, x, x.detach()[:1] * 2); y.sum(0)[1:-1].sum().backward(); show([y, x.grad])
        show([torch.where(m, 1., x), torch.where(m, x, 2), torch.where(x > 0, x.double(), x), type(torch.where(x > 0, x, 0.).grad_fn).__name__])
    """,
    "joining": """
        a, b = torch.ones(2, 3, requires_grad=True), torch.zeros(1, 3)
        y = torch.cat((a, b, a)); y.backward(torch.arange(15.).view(5, 3)); show([y, a.grad, len(y.grad_fn.next_functions)])
        show([torch.cat([a, a], 1), torch.cat([a, a], dim=-1), torch.cat([torch.ones(0), a]), torch.cat([a.double(), a]), torch.cat([a]), torch.concat([b, b])])
    """,
    "joining what does not fit": """
        raises RuntimeError: Sizes of tensors must match except in dimension 0
        torch.cat([torch.ones(2, 3), torch.ones(2, 4)])
    """,
    "summed twice along one dimension": """
        raises RuntimeError: appears multiple times in the list of dims
        torch.ones(2, 3).sum((0, -2))
    """,
    "summed along what is not there": """
        raises IndexError: Dimension out of range
        torch.ones(2, 3).mean(2)
    """,
    "straight into memory": """
        p = torch.tensor([1., 2., 3.], requires_grad=True); g = torch.tensor([.5, -1., 2.])
        with torch.no_grad():
            for f in (lambda: p.sub_(g, alpha=.1), lambda: p.add_(g), lambda: p.mul_(2), lambda: p.div_(4.), lambda: p.add_(1, alpha=3), lambda: p.sub_(g.double(), alpha=2),
                      lambda: p.mul_(g[:1]), lambda: p.add_(torch.tensor(2)), lambda: p.sub_(p), lambda: p.add_(g, alpha=0)):
                r = f(); show([r is p, p, p._version, p.is_leaf, p.requires_grad])
            q = torch.ones(4); r = q.view(2, 2); r.mul_(3); q.add_(q); show([q, r, q._version, r._version])
            h = torch.ones(3, dtype=torch.float16); show(h.add_(h, alpha=2)); i = torch.ones(3, dtype=torch.int64); show([i.mul_(2), i.add_(i, alpha=3)])
            p /= 2; p -= g; p *= g; p += 1; show(p)
        u = torch.ones(3); u.add_(1).mul_(p); show([u, u.requires_grad])
        n = torch.ones(2); n.div_(0); show(n)
    """,
    "what was saved and then changed straight": """
        raises RuntimeError: has been modified by an inplace operation
        w = torch.ones(3, requires_grad=True); y = (w * w).sum()
        with torch.no_grad(): w.add_(1)
        y.backward()
    """,
    "straight into a broadcast": """
        raises RuntimeError: doesn't match the broadcast shape
        with torch.no_grad(): torch.ones(3).add_(torch.ones(2, 3))
    """,
    "straight from a float into integers": """
        raises RuntimeError: can't be cast to the desired output type
        with torch.no_grad(): torch.ones(3, dtype=torch.int64).mul_(1.5)
    """,
    "gradients of constants by parts require grad": """
        for f in (lambda x: x.abs(), lambda x: x.relu(), lambda x: torch.nn.functional.relu(x * 1), lambda x: (x * x).abs()):
            x = torch.tensor([1., -2., 3.], requires_grad=True)
            g, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
            h, = torch.autograd.grad(g.sum(), x)
            show([g, g.requires_grad, h + torch.zeros(3)])
            x[1].abs().backward(create_graph=True); show([x.grad.requires_grad])
    """,
    "a view of what requires grad later": """
        c = torch.ones(3, 3); v = c[0]; show([v.grad_fn is None])
        c.mul_(2); show([v.grad_fn is None, v.requires_grad])
        c.requires_grad_(); show([v.grad_fn is None, v.requires_grad])
    """,
    "a gradient retained and a part written": """
        t = torch.ones(3, 3, requires_grad=True) * 1; t.retain_grad()
        t[0] = 3; t.sum().backward(); show([t.grad, t.retains_grad])
        t = torch.ones(3, 3, requires_grad=True) * 1; t.retain_grad()
        t[1:].mul_(2); (t * t).sum().backward(); show(t.grad)
    """,
    "cross-entropy": """
        F = torch.nn.functional
        inf, nan = float('inf'), float('nan')
        for rows, k in (([[1., 2., 3.], [0., -1., 5.]], [0, 2]), ([[1., -inf, 3.]], [0]), ([[1., -inf, 3.]], [1]), ([[inf, 1., 2.]], [1]), ([[nan, 1., 2.]], [1]), ([[-inf] * 3], [0]),
                        ([[1., 2.], [3., 4.]], [-100, 1]), ([[1., 2.]], [-100])):
            for dtype in (torch.float32, torch.float64):
                x = torch.tensor(rows, dtype=dtype, requires_grad=True); k = torch.as_tensor(k)
                y = F.cross_entropy(x, k); y.backward()
                show([y, x.grad, type(y.grad_fn).__name__])
                show([F.cross_entropy(x, k, reduction='sum'), F.cross_entropy(x, k, label_smoothing=.1)])
        x = torch.tensor([[.5, 1., -1.], [2., 0., 1.]], dtype=torch.float64, requires_grad=True); k = torch.tensor([2, 0], dtype=torch.uint8)
        g, = torch.autograd.grad(F.cross_entropy(x, k), x, create_graph=True)
        show([g, torch.autograd.grad((g * x).sum(), x)[0], F.cross_entropy(x[0], torch.tensor(1)), F.cross_entropy(x, torch.ones(2, 3, dtype=torch.float64) / 3)])
        with torch.no_grad(): show(F.cross_entropy(x, k.long()).requires_grad)
    """,
    "a class that is not there": """
        raises IndexError: Target 3 is out of bounds.
        torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 3]))
    """,
    "hooks of what is detached in place": """
        def run(order):
            log = []; x = torch.ones(2, requires_grad=True) * 2
            for o in order:
                if o == 'h': x.register_hook(lambda g: log.append(1) or g * 2)
                if o == 'd': x.detach_()
                if o == 'r': x.requires_grad_()
                if o == 'b': x.sum().backward()
            show([len(log), x.grad])
        for order in ('hdrb', 'hdrhb', 'drhb', 'hdrbb', 'hhdrb'): run(order)
    """,
    "fewer classes than rows": """
        raises ValueError: Expected input batch_size (2) to match target batch_size (1).
        torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0]))
    """,
    "more classes than rows, with weights": """
        raises ValueError: Expected input batch_size (1) to match target batch_size (2).
        torch.nn.functional.cross_entropy(torch.ones(1, 3), torch.tensor([0, 1]), weight=torch.ones(3))
    """,
    "errors of other sizes": """
        raises RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1
        torch.nn.functional.mse_loss(torch.ones(2, 3), torch.ones(4))
    """,
}

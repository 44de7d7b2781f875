"""Programs about hooks on leaves and nodes, and what the graph shows of composed operations."""

NODES = {
    "a leaf is finished as soon as all has arrived": """
        log = []
        x = torch.ones(2, requires_grad=True); y = torch.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda p: log.append(('x', y.grad is None)))
        y.register_post_accumulate_grad_hook(lambda p: log.append(('y', x.grad is None)))
        a = x * 2; a.register_hook(lambda g: log.append('a')); b = a * y; b.register_hook(lambda g: log.append('b'))
        c = b.exp(); c.register_hook(lambda g: log.append('c')); c.sum().backward()
        show(str(log)); show([x.grad, y.grad])
    """,
    "an optimizer step in backward": """
        log = []; ws = [torch.ones(1, requires_grad=True) for _ in range(3)]
        def step(p):
            with torch.no_grad(): p.sub_(p.grad * 0.5)
            p.grad = None
        for k, w in enumerate(ws):
            w.register_post_accumulate_grad_hook(step); w.register_post_accumulate_grad_hook(lambda p, k=k: log.append(k))
        h = torch.ones(1)
        for k, w in enumerate(ws):
            h = (h + w).tanh(); h.register_hook(lambda g, k=k: log.append('h%d' % k))
        (h + ws[0]).backward()
        show(str(log)); show(ws); show([w.grad for w in ws])
    """,
    "post-accumulate hooks and grad": """
        log = []; x = torch.ones(2, requires_grad=True)
        h = x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.tolist()))
        torch.autograd.grad((x * 2).sum(), x); torch.autograd.backward((x * 2).sum(), inputs=[x])
        h.remove(); (x * 2).sum().backward()
        show(str(log)); show(x.grad)
    """,
    "post-accumulate hooks on what is no leaf": """
        raises RuntimeError: post accumulate grad hooks cannot be registered on non-leaf tensors
        (torch.ones(2, requires_grad=True) * 2).register_post_accumulate_grad_hook(lambda p: None)
    """,
    "node hooks see the whole operation": """
        F = torch.nn.functional
        for op in (lambda x: x.softmax(1), lambda x: x.var(), lambda x: x.norm(), lambda x: x.logsumexp(1), lambda x: x.std(0), lambda x: x.mean(), lambda x: x.prod(1),
                   lambda x: x[[0, 1]], lambda x: torch.cat([x, x]), lambda x: x.repeat(2, 1), lambda x: x.cumsum(0), lambda x: x.gather(1, torch.tensor([[0], [1], [2]])),
                   lambda x: torch.where(x > 0, x, -x), lambda x: x @ x.t(), F.gelu, lambda x: x.abs(), lambda x: x.expand(2, 3, 4), lambda x: x.view(-1), lambda x: x.max(1)[0],
                   lambda x: x.sort()[0], lambda x: F.mse_loss(x, x.detach() * 2), lambda x: torch.lerp(x, x * 2, 0.3), lambda x: x.t(), lambda x: x * 2):
            log = []; x = torch.tensor(data(3, 4, seed=1)).requires_grad_(); y = op(x); n = y.grad_fn
            n.register_hook(lambda gi, go: log.append([[None if g is None else tuple(g.shape) for g in gs] for gs in (gi, go)]))
            n.register_prehook(lambda go: log.append(len(go)))
            (y * y).sum().backward()
            show(str([n.name(), log, len(n.next_functions)])); show(x.grad)
    """,
    "node hooks replace the gradients of the whole operation": """
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x.softmax(0); y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10,)); (y * torch.tensor([1., 3.])).sum().backward(); show(x.grad)
        y = x.var(); y.grad_fn.register_prehook(lambda go: (go[0] * 10,)); y.backward(); show(x.grad)
        y = x.var(); h = y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10,)); h.remove(); y.backward(); show(x.grad)
        y = x.std(); y.grad_fn.register_hook(lambda gi, go: (gi[0] * 2,)); (g,) = torch.autograd.grad(y, x, create_graph=True); show(torch.autograd.grad(g.sum(), x))
    """,
    "a node hook that gives too few": """
        raises RuntimeError: has returned an incorrect number of values (got 1, but expected 2)
        y = torch.ones(2, requires_grad=True) * 2
        y.grad_fn.register_hook(lambda gi, go: (None,)); y.sum().backward()
    """,
    "hooks of the accumulating node": """
        log = []; x = torch.tensor([1., 2.], requires_grad=True); y = x * 2
        end = y.grad_fn.next_functions[0][0]
        end.register_hook(lambda gi, go: log.append((len(gi), len(go), x.grad is None))); end.register_prehook(lambda go: log.append(x.grad is None))
        y.sum().backward()
        show(str(log)); show([end.name(), type(end).__name__, end.variable is x])
    """,
    "a pack hook that writes": """
        raises RuntimeError: A saved tensor pack hook is modifying its input in place.
        x = torch.ones(2, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t): x * x
    """,
    "saved_tensors_hooks nest, and are refused": """
        graph = torch.autograd.graph; x = torch.ones(2, requires_grad=True); log = []
        with graph.saved_tensors_hooks(lambda t: log.append('outer') or t, lambda t: t):
            with graph.saved_tensors_hooks(lambda t: log.append('inner') or t, lambda t: t): x.exp()
            x.exp()
        show(log)
        with graph.save_on_cpu(): y = x * x
        y.sum().backward(); show(x.grad)
        try:
            with graph.disable_saved_tensors_hooks("not here"):
                with graph.saved_tensors_hooks(lambda t: t, lambda t: t): pass
        except RuntimeError as e: show(str(e))
        assert isinstance(y.grad_fn, graph.Node)
    """,
    "edges outlive their tensors": """
        graph = torch.autograd.graph; x = torch.ones(2, requires_grad=True); y = x * 2
        e = graph.get_gradient_edge(y); show([isinstance(e, graph.GradientEdge), e.output_nr])
        show(torch.autograd.grad((y * 3).sum(), e)); del y
        torch.autograd.backward([e], [torch.ones(2) * 5]); show(x.grad)
    """,
    "increment_version": """
        raises RuntimeError: modified by an inplace operation
        x = torch.ones(2, requires_grad=True); s = torch.ones(2); y = x * s
        torch.autograd.graph.increment_version(s); y.sum().backward()
    """,
    "multi-grad hooks over passes": """
        log = []; a, b, c = [torch.ones(2, requires_grad=True) for _ in range(3)]
        h = torch.autograd.graph.register_multi_grad_hook((a, b, c), lambda gs: log.append([None if g is None else g.tolist() for g in gs]))
        (a * b).sum().backward(); (a * b * c).sum().backward(); h.remove(); (a * b).sum().backward(); show(str(log))
    """,
}

REFUSED = {
    "what has no derivative": """
        x = torch.tensor([1., 2.], requires_grad=True)
        show([torch.nextafter(x, torch.zeros(2)).requires_grad, x.unique().requires_grad, x.unique_consecutive().requires_grad, x.histc(2).requires_grad, x.argmax().requires_grad])
    """,
    "a complete decomposition of a tall matrix": """
        raises RuntimeError: not differentiable when mode='complete' and nrows > ncols
        x = torch.tensor([[4., 1.], [1., 3.], [0., 1.]], requires_grad=True)
        q, r = torch.linalg.qr(x, mode="complete")
        torch.autograd.grad(q.sum(), x)
    """,
    "draws have a zero slope": """
        x = torch.tensor([.1, .2], requires_grad=True)
        for f in (torch.bernoulli, torch.poisson, lambda m: torch.normal(m, 1.)):
            y = f(x); show([y.requires_grad, torch.autograd.grad(y.sum(), x)])
    """,
    "grad without inputs": """
        raises RuntimeError: `inputs` argument to `grad()` cannot be empty
        torch.autograd.grad(torch.ones(2, requires_grad=True).sum(), [])
    """,
    "a recorded gradient is added to in place": """
        x = torch.ones(2, requires_grad=True)
        (x * x).sum().backward(create_graph=True); a = x.grad
        (x * 3).sum().backward(); show([a is x.grad, a.detach(), a.requires_grad])
    """,
}

"""Programs about what a tensor is besides its values: inference tensors, storage, devices, bfloat16, interop."""

INFERENCE = {
    "which tensors are inference tensors": """
        x = torch.ones(3, requires_grad=True); n = torch.ones(3)
        with torch.inference_mode():
            made = [torch.ones(3), x * 2, n.sum(), torch.cat([n, n]), n[[0, 1]], n.double(), n.max(0)[1], torch.tensor(1),
                    torch.Tensor([1.]), torch.randn(2), torch.zeros_like(n), n.clone(), torch.from_numpy(np.ones(1)), torch.ones(3)[0:2]]
            shared = [n.view(3, 1), x.view(3), n.detach(), n.float(), n]
            show([t.is_inference() for t in made + shared])
            show([made[-1]._is_view(), shared[0]._is_view(), shared[1].requires_grad, (x * 2).requires_grad])
            show(torch.is_inference_mode_enabled())
            with torch.enable_grad():
                show((x * 2).requires_grad)
            with torch.inference_mode(False):
                show([torch.ones(2).is_inference(), (x * 2).requires_grad, torch.is_grad_enabled()])
        i = made[0]
        show([t.is_inference() for t in (i + 1, i.clone(), i.view(3, 1), i[0], i.detach(), i.T, i.data)])
        show([torch.is_inference(i), torch.is_inference(n), torch.is_inference_mode_enabled()])
    """,
    "no version counter": """
        raises RuntimeError: Inference tensors do not track version counter.
        with torch.inference_mode(): i = torch.ones(3)
        i._version
    """,
    "not saved for backward": """
        raises RuntimeError: Inference tensors cannot be saved for backward.
        with torch.inference_mode(): i = torch.ones(3)
        torch.ones(3, requires_grad=True) * i
    """,
    "not saved by a Function": """
        raises RuntimeError: Inference tensors cannot be saved for backward.
        with torch.inference_mode(): i = torch.ones(3)
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b): ctx.save_for_backward(b); return a * 1
            @staticmethod
            def backward(ctx, g): return g, None
        F.apply(torch.ones(3, requires_grad=True), i)
    """,
    "used where nothing is saved": """
        with torch.inference_mode(): i = torch.full((3,), 2.)
        x = torch.ones(3, requires_grad=True)
        y = x + i
        y.sum().backward()
        show([y, x.grad, y.is_inference(), i * 3, (i * 3).is_inference()])
        show(x.clone().add_(i).requires_grad)
    """,
    "changed inside": """
        n = torch.ones(3)
        with torch.inference_mode():
            i = torch.ones(3); i.add_(1); i[0] = 5; i.exp_()
            n.mul_(2)
            show(i); show(i.requires_grad_().requires_grad)
        show([n, n._version])
    """,
    "changed outside": """
        with torch.inference_mode(): i = torch.ones(3)
        def message(f):
            try: f()
            except RuntimeError as e: return str(e)[:64]
        for f in (lambda: i.add_(1), lambda: i.zero_(), lambda: i.__setitem__(0, 1), lambda: i[0:1].fill_(2), lambda: i.copy_(torch.ones(3)), lambda: torch.add(i, i, out=i)):
            show(message(f))
    """,
    "requires_grad outside": """
        raises RuntimeError: Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.
        with torch.inference_mode(): i = torch.ones(3)
        i.requires_grad_()
    """,
    "a view made in inference mode": """
        raises RuntimeError: A view was created in inference mode and is being modified inplace in normal mode.
        x = torch.ones(3, requires_grad=True) * 1
        with torch.inference_mode(): v = x.view(3, 1)
        v.add_(1)
    """,
    "a decorator": """
        @torch.inference_mode()
        def f(x): return x * 2
        @torch.inference_mode
        def g(x): return x * 2
        x = torch.ones(2, requires_grad=True)
        show([f(x).is_inference(), g(x).is_inference(), (x * 2).requires_grad])
    """,
}

SAVED_VIEWS = {
    "an index that is changed before backward": """
        def message(op):
            x = torch.ones(4, requires_grad=True); k = torch.tensor([0, 1])
            y = op(x, k); k.add_(1)
            try: y.sum().backward()
            except RuntimeError as e: return "modified by an inplace operation" in str(e)
        show([message(op) for op in (lambda x, k: x[k], lambda x, k: x.gather(0, k), lambda x, k: x.index_select(0, k), lambda x, k: x.take(k))])
    """,
    "what a composed operation reshaped is checked": """
        raises RuntimeError: modified by an inplace operation
        w = torch.ones(1, 4, requires_grad=True) * 1; v = torch.ones(1, 1, 2, requires_grad=True)
        y = torch.nn.functional.conv1d(w, v)
        w.add_(1)
        y.sum().backward()
    """,
}

STORAGE = {
    "resize_": """
        a = torch.arange(6.); v = a[1:4]
        show(a.resize_(2, 3).shape); show(a.resize_(4)); show(v.resize_(2, 2)); show(a._version)
        e = torch.empty(0).resize_(2, 2).fill_(1.); show(e); show(e.resize_as_(torch.zeros(4)).shape); show(torch.ones(3).resize_(0).shape)
    """,
    "resize_ of what requires grad": """
        raises RuntimeError: cannot resize variables that require grad
        torch.ones(4, requires_grad=True).resize_(2, 2)
    """,
    "resize_ in no_grad of what requires grad": """
        raises RuntimeError: cannot resize variables that require grad
        with torch.no_grad(): torch.ones(4, requires_grad=True).resize_(2, 2)
    """,
    "set_": """
        a, b = torch.arange(6.), torch.ones(2, 2)
        a.set_(b); show([a, a.data_ptr() == b.data_ptr(), a._version])
        a.add_(1); show(b); a.set_(b.storage()); show(a.shape); a.set_(b.storage(), 1, (2,), (2,)); show(a); show(a.set_().shape)
        show([b.is_set_to(b.view(2, 2)), b.is_set_to(b.t())])
    """,
    "set_ of a leaf": """
        raises RuntimeError: a leaf Variable that requires grad is being used in an in-place operation
        torch.ones(2, requires_grad=True).set_(torch.ones(2))
    """,
    "set_ of another dtype": """
        raises RuntimeError: Could not set tensor of type
        torch.ones(2).set_(torch.ones(2).double())
    """,
    "resize, deprecated": """
        x = torch.arange(4., requires_grad=True)
        y = x.resize(2, 2); show(y); show(x.resize_as(torch.ones(4, 1)))
        (y * 2).sum().backward(); show(x.grad)
    """,
    "resize to another count": """
        raises RuntimeError: autograd's resize can only change the shape of a given tensor
        torch.ones(4).resize(5)
    """,
    "data keeps its history apart": """
        x = torch.ones(2, requires_grad=True)
        y = x * x
        x.data.mul_(3); show(x._version)
        y.sum().backward(); show(x.grad)
        x.data = torch.zeros(3); show([x, x.requires_grad, x.is_leaf])
    """,
}

BFLOAT16 = {
    "values": """
        B = torch.bfloat16; F = torch.nn.functional
        def plain(r): return [plain(t) for t in r] if isinstance(r, (tuple, list)) else [str(r.dtype), r.detach().float() if r.dtype is B else r.detach()]
        x = torch.tensor([1., 2., 3.5], dtype=B, requires_grad=True); y = torch.tensor([[1., 2.], [3., 4.]]).bfloat16(); f = torch.ones(3); i = torch.tensor([1, 2, 3])
        for r in (x, x * 2, x * 2.5, x + f, x * i, x * torch.tensor(2.5), x * torch.ones(3).half(), x.exp(), x.sum(), x.mean(), y @ y, y.mm(y), x.max(), x.max(0),
                  x / 3, x ** 2, x.sqrt(), torch.cat([x, x]), x.view(3, 1), x[1:], x > 1, x.softmax(0), x.float(), x.double(), x.int(), i.bfloat16(), f.to(B),
                  x.clone().mul_(2), x.norm(), x.var(), x.relu(), x.sigmoid(), torch.where(x > 2, x, 0.), -x, x.clamp(1.5), x.prod(), x.cumsum(0), x.sort(),
                  F.layer_norm(x, (3,)), F.linear(x, torch.ones(2, 3, dtype=B)), F.mse_loss(x, x * 2), F.gelu(x), x.erf(), x.round(), x.dot(x), x.logsumexp(0)):
            show(plain(r))
        show([str(t.grad_fn).split()[0] for t in (x * 2, x.exp(), x.sum(), x.sigmoid(), torch.cat([x, x]))])
    """,
    "creation and printing": """
        B = torch.bfloat16
        x = torch.tensor([1., 2., 3.5], dtype=B, requires_grad=True)
        show([str(t.dtype) for t in (torch.zeros(2, dtype=B), torch.ones_like(x), torch.full((2,), 3.3, dtype=B), torch.arange(3, dtype=B), torch.eye(2, dtype=B), torch.randn(3, dtype=B), x.new_zeros(2), torch.BFloat16Tensor([1.]))])
        show([str(x), str(x.detach()), x.tolist(), x[0].item(), x.type(), x.element_size(), x.is_floating_point(), B.is_floating_point])
        show([torch.finfo(B).eps, torch.finfo(B).max, str(torch.promote_types(B, torch.half)), str(torch.promote_types(B, torch.int64)), str(torch.promote_types(B, torch.complex64)), str(torch.result_type(x, 1.5))])
        show(isinstance(x, torch.BFloat16Tensor))
    """,
    "gradients": """
        import pickle, copy
        B = torch.bfloat16
        x = torch.tensor([1., 2., 3.5], dtype=B, requires_grad=True)
        z = (x * x).sum() + (x.exp() * torch.ones(3)).sum() + (x.view(1, 3) @ torch.ones(3, 2, dtype=B)).sum() + x.float().log().sum()
        z.backward()
        show([str(x.grad.dtype), x.grad.float()])
        (g,) = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
        show([g.detach().float(), torch.autograd.grad(g.sum(), x)[0].float()])
        show([pickle.loads(pickle.dumps(x)).float().detach(), copy.deepcopy(x).float().detach()])
    """,
}

DEVICES = {
    "no CUDA": """
        show([torch.cuda.is_available(), torch.cuda.device_count()])
        def message(f):
            try: f()
            except (RuntimeError, AssertionError) as e: return type(e).__name__
        x = torch.ones(2)
        show([message(f) for f in (lambda: x.cuda(), lambda: x.to("cuda"), lambda: torch.zeros(2, device="cuda"), lambda: torch.ones(1).to(torch.device("cuda:0")))])
        d = torch.device("cuda:1"); show([str(d), d.type, d.index, repr(d), str(torch.device("cpu")), torch.device("cuda", 1) == d])
        show([x.to("cpu") is x, x.cpu() is x, x.is_cuda, str(x.device), x.to(torch.device("cpu"), torch.float64).dtype == torch.float64])
    """,
    "a device that is none": """
        raises RuntimeError: device type at start of device string: nowhere
        torch.device("nowhere")
    """,
}

OUT = {
    "factories": """
        for make in (lambda o: torch.zeros(2, 3, out=o), lambda o: torch.ones(2, out=o), lambda o: torch.full((2,), 3.5, out=o), lambda o: torch.arange(4, out=o),
                     lambda o: torch.linspace(0, 1, 3, out=o), lambda o: torch.eye(2, out=o)):
            for o in (torch.empty(0), torch.empty(0, dtype=torch.double), torch.empty(0, dtype=torch.int64)):
                r = make(o); show([r is o, o])
        o = torch.empty(0); torch.randn(3, out=o); show(o.shape); torch.rand(2, out=o); show([o.shape, o._version > 0])
        o = torch.empty(0, dtype=torch.int64); torch.randint(3, (4,), out=o); torch.randperm(3, out=o); show(o.shape)
    """,
    "operations": """
        o = torch.empty(0); r = torch.add(torch.ones(3), 1, out=o); show([r is o, o])
        v, i = torch.empty(3), torch.empty(3, dtype=torch.int64)
        r = torch.max(torch.arange(9.).view(3, 3), 1, out=(v, i)); show([r[0] is v, v, i])
        for f in (lambda o: torch.matmul(torch.ones(2, 2), torch.ones(2, 2), out=o), lambda o: torch.cat([torch.ones(2)] * 2, out=o), lambda o: torch.exp(torch.ones(2), out=o),
                  lambda o: torch.sum(torch.ones(2, 2), 0, out=o), lambda o: torch.where(torch.tensor([True, False]), torch.ones(2), torch.zeros(2), out=o), lambda o: torch.clamp(torch.ones(2), 2., out=o)):
            o = torch.empty(0); show([f(o) is o, o])
        x = torch.ones(3, requires_grad=True)
        with torch.no_grad(): torch.mul(x, 2, out=x)
        show([x, x._version])
    """,
    "out of a lower kind": """
        raises RuntimeError: can't be cast to the desired output type
        torch.add(torch.ones(3), 1, out=torch.empty(3, dtype=torch.int64))
    """,
}

"""Programs that use what no other program does, so that every name of torch.autograd is shown to work."""

NAMED = {
    "classes of contexts and functions": """
        function = torch.autograd.function
        show([issubclass(function.BackwardCFunction, function.FunctionCtx), isinstance(torch.autograd.Function, function.FunctionMeta)])
        class F(function.InplaceFunction):
            @staticmethod
            def forward(ctx, x):
                assert isinstance(ctx, function.FunctionCtx); ctx.materialize_grads = True
                ctx.mark_dirty(x); y = x.add_(1); ctx.mark_non_differentiable()
                ctx.save_for_backward(y); ctx.save_for_forward(y)
                show([len(ctx.dirty_tensors), len(ctx.non_differentiable), len(ctx.to_save), len(ctx.saved_for_forward), ctx.requires_grad])
                return y
            @staticmethod
            def backward(ctx, g): return g * 2
        x = torch.ones(2, requires_grad=True)
        F.apply(x * 1).sum().backward(); show(x.grad)
    """,
    "saved_variables and mark_shared_storage, deprecated": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always"); ctx.mark_shared_storage((x, x))
                show(len(caught))
                return x * 2
            @staticmethod
            def backward(ctx, g):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always"); x, = ctx.saved_variables
                show(["deprecated" in str(w.message) for w in caught][:1])
                return g * x
        x = torch.full((2,), 3., requires_grad=True); F.apply(x).sum().backward(); show(x.grad)
    """,
    "hvp and vhp": """
        functional = torch.autograd.functional
        f = lambda x, y: (x ** 3 * y).sum()
        x, y = torch.arange(1., 4.), torch.ones(3)
        show(functional.hvp(f, (x, y), (y, x))); show(functional.vhp(f, (x, y), (y, x)))
    """,
    "levels of forward mode": """
        import torch.autograd.forward_ad as fw
        level = fw.enter_dual_level()
        dual = fw.make_dual(torch.ones(2), torch.ones(2)); out = fw.unpack_dual(dual * 3)
        show([isinstance(out, fw.UnpackedDualTensor), out.tangent]); fw.exit_dual_level(level=level)
        show(fw.unpack_dual(torch.ones(2)).tangent is None)
    """,
    "gradcheck's error": """
        from torch.autograd.gradcheck import GradcheckError
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, g): return g * 3
        try: torch.autograd.gradcheck(Wrong.apply, torch.ones(2, dtype=torch.double, requires_grad=True))
        except GradcheckError as e: show([isinstance(e, RuntimeError), "Jacobian mismatch for output 0 with respect to input 0" in str(e)])
    """,
    "modules of modes": """
        from torch.autograd import grad_mode, anomaly_mode
        show([grad_mode.no_grad is torch.no_grad, torch.autograd.variable.Variable is torch.autograd.Variable])
        with anomaly_mode.detect_anomaly(): torch.ones(2, requires_grad=True).sum().backward()
        with torch.autograd.detect_anomaly(check_nan=False): pass
        torch.autograd.set_detect_anomaly(True); torch.autograd.set_detect_anomaly(False)
        with anomaly_mode.set_detect_anomaly(False): pass
    """,
    "checkpoint's helpers": """
        from torch.utils import checkpoint as c
        x = torch.ones(2, requires_grad=True)
        out = c.checkpoint_sequential([torch.exp, torch.sin, lambda x: x * 2], 2, x, use_reentrant=False)
        out.sum().backward(); show([out.detach(), x.grad])
        d, n = c.detach_variable((x, torch.ones(1))); show([d.requires_grad, d.is_leaf, n.requires_grad])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always"); c.check_backward_validity([torch.ones(1)])
        show([len(caught), issubclass(c.CheckpointError, RuntimeError), issubclass(c.CheckpointFunction, torch.autograd.Function), len(c.noop_context_fn())])
        with c.set_checkpoint_early_stop(False), c.set_checkpoint_debug_enabled(False):
            c.checkpoint(torch.exp, x, use_reentrant=False, context_fn=c.noop_context_fn).sum().backward()
        show(x.grad)
    """,
    "draws in place": """
        z = lambda: torch.zeros(100)
        for x in (z().normal_(), z().uniform_(), z().cauchy_(), z().exponential_(), z().geometric_(0.5), z().log_normal_(), z().random_(), z().bernoulli_()):
            assert bool(torch.isfinite(x).all()) and bool((x != 0).any()); show(x._version > 0)
        assert torch.zeros(2).normal_(3, 0).tolist() == [3, 3] and torch.ones(3).multinomial(2).tolist() != [0, 0]
        show(torch.ones(4).multinomial(3).shape)
    """,
    "sparse tensors": """
        s = torch.sparse_coo_tensor([[0, 2]], [3., 4.], (3,))
        show([s.is_coalesced(), s.coalesce().indices(), s.coalesce().values(), s.sparse_dim(), s.dense_dim(), s.to_dense(), torch.ones(2, 2).to_sparse().is_sparse])
    """,
    "what a tensor is not": """
        x = torch.ones(2)
        show([x.is_ipu, x.is_maia, x.is_mps, x.is_mtia, x.is_sparse_csr, x.is_vulkan, x.is_xla, x.is_xpu, x.is_shared(), x.is_pinned()])
        assert x.share_memory_() is x and x.const_data_ptr() == x.data_ptr() and isinstance(x.storage_type(), type)
        show([x.le(1), x.le(2)])
        show(type(x.as_subclass(torch.nn.Parameter)).__name__)
    """,
    "removed functions": """
        def message(f):
            try: f()
            except RuntimeError as e: return "removed" in str(e)
        x = torch.ones(2, 2)
        show(torch.ones(2, 2).map2_(x, x, lambda a, b, c: a + b + 2 * c))
        try: x.pin_memory()
        except RuntimeError as e: show(str(e)[:40])
        show([message(f) for f in (lambda: x.eig(), lambda: x.symeig(), lambda: x.lstsq(x), lambda: x.solve(x), lambda: x.reinforce(1))])
    """,
    "the profiler": """
        profiler = torch.autograd.profiler
        x = torch.ones(2, requires_grad=True)
        with profiler.profile() as prof:
            with profiler.record_function("mine"): (x * x).sum().backward()
        events = prof.function_events
        show(["mine" in {e.name for e in events}, isinstance(prof.key_averages().table(), str)])
        show([callable(profiler.emit_nvtx), callable(profiler.load_nvprof)])
        assert isinstance(prof.key_averages(), profiler.EventList) and isinstance(events[0], profiler.FunctionEvent)
    """,
}

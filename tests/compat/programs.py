"""Programs for torch: what they assert must hold, and what they `show` must be the same with torch.

Each text runs with `torch` bound to fgrad.compat (tests/compat) and, against the real one, to both (tests/parity).
A program that starts with `raises Kind: phrase` must end in that error.
"""

from tests.compat.programs_func import BATCHED, CALLS, FUNCTION_TRANSFORMS, TRANSFORMS
from tests.compat.programs_graph import NODES, REFUSED
from tests.compat.programs_names import NAMED
from tests.compat.programs_plain import PLAIN
from tests.compat.programs_state import BFLOAT16, DEVICES, INFERENCE, OUT, SAVED_VIEWS, STORAGE

ENGINE = {
    "accumulation adds into the same object": """
        x = torch.ones(3, requires_grad=True)
        y = x * x
        y.sum().backward(retain_graph=True)
        alias = x.grad
        y.sum().backward(retain_graph=True)
        assert x.grad is alias
        show(alias)
        y.sum().backward(create_graph=True)
        show(alias); show(x.grad)
        assert x.grad is not alias
    """,
    "gradients of two leaves never share memory": """
        a = torch.ones(4, requires_grad=True); b = torch.ones(4, requires_grad=True)
        (a + b).backward(torch.ones(4))
        assert a.grad.data_ptr() != b.grad.data_ptr()
        a.grad.zero_()
        show(b.grad)
    """,
    "a gradient that is expanded is stored contiguous": """
        a = torch.ones(3, 3, requires_grad=True)
        a.sum().backward()
        assert a.grad.is_contiguous() and a.grad.stride() == (3, 1)
        a.grad[0, 0] = 5
        show(a.grad)
    """,
    "the gradient given by the caller is not taken over": """
        a = torch.ones(3, requires_grad=True)
        g = torch.ones(3)
        (a + 1).backward(g)
        a.grad.add_(1)
        show(g)
    """,
    "a gradient buffered in three places": """
        x = torch.ones(2, requires_grad=True)
        g = torch.full((2,), 3.0)
        y = x.view(2)
        (y + y + y).backward(g)
        show(x.grad); show(g)
    """,
    "a graph that saved nothing is walked twice": """
        b = torch.ones(2, requires_grad=True)
        c = b + 1
        c.sum().backward(); c.sum().backward()
        show(b.grad)
    """,
    "a graph that saved something is not": """
        raises RuntimeError: Specify retain_graph=True
        x = torch.ones(2, requires_grad=True)
        y = (x * x).sum()
        y.backward(); y.backward()
    """,
    "saved indices count as saved": """
        raises RuntimeError: Specify retain_graph=True
        x = torch.ones(4, requires_grad=True)
        y = x[torch.tensor([0, 1])]
        y.sum().backward(); y.sum().backward()
    """,
    "retain_graph keeps it": """
        x = torch.ones(2, requires_grad=True)
        y = (x * x).sum()
        y.backward(retain_graph=True); y.backward()
        show(x.grad)
    """,
    "grad leaves .grad alone": """
        x = torch.ones(2, requires_grad=True); y = torch.ones(2, requires_grad=True)
        (g,) = torch.autograd.grad((x * y).sum(), x)
        show(g)
        assert x.grad is None and y.grad is None
    """,
    "grad of an unused input": """
        raises RuntimeError: appears to not have been used in the graph
        x = torch.ones(2, requires_grad=True); y = torch.ones(2, requires_grad=True)
        torch.autograd.grad((x * 2).sum(), [x, y])
    """,
    "allow_unused and materialize_grads": """
        x = torch.ones(2, requires_grad=True); y = torch.ones(2, requires_grad=True)
        show(torch.autograd.grad((x * 2).sum(), [x, y], allow_unused=True))
        show(torch.autograd.grad((x * 2).sum(), [x, y], materialize_grads=True))
    """,
    "grad runs no node that leads to no requested input": """
        class Boom(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x.clone()
            @staticmethod
            def backward(ctx, g): raise RuntimeError("must not run")
        x = torch.ones(2, requires_grad=True); y = torch.ones(2, requires_grad=True)
        show(torch.autograd.grad((x + Boom.apply(y)).sum(), x))
    """,
    "grad of non-leaves fires no other hook": """
        x = torch.randn(4, 2, requires_grad=True)
        a, b = x.chunk(2)
        called = []
        x.register_hook(lambda *g: called.append(1))
        show(torch.autograd.grad(a + 2 * b, [a, b], torch.ones(2, 2), create_graph=True))
        assert called == []
    """,
    "a root given twice counts twice": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        torch.autograd.backward([y, y], [torch.ones(2), torch.ones(2)])
        show(x.grad)
    """,
    "a root feeds another root": """
        x = torch.full((2,), 2.0, requires_grad=True)
        y = x ** 2; z = y ** 3
        torch.autograd.backward([y, z], [torch.ones(2), torch.ones(2)])
        show(x.grad)
    """,
    "a root that needs no gradient": """
        raises RuntimeError: element 1 of tensors does not require grad and does not have a grad_fn
        x = torch.ones(2, requires_grad=True)
        torch.autograd.backward([x * 2, torch.ones(2)], [torch.ones(2), torch.ones(2)])
    """,
    "no gradient for a root that is not a scalar": """
        raises RuntimeError: grad can be implicitly created only for scalar outputs
        x = torch.ones(2, requires_grad=True)
        (x * 2).backward()
    """,
    "a gradient of the wrong shape": """
        raises RuntimeError: Mismatch in shape: grad_output[0] has a shape of
        x = torch.ones(2, requires_grad=True)
        (x * 2).backward(torch.ones(3))
    """,
    "grad_fn is callable": """
        x = torch.ones(2, requires_grad=True)
        y = x * 3
        show(y.grad_fn(torch.ones(2)))
    """,
    "grad_fn called badly": """
        raises TypeError: expected 1 arguments, got 2 instead
        x = torch.ones(2, requires_grad=True)
        (x * 3).grad_fn(torch.ones(2), torch.ones(2))
    """,
    "next_functions": """
        x = torch.ones(2, requires_grad=True); y = torch.ones(2, requires_grad=True)
        a = x + y
        show([(type(f).__name__, n) for f, n in a.grad_fn.next_functions])
        b = a + 5
        show([(type(f).__name__, n) for f, n in b.grad_fn.next_functions])
        assert b.grad_fn.next_functions[0][0] is a.grad_fn
        assert (x * torch.ones(2)).grad_fn.next_functions[0][0] is (x + 1).grad_fn.next_functions[0][0]
        assert a.grad_fn.next_functions[0][0].variable is x
    """,
    "names of nodes": """
        x = torch.ones(2, 2, requires_grad=True)
        outs = [x + 1, x * 2, x / 2, -x, x ** 2, x.exp(), x.log(), x.sum(), x.sum(0), x.mean(), x.t(), x[0], x[0:1], x.relu(),
                x.tanh(), x.sigmoid(), x @ x, x.view(4), x.clone(), x.sqrt(), x - 1, x.abs(), x.cumsum(0), x.norm(), x.max(),
                x.permute(1, 0), x.expand(3, 2, 2), x.unsqueeze(0), torch.cat([x, x]), torch.stack([x, x]), x.softmax(0), x.var()]
        show([o.grad_fn.name() for o in outs])
        show([o.grad_fn.name() for o in (x.unbind()[0], x.split(1)[1], x.chunk(2)[0], x.max(0)[0])])
        assert x.grad_fn is None
    """,
    "output_nr": """
        x = torch.ones(3, requires_grad=True)
        show([o.output_nr for o in (x * 1).unbind()])
        show((x * 2).output_nr)
    """,
    "backward inside backward": """
        class Inner(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                with torch.enable_grad():
                    ctx.x = x.detach().requires_grad_()
                    ctx.y = ctx.x * ctx.x
                return ctx.y.detach()
            @staticmethod
            def backward(ctx, g):
                with torch.enable_grad():
                    ctx.y.backward(g, retain_graph=True)
                return ctx.x.grad
        x = torch.full((2,), 3.0, requires_grad=True)
        Inner.apply(x).sum().backward()
        show(x.grad)
    """,
    "grad mode is put back after a nested pass": """
        seen = []
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x.clone()
            @staticmethod
            def backward(ctx, g):
                before = torch.is_grad_enabled()
                with torch.enable_grad():
                    t = torch.ones(2, requires_grad=True)
                    (t * t).sum().backward()
                seen.append((before, torch.is_grad_enabled()))
                return g
        x = torch.ones(2, requires_grad=True)
        F.apply(x).sum().backward()
        show(seen); show(torch.is_grad_enabled())
    """,
    "an error in backward keeps its type": """
        raises ZeroDivisionError: my own message
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x.clone()
            @staticmethod
            def backward(ctx, g): raise ZeroDivisionError("my own message")
        F.apply(torch.ones(2, requires_grad=True)).sum().backward()
    """,
    "queue_callback runs once at the end": """
        order = []
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x.clone()
            @staticmethod
            def backward(ctx, g):
                torch.autograd.Variable._execution_engine.queue_callback(lambda: order.append("end"))
                order.append("backward")
                return g
        x = torch.ones(2, requires_grad=True)
        F.apply(F.apply(x)).sum().backward()
        show(order)
    """,
    "the gradient is cast to its input's dtype": """
        x = torch.ones(3, requires_grad=True)
        torch.sum(x, dtype=torch.double).backward()
        show(x.grad)
        y = torch.ones(3, requires_grad=True)
        (y.double() * 2).sum().backward()
        show(y.grad)
    """,
    "backward with inputs": """
        x = torch.ones(2, requires_grad=True); y = torch.ones(2, requires_grad=True)
        z = x * y
        z.sum().backward(inputs=[x])
        show(x.grad); assert y.grad is None
    """,
    "grad_variables is deprecated": """
        x = torch.ones(2, requires_grad=True)
        torch.autograd.backward([x * 2], grad_variables=[torch.ones(2)])
        show(x.grad)
    """,
    "create_graph to third order": """
        x = torch.tensor([1.5], requires_grad=True)
        y = x ** 4
        for _ in range(3):
            (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            show(y)
    """,
    "double backward through .grad": """
        x = torch.tensor([2.0], requires_grad=True)
        (x ** 3).sum().backward(create_graph=True)
        g = x.grad
        x.grad = None
        g.sum().backward()
        show(x.grad)
    """,
    "is_grads_batched": """
        x = torch.ones(3, requires_grad=True)
        show(torch.autograd.grad(x * x, x, torch.eye(3), is_grads_batched=True))
    """,
    "only_inputs False accumulates too": """
        x = torch.ones(2, requires_grad=True)
        show(torch.autograd.grad((x * 3).sum(), x))
    """,
    "the builtin sum differentiates": """
        x = torch.ones(3, requires_grad=True)
        sum(x, torch.zeros(1)).backward()
        show(x.grad)
    """,
    "requires_grad follows inputs": """
        x = torch.ones(2); y = torch.ones(2, requires_grad=True)
        show([(x + x).requires_grad, (x + y).requires_grad, (y > 0).requires_grad, y.argmax().requires_grad])
        show([x.is_leaf, y.is_leaf, (x + x).is_leaf, (x + y).is_leaf])
    """,
}

FLAGS = {
    "in place on a leaf": """
        raises RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.
        x = torch.ones(2, requires_grad=True)
        x.add_(1)
    """,
    "in place on a view of a leaf": """
        raises RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation.
        x = torch.ones(2, requires_grad=True)
        x[0].mul_(2)
    """,
    "assignment to a leaf in no_grad": """
        x = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            x[0] = 5; x.mul_(2)
        show(x)
    """,
    "a view made before the flag was set": """
        raises RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation
        x = torch.ones(2)
        v = x.narrow(0, 0, 1)
        x.requires_grad_()
        v.add_(1)
    """,
    "requires_grad_(False) on a non-leaf": """
        raises RuntimeError: you can only change requires_grad flags of leaf variables
        x = torch.ones(2, requires_grad=True) * 2
        x.requires_grad_(False)
    """,
    "requires_grad_() on a non-leaf is no error": """
        x = torch.ones(2, requires_grad=True) * 2
        x.requires_grad_()
        show(x)
    """,
    "integers refuse gradients: method": """
        raises RuntimeError: floating point
        torch.ones(2, dtype=torch.long).requires_grad_()
    """,
    "integers refuse gradients: setter": """
        raises RuntimeError: floating point
        torch.ones(2, dtype=torch.long).requires_grad = True
    """,
    "integers refuse gradients: factory": """
        raises RuntimeError: floating point
        torch.ones(2, dtype=torch.long, requires_grad=True)
    """,
    "integers refuse gradients: the page's example": """
        raises RuntimeError: floating point
        torch.tensor([1], requires_grad=True)
    """,
    "a += b where only b requires grad": """
        a = torch.ones(2); b = torch.ones(2, requires_grad=True)
        a += b
        show(a)
        a.sum().backward()
        show(b.grad)
    """,
    "deleting grad": """
        x = torch.ones(2, requires_grad=True)
        x.sum().backward()
        del x.grad
        assert x.grad is None
    """,
    "deleting data": """
        raises RuntimeError:
        x = torch.ones(2)
        del x.data
    """,
    "deleting requires_grad": """
        raises RuntimeError:
        x = torch.ones(2)
        del x.requires_grad
    """,
    "data set to None": """
        raises TypeError:
        torch.ones(2).data = None
    """,
    "assigned gradient of another shape": """
        raises RuntimeError:
        x = torch.ones(2, requires_grad=True)
        x.grad = torch.ones(3)
    """,
    "assigned gradient of another dtype": """
        raises RuntimeError:
        x = torch.ones(2, requires_grad=True)
        x.grad = torch.ones(2, dtype=torch.double)
    """,
    "a tensor as its own gradient": """
        raises RuntimeError: can't assign Variable as its own grad
        x = torch.ones(2, requires_grad=True)
        x.grad = x
    """,
    "an assigned gradient is kept": """
        x = torch.ones(2, requires_grad=True)
        g = torch.ones(2)
        x.grad = g
        assert x.grad is g
        (x * 2).sum().backward()
        show(x.grad)
    """,
    "data keeps object and version": """
        x = torch.ones(2)
        x.add_(1)
        version = x._version
        same = x
        x.data = torch.ones(3)
        assert same is x and x._version == version
        show(x)
    """,
    "numpy() on a tensor that requires grad": """
        raises RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.
        torch.ones(2, requires_grad=True).numpy()
    """,
    "numpy() in no_grad": """
        x = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            show(x.numpy().tolist())
        show(x.detach().numpy().tolist())
    """,
    "numpy shares memory both ways": """
        a = np.ones(3)
        t = torch.from_numpy(a)
        t.add_(1)
        show(a.tolist())
        n = t.numpy(); n[0] = 7
        show(t)
    """,
    "out= with gradients": """
        raises RuntimeError: out=
        x = torch.ones(2, requires_grad=True)
        torch.mul(x, 2, out=torch.ones(2))
    """,
    "out= where out requires grad": """
        raises RuntimeError: out=
        torch.mul(torch.ones(2), 2, out=torch.ones(2, requires_grad=True))
    """,
    "out= in no_grad": """
        x = torch.ones(2, requires_grad=True); out = torch.zeros(2)
        with torch.no_grad():
            torch.mul(x, 2, out=out)
        show(out)
    """,
    "volatile": """
        show(torch.ones(2).volatile)
    """,
    "pickling keeps requires_grad": """
        import pickle
        for protocol in range(3):
            x = torch.ones(2, requires_grad=True); y = torch.arange(3)
            show(pickle.loads(pickle.dumps(x, protocol=protocol))); show(pickle.loads(pickle.dumps(y, protocol=protocol)))
    """,
    "deepcopy keeps flags and gradient": """
        import copy
        x = torch.ones(2, requires_grad=True)
        (x * 3).sum().backward()
        y = copy.deepcopy(x)
        show(y); show(y.grad); assert y.is_leaf and y is not x
        y.data.add_(1)
        show(x)
    """,
    "deepcopy of a non-leaf": """
        raises RuntimeError: Only Tensors created explicitly by the user
        import copy
        copy.deepcopy(torch.ones(2, requires_grad=True) * 2)
    """,
    "Python scalars": """
        nan, inf = float("nan"), float("inf")
        show([int(torch.tensor(3.7)), float(torch.tensor(2)), bool(torch.tensor(nan)), torch.tensor(5).item(), torch.tensor([[1.5]]).item()])
        show([type(torch.tensor(5).item()).__name__, type(torch.tensor(True).item()).__name__])
        for bad, kind in ((nan, ValueError), (inf, OverflowError)):
            try:
                int(torch.tensor(bad)); assert False
            except kind:
                pass
        show([1, 2, 3][torch.tensor(1)])
        show("%d %.1f" % (torch.tensor(3), torch.tensor(2.5)))
    """,
    "bool of several values": """
        raises RuntimeError: Boolean value of Tensor with more than one value is ambiguous
        bool(torch.ones(2))
    """,
    "item of several values": """
        raises RuntimeError: cannot be converted to Scalar
        torch.ones(2).item()
    """,
    "types": """
        x = torch.ones(2)
        assert isinstance(x.float(), torch.FloatTensor) and isinstance(x.long(), torch.LongTensor)
        assert not isinstance(x, torch.DoubleTensor)
        show([x.type(), x.double().type(), x.bool().type(), x.long().type()])
        assert x.type(torch.FloatTensor).data_ptr() == x.data_ptr()
        show(x.type(torch.DoubleTensor)); show(x.type("torch.IntTensor")); show(x.type(torch.long))
        assert torch.FloatTensor.dtype is torch.float32
        show(torch.FloatTensor()); show(torch.LongTensor([1, 2]))
        assert torch.double is torch.float64 and torch.half is torch.float16 and torch.long is torch.int64
        show([torch.float.is_floating_point, torch.int.is_floating_point, torch.cfloat.is_complex])
        show([repr(torch.float32), str(torch.int64)])
        show([torch.finfo(torch.float32).eps, torch.finfo(torch.double).max, torch.iinfo(torch.int32).max])
    """,
    "Variable": """
        from torch.autograd import Variable
        x = Variable(torch.ones(2), requires_grad=True)
        assert isinstance(x, Variable) and isinstance(torch.ones(1), Variable)
        show(x); show(Variable(torch.ones(2)))
        (x * 2).sum().backward()
        show(x.grad); show(x.data)
    """,
    "Parameter": """
        p = torch.nn.Parameter(torch.ones(2))
        assert isinstance(p, torch.Tensor) and isinstance(p, torch.nn.Parameter) and p.is_leaf
        show(p); show(p * 2)
        (p * p).sum().backward()
        show(p.grad)
        show(torch.nn.Parameter(torch.ones(2), requires_grad=False))
    """,
    "Size": """
        x = torch.ones(2, 3)
        show([str(x.shape), str(x.size()), x.size(0), x.shape[1], x.shape == (2, 3), x.numel(), len(x), x.dim()])
        show([repr(x.shape[:1]), x.shape.numel(), tuple(x.shape)])
    """,
    "new and typed factories": """
        x = torch.ones(2, dtype=torch.double)
        show([x.new(2, 3).shape == (2, 3), x.new([1, 2]), x.new_zeros(2), x.new_ones((1, 2)), x.new_full((2,), 3), x.new_tensor([1])])
        show([torch.zeros_like(x), torch.ones_like(x, dtype=torch.int), torch.full_like(x, 2), torch.empty_like(x).shape == (2,)])
        show([torch.arange(3), torch.arange(1, 2, 0.5), torch.linspace(0, 1, 3), torch.eye(2), torch.full((2,), 1.5), torch.full((2,), 3)])
    """,
    "set_default_dtype": """
        torch.set_default_dtype(torch.double)
        try:
            show([torch.ones(1), torch.tensor(1.5), torch.arange(2.), torch.tensor(1) / 2])
        finally:
            torch.set_default_dtype(torch.float32)
        show(torch.tensor([1.5]))
    """,
    "inference of dtypes": """
        show([torch.tensor(1), torch.tensor(1.), torch.tensor(True), torch.tensor([1, 2.5]), torch.tensor([]), torch.tensor(1j), torch.tensor([[]])])
        show([torch.tensor(np.ones(2)), torch.tensor(np.float64(2.5)), torch.as_tensor([1]), torch.tensor([torch.tensor(1.), 2])])
    """,
    "is_tensor and friends": """
        x = torch.ones(2)
        show([torch.is_tensor(x), torch.is_tensor(1), x.is_floating_point(), torch.is_complex(x), x.is_cuda, x.is_sparse, torch.cuda.is_available()])
        show([str(x.device), x.device == torch.device("cpu"), str(x.to(device="cpu").device), x.element_size()])
    """,
    "detach shares memory and version": """
        x = torch.ones(3, requires_grad=True) * 2
        d = x.detach()
        assert not d.requires_grad and d.data_ptr() == x.data_ptr()
        d.add_(1)
        show([x._version, d._version]); show(x)
    """,
}

VERSIONS = {
    "a saved tensor was changed": """
        raises RuntimeError: modified by an inplace operation
        x = torch.ones(2, requires_grad=True)
        y = x * 1
        z = y * y
        y.add_(1)
        z.sum().backward()
    """,
    "the in-place operation itself is no error": """
        x = torch.ones(2, requires_grad=True)
        y = x * 1
        z = y * y
        y.add_(1)
        y.sum().backward()
        show(x.grad)
    """,
    "no_grad raises the version too": """
        raises RuntimeError: modified by an inplace operation
        x = torch.ones(2, requires_grad=True)
        z = x * x
        with torch.no_grad():
            x.add_(1)
        z.sum().backward()
    """,
    "add saves nothing": """
        a = torch.ones(2, requires_grad=True) * 1; b = torch.ones(2)
        c = a + b
        a.add_(1); b.add_(1)
        c.sum().backward()
    """,
    "mul saves an operand only if the other needs it": """
        x = torch.ones(2, requires_grad=True); y = torch.full((2,), 3.0)
        a = x * 1
        z = a * y
        a.add_(1)
        z.sum().backward()
        show(x.grad)
    """,
    "a constant factor was changed": """
        raises RuntimeError: modified by an inplace operation
        x = torch.ones(2, requires_grad=True); y = torch.full((2,), 3.0)
        z = x * y
        y.add_(1)
        z.sum().backward()
    """,
    "indexing saves no tensor": """
        x = torch.ones(3, requires_grad=True) * 1
        y = x[torch.tensor([0, 2])]
        x.mul_(2)
        y.sum().backward()
    """,
    "mean saves nothing": """
        x = torch.ones(3, requires_grad=True) * 1
        y = x.mean()
        x.mul_(2)
        y.backward()
    """,
    "exp saves its output": """
        raises RuntimeError: modified by an inplace operation
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        y.add_(1)
        y.sum().backward()
    """,
    "exp_ in place after another": """
        x = torch.ones(2, requires_grad=True)
        y = (x * 2).exp_()
        y.sum().backward()
        show(x.grad)
    """,
    "an older node that saved the old value fails": """
        raises RuntimeError: modified by an inplace operation
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        y.exp_()
        y.sum().backward()
    """,
    "mul_ by a tensor that requires grad keeps the old value": """
        x = torch.full((2,), 2.0, requires_grad=True); w = torch.full((2,), 3.0, requires_grad=True)
        y = x * 1
        y.mul_(w)
        y.sum().backward()
        show(x.grad); show(w.grad)
    """,
    "versions count": """
        x = torch.ones(3)
        show(x._version)
        x.add_(1); x[0] = 2; x.zero_()
        show(x._version)
        v = x[1:]
        v.add_(1)
        show([x._version, v._version])
        x.mul_(2)
        show([x._version, v._version, x.detach()._version, x.data._version])
    """,
    "the message names the tensor and the versions": """
        raises RuntimeError: is at version 1; expected version 0 instead
        x = torch.ones(2, requires_grad=True)
        y = x.tanh()
        y += 1
        y.sum().backward()
    """,
}

VIEWS = {
    "an in-place operation on a view rewrites its base": """
        x = torch.arange(4.).requires_grad_()
        y = x * 1
        y.narrow(0, 0, 2).mul_(3)
        y.sum().backward()
        show(x.grad); show(y)
    """,
    "on a view of a view": """
        x = torch.ones(2, 3, requires_grad=True)
        y = x * 1
        y[0][1:].mul_(5)
        (y * torch.arange(6.).view(2, 3)).sum().backward()
        show(x.grad)
    """,
    "on a transposed view": """
        x = torch.ones(2, 3, requires_grad=True)
        y = x * 1
        y.t()[1].mul_(torch.tensor([2., 3.]))
        y.sum().backward()
        show(x.grad); show(y)
    """,
    "views made before see the new history": """
        x = torch.ones(4, requires_grad=True)
        y = x * 1
        v = y[1:3]
        y.mul_(2)
        show(v)
        v.sum().backward()
        show(x.grad)
    """,
    "another view of the base": """
        x = torch.ones(4, requires_grad=True)
        y = x * 1
        a, b = y[:3], y[1:]
        a.mul_(3)
        b.sum().backward()
        show(x.grad)
    """,
    "a view needs a gradient after its base got one": """
        a = torch.ones(4); w = torch.full((4,), 2.0, requires_grad=True)
        v = a.narrow(0, 1, 2)
        assert not v.requires_grad
        a.mul_(w)
        assert v.requires_grad and a.requires_grad
        v.sum().backward()
        show(w.grad)
    """,
    "a base needs a gradient after its view got one": """
        a = torch.ones(4); w = torch.full((2,), 2.0, requires_grad=True)
        v = a.narrow(0, 1, 2)
        v.mul_(w)
        assert a.requires_grad
        (a * torch.arange(4.)).sum().backward()
        show(w.grad)
    """,
    "assignment to a part": """
        x = torch.ones(3, requires_grad=True); w = torch.tensor(2.0, requires_grad=True)
        y = x * 2
        y[1] = w
        (y * torch.tensor([1., 10., 100.])).sum().backward()
        show(x.grad); show(w.grad); show(y)
    """,
    "an assigned value that was broadcast": """
        x = torch.ones(2, 3, requires_grad=True); w = torch.ones(3, requires_grad=True)
        y = x * 1
        y[:] = w
        y.sum().backward()
        show(x.grad); show(w.grad)
    """,
    "unbind's outputs may not be changed": """
        raises RuntimeError: output of a function that returns multiple views
        x = torch.ones(3, 2, requires_grad=True) * 1
        x.unbind()[0].add_(1)
    """,
    "split's outputs may not be changed": """
        raises RuntimeError: output of a function that returns multiple views
        x = torch.ones(4, requires_grad=True) * 1
        x.split(2)[0].mul_(2)
    """,
    "nor chunk's": """
        raises RuntimeError: output of a function that returns multiple views
        x = torch.ones(4, requires_grad=True) * 1
        x.chunk(2)[1].mul_(2)
    """,
    "nor views of them": """
        raises RuntimeError: output of a function that returns multiple views
        x = torch.ones(4, requires_grad=True) * 1
        x.chunk(2)[1][0].mul_(2)
    """,
    "also when only the written tensor needs a gradient": """
        raises RuntimeError: output of a function that returns multiple views
        a, b = torch.ones(4).chunk(2)
        a.add_(torch.ones(2, requires_grad=True))
    """,
    "unsafe_split allows it": """
        x = torch.ones(4, requires_grad=True)
        a, b = (x * 1).unsafe_split(2)
        a.mul_(3)
        (a.sum() + b.sum()).backward()
        show(x.grad)
    """,
    "a view made in no_grad": """
        raises RuntimeError: A view was created in no_grad mode and is being modified inplace
        x = torch.ones(4, requires_grad=True) * 1
        with torch.no_grad():
            v = x[:2]
        v.mul_(2)
    """,
    "detach_ on a view": """
        raises RuntimeError: view
        x = torch.ones(4, requires_grad=True) * 1
        x[:2].detach_()
    """,
    "detach_ on the base": """
        x = torch.ones(4, requires_grad=True) * 1
        v = x[:2]
        x.detach_()
        assert not x.requires_grad and x.grad_fn is None
        assert v.requires_grad and v._base is x
        show(v)
    """,
    "_base": """
        x = torch.ones(4)
        v = x[1:]; w = v[1:]
        assert x._base is None and v._base is x and w._base is x and (x + 1)._base is None
    """,
    "expand shares memory and may be written": """
        x = torch.ones(1)
        e = x.expand(3)
        e[0] = 5
        show(e); show(x)
    """,
    "an in-place operation on overlapping memory": """
        raises RuntimeError: more than one element of the written-to tensor refers to a single memory location
        torch.ones(1).expand(3).add_(1)
    """,
    "as_strided reads outside the view": """
        x = torch.arange(6.)
        v = x[2:4]
        show(v.as_strided((2, 2), (1, 1), 0)); show(v.as_strided((2,), (2,)))
    """,
    "as_strided gradients add up": """
        x = torch.arange(6.).requires_grad_()
        x.as_strided((3, 3), (1, 1)).sum().backward()
        show(x.grad)
    """,
    "view of incompatible strides": """
        raises RuntimeError: view size is not compatible
        torch.ones(2, 3).t().view(6)
    """,
    "view of a wrong size": """
        raises RuntimeError: is invalid for input of size
        torch.ones(2, 3).view(5)
    """,
    "reshape shares memory where it can": """
        x = torch.arange(6.)
        assert x.reshape(2, 3).data_ptr() == x.data_ptr()
        assert x.reshape(2, 3).t().reshape(6).data_ptr() != x.data_ptr()
    """,
    "0-d views are views": """
        x = torch.arange(3.)
        x[1].fill_(9)
        show(x)
        y = torch.ones(2, 2)
        y[0, 1] += 4
        show(y)
    """,
    "storage": """
        x = torch.arange(6.).view(2, 3)
        show([x[1].storage_offset(), x.stride(), x.t().stride(), x.t().is_contiguous(), x[1].data_ptr() - x.data_ptr()])
        assert x[1].storage().data_ptr() == x.storage().data_ptr()
    """,
    "in-place metadata": """
        x = torch.ones(2, 3)
        x.t_(); show(list(x.shape)); x.unsqueeze_(0); show(list(x.shape)); x.squeeze_(0); x.transpose_(0, 1); show(list(x.shape))
    """,
    "real and imag are views": """
        z = torch.tensor([1 + 2j, 3 + 4j])
        z.real.mul_(10)
        z.imag[0] = 7
        show(z)
    """,
    "fill_ and zero_ cut the gradient": """
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y[0].zero_(); y[1].fill_(4)
        y.sum().backward()
        show(x.grad); show(y)
    """,
    "copy_": """
        x = torch.ones(3, requires_grad=True); w = torch.ones(3, dtype=torch.double, requires_grad=True)
        y = x * 2
        y.copy_(w * 3)
        y.sum().backward()
        show(x.grad); show(w.grad); show(y)
    """,
    "in-place result of another type": """
        raises RuntimeError: result type Float can't be cast to the desired output type
        torch.ones(2, dtype=torch.long).mul_(1.5)
    """,
    "in-place result of another shape": """
        raises RuntimeError: doesn't match the broadcast shape
        torch.ones(2).add_(torch.ones(3, 2))
    """,
    "in-place operators": """
        x = torch.arange(1., 4.)
        y = x
        x += 1; x -= 2; x *= 3; x /= 2; x **= 2
        assert y is x
        show(x)
    """,
    "masked writes": """
        x = torch.arange(4.).requires_grad_()
        y = x * 1
        y[y > 1] = 0
        y.masked_fill_(torch.tensor([True, False, False, False]), 7)
        y.sum().backward()
        show(x.grad); show(y)
    """,
    "index writes with repeated indices": """
        x = torch.zeros(4); w = torch.arange(3.).requires_grad_()
        x.index_add_(0, torch.tensor([0, 0, 2]), w)
        (x * torch.arange(1., 5.)).sum().backward()
        show(x); show(w.grad)
    """,
    "setitem with lists and tensors": """
        y = torch.zeros(3, 3); w = torch.ones(2, requires_grad=True)
        y[[0, 2], [1, 1]] = w * 2
        y[torch.tensor([1])] = 5
        y[:, 2] = torch.tensor([1., 2., 3.])
        show(y)
        y.sum().backward(); show(w.grad)
    """,
}

INDEXING = {
    "a list of sequences means a tuple": """
        y = torch.arange(1., 13.).view(4, 3)
        show([y[[0, 2]], y[0, 1:], y[..., 1], y[:, None].shape == (4, 1, 3), y[torch.tensor([[0, 1], [1, 0]])]])
        show([y[y > 6], y[torch.tensor([True, False, True, False])], y[torch.tensor(1)], y[-1, -1], y[::2, ::2]])
    """,
    "out of range": """
        raises IndexError: index 5 is out of bounds for dimension 0 with size 3
        torch.ones(3)[5]
    """,
    "too many indices": """
        raises IndexError: too many indices for tensor of dimension 1
        torch.ones(3)[0, 0]
    """,
    "of a 0-d tensor": """
        raises IndexError: invalid index of a 0-dim tensor
        torch.tensor(1.)[0]
    """,
    "by a float": """
        raises IndexError: tensors used as indices must be long
        torch.ones(3)[torch.tensor([1.])]
    """,
    "repeated indices add their gradients": """
        x = torch.arange(3.).requires_grad_()
        x[torch.tensor([0, 0, 2])].sum().backward()
        show(x.grad)
    """,
    "an index tensor's shape": """
        raises IndexError: The shape of the mask
        torch.ones(3)[torch.tensor([True, False])]
    """,
    "gather out of range": """
        raises RuntimeError: out of bounds for dimension 0 with size 3
        torch.ones(3).gather(0, torch.tensor([5]))
    """,
    "a wrong dim": """
        raises IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)
        torch.ones(2, 2).sum(2)
    """,
    "iteration": """
        show([row for row in torch.arange(4.).view(2, 2)])
        a, b = torch.arange(2.)
        show([a, b])
    """,
    "iteration of a 0-d tensor": """
        raises TypeError: iteration over a 0-d tensor
        list(torch.tensor(1.))
    """,
}

HOOKS = {
    "a hook replaces the gradient": """
        v = torch.zeros(3, requires_grad=True)
        h = v.register_hook(lambda g: g * 2)
        v.backward(torch.tensor([1., 2., 3.]))
        show(v.grad)
        h.remove()
        v.backward(torch.tensor([1., 2., 3.]))
        show(v.grad)
    """,
    "hooks run in order": """
        x = torch.ones(2, requires_grad=True)
        seen = []
        x.register_hook(lambda g: seen.append(("a", g.tolist())) or g * 3)
        x.register_hook(lambda g: seen.append(("b", g.tolist())) or g + 1)
        (x * 1).sum().backward()
        show(seen); show(x.grad)
    """,
    "on a non-leaf": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: g * 10)
        (y * 3).sum().backward()
        show(x.grad)
    """,
    "removed inside the hook": """
        x = torch.ones(2, requires_grad=True)
        count = []
        def hook(g):
            count.append(1)
            h.remove()
        h = x.register_hook(hook)
        for _ in range(2):
            (x * 1).sum().backward()
        show(len(count)); show(x.grad)
    """,
    "any callable": """
        import functools
        x = torch.ones(2, requires_grad=True)
        x.register_hook(functools.partial(lambda k, g: g * k, 4))
        x.sum().backward()
        show(x.grad)
    """,
    "a hook that changes the shape": """
        raises RuntimeError: has changed the size of value
        x = torch.ones(2, requires_grad=True)
        x.register_hook(lambda g: torch.ones(3))
        x.sum().backward()
    """,
    "on a tensor that needs none": """
        raises RuntimeError: cannot register a hook on a tensor that doesn't require gradient
        torch.ones(2).register_hook(lambda g: None)
    """,
    "once, on the summed gradient": """
        x = torch.ones(2, requires_grad=True)
        seen = []
        x.register_hook(lambda g: seen.append(g.clone()))
        (x * 2 + x * 3).sum().backward()
        show(seen)
    """,
    "retain_grad": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.retain_grad(); y.retain_grad()
        x.retain_grad()
        (y * 3).sum().backward(retain_graph=True)
        show(y.grad)
        (y * 3).sum().backward()
        show(y.grad); show([y.retains_grad, x.retains_grad])
    """,
    "retain_grad of what needs none": """
        raises RuntimeError: can't retain_grad on Tensor that has requires_grad=False
        torch.ones(2).retain_grad()
    """,
    "hooks on nodes": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        seen = []
        y.grad_fn.register_hook(lambda gi, go: seen.append(([None if g is None else g.tolist() for g in gi][:1], [g.tolist() for g in go])))
        y.sum().backward()
        show(seen)
    """,
    "pre-hooks on nodes": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.grad_fn.register_prehook(lambda go: (go[0] * 5,))
        y.sum().backward()
        show(x.grad)
    """,
    "post-accumulate hooks": """
        x = torch.ones(2, requires_grad=True)
        def scale(t): t.grad.mul_(7)
        x.register_post_accumulate_grad_hook(scale)
        x.sum().backward()
        show(x.grad)
    """,
    "a hook on one of several outputs": """
        x = torch.ones(4, requires_grad=True)
        a, b = (x * 1).split(2)
        seen = []
        a.register_hook(lambda g: seen.append("a"))
        b.register_hook(lambda g: seen.append("b"))
        b.sum().backward()
        show(x.grad)
    """,
    "multi-grad hooks": """
        x = torch.ones(2, requires_grad=True); y = torch.ones(2, requires_grad=True); z = torch.ones(2, requires_grad=True)
        seen = []
        torch.autograd.graph.register_multi_grad_hook((x, y, z), lambda grads: seen.append([g is None for g in grads]))
        (x * y).sum().backward()
        show(seen)
    """,
    "saved tensor hooks": """
        x = torch.full((2,), 3.0, requires_grad=True)
        packed = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t.detach() * 1, lambda t: t):
            y = x * x
            z = y.exp()
        z.sum().backward()
        show(x.grad); show(len(packed))
    """,
    "gradient edges": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        e = torch.autograd.graph.get_gradient_edge(y)
        show(torch.autograd.grad((y * 3).sum(), e))
        assert e.node is y.grad_fn and e.output_nr == 0
    """,
    "metadata": """
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.grad_fn.metadata["note"] = 1
        show(dict(y.grad_fn.metadata))
    """,
    "saved values": """
        x = torch.full((2,), 2.0, requires_grad=True); w = torch.full((2,), 3.0, requires_grad=True)
        y = x * w
        show(y.grad_fn._saved_self); show(y.grad_fn._saved_other)
        show(x.exp().grad_fn._saved_result)
    """,
}

FUNCTIONS = {
    "Exp of the page": """
        class Exp(torch.autograd.Function):
            @staticmethod
            def forward(ctx, i):
                result = i.exp()
                ctx.save_for_backward(result)
                return result
            @staticmethod
            def backward(ctx, grad_output):
                result, = ctx.saved_tensors
                return grad_output * result
        x = torch.tensor([0.5, 1.0], requires_grad=True)
        y = Exp.apply(x)
        show(y.grad_fn.name())
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        show(g)
        show(torch.autograd.grad(g.sum(), x))
        assert Exp._backward_cls.__name__ == "ExpBackward" and isinstance(y.grad_fn, Exp._backward_cls)
    """,
    "forward runs in no_grad": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                show(torch.is_grad_enabled()); show((x * 2).requires_grad)
                return x * 2
            @staticmethod
            def backward(ctx, g):
                show(torch.is_grad_enabled())
                return g * 2
        x = torch.ones(2, requires_grad=True)
        F.apply(x).sum().backward()
        show(x.grad)
    """,
    "needs_input_grad": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b, k):
                show(list(ctx.needs_input_grad))
                return a * k + b
            @staticmethod
            def backward(ctx, g):
                show(list(ctx.needs_input_grad))
                return g * 3, None, None
        a = torch.ones(2, requires_grad=True)
        F.apply(a, torch.ones(2), 3).sum().backward()
        show(a.grad)
    """,
    "an input returned as it is": """
        class Identity(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b): return a, a + b
            @staticmethod
            def backward(ctx, ga, gab): return ga + gab, gab
        hooked = []
        x = torch.ones(3, requires_grad=True); y = torch.ones(3, requires_grad=True)
        q, p = Identity.apply(x, y)
        assert q is not x and q.grad_fn is not None
        q.register_hook(lambda g: hooked.append(g.tolist()))
        (q + p + x).sum().backward()
        show(hooked); show(x.grad); show(y.grad)
    """,
    "mark_dirty": """
        class Inplace(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.mark_dirty(a)
                return a.add_(2)
            @staticmethod
            def backward(ctx, g): return g * 5
        x = torch.ones(3, requires_grad=True)
        y = x * 1
        z = Inplace.apply(y)
        assert z is y
        z.sum().backward()
        show(x.grad); show(z)
    """,
    "mark_dirty of what is not returned": """
        raises RuntimeError: Some elements marked as dirty during the forward method were not returned as output.
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.mark_dirty(a)
                return a * 1
            @staticmethod
            def backward(ctx, g): return g
        F.apply(torch.ones(3, requires_grad=True) * 1)
    """,
    "mark_non_differentiable": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                mask = a > 0
                ctx.mark_non_differentiable(mask)
                return a * 2, mask
            @staticmethod
            def backward(ctx, g, gm):
                show(gm)
                return g * 2
        x = torch.ones(2, requires_grad=True)
        y, mask = F.apply(x)
        show(mask)
        y.sum().backward()
        show(x.grad)
    """,
    "a floating output that is not differentiable": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                b = a + 1
                ctx.mark_non_differentiable(b)
                return a * 2, b
            @staticmethod
            def backward(ctx, g, gb):
                show(gb)
                return g * 2
        x = torch.ones(2, requires_grad=True)
        y, b = F.apply(x)
        assert not b.requires_grad
        y.sum().backward()
        show(x.grad)
    """,
    "save_for_backward takes None": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.save_for_backward(None, a, None)
                return a * a
            @staticmethod
            def backward(ctx, g):
                n, a, m = ctx.saved_tensors
                assert n is None and m is None
                return g * 2 * a
        x = torch.full((2,), 3.0, requires_grad=True)
        F.apply(x).sum().backward()
        show(x.grad)
    """,
    "saved input changed in place": """
        raises RuntimeError: modified by an inplace operation
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.save_for_backward(a)
                return a * a
            @staticmethod
            def backward(ctx, g):
                a, = ctx.saved_tensors
                return g * 2 * a
        x = torch.ones(2, requires_grad=True) * 1
        y = F.apply(x)
        x.add_(1)
        y.sum().backward()
    """,
    "too many gradients": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a * 1
            @staticmethod
            def backward(ctx, g): return g, None, None
        x = torch.ones(2, requires_grad=True)
        F.apply(x).sum().backward()
        show(x.grad)
    """,
    "too few gradients": """
        raises RuntimeError: returned an incorrect number of gradients (expected 2, got 1)
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b): return a * b
            @staticmethod
            def backward(ctx, g): return g
        x = torch.ones(2, requires_grad=True)
        F.apply(x, x).sum().backward()
    """,
    "a gradient of a wrong shape": """
        raises RuntimeError: expected shape
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a * 1
            @staticmethod
            def backward(ctx, g): return g.new_ones(7)
        F.apply(torch.ones(2, requires_grad=True)).sum().backward()
    """,
    "None stays None": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a * 1
            @staticmethod
            def backward(ctx, g): return None
        x = torch.ones(2, requires_grad=True)
        F.apply(x).sum().backward()
        assert x.grad is None
    """,
    "no forward": """
        raises NotImplementedError: must implement the forward
        class F(torch.autograd.Function):
            pass
        F.apply(torch.ones(2, requires_grad=True))
    """,
    "no backward": """
        raises RuntimeError: must implement either the backward or vjp method
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a * 1
        F.apply(torch.ones(2, requires_grad=True)).sum().backward()
    """,
    "a legacy function": """
        raises RuntimeError: Legacy autograd function with non-static forward method is deprecated
        class F(torch.autograd.Function):
            def forward(self, a): return a
        F()(torch.ones(2))
    """,
    "once_differentiable": """
        raises RuntimeError: trying to differentiate twice a function that was marked with @once_differentiable
        from torch.autograd.function import once_differentiable
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.save_for_backward(a)
                return a * a
            @staticmethod
            @once_differentiable
            def backward(ctx, g):
                show(torch.is_grad_enabled())
                return g * 2 * ctx.saved_tensors[0]
        x = torch.full((2,), 3.0, requires_grad=True)
        seed = torch.ones(2, requires_grad=True)
        (g,) = torch.autograd.grad(F.apply(x), x, seed, create_graph=True)
        show(g)
        g.sum().backward()
    """,
    "what is no tensor": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, text, items):
                return a * len(items), text, items
            @staticmethod
            def backward(ctx, g, *rest): return g * 2, None, None
        x = torch.ones(2, requires_grad=True)
        y, text, items = F.apply(x, "hi", [1, 2])
        assert text == "hi" and items == [1, 2]
        y.sum().backward()
        show(x.grad)
    """,
    "set_materialize_grads": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.set_materialize_grads(False)
                return a * 1, a * 2
            @staticmethod
            def backward(ctx, g, h):
                show([g is None, h is None])
                return h * 2
        x = torch.ones(2, requires_grad=True)
        F.apply(x)[1].sum().backward()
        show(x.grad)
    """,
    "zeros for outputs without a gradient": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a * 1, a * 2
            @staticmethod
            def backward(ctx, g, h):
                show(g); show(h)
                return g + 2 * h
        x = torch.ones(2, requires_grad=True)
        F.apply(x)[1].sum().backward()
        show(x.grad)
    """,
    "setup_context": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(a, b): return a * b
            @staticmethod
            def setup_context(ctx, inputs, output):
                a, b = inputs
                ctx.save_for_backward(a, b)
            @staticmethod
            def backward(ctx, g):
                a, b = ctx.saved_tensors
                return g * b, g * a
        x = torch.full((2,), 2.0, requires_grad=True); y = torch.full((2,), 3.0, requires_grad=True)
        F.apply(x, y).sum().backward()
        show(x.grad); show(y.grad)
    """,
    "one tensor returned twice": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                out = a * 2
                return out, out
            @staticmethod
            def backward(ctx, g1, g2): return g1 * 2 + g2 * 20
        x = torch.ones(2, requires_grad=True)
        a, b = F.apply(x)
        a.sum().backward(retain_graph=True)
        show(x.grad)
    """,
    "double backward of a Function": """
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x ** 3
            @staticmethod
            def backward(ctx, g):
                x, = ctx.saved_tensors
                return 3 * x ** 2 * g
        x = torch.tensor([2.0], requires_grad=True)
        y = Cube.apply(x)
        for _ in range(3):
            (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            show(y)
    """,
    "no gradient wanted": """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a): return a * 2
            @staticmethod
            def backward(ctx, g): return g
        y = F.apply(torch.ones(2))
        assert not y.requires_grad and y.grad_fn is None
        with torch.no_grad():
            z = F.apply(torch.ones(2, requires_grad=True))
        assert not z.requires_grad
    """,
}

MODES = {
    "no_grad and enable_grad": """
        x = torch.tensor([1.], requires_grad=True)
        with torch.no_grad():
            a = x * 2
            with torch.enable_grad():
                b = x * 2
            c = x * 2
        d = x * 2
        show([t.requires_grad for t in (a, b, c, d)])
    """,
    "as decorators": """
        x = torch.tensor([1.], requires_grad=True)
        @torch.no_grad()
        def f(x): return x * 2
        @torch.enable_grad()
        def g(x): return x * 2
        @torch.no_grad
        def h(x): return x * 2
        with torch.no_grad():
            show(g(x).requires_grad)
        show([f(x).requires_grad, h(x).requires_grad, torch.is_grad_enabled()])
    """,
    "set_grad_enabled": """
        x = torch.tensor([1.], requires_grad=True)
        with torch.set_grad_enabled(False):
            show((x * 2).requires_grad)
        torch.set_grad_enabled(True)
        show((x * 2).requires_grad)
        torch.set_grad_enabled(False)
        show((x * 2).requires_grad)
        torch.set_grad_enabled(True)
        with torch.set_grad_enabled(False):
            torch.set_grad_enabled(True)
            show(torch.is_grad_enabled())
        show(torch.is_grad_enabled())
    """,
    "set_grad_enabled as a decorator": """
        @torch.set_grad_enabled(False)
        def f(): return torch.is_grad_enabled()
        show([torch.is_grad_enabled(), f(), torch.is_grad_enabled()])
    """,
    "generators": """
        @torch.no_grad()
        def numbers():
            got = []
            try:
                got.append(torch.is_grad_enabled())
                k = yield 1
                got.append((k, torch.is_grad_enabled()))
                try:
                    yield 2
                except ValueError:
                    got.append(torch.is_grad_enabled())
                yield 3
            finally:
                got.append(torch.is_grad_enabled())
                show(got)
        g = numbers()
        show([next(g), torch.is_grad_enabled(), g.send("k"), torch.is_grad_enabled(), g.throw(ValueError()), torch.is_grad_enabled()])
        g.close()
        show(torch.is_grad_enabled())
    """,
    "an exception leaves the mode": """
        try:
            with torch.no_grad():
                raise KeyError
        except KeyError:
            pass
        show(torch.is_grad_enabled())
    """,
    "inference_mode": """
        x = torch.ones(2, requires_grad=True)
        with torch.inference_mode():
            show([(x * 2).requires_grad, torch.is_inference_mode_enabled()])
        show(torch.is_inference_mode_enabled())
    """,
    "threads have their own mode": """
        import threading
        seen = []
        with torch.no_grad():
            t = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
            t.start(); t.join()
        show(seen)
    """,
}

FUNCTIONAL = {
    "values": """
        A = torch.autograd.functional
        x = torch.arange(1., 4.); y = torch.ones(3)
        f = lambda x, y: (x * x * y).sum()
        g = lambda x: (x * x, x.sum())
        show(A.jacobian(f, (x, y))); show(A.jacobian(g, x)); show(A.hessian(f, (x, y))); show(A.hessian(lambda x: (x ** 3).sum(), x))
        show(A.vjp(lambda x: x ** 2, x, torch.ones(3))); show(A.jvp(lambda x: x ** 2, x, torch.ones(3)))
        show(A.vhp(f, (x, y), (torch.ones(3), torch.ones(3)))); show(A.hvp(f, (x, y), (torch.ones(3), torch.ones(3))))
        show(A.jacobian(lambda x: x.exp(), x, vectorize=True))
    """,
    "create_graph": """
        A = torch.autograd.functional
        x = torch.arange(1., 4.).requires_grad_()
        h = A.jacobian(lambda x: x ** 3, x, create_graph=True)
        h.sum().backward()
        show(x.grad)
    """,
    "inputs of the wrong type": """
        raises TypeError: The inputs given to vjp must be either a Tensor
        torch.autograd.functional.vjp(lambda x: x, 3)
    """,
    "outputs of the wrong type": """
        raises TypeError: The outputs of the user-provided function given to jvp must
        torch.autograd.functional.jvp(lambda x: 3, torch.ones(1), torch.ones(1))
    """,
    "v left out": """
        raises RuntimeError: The vector v can only be None if
        torch.autograd.functional.vjp(lambda x: x, torch.ones(2))
    """,
    "v of the wrong size": """
        raises RuntimeError: v has invalid size: should be torch.Size
        torch.autograd.functional.vjp(lambda x: x, torch.ones(2), torch.ones(3))
    """,
    "hessian of several elements": """
        raises RuntimeError: The Tensor returned by the function given to hessian should contain a single element
        torch.autograd.functional.hessian(lambda x: x, torch.ones(2))
    """,
    "hessian of a tuple": """
        raises RuntimeError: The function given to hessian should return a single Tensor
        torch.autograd.functional.hessian(lambda x: (x.sum(), x.sum()), torch.ones(2))
    """,
    "strict: no gradient": """
        raises RuntimeError: Output 0 of the user-provided function does not require gradients.
        torch.autograd.functional.jacobian(lambda x: torch.ones(2), torch.ones(2), strict=True)
    """,
    "strict: independent": """
        raises RuntimeError: The output of the user-provided function is independent of input 1
        torch.autograd.functional.vjp(lambda x, y: x, (torch.ones(2), torch.ones(2)), torch.ones(2), strict=True)
    """,
    "strict: constant jacobian": """
        raises RuntimeError: jacobian of the user-provided function with respect to input 0 is
        torch.autograd.functional.hessian(lambda x: x.sum(), torch.ones(2), strict=True)
    """,
    "without strict: zeros": """
        show(torch.autograd.functional.jacobian(lambda x, y: x * 2, (torch.ones(2), torch.ones(2))))
        show(torch.autograd.functional.hessian(lambda x: x.sum(), torch.ones(2)))
    """,
}

GRADCHECK = {
    "passes": """
        x = torch.tensor(data(2, 3)).requires_grad_()
        show([torch.autograd.gradcheck(lambda x: x.sin() * x, x), torch.autograd.gradcheck(lambda x: (x.exp(), x.sum()), [x])])
        show(torch.autograd.gradgradcheck(lambda x: x.sin() * x, (x,)))
        z = torch.tensor(data(2, dtype=complex)).requires_grad_()
        show(torch.autograd.gradcheck(lambda z: z * z.conj() + z.exp(), z))
    """,
    "a wrong gradient": """
        raises RuntimeError: Jacobian mismatch for output 0 with respect to input 0
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, g): return g * 3
        torch.autograd.gradcheck(Wrong.apply, torch.tensor(data(2)).requires_grad_())
    """,
    "raise_exception=False": """
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, g): return g * 3
        show(torch.autograd.gradcheck(Wrong.apply, torch.tensor(data(2)).requires_grad_(), raise_exception=False))
    """,
    "not reentrant": """
        raises RuntimeError: Backward is not reentrant
        class Random(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, g): return g * 2 + torch.rand(2).double() * 1e-7
        torch.autograd.gradcheck(Random.apply, torch.tensor(data(2)).requires_grad_())
    """,
    "no output is differentiable": """
        raises RuntimeError: Numerical gradient for function expected to be zero
        torch.autograd.gradcheck(lambda x: x.detach() * 2, torch.tensor(data(2)).requires_grad_())
    """,
}

PRINTING = {
    "tensors": """
        show([repr(t) for t in (
            torch.tensor(1.), torch.tensor([1., 2.5]), torch.tensor([1, 2]), torch.ones(2, 3), torch.tensor([]), torch.zeros(0, 3),
            torch.tensor([True, False]), torch.tensor([1e-8, 1.]), torch.tensor([1e10, 1.]), torch.tensor([float("nan"), float("inf"), 1.]),
            torch.ones(2, dtype=torch.double), torch.ones(2, dtype=torch.int), torch.arange(30.), torch.arange(2000), torch.ones(2, 2, 2),
            torch.tensor([1 + 2j, 3.5 - 1j]), torch.tensor([100000., 0.5]), torch.tensor([[1., -2.], [3.25, 4.]]), torch.arange(10000.).view(100, 100),
            torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True) * 2, torch.ones(2, requires_grad=True).sum(), torch.tensor(5),
            torch.tensor([1234567., 1.]), torch.tensor([0.00001]), torch.tensor(3.14159265), torch.tensor([1.5, float("-inf")]),
        )])
        show([str(torch.tensor([1.])), "%s" % torch.tensor(2), f"{torch.tensor(2.5):.2f}", f"{torch.tensor([1.])}"])
    """,
}

CONVERSIONS = {
    "arguments by name": """
        x = torch.arange(6.).view(2, 3)
        show([x.sum(axis=1), x.sum(axis=0, keepdims=True), torch.sum(input=x, dim=0), x.mean(axis=0), torch.max(x, dim=1)])
        show([x.max(dim=1)[0], x.max(1).values, x.amax(axis=1), torch.split(x, 2, dim=1)[0], torch.cat([x, x], dim=1)])
    """,
    "a training step": """
        w = torch.nn.Parameter(torch.ones(2, 2)); b = torch.nn.Parameter(torch.zeros(2))
        for _ in range(3):
            out = torch.nn.functional.linear(torch.ones(1, 2), w, b).pow(2).mean()
            out.backward()
            with torch.no_grad():
                for p in (w, b):
                    p.sub_(0.1 * p.grad); p.add_(p.grad, alpha=-0.05); p.data -= 0.01 * p.grad
                    p.grad.zero_(); p.grad.detach_()
        show(w); show(b); show(w.grad)
    """,
    "promotion by category": """
        f, d, i, b, z = torch.ones(2), torch.ones(2).double(), torch.ones(2).int(), torch.ones(2).bool(), torch.ones(2, dtype=torch.cfloat)
        f0, d0, i0, z0 = torch.tensor(1.), torch.tensor(1.).double(), torch.tensor(1), torch.tensor(1j)
        s = {"f": f, "d": d, "i": i, "b": b, "z": z, "f0": f0, "d0": d0, "i0": i0, "z0": z0, "1": 1, "1.5": 1.5, "True": True, "2j": 2j}
        show({f"{m}+{n}": str((s[m] + s[n]).dtype) for m in s for n in s if hasattr(s[m], "dtype") or hasattr(s[n], "dtype")})
        show({f"{m}/{n}": str((s[m] / s[n]).dtype) for m in ("f", "d", "i", "b", "i0") for n in ("f", "d", "i", "b", "i0", "1", "1.5")})
        show({f"{m}>{n}": str((s[m] > s[n]).dtype) for m in ("f", "d", "i", "b") for n in ("f", "d", "i", "b", "1", "1.5")})
        show([str(torch.result_type(f, d0)), str(torch.result_type(i, 1.5)), str(torch.cat([f, d]).dtype), str(torch.where(b, f, d).dtype)])
    """,
    "unary functions of integers": """
        i = torch.arange(1, 4)
        show([i.sin(), i.exp(), i.sqrt(), i.sigmoid(), -i, i.abs(), i.sum(), i.prod(), i.cumsum(0), i.float().mean(), i.log()])
    """,
    "mean of integers": """
        raises RuntimeError: mean(): could not infer output dtype
        torch.arange(3).mean()
    """,
    "matmul of two dtypes": """
        raises RuntimeError: expected m1 and m2 to have the same dtype
        torch.ones(2, 2) @ torch.ones(2, 2).double()
    """,
    "matmul of shapes": """
        raises RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)
        torch.ones(2, 3) @ torch.ones(2, 3)
    """,
    "addition of shapes": """
        raises RuntimeError: must match the size of tensor b
        torch.ones(2) + torch.ones(3)
    """,
    "to": """
        x = torch.ones(2)
        assert x.to(torch.float32) is x and x.to("cpu") is x and x.double() is not x and x.to(x) is x
        show([x.to(torch.double), x.to(dtype=torch.long), x.to("cpu", torch.int), x.to(torch.ones(1).double()), x.type_as(torch.ones(1).long())])
        assert x.to(torch.float32, copy=True) is not x
    """,
    "casts keep gradients": """
        x = torch.ones(2, requires_grad=True)
        (x.double() * 3).sum().backward()
        show(x.grad)
        assert x.float() is x
    """,
    "tolist": """
        show([torch.arange(4.).view(2, 2).tolist(), torch.tensor(1).tolist(), torch.tensor([True]).tolist()])
    """,
    "NumPy takes tensors": """
        show([np.asarray(torch.ones(2)).tolist(), np.array(torch.arange(3)).tolist(), float(np.sum(torch.ones(2).numpy()))])
    """,
    "comparison": """
        show([torch.equal(torch.ones(2), torch.ones(2)), torch.allclose(torch.ones(2), torch.ones(2) + 1e-9), torch.equal(torch.ones(2), torch.ones(3))])
        torch.testing.assert_close(torch.ones(2), torch.ones(2) + 1e-9)
    """,
    "hashing and membership": """
        x = torch.ones(2); y = torch.ones(2)
        assert {x: 1}[x] == 1 and hash(x) != hash(y) and x in {x} and len({x, y}) == 2
    """,
    "attributes and subclasses": """
        x = torch.ones(2)
        x.note = "hi"
        assert x.note == "hi"
        class Mine(torch.Tensor): pass
        m = Mine([1., 2.])
        assert isinstance(m, torch.Tensor)
        show(torch.Tensor([1, 2])); show(list(torch.Tensor(2, 3).shape))
    """,
    "the gradient at singular points": """
        for f, at in ((lambda x: x.norm(), 0.), (lambda x: (x ** 0).sum(), 0.), (lambda x: x.abs().sum(), 0.), (lambda x: x.relu().sum(), 0.),
                      (lambda x: x.clamp(0, 1).sum(), 0.), (lambda x: x.clamp(0, 1).sum(), 1.), (lambda x: (x ** 2).sum(), 0.), (lambda x: x.sqrt().sum(), 0.),
                      (lambda x: x.std(), 0.), (lambda x: x.max(), 0.), (lambda x: x.sign().sum(), 0.), (lambda x: x.prod(), 0.), (lambda x: (0 ** x).sum(), -1.),
                      (lambda x: torch.zeros(3).pow(x).sum(), -1.), (lambda x: torch.maximum(x, torch.zeros(3)).sum(), 0.), (lambda x: x.median(), 0.),
                      (lambda x: (x * 0 + 2).pow(x).sum(), 0.), (lambda x: x.cumprod(0).sum(), 0.)):
            x = torch.full((3,), at, requires_grad=True)
            (g,) = torch.autograd.grad(f(x), x)
            show(g)
    """,
    "complex gradients": """
        z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
        (z * z.conj()).real.sum().backward()
        show(z.grad)
        seen = []
        z.register_hook(lambda g: seen.append(g))
        z.grad = None
        (z ** 2).sum().backward(torch.tensor(1 + 1j))
        show(z.grad); show(seen)
        x = torch.ones(2, requires_grad=True)
        (x * 1j).abs().sum().backward()
        show(x.grad)
    """,
    "complex roots": """
        raises RuntimeError: grad can be implicitly created only for real scalar outputs but got
        torch.tensor(1 + 2j, requires_grad=True).backward()
    """,
    "random and seeds": """
        torch.manual_seed(3)
        a = torch.randn(4)
        torch.manual_seed(3)
        assert torch.equal(a, torch.randn(4))
        g = torch.Generator().manual_seed(5)
        b = torch.rand(3, generator=g)
        assert torch.equal(b, torch.rand(3, generator=torch.Generator().manual_seed(5)))
        state = torch.get_rng_state(); c = torch.rand(2); torch.set_rng_state(state)
        assert torch.equal(c, torch.rand(2))
        assert ((torch.rand(100) >= 0) & (torch.rand(100) < 1)).all() and set(torch.randint(0, 3, (100,)).tolist()) == {0, 1, 2}
        show([torch.randn(2, 3).dtype, torch.rand(2).dtype, torch.randint(3, (2,)).dtype, sorted(torch.randperm(4).tolist())])
        show([list(torch.bernoulli(torch.full((3,), 1.0))), torch.zeros(3).bernoulli_(0.0), list(torch.empty(2, 2).uniform_(1, 1).shape)])
        assert torch.randn(3, requires_grad=True).requires_grad
    """,
    "checkpoint": """
        from torch.utils.checkpoint import checkpoint
        w = torch.full((2,), 2.0, requires_grad=True); x = torch.ones(2, requires_grad=True)
        checkpoint(lambda x: (x * w).exp().sum(), x, use_reentrant=True).backward()
        show(x.grad); show(w.grad)
    """,
    "forward_ad": """
        import torch.autograd.forward_ad as fw
        with fw.dual_level():
            x = fw.make_dual(torch.tensor([1., 2.]), torch.tensor([1., 0.]))
            p, t = fw.unpack_dual((x * x).sum() + x.exp().sum())
            show(p); show(t)
            show(fw.unpack_dual(torch.ones(1)).tangent is None)
    """,
    "func": """
        from torch import func
        x = torch.arange(3.)
        f = lambda x: (x ** 3).sum()
        show([func.grad(f)(x), func.jacrev(lambda x: x ** 2)(x), func.jacfwd(lambda x: x ** 2)(x), func.hessian(f)(x), func.vmap(lambda x: x * 2)(x)])
        show(func.jvp(lambda x: x ** 2, (x,), (torch.ones(3),))); out, pull = func.vjp(lambda x: x ** 2, x); show(out); show(pull(torch.ones(3)))
        show(func.vmap(func.grad(f))(torch.ones(2, 3)))
    """,
}

AREAS = {
    "inference": INFERENCE,
    "nodes": NODES,
    "out": OUT,
    "calls": CALLS,
    "names": NAMED,
    "plain": PLAIN,
    "refused": REFUSED,
    "bfloat16": BFLOAT16,
    "devices": DEVICES,
    "storage": STORAGE,
    "batched": BATCHED,
    "transforms": TRANSFORMS,
    "saved views": SAVED_VIEWS,
    "functions under transforms": FUNCTION_TRANSFORMS,
    "engine": ENGINE,
    "flags": FLAGS,
    "versions": VERSIONS,
    "views": VIEWS,
    "indexing": INDEXING,
    "hooks": HOOKS,
    "functions": FUNCTIONS,
    "modes": MODES,
    "functional": FUNCTIONAL,
    "gradcheck": GRADCHECK,
    "printing": PRINTING,
    "conversions": CONVERSIONS,
}
PROGRAMS = {f"{area}: {name}": text for area, programs in AREAS.items() for name, text in programs.items()}


def split(text):
    """Return a program as (kind of its error or None, phrase, code)."""
    import builtins
    import textwrap

    text = textwrap.dedent(text).strip() + "\n"
    first, _, rest = text.partition("\n")
    if not first.startswith("raises "):
        return None, "", text
    kind, _, phrase = first.removeprefix("raises ").partition(":")
    return getattr(builtins, kind), phrase.strip(), rest

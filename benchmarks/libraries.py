"""The libraries: how each computes what a workload asks for.

A library is made by importing it (ImportError says that it is missing). Its methods are the kinds of `workloads`; each
takes a function and its arguments, as plain NumPy, and returns a function of no arguments that does the work once and
waits for it. A kind that makes no sense for a library is no method of it.
"""

import functools
import importlib

import numpy as np

from benchmarks.names import attention_with, composed, layer_norm_in, loop, names
from benchmarks.workloads import RATE


def mapped(fun, x):
    """Apply `fun` to what is in tuples and dictionaries."""
    if isinstance(x, dict):
        return {key: mapped(fun, value) for key, value in x.items()}
    if isinstance(x, (tuple, list)):
        return tuple(mapped(fun, value) for value in x)
    return fun(x)


class Library:
    """What the rest of the suite asks of a library."""

    name = ""
    distribution = ""

    def array(self, x):
        """Return NumPy's array as the library's own."""
        return x

    def numpy(self, x):
        """Return a result as NumPy arrays."""
        return mapped(np.asarray, x)

    def prepare(self, workload):
        """Return the function that does a workload once, None if the library does not do its kind."""
        kind = getattr(self, workload.kind, None)
        if kind is None:
            return None
        return kind(functools.partial(workload.function, self.names), mapped(self.array, workload.arguments()))


class Functional(Library):
    """A library of transforms: `grad`, `value_and_grad`, `hessian`, `vmap` are attributes."""

    def finished(self, fun, arguments):
        """Return the call of `fun`, made ready to run many times."""
        return lambda: fun(*arguments)

    def gradient(self, f, arguments):
        return self.finished(self.grad(f), arguments)

    def value_and_gradient(self, f, arguments):
        return self.finished(self.value_and_grad(f), arguments)

    def step(self, f, arguments):
        value_and_gradient = self.value_and_grad(f)

        def step(params, *data):
            value, gradients = value_and_gradient(params, *data)
            return value, {name: p - RATE * gradients[name] for name, p in params.items()}

        return self.finished(step, arguments)

    def hessian(self, f, arguments):
        return self.finished(self.hessian_of(f), arguments)

    def per_example(self, f, arguments):
        return self.finished(self.vmap(self.grad(f), (None, 0, 0)), arguments)


class Fgrad(Functional):
    """fgrad, eager."""

    name = "fgrad eager"
    distribution = "fgrad"

    def __init__(self):
        import fgrad
        import fgrad.numpy as fnp

        self.fgrad = fgrad
        self.grad, self.value_and_grad = fgrad.grad, fgrad.value_and_grad
        self.hessian_of, self.vmap = fgrad.hessian, fgrad.vmap
        self.names = names(  # what networks need is loaded when it is used
            fnp,
            relu=lambda x: fgrad.nn.relu(x),
            softplus=lambda x: fgrad.nn.softplus(x),
            softmax=lambda x: fgrad.nn.softmax(x),
            cross_entropy=lambda logits, labels: fgrad.kernels.cross_entropy(logits, labels).mean(),
            gelu=lambda x: fgrad.nn.gelu(x),
            layer_norm=lambda x, scale, shift: fgrad.nn.standardize(x) * scale + shift,
            attention=attention_with(lambda x: fgrad.nn.softmax(x)),
            scan=lambda step, state, xs: fgrad.lax.scan(lambda h, x: (step(h, x), None), state, xs)[0],
        )

    tape = Functional.gradient

    def forward(self, f, arguments):
        return lambda: self.fgrad.vjp(f, *arguments)


class FgradJit(Fgrad):
    """fgrad, jitted."""

    name = "fgrad jit"
    tape = forward = None

    def finished(self, fun, arguments):
        jitted = self.fgrad.jit(fun)
        return lambda: jitted(*arguments)


class Jax(Functional):
    """jax, jitted. Wide floats are on, so that all libraries compute in the dtypes of the workloads."""

    name = "jax jit"
    distribution = "jax"

    def __init__(self):
        self.jax = jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        jnp = importlib.import_module("jax.numpy")
        self.grad, self.value_and_grad = jax.grad, jax.value_and_grad
        self.hessian_of, self.vmap = jax.hessian, jax.vmap

        def cross_entropy(logits, labels):
            picked = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
            return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)

        self.names = names(
            jnp,
            relu=jax.nn.relu,
            softplus=jax.nn.softplus,
            softmax=jax.nn.softmax,
            cross_entropy=cross_entropy,
            gelu=jax.nn.gelu,
            layer_norm=layer_norm_in(jnp),
            attention=attention_with(jax.nn.softmax),
            scan=lambda step, state, xs: jax.lax.scan(lambda h, x: (step(h, x), None), state, xs)[0],
        )

    def array(self, x):
        return x if isinstance(x, float) else self.jax.numpy.asarray(x)

    def finished(self, fun, arguments):
        jitted, wait = self.jax.jit(fun), self.jax.block_until_ready
        return lambda: wait(jitted(*arguments))


class Hips(Functional):
    """HIPS autograd."""

    name = "HIPS autograd"
    distribution = "autograd"

    def __init__(self):
        autograd = importlib.import_module("autograd")
        self.grad, self.value_and_grad, self.hessian_of = autograd.grad, autograd.value_and_grad, autograd.hessian
        self.make_vjp = autograd.make_vjp
        self.names = composed(importlib.import_module("autograd.numpy"))

    tape = Functional.gradient

    def forward(self, f, arguments):
        vjp = self.make_vjp(f)
        return lambda: vjp(*arguments)

    def per_example(self, f, arguments):
        params, *data = arguments
        gradient = self.grad(f)

        def run():
            rows = [gradient(params, *row) for row in zip(*data, strict=True)]
            return {name: np.stack([row[name] for row in rows]) for name in params}

        return run


class Torch(Library):
    """torch, eager: a tape of tensors."""

    name = "torch"
    distribution = "torch"
    module = "torch"

    def __init__(self):
        self.torch = torch = importlib.import_module(self.module)
        functional = importlib.import_module(self.module + ".nn.functional")
        self.names = names(
            torch,
            relu=torch.relu,
            softplus=functional.softplus,
            softmax=lambda x: torch.softmax(x, -1),
            cross_entropy=functional.cross_entropy,
            gelu=functools.partial(functional.gelu, approximate="tanh"),
            layer_norm=lambda x, scale, shift: functional.layer_norm(x, x.shape[-1:], scale, shift),
            attention=functional.scaled_dot_product_attention,
            scan=loop,
        )

    def array(self, x):
        return x if isinstance(x, float) else self.torch.from_numpy(x.copy())

    def numpy(self, x):
        return mapped(lambda t: t.detach().numpy(), x)

    def gradient(self, f, arguments):
        both = self.value_and_gradient(f, arguments)
        return lambda: both()[1]

    def value_and_gradient(self, f, arguments):
        params, *data = arguments
        if isinstance(params, float):
            return lambda: self._of_number(f, params)
        leaves = mapped(lambda t: t.requires_grad_(), params)
        inputs = tuple(leaves.values()) if isinstance(leaves, dict) else (leaves,)

        def run():
            value = f(leaves, *data)
            gradients = self.torch.autograd.grad(value, inputs)
            return value, dict(zip(leaves, gradients, strict=True)) if isinstance(leaves, dict) else gradients[0]

        return run

    def _of_number(self, f, number):
        x = self.torch.tensor(number, dtype=self.torch.float64, requires_grad=True)
        value = f(x)
        value.backward()
        return value, x.grad

    def tape(self, f, arguments):
        leaves = mapped(lambda t: t.requires_grad_(), arguments)
        each = leaves[0].values() if isinstance(leaves[0], dict) else leaves

        def run():
            for leaf in each:
                leaf.grad = None
            f(*leaves).backward()
            return mapped(lambda t: t.grad, leaves[0])

        return run

    def forward(self, f, arguments):
        leaves = mapped(lambda t: t.requires_grad_(), arguments)
        return lambda: f(*leaves)

    def step(self, f, arguments):
        params, *data = arguments
        for p in params.values():
            p.requires_grad_()

        def run():
            value = f(params, *data)
            value.backward()
            with self.torch.no_grad():
                for p in params.values():
                    p.sub_(p.grad, alpha=RATE)
                    p.grad = None
            return value, params

        return run

    def hessian(self, f, arguments):
        hessian = self.torch.func.hessian(f)
        return lambda: hessian(*arguments)

    def per_example(self, f, arguments):
        mapped_gradient = self.torch.func.vmap(self.torch.func.grad(f), (None, 0, 0))
        return lambda: mapped_gradient(*arguments)


class Compat(Torch):
    """fgrad.compat, by the very code that is written for torch."""

    name = "fgrad.compat"
    distribution = "fgrad"
    module = "fgrad.compat"


class Mygrad(Library):
    """mygrad: a tape of tensors with NumPy's names."""

    name = "mygrad"
    distribution = "mygrad"

    def __init__(self):
        self.mygrad = mygrad = importlib.import_module("mygrad")
        nnet = importlib.import_module("mygrad.nnet")
        own = composed(mygrad).__dict__
        own["cross_entropy"] = nnet.losses.softmax_crossentropy
        own["relu"] = nnet.activations.relu
        own["softmax"] = nnet.activations.softmax
        own["attention"] = attention_with(own["softmax"])
        self.names = names(mygrad, **own)

    def numpy(self, x):
        return mapped(lambda t: np.asarray(getattr(t, "data", t)), x)

    def gradient(self, f, arguments):
        both = self.value_and_gradient(f, arguments)
        return lambda: both()[1]

    def value_and_gradient(self, f, arguments):
        params, *data = arguments

        def run():
            leaves = mapped(self.mygrad.tensor, params)
            value = f(leaves, *data)
            value.backward()
            return value, mapped(lambda t: t.grad, leaves)

        return run

    tape = gradient

    def forward(self, f, arguments):
        leaves = mapped(self.mygrad.tensor, arguments)
        return lambda: f(*leaves)

    def step(self, f, arguments):
        params, *data = arguments
        leaves = mapped(self.mygrad.tensor, params)

        def run():
            value = f(leaves, *data)
            value.backward()
            for p in leaves.values():
                p.data -= RATE * p.grad
            return value, leaves

        return run


LIBRARIES = {library.name: library for library in (FgradJit, Fgrad, Compat, Jax, Torch, Hips, Mygrad)}
OWN = ("fgrad jit", "fgrad eager", "fgrad.compat")


def installed(wanted=LIBRARIES):
    """Return the libraries that could be imported by name, and the reasons why others could not."""
    found, missing = {}, {}
    for name in wanted:
        try:
            found[name] = LIBRARIES[name]()
        except ImportError as error:
            missing[name] = str(error)
    return found, missing

"""Every function of `fgrad.kernels` by its kernels is what it is by NumPy: values, gradients, under every transform."""

import inspect
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import pytest

import fgrad
from fgrad import kernels
from fgrad.check import check_grads

pytestmark = pytest.mark.heavy

DTYPES = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)


@dataclass(frozen=True)
class Case:
    """One call: shapes of float arrays or integer arrays as they are, None for an absent one, and options."""

    function: object
    args: tuple
    options: dict = field(default_factory=dict)

    def __str__(self):
        shown = [f"{k}={v}" for k, v in self.options.items()]
        present = [
            "-" if x is None else "x".join(map(str, np.shape(x) if isinstance(x, np.ndarray) else x)) or "0-d"
            for x in self.args
        ]
        return f"{self.function.__name__}({', '.join(present + shown)})"

    def draw(self, dtype=np.float64):
        """Return the arguments, and the positions of the differentiable ones."""
        rng = np.random.default_rng(0)
        args = [rng.normal(size=x).astype(dtype) if isinstance(x, tuple) else x for x in self.args]
        return args, [i for i, x in enumerate(self.args) if isinstance(x, tuple)][: self.wrt]

    @property
    def wrt(self):
        return {"cross_entropy": 1, "linear_cross_entropy": 2, "rope": 1}.get(self.function.__name__)

    def of(self, impl, args, places):
        """Return the function of the differentiable arguments."""

        def call(*active):
            whole = list(args)
            for place, x in zip(places, active, strict=True):
                whole[place] = x
            return self.function(*whole, impl=impl, **self.options)

        return call


def integers(*values):
    return np.array(values)


SEED = np.array(3)
STARTS = integers(0, 2, 2, 5)
LABELS = integers(1, -100, 3)
k = kernels
CASES = [
    Case(k.softmax, ((3, 5),)),
    Case(k.softmax, ((2, 2, 3),)),
    Case(k.log_softmax, ((3, 5),)),
    Case(k.layer_norm, ((3, 5), (5,), (5,))),
    Case(k.layer_norm, ((2, 3, 4), (4,), None), {"eps": 0.1}),
    Case(k.layer_norm, ((3, 5), None, (5,))),
    Case(k.rms_norm, ((3, 5), (5,))),
    Case(k.rms_norm, ((3, 5), None)),
    Case(k.group_norm, ((2, 4, 3), (4,), (4,)), {"groups": 2}),
    Case(k.group_norm, ((2, 6), None, None), {"groups": 3}),
    Case(k.gelu, ((3, 4),)),
    Case(k.gelu_tanh, ((3, 4),)),
    Case(k.silu, ((3, 4),)),
    Case(k.geglu, ((3, 4), (3, 4))),
    Case(k.geglu_tanh, ((3, 4), (3, 4))),
    Case(k.swiglu, ((2, 3, 4), (2, 3, 4))),
    Case(k.dropout, ((5, 7), SEED), {"rate": 0.4}),
    Case(k.dropout, ((5, 7), integers(2**40)), {"offset": 2**33}),
    Case(k.rope, ((2, 3, 2, 4), (3, 2), (3, 2))),
    Case(k.embedding, ((4, 3), integers(2, 0, 2))),
    Case(k.embedding, ((4, 3), np.array([[1, 1], [3, 0]]))),
    Case(k.gather, ((2, 4, 3), integers(3, 3, 0)), {"axis": 1}),
    Case(k.gather, ((2, 4), np.array(1)), {"axis": -1}),
    Case(k.scatter_add, ((4, 2), integers(0, 3, 0), (3, 2))),
    Case(k.scatter_add, ((2, 4), np.array([[0, 3], [0, 1]]), (2, 2, 2)), {"axis": 1}),
    Case(k.transpose, ((2, 3, 4),)),
    Case(k.transpose, ((2, 3, 4),), {"axes": (1, -1, 0)}),
    Case(k.matmul, ((3, 4), (4, 2))),
    Case(k.matmul, ((2, 3, 4), (2, 4, 2))),
    Case(k.linear, ((3, 4), (4, 2), (2,))),
    Case(k.linear, ((3, 4), (4, 2), (2,)), {"activation": "gelu"}),
    Case(k.linear, ((2, 3, 4), (2, 4, 2), None), {"activation": "silu"}),
    Case(k.sum, ((3, 5),)),
    Case(k.sum, ((2, 3, 4),), {"axis": (0, 2)}),
    Case(k.sum, ((2, 3),), {"axis": None}),
    Case(k.mean, ((2, 3, 4),), {"axis": 1}),
    Case(k.max, ((2, 3, 4),), {"axis": [0, -1]}),
    Case(k.logsumexp, ((2, 3),), {"axis": 0}),
    Case(k.cumsum, ((2, 3, 4),), {"axis": 1}),
    Case(k.cumsum, ((5,),), {"reverse": True}),
    Case(k.cross_entropy, ((3, 5), LABELS)),
    Case(k.cross_entropy, ((3, 5), LABELS, (5,)), {"label_smoothing": 0.2}),
    Case(k.cross_entropy, ((3, 5), LABELS, (5,)), {"reduction": "mean"}),
    Case(k.linear_cross_entropy, ((3, 4), (5, 4), LABELS), {"chunk": 2}),
    Case(k.linear_cross_entropy, ((3, 4), (5, 4), LABELS, (5,)), {"reduction": "sum", "label_smoothing": 0.1}),
    Case(k.attention, ((1, 2, 3, 4), (1, 1, 5, 4), (1, 1, 5, 4)), {"causal": True}),
    Case(k.attention, ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (2, 1, 5)), {"softcap": 2.0, "window": 3}),
    Case(k.attention, ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), None, SEED), {"rate": 0.3, "scale": 0.7}),
    Case(
        k.attention,
        ((5, 2, 4), (5, 1, 4), (5, 1, 4), None, SEED, STARTS, integers(0, 1, 3, 5)),
        {"causal": True, "rate": 0.2},
    ),
]
case_parameter = pytest.mark.parametrize("case", CASES, ids=str)


def agree(got, want, units=16):
    """Check that arrays are equal to a few units in the last place of the largest value."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    scale = np.abs(want.astype(np.float64)).max(initial=1)
    atol = units * float(ml_dtypes.finfo(want.dtype).eps) * scale
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=0, atol=atol)


def value_and_pull(case, impl, dtype):
    args, places = case.draw(dtype)
    out, pull = fgrad.vjp(case.of(impl, args, places), *[args[i] for i in places])
    return out, *pull(np.random.default_rng(1).normal(size=out.shape).astype(out.dtype))


@case_parameter
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_values_and_gradients(case, dtype):
    for got, want in zip(value_and_pull(case, "triton", dtype), value_and_pull(case, "numpy", dtype), strict=True):
        agree(got, want)


@case_parameter
def test_the_definition_has_right_gradients(case):
    args, places = case.draw()
    check_grads(case.of("numpy", args, places), tuple(args[i] for i in places), order=1)


TRANSFORMS = {
    "jit": fgrad.jit,
    "jit of grad": lambda f: fgrad.jit(fgrad.grad(f)),
    "grad of jit": lambda f: fgrad.grad(fgrad.jit(f)),
    "jvp": lambda f: lambda x: fgrad.jvp(f, (x,), (np.cos(x),))[1],
    "jvp of grad": lambda f: lambda x: fgrad.jvp(fgrad.grad(f), (x,), (np.cos(x),))[1],
    "vmap": lambda f: lambda x: fgrad.vmap(f)(np.stack([x, 2 * x])),
    "vmap of grad": lambda f: lambda x: fgrad.vmap(fgrad.grad(f))(np.stack([x, 2 * x])),
    "grad of vmap": lambda f: fgrad.grad(lambda x: fgrad.vmap(f)(np.stack([x, 2 * x])).sum()),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@case_parameter
def test_under_transforms(case, transform):
    args, places = case.draw()

    def loss(impl):
        call = case.of(impl, args, places)
        rest = [args[i] for i in places[1:]]
        return lambda x: (call(x, *rest) ** 2).sum()

    got, want = (np.asarray(transform(loss(impl))(args[places[0]])) for impl in ("triton", "numpy"))
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("case", [case for case in CASES if hasattr(case.function, "op")], ids=str)
def test_every_pair_passes_its_own_check(case, capsys):
    parameters = [
        p.name for p in inspect.signature(case.function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    args, _ = case.draw()
    present = {name: x for name, x in zip(parameters, args, strict=False) if x is not None}
    options = {name: tuple(v) if isinstance(v, list) else v for name, v in case.options.items()}
    if "q_starts" in present:
        options |= {"max_queries": 3, "max_keys": 2}
    assert case.function.op(*present).check(*present.values(), targets=[], **options).ok


@pytest.mark.parametrize("impl", ["numpy", "triton"])
@case_parameter
def test_tensors_of_compat(case, impl):
    import fgrad.compat as torch

    args, places = case.draw()
    tensors = list(args)
    for i in places:
        tensors[i] = torch.tensor(args[i], requires_grad=True)
    case.of(impl, tensors, ())().sum().backward()
    whole = case.of("numpy", args, places)
    expected = fgrad.grad(lambda *xs: whole(*xs).sum(), tuple(range(len(places))))(*[args[i] for i in places])
    for i, want in zip(places, expected, strict=True):
        np.testing.assert_allclose(tensors[i].grad.numpy(), want, rtol=1e-9, atol=1e-11)


def test_every_public_function_has_a_case():
    steps = {"adamw_step", "sgd_step", "clip_by_norm", "argmax"}
    assert {case.function.__name__ for case in CASES} == set(kernels.__all__) - steps


@pytest.mark.parametrize("name", kernels.__all__)
def test_signatures_end_with_the_choice(name):
    *_, last = inspect.signature(getattr(kernels, name)).parameters.values()
    assert (last.name, last.default, last.kind) == ("impl", None, last.KEYWORD_ONLY)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_argmax(axis):
    x = np.random.default_rng(0).normal(size=(3, 4))
    x[1, 2] = np.nan
    for impl in ("numpy", "triton"):
        np.testing.assert_array_equal(k.argmax(x, axis=axis, impl=impl), x.argmax(axis))
    np.testing.assert_array_equal(fgrad.jit(lambda x: k.argmax(x, impl="triton"))(x), x.argmax(1))
    grad = fgrad.grad(lambda x: (x[0, 0] * k.argmax(x, impl="triton")[0]).sum())(x)
    np.testing.assert_array_equal(grad, np.eye(3, 4, dtype=float) * np.array([[x[0].argmax()], [0], [0]]))


def test_seeds_are_values():
    """A new seed is no new trace; mapped seeds give each example its own mask."""
    drop = fgrad.jit(lambda x, seed: k.dropout(x, seed, impl="triton"))
    x = np.ones((4, 8))
    for seed in (1, 2):
        np.testing.assert_array_equal(drop(x, np.array(seed)), k.dropout(x, seed))
    seeds = np.arange(3)
    for impl in ("numpy", "triton"):
        masks = fgrad.vmap(lambda seed: k.dropout(x, seed, impl=impl))(seeds)  # noqa: B023
        np.testing.assert_array_equal(masks, [k.dropout(x, seed) for seed in seeds])


STEPS = [
    lambda impl, x, s: k.adamw_step(x, -x, s, s, 3, lr=0.1, weight_decay=0.1, impl=impl),
    lambda impl, x, s: k.adamw_step(x, -x, s, s, 1, lr=0.1, scale=np.full(1, 0.5, np.float32), impl=impl),
    lambda impl, x, s: k.sgd_step(x, -x, s, lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True, impl=impl),
    lambda impl, x, s: k.clip_by_norm([x, s], 1.0, impl=impl),
    lambda impl, x, s: k.clip_by_norm([0 * x], 1.0, impl=impl),
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("dtype", DTYPES[1:], ids=lambda dtype: np.dtype(dtype).name)
def test_steps(step, dtype):
    rng = np.random.default_rng(0)
    x, state = rng.normal(size=(3, 50)).astype(dtype), np.abs(rng.normal(size=(3, 50))).astype(np.float32)
    for got, want in zip(step("triton", x, state), step("numpy", x, state), strict=True):
        agree(got, want, units=4)


ERRORS = [
    (lambda impl: k.softmax(np.arange(3), impl=impl), TypeError, "softmax: x must be floating, got int64"),
    (lambda impl: k.swiglu(np.ones(2), [1], impl=impl), TypeError, "swiglu: up must be floating, got int64"),
    (lambda impl: k.gelu(impl=impl), TypeError, "missing a required argument: 'x'"),
    (lambda impl: k.sum(np.ones(3), over=1, impl=impl), TypeError, "unexpected keyword argument 'over'"),
    (lambda impl: k.sum(np.ones(3), axis=1, impl=impl), ValueError, "axis"),
    (lambda impl: k.matmul(np.ones((2, 3)), np.ones((2, 3)), impl=impl), ValueError, r"\(2, 3\) and \(2, 3\)"),
    (lambda impl: k.layer_norm(np.ones((2, 3)), np.ones(2), impl=impl), ValueError, r"weight.*\(2,\)"),
    (lambda impl: k.embedding(np.ones((2, 3)), np.ones(2), impl=impl), TypeError, "index.*float64"),
    (lambda impl: k.dropout(np.ones(3), 1, rate=1.0, impl=impl), ValueError, "rate"),
    (lambda impl: k.attention(np.ones((1, 3, 2)), *[np.ones((1, 1, 2, 2))] * 2, impl=impl), ValueError, "q, k"),
]


@pytest.mark.parametrize("impl", ["numpy", "triton"])
@pytest.mark.parametrize(("call", "error", "said"), ERRORS)
def test_errors(call, error, said, impl):
    with pytest.raises(error, match=said):
        call(impl)


def test_an_unknown_implementation_is_named():
    with pytest.raises(ValueError, match='softmax: impl must be "numpy" or "triton", got \'cuda\''):
        k.softmax(np.ones(3), impl="cuda")
